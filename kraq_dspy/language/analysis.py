"""Defines what the parser says of a passage: records that are kept with the passage."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kraq_dspy.records import PHRASE

SAID_ALOUD = "say aloud"
"""Stands for the verb of a sentence in a transcript; its subject is whose turn it is."""
READ = "read"
"""The stage of an index's results that analyses are."""


@dataclass(frozen=True, slots=True)
class Named:
    """What a sentence names, without article: `kind` is that of an entity, or `PHRASE`.

    `head` is the lemma of its noun.

    >>> Named("motor cortex", PHRASE, "cortex").is_phrase
    True
    """

    text: str
    kind: str
    head: str = ""

    @property
    def is_phrase(self) -> bool:
        return self.kind == PHRASE


@dataclass(frozen=True, slots=True)
class Link:
    """A subject, its verb, and the verb's object or what a preposition leads to, in the words of the sentence."""

    source: str
    predicate: str
    target: str


@dataclass(frozen=True, slots=True)
class Act:
    """Who does what to what, in the active voice: `verb` is a lemma, and `subject` or `object` "" where none is named.

    `subject` is "we" where the passage speaks of itself, `object` "it" where another sentence names it. `past` says
    that it was done.

    >>> Act("use", "we", "cookies").past
    False
    """

    verb: str
    subject: str
    object: str
    past: bool = False


@dataclass(frozen=True, slots=True)
class Asked:
    """A question that the sentence answers, and the answer in the sentence's words.

    `word` is "who", "what", "which", "when", "where", "why", "how" or "how many". `weight` from 0 to 1 says how well
    the question stands alone: the names and rare things that it has. `about` are the things of the sentence that the
    question names.
    """

    question: str
    answer: str
    word: str
    weight: float
    about: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of the passage, as it stands there; `named`, `links` and `acts` in reading order."""

    text: str
    named: tuple[Named, ...] = ()
    links: tuple[Link, ...] = ()
    asked: tuple[Asked, ...] = ()
    acts: tuple[Act, ...] = ()


@dataclass(frozen=True, slots=True)
class Analysis:
    """What a passage says. `title` is its first line, if that is none of its text."""

    title: str
    sentences: tuple[Sentence, ...]

    def asked(self) -> Iterator[tuple[Sentence, Asked]]:
        """Yield each question with the sentence that answers it, in reading order."""
        for sentence in self.sentences:
            for asked in sentence.asked:
                yield sentence, asked


FEWEST = 2  # passages of a group that several tell of


@dataclass(frozen=True, slots=True)
class Group:
    """Statements of several passages that answer one question.

    `names` are what the question names; `told` the first statement of each passage, by the passage's id. `rank` is
    lower for what is asked more particularly. `key` is what their statements share: the form of the question, a
    tale's title, a verb, and the names, folded.
    """

    key: tuple[str, ...]
    question: str
    names: tuple[str, ...]
    told: Mapping[str, str]
    rank: int


@dataclass(frozen=True, slots=True)
class AskedHeading:
    """A heading, how its text begins, and the `question` that a template makes of it."""

    heading: str
    text: str
    question: str


@dataclass(frozen=True, slots=True)
class Reading:
    """All that was found. `entities` maps a name to (type, description); `links` are (source, target, predicate,
    sentence) and `claims` (subject, object, sentence), in reading order; the object is "" unless the sentence is about
    two names alone."""

    entities: dict[str, tuple[str, str]]
    links: list[tuple[str, str, str, str]]
    claims: list[tuple[str, str, str]]


def to_values(analysis: Analysis) -> list[Any]:
    """The analysis as lists of JSON, which `from_values` reads.

    >>> ada = Analysis("Ada", (Sentence("Ada met Charles.", (Named("Ada", "person"),)),))
    >>> from_values(to_values(ada)) == ada
    True
    """
    sentences = [
        [
            sentence.text,
            [[each.text, each.kind, each.head] for each in sentence.named],
            [[each.source, each.predicate, each.target] for each in sentence.links],
            [[each.question, each.answer, each.word, each.weight, list(each.about)] for each in sentence.asked],
            [[each.verb, each.subject, each.object, each.past] for each in sentence.acts],
        ]
        for sentence in analysis.sentences
    ]
    return [analysis.title, sentences]


def from_values(values: list[Any]) -> Analysis:
    """Read what `to_values` wrote. An earlier reading kept no acts."""
    title, sentences = values
    read = []
    for text, named, links, asked, *acts in sentences:
        questions = tuple(
            Asked(question, answer, word, weight, tuple(about)) for question, answer, word, weight, about in asked
        )
        read.append(
            Sentence(
                text,
                tuple(Named(*each) for each in named),
                tuple(Link(*each) for each in links),
                questions,
                tuple(Act(*each) for each in (acts[0] if acts else ())),
            )
        )
    return Analysis(title, tuple(read))
