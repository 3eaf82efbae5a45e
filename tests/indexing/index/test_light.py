"""Where a model extracts, a build parses nothing and loads no parser; what wants the parse later parses then."""

import subprocess
import sys
from pathlib import Path

import pytest
from stand_in import stand_in

from kraq_dspy import Index, build_index
from kraq_dspy.embedded.reading.kept import STAGE, analyses_of
from kraq_dspy.indexing.index.finishing import IndexedPassages
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.records import Chunk, Document
from kraq_dspy.settings import EMBEDDED, EncoderSettings, RoleSettings, Settings

TEXTS = [
    "Mira Tolan repaired the old lamp in 1902. Orrin Vale paid Mira Tolan for the lamp.",
    "The great storm of 1903 destroyed the harbor of Harrow. Orrin Vale left Harrow.",
]
DOCUMENTS = [Document(str(number), "Harrow", text) for number, text in enumerate(TEXTS)]
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
        assert index.results.outputs(STAGE, index.ids(Chunk)) == {}


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
        assert set(index.results.outputs(STAGE, index.ids(Chunk))) == set(index.ids(Chunk))
        passages = IndexedPassages(index, load_embedder(EncoderSettings()))
        assert passages.analyses(index.ids(Chunk)).keys() == set(index.ids(Chunk))
        assert index.manifest.models["generator"] == EMBEDDED
