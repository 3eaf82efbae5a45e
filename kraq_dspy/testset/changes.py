"""Changes one thing of a question, a year or a name, so that it supposes what no passage says.

What is put in is of the same kind and from the same corpus, and each change is checked against every sentence.
"""

import dataclasses
import random
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from kraq_dspy.language.text import content_words, sentences, with_another_name
from kraq_dspy.records import PHRASE, Chunk, Entity, TestsetRow
from kraq_dspy.steps.direct import Item
from kraq_dspy.testset.asking import SupposeOfAnother
from kraq_dspy.testset.corpus import AskedQuestion, Corpus, row_id
from kraq_dspy.testset.gold_finder import nearness
from kraq_dspy.testset.steps import TestsetSteps

CHANGE = "change"
SAID = 0.9
"""Share of what a question supposes that one sentence has which says it."""
SAID_OF_OTHER = 0.6
"""Share of what else a question says that a sentence with the changed thing has which may say the same of it."""
OFTEN = 2
"""Passages that name what is put in, at least: a name of one passage may be misread."""
_TURN = re.compile(r"What did .{1,80}? say about ")
"""Begins a question about a speaker's turn, whose sentences do not name the speaker."""
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_FARTHEST = 12  # years between a year and the one that is put for it
_VAGUE_KINDS = frozenset((PHRASE, "concept", "organisation", "product", ""))
"""Kinds whose names are too unlike for one to be put for another."""
_WHOLE_NAME = re.compile(r"[A-Z][a-zà-ÿ]{2,}(?:[ -](?:of |the |de )?[A-Z][a-zà-ÿ]{2,})*")


class Changes:
    """What can be put for the things of a corpus's questions."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def of(self, question: AskedQuestion, chance: random.Random) -> tuple[str, str] | None:
        """A thing of the question and what may be put for it, so that no passage says it; None if there is none."""
        text, source = question.question, question.material.chunks[0].passage.casefold()
        if _TURN.match(text):
            return None
        for name, other in self._pairs(question, chance):
            if other.casefold() not in source and not self.is_said(text, name, other):
                return name, other
        return None

    def is_said(self, question: str, name: str, other: str) -> bool:
        """Whether a sentence that has the changed thing may say of it what the question supposes."""
        changed = with_another_name(question, name, other)
        rest = set(content_words(with_another_name(question, name, " ")))
        naming = [chunk for chunk in self._corpus.chunks if other.casefold() in chunk.passage.casefold()]
        return is_said(changed, naming) or any(_says_of(other, rest, chunk) for chunk in naming)

    def _pairs(self, question: AskedQuestion, chance: random.Random) -> Iterator[tuple[str, str]]:
        """Years and names of the question, each with one that may be put for it: an earlier year, or a name of the same
        kind and number of words that no passage has beside it."""
        text = question.question
        for year in _YEAR.findall(text):
            yield year, str(int(year) - chance.randint(2, _FARTHEST))

        for name in question.material.inputs["about"]:
            entity = self._entity_by_name.get(name)
            is_named = re.search(rf"(?<!\w)(?<!the ){re.escape(name)}(?!\w)", text)
            if entity is None or not is_named or not self._is_sure_name(name):
                continue
            words = name.casefold().split()
            others = []
            for other in self._entities_by_type[entity.type]:
                others_words = other.name.casefold().split()
                is_apart = set(words).isdisjoint(others_words) and set(entity.chunk_ids).isdisjoint(other.chunk_ids)
                is_alike = len(words) == len(others_words) and self._is_sure_name(other.name)
                if is_apart and is_alike and len(other.chunk_ids) >= OFTEN:
                    others.append(other.name)
            if others:
                yield name, chance.choice(others)

    def _is_sure_name(self, name: str) -> bool:
        """Whether it is written as a name, and none of its words is small elsewhere, as in "Caps Lock"."""
        words = re.findall(r"\w+", name.lower())
        return _WHOLE_NAME.fullmatch(name) is not None and self._small_words.isdisjoint(words)

    @cached_property
    def _small_words(self) -> frozenset[str]:
        texts = (chunk.text for chunk in self._corpus.chunks)
        return frozenset(word for text in texts for word in re.findall(r"\b[a-z]{3,}\b", text)) - {"the"}

    @cached_property
    def _entity_by_name(self) -> Mapping[str, Entity]:
        by_name: dict[str, Entity] = {}
        for entity in self._corpus.entities:
            if entity.type not in _VAGUE_KINDS:
                by_name |= dict.fromkeys(entity.names, entity)
        return by_name

    @cached_property
    def _entities_by_type(self) -> Mapping[str, Sequence[Entity]]:
        by_type: defaultdict[str, list[Entity]] = defaultdict(list)
        for entity in self._corpus.entities:
            by_type[entity.type].append(entity)
        return by_type


def is_said(question: str, chunks: Sequence[Chunk]) -> bool:
    """Whether any passage has nearly all that the question supposes in one sentence."""
    return any(nearness(question, chunk.passage) >= SAID for chunk in chunks)


def _says_of(other: str, rest: set[str], chunk: Chunk) -> bool:
    """Whether a sentence has the thing, and most of the rest of the question beside it."""
    for sentence in sentences(chunk.passage):
        if other.casefold() in sentence.casefold():
            words = set(content_words(f"{chunk.title} {sentence}"))
            if len(rest & words) >= SAID_OF_OTHER * max(1, len(rest)):
                return True
    return False


async def with_other_premises(
    questions: Sequence[AskedQuestion],
    rows: Mapping[str, TestsetRow],
    changes: Changes,
    steps: TestsetSteps,
    *,
    seed: int,
) -> dict[str, TestsetRow]:
    """Return the rows with one thing of each question changed, which nothing answers, by the question's id as `rows`
    are; what some passage may say so is left out."""
    chance = random.Random(f"names {seed}")
    items = []
    for question in questions:
        change = changes.of(question, chance)
        if change is None:
            steps.rejected["has nothing that could be another"] += 1
            continue
        name, other = change
        items.append(Item(question.id, {"question": question.question, "name": name, "other": other}))
    replies = await steps.accepted(CHANGE, steps.writer, SupposeOfAnother(), items)

    changed_rows = {}
    for id, reply in replies.items():
        row = rows[id]
        changed_rows[id] = dataclasses.replace(
            row,
            id=row_id(row.type, reply.question),
            question=reply.question,
            answers=(),
            supporting_ids=(),
            passages=(),
            solved_by=(),
            checks=(*row.checks, "absent from the corpus"),
        )
    return changed_rows
