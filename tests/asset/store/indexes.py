"""Makes small indexes and the records that the tests put into them."""

from pathlib import Path

from kraq_dspy import Index
from kraq_dspy.asset.store.states import hold_state
from kraq_dspy.records import Chunk, Community, Question, content_id
from kraq_dspy.settings import Settings


def make(path: Path, dimension: int = 2) -> Index:
    return Index.create(path, Settings(), encoder_name="keywords", encoder_dimension=dimension)


def chunk(name: str, document_id: str = "d1", text: str = "text") -> Chunk:
    return Chunk(content_id(name), document_id, 0, 0, len(text), text, 1)


def question(name: str, level: int = 0, source: str = "kraq", duplicate_of: str | None = None) -> Question:
    return Question(content_id(name), name, source, "c1", level, ("k1",), ("d1",), duplicate_of=duplicate_of)


def community(name: str, level: int, children: tuple[str, ...] = ()) -> Community:
    return Community(name, level, None, children, (), (), ())


def current_home(root: Path) -> Path:
    """The folder that a reader who comes now would open."""
    lease = hold_state(root)
    lease.release()
    return lease.home
