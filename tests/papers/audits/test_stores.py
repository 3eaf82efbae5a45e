"""Tests, on documents that a reader can count, what it costs and saves to summarise a corpus first."""

import json
from pathlib import Path

import pytest

from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.errors import CorpusError
from kraq_dspy.extend import LanguageModels
from kraq_dspy.papers.audits.stores import measure_stores
from kraq_dspy.records import Document
from kraq_dspy.settings import K2RAGSettings, Settings
from tests.conftest import KeywordEmbedder, WarmShell

TEXT = " ".join(
    f"Ada Lovelace met person {number} in the town of Porlock on a day in May, and they spoke of engines."
    for number in range(30)
)
MODELS = LanguageModels(Settings(k2rag=K2RAGSettings(share=0.2)))


def test_both_corpora_are_stored_and_documents_become_smaller_by_what_was_left_out() -> None:
    documents = [Document(str(number), f"Paper {number}", TEXT) for number in range(3)]
    report = measure_stores(documents, MODELS, KeywordEmbedder("ada", "engines"))
    assert report.documents == 3
    assert report.whole.tokens == 3 * count_tokens(TEXT)
    assert 0 < report.summarised.tokens < report.whole.tokens / 2
    assert report.mean_reduction == pytest.approx(1 - report.summarised.tokens / report.whole.tokens)
    assert report.reductions[0] <= report.reductions[2] <= report.reductions[4]
    for times in (report.whole, report.summarised):
        assert min(times.dense, times.sparse, times.graph) > 0
    assert report.saved["graph"] == pytest.approx(1 - report.summarised.graph / report.whole.graph)
    assert report.summarising > 0


def test_a_short_document_stays_as_it_is() -> None:
    report = measure_stores([Document("short", "", "Ada met Charles.")], MODELS, KeywordEmbedder("ada"))
    assert report.reductions == (0.0,) * 5
    assert report.whole.tokens == report.summarised.tokens


def test_without_text_there_is_nothing_to_store() -> None:
    with pytest.raises(CorpusError, match="no document with text"):
        measure_stores([Document("blank", "", " ")], MODELS, KeywordEmbedder("ada"))


def test_the_command_prints_the_papers_table(kraq: WarmShell, tmp_path: Path) -> None:
    corpus = tmp_path / "docs"
    corpus.mkdir()
    (corpus / "one.txt").write_text(TEXT)
    done = kraq("bench", "stores", corpus, "--lm", "embedded", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "graph" in done.stdout
    assert "Summarising took" in done.stdout
    said = json.loads(kraq("bench", "stores", corpus, "--lm", "embedded", "--json", cwd=tmp_path).stdout)
    assert said["whole"]["tokens"] > said["summarised"]["tokens"]
    assert list(tmp_path.glob("*.kraq")) == []
