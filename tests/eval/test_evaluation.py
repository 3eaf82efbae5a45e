"""Tests `evaluate` on programs, retrievers and questions of any kind, and what it refuses at once."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils.dummies import DummyLM

from kraq_dspy import Workspace
from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval import evaluate
from kraq_dspy.eval.reports.comparing import compare_runs
from kraq_dspy.eval.reports.grids import changed_questions, grids
from kraq_dspy.eval.rows import read_run
from kraq_dspy.records import Chunk, Document, Hit
from tests.kept import kept_index

QUESTIONS = [
    {"id": "o", "question": "Say Oslo", "answer": "Oslo", "supporting_ids": ["norway"]},
    {"id": "r", "question": "Say Rome", "answers": ["Rome"], "supporting_ids": ["italy"]},
]
PASSAGES = {"norway": "Oslo is in Norway.", "italy": "Rome is in Italy."}


class Echo(dspy.Module):
    """Answers from one passage."""

    def __init__(self, passage: str = "norway") -> None:
        super().__init__()
        self.passage = passage
        self.answer = dspy.Predict("question -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(answer=self.answer(question=question).answer, hits=hits([self.passage]))


def hits(names: Sequence[str]) -> list[Hit]:
    return [Hit(Chunk(f"c-{name}", name, 0, 0, 0, PASSAGES[name], 0), 1.0, "q") for name in names]


def find(question: str, k: int = 10) -> list[Hit]:
    """A retriever that finds Norway first, whatever is asked."""
    return hits(["norway", "italy"])[:k]


@pytest.fixture
def lm() -> DummyLM:
    return DummyLM({"Say Oslo": {"answer": "Oslo"}, "Say Rome": {"answer": "It is Rome."}})


def test_a_program_of_ones_own_is_scored_with_what_the_questions_have_gold_data_for(lm: DummyLM) -> None:
    with dspy.context(lm=lm):
        result = evaluate(Echo(), QUESTIONS)
    assert result.summary.metrics == ["token_f1", "exact_match", "substring_match", "grounded", "recall@10", "mrr@10"]
    assert result.mean("exact_match") == 0.5
    assert result.mean("substring_match") == 1.0
    assert result.mean("recall@10") == 0.5
    assert [row.question_id for row in result.failed("exact_match")] == ["r"]
    assert "token_f1" in repr(result)
    printed = str(result)
    assert "Echo" in printed
    assert "gold: Rome" in printed
    assert "evidence: Oslo is in Norway." in printed


def test_a_function_that_finds_is_a_retriever_and_several_systems_have_names() -> None:
    result = evaluate({"plain": find, "again": find}, QUESTIONS, ["recall@1", "mrr@10", "answer_found"])
    assert result.mean("recall@1", "again") == 0.5
    assert result.mean("mrr@10") == 0.75
    assert result.summary.baseline == "plain"
    assert result.summary.systems[1].cells["recall@1"].difference is not None


def test_what_computes_in_this_process_alone_is_asked_one_by_one(tmp_path: Path) -> None:
    kept_index([Document(name, name, text) for name, text in PASSAGES.items()], tmp_path / "places.kraq")
    with Workspace.open(tmp_path / "places.kraq") as space:
        alone = evaluate("traditional", [{"question": "Where is Oslo?"}], ["grounded"], space=space)
        beside = evaluate(find, QUESTIONS, ["recall@1"], space=space)
    assert alone.summary.header.extra["in_flight"] == 1
    assert beside.summary.header.extra["in_flight"] == 8  # a function of the caller's may wait for anything


def test_questions_without_answers_are_scored_by_what_needs_none(lm: DummyLM) -> None:
    with dspy.context(lm=lm):
        result = evaluate(Echo(), [{"query": "Say Oslo"}, {"query": "Say Rome"}])
    assert result.summary.metrics == ["grounded"]
    assert {row.question_id: row.metrics["grounded"] for row in result.rows} == {"q1": 1.0, "q2": 0.0}


def test_a_row_without_gold_enters_neither_mean_nor_number_of_what_compares_with_gold(
    lm: DummyLM, tmp_path: Path
) -> None:
    questions = tmp_path / "questions.csv"
    questions.write_text("question,answer\nSay Oslo,Oslo\nSay Rome,NaN\nSay Bern,nan\nSay Lima,\nSay Kyiv,None\n")
    echo = Echo()
    echo.answer.set_lm(DummyLM([{"answer": "Oslo"}] * 5))
    result = evaluate(echo, questions, ["exact_match", "answer_found", "grounded"])

    system = result.summary.systems[0]
    assert (result.mean("exact_match"), result.mean("answer_found")) == (1.0, 1.0)
    assert system.cells["exact_match"].n_undefined == system.cells["answer_found"].n_undefined == 4
    assert system.cells["grounded"].n_undefined == 0
    assert result.failed("exact_match") == []
    scores = next(grid for grid in grids(result.summary) if "exact_match" in grid.headings)
    assert dict(zip(scores.headings, scores.rows[0], strict=True))["exact_match"].endswith("n=1")
    assert "exact_match: 4 questions have no gold data for it." in scores.note


def test_examples_of_dspy_and_metrics_of_ones_own_are_taken(lm: DummyLM) -> None:
    devset = [dspy.Example(question="Say Oslo", answer="Oslo", region="north").with_inputs("question")]

    def is_northern(example: dspy.Example, prediction: dspy.Prediction, trace: Any = None) -> bool:
        return bool(example.region == "north" and prediction.answer == "Oslo")

    with dspy.context(lm=lm):
        assert evaluate(Echo(), devset, [is_northern, "token_f1"]).mean("is_northern") == 1.0
        assert evaluate(Echo(), devset, {"from the north": is_northern}).mean("from the north") == 1.0


def test_a_column_that_may_name_the_evidence_and_was_not_read_is_noted(lm: DummyLM) -> None:
    row = {"question": "Say Oslo", "answer": "Oslo", "region": "north"}
    with dspy.context(lm=lm):
        noted = evaluate(Echo(), [row | {"contexts_id": "oslo.md"}], ["token_f1"])
        silent = evaluate(Echo(), [row], ["token_f1"])
    assert noted.notes == (
        "No question names its evidence, so there is no recall. If 'contexts_id' does: --documents-column contexts_id",
    )
    assert silent.notes == ()


def test_a_judge_without_references_scores_answers_and_evidence(lm: DummyLM) -> None:
    statements = [{"statement": "a", "supported": True}, {"statement": "b", "supported": False}]
    judge = DummyLM([{"statements": json.dumps(statements)}])
    with dspy.context(lm=lm):
        result = evaluate(Echo(), QUESTIONS[:1], ["groundedness"], judge=judge, concurrency=1)
    [row] = result.rows
    assert row.metrics == {"groundedness": 0.5}
    assert result.summary.header.models["judge"] == "dummy"


def test_context_recall_is_the_share_of_the_gold_answer_that_passages_hold_for_programs_and_retrievers(
    lm: DummyLM,
) -> None:
    statements = [{"statement": "a", "attributed": True}, {"statement": "b", "attributed": False}]
    reply = {"statements": json.dumps([*statements, {"statement": "c", "attributed": True}])}
    for asked in (Echo(), find):
        judge = DummyLM([reply])
        with dspy.context(lm=lm):
            [row] = evaluate(asked, QUESTIONS[:1], ["context_recall"], judge=judge, concurrency=1).rows
        assert row.metrics == {"context_recall": pytest.approx(2 / 3)}
        asked_of_judge = judge.history[0]["messages"][-1]["content"]
        assert "Oslo is in Norway." in asked_of_judge
        assert "[[ ## reference_answer ## ]]\nOslo" in asked_of_judge


def test_context_recall_of_nothing_found_is_zero_without_a_call() -> None:
    judge = DummyLM([])
    [row] = evaluate(lambda question, k=5: [], QUESTIONS[:1], ["context_recall"], judge=judge, concurrency=1).rows
    assert (row.metrics, judge.history) == ({"context_recall": 0.0}, [])


def test_faithfulness_is_groundedness_by_its_other_name(lm: DummyLM) -> None:
    statements = [{"statement": "a", "supported": True}, {"statement": "b", "supported": False}]
    judge = DummyLM([{"statements": json.dumps(statements)}])
    with dspy.context(lm=lm):
        [row] = evaluate(Echo(), QUESTIONS[:1], ["faithfulness"], judge=judge, concurrency=1).rows
    assert row.metrics == {"faithfulness": 0.5}


def test_what_a_judge_cannot_be_read_as_is_counted_and_told(lm: DummyLM) -> None:
    with dspy.context(lm=lm):
        result = evaluate(Echo(), QUESTIONS[:1], ["groundedness"], judge=DummyLM([{"statements": "many"}] * 9))
    [row] = result.rows
    assert "groundedness" in row.failed_metrics


@pytest.mark.parametrize(
    ("asked", "metrics", "says"),
    [
        (find, ["token_f1"], "a retriever gives none"),
        (find, ["tokenf1"], "did you mean 'token_f1'"),
        (find, ["recall@5", "recall@5"], "named twice"),
        (find, [], "No metric"),
        (Echo(), ["groundedness"], "needs a language model"),
        ("combined", ["recall@5"], "is no index"),
    ],
)
def test_what_cannot_be_scored_is_refused_before_the_first_question(asked: Any, metrics: list[str], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        evaluate(asked, QUESTIONS, metrics)


def test_a_program_without_an_answer_is_told_what_it_gave() -> None:
    class Silent(dspy.Module):
        def forward(self, question: str) -> dspy.Prediction:
            return dspy.Prediction(verdict="yes", hits=[])

    [first, _] = evaluate(Silent(), QUESTIONS, ["token_f1"]).rows
    assert first.failure is not None
    assert "no `answer`; it has verdict, hits" in first.failure


def test_rows_are_kept_and_two_runs_are_compared_pairwise(lm: DummyLM, tmp_path: Path) -> None:
    with dspy.context(lm=lm):
        evaluate(Echo(), QUESTIONS, ["recall@10", "substring_match"], out=tmp_path / "a")
        evaluate(Echo("italy"), QUESTIONS, ["recall@10", "substring_match"], out=tmp_path / "b")
        evaluate(
            Echo("italy"), QUESTIONS, ["recall@10", "substring_match"], out=tmp_path / "b"
        )  # nothing is left to ask
    header, rows = read_run(tmp_path / "b")
    assert len(rows) == 2
    assert header.extra["table"]["systems"]["Echo"]["about"] == {"program": "Echo", "model": "dummy"}
    [beside] = compare_runs(tmp_path / "a", tmp_path / "b")
    assert beside.metrics == ["recall@10", "substring_match"]
    difference = beside.systems[1].cells["recall@10"].difference
    assert difference is not None
    assert difference.estimate == 0.0
    changed = changed_questions(beside)
    assert changed is not None
    assert [row[0] for row in changed.rows] == [question["question"] for question in QUESTIONS]  # one fell, one rose
    evaluate({"other": find}, QUESTIONS, ["recall@1"], out=tmp_path / "c")
    with pytest.raises(EvaluationError, match="in common"):
        compare_runs(tmp_path / "a", tmp_path / "c")
