"""Hands out what the embedded model does, by its ports: the one place that imports its room, `embedded/`.

The room may be left out of an installation. Programs, indexes and test sets by other models work without it: no passage
is parsed there, and what cannot do without the embedded model raises ModelError.

    analyst().analysis("Ada met Charles in London.").sentences
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kraq_dspy.errors import ModelError
from kraq_dspy.language.analysis import Analysis, AskedHeading, Group, Reading
from kraq_dspy.ports import Embedder
from kraq_dspy.records import Chunk, Community

if TYPE_CHECKING:
    from dspy.lm15 import Request, Response

    from kraq_dspy.asset.store.index import Index

ROOM = "kraq_dspy.embedded"


class EmbeddedEngine(Protocol):
    """Answers the prompt of a signature without a language model. Safe for threads."""

    def complete(self, request: "Request") -> "Response":
        """Raises ModelError for a prompt that is no DSPy signature, or asks for a kind of value it cannot make."""


class Analyst(Protocol):
    """Reads passages in English with a parser, each once: an index keeps what it says. Safe for threads."""

    def made_by(self) -> str:
        """The parser and the version of the reading; "" where there is none."""

    def analysis(self, passage: str) -> Analysis | None:
        """What the parser says of a passage; None of one that is not in English."""

    def is_english(self, text: str) -> bool:
        """Whether a passage is one that the parser may read."""

    def reading(self, passage: str) -> Reading:
        """The names of a passage, what links them, and what is said of them."""

    def remember(self, analyses: Mapping[str, Analysis | None]) -> None:
        """Take over what was read before, by passage, so that it is not parsed again in this process."""

    def take_shipped(self, example: Path) -> None:
        """Take over the analyses that come with the bundled example."""

    def read_passages(self, index: "Index", chunk_ids: Sequence[str]) -> Iterator[Chunk]:
        """Yield the passages, each when its analysis is kept."""

    def analyses_of(self, index: "Index", chunk_ids: Sequence[str]) -> dict[str, Analysis]:
        """The analyses of those of the passages that are in English, by the chunk's id; what is not kept is parsed."""

    def forget_other_readings(self, index: "Index") -> None:
        """Drop what another version of the parser kept, before an index is changed."""


class QuestionWriter(Protocol):
    """Asks what passages answer, without a model: after their headings, definitions and parsed statements."""

    def subject_of(self, passages: Sequence[str]) -> str:
        """How most of the passages place themselves, "on the TV"; "" if they share no such thing."""

    def placed(self, question: str, subject: str) -> str:
        """A question of how something is done, with the subject of its text if it does not say it."""

    def asked_title(self, title: str, document_id: str, text: str) -> str:
        """The title of a document if a question can name it, else a stand-in that no question names."""

    def headings_asked(
        self, communities: Iterable[Community], passages_of: Callable[[Sequence[str]], list[str]], subject: str
    ) -> dict[str, AskedHeading]:
        """The weightiest heading of each community's passages that announces a question, by the community's id."""

    def question_about(
        self, summary: str, passages: Sequence[str] = (), subject: str = "", *, language_of_corpus: str = "en"
    ) -> str:
        """One question about what the summary is mostly about; `NOTHING_NAMED` where it names nothing."""

    def defines(self, text: str, title: str) -> bool:
        """Whether a sentence of the text says what a name is."""

    def groups_in(self, analyses: Mapping[str, Analysis], *, may_be_one: bool = False) -> list[Group]:
        """The groups of statements that one question asks for, the most particular first."""

    def passages_under(self, key: tuple[str, ...], analyses: Mapping[str, Analysis]) -> list[str]:
        """The ids of the passages with a statement under the key of a group."""


class NoAnalyst:
    """Stands for the analyst where the room is left out: nothing is parsed.

    >>> NoAnalyst().analysis("Ada met Charles.") is None
    True
    """

    def made_by(self) -> str:
        return ""

    def analysis(self, passage: str) -> None:
        return None

    def is_english(self, text: str) -> bool:
        return False

    def reading(self, passage: str) -> Reading:
        raise _absent()

    def remember(self, analyses: Mapping[str, Analysis | None]) -> None:
        pass

    def take_shipped(self, example: Path) -> None:
        raise _absent()

    def read_passages(self, index: "Index", chunk_ids: Sequence[str]) -> Iterator[Chunk]:
        raise _absent()

    def analyses_of(self, index: "Index", chunk_ids: Sequence[str]) -> dict[str, Analysis]:
        return {}

    def forget_other_readings(self, index: "Index") -> None:
        pass


def has_embedded_model() -> bool:
    """Whether this installation has the room of the embedded model."""
    return find_spec(ROOM) is not None


def analyst() -> Analyst:
    """The analyst of passages; one that reads nothing where the room is left out."""
    if not has_embedded_model():
        return NoAnalyst()
    from kraq_dspy.embedded.reading import kept

    return kept


def question_writer() -> QuestionWriter:
    """The writer of questions. Raises ModelError where the room is left out."""
    if not has_embedded_model():
        raise _absent()
    from kraq_dspy.embedded.asking import writer

    return writer


def embedded_engine(embedder: Embedder | None) -> EmbeddedEngine:
    """The engine behind the model "embedded". Raises ModelError where the room is left out."""
    if not has_embedded_model():
        raise _absent()
    from kraq_dspy.embedded.engine import EmbeddedEngine as Engine

    return Engine(embedder)


def _absent() -> ModelError:
    return ModelError(
        'This installation of kraq-dspy has no embedded model (the package "kraq_dspy.embedded" is left out): name '
        "another model for the role, or install kraq-dspy whole."
    )
