"""Opens an index for a build, and refuses one that would lose what somebody did not mean to lose."""

import dataclasses
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath

from kraq_dspy.asset.corpus.boilerplate import RepeatedLines
from kraq_dspy.asset.corpus.files import CorpusFile, find_files, readers_of
from kraq_dspy.asset.corpus.labels_file import LabelsFile
from kraq_dspy.asset.corpus.load import cleaned_document, is_repeated, load_documents
from kraq_dspy.asset.corpus.normalise import normalised_document, redacted_document
from kraq_dspy.asset.label_names import near_name
from kraq_dspy.asset.scope import ACL, labelled, unlabelled
from kraq_dspy.asset.store import access
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import IndexStateError, RemovedDocumentsError, counted
from kraq_dspy.indexing.index.report import LabelsOf
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, Progress
from kraq_dspy.records import Document, Failure, content_id
from kraq_dspy.settings import CorpusSettings, RedactSettings, RunSettings, Settings
from kraq_dspy.steps.kept import StoredSteps


def open_for_build(out: Path, settings: Settings, embedder: Embedder, corpus: object = None) -> Index:
    """The index at `out`, new or to be brought up to date. Accounts that may not read the `corpus`, if that is a
    file or a folder, may not read the index."""
    readers = readers_of(Path(corpus)) if isinstance(corpus, str | Path) else access.ALL
    if not (out / "manifest.json").exists():
        return Index.create(
            out, settings, encoder_name=embedder.name, encoder_dimension=embedder.dimension, readers=readers
        )

    with Index.open(out, unfinished=True) as former:  # before it is copied to be changed
        former.require_encoder(embedder)
        _require_redaction(former, settings)
    access.withdraw(out, readers)
    return Index.open(out, write=True)


def steps_for(index: Index, run: RunSettings, models: LanguageModels, progress: Progress) -> StoredSteps:
    """The steps of a build, in this process or on a cluster."""
    if run.runner == "local":
        return StoredSteps(index.results, models, progress, run.concurrency)
    from kraq_dspy.steps.ray import RaySteps  # brings pyarrow and ray

    return RaySteps(index.results, models, progress, run.concurrency, run.ray_address)


def documents_of(
    corpus: str | Path | Iterable[Document | str | Failure],
    settings: Settings | None,
    index: str | Path | None = None,
    labels: LabelsOf | None = None,
) -> Iterable[Document | Failure]:
    """The documents of a file or folder, by the columns that the settings name; or those that are given. The function
    `labels` says who may read them; without it, their own labels count.

    A text among those that are given becomes a document with its hash as id. Web pages are without their boilerplate,
    unless the settings keep it; if they are to be added to an `index`, also without what is boilerplate there.
    Raises TypeError for what is no corpus.
    """
    _require_function(labels)
    own = settings.corpus if isinstance(settings, Settings) else CorpusSettings()  # another kind is refused later
    known: set[str] = set()
    if index is not None and own.boilerplate == "drop":
        with Index.open(index, unfinished=True) as pages:
            known = pages.lines_left_out()
    if isinstance(corpus, str | Path):
        columns = dataclasses.asdict(own)
        required, of_labels = columns.pop("labels") == "required", columns.pop("labels_file")
        labels = labels or (LabelsFile(Path(of_labels)) if of_labels else None)
        return load_documents(Path(corpus), known_lines=known, labels=labels, require_labels=required, **columns)
    if not isinstance(corpus, Iterable) or isinstance(corpus, Mapping | bytes):
        raise TypeError(
            f"corpus is {corpus!r:.60} ({type(corpus).__name__}); expected a file or folder, or a list of documents or "
            "of texts."
        )

    documents: Iterable[Document | Failure] = map(_document, corpus)
    repeated = RepeatedLines(known)
    if isinstance(corpus, Sequence):  # a list is checked at once, and looked through twice
        documents = list(documents)
        for document in documents:
            if isinstance(document, Document):
                repeated.add(document.text)

    if own.boilerplate != "keep":
        documents = (cleaned_document(each, repeated) if isinstance(each, Document) else each for each in documents)
    return with_labels(documents, labels, settings)


def with_labels(
    items: Iterable[Document | Failure], labels: LabelsOf | None, settings: Settings | None
) -> Iterator[Document | Failure]:
    """The items with the labels that the function `labels` gives each document, or in order those that they have.

    Where the settings or the function declare labels, a document without any gets that of nobody. Without either, a
    document whose metadata have a name that is nearly that of labels is a failure, and so is one without labels if the
    settings require them.
    """
    _require_function(labels)
    own = settings.corpus if isinstance(settings, Settings) else CorpusSettings()
    is_declared = bool(own.acl_column)
    labels = labels or (LabelsFile(Path(own.labels_file)) if own.labels_file else None)
    for item in items:
        if not isinstance(item, Document):
            yield item
            continue
        document = labelled(item, labels, is_declared=is_declared)
        reason = unlabelled(document) if own.labels == "required" else ""
        if not reason and not document.labels and (name := _label_name(document)):
            reason = _IN_METADATA.format(name)
        yield Failure("load", item.id, reason) if reason else document


_IN_METADATA = (
    "The metadata have {!r}, which looks like the labels of who may read the document; kraq reads labels from "
    "Document(labels=...) or from a function (labels=). Give them there, or give the field another name."
)


def _label_name(document: Document) -> str:
    return ACL if ACL in document.metadata else near_name(map(str, document.metadata))


