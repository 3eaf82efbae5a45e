"""Names one reader for each format family: a path goes in, rows and bad rows come out, as they are read.

A reader lets OSError through (the loader names the file); whatever is wrong with the content is a `BadRow`.
Formats that other libraries take apart are read in another process (`apart`).
"""

from kraq_dspy.asset.corpus.formats.apart import kept_apart
from kraq_dspy.asset.corpus.formats.docx import read_docx
from kraq_dspy.asset.corpus.formats.html import read_html
from kraq_dspy.asset.corpus.formats.mail import read_mailbox, read_message
from kraq_dspy.asset.corpus.formats.packed import read_epub, read_notebook, reader_named
from kraq_dspy.asset.corpus.formats.pdf import read_pdf
from kraq_dspy.asset.corpus.formats.plain import read_markdown, read_marked_up, read_plain, read_unknown
from kraq_dspy.asset.corpus.formats.restructured import read_restructured
from kraq_dspy.asset.corpus.formats.rows import Reader
from kraq_dspy.asset.corpus.formats.rtf import read_rtf
from kraq_dspy.asset.corpus.formats.sheets import read_sheets
from kraq_dspy.asset.corpus.formats.slides import read_pptx
from kraq_dspy.asset.corpus.formats.values import READERS_OF_ROWS

READERS: dict[str, Reader] = {
    ".txt": read_plain,
    ".text": read_plain,
    ".md": read_markdown,
    ".markdown": read_markdown,
    **dict.fromkeys((".mdx", ".qmd", ".rmd", ".mdown", ".mkd", ".mkdn", ".mdwn", ".mdtxt"), read_markdown),
    ".rst": kept_apart(read_restructured),
    ".org": read_marked_up,
    ".adoc": read_marked_up,
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".pdf": kept_apart(read_pdf),
    ".docx": kept_apart(read_docx),
    ".pptx": kept_apart(read_pptx),
    ".xlsx": kept_apart(read_sheets),
    ".xlsm": kept_apart(read_sheets),
    ".xlsb": kept_apart(read_sheets),
    ".xls": kept_apart(read_sheets),
    ".ods": kept_apart(read_sheets),
    ".rtf": read_rtf,
    ".epub": read_epub,
    ".eml": kept_apart(read_message),
    ".mbox": read_mailbox,
    ".ipynb": read_notebook,
    **READERS_OF_ROWS,
}


def find_reader(name: str) -> Reader:
    """The reader for a file of this name, by its extension in any case; an unknown kind is text, if it can be."""
    reader = reader_named(name, READERS, read_unknown)
    assert reader is not None, "there is one for files of any kind"
    return reader
