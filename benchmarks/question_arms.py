"""Asks about the same communities of an index in several ways, and holds the questions against those that people asked.

    python benchmarks/question_arms.py INDEX QUESTIONS.jsonl --tuned URL --instructed URL [--arms tuned-kraq ...]

`URL` is an OpenAI-compatible server of the model, as http://localhost:8000/v1. Arms are MODEL-SOURCE: "tuned" or
"instructed", and "kraq" (each community's summary), "findings" (up to three findings of each), or "random" (two to
seven passages drawn at random, as many questions). Each is asked once, and no template takes the place of any. What was
asked is kept in arm-*.jsonl, and another run goes on there.
"""

import argparse
import json
import random
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import KraqError
from kraq_dspy.eval.metrics.generation import BertScorer
from kraq_dspy.eval.metrics.questions import pair_questions
from kraq_dspy.eval.statistics import bootstrap_difference, bootstrap_mean
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.programs.kraq.describe import AskQuestion, AskRandomQuestion, shown_summary
from kraq_dspy.records import Chunk, Summary
from kraq_dspy.settings import EncoderSettings, RoleSettings

ARMS = ("tuned-kraq", "tuned-random", "instructed-kraq", "tuned-findings")


def items(index: Index, source: str) -> list[dict[str, Any]]:
    """What the step of this source is shown, an item a question."""
    summaries = list(index.all(Summary))
    if source == "kraq":
        return [{"summary": shown_summary(each.title, each.text)} for each in summaries]
    if source == "findings":
        return [
            {"summary": shown_summary(each.title, f"{finding.summary} {finding.explanation}".strip())}
            for each in summaries
            for finding in each.findings[:3]
        ]
    texts, chance = [chunk.text for chunk in index.all(Chunk)], random.Random(0)
    return [{"passages": chance.sample(texts, chance.randint(2, 7))} for _ in summaries]


def asked(file: Path, shown: list[dict[str, Any]], url: str) -> list[str]:
    """A question for each item; "" where none could be read."""
    role = RoleSettings(model="hosted_vllm/model", api_base=url, max_tokens=60, temperature=0.0, timeout_s=600)
    stored = [json.loads(line) for line in file.open(encoding="utf-8")] if file.exists() else []
    with dspy.context(lm=make_lm(role), adapter=KraqAdapter()), file.open("a", encoding="utf-8") as out:
        for item in shown[len(stored) :]:
            step = AskRandomQuestion() if "passages" in item else AskQuestion()
            try:
                question = step(**item).question
            except (KraqError, AdapterParseError, ValueError) as error:  # counted as a question that is not there
                print(error)
                question = ""
            stored.append(question)
            out.write(json.dumps(question, ensure_ascii=False) + "\n")
    return stored


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("questions", type=Path)
    parser.add_argument("--tuned")
    parser.add_argument("--instructed")
    parser.add_argument("--arms", nargs="+", default=ARMS)
    arguments = parser.parse_args()
    references = [json.loads(line)["question"] for line in arguments.questions.open(encoding="utf-8")]
    embedder, scorer = load_embedder(EncoderSettings()), BertScorer.packaged()
    scores: dict[str, list[float]] = {}
    for arm in arguments.arms:
        model, _, source = arm.partition("-")
        with Index.open(arguments.index) as index:
            shown = items(index, source)
        questions = [each for each in asked(Path(f"arm-{arm}.jsonl"), shown, getattr(arguments, model)) if each.strip()]
        pairs = pair_questions(references, questions, embedder)
        scores[arm] = scorer.score([each.reference for each in pairs], [each.generated for each in pairs]).tolist()
        near = sum(each.cosine >= 0.6 for each in pairs) / len(pairs)
        print(
            arm, len(questions), "Relevance", bootstrap_mean(scores[arm]), "asked ones at a cosine of .6", f"{near:.3f}"
        )
    first, *others = arguments.arms
    for arm in others:
        print(first, "less", arm, bootstrap_difference(scores[first], scores[arm]))


if __name__ == "__main__":
    main()
