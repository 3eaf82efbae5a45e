"""Knows which questions an adapter learned from, so that it is not measured on them.

An adapter's folder holds `learned.json`, the fingerprints of the questions in the rows it was trained on: short hashes
that tell a question again and do not give it away.
"""

import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.metrics.normalise import normalise_answer
from kraq_dspy.models.lms.local_models import adapter_folder
from kraq_dspy.records import content_id

LEARNED_FILE = "learned.json"
_DIGITS = 12


def fingerprint_of(question: str) -> str:
    """Twelve hexadecimal digits, the same whatever the case, punctuation and articles.

    >>> fingerprint_of("Who directed The Nun?") == fingerprint_of("who directed the Nun")
    True
    """
    return content_id("question", normalise_answer(question))[:_DIGITS]


def write_learned(folder: Path, questions: Iterable[str]) -> Path:
    """`learned.json` of an adapter that was trained on these questions."""
    file = folder / LEARNED_FILE
    file.write_text(json.dumps(sorted({fingerprint_of(each) for each in questions}), indent=0) + "\n", "utf-8")
    return file


def learned_by(models: Iterable[str]) -> frozenset[str]:
    """Fingerprints of all that the adapters in these models' names learned from ("gguf/m.gguf#adapters/mine@1a2b3c4d").

    An adapter whose folder is not on this machine, or has no `learned.json`, says nothing.
    """
    known: set[str] = set()
    for name in models:
        _, separator, adapter = name.partition("#")
        file = Path(adapter_folder(adapter)[0]) / LEARNED_FILE
        if separator and file.is_file():
            try:
                known.update(json.loads(file.read_text("utf-8")))
            except ValueError as error:
                raise EvaluationError(f"{str(file)!r} holds no fingerprints of questions: {error}.") from error
    return frozenset(known)


def without_learned(examples: Sequence[Example], learned: Collection[str]) -> list[Example]:
    """The examples whose questions are not among the fingerprints."""
    return [example for example in examples if fingerprint_of(example.question) not in learned]


def learned_note(count: int) -> str:
    """What a report says of the questions that were left out."""
    are = "question is" if count == 1 else "questions are"
    return f"{count:,} {are} left out: an adapter in use was trained on {'it' if count == 1 else 'them'}."
