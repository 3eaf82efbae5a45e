"""An index whose passages another version of the parser's reading read is read again, and never mixed."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kraq_dspy import Index, add_documents, build_index
from kraq_dspy.embedded.reading import kept
from kraq_dspy.embedded.reading.reader import MADE_BY, Reader
from kraq_dspy.language.analysis import Analysis, Named, Sentence
from kraq_dspy.records import Chunk, Document
from tests.conftest import KeywordEmbedder
from tests.indexing.small import contents, small

FIRST = Document("harrow", "Harrow lighthouse", "Mira Tolan repaired the old lamp in 1902. Orrin Vale paid Mira Tolan.")
SECOND = Document("storm", "The storm", "The great storm of 1903 destroyed the harbor of Harrow. Orrin Vale fled.")


class OlderReader(Reader):
    """It finds one word in each passage."""

    def analyses(self, passages: Sequence[str]) -> list[Analysis]:
        return [Analysis("", (Sentence(passage, (Named("Older", "concept", "older"),)),)) for passage in passages]


def read_by(patch: pytest.MonkeyPatch, reader: Reader, made_by: str) -> None:
    """As in another process, whose reader remembers nothing."""
    patch.setattr("kraq_dspy.embedded.reading.kept.MADE_BY", made_by)
    for room in (
        "embedded.reading.kept",
        "embedded.reading.processes",
        "embedded.extract",
    ):
        patch.setattr(f"kraq_dspy.{room}.reader", lambda: reader)


@pytest.mark.parametrize("extracts_by_parse", [True, False], ids=["embedded", "another model"])
def test_an_index_of_an_older_reading_is_read_again_when_a_document_is_added(
    tmp_path: Path,
    keyword_embedder: type[KeywordEmbedder],
    monkeypatch: pytest.MonkeyPatch,
    *,
    extracts_by_parse: bool,
) -> None:
    embedder = keyword_embedder("lamp", "storm")
    if not extracts_by_parse:  # then what is extracted does not hang on how the parser reads
        monkeypatch.setattr("kraq_dspy.steps.kept.EMBEDDED", "none")

    path = tmp_path / "older.kraq"
    read_by(monkeypatch, OlderReader(), "reading 0")
    build_index([FIRST], path, settings=small(), embedder=embedder)
    assert read_words(path) == {"Older"}

    read_by(monkeypatch, Reader(), MADE_BY)
    add_documents(path, [SECOND], embedder=embedder)
    assert "Older" not in read_words(path)
    assert {"Mira Tolan", "great storm"} <= read_words(path)

    if extracts_by_parse:
        build_index([FIRST, SECOND], tmp_path / "new.kraq", settings=small(), embedder=embedder)
        assert contents(path)["Extraction"] == contents(tmp_path / "new.kraq")["Extraction"]


def read_words(path: Path) -> set[str]:
    """What the kept analyses of an index name."""
    with Index.open(path) as index:
        analyses = kept.analyses_of(index, index.ids(Chunk))
    assert len(analyses) > 0
    return {named.text for analysis in analyses.values() for s in analysis.sentences for named in s.named}
