"""Repeats what the claims of docs/results.md state, at a small size, and prints those that no longer hold.

    python benchmarks/claims.py

It takes minutes, on the bundled passages of examples/hotpotqa-mini and with the embedded model. A claim holds if its
ratio or difference lies within the tolerance that is given here. Ends with 1 if a claim does not hold. What needs a
language model, other systems or large data sets is listed as not repeated.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stand_in import machine

import kraq_dspy as kraq
from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.eval import read_questions
from kraq_dspy.indexing.index.estimate import estimate_corpus
from kraq_dspy.records import Document
from kraq_dspy.settings import Settings

DATA = Path(__file__).resolve().parents[1] / "examples" / "hotpotqa-mini"
OTHERS = ("pagerank", "hybrid", "fusion", "bm25", "dense", "combined")
FOREIGN = (
    "How do I change the oil of a tractor?",
    "What is the boiling point of sodium chloride?",
    "Which enzyme splits lactose?",
    "How do I renew a fishing licence in Norway?",
    "What does a torque wrench cost?",
    "How long must lentils soak before cooking?",
    "Which plugin reformats SQL in Vim?",
    "When should roses be pruned?",
    "How is a cricket pitch rolled?",
    "What is the melting point of tungsten?",
)
"""Questions about other subjects than the bundled passages."""
NOT_REPEATED = (
    "other systems (peers)", "questions read by people", "speculative drafts", "QA search", "test sets", "small models",
    "a million chunks", "kills (make test-kill)",
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What was measured for a claim, the least and the most that it may be, and the section of docs/results.md."""

    section: str
    claim: str
    value: float
    least: float = float("-inf")
    most: float = float("inf")

    @property
    def holds(self) -> bool:
        return self.least <= self.value <= self.most

    def __str__(self) -> str:
        bounds = f"{self.least:g} to {self.most:g}".replace("-inf to", "at most").replace(" to inf", " or more")
        mark = "holds" if self.holds else "DOES NOT HOLD"
        return f"{mark}: {self.section}: {self.claim}: {self.value:.3f} ({bounds})"


def retrieval(space: kraq.Workspace) -> Iterator[Outcome]:
    """`adaptive` finds as much as each other retriever; combined retrieval over it adds nothing."""
    systems = {name: space.retriever(name) for name in ("adaptive", *OTHERS)}
    systems["over adaptive"] = space.retriever("combined", over="adaptive")
    result = kraq.evaluate(systems, DATA / "questions.jsonl", ["recall@10"], space=space, k=10)
    means = {name: result.mean("recall@10", name) for name in systems}
    for name in OTHERS:
        yield Outcome("Retrieval", f"recall@10 of adaptive / {name}", means["adaptive"] / means[name], least=0.97)
    gain = means["over adaptive"] - means["adaptive"]
    yield Outcome("Combined retrieval", "recall@10 it adds to adaptive", gain, most=0.02)


def refusals(space: kraq.Workspace) -> Iterator[Outcome]:
    """Few human questions are refused, and most questions about other subjects are."""
    own = [example.question for example in read_questions(DATA / "questions.jsonl")]
    for name, questions, bounds in (("human questions", own, (0.0, 0.05)), ("other subjects", FOREIGN, (0.5, 1.0))):
        refused = [each.is_answerable is False for each in space.answerabilities(list(questions))]
        yield Outcome("Refusals", f"share refused of {name}", sum(refused) / len(refused), *bounds)


def price(_: kraq.Workspace) -> Iterator[Outcome]:
    """Prompt tokens for each token of the corpus, by the estimate of a dry run over one long text."""
    documents = load_documents(DATA / "corpus.jsonl")
    text = "\n\n".join(each.text for each in documents if isinstance(each, Document))
    estimate = estimate_corpus([text], Settings())
    tokens_of_prompts = estimate.expected.prompt_tokens
    yield Outcome("Other systems", "prompt tokens a token", tokens_of_prompts / estimate.corpus_tokens, most=9.2 * 1.3)


CLAIMS: tuple[Callable[[kraq.Workspace], Iterator[Outcome]], ...] = (retrieval, refusals, price)


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder) / "mini.kraq"
        kraq.build_index(DATA / "corpus.jsonl", index)
        with kraq.Workspace.open(index) as space:
            outcomes = [outcome for claim in CLAIMS for outcome in claim(space)]
    for outcome in outcomes:
        print(outcome)
    print(f"Not repeated: {', '.join(NOT_REPEATED)}.")
    sys.exit(not all(outcome.holds for outcome in outcomes))


if __name__ == "__main__":
    main()
