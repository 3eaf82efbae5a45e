"""Do the critics of synthetic catalogue entries tell good pairs from bad ones?

    python benchmarks/catalogue_critics.py [--data ../shared/data] [--asked 300] [--lm MODEL --api-base URL]
        [--critics ratings roundtrip] [--markdown | --json]

- groundedness and rereading, on SQuAD: a question with its answer and its passage; with the answer to another question
  on the same passage; with another passage of the same article, which does not have the answer;
- stand alone and retrieval: HotpotQA's questions, written to be asked without a text, and Qasper's, written about one
  paper at hand ("What are the results?"), of which many point to it. Retrieval is dense search with MiniLM over all of
  the set's passages, and asks no model.

Relevance has no gold data here. A share is that of what is kept: of the critics "ratings" the best rating, which a pair
needs; a reply without a rating counts as a failure. The default model is the embedded one, which compares words: it
shows that the parts work, not how well a language model judges. A real one: --lm hosted_vllm/NAME --api-base URL.
"""

import argparse
import gzip
import json
import random
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dspy
import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import binomtest
from stand_in import machine

from kraq_dspy._internal.concurrency import run_all
from kraq_dspy._internal.step import CALL_ERRORS
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder
from kraq_dspy.programs.qa_search.critics import BEST, FIRST, RereadSyntheticPair
from kraq_dspy.settings import EncoderSettings, RoleSettings, RunSettings, Settings
from kraq_dspy.signatures import RateGroundedness, RateStandAlone

CRITICS = {"ratings": ("groundedness", "stand_alone"), "roundtrip": ("rereading", "retrieval")}
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Case:
    """What one critic is shown, and how often it should keep it."""

    critic: str
    shown: str
    expected: str
    items: Sequence[dict[str, Any]]


@dataclass(frozen=True)
class Rated:
    """`kept` is a share, `low` and `high` its 95 % Wilson interval."""

    critic: str
    shown: str
    expected: str
    rated: int
    failed: int
    kept: float
    low: float
    high: float


def rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def grounded_cases(critic: str, data: Path, n: int, chance: random.Random) -> list[Case]:
    passages = {row["id"]: row for row in rows(data / "squad" / "corpus.jsonl.gz")}
    questions = [row for row in rows(data / "squad" / "questions.jsonl.gz") if row["answers"]]
    by_passage, by_article = defaultdict(list), defaultdict(list)
    for row in questions:
        by_passage[row["supporting_ids"][0]].append(row)
    for passage in passages.values():
        by_article[passage["title"]].append(passage["text"])
    right, other_answer, other_passage = [], [], []
    for row in chance.sample(questions, min(n, len(questions))):
        own = passages[row["supporting_ids"][0]]
        answers = {answer.lower() for answer in row["answers"]}
        shown = {"question": row["question"], "answer": row["answers"][0], "passage": own["text"]}
        right.append(shown)
        others = [each["answers"][0] for each in by_passage[own["id"]] if each["answers"][0].lower() not in answers]
        if others:
            other_answer.append({**shown, "answer": chance.choice(others)})
        away = [text for text in by_article[own["title"]] if not any(answer in text.lower() for answer in answers)]
        if away:
            other_passage.append({**shown, "passage": chance.choice(away)})
    return [
        Case(critic, "SQuAD: question, answer, passage", "often", right),
        Case(critic, "the answer to another question on the passage", "seldom", other_answer),
        Case(critic, "another passage of the article", "seldom", other_passage),
    ]


def alone_cases(critic: str, data: Path, n: int, chance: random.Random) -> list[Case]:
    cases = []
    for name, shown, expected in (
        ("hotpotqa", "HotpotQA: asked without a text", "often"),
        ("qasper", "Qasper: asked about a paper at hand", "seldom"),
    ):
        questions = rows(data / name / "questions.jsonl.gz")
        chosen = chance.sample(questions, min(n, len(questions)))
        items = [{"question": row["question"]} for row in chosen]
        if critic == "retrieval":
            items = [
                {**item, "set": name, "ids": row["supporting_ids"]} for item, row in zip(items, chosen, strict=True)
            ]
            items = [item for item in items if item["ids"]]
        cases.append(Case(critic, shown, expected, items))
    return cases


