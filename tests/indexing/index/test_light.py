"""A build by a model that extracts loads no parser; later steps parse when they need it."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from stand_in import stand_in

from kraq_dspy import Index, build_index
from kraq_dspy.embedded.reading.kept import analyses_of
from kraq_dspy.indexing.index.finishing import IndexedPassages
from kraq_dspy.language.analysis import READ
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.ports import Vectors
from kraq_dspy.records import Chunk, Document
from kraq_dspy.settings import EMBEDDED, EncoderSettings, RoleSettings, Settings
from tests.conftest import KeywordEmbedder, WarmShell

ROOT = Path(__file__).resolve().parents[3]
TEXTS = [
    "Mira Tolan repaired the old lamp in 1902. Orrin Vale paid Mira Tolan for the lamp.",
    "The great storm of 1903 destroyed the harbor of Harrow. Orrin Vale left Harrow.",
]
DOCUMENTS = [Document(str(number), "Harrow", text) for number, text in enumerate(TEXTS)]
MOST_CALLS = 220_000
"""Calls of functions of this library for an index of twelve passages. Whoever makes it more says why."""
COUNTED = """
import itertools, json, sys, threading
from pathlib import Path
from kraq_dspy import Document, build_index
from kraq_dspy.embedded.reading.pipeline import pipeline

lines = Path(sys.argv[2]).read_text("utf-8").splitlines()[:13]
documents = [Document(str(n), row["title"], row["text"]) for n, row in enumerate(map(json.loads, lines))]
pipeline()  # so that this process parses, and its calls count
build_index(documents[:1], f"{sys.argv[1]}/first.kraq")

calls = itertools.count()
def count(frame, event, argument):
    if event == "call" and "kraq_dspy" in frame.f_code.co_filename:
        next(calls)
threading.setprofile(count)
sys.setprofile(count)
build_index(documents[1:], f"{sys.argv[1]}/second.kraq")
sys.setprofile(None)
print(next(calls))
"""
ASK = """
import gc, sys
from kraq_dspy.apps.cli import main

sys.argv = ["kraq", "ask", sys.argv[1], "Who repaired the old lamp?"]
try:
    main()
finally:
    print(sorted({"spacy", "thinc", "tiktoken", "py3langid", "markdown_it"} & sys.modules.keys()))
    print(gc.isenabled() and gc.get_freeze_count() > 100_000)
"""
BUILD = """
import sys
from kraq_dspy import Settings, build_index
from kraq_dspy.settings import RoleSettings

settings = Settings(roles={"default": RoleSettings("hosted_vllm/m", api_base=sys.argv[2])})
report = build_index(sys.argv[3:], sys.argv[1], settings=settings)
assert report.counts["questions"] and not report.failures, report
print(sorted({"spacy", "thinc", "py3langid"} & sys.modules.keys()))
"""


@pytest.fixture(scope="module")
def by_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index that a model made, in a process that must not load the parser."""
    path = tmp_path_factory.mktemp("light") / "harrow.kraq"
    with stand_in() as server:
        command = [sys.executable, "-c", BUILD, str(path), server.url, *TEXTS]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "[]", done.stderr
    return path


def test_a_build_by_a_model_parses_nothing(by_model: Path) -> None:
    with Index.open(by_model) as index:
        assert index.results.outputs(READ, index.ids(Chunk)) == {}


def test_what_wants_the_parse_later_gets_it(by_model: Path) -> None:
    with Index.open(by_model) as index:
        named = {
            each.text for a in analyses_of(index, index.ids(Chunk)).values() for s in a.sentences for each in s.named
        }
    assert {"Mira Tolan", "great storm"} <= named


def test_where_another_model_asks_than_extracts_the_parse_of_what_is_asked_is_kept(tmp_path: Path) -> None:
    with stand_in() as server:
        extractor = RoleSettings("hosted_vllm/m", api_base=server.url)
        build_index(
            DOCUMENTS, tmp_path / "x.kraq", settings=Settings(roles={"default": RoleSettings(), "extractor": extractor})
        )
    with Index.open(tmp_path / "x.kraq") as index:
        assert set(index.results.outputs(READ, index.ids(Chunk))) == set(index.ids(Chunk))
        passages = IndexedPassages(index, load_embedder(EncoderSettings()))
        assert passages.analyses(index.ids(Chunk)).keys() == set(index.ids(Chunk))
        assert index.manifest.models["generator"] == EMBEDDED


def test_an_index_of_twelve_passages_makes_no_more_calls_than_it_did(tmp_path: Path, kraq: WarmShell) -> None:
    passages = ROOT / "examples" / "hotpotqa-mini" / "corpus.jsonl"
    output, errors = kraq.python(COUNTED, tmp_path, passages).communicate()
    assert int(output or 0), errors
    assert int(output) <= MOST_CALLS


def test_a_question_in_a_new_process_loads_no_parser_of_any_kind_and_collects_no_garbage_of_imports(
    tmp_path: Path,
) -> None:
    build_index(DOCUMENTS, tmp_path / "x.kraq")
    command = [sys.executable, "-c", ASK, str(tmp_path / "x.kraq")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Mira Tolan" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-2:] == ["[]", "True"]


def test_an_embedder_is_never_asked_for_the_vectors_of_no_texts(
    tmp_path: Path, keyword_embedder: type[KeywordEmbedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    encode = keyword_embedder.encode_queries

    def refusing(self: KeywordEmbedder, texts: Sequence[str]) -> Vectors:
        assert texts
        return encode(self, texts)

    monkeypatch.setattr(keyword_embedder, "encode_queries", refusing)
    report = build_index(DOCUMENTS, tmp_path / "x.kraq", embedder=keyword_embedder("lamp", "storm"))
    assert report.counts["questions"] > 0
