"""Changes one thing of a question, so that it supposes what no passage says: a year, a number, a name, what kind of a
thing it is.

What is put in is of the same kind and from the same corpus, and each change is checked against every sentence.
"""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kraq_dspy.exam.corpus import Corpus
from kraq_dspy.exam.gold_finder import nearness
from kraq_dspy.exam.material import AskedQuestion
from kraq_dspy.language.clozes.cloze import WORDS, is_person
from kraq_dspy.language.text import content_words, sentences
from kraq_dspy.language.told import language_of
from kraq_dspy.reading.vocabulary import FIGURES, GENERAL
from kraq_dspy.records import PHRASE, Chunk, Entity

SAID = 0.9
"""Share of what a question supposes that one sentence has which says it."""
SAID_OF_OTHER = 0.6
"""Share of what else a question says that a sentence with the changed thing has which may say the same of it."""
OFTEN = 2
"""Times that the corpus has what is put in, at least: what it has once may be misread."""
_PLAIN = re.compile(r"[a-z]+(?:[ -][a-z]+)+")
_TALE = re.compile(r"In “[^”]*”, ")
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_NUMBER = re.compile(r"(?<![\d.,$-])\b\d{1,3}(?:,\d{3})*\b(?![.,]?\d|%|-)")
_NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "twenty")
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b")
_MONTHS = ("January", "February", "March", "April", "June", "July", "August", "September", "October", "November")
_MONTH = re.compile(rf"\b(?:{'|'.join(_MONTHS)})\b(?= \d| of|\?)")
_YEAR_BEFORE_SIGN = re.compile(r"(?<!\d)(?:1[0-9]|20)\d\d(?= ?年)")
_MONTH_BEFORE_SIGN = re.compile(r"(?<!\d)(?:1[0-2]|[1-9])(?=月)")
_OTHER_MONTHS = tuple(tuple(WORDS[language]["months"].split()) for language in ("de", "fr"))
_FARTHEST = 12  # years between a year and the one that is put for it
_VAGUE_KINDS = frozenset((PHRASE, "concept", "organisation", "product", ""))
"""Kinds whose names are too unlike for one to be put for another."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing of a question and what is put for it; `prefix` is the tale's title, which stays as it is."""

    question: str
    name: str
    other: str
    prefix: str = ""


