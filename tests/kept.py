"""Indexes that several tests ask are built once for each state of the package's sources, and copied.

They lie in `.pytest_cache/indexes`, for all workers and for the next run.
"""

import dataclasses
import fcntl
import hashlib
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from kraq_dspy import build_index
from kraq_dspy.ports import Embedder
from kraq_dspy.records import Document
from kraq_dspy.settings import Settings
from tests.sources import PACKAGE

KEPT = PACKAGE.parent / ".pytest_cache" / "indexes"


@cache
def state() -> str:
    """A hash of all that makes an index: the sources and word lists of the package."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in (".py", ".toml"):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def kept(key: str, build: Callable[[Path], object], out: Path) -> Path:
    """Copy the index of this key to `out`; whoever asks for it first has it built."""
    folder = KEPT / state()
    name = hashlib.sha256(key.encode()).hexdigest()[:16]
    with locked("states"):
        if not folder.exists():
            for former in KEPT.glob("*/"):
                shutil.rmtree(former)
            folder.mkdir()

    with locked(name):
        if not (folder / name).exists():
            draft = folder / f"{name}.draft"
            shutil.rmtree(draft, ignore_errors=True)  # of a run that was ended
            build(draft)
            draft.rename(folder / name)
    shutil.copytree(folder / name, out, symlinks=True, dirs_exist_ok=True)
    return out


@contextmanager
def locked(name: str) -> Iterator[None]:
    KEPT.mkdir(parents=True, exist_ok=True)
    with (KEPT / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def kept_index(
    documents: Iterable[Document],
    out: Path,
    *,
    settings: Settings | None = None,
    embedder: Embedder | None = None,
    random_questions: bool = False,
) -> Path:
    """`build_index` for tests of what is done with an index: equal documents and options make it once."""
    listed = list(documents)

    def build(path: Path) -> None:
        build_index(listed, path, settings=settings, embedder=embedder, random_questions=random_questions)

    encoder = embedder.name if embedder else ""
    fields = [dataclasses.asdict(document) for document in listed]  # a document's repr leaves its labels out
    return kept(repr((fields, settings, encoder, random_questions)), build, out)