def _require_function(labels: object) -> None:
    if labels is not None and not callable(labels):
        raise TypeError(f"labels is {labels!r:.80}; expected a function that returns the labels of a document.")


def _document(item: Document | str | Failure) -> Document | Failure:
    if isinstance(item, str):
        return Document(id=content_id("document", item), title="", text=item)
    if not isinstance(item, Document | Failure):
        raise TypeError(f"The corpus holds {item!r:.60} ({type(item).__name__}); expected documents or texts.")
    return item


def as_before(
    items: Iterable[Document | Failure], index: Index, corpus: object, redact: RedactSettings
) -> Iterator[Document | Failure]:
    """The same items, as they are to be stored; a file that was moved keeps the ids of its documents.

    So nothing that was made of them is made again. A document whose own name went with one that moved is called by its
    content too.
    """
    stored = _StoredDocuments(index, corpus)
    for item in items:
        if isinstance(item, Failure):
            yield item
            continue
        document = redacted_document(normalised_document(item), redact)
        id = stored.id_of(document)
        yield document if id == document.id else dataclasses.replace(document, id=id)


class _StoredDocuments:
    """The documents that an index has of a corpus of files, by which one that was moved is known."""

    def __init__(self, index: Index, corpus: object) -> None:
        self._by_content: dict[str, list[Document]] = defaultdict(list)
        self._sources: dict[str, str] = {}
        self._files: set[str] = set()
        self._taken: set[str] = set()
        if not isinstance(corpus, str | Path) or not index.count(Document):
            return
        for document in index.all(Document):
            self._by_content[content_id(document.title, document.text)].append(_brief(document))
            self._sources[document.id] = document.source
        self._files = {file.source for file in find_files(Path(corpus)) if isinstance(file, CorpusFile)}

    def id_of(self, document: Document) -> str:
        """The id under which a document is stored, which no document after it gets."""
        id = self._id_by_file(document) if self._sources and _is_named_by_file(document) else document.id
        self._taken.add(id)
        return id

    def _id_by_file(self, document: Document) -> str:
        same = self._by_content.get(content_id(document.title, document.text), [])
        before = _former_id(document, [each for each in same if each.id not in self._taken])
        if before != document.id and self._was_moved(before, document.source):
            return before
        if self._sources.get(document.id, document.source) != document.source:
            return f"{document.id}#{content_id('row', document.title, document.text)[:12]}"
        return document.id

    def _was_moved(self, before: str, source: str) -> bool:
        """Whether the file of the document `before` is this one, or is gone."""
        return self._sources[before] == source or self._sources[before] not in self._files


def _is_named_by_file(document: Document) -> bool:
    """Whether its id is the name of its file, and no name that it came with."""
    return document.id == document.source or document.id.startswith(f"{document.source}#")


def _former_id(document: Document, same: Sequence[Document]) -> str:
    """The id of the document of the `same` content that this one was: of several, which different people may read, the
    one with its id, or else with its labels. Its own id if there is none."""
    if not same or any(each.id == document.id for each in same):
        return document.id
    return next((each.id for each in same if each.labels == document.labels), same[-1].id)


def _brief(document: Document) -> Document:
    """The document without its text, which need not be held."""
    return Document(document.id, "", "", labels=document.labels)


def unread(index: Index, known: Collection[str], failures: Iterable[Failure]) -> set[str]:
    """Documents that are not among the `known` ones of a corpus, because they or their files could not be read."""
    failed = {failure.item_id for failure in failures if not is_repeated(failure)}
    failed |= {name.rpartition("#")[0] for name in failed if "#" in name}
    if not failed:
        return set()
    others = (document for document in index.all(Document) if document.id not in known)
    return {
        document.id
        for document in others
        if failed & {document.id, document.source, *map(str, PurePosixPath(document.source).parents)}
    }


def read_to_the_first(documents: Iterable[Document | Failure]) -> Iterator[Document | Failure]:
    """Pass documents through; raise CorpusError early if there are none."""
    items = iter(documents)
    read: list[Document | Failure] = []
    for item in items:
        read.append(item)
        if isinstance(item, Document):
            break
    return chain(read, items)


def require_documents(index: Index, documents: Iterable[Document]) -> None:
    """Raises RemovedDocumentsError when the index has documents that are not there."""
    here = {document.id for document in documents}
    if removed := [id for id in index.ids(Document) if id not in here]:
        names = ", ".join(map(repr, removed[:3])) + (", ..." if len(removed) > 3 else "")
        source = f" of {index.manifest.origin['path']!r}" if "path" in index.manifest.origin else ""
        raise RemovedDocumentsError(
            f"{str(index.path)!r} holds {counted(index.count(Document), 'document')}{source}. This corpus does "
            f"not have {len(removed)} of them ({names}), so kraq would remove them with all that it made from them. "
            f"Choose another folder, add to the index (kraq update --add {index.path} CORPUS), or agree: --replace "
            "(replace=True)."
        )


def _require_redaction(index: Index, settings: Settings) -> None:
    """Make sure of redaction: what was struck out must not come back because a word was left out of
    a command."""
    before, now = index.manifest.settings.redact, settings.redact
    if any(getattr(before, kind) and not getattr(now, kind) for kind in ("emails", "phones", "cards")):
        raise IndexStateError(
            f"{str(index.path)!r} was made without personal data, and this run would add it again. "
            "Use --redact again ([redact] in kraq.toml), or choose another folder."
        )
