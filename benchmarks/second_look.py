"""QA search's second look: which pairs of questions does it let pass, by wording or by threshold?

    python benchmarks/second_look.py --lm gguf/FILE [--only now before] [--skip 12 --pairs 18] [--data ../shared/data]
    python benchmarks/second_look.py --thresholds

A pair is a question and the entry nearest to it by MiniLM in the smallest catalogues of qa_search.py. Right pairs are a
rephrasing and its own entry, wrong ones a question that is not there, or another entry. With `--lm` a model is asked
about `--pairs` of each, of squad and of medical_question_pairs, in every wording of `ConfirmSameQuestion`; `--skip`
leaves out those that a wording was chosen on. `--thresholds` shows what the embedded matcher lets pass of the nearest
pairs that no rule turns down, by its likeness; the shares are of all questions that are there, and that are not.
"""

import argparse
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import dspy
import numpy as np
from qa_search import DATA, SETS, Case
from stand_in import machine

from kraq_dspy.catalogue.near_miss import contradiction
from kraq_dspy.config import EncoderSettings, RoleSettings
from kraq_dspy.embedders import load_embedder
from kraq_dspy.lms.engines.embedded.same_question import likenesses
from kraq_dspy.lms.roles import make_lm
from kraq_dspy.lms.structured.adapter import KraqAdapter
from kraq_dspy.ports import Embedder
from kraq_dspy.programs.failed_calls import CALL_ERRORS
from kraq_dspy.signatures import ConfirmSameQuestion

THRESHOLDS = (0.65, 0.7, 0.74, 0.76, 0.78, 0.82)
NOW = ConfirmSameQuestion.instructions
BEFORE = (
    "Decide whether one answer is right for both questions, in all that they name and ask for.\n\nSay no when one of "
    "them negates what the other says, asks for the opposite, for another time, number, person, place or thing, or "
    "when one adds a condition that changes the answer. Other words for the same are yes."
)
COMPARED = NOW.replace(
    "Decide whether the two questions ask for the same thing.",
    "Compare two questions. Say in a few words what each asks for, then whether that is the same.",
)
WORDINGS: dict[str, tuple[str, tuple[str, str], tuple[str, ...]]] = {
    "now": (NOW, ("first_question", "second_question"), ()),
    "before": (BEFORE, ("asked", "stored"), ()),
    "now, asked and stored": (NOW, ("asked", "stored"), ()),
    "before, first and second": (BEFORE, ("first_question", "second_question"), ()),
    "compared": (COMPARED, ("first_question", "second_question"), ("first_asks_for", "second_asks_for")),
}
"""By name: the instructions, the names of the two questions, and what is to be written before the verdict."""


@dataclass(frozen=True)
class Pair:
    """`is_there`: the catalogue has the question; `is_right`: the nearest entry is its own."""

    question: str
    entry: str
    cosine: float
    is_there: bool
    is_right: bool


def nearest_pairs(case: Case, embedder: Embedder) -> list[Pair]:
    cosines = (
        embedder.encode_queries([question for question, _ in case.queries])
        @ embedder.encode_passages([question for question, _ in case.entries]).T
    )
    pairs = []
    for (question, answer), row in zip(case.queries, cosines, strict=True):
        entry, own = case.entries[int(row.argmax())]
        pairs.append(Pair(question, entry, float(row.max()), bool(answer), bool(answer) and own == answer))
    return pairs


def chosen(pairs: Sequence[Pair], skip: int, count: int) -> list[Pair]:
    """`count` right ones and `count` wrong ones behind the first `skip` of each."""
    right = islice((pair for pair in pairs if pair.is_right), skip, skip + count)
    wrong = islice((pair for pair in pairs if not pair.is_right), skip, skip + count)
    return [*right, *wrong]


