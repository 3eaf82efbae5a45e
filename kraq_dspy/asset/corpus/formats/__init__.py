"""Names one reader for each format family: a path goes in, rows and bad rows come out, as they are read.

A reader lets OSError through (the loader names the file); whatever is wrong with the content is a `BadRow`.
"""

from kraq_dspy.asset.corpus.formats.html import read_html
from kraq_dspy.asset.corpus.formats.json_rows import read_json, read_json_lines
from kraq_dspy.asset.corpus.formats.pdf import read_pdf
from kraq_dspy.asset.corpus.formats.plain import read_markdown, read_plain
from kraq_dspy.asset.corpus.formats.rows import Reader
from kraq_dspy.asset.corpus.formats.tables import read_csv, read_parquet, read_tsv

READERS: dict[str, Reader] = {
    ".txt": read_plain,
    ".text": read_plain,
    ".md": read_markdown,
    ".markdown": read_markdown,
    ".html": read_html,
    ".htm": read_html,
    ".xhtml": read_html,
    ".pdf": read_pdf,
    ".json": read_json,
    ".jsonl": read_json_lines,
    ".ndjson": read_json_lines,
    ".jsonl.gz": read_json_lines,
    ".csv": read_csv,
    ".tsv": read_tsv,
    ".parquet": read_parquet,
}


def find_reader(name: str) -> Reader | None:
    """The reader for a file of this name, by its extension in any case; None for an unknown one."""
    return next((reader for extension, reader in READERS.items() if name.lower().endswith(extension)), None)