def rated(case: Case, settings: Settings) -> Rated:
    """By a model: its best rating, or its answer to the question, which must be the pair's."""
    models = LanguageModels(settings)
    if case.critic == "rereading":
        step: dspy.Module = RereadSyntheticPair()
    else:
        step = dspy.Predict(RateGroundedness if case.critic == "groundedness" else RateStandAlone)
    step.set_lm(models["judge"])

    def verdict(inputs: dict[str, Any]) -> bool | None:
        try:
            with dspy.context(adapter=KraqAdapter()):
                prediction = step(**inputs)
            return not prediction.rejected_by if case.critic == "rereading" else prediction[case.critic] == BEST
        except CALL_ERRORS:
            return None

    verdicts = run_all(verdict, case.items, limit=settings.run.concurrency)
    models.close()
    return in_numbers(case, [each for each in verdicts if each is not None], verdicts.count(None))


def found(case: Case, data: Path, embedder: Embedder) -> Rated:
    """By dense search: a supporting passage among the first."""
    passages = rows(data / case.items[0]["set"] / "corpus.jsonl.gz")
    ids = [row["id"] for row in passages]
    vectors = embedder.encode_passages([f"{row['title']}\n{row['text']}" for row in passages])
    similar = embedder.encode_queries([item["question"] for item in case.items]) @ vectors.T
    first = np.argsort(-similar, axis=1)[:, :FIRST]
    verdicts = [any(ids[at] in item["ids"] for at in best) for item, best in zip(case.items, first, strict=True)]
    return in_numbers(case, verdicts, 0)


def in_numbers(case: Case, verdicts: Sequence[bool], failed: int) -> Rated:
    interval = binomtest(sum(verdicts), len(verdicts)).proportion_ci(method="wilson")
    share = sum(verdicts) / len(verdicts)
    return Rated(case.critic, case.shown, case.expected, len(verdicts), failed, share, interval.low, interval.high)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--asked", type=int, default=300, help="questions of each set")
    parser.add_argument("--lm", default="embedded")
    parser.add_argument("--api-base")
    parser.add_argument("--critics", nargs="+", choices=CRITICS, default=list(CRITICS))
    parser.add_argument("--concurrency", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    role = RoleSettings(model=options.lm, api_base=options.api_base)
    settings = Settings(run=RunSettings(concurrency=options.concurrency), roles={"default": role})
    all_rated = []
    for critics in options.critics:
        on_answers, on_questions = CRITICS[critics]
        chance = random.Random(options.seed)
        cases = grounded_cases(on_answers, options.data, options.asked, chance)
        for case in cases + alone_cases(on_questions, options.data, options.asked, chance):
            looked_up = case.critic == "retrieval"
            rating = found(case, options.data, load_embedder(EncoderSettings())) if looked_up else rated(case, settings)
            all_rated.append(rating)
            print(", ".join(cells(rating)), file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps([vars(rating) for rating in all_rated], indent=2))
    elif options.markdown:
        print("| critic | shown | kept | wanted | rated | failed |\n|---|---|---|---|---|---|")
        for rating in all_rated:
            print("| " + " | ".join(cells(rating)) + " |")
    else:
        table = Table("critic", "shown", "kept", "wanted", "rated", "failed", title=f"{options.lm}, {machine()}")
        for rating in all_rated:
            table.add_row(*cells(rating))
        Console().print(table)


def cells(rating: Rated) -> tuple[str, ...]:
    share = f"{rating.kept:.3f} [{rating.low:.3f}, {rating.high:.3f}]"
    return rating.critic.replace("_", " "), rating.shown, share, rating.expected, str(rating.rated), str(rating.failed)


if __name__ == "__main__":
    main()
