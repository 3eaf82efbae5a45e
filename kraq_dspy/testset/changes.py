"""Changes one thing of a question, so that it supposes what no passage says: who speaks, a
year, a number, a name, what kind of a thing it is.

What is put in is of the same kind and from the same corpus, and each change is checked against every sentence.
"""

import dataclasses
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kraq_dspy.language.analysis import SAID_ALOUD
from kraq_dspy.language.text import content_words, sentences, with_another_name
from kraq_dspy.language.vocabulary import GENERAL, MONTHS
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
"""Times that the corpus has what is put in, at least: what it has once may be misread."""
_PLAIN = re.compile(r"[a-z]+(?: [a-z]+)+")
_TALE = re.compile(r"In “(?P<title>[^”]*)”, ")
_SAID_BY = re.compile(r"What did (?P<speaker>[^?]{1,80}?) say about (?P<topic>[^?]{1,120})\?")
_YEAR = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_COUNTS = r"(?= (?:[a-z]+ )?[a-z]{3,}s\b)"  # "forty workers"; not "Portal 2", nor "type 3 diabetes"
_NUMBER = re.compile(rf"(?<=[a-z] )\d{{1,3}}(?:,\d{{3}})*{_COUNTS}")
_NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve", "twenty")
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join(_NUMBER_WORDS)})\b{_COUNTS}")
_MONTHS = tuple(month for month in MONTHS if month != "May")  # which begins questions, too
_MONTH = re.compile(rf"\b(?:{'|'.join(_MONTHS)})\b(?= \d| of|\?)")
_FARTHEST = 12  # years between a year and the one that is put for it
_VAGUE_KINDS = frozenset((PHRASE, "concept", "organisation", "product", ""))
"""Kinds whose names are too unlike for one to be put for another."""
_WHOLE_NAME = re.compile(r"[A-Z][a-zà-ÿ]{2,}(?:[ -](?:of |the |de )?[A-Z][a-zà-ÿ]{2,})*")
_LIKE = re.compile(r"(?:al|ic|ive|ous|ed|[a-z]{4}(?:ent|ant)|ary|able|ful|less|ly)$")
"""Endings of a word that says what a thing is like, not what kind of thing it is."""


@dataclass(frozen=True, slots=True)
class Change:
    """One thing of a question and what is put for it; `prefix` is the tale's title, where that stays as it is."""

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
        said_by = _SAID_BY.fullmatch(question.question)
        if said_by is not None:
            return self._speaker_changed(question, said_by, chance)

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
        changed = with_another_name(question, name, other)
        rest = set(content_words(with_another_name(question, name, " ")))
        naming = [chunk for chunk in self._corpus.chunks if other.casefold() in chunk.passage.casefold()]
        return is_said(changed, naming) or any(_says_of(other, rest, chunk) for chunk in naming)

    def _pairs(
        self, question: AskedQuestion, text: str, source: Chunk, chance: random.Random
    ) -> Iterator[tuple[str, str]]:
        """Things of the question, each with one that may be put for it, the plainest first."""
        yield from _numbers_changed(text, chance)
        yield from self._names_changed(question, text, chance)
        yield from self._phrases_changed(source, text, chance)

    def _speaker_changed(self, question: AskedQuestion, said_by: re.Match[str], chance: random.Random) -> Change | None:
        """Somebody else who speaks, of the same meeting if it can be, and in no passage beside the matter."""
        speaker, matter = said_by["speaker"], set(content_words(said_by["topic"]))
        source = question.material.chunks[0]
        others = [
            (document_id != source.document_id, chance.random(), other)
            for other, document_id in self._speakers.items()
            if other != speaker
            and _form_of_name(other) == _form_of_name(speaker)
            and not self._may_speak_of(other, matter)
        ]
        if not others:
            return None
        _, _, other = min(others)
        return Change(question.question, speaker, other)

    def _may_speak_of(self, speaker: str, matter: set[str]) -> bool:
        """Whether a passage that has the speaker's name has a word of the matter."""
        name = speaker.removeprefix("the ")
        return any(name in chunk.text and matter & set(content_words(chunk.text)) for chunk in self._corpus.chunks)

    def _names_changed(self, question: AskedQuestion, text: str, chance: random.Random) -> Iterator[tuple[str, str]]:
        """Names, each with another one of its kind and its number of words."""
        about = question.material.inputs["about"]
        names = [name for name in about if re.search(rf"(?<!\w)(?<!the ){re.escape(name)}(?!\w)", text)]
        for name in names:
            entity = self._entity_by_name.get(name)
            others = self._alike(entity, name) if entity is not None else []
            are_sure = self._is_sure_name(name)
            others = [other for other in others if are_sure and self._is_sure_name(other)]
            others = [other for other in others if len(other.split()) == len(name.split())]
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

    def _is_sure_name(self, name: str) -> bool:
        """Whether it is written as a name, and none of its words is small elsewhere, as in "Caps Lock"."""
        words = re.findall(r"\w+", name.lower())
        return _WHOLE_NAME.fullmatch(name) is not None and self._small_words.isdisjoint(words)

    @cached_property
    def _small_words(self) -> frozenset[str]:
        texts = (chunk.text for chunk in self._corpus.chunks)
        return frozenset(word for text in texts for word in re.findall(r"\b[a-z]{3,}\b", text)) - {"the"}

    @staticmethod
    def _is_part_of_other(name: str, other: str) -> bool:
        return bool(set(name.casefold().split()) & set(other.casefold().split()))

    def _phrases_changed(self, source: Chunk, text: str, chance: random.Random) -> Iterator[tuple[str, str]]:
        """A phrase of two words, and one with the same noun of another kind: "the wage subsidy", "the rent subsidy"."""
        analysis = self._corpus.analyses.get(source.id)
        for sentence in analysis.sentences if analysis is not None else ():
            for named in sentence.named:
                if not (named.is_phrase and _is_kind_of_thing(named.text) and _is_whole_in(named.text, text)):
                    continue
                noun = named.text.split()[1]
                others = [
                    other
                    for other in self._phrases_by_head[named.head]
                    if other.split()[1] == noun and other != named.text and _is_kind_of_thing(other)
                ]
                if others:
                    yield named.text, chance.choice(others)

    @cached_property
    def _speakers(self) -> Mapping[str, str]:
        """Who speaks in the corpus, each with the document of the first turn."""
        speakers: dict[str, str] = {}
        for chunk_id, analysis in self._corpus.analyses.items():
            for sentence in analysis.sentences:
                for act in sentence.acts:
                    if act.verb == SAID_ALOUD and chunk_id in self._corpus.by_id:
                        speakers.setdefault(act.subject, self._corpus.by_id[chunk_id].document_id)
        return speakers

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
                    if named.is_phrase and len(words) == 2 and words[0].casefold() not in GENERAL:
                        by_head[named.head][named.text] += 1
        often = {
            head: [phrase for phrase, count in phrases.items() if count >= OFTEN and _PLAIN.fullmatch(phrase)]
            for head, phrases in by_head.items()
        }
        return defaultdict(list, often)


