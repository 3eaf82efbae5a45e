"""The demo's test set is made without a language model, and marks a retriever by the evidence that it finds."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dspy.utils import DummyLM

from kraq_dspy import Workspace, bundled_example
from kraq_dspy.apps.cli.demo import RETRIEVERS, DemoTestset, show_testset, take_testset
from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.eval import read_questions
from kraq_dspy.records import Document
from tests.kept import kept_index


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    every = [one for one in load_documents(bundled_example() / "corpus.jsonl") if isinstance(one, Document)]
    wanted = {id for one in read_questions(bundled_example() / "questions.jsonl")[:12] for id in one.supporting_ids}
    documents = [*(one for one in every if one.id in wanted), *(one for one in every if one.id not in wanted)][:50]
    path = tmp_path_factory.mktemp("demo") / "demo.kraq"
    kept_index(documents, path)
    with Workspace.open(path, lm=DummyLM([{}])) as opened:
        yield opened


def test_an_testset_marks_retrievers_by_its_own_questions_and_by_human_ones(
    space: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    people = [
        {"id": one.id, "question": one.question, "supporting_ids": list(one.supporting_ids)}
        for one in read_questions(bundled_example() / "questions.jsonl")[:12]
    ]

    testset = take_testset(space, people)

    assert isinstance(testset, DemoTestset)
    assert testset.own.n >= 5
    assert testset.human.n == 12
    assert space.models["generator"].history == []  # the embedded reader asked
    for marks in (testset.own, testset.human):
        assert set(marks.means) == set(RETRIEVERS)
        assert marks.picked in RETRIEVERS
        assert all(0 <= mean <= 1 for mean in marks.means.values())
    assert testset.human.means["adaptive"] > 0.5

    show_testset(testset)
    shown = capsys.readouterr().out
    assert f"human questions, {testset.human.n}" in shown
    assert "kraq select docs/ test.jsonl" in shown


def test_a_corpus_without_anything_to_ask_has_no_testset(tmp_path: Path) -> None:
    texts = ["lorem ipsum dolor sit amet", "consectetur adipiscing elit"]
    kept_index([Document(text[:5], "", text) for text in texts], tmp_path / "empty.kraq")
    with Workspace.open(tmp_path / "empty.kraq") as space:
        assert take_testset(space, [{"question": "What?", "supporting_ids": ["x"]}]) is None
