"""Scores what the embedded model reads from small corpora: short answers that are right or false, sentences, refusals.

python -m tests.embedded.quoting.score first_hundred --wrong
"""

import re
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.embedded.answer import UNKNOWN, Similar, answer
from kraq_dspy.records import Document
from kraq_dspy.settings import ChunkSettings, EncoderSettings

HERE = Path(__file__).parent
MOST_WORDS = 8  # of a short answer
MORE_WORDS = 5
"""Words that a short answer may have beside the expected ones: a name's office, "the crossing to"."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, what a short answer may be (none if the text does not tell), and whether no sentence says it."""

    corpus: str
    question: str
    short: tuple[str, ...]
    is_derived: bool


@dataclass(frozen=True, slots=True)
class Scored:
    """How a question was answered.

    `outcome` of an answerable question is "short", "quoted", "refused", "false short" or "beside"
    (a sentence that does not tell); of an unanswerable one "declined", "false short" or "quoted beside".
    """

    asked: Asked
    answer: str
    outcome: str


def read_questions(name: str) -> Iterator[tuple[list[str], list[Asked]]]:
    """The passages of each corpus, as an index would cut them, and its questions."""
    for corpus in tomllib.loads((HERE / f"{name}.toml").read_text("utf-8"))["corpora"]:
        asked = [
            Asked(corpus["name"], each["ask"], tuple(each.get("short", ())), each.get("derived", False))
            for each in corpus["questions"]
        ]
        yield _passages(corpus["text"]), asked


def _passages(text: str) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "notes.md").write_text(text.strip() + "\n", "utf-8")
        documents = [document for document in load_documents(folder) if isinstance(document, Document)]
    return [chunk.passage for document in documents for chunk in chunk_document(document, ChunkSettings())]


def score(name: str, similar: Similar) -> list[Scored]:
    """Answer each question from the passages of its corpus alone, and say what came of it."""
    scored = []
    for passages, questions in read_questions(name):
        for asked in questions:
            text = answer(asked.question, passages, similar)
            scored.append(Scored(asked, text, outcome_of(asked, text, passages)))
    return scored


def outcome_of(asked: Asked, text: str, passages: Sequence[str]) -> str:
    """What an answer is worth, by its short part and by the words of its sentences."""
    is_answerable = bool(asked.short)
    if text == UNKNOWN and is_answerable:
        return "quoted" if asked.is_derived else "refused"
    if text == UNKNOWN:
        return "declined"

    short = short_part(text, passages)
    if short:
        is_right = any(_holds(short, gold) and _is_brief(short, gold) for gold in asked.short)
        return "short" if is_right else "false short"
    if not is_answerable:
        return "quoted beside"
    tells = asked.is_derived or any(_holds(text, gold) for gold in asked.short) or _is_verdict(asked)
    return "quoted" if tells else "beside"


def short_part(text: str, passages: Sequence[str]) -> str:
    """The short answer before the sentences; "" if there are sentences alone."""
    told = _plain(" ".join(passages))
    for match in re.finditer(r"\. ", text):
        head, rest = text[: match.start()], text[match.end() :]
        _, _, behind_title = rest.partition(": ")
        is_told = any(_beginning(part) in told for part in (rest, behind_title) if part)
        if is_told and len(head.split()) <= MOST_WORDS and f"{_plain(head)} {_beginning(rest)}" not in told:
            return head
    return ""


def _beginning(text: str) -> str:
    return " ".join(_plain(text).split()[:2])


def _plain(text: str) -> str:
    """Words and numbers alone, in small letters."""
    return " ".join(re.findall(r"\w+(?:[.,:]\d+)*", text.casefold()))


def _holds(text: str, gold: str) -> bool:
    return f" {_plain(gold)} " in f" {_plain(text)} "


def _is_brief(text: str, gold: str) -> bool:
    return len(_plain(text).split()) <= len(_plain(gold).split()) + MORE_WORDS


def _is_verdict(asked: Asked) -> bool:
    """Whether a "yes" or a "no" is expected, which a sentence tells without the word."""
    return bool({"yes", "no"}.intersection(asked.short))


def counts(scored: Sequence[Scored]) -> dict[str, int]:
    """How many questions came to each outcome."""
    return dict(Counter(each.outcome for each in scored))


def _main(name: str, shown: set[str]) -> None:
    from kraq_dspy.embedded.engine import EmbeddedEngine
    from kraq_dspy.models.embedders import load_embedder

    scored = score(name, EmbeddedEngine(load_embedder(EncoderSettings())).similar)
    for each in scored:
        if not shown or each.outcome in shown:
            print(f"{each.outcome:14} {each.asked.question} -> {each.answer}")
    print(counts(scored))


if __name__ == "__main__":
    _main(sys.argv[1], set(sys.argv[2:]))
