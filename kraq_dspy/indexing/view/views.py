"""Opens views of an index: kept in its folder, made when they are first asked for, dropped when the index has changed.

    docs.kraq/views/7-8e5f...    the view of some documents of the state 7, an index of its own

Whoever may see the same documents shares a view. Where the folder cannot be written, a view lives as long as whoever
opened it. Views of former states go when nobody reads them any more, and of more than `KEPT` those that were not used
for longest.
"""

import logging
import os
import shutil
import tempfile
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path

from kraq_dspy.asset.store import access, states
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.states import VIEWS
from kraq_dspy.errors import IndexStateError
from kraq_dspy.indexing.view.making import MakePipeline, make_view
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, Progress
from kraq_dspy.programs.kraq.pipeline import KRAQ
from kraq_dspy.records import Document, content_id

logger = logging.getLogger(__name__)

KEPT = 64
"""Views of one state that stay on disk."""

_LONGEST_S = 24 * 3600.0  # that a view is being made: what is older was left by a killed process
_MADE = "2"  # changes when views are made in another way


def open_view(
    whole: Index,
    document_ids: Collection[str],
    embedder: Embedder,
    *,
    pipeline: MakePipeline = KRAQ,
) -> Index:
    """The part of an index that these documents alone would have made; ids that it does not have do not matter.

    Raises IndexStateError for an index that is not complete.
    """
    if not whole.manifest.complete:
        raise IndexStateError(
            f"{str(whole.path)!r} is not complete, and so there are no views of it. Finish the build: "
            f"kraq index {whole.path}"
        )
    folder = whole.path / VIEWS / view_name(whole, document_ids)
    with suppress(IndexStateError):  # there is none yet, or it went just now
        return _used(Index.open(folder))

    try:
        return _used(Index.open(save_view(whole, document_ids, embedder, pipeline=pipeline)))
    except OSError as error:
        logger.info("A view of %s is not kept: %s", whole.path, error)
        apart = tempfile.TemporaryDirectory(prefix="kraq-")
        make_view(whole, Path(apart.name) / folder.name, document_ids, embedder, pipeline=pipeline)
        view = Index.open(Path(apart.name) / folder.name)
        view.keep_until_closed(apart)
        return view


def save_view(
    whole: Index,
    document_ids: Collection[str],
    embedder: Embedder,
    *,
    models: LanguageModels | None = None,
    pipeline: MakePipeline = KRAQ,
    progress: Progress | None = None,
) -> Path:
    """Make a view and keep it in the folder of the index, in place of one that is there. Raises OSError if that
    cannot be written."""
    root = whole.path / VIEWS
    if not root.exists():
        root.mkdir(exist_ok=True)
        access.follow_index(root)
    folder = root / view_name(whole, document_ids)

    with tempfile.TemporaryDirectory(prefix=".", dir=root) as apart:  # another process may make the same one now
        made = Path(apart) / folder.name
        make_view(whole, made, document_ids, embedder, models=models, pipeline=pipeline, progress=progress)
        if models is not None and folder.exists():
            folder.rename(Path(apart) / "former")
        try:
            made.rename(folder)
        except OSError:
            if not folder.exists():  # else another process was quicker
                raise

    drop_views(whole)
    return folder


def view_name(whole: Index, document_ids: Collection[str]) -> str:
    """The number of the state, and what depends on that state and on which of its documents these are."""
    known = whole.known(Document, list(document_ids))
    manifest = whole.manifest
    return f"{manifest.state}-{content_id(_MADE, manifest.created_at, manifest.updated_at, *sorted(known))}"


def drop_views(whole: Index) -> None:
    """Remove the views that were not used for longest, of more than `KEPT`, and what killed processes left."""
    states.give_back(whole.path)
    folders = sorted((whole.path / VIEWS).iterdir(), key=_last_used, reverse=True)

    half_made = [folder for folder in folders if folder.name.startswith(".")]
    views = [folder for folder in folders if not folder.name.startswith(".")]
    gone = [folder for folder in half_made if time.time() - _last_used(folder) > _LONGEST_S]
    gone += [folder for folder in views[KEPT:] if not states.is_read(folder)]
    for folder in gone:
        shutil.rmtree(folder, ignore_errors=True)  # what stays, goes next time


def _used(view: Index) -> Index:
    with suppress(OSError):
        os.utime(view.path)
    return view


def _last_used(folder: Path) -> float:
    try:
        return folder.stat().st_mtime
    except OSError:  # another process dropped it
        return 0.0
