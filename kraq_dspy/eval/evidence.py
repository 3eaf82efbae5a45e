"""Holds the documents that questions name against those of an index: a ranking cannot find what is not there."""

import dataclasses
import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from kraq_dspy.errors import EvaluationError, counted
from kraq_dspy.eval.datasets import Example
from kraq_dspy.testset.qrels import read_qrels

_BETWEEN_NAMES = re.compile(r"[;|\n]|,(?=\s)")
_SHOWN = 3


def with_known_documents(
    examples: Sequence[Example], known: Callable[[Collection[str]], Collection[str]], *, required: bool
) -> tuple[list[Example], str]:
    """The examples with their documents as the index calls them, and a sentence about those that it lacks, or "".

    `known` are those of some ids that the index has. Names in one cell are parted if all of them are known. Where
    none of any question's is, the examples have no documents, or with `required` EvaluationError is raised.

    >>> asked = [Example("q1", "Who?", (), ("a.txt; b.txt",)), Example("q2", "Where?", (), ("c",))]
    >>> examples, note = with_known_documents(asked, {"a.txt", "b.txt"}.intersection, required=False)
    >>> examples[0].supporting_ids, note
    (('a.txt', 'b.txt'), "1 of 2 questions names a document that the index does not have: 'c'.")
    """
    names = {name for example in examples for name in example.supporting_ids}
    if not names:
        return list(examples), ""

    there = frozenset(known({spelling for name in names for spelling in (name, _plain(name), *_parts(name))}))
    spelled = [_spelled(example, there) for example in examples]
    lacking = dict.fromkeys(id for example in spelled for id in example.supporting_ids if id not in there)
    if not lacking:
        return spelled, ""

    shown = _listed(list(lacking))
    if not there:
        reason = f"The index has none of the documents that the questions name: {shown}."
        if required:
            raise EvaluationError(f"{reason} Name the column with its ids (--documents-column), or score answers.")
        return [dataclasses.replace(example, supporting_ids=()) for example in spelled], reason

    asking = sum(1 for example in spelled if not there.issuperset(example.supporting_ids))
    verb = "names a document" if asking == 1 else "name documents"
    return (
        spelled,
        f"{asking} of {counted(len(examples), 'question')} {verb} that the index does not have: {shown}.",
    )


def with_qrels(examples: Sequence[Example], path: str | Path) -> list[Example]:
    """The questions with the documents that the qrels name. Raises EvaluationError if they name none of the ids."""
    documents = read_qrels(path)
    if not any(example.id in documents for example in examples):
        raise EvaluationError(
            f"{str(path)!r} names none of the questions' ids: it has {next(iter(documents), 'none')!r}, and the "
            f"questions have {examples[0].id!r}."
        )
    return [dataclasses.replace(each, supporting_ids=documents.get(each.id, ())) for each in examples]


def _known(name: str, there: Collection[str]) -> Sequence[str]:
    if name in there:
        return [name]
    if _plain(name) in there:
        return [_plain(name)]
    parts = _parts(name)
    return parts if len(parts) > 1 and all(part in there for part in parts) else [name]


def _plain(name: str) -> str:
    return name.strip().removeprefix("./")


def _parts(name: str) -> list[str]:
    return [plain for part in _BETWEEN_NAMES.split(name) if (plain := _plain(part))]


def _spelled(example: Example, there: Collection[str]) -> Example:
    ids = tuple(id for name in example.supporting_ids for id in _known(name, there))
    return dataclasses.replace(example, supporting_ids=ids)


def _listed(ids: Sequence[str]) -> str:
    first = ", ".join(map(repr, ids[:_SHOWN]))
    return f"{first}, ..." if len(ids) > _SHOWN else first