def is_said(question: str, chunks: Sequence[Chunk]) -> bool:
    """Whether any passage has nearly all that the question supposes in one sentence."""
    return any(nearness(question, chunk.passage) >= SAID for chunk in chunks)


def _form_of_name(speaker: str) -> str:
    """How somebody is called: by what they do ("the Chair"), by a letter ("Speaker B"), or by name."""
    if speaker.startswith("the "):
        return "role"
    return "letter" if re.search(r" [A-Z]$", speaker) else "name"


def _is_kind_of_thing(phrase: str) -> bool:
    """Whether a phrase is of two plain words, of which the first tells a kind and not what a thing is like."""
    words = phrase.split()
    return len(words) == 2 and _PLAIN.fullmatch(phrase) is not None and _LIKE.search(words[0]) is None


def _is_whole_in(phrase: str, question: str) -> bool:
    """Whether the question has the phrase by itself, and not as a part of a longer one."""
    led_by = r"(?:the|a|an|of|in|on|for|with|to|by|from|and|about|at)"
    ends = r"(?=\?|,| (?:in|on|at|to|of|from|with|by|into|for|and|as|than|that|be|is|was|are|were|has|have|had)\b)"
    return re.search(rf"\b{led_by} {re.escape(phrase)}{ends}", question) is not None


def _numbers_changed(text: str, chance: random.Random) -> Iterator[tuple[str, str]]:
    """Years, months and numbers, each with another one."""
    for year in _YEAR.findall(text):
        years = chance.randint(2, _FARTHEST)
        yield year, str(int(year) - years)
    for month in _MONTH.findall(text):
        yield month, chance.choice([other for other in _MONTHS if other != month])
    for word in _NUMBER_WORD.findall(text):
        yield word, chance.choice([other for other in _NUMBER_WORDS if other != word])
    for number in _NUMBER.findall(text):
        if int(number.replace(",", "")) > 1:
            yield number, f"{int(number.replace(',', '')) + chance.randint(2, 9):,}"


def _says_of(other: str, rest: set[str], chunk: Chunk) -> bool:
    """Whether a sentence has the thing, and most of the rest of the question beside it."""
    for sentence in sentences(chunk.passage):
        if other.casefold() in sentence.casefold():
            words = set(content_words(f"{chunk.title} {sentence}"))
            if len(rest & words) >= SAID_OF_OTHER * max(1, len(rest)):
                return True
    return False


async def with_other_premises(
    questions: Sequence[AskedQuestion], rows: Sequence[TestsetRow], changes: Changes, steps: TestsetSteps, *, seed: int
) -> dict[str, TestsetRow]:
    """Return the rows with one thing of each question changed, by the question's id; what some passage may say so is
    left out."""
    chance = random.Random(f"names {seed}")
    items, changed_of = [], {}
    for question in questions:
        change = changes.of(question, chance)
        if change is None:
            steps.rejected["has nothing that could be another"] += 1
            continue
        changed_of[question.id] = change
        items.append(Item(question.id, {"question": change.question, "name": change.name, "other": change.other}))
    replies = await steps.accepted(CHANGE, steps.writer, SupposeOfAnother(), items)

    changed_rows = {}
    for question, row in zip(questions, rows, strict=True):
        if question.id in replies:
            text = changed_of[question.id].prefix + with_articles(replies[question.id].question)
            changed_rows[question.id] = _row_of_another(row, text)
    return changed_rows


def with_articles(question: str) -> str:
    """The question with "a" or "an" as the next word has it.

    >>> with_articles("Who mended a old lamp?")
    'Who mended an old lamp?'
    """
    question = re.sub(r"\ba(?= [aeiou])(?! (?:one|uni|use|eu))", "an", question)
    return re.sub(r"\ban(?= [b-df-gj-np-tv-z])", "a", question)


def _row_of_another(row: TestsetRow, question: str) -> TestsetRow:
    """Return the row with a changed question, which nothing answers."""
    return dataclasses.replace(
        row,
        id=row_id(row.type, question),
        question=question,
        answers=(),
        supporting_ids=(),
        passages=(),
        solved_by=(),
        checks=(*row.checks, "absent from the corpus"),
    )
