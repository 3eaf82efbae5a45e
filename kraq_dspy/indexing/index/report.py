"""Says what a build may be given, and what it did."""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias, TypedDict

from kraq_dspy._internal.checks import suggestion
from kraq_dspy.asset.store.index import Index
from kraq_dspy.models.embedders.text_encoder import EmbedderLike
from kraq_dspy.models.lms.meter import Limits
from kraq_dspy.models.lms.roles import ModelsLike
from kraq_dspy.ports import Progress
from kraq_dspy.programs.kraq.pipeline import KRAQ
from kraq_dspy.records import Chunk, Community, Document, Entity, Failure, Usage
from kraq_dspy.settings import Settings

_NAMED = 3  # entities of a community

LabelsOf: TypeAlias = Callable[[Document], Iterable[str]]
"""Says which labels a document has: who may read it."""


@dataclass(frozen=True)
class DocumentChanges:
    """How many documents changed since the last state of the index.

    Attributes:
        added: new documents.
        changed: documents with another text.
        removed: documents that are gone.
    """

    added: int = 0
    changed: int = 0
    removed: int = 0


@dataclass(frozen=True)
class BuildReport:
    """What a build made, the calls and seconds, and the failures.

    Attributes:
        path: the folder of the index.
        counts: the number of records, by kind.
        failures: open failures, new ones first. The next run retries the failed items.
        usage: calls and tokens of this run, by stage.
        seconds: the time of this run.
        models: the model of each role.
        problems: remarks that a reader needs.
        stale_answers: prepared answers whose documents this run changed or removed.
        documents: how many documents were added, changed and removed.
        former_failures: how many of the failures are from earlier runs.
        asked_by: the number of questions by model. Questions of templates count for the embedded model.
    """

    path: Path
    counts: dict[str, int]
    failures: tuple[Failure, ...]
    usage: dict[str, Usage]
    seconds: float
    models: dict[str, str]
    problems: tuple[str, ...] = ()
    stale_answers: int = 0
    documents: DocumentChanges = DocumentChanges()
    former_failures: int = 0
    asked_by: dict[str, int] = field(default_factory=dict)


def located(index: Index, failures: Iterable[Failure]) -> tuple[Failure, ...]:
    """The failures with `where`: "a.txt, passage 3" or "rows.csv, row 'q7', passage 1" for a chunk,
    names for a community."""
    failures = tuple(failures)
    item_ids = {failure.item_id for failure in failures}
    where: dict[str, str] = {}

    chunks = _there(index, Chunk, item_ids)
    documents = _there(index, Document, {chunk.document_id for chunk in chunks})
    files = {document.id: _place(document) for document in documents}
    for chunk in chunks:
        file = files.get(chunk.document_id, chunk.document_id)
        where[chunk.id] = f"{file}, passage {chunk.position + 1}"

    for community in _there(index, Community, item_ids):
        members = _there(index, Entity, set(community.entity_ids[:_NAMED]))
        names = ", ".join(entity.name for entity in members)
        where[community.id] = f"the community of {names} (level {community.level})"
    return tuple(replace(failure, where=where.get(failure.item_id, "")) for failure in failures)


def _place(document: Document) -> str:
    """The file, and of a file with many rows the row's id, or how it begins if it has none of its own."""
    if not document.source or document.id == document.source:
        return document.source or document.id
    begins = repr(" ".join(document.text[:60].split()))
    has_own = not document.id.startswith(f"{document.source}#")
    return f"{document.source}, row {repr(document.id) if has_own else begins}"


def _there(index: Index, kind: Any, ids: Collection[str]) -> list[Any]:
    return index.get(kind, sorted(index.known(kind, ids)))


class BuildOptions(TypedDict, total=False):
    """The options of all functions that build or change an index. `build_index` describes each option."""

    settings: Settings | None
    lm: ModelsLike | None
    embedder: EmbedderLike | None
    kraq: KRAQ | None
    progress: Progress | None
    optimized: Sequence[str | Path]
    limits: Limits | None
    labels: LabelsOf | None
    random_questions: bool


def require_known(options: Any) -> None:
    """Raises TypeError for an option that there is not, or whose value is of a wrong kind."""
    known = BuildOptions.__annotations__
    for name in options:
        if name not in known:
            raise TypeError(f"{name!r} is no option of a build; {suggestion(name, known)}")

    kinds = {
        "settings": Settings,
        "kraq": KRAQ,
        "limits": Limits,
        "random_questions": bool,
    }
    for name, kind in kinds.items():
        value = options.get(name)
        if value is not None and not isinstance(value, kind):
            actual = type(value).__name__
            raise TypeError(f"{name} is {value!r:.80} ({actual}); expected a {kind.__name__}.")

    states = options.get("optimized", ())
    is_one_file = isinstance(states, str | Path)
    if is_one_file or not all(isinstance(state, str | Path) for state in states):
        raise TypeError(f"optimized is {states!r:.80}; expected a list of files.")
