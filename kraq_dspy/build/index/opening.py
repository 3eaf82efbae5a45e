"""Opens an index for a build, and refuses one that would lose what somebody did not mean to lose."""

import dataclasses
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import IndexStateError, RemovedDocumentsError
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, Progress
from kraq_dspy.records import Document, Failure
from kraq_dspy.settings import RunSettings, Settings
from kraq_dspy.steps.stored import StoredSteps


def open_for_build(out: Path, settings: Settings, embedder: Embedder) -> Index:
    """The index at `out`, new or to be brought up to date."""
    if not (out / "manifest.json").exists():
        return Index.create(out, settings, encoder_name=embedder.name, encoder_dimension=embedder.dimension)
    with Index.open(out, unfinished=True) as found:  # before it is copied to be changed
        found.require_encoder(embedder)
        _require_redaction(found, settings)
    return Index.open(out, write=True)


def steps_for(index: Index, run: RunSettings, models: LanguageModels, progress: Progress) -> StoredSteps:
    """In this process, or on a cluster."""
    if run.runner == "local":
        return StoredSteps(index.results, models, progress, run.concurrency)
    from kraq_dspy.steps.ray import RaySteps  # brings pyarrow and ray

    return RaySteps(index.results, models, progress, run.concurrency, run.ray_address)


def origin_of(kind: str, corpus: str | Path | Iterable[Document]) -> dict[str, str]:
    """What `kraq resume` goes on from."""
    if not isinstance(corpus, str | Path):
        return {"kind": "documents"}
    return {"kind": kind, "path": str(Path(corpus).resolve())}


def documents_of(
    corpus: str | Path | Iterable[Document | Failure], settings: Settings | None
) -> Iterable[Document | Failure]:
    """Those of a file or folder, by the columns that the settings name; or those that are given."""
    if not isinstance(corpus, str | Path):
        return corpus
    return load_documents(Path(corpus), **dataclasses.asdict((settings or Settings()).corpus))


def read_to_the_first(documents: Iterable[Document | Failure]) -> Iterator[Document | Failure]:
    """The same ones; a file or folder without any is refused now, before an index is changed. Raises CorpusError."""
    items = iter(documents)
    read: list[Document | Failure] = []
    for item in items:
        read.append(item)
        if isinstance(item, Document):
            break
    return chain(read, items)


def require_documents(index: Index, documents: Iterable[Document]) -> None:
    """Raises RemovedDocumentsError, which says what would change, when the index has documents that are not there."""
    removed = dict.fromkeys(index.ids(Document))
    added = changed = 0
    for document in documents:
        if document.id in removed:
            del removed[document.id]
            [stored] = index.get(Document, [document.id])
            changed += stored != document
        else:
            added += 1
    if removed:
        names = ", ".join(map(repr, list(removed)[:3])) + (", ..." if len(removed) > 3 else "")
        source = f" of {index.manifest.origin['path']!r}" if "path" in index.manifest.origin else ""
        raise RemovedDocumentsError(
            f"{str(index.path)!r} holds {index.count(Document)} documents{source}. This corpus would add {added}, "
            f"change {changed} and remove {len(removed)} ({names}), with all that was made from them. Choose another "
            f"folder, add to the index (kraq add {index.path} CORPUS), or let the corpus take its place: --replace "
            "(replace=True)."
        )


def _require_redaction(index: Index, settings: Settings) -> None:
    """What was struck out must not come back because a word was left out of a command."""
    before, now = index.manifest.settings.redact, settings.redact
    if any(getattr(before, kind) and not getattr(now, kind) for kind in ("emails", "phones", "cards")):
        raise IndexStateError(
            f"{str(index.path)!r} was made with personal data struck out, and this run would bring it back. Say "
            "--redact again ([redact] in kraq.toml), or choose another folder."
        )
