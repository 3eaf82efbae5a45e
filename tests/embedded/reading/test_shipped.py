"""`kraq demo` takes over what the parser said of its passages, and it is what the parser says."""

import json
import lzma
import random
from pathlib import Path

import pytest

from kraq_dspy import bundled_example
from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.embedded.reading import reader as reading
from kraq_dspy.embedded.reading.kept import FILE, shipped_analyses
from kraq_dspy.embedded.reading.reader import MADE_BY, Reader
from kraq_dspy.language.analysis import Analysis
from kraq_dspy.records import Document
from kraq_dspy.settings import ChunkSettings
from scripts.read_example import write_analyses

SAMPLE = 15  # passages that are parsed again
AGAIN = "Run python scripts/read_example.py, and raise READING in its reader.py if the reading has changed."


@pytest.fixture(scope="module")
def shipped() -> dict[str, Analysis]:
    analyses = shipped_analyses(bundled_example())
    if not analyses:
        pytest.skip(f"{FILE} is of another reading than {MADE_BY}: python scripts/read_example.py")
    return analyses


def test_what_is_shipped_is_what_the_parser_says(shipped: dict[str, Analysis]) -> None:
    drawn = random.Random(0).sample(sorted(shipped), SAMPLE)
    assert Reader().analyses(drawn) == [shipped[passage] for passage in drawn], AGAIN


def test_every_passage_of_the_example_is_there(shipped: dict[str, Analysis]) -> None:
    documents = [each for each in load_documents(bundled_example() / "corpus.jsonl") if isinstance(each, Document)]
    drawn = random.Random(0).sample(documents, 60)
    passages = [chunk.passage for document in drawn for chunk in chunk_document(document, ChunkSettings())]
    assert set(passages) <= set(shipped), AGAIN
    assert len(shipped) >= len(documents)


def test_a_shipped_passage_is_not_parsed_and_another_one_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    passage, other = "The keeper of Harrow mended the lamp in May 1902.", "The old harbor commission paid the workers."
    taught = Analysis("Harrow", ())
    write_analyses(tmp_path, {passage: taught})

    own = Reader()
    own.take_shipped(shipped_analyses(tmp_path))
    assert own.analyses([passage, other])[0] == taught
    assert own.analyses([other])[0].sentences[0].text == other

    def unwanted() -> None:
        raise AssertionError("parsed")

    monkeypatch.setattr(reading, "pipeline", unwanted)
    assert own.analysis(passage) == taught
    with pytest.raises(AssertionError, match="parsed"):
        own.analyses([other])


def test_analyses_of_another_reading_and_an_absent_file_are_none(tmp_path: Path) -> None:
    assert shipped_analyses(tmp_path) == {}
    file = write_analyses(tmp_path, {"Harrow": Analysis("Harrow", ())})
    assert list(shipped_analyses(tmp_path)) == ["Harrow"]

    written = json.loads(lzma.decompress(file.read_bytes()))
    file.write_bytes(lzma.compress(json.dumps({**written, "made_by": "an earlier reading"}).encode()))
    assert shipped_analyses(tmp_path) == {}
