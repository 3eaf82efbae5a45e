"""Do the critics of synthetic catalogue entries tell good pairs from bad ones?

    python benchmarks/catalogue_critics.py [--data ../shared/data] [--asked 300] [--lm MODEL --api-base URL]
        [--markdown | --json]

- groundedness, on SQuAD: a question with its answer and its passage; with the answer to another question on the same
  passage; with another passage of the same article, which does not have the answer;
- stand alone: HotpotQA's questions, written to be asked without a text, and Qasper's, written about one paper at hand
  ("What are the results?"), of which many point to it.

Relevance has no gold data here. A share is that of the best rating, which a pair needs to be kept; a reply without a
rating counts as a failure. The default model is the embedded one, which compares words: it shows that the parts work,
not how well a language model judges. A real one: --lm hosted_vllm/NAME --api-base URL.
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
from rich.console import Console
from rich.table import Table
from scipy.stats import binomtest
from stand_in import machine

from kraq_dspy.catalogue.ask_all import AskReport, ask_all
from kraq_dspy.catalogue.critics import BEST, rating
from kraq_dspy.config import RoleSettings, RunSettings, Settings
from kraq_dspy.lms.roles import LanguageModels
from kraq_dspy.ports import SilentProgress
from kraq_dspy.signatures import RateGroundedness, RateStandAlone
from kraq_dspy.steps.direct import Item

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Case:
    """What one critic is shown, and how often it should give the best rating."""

    critic: str
    shown: str
    expected: str
    items: Sequence[dict[str, str]]


@dataclass(frozen=True)
class Rated:
    """`low` and `high` are a 95 % Wilson interval of the share of the best rating."""

    critic: str
    shown: str
    expected: str
    rated: int
    failed: int
    best: float
    low: float
    high: float


def rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def grounded_cases(data: Path, n: int, chance: random.Random) -> list[Case]:
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
        others = [one["answers"][0] for one in by_passage[own["id"]] if one["answers"][0].lower() not in answers]
        if others:
            other_answer.append({**shown, "answer": chance.choice(others)})
        away = [text for text in by_article[own["title"]] if not any(answer in text.lower() for answer in answers)]
        if away:
            other_passage.append({**shown, "passage": chance.choice(away)})
    return [
        Case("groundedness", "SQuAD: question, answer, passage", "often", right),
        Case("groundedness", "the answer to another question on the passage", "seldom", other_answer),
        Case("groundedness", "another passage of the article", "seldom", other_passage),
    ]


def alone_cases(data: Path, n: int, chance: random.Random) -> list[Case]:
    cases = []
    for name, shown, expected in (
        ("hotpotqa", "HotpotQA: asked without a text", "often"),
        ("qasper", "Qasper: asked about a paper at hand", "seldom"),
    ):
        questions = rows(data / name / "questions.jsonl.gz")
        chosen = chance.sample(questions, min(n, len(questions)))
        cases.append(Case("stand_alone", shown, expected, [{"question": row["question"]} for row in chosen]))
    return cases


def rate(case: Case, settings: Settings) -> Rated:
    models = LanguageModels(settings)
    step = dspy.Predict(RateGroundedness if case.critic == "groundedness" else RateStandAlone)
    step.lm = models["judge"]
    marks: list[int] = []

    def keep(item_id: str, prediction: dspy.Prediction) -> bool:
        marks.append(rating(prediction[case.critic]))
        return True

    items = [Item(str(number), inputs) for number, inputs in enumerate(case.items)]
    report = ask_all(
        case.critic, step, items, keep, total=len(items), models=models, progress=SilentProgress(), report=AskReport
    )
    best = sum(mark == BEST for mark in marks)
    interval = binomtest(best, len(marks)).proportion_ci(method="wilson")
    share = best / len(marks)
    return Rated(
        case.critic, case.shown, case.expected, len(marks), len(report.failures), share, interval.low, interval.high
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--asked", type=int, default=300, help="questions of each set")
    parser.add_argument("--lm", default="embedded")
    parser.add_argument("--api-base")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    role = RoleSettings(model=options.lm, api_base=options.api_base)
    settings = Settings(run=RunSettings(concurrency=16), roles={"default": role})
    chance = random.Random(options.seed)
    cases = [
        *grounded_cases(options.data, options.asked, chance),
        *alone_cases(options.data, options.asked, chance),
    ]
    rated = []
    for case in cases:
        rated.append(rate(case, settings))
        print(", ".join(cells(rated[-1])), file=sys.stderr, flush=True)
    if options.json:
        print(json.dumps([vars(one) for one in rated], indent=2))
    elif options.markdown:
        print("| critic | shown | best rating | wanted | rated | failed |\n|---|---|---|---|---|---|")
        for one in rated:
            print("| " + " | ".join(cells(one)) + " |")
    else:
        table = Table("critic", "shown", "best rating", "wanted", "rated", "failed", title=f"{options.lm}, {machine()}")
        for one in rated:
            table.add_row(*cells(one))
        Console().print(table)


def cells(one: Rated) -> tuple[str, ...]:
    share = f"{one.best:.3f} [{one.low:.3f}, {one.high:.3f}]"
    return one.critic.replace("_", " "), one.shown, share, one.expected, str(one.rated), str(one.failed)


if __name__ == "__main__":
    main()
