"""Adds documents to an index, removes them, brings it up to date with its corpus, and goes on with a build.

Content decides what is done again. A chunk, an entity, a community and a question keep their ids while what they are
made of stays the same, and a stage asks a model only for items whose inputs changed. So after any edit the index has
the documents, chunks, entities and relationships of a rebuild, and nothing that is stale. Communities are followed
rather than found anew, since Leiden moves half of them for 1 % more text: the partition is whole, but not a rebuild's.
"""

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Unpack

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import CorpusError, IndexStateError, UnknownRecordError
from kraq_dspy.indexing.index.build import BY_FUNCTION, Builder, abuild_index
from kraq_dspy.indexing.index.exchange import GRAPHRAG, aimport_graphrag
from kraq_dspy.indexing.index.opening import documents_of, read_to_the_first
from kraq_dspy.indexing.index.report import BuildOptions, BuildReport
from kraq_dspy.models.lms.roles import names_models
from kraq_dspy.records import Document, Failure


def add_documents(
    path: str | Path, documents: str | Path | Iterable[Document | str | Failure], **options: Unpack[BuildOptions]
) -> BuildReport:
    """Add a file, a folder, documents or texts to the index at `path`; a document with a known id replaces the stored
    one.

    >>> add_documents("ada.kraq", ["Ada Lovelace wrote the first program."]).documents.added
    1

    Args:
        path: the folder of the index.
        documents: a file or folder, or a list of `Document`s or of texts.
        **options: further options of `build_index`; the default of `settings` is those of the index.

    Returns:
        The counts of records, calls and seconds, and the failures.

    Raises:
        IndexStateError: if there is no index at `path`, or another process changes it. Also the errors of
            `build_index`.
    """
    return run_coroutine(_change(Path(path), documents, (), options))


def remove_documents(path: str | Path, document_ids: Collection[str], **options: Unpack[BuildOptions]) -> BuildReport:
    """Remove documents, and everything that kraq made from these documents alone.

    >>> remove_documents("ada.kraq", ["london"]).documents.removed
    1

    Args:
        path: the folder of the index.
        document_ids: ids of documents (`hit.chunk.document_id`).
        **options: further options of `add_documents`.

    Returns:
        The counts of records, calls and seconds, and the failures.

    Raises:
        UnknownRecordError: for an id that the index does not have; nothing is changed.
        CorpusError: if no document would be left; nothing is changed. Also the errors of `add_documents`.
    """
    return run_coroutine(_change(Path(path), (), document_ids, options))


def update_index(
    path: str | Path,
    corpus: str | Path | Iterable[Document | str],
    *,
    recluster: bool = False,
    **options: Unpack[BuildOptions],
) -> BuildReport:
    """Bring the index up to date with a corpus: add new documents, redo changed ones, and remove those that are gone.

    >>> update_index("ada.kraq", ["Ada Lovelace met Charles Babbage in London."]).documents.added
    1

    Args:
        path: the folder of the index.
        corpus: a file or folder, or a list of `Document`s or of texts: everything that the index should have.
        recluster: find the communities again, as in a new build. Without it, the communities fit the graph a little
            less after each change.
        **options: further options of `add_documents`.

    Returns:
        The counts of records, calls and seconds, and the failures.

    Raises:
        IndexStateError: if there is no index at `path`, or the index was imported from GraphRAG. Also the errors of
            `add_documents`.
    """
    _refuse_import(Path(path))
    options = _with_settings(path, options)
    _require_labels_again(path, options, "update_index")
    return run_coroutine(abuild_index(corpus, path, stable=not recluster, replace=True, **options))


def resume_index(path: str | Path, *, recluster: bool = False, **options: Unpack[BuildOptions]) -> BuildReport:
    """Resume an interrupted build, and retry failed items.

    >>> resume_index("ada.kraq").failures
    ()

    kraq reads the corpus again if the corpus still exists. Otherwise kraq uses the stored documents.

    Args:
        path: the folder of the index.
        recluster: find the communities again, as in a new build; otherwise kraq keeps the existing ones.
        **options: further options of `add_documents`.

    Returns:
        The counts of records, calls and seconds, and the failures.

    Raises:
        IndexStateError: if there is no index at `path`, or the index was imported from a folder that is gone. Also
            the errors of `build_index`.
    """
    with Index.open(Path(path), unfinished=True) as index:
        origin = index.manifest.origin
    source = Path(origin["path"]) if "path" in origin else None
    options = _with_settings(path, options)
    if origin.get("kind") == GRAPHRAG:
        if source is None or not source.exists():
            raise IndexStateError(
                f"{str(path)!r} was imported from {str(source)!r}, which is not there. Import it again."
            )
        _require_labels_again(path, options, "resume_index")
        return run_coroutine(aimport_graphrag(source, path, **options))
    if source is not None and source.exists():
        _require_labels_again(path, options, "resume_index")
        return run_coroutine(abuild_index(source, path, stable=not recluster, **options))
    return run_coroutine(_change(Path(path), (), (), options, stable=not recluster))


