"""Runs `kraq precompute qa-pairs|raptor|graph` in this process, and the programs over what it makes."""

import json
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.errors import ConfigError, IndexStateError
from kraq_dspy.records import Document
from tests.kept import kept_index
from tests.whole_program import app

POETS = {
    "Ada Lovelace": "Ada Lovelace wrote notes on the Analytical Engine. Charles Babbage designed that engine.",
    "Charles Babbage": "Charles Babbage invented the Difference Engine. Babbage met Ada Lovelace in 1833.",
    "Lord Byron": "Lord Byron wrote Don Juan. Lord Byron was the father of Ada Lovelace.",
}
QUESTION = "Who wrote Don Juan?"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cli") / "poets.kraq"
    kept_index([Document(name, name, text) for name, text in POETS.items()], out)
    return out


def kraq(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    app([str(word) for word in words], standalone_mode=False)
    return capsys.readouterr().out


def as_json(capsys: pytest.CaptureFixture[str], *words: str | Path) -> Any:
    return json.loads(kraq(capsys, *words, "--json"))


def test_qa_rag_makes_pairs_while_the_question_waits_until_they_are_made_in_advance(
    index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = as_json(capsys, "ask", index, QUESTION, "-p", "qa-rag")
    report = as_json(capsys, "precompute", index, "qa-pairs")["qa-pairs"]
    after = as_json(capsys, "ask", index, QUESTION, "-p", "qa-rag")
    assert (before["n_made"], before["n_looked_up"]) == (3, 0)
    assert (report["chunks"], report["calls"], report["failures"]) == (3, 3, 0)
    assert (after["n_made"], after["n_looked_up"]) == (0, 3)
    assert "Byron" in after["answer"] == before["answer"]
    shown = " ".join(kraq(capsys, "ask", index, QUESTION, "-p", "qa-rag", "-P", "variant=type1").split())
    assert "? Who wrote Don Juan?" in shown
    assert "question-answer pairs; passages: 3 looked up" in shown


def test_the_tree_and_the_graph_are_made_in_one_command_and_not_twice(
    index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(IndexStateError, match=r"kraq precompute .* raptor"):
        kraq(capsys, "ask", index, QUESTION, "-p", "traditional", "--retriever", "raptor")
    first = as_json(capsys, "precompute", index, "raptor", "graph")
    again = as_json(capsys, "precompute", index, "raptor", "graph")
    assert (first["raptor"]["passages"], again["raptor"]["calls"]) == (3, 0)
    assert first["graph"]["embedded"] == first["graph"]["entities"] + first["graph"]["reports"] > 0
    assert again["graph"]["embedded"] == 0
    answer = as_json(capsys, "ask", index, QUESTION, "-p", "traditional", "--retriever", "raptor", "--k", "2")
    assert [hit["why"] for hit in answer["hits"]] == ["leaf", "leaf"]


def test_graph_searches_answer_from_entities_and_reports(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    local = kraq(capsys, "ask", index, QUESTION, "-p", "graph-local")
    assert "Lord Byron" in local
    everywhere = as_json(capsys, "ask", index, QUESTION, "-p", "graph-global", "-P", "level=0")
    assert everywhere["n_batches"] == 1
    assert all(hit["why"] == "report" for hit in everywhere["hits"])


def test_more_passages_than_there_are_and_a_level_below_the_deepest_are_told(
    index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app(["ask", str(index), QUESTION, "-p", "traditional", "-k", "100000"], standalone_mode=False)
    assert "asks for 100,000 passages; there were 3 to be found" in " ".join(capsys.readouterr().err.split())
    app(["ask", str(index), QUESTION, "-p", "traditional"], standalone_mode=False)
    assert "to be found" not in capsys.readouterr().err
    with pytest.raises(ConfigError, match="level of the reports is 99; the deepest of this index is"):
        kraq(capsys, "ask", index, QUESTION, "-p", "graph-global", "-P", "level=99")


def test_options_of_another_program_are_refused(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="variant"):
        kraq(capsys, "ask", index, QUESTION, "-p", "traditional", "-P", "variant=v")
    with pytest.raises(ConfigError, match="finds its own evidence"):
        kraq(capsys, "ask", index, QUESTION, "-p", "graph-local", "--retriever", "bm25")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["raptor", "--top-n", "5"], "--top-n goes with the embeddings, not with raptor"),
        (["k2rag", "--source", "kraq"], "--source goes with the embeddings, not with k2rag"),
        (["--max-calls", "5"], "--max-calls goes with qa-pairs"),
        (["--lm", "embedded"], "--lm goes with qa-pairs"),
    ],
)
def test_precompute_refuses_what_does_not_apply(
    index: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        kraq(capsys, "precompute", index, *words)
