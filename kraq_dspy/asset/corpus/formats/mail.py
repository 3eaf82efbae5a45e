"""Reads messages (eml, mbox): a message is a document, and so is each file and each message that is attached to it."""

import dataclasses
import email
import email.header
import email.policy
import re
import tempfile
from collections.abc import Iterator
from email.message import EmailMessage, Message, MIMEPart
from pathlib import Path
from typing import BinaryIO

from kraq_dspy.asset.corpus.formats.decode import (
    UnreadableTextError,
    codec_named,
    decode,
    read_limited,
    refuses_unreadable,
)
from kraq_dspy.asset.corpus.formats.html import page_row
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row
from kraq_dspy.asset.corpus.normalise import is_blank, normalised
from kraq_dspy.errors import MissingExtraError

_BEGINNING = re.compile(rb"From [^\r\n]{0,300}\d\d:\d\d[^\r\n]{0,100}\r?\n")
_HEADER_LINE = re.compile(rb"[A-Za-z][A-Za-z0-9-]{0,60}:")
_QUOTED_BEGINNING = re.compile(rb"^>(?=>{0,20}From )", re.MULTILINE)
_LONGEST_HEADER = 10_000  # characters: Python's parser needs the square of them in time and memory
_ENCODED_WORD = re.compile(r"=\?[\w.:-]{1,40}\?[bq]\?[^?\s]*\?=", re.IGNORECASE)
_DEEPEST = 5  # messages in messages
_MOST_PARTS = 1000
_ONE_BYTE = ("iso-8859", "latin", "cp125")
_NOT_TEXT = ("image", "audio", "video", "font")
_NAMED_BY_TYPE = {
    "text/plain": ".txt", "text/html": ".html", "text/markdown": ".md", "text/csv": ".csv", "text/rtf": ".rtf",
    "application/rtf": ".rtf", "application/pdf": ".pdf", "application/json": ".json", "text/calendar": ".txt",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx", "application/vnd.ms-excel": ".xls",
    "application/vnd.oasis.opendocument.spreadsheet": ".ods",
}  # fmt: skip


class _Policy(email.policy.EmailPolicy):
    """Python's policy, with headers that have a length."""

    def header_source_parse(self, sourcelines: list[str]) -> tuple[str, str]:
        name, value = super().header_source_parse(sourcelines)
        return name, value[:_LONGEST_HEADER]