async def _change(
    path: Path,
    corpus: str | Path | Iterable[Document | str | Failure],
    removed: Collection[str],
    options: BuildOptions,
    *,
    stable: bool = True,
) -> BuildReport:
    _refuse_import(path)
    options = _with_settings(path, options)
    settings = options.get("settings")
    documents = documents_of(corpus, settings, path, options.get("labels"))
    documents = read_to_the_first(documents)
    async with Builder.at(path, options, corpus) as builder:
        known = builder.index.known(Document, removed)
        unknown = set(removed) - known
        if unknown and (unknown := unknown - _being_removed(path, unknown)):
            raise UnknownRecordError(
                f"{str(path)!r} has no document {sorted(unknown)[0]!r}"
                + (f" and {len(unknown) - 1} more of those" if len(unknown) > 1 else "")
                + f". Its ids: kraq export {path} --format jsonl, file documents.jsonl."
            )
        if removed and builder.index.count(Document) == len(known):
            raise CorpusError(f"This would remove every document. To delete the index, delete {str(path)!r}.")

        origin = {"kind": "documents"}
        if builder.labels_by_function or builder.index.manifest.origin.get("labels") == BY_FUNCTION:
            origin["labels"] = BY_FUNCTION
        builder.index.update_manifest(complete=False, origin=origin)
        builder.load_change(builder.as_before(documents), removed)
        builder.stable = stable
        return await builder.build()


def _require_labels_again(path: str | Path, options: BuildOptions, call: str) -> None:
    """Raises IndexStateError if documents are to be read again whose labels a function gave, and nothing gives them
    now: everybody but the owner would lose them."""
    with Index.open(Path(path), unfinished=True) as index:
        came_from_function = index.manifest.origin.get("labels") == BY_FUNCTION
    settings = options.get("settings")
    has_column = settings is not None and bool(settings.corpus.acl_column or settings.corpus.labels_file)
    if came_from_function and options.get("labels") is None and not has_column:
        raise IndexStateError(
            f"A function (labels=) gave the documents of {str(path)!r} their labels. An index does not keep the "
            "function, and without it nobody but the owner could read them. Go on in Python, with the function: "
            f"kraq_dspy.{call}({str(path)!r}, {'corpus, ' if call == 'update_index' else ''}labels=...)."
        )


def _refuse_import(path: Path) -> None:
    """Raises IndexStateError for an index whose graph was made elsewhere: of new documents nothing is known there."""
    with Index.open(path, unfinished=True) as index:
        if index.manifest.origin.get("kind") == GRAPHRAG:
            raise IndexStateError(
                f"{str(path)!r} was imported from GraphRAG's output, so documents cannot be added or removed here. "
                "Change them there, and import again: kraq import graphrag FOLDER --replace."
            )


def removed_before(path: str | Path, document_ids: Collection[str]) -> set[str]:
    """Return those of the documents that the index had and has no longer."""
    with Index.open(Path(path), unfinished=True) as index:
        gone = set(document_ids) - index.known(Document, document_ids) - _being_removed(Path(path), document_ids)
        return index.were_removed(gone)


def _being_removed(path: Path, document_ids: Collection[str]) -> set[str]:
    """The documents of these that readers still see: a removal that was interrupted has begun with them, and is gone on
    with."""
    with Index.open(path) as before:
        return before.known(Document, document_ids)


def _with_settings(path: str | Path, options: BuildOptions) -> BuildOptions:
    """The index's own settings, and the baseline's questions, if nothing else is said. Raises UntrustedError."""
    own_models = names_models(options.get("lm"))
    with Index.open(Path(path), unfinished=True) as index:
        settings = options.get("settings") or index.usable_settings(
            own_models=own_models, own_encoder=options.get("embedder") is not None
        )
        has_random = bool(index.questions(source="random", duplicates=True))
    return {"random_questions": has_random, **options, "settings": settings}
