"""Opens zip archives of parts, once their sizes have been looked at, and gzip files with a limit."""

import gzip
import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO
from xml.etree import ElementTree

from kraq_dspy.asset.corpus.formats.decode import UnreadableTextError, read_limited
from kraq_dspy.asset.corpus.formats.rows import ReadSettings, damaged
from kraq_dspy.errors import counted

_MOST_PARTS = 50_000
_BEGINNING = 1_000_000  # bytes
_WRITTEN = (".xml", ".rels", ".vml", ".xhtml", ".html", ".htm", ".opf", ".ncx")
_ENTITIES = re.compile(rb"<!ENTITY", re.IGNORECASE)
DAMAGED = (zipfile.BadZipFile, zlib.error, KeyError, NotImplementedError, RuntimeError, EOFError)
"""What a damaged or protected archive makes zipfile raise."""


DAMAGED_GZIP = (gzip.BadGzipFile, zlib.error, EOFError)


class Unpacked(gzip.GzipFile):
    """A gzip file that is refused once it holds far more than its size: a bomb has no end."""

    def __init__(self, file: BinaryIO, settings: ReadSettings) -> None:
        super().__init__(fileobj=file)
        size = file.seek(0, 2)
        file.seek(0)
        self._ratio = settings.max_unpacked
        self._left = max(settings.max_bytes, size * settings.max_unpacked)

    def read(self, size: int | None = -1) -> bytes:
        return self._counted(super().read(size))

    def readline(self, limit: int | None = -1) -> bytes:
        return self._counted(super().readline(limit))

    def _counted(self, data: bytes) -> bytes:
        self._left -= len(data)
        if self._left < 0:
            raise UnreadableTextError(
                f"The file unpacks to more than {self._ratio:,} times its size; the rest is left. Unpack it yourself, "
                "or raise max_unpacked in [corpus] of kraq.toml."
            )
        return data


def check_zip(path: Path, settings: ReadSettings) -> None:
    """Raises UnreadableTextError for what is no zip file, is too large, or unpacks to far more than its size.

    The parts that hold text are read whole, so together they may have ten times `max_bytes`. Pictures are not unpacked.
    """
    size = len(read_limited(path, settings))
    try:
        with zipfile.ZipFile(path) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise UnreadableTextError(f"The file is damaged ({error}). Save it again, or take it out.") from error

    if len(parts) > _MOST_PARTS:
        raise UnreadableTextError(
            f"The file has {len(parts):,} parts; the limit is {_MOST_PARTS:,}. Save it again in pieces, or take it out."
        )
    unpacked = sum(part.file_size for part in parts)
    written = sum(part.file_size for part in parts if part.filename.lower().endswith(_WRITTEN))
    if unpacked > max(settings.max_bytes, size * settings.max_unpacked):
        raise UnreadableTextError(
            f"The file unpacks to more than {settings.max_unpacked:,} times its size. Raise max_unpacked in [corpus] "
            "of kraq.toml if that is right."
        )
    if written > 10 * settings.max_bytes:
        raise UnreadableTextError(
            f"The text of the file unpacks to {written:,} bytes; the limit is ten times max_bytes, "
            f"{10 * settings.max_bytes:,}. Split the file, or raise max_bytes in [corpus] of kraq.toml."
        )


def beginning_of(path: Path) -> str:
    """The first megabyte of a file as text; of an archive, that of each part that holds text. Raises OSError."""
    with path.open("rb") as stream:
        data = stream.read(_BEGINNING)
    if data.startswith(b"\x1f\x8b"):
        data = zlib.decompressobj(wbits=31).decompress(data, _BEGINNING)
    elif data.startswith(b"PK"):
        with zipfile.ZipFile(path) as archive:
            parts = (part for part in archive.namelist() if part.lower().endswith(_WRITTEN))
            data = b"\n".join(archive.open(part).read(_BEGINNING) for part in parts)
    return data.decode("utf-8", "replace").replace("\x00", "")


def local_name(element: ElementTree.Element) -> str:
    """The name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


@contextmanager
def opened_zip(path: Path, settings: ReadSettings) -> Iterator["Parts"]:
    """The parts of a checked archive. Raises UnreadableTextError, also where a part inside turns out damaged."""
    check_zip(path, settings)
    try:
        with zipfile.ZipFile(path) as archive:
            yield Parts(archive)
    except DAMAGED as error:
        raise UnreadableTextError(damaged(error).reason) from error


class Parts:
    """Reads parts by name. No part may declare entities of its own, with which a short text expands to a long one."""

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.names = archive.namelist()

    def __contains__(self, name: str) -> bool:
        return name in self.names

    def read(self, name: str) -> bytes:
        """The part; b"" if there is none of that name."""
        if name not in self.names:
            return b""
        data = self._archive.read(name)
        if _ENTITIES.search(data):
            raise UnreadableTextError(
                f"The part {name!r} declares entities of its own, which no office program writes. Save the file "
                "again, or take it out."
            )
        return data

    def not_read(self, kinds: Mapping[str, str]) -> list[str]:
        """What nobody reads of the parts, in words: `kinds` are its names by how the names of parts begin."""
        counts = {
            what: sum(name.startswith(beginning) and "/_rels/" not in name for name in self.names)
            for beginning, what in kinds.items()
        }
        return [f"{counted(count, what)}, not read" for what, count in counts.items() if count]

    def main(self, usual: str) -> str:
        """The name of the part with the document itself."""
        return next((part for kind, part in self.relations("").values() if kind == "officeDocument"), usual)

    def relations(self, name: str) -> dict[str, tuple[str, str]]:
        """By id: the last word of the relation's type, and the name of the part that it leads to."""
        folder, _, base = name.rpartition("/")
        data = self.read(f"{folder}/_rels/{base}.rels".lstrip("/"))
        if not data:
            return {}
        found = {}
        for relation in ElementTree.fromstring(data):
            target = relation.get("Target", "")
            whole = (
                target.lstrip("/") if target.startswith("/") else posixpath.normpath(f"{folder}/{target}".lstrip("/"))
            )
            found[relation.get("Id", "")] = (relation.get("Type", "").rpartition("/")[2], whole)
        return found
