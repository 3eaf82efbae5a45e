"""Reads rich text (rtf) through striprtf (extra `formats`)."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.formats.decode import read_limited, refuses_unreadable
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row, damaged
from kraq_dspy.asset.corpus.formats.sheets import counted
from kraq_dspy.asset.corpus.normalise import is_blank, normalised
from kraq_dspy.errors import needs

RTF = b"{\\rtf"
_TOKEN = re.compile(rb"\\([a-z]{1,32})(-?\d{1,10})?[ ]?|\\'[0-9a-fA-F]{2}|\\[^a-z]|[{}]|[^\\{}]+", re.DOTALL)
_UNSEEN = (b"v", b"strike", b"striked", b"deleted")
_NOT_TEXT = frozenset(
    b"fonttbl colortbl stylesheet info pict object themedata colorschememapping datastore listtable "
    b"listoverridetable rsidtbl generator xmlnstbl latentstyles fldinst".split()
)
_BREAKS = (b"par", b"line", b"tab", b"cell", b"u")
"""Words that stand for a letter or a break: what nobody sees loses them too."""


@refuses_unreadable
def read_rtf(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The text, a line for each paragraph, cells of a table with tabs between them. Hidden text and what is struck out
    or deleted is left out, and counted. The title is the file's name."""
    with needs("striprtf", "formats", "Reading rtf"):
        from striprtf import striprtf
    to_text: Any = striprtf.rtf_to_text
    with path.open("rb") as stream:
        data = read_limited(stream, settings)
    if not data.lstrip().startswith(RTF):
        yield BadRow("The file is no rich text: it does not begin with '{\\rtf'. Give it its right extension.")
        return
    seen, n_hidden = _without_unseen(_with_notes(data))
    try:
        text = to_text(seen.decode("latin-1"), errors="replace")
    except Exception as error:  # noqa: BLE001  striprtf raises whatever a damaged file makes its code raise
        yield damaged(error)
        return

    cells = (line.replace("|", "\t").rstrip() if line.endswith("|") else line.rstrip() for line in text.split("\n"))
    text = normalised("\n".join(cells)).strip("\n")
    notes = (f"{counted(n_hidden, 'letter')} of hidden, struck out or deleted text",) if n_hidden else ()
    if is_blank(text):
        yield BadRow("The file shows no text; what it shows may be pictures. Save it as PDF and run it through OCR.")
        return
    yield Row(text, title=normalised(path.stem), left_out=notes)


def _with_notes(data: bytes) -> bytes:
    """The marks of the file, where notes stand in brackets at their place: else striprtf leaves them out."""
    tokens = [match[0] for match in _TOKEN.finditer(data)]
    ends: list[bytes] = []  # what the end of each open group becomes
    for place, token in enumerate(tokens):
        word = token[1:].strip()
        if token == b"{":
            ends.append(b"}")
        elif token == b"}" and ends:
            tokens[place] = ends.pop()
        elif not token.startswith(b"\\") or not ends:
            continue
        elif word == b"footnote":
            tokens[place], ends[-1] = b" (", b")}"
    return b"".join(tokens)


def _without_unseen(data: bytes) -> tuple[bytes, int]:
    """The marks of the file without text that nobody sees, and how many letters that had. striprtf keeps all text."""
    kept: list[bytes] = []
    groups = _Groups()
    n_letters = 0
    for match in _TOKEN.finditer(data):
        token, word = match[0], match[1]
        groups.take(token, word, match[2])
        shows = groups.shows
        is_letters = word is None and token not in (b"{", b"}", b"\\*")
        if shows or not is_letters:
            kept.append(token if shows or word not in _BREAKS else b"")
        elif not token.isspace():
            n_letters += 1 if token.startswith(b"\\") else len(token.replace(b"\r", b"").replace(b"\n", b""))
    return b"".join(kept), n_letters


class _Groups:
    """The open groups of a file: for each what makes its text unseen, and whether it holds text."""

    def __init__(self) -> None:
        self._unseen: list[frozenset[bytes]] = [frozenset()]
        self._is_text = [True]

    @property
    def shows(self) -> bool:
        """Whether text is kept here: it is seen, or it is no text of the document, as the names of fonts."""
        return not self._unseen[-1] or not self._is_text[-1]

    def take(self, token: bytes, word: bytes | None, number: bytes | None) -> None:
        """Follow a mark of the file; a `word` with the `number` 0 ends what it begins without."""
        if token == b"{":
            self._unseen.append(self._unseen[-1])
            self._is_text.append(self._is_text[-1])
        elif token == b"}" and len(self._unseen) > 1:
            self._unseen.pop()
            self._is_text.pop()
        elif word in _UNSEEN:
            self._unseen[-1] = self._unseen[-1] - {word} if number == b"0" else self._unseen[-1] | {word}
        elif word in (b"plain", b"sectd"):
            self._unseen[-1] = frozenset()
        elif word in _NOT_TEXT or token == b"\\*":
            self._is_text[-1] = False
