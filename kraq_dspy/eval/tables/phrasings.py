"""Keeps other wordings of questions, which a model makes: free ones, and ones of few characters."""

import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

import dspy

from kraq_dspy._internal.concurrency import as_done
from kraq_dspy._internal.files import append_line, drop_torn_line, json_objects
from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval.datasets import Example
from kraq_dspy.models.lms.kraq_lm import KraqLM
from kraq_dspy.models.lms.meter import working_on
from kraq_dspy.models.lms.structured.adapter import KraqAdapter
from kraq_dspy.ports import Progress
from kraq_dspy.programs.kraq.question_text import MARKS
from kraq_dspy.signatures import RephraseQuestion

SHORT = 30
"""Most characters of a short rephrasing (QA search paper, section 4.2)."""

LIMITS = {"free": 0, "short": SHORT}
ORIGINAL = "original"
KINDS = (ORIGINAL, *LIMITS)


class Phrasings:
    """Wordings by question and kind. What one run made is kept in `file`, with the model that made it."""

    def __init__(self, file: Path, lm: KraqLM, *, concurrency: int, progress: Progress) -> None:
        self.file = file
        self.lm = lm
        self._concurrency = concurrency
        self._progress = progress
        self._rephrase = dspy.Predict(RephraseQuestion)
        self._known: dict[tuple[str, str], tuple[int, list[str]]] = {}  # how many were asked for, and what came
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists():
            drop_torn_line(file)
            for _, row in json_objects(file, EvaluationError, "the rephrasings"):
                if row["model"] == lm.model:
                    self._known[row["id"], row["kind"]] = (row["count"], row["texts"])

    def of(self, examples: Sequence[Example], kind: str, count: int) -> list[Example]:
        """Up to `count` wordings of each question, as questions of their own: the id is the question's with "#1" and so
        on behind it, and the question as it was is in `metadata`. What is too long, or the question itself, does not
        count, nor does a free wording without a question mark where the question has one: small models answer it.
        Raises ConfigError for an unknown kind.
        """
        if kind not in KINDS:
            raise ConfigError(f"There is no phrasing {kind!r} of a question; there are: {', '.join(KINDS)}.")
        if kind == ORIGINAL:
            return [_worded(example, 0, example.question) for example in examples]
        todo = [example for example in examples if self._known.get((example.id, kind), (0, []))[0] < count]
        stage = f"rephrase, {kind}"
        self._progress.start(stage, len(examples))
        self._progress.advance(stage, len(examples) - len(todo))

        def ask(example: Example) -> tuple[str, list[str]]:
            most = LIMITS[kind]
            with (
                working_on(stage, example.id),
                dspy.context(lm=self.lm, adapter=KraqAdapter(), disable_history=True),
            ):
                reply = self._rephrase(question=example.question, count=count, most_characters=most)
            texts = [" ".join(str(text).split()) for text in reply.rephrasings or ()]
            fitting = [text for text in texts if _fits(text, example.question, most)]
            return example.id, list(dict.fromkeys(fitting))[:count]

        for example_id, texts in as_done(ask, todo, limit=self._concurrency):
            row = {"id": example_id, "kind": kind, "model": self.lm.model, "count": count, "texts": texts}
            append_line(self.file, json.dumps(row, ensure_ascii=False))
            self._known[example_id, kind] = (count, texts)
            self._progress.advance(stage)
        self._progress.finish(stage)
        return [
            _worded(example, number, text)
            for example in examples
            for number, text in enumerate(self._known[example.id, kind][1][:count], start=1)
        ]


def question_of(wording_id: str) -> str:
    """The id of the question that a wording is of."""
    return wording_id.rpartition("#")[0]


def _fits(text: str, question: str, most: int) -> bool:
    if not text or text == question or (most and len(text) > most):
        return False
    return bool(most) or text.endswith(MARKS) or not question.endswith(MARKS)


def _worded(example: Example, number: int, text: str) -> Example:
    about = {**example.metadata, ORIGINAL: example.question}
    return dataclasses.replace(example, id=f"{example.id}#{number}", question=text, metadata=about)