@refuses_unreadable
def read_message(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The subject is the title; sender, receivers and date are metadata.

    Attached files and forwarded messages follow as rows of their own, whose metadata name the message
    (`attached_to`). The message lists those that are not read.
    """
    message = _parsed(read_limited(path, settings))
    rows = list(_rows(message, normalised(path.stem), settings, depth=0))
    yield from rows or [BadRow("The message has no text.")]


@refuses_unreadable
def read_mailbox(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """Each message of a mailbox (mbox) as `read_message` reads it: a message is limited in size, the mailbox is not."""
    number = 0
    with path.open("rb") as stream:
        for number, content in enumerate(_messages(stream, settings.max_bytes), 1):
            if len(content) > settings.max_bytes:
                reason = f"The message is longer than {settings.max_bytes:,} bytes."
                yield BadRow(f"{reason} Raise max_bytes in [corpus] of kraq.toml.", str(number))
                continue
            try:
                rows = list(_rows(_parsed(content), f"{normalised(path.stem)} {number}", settings, depth=0))
            except UnreadableTextError as error:
                rows = [BadRow(str(error))]
            for row in rows or [BadRow("The message has no text.")]:
                yield _keyed(row, str(number))
    if not number:
        yield BadRow(
            "The file is no mailbox: it does not begin with a line such as 'From ada@example.org Mon Jan 1 ...'."
        )


def _parsed(content: bytes) -> EmailMessage:
    message = email.message_from_bytes(content, policy=_Policy())
    assert isinstance(message, EmailMessage)
    return message


def is_mailbox(beginning: bytes) -> bool:
    """Whether a file that begins so is a mailbox, whatever it is called."""
    line = _BEGINNING.match(beginning)
    return line is not None and _HEADER_LINE.match(beginning, line.end()) is not None


def _messages(stream: BinaryIO, most: int) -> Iterator[bytes]:
    """The messages of a mailbox, each to the line with which it is longer than `most` bytes. A line "From ..." begins
    one at the beginning, or behind an empty line and before a header, so that a sentence that begins so does not."""
    lines: list[bytes] = []
    size = 0
    waiting = b""  # a line that begins a message, if a header follows
    is_behind_empty = True
    is_begun = False
    for line in stream:
        if waiting and _HEADER_LINE.match(line):
            if is_begun:
                yield _QUOTED_BEGINNING.sub(b"", b"".join(lines))
            lines, size, is_begun = [], 0, True
        else:
            lines.append(waiting)
        waiting = line if is_behind_empty and _BEGINNING.fullmatch(line) else b""
        if not waiting and size <= most:
            lines.append(line)
            size += len(line)
        is_behind_empty = not line.strip()
    if is_begun:
        yield _QUOTED_BEGINNING.sub(b"", b"".join((*lines, waiting)))


def _rows(message: EmailMessage, name: str, settings: ReadSettings, depth: int) -> Iterator[Row | BadRow]:
    title = _header(message, "Subject") or name
    fields = {field.lower(): _header(message, field) for field in ("From", "To", "Cc", "Date")}
    body_part = message.get_body(("plain", "html"))
    body = _body(body_part, settings)
    if body is None or is_blank(body.text):  # programs that write pages alone send an empty text beside
        body_part = message.get_body(("html", "plain"))
        body = _body(body_part, settings)

    attached: list[Row | BadRow] = []
    left_out: list[str] = []
    for number, part in enumerate(_attachments(message, body_part)):
        if number == _MOST_PARTS:
            left_out.append(f"attachments behind the first {_MOST_PARTS:,}, not read")
            break
        rows, reason = _attached(part, number + 1, settings, depth)
        attached += rows
        left_out += [reason] if reason else []

    if body is not None and not is_blank(body.text):
        metadata = {field: value for field, value in fields.items() if value}
        yield dataclasses.replace(body, title=title, metadata=metadata, left_out=tuple(left_out))
    elif left_out and not attached:
        yield BadRow(f"The message has no text of its own. It holds {'; '.join(left_out)}.")
    for row in attached:
        yield _under(row, title)


def _under(row: Row | BadRow, title: str) -> Row | BadRow:
    """The attached row, which names the nearest message that it is attached to."""
    if isinstance(row, BadRow) or "attached_to" in row.metadata:
        return row
    return dataclasses.replace(row, metadata={**row.metadata, "attached_to": title})


def _attachments(message: Message, body: Message | None) -> Iterator[EmailMessage]:
    """The parts that are no body, in their order. A part in an alternative that is not the body says the same."""
    waiting: list[Message] = [message]
    while waiting:
        part = waiting.pop()
        if part is body:
            continue
        kind = part.get_content_type()
        if not part.is_multipart() or kind == "message/rfc822":
            if part is not message and isinstance(part, EmailMessage):
                yield part
            continue
        inside = [each for each in part.get_payload() if isinstance(each, Message)]
        if kind == "multipart/alternative":
            inside = [each for each in inside if each.is_multipart() or each.get_content_disposition() == "attachment"]
        waiting += reversed(inside)


def _attached(part: EmailMessage, number: int, settings: ReadSettings, depth: int) -> tuple[list[Row | BadRow], str]:
    """The rows of an attachment, or why it is not read."""
    kind = part.get_content_type()
    named = " ".join(normalised(part.get_filename() or "").split())
    inner = _forwarded(part) if kind == "message/rfc822" or named.lower().endswith(".eml") else None
    if inner is not None:
        name = named or "forwarded message"
        if depth == _DEEPEST:
            return [], f"{name!r}, {_DEEPEST} messages deep, not read"
        return [_keyed(row, f"{number} {name}") for row in _rows(inner, Path(name).stem, settings, depth + 1)], ""

    name = named or f"attachment {number}"
    if kind.split("/")[0] in _NOT_TEXT or kind in ("application/pkcs7-signature", "application/pgp-signature"):
        return [], f"attachment {name!r} ({kind}), not read"
    file_name = Path(name.replace("\\", "/")).name or name
    if not Path(file_name).suffix or named == "":
        file_name += _NAMED_BY_TYPE.get(kind, "")
    return _read_attached(part, file_name, f"{number} {name}", settings)


def _forwarded(part: EmailMessage) -> EmailMessage:
    """The message inside. Some programs encode it, which the standard forbids, so that the parser has its code as
    text."""
    inner = part.get_payload(0) if part.is_multipart() else _parsed(_payload(part))
    assert isinstance(inner, EmailMessage)
    encoding = str(part.get("Content-Transfer-Encoding", "")).strip().lower()
    if encoding not in ("base64", "quoted-printable") or inner.keys():
        return inner
    inner["Content-Transfer-Encoding"] = encoding
    return _parsed(_payload(inner))


def _payload(part: Message) -> bytes:
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""


def _read_attached(
    part: EmailMessage, file_name: str, key: str, settings: ReadSettings
) -> tuple[list[Row | BadRow], str]:
    from kraq_dspy.asset.corpus.formats.readers import find_reader  # which knows this reader, too

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"a{''.join(Path(file_name).suffixes[-2:])[:20].lower()}"
        path.write_bytes(_payload(part))
        try:
            rows = list(find_reader(path.name)(path, settings))
        except MissingExtraError as error:
            rows = [BadRow(str(error))]

    used = [row for row in rows if isinstance(row, Row)]
    reasons = [row.reason for row in rows if isinstance(row, BadRow)]
    reason = f"attachment {file_name!r}, not read: {reasons[0]}" if reasons else ""
    named = normalised(Path(file_name).stem)
    titled = [dataclasses.replace(row, title=named) if row.title == "a" else row for row in used]
    return [_keyed(row, key) for row in titled], reason


def _keyed(row: Row | BadRow, key: str) -> Row | BadRow:
    """The row under a key that no other row of the message has."""
    return dataclasses.replace(row, key=f"{key} {row.key}".strip())


def _body(part: MIMEPart | None, settings: ReadSettings) -> Row | None:
    if part is None:
        return None
    content = _content(part, settings)
    if part.get_content_subtype() == "html":
        return page_row(content, "")
    return Row(normalised(content).strip("\n"))


def _content(part: MIMEPart, settings: ReadSettings) -> str:
    """The text of a part. Where the message names no encoding, or a false one of one byte a letter, it is UTF-8 if it
    can be, as no other text is by chance, else Windows-1252, which programs of mail mean by none. Raises
    UnreadableTextError for another encoding that is false or unknown."""
    data = _payload(part)
    named = str(part.get_content_charset() or "")
    declared = codec_named(named)
    says_little = declared in ("", "cp1252") or declared.startswith(_ONE_BYTE)
    for encoding in ("utf-8" if says_little else declared, declared, "utf-8", settings.encoding):
        try:
            return data.decode(encoding) if encoding else decode(data, settings)
        except (LookupError, ValueError, UnreadableTextError):
            continue
    if says_little or declared in ("utf-8", "utf8"):
        return data.decode("cp1252", "replace")
    raise UnreadableTextError(
        f"The message says that its text is {named!r:.60}, and it cannot be read so. Save it as UTF-8, or say its "
        "encoding: --encoding NAME."
    )


def _header(message: EmailMessage, name: str) -> str:
    """A header, where bytes that no encoding was named for are read as UTF-8."""
    try:
        value = str(message.get(name, ""))
    except (ValueError, IndexError, AttributeError, TypeError):  # what a damaged header makes the parser raise
        value = ""
    if any("\udc80" <= letter <= "\udcff" for letter in value) or "\ufffd" in value:
        raw = next((text for field, text in message.raw_items() if field.lower() == name.lower()), "")
        data = str(raw).encode("utf-8", "surrogateescape")
        try:
            value = data.decode("utf-8")
        except UnicodeDecodeError:
            value = data.decode("cp1252", "replace")
    return " ".join(normalised(_ENCODED_WORD.sub(_decoded_word, value)).split())


def _decoded_word(word: re.Match[str]) -> str:
    """A word of a header in an encoding that Python's parser does not know by that name, or not whole."""
    try:
        ((data, charset),) = email.header.decode_header(word[0])
        return data.decode(codec_named(charset or "")) if isinstance(data, bytes) else data
    except (LookupError, ValueError):
        return word[0]
