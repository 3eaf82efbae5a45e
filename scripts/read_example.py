"""Parses the passages of the bundled example, and writes what the parser says next to them.

    python scripts/read_example.py

To be run when `READING` in `kraq_dspy/embedded/reading/reader.py` is raised. It takes about forty seconds of the
processor.
`kraq demo` then parses none of these passages.
"""

import json
import lzma
from collections.abc import Mapping
from pathlib import Path

from kraq_dspy import bundled_example
from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.embedded.reading.kept import FILE
from kraq_dspy.embedded.reading.reader import MADE_BY, Reader
from kraq_dspy.language.analysis import Analysis, to_values
from kraq_dspy.records import Document
from kraq_dspy.settings import ChunkSettings


def write_analyses(example: Path, analyses: Mapping[str, Analysis]) -> Path:
    """Write what `shipped_analyses` reads. The same analyses make the same bytes."""
    passages = {passage: to_values(analysis) for passage, analysis in analyses.items()}
    text = json.dumps({"made_by": MADE_BY, "passages": passages}, ensure_ascii=False, separators=(",", ":"))
    file = example / FILE
    file.write_bytes(lzma.compress(text.encode(), preset=9))
    return file


def main() -> None:
    example = bundled_example()
    documents = [each for each in load_documents(example / "corpus.jsonl") if isinstance(each, Document)]
    passages = [chunk.passage for document in documents for chunk in chunk_document(document, ChunkSettings())]
    file = write_analyses(example, dict(zip(passages, Reader().analyses(passages), strict=True)))
    print(f"{len(passages)} passages in {file.name}, {file.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