def let_pass(wording: str, pairs: Sequence[Pair], lm: dspy.BaseLM) -> list[bool]:
    """Whether the model says that the two are the same; a reply that cannot be read lets nothing pass."""
    instructions, (first, second), before = WORDINGS[wording]
    fields: dict[str, Any] = {name: (str, dspy.InputField()) for name in (first, second)}
    fields |= {name: (str, dspy.OutputField()) for name in before} | {"same": (bool, dspy.OutputField())}
    step = dspy.Predict(dspy.Signature(fields, instructions))
    passed = []
    for pair in pairs:
        with dspy.context(lm=lm, adapter=KraqAdapter()):
            try:
                passed.append(step(**{first: pair.question, second: pair.entry}).same is True)
            except CALL_ERRORS as error:
                print(f"{wording}, {pair.question!r}: {error}")
                passed.append(False)
    return passed


def wordings_table(options: argparse.Namespace, embedder: Embedder) -> Iterator[str]:
    lm = make_lm(RoleSettings(model=options.lm, api_base=options.api_base, threads=options.threads, max_tokens=200))
    cases = [next(SETS[name](options.data, 50, random.Random(0))) for name in ("squad", "medical_question_pairs")]
    by_set = {case.name: chosen(nearest_pairs(case, embedder), options.skip, options.pairs) for case in cases}
    yield "| wording | set | right pairs that pass | wrong pairs that pass |\n|---|---|---|---|"
    for wording in options.only:
        for name, pairs in by_set.items():
            passed = let_pass(wording, pairs, lm)
            cells = []
            for kind in (True, False):
                of_kind = [ok for ok, pair in zip(passed, pairs, strict=True) if pair.is_right is kind]
                cells.append(f"{sum(of_kind)} of {len(of_kind)}")
            yield f"| {wording} | {name} | " + " | ".join(cells) + " |"


def thresholds_table(data: Path, embedder: Embedder) -> Iterator[str]:
    yield "| set | entries | " + " | ".join(f"{threshold:g}: right, false" for threshold in THRESHOLDS) + " |"
    yield "|---" * (2 + len(THRESHOLDS)) + "|"
    for cases in SETS.values():
        for case in cases(data, 100, random.Random(0)):
            pairs = nearest_pairs(case, embedder)
            open_pairs = [pair for pair in pairs if contradiction(pair.question, pair.entry) is None]
            scores = np.array([likeness(pair) for pair in open_pairs])
            right = np.array([pair.is_right for pair in open_pairs])
            absent = np.array([not pair.is_there for pair in open_pairs])
            n_there = sum(pair.is_there for pair in pairs)
            cells = [
                f"{(right & (scores >= least)).sum() / n_there:.2f}, "
                f"{(absent & (scores >= least)).sum() / (len(pairs) - n_there):.2f}"
                for least in THRESHOLDS
            ]
            yield f"| {case.name} | {len(case.entries):,} | " + " | ".join(cells) + " |"


def likeness(pair: Pair) -> float:
    return likenesses(pair.question, [pair.entry], lambda _, others: [pair.cosine] * len(others))[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--thresholds", action="store_true", help="of the embedded matcher; no model is asked")
    parser.add_argument("--lm", help="the model that takes the second look")
    parser.add_argument("--api-base", help="where it is served")
    parser.add_argument("--threads", type=int, help="of a model in this process")
    parser.add_argument("--only", nargs="+", choices=list(WORDINGS), default=list(WORDINGS), metavar="WORDING")
    parser.add_argument("--skip", type=int, default=0, help="right and wrong pairs of each set that are left out")
    parser.add_argument("--pairs", type=int, default=12, help="right ones, and as many wrong ones, of each set")
    options = parser.parse_args()
    if not options.thresholds and options.lm is None:
        parser.error("give --lm MODEL, or --thresholds")
    embedder = load_embedder(EncoderSettings())
    print(machine())
    table = thresholds_table(options.data, embedder) if options.thresholds else wordings_table(options, embedder)
    for line in table:
        print(line, flush=True)


if __name__ == "__main__":
    main()
