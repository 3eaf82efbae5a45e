"""Decodes bytes: UTF-8, or what a byte-order mark, the user or the file itself says; else an exact complaint.

Nothing is guessed, but for a web page that says nothing true about itself: it is read as browsers read it.
"""

import codecs
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path

from kraq_dspy.asset.corpus.formats.rows import BadRow, Reader, ReadSettings, Row
from kraq_dspy.errors import CorpusError

# UTF-32's little-endian mark begins with UTF-16's, so it comes first.
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
EMPTY = "The file is empty."
SKIPPED_LINE = 20  # times `max_bytes`: how much of an overlong line is read to find its end
CONTROL = frozenset(map(chr, range(32))) - frozenset("\b\t\n\v\f\r\x1b")


class UnreadableTextError(Exception):
    """Content that is not text. The message goes into a `BadRow`."""


def refuses_unreadable(reader: Reader) -> Reader:
    """The reader; where it meets what is not text, labels that it does not understand, or parts nested deeper than the
    stack, the rest of the file is a bad row."""

    @functools.wraps(reader)
    def read(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
        try:
            yield from reader(path, settings)
        except (UnreadableTextError, CorpusError) as error:
            yield BadRow(str(error))
        except RecursionError:
            yield BadRow("The file has parts within parts without end. Save it again, or take it out of the corpus.")

    return read


@dataclass(frozen=True, slots=True)
class Line:
    """A line without its end. `number` counts from 1. Where `problem` is set, `text` is not the line's text."""

    number: int
    text: str
    problem: str = ""


def read_limited(path: Path, settings: ReadSettings) -> bytes:
    """All of a file. Raises UnreadableTextError when it is empty or larger than `settings.max_bytes`."""
    with path.open("rb") as stream:
        data = stream.read(settings.max_bytes + 1)
        if len(data) > settings.max_bytes:
            raise UnreadableTextError(settings.too_large(max(len(data), stream.seek(0, 2)), "The file"))
    if not data:
        raise UnreadableTextError(EMPTY)
    return data


def decode(data: bytes, settings: ReadSettings, *others: str) -> str:
    """Text of what a byte-order mark says or of UTF-8; else of the settings' encoding, or the first of `others` that
    fits.

    Raises UnreadableTextError for binary content and for other encodings, with the offset of the first wrong byte.
    """
    encoding = mark_of(data) or (settings.encoding if b"\x00" in data and is_wide(settings.encoding) else "")
    if not encoding:
        data = _without_nul(data)

    try:
        text = data.decode(encoding or "utf-8")
    except UnicodeDecodeError as error:
        tried = () if encoding else (settings.encoding, *others)
        attempts = (_decoded(data, other) for other in tried)
        decoded = next((attempt for attempt in attempts if attempt is not None), None)
        if decoded is None:
            raise UnreadableTextError(wrong_encoding(error, 0, encoding or "utf-8")) from None
        text = decoded

    text = text.replace("\x00", "")
    if sum(map(text[:10_000].count, CONTROL)) > len(text[:10_000]) / 20:
        raise UnreadableTextError(_binary(data))
    return text


def decode_page(data: bytes, settings: ReadSettings) -> str:
    """Text of a web page: as `decode`, with what the page declares, and Windows-1252 if that is not true and the
    page looks so. Raises UnreadableTextError."""
    declared = _DECLARED.search(data[:4096])
    name = codec_named(declared[1].decode("ascii", "replace")) if declared else ""
    western = "cp1252" if name and not _RUN_OF_HIGH_BYTES.search(data) else ""
    return decode(data, settings, "" if is_wide(name) else name, western)


def decode_source(data: bytes, settings: ReadSettings) -> str:
    """Text of any other file: as `decode`, with what its beginning declares, as Python, CSS, LaTeX, XML and editors
    have it. Raises UnreadableTextError."""
    declared = _DECLARED_IN_SOURCE.search(data[:1000])
    return decode(data, settings, codec_named(declared[1].decode("ascii")) if declared else "")


def codec_named(name: str) -> str:
    """Python's name of an encoding, or of what writers mean by it.

    >>> codec_named("ISO-8859-8-I"), codec_named("windows-874"), codec_named("cp-850"), codec_named("gb2312")
    ('iso-8859-8', 'cp874', 'cp850', 'gb18030')
    """
    name = name.strip().lower()
    page = _CODE_PAGE.fullmatch(name)
    return f"cp{page[1]}" if page else _AS_BROWSERS.get(name, name)


def is_wide(encoding: str) -> bool:
    """Whether a letter takes two bytes or four, so that lines cannot be told apart before it is decoded."""
    return encoding.lower().replace("_", "-").startswith(("utf-16", "utf-32", "utf16", "utf32"))


def read_lines(stream: BufferedReader, settings: ReadSettings) -> Iterator[Line]:
    """Lines as they are read; one with a problem does not stop the rest. UTF-16 and UTF-32 files are read whole.

    Raises UnreadableTextError for binary content and for a line that has no end in sight.
    """
    start = stream.peek(8192)
    if not start:
        raise UnreadableTextError(EMPTY)

    encoding = mark_of(start) or (settings.encoding if is_wide(settings.encoding) else None)
    if encoding not in (None, "utf-8-sig"):
        data = stream.read(settings.max_bytes + 1)
        if len(data) > settings.max_bytes:
            raise UnreadableTextError(
                f"A file in {str(encoding).upper()} is read whole and may have {settings.max_bytes:,} bytes, which "
                "this one exceeds. Convert it to UTF-8, or raise max_bytes."
            )
        for number, text in enumerate(decode(data, settings).split("\n"), start=1):
            yield Line(number, text.removesuffix("\r"))
        return
    _without_nul(start)

    for number, (offset, raw) in enumerate(_raw_lines(stream, settings), start=1):
        if len(raw) > settings.max_bytes:
            yield Line(number, "", settings.too_large(len(raw), "The line, as far as it was read,"))
        else:
            yield _line(number, raw, offset, settings.encoding)


def mark_of(data: bytes) -> str | None:
    """The encoding that the byte-order mark names; None without one."""
    return next((encoding for mark, encoding in MARKS if data.startswith(mark)), None)


def wrong_encoding(error: UnicodeDecodeError, offset: int, encoding: str = "utf-8") -> str:
    """`offset` is where the decoded bytes begin in their file."""
    place = offset + error.start
    byte = error.object[error.start : error.start + 1].hex()
    if encoding != "utf-8":
        return f"The byte 0x{byte} at offset {place:,} is not {encoding.upper()}, which the file begins as. Repair it."
    return (
        f"The byte 0x{byte} at offset {place:,} is not UTF-8, and there is no byte-order mark. "
        "Say the encoding it was written in, such as --encoding cp1252 ([corpus] encoding), or convert the file: "
        "iconv -f WINDOWS-1252 -t UTF-8."
    )


def _raw_lines(stream: BufferedReader, settings: ReadSettings) -> Iterator[tuple[int, bytes]]:
    """(offset, line with its end). An overlong line is cut to `max_bytes` + 1 bytes, never held whole."""
    offset = 0
    while raw := stream.readline(settings.max_bytes + 1):
        yield offset, raw
        offset += len(raw)

        skipped = 0
        while len(raw) > settings.max_bytes and not raw.endswith(b"\n"):
            raw = stream.readline(settings.max_bytes + 1)
            skipped += len(raw)
            offset += len(raw)
            if not raw:
                return
            if skipped > SKIPPED_LINE * settings.max_bytes:
                raise UnreadableTextError(
                    f"A line is longer than {skipped:,} bytes, so the rest of the file is left out. "
                    "Check that it is a file of lines."
                )


def _line(number: int, raw: bytes, offset: int, encoding: str) -> Line:
    raw = raw.replace(b"\x00", b"")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        decoded = _decoded(raw, encoding)
        if decoded is None:
            return Line(number, "", wrong_encoding(error, offset))
        text = decoded
    return Line(number, (text.removeprefix("\ufeff") if number == 1 else text).rstrip("\r\n"))


_DECLARED = re.compile(rb"<(?:\?xml[^<>]*?encoding|meta[^<>]*?charset)\s*+=\s*+[\"']?\s*+([\w.:-]+)", re.IGNORECASE)
_DECLARED_IN_SOURCE = re.compile(
    rb"(?:coding[:=][ \t]{0,3}[\"']?|@charset[ \t]{1,3}[\"']|\\usepackage\[)([\w.-]{3,30})"
)
_CODE_PAGE = re.compile(r"(?:windows|cp|ibm|dos)-?(\d{3,5})")
_RUN_OF_HIGH_BYTES = re.compile(rb"[\x80-\xff]{4}")  # of no Western text, but of an encoding with two bytes a letter
_AS_BROWSERS = {
    **dict.fromkeys(("iso-8859-1", "latin-1", "latin1", "us-ascii", "ascii", "iso8859-1"), "cp1252"),
    **dict.fromkeys(("shift_jis", "shift-jis", "sjis", "x-sjis", "windows-31j", "ms_kanji"), "cp932"),
    **dict.fromkeys(("gb2312", "gbk", "x-gbk", "gb_2312-80"), "gb18030"),
    **dict.fromkeys(("euc-kr", "ks_c_5601-1987"), "cp949"),
    "iso-8859-9": "cp1254",
    **dict.fromkeys(("iso-8859-8-i", "iso-8859-8-e", "csiso88598i", "csiso88598e"), "iso-8859-8"),
    "unicode-1-1-utf-7": "utf-7",
    "ansinew": "cp1252",
}
"""What pages and mails call an encoding, and what they mean by it (WHATWG Encoding Standard, section 4.2)."""


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        return data.decode(encoding) if encoding else None
    except (LookupError, ValueError):
        return None


def _without_nul(data: bytes) -> bytes:
    """The data without the few NULs that programs leave in a text. Raises UnreadableTextError if they are many."""
    if data.count(b"\x00") > max(1, len(data) // 1000):
        raise UnreadableTextError(_binary(data))
    return data.replace(b"\x00", b"")


def _binary(data: bytes) -> str:
    known = {b"%PDF": ".pdf", b"PK\x03\x04": ".docx, .xlsx or .zip", b"\x1f\x8b": ".gz", b"PAR1": ".parquet"}
    like = next((f" It looks like {name}." for magic, name in known.items() if data.startswith(magic)), "")
    return f"The content is binary, not text.{like} Give it its right extension, or take it out of the corpus."
