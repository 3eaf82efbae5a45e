"""Has one small real model answer from what each system retrieved, and compares the answers.

    python benchmarks/peers/answers.py --lm transformers/FOLDER [--questions 60] [--tokens 1000]
        [--systems kraq/adaptive lightrag/mix ...] [--data ../shared/data] [--out runs/peers]

The articles, questions and ways of asking are those of `run.py --retrieval`, whose indexes it makes where they are not
kept under --out. The reader is the same for all, with this library's prompt: what differs is what it is given, the
first --tokens of the passages in their order. Answers are kept under --out too, so a second run goes on.
"""

import argparse
import json
import statistics
import sys
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import dspy

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script finds what is beside it, not what is above

from peers.corpus import Asked, as_articles, read_pieces, read_questions
from peers.process import served
from peers.retrieval import first_tokens, recall_within
from peers.run import Bench, Servers, bench_of
from peers.systems import BY_NAME
from peers.table import as_markdown
from stand_in import machine, stand_in

from kraq_dspy.catalogue.ask_all import AskReport, ask_all
from kraq_dspy.config import RoleSettings, RunSettings, Settings
from kraq_dspy.eval.metrics.answers import exact_match, token_f1
from kraq_dspy.eval.statistics import bootstrap_difference, bootstrap_mean
from kraq_dspy.lms.roles import LanguageModels
from kraq_dspy.ports import SilentProgress
from kraq_dspy.signatures import AnswerQuestion
from kraq_dspy.steps.direct import Item

WAYS = (
    "kraq/adaptive", "kraq/dense", "kraq/combined", "lightrag/mix", "nano-graphrag/local", "graphrag-unbraked/local",
    "fast-graphrag/pagerank",
)  # fmt: skip
DECLINED = "do not know"


def read_answers(
    way: str, readings: Iterable[tuple[Asked, Sequence[str]]], settings: Settings, kept: Path
) -> dict[str, str]:
    """The reader's answer to each question from the passages beside it; those of `kept` are not asked for again."""
    rows = map(json.loads, kept.read_text("utf-8").splitlines() if kept.exists() else [])
    known: dict[str, str] = {row["question"]: row["answer"] for row in rows}
    writing = threading.Lock()
    items = [
        Item(question.id, {"passages": list(passages), "question": question.text})
        for question, passages in readings
        if question.id not in known
    ]

    def keep(question: str, prediction: dspy.Prediction) -> bool:
        with writing, kept.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"question": question, "answer": prediction.answer}) + "\n")
            known[question] = prediction.answer
        return True

    if items:
        models = LanguageModels(settings)
        step = dspy.Predict(AnswerQuestion)
        step.lm = models["answerer"]
        progress = SilentProgress()
        ask_all(way, step, items, keep, total=len(items), models=models, progress=progress, report=AskReport)
    return known


@dataclass(frozen=True)
class Answered:
    """How one way of asking did: scores of each question by metric. A question whose call failed scores 0."""

    scores: dict[str, list[float]]
    declined: int
    failed: int


def compared(by_way: dict[str, Answered]) -> str:
    """A table in which the first way of asking is what the others are compared with."""
    first = next(iter(by_way.values())).scores
    rows = []
    for way, answered in by_way.items():
        cells = [way]
        for metric, values in answered.scores.items():
            mean = bootstrap_mean(values)
            cells.append(f"{mean.estimate:.3f} [{mean.low:.3f}, {mean.high:.3f}]")
            if answered.scores is first:
                cells.append("")
            else:
                change = bootstrap_difference(values, first[metric])
                cells.append(f"{change.estimate:+.3f} [{change.low:+.3f}, {change.high:+.3f}]")
        rows.append([*cells, str(answered.declined), str(answered.failed)])
    names = [column for metric in first for column in (metric, "to the first")]
    return as_markdown(["", *names, "declined", "failed"], rows)


def measured(
    way: str, bench: Bench, questions: Sequence[Asked], servers: Servers, options: argparse.Namespace
) -> Answered:
    """The facts that are at hand, match and token F1. Raises RuntimeError where a peer fails."""
    name, mode = way.split("/")
    retrieved, _ = bench.passages(BY_NAME[name], mode, questions, servers)
    passages = {row["question"]: list(first_tokens(row["passages"], options.tokens)) for row in retrieved}
    settings = Settings(
        run=RunSettings(concurrency=options.concurrency),
        roles={"answerer": RoleSettings(model=options.lm, max_tokens=60)},
    )
    reader = options.lm.rpartition("/")[2]
    kept = bench.out / "figures" / f"{name}-{mode}-{len(questions)}-{options.tokens}-{reader}.answers"
    readings = [(question, passages[question.id]) for question in questions]
    answers = read_answers(way, readings, settings, kept)
    texts = [answers.get(question.id, "") for question in questions]
    pairs = list(zip(questions, texts, strict=True))
    scores = {
        "facts": [recall_within(passages[question.id], question.facts, None) for question in questions],
        "match": [exact_match(question.answers, text) for question, text in pairs],
        "token F1": [token_f1(question.answers, text) for question, text in pairs],
    }
    declined = sum(DECLINED in text.lower() for text in texts)
    return Answered(scores, declined, failed=sum(question.id not in answers for question in questions))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = [f"{name}/{mode}" for name, system in BY_NAME.items() for mode in system.modes]
    parser.add_argument("--lm", required=True, help="the model that reads, as kraq's settings name one")
    parser.add_argument(
        "--systems", nargs="+", choices=known, default=WAYS, metavar="SYSTEM/WAY", help=", ".join(known)
    )
    parser.add_argument("--questions", type=int, default=60)
    parser.add_argument("--tokens", type=int, default=1000, help="of passages that the reader is given")
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("runs/peers"))
    options = parser.parse_args()
    pieces = read_pieces(options.data)
    bench = bench_of(as_articles(pieces), options.out.resolve())
    questions = read_questions(options.data, pieces, options.questions)
    by_way: dict[str, Answered] = {}
    with stand_in() as chat, served(Path(__file__).with_name("encoder_server.py")) as embeddings:
        for way in options.systems:
            try:
                by_way[way] = measured(way, bench, questions, Servers(chat, embeddings), options)
            except RuntimeError as error:  # a peer that failed
                print(error, file=sys.stderr, flush=True)
                continue
            means = ", ".join(f"{metric} {statistics.mean(each):.3f}" for metric, each in by_way[way].scores.items())
            print(f"{way}: {means}", file=sys.stderr, flush=True)
    print(f"{machine()}, {len(questions)} questions, {options.tokens} tokens of passages, read by {options.lm}\n")
    print(compared(by_way))


if __name__ == "__main__":
    main()