class Changes:
    """What can be put for the things of a corpus's questions."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus

    def of(self, question: AskedQuestion, chance: random.Random) -> Change | None:
        """A change of the question that no passage says; None if there is none."""
        tale = _TALE.match(question.question)
        prefix = tale[0] if tale else ""
        text = question.question[len(prefix) :]
        source = question.material.chunks[0]

        for name, other in self._pairs(question, text, source, chance):
            if other.casefold() not in source.passage.casefold() and not self.is_said(text, name, other):
                return Change(text, name, other, prefix)
        return None

    def is_said(self, question: str, name: str, other: str) -> bool:
        """Whether a sentence that has the changed thing may say of it what the question supposes."""
        changed = question.replace(name, other)
        rest = set(content_words(question.replace(name, " ")))
        naming = [chunk for chunk in self._corpus.chunks if other.casefold() in chunk.passage.casefold()]
        return is_said(changed, naming) or any(_says_of(other, rest, chunk) for chunk in naming)

    def _pairs(
        self, question: AskedQuestion, text: str, source: Chunk, chance: random.Random
    ) -> Iterator[tuple[str, str]]:
        """Things of the question, each with one that may be put for it."""
        yield from self._figures_changed(source, text, chance)
        yield from self._phrases_changed(source, text, chance)
        yield from _numbers_changed(text, chance)
        yield from self._names_changed(question, text, chance, is_english=language_of(source.text) == "en")

    def _names_changed(
        self, question: AskedQuestion, text: str, chance: random.Random, *, is_english: bool
    ) -> Iterator[tuple[str, str]]:
        """Names, each with another one of its kind; in other languages people's alone."""
        about = question.material.inputs["about"]
        names = [name for name in about if re.search(rf"(?<!\w)(?<!the ){re.escape(name)}(?!\w)", text)]
        for name in names:
            entity = self._entity_by_name.get(name)
            others = self._alike(entity, name) if entity is not None else []
            if not is_english:
                others = [other for other in others if is_person(name.split()) and is_person(other.split())]
            if others:
                yield name, chance.choice(others)

    def _alike(self, entity: Entity, name: str) -> list[str]:
        """Names of other things of its kind that no passage names beside it, the same number of words if it can be."""
        others = []
        for other in self._entities_by_type[entity.type]:
            is_apart = other.id != entity.id and set(entity.chunk_ids).isdisjoint(other.chunk_ids)
            is_sure = len(other.chunk_ids) >= OFTEN
            if is_sure and is_apart and not self._is_part_of_other(name, other.name):
                others.append(other.name)
        as_long = [other for other in others if len(other.split()) == len(name.split())]
        return as_long or others

    @staticmethod
    def _is_part_of_other(name: str, other: str) -> bool:
        return bool(set(name.casefold().split()) & set(other.casefold().split()))

    def _phrases_changed(self, source: Chunk, text: str, chance: random.Random) -> Iterator[tuple[str, str]]:
        """A phrase, and one with the same noun of another kind: "the wage subsidy", "the rent subsidy"."""
        analysis = self._corpus.analyses.get(source.id)
        for sentence in analysis.sentences if analysis is not None else ():
            for named in sentence.named:
                if not named.is_phrase or " " not in named.text or named.text not in text:
                    continue
                others = [
                    other
                    for other in self._phrases_by_head[named.head]
                    if other.split()[-1] == named.text.split()[-1] and not self._is_longer(other, named.text)
                ]
                if others:
                    yield named.text, chance.choice(others)

    @staticmethod
    def _is_longer(other: str, phrase: str) -> bool:
        return phrase.casefold() in other.casefold() or other.casefold() in phrase.casefold()

    def _figures_changed(self, source: Chunk, text: str, chance: random.Random) -> Iterator[tuple[str, str]]:
        """Somebody of a tale, and somebody whom no passage of that tale names."""
        if not source.title.islower():
            return
        told = " ".join(chunk.text for chunk in self._corpus.chunks if chunk.title == source.title)
        present = set(re.findall(r"[a-z]+", told))
        absent = [figure for figure in self._figures if figure not in present]
        for word in re.findall(r"(?<=the )[a-z]+", text):
            if word in FIGURES and absent:
                yield word, chance.choice(absent)

    @cached_property
    def _figures(self) -> list[str]:
        """The figures of all tales of the corpus."""
        words = {word for chunk in self._corpus.chunks for word in re.findall(r"(?<=\bthe )[a-z]+", chunk.text)}
        return sorted(words & FIGURES)

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

    @cached_property
    def _phrases_by_head(self) -> Mapping[str, Sequence[str]]:
        by_head: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for analysis in self._corpus.analyses.values():
            for sentence in analysis.sentences:
                for named in sentence.named:
                    words = named.text.split()
                    if named.is_phrase and len(words) > 1 and words[0].casefold() not in GENERAL:
                        by_head[named.head][named.text] += 1
        often = {
            head: [phrase for phrase, count in phrases.items() if count >= OFTEN and _PLAIN.fullmatch(phrase)]
            for head, phrases in by_head.items()
        }
        return defaultdict(list, often)


def is_said(question: str, chunks: Sequence[Chunk]) -> bool:
    """Whether any passage has nearly all that the question supposes in one sentence."""
    return any(nearness(question, chunk.passage) >= SAID for chunk in chunks)


def _numbers_changed(text: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Years, months and numbers, each with another one."""
    for year in [*_YEAR.findall(text), *_YEAR_BEFORE_SIGN.findall(text)]:
        years = chance.randint(2, _FARTHEST)
        yield year, str(int(year) - years)
    for month in _MONTH.findall(text):
        yield month, chance.choice([other for other in _MONTHS if other != month])
    yield from _months_changed(text, chance)
    for word in _NUMBER_WORD.findall(text):
        yield word, chance.choice([other for other in _NUMBER_WORDS if other != word])
    for number in _NUMBER.findall(text):
        if int(number.replace(",", "")) > 1:
            yield number, f"{int(number.replace(',', '')) + chance.randint(2, 9):,}"


def _months_changed(text: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Months of German and French by their names, those of Chinese and Japanese by their numbers."""
    for months in _OTHER_MONTHS:
        for month in months:
            if re.search(rf"\b\d{{1,2}}\.? {month}\b|\b(?:im|en) {month}\b", text):
                yield month, chance.choice([other for other in months if other != month])
    for number in _MONTH_BEFORE_SIGN.findall(text):
        other = chance.choice([month for month in range(1, 13) if month != int(number)])
        yield f"{number}月", f"{other}月"


def _says_of(other: str, rest: set[str], chunk: Chunk) -> bool:
    """Whether a sentence has the thing, and most of the rest of the question beside it."""
    for sentence in sentences(chunk.passage):
        if other.casefold() in sentence.casefold():
            words = set(content_words(f"{chunk.title} {sentence}"))
            if len(rest & words) >= SAID_OF_OTHER * max(1, len(rest)):
                return True
    return False
