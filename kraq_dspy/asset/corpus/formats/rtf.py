"""Reads rich text (rtf) through striprtf (extra `formats`)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.formats.decode import read_limited, refuses_unreadable
from kraq_dspy.asset.corpus.formats.rows import BadRow, ReadSettings, Row, damaged, shows_nothing
from kraq_dspy.asset.corpus.normalise import is_blank, normalised
from kraq_dspy.errors import needs

RTF = b"{\\rtf"


@refuses_unreadable
def read_rtf(path: Path, settings: ReadSettings) -> Iterator[Row | BadRow]:
    """The text, a line for each paragraph, cells of a table with tabs between them. The title is the file's name."""
    with needs("striprtf", "formats", "Reading rtf"):
        from striprtf import striprtf
    to_text: Any = striprtf.rtf_to_text
    data = read_limited(path, settings)
    if not data.lstrip().startswith(RTF):
        yield BadRow("The file is no rich text: it does not begin with '{\\rtf'. Give it its right extension.")
        return
    try:
        text = to_text(data.decode("latin-1"), errors="replace")
    except Exception as error:  # noqa: BLE001  striprtf raises whatever a damaged file makes its code raise
        yield damaged(error)
        return

    cells = (line.replace("|", "\t").rstrip() if line.endswith("|") else line.rstrip() for line in text.split("\n"))
    text = normalised("\n".join(cells)).strip("\n")
    if is_blank(text):
        yield shows_nothing()
        return
    yield Row(text, title=normalised(path.stem))
