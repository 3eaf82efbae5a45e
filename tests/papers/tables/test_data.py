"""A table's data sets are found by name, and its questions are the ones that were asked for."""

from pathlib import Path

import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import Dataset, Example
from kraq_dspy.papers.tables.data import dataset_names, load
from kraq_dspy.records import Document
from tests.eval.saving import save

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "hotpotqa-mini"


def test_a_folder_that_is_a_data_set_is_the_only_one() -> None:
    assert dataset_names(EXAMPLE, (), ("triviaqa", "hotpotqa")) == ["hotpotqa-mini"]
    with pytest.raises(EvaluationError, match="is the data set 'hotpotqa-mini' itself"):
        dataset_names(EXAMPLE, ["squad"], ())


def test_chosen_data_sets_go_before_those_of_the_table(tmp_path: Path) -> None:
    assert dataset_names(tmp_path, ["squad", "squad"], ("hotpotqa",)) == ["squad"]
    assert dataset_names(tmp_path, (), ("hotpotqa",)) == ["hotpotqa"]
    with pytest.raises(EvaluationError, match="--dataset"):
        dataset_names(tmp_path, (), ())


def test_a_larger_limit_asks_the_same_questions_and_more() -> None:
    few, more = (load(EXAMPLE, "hotpotqa-mini", limit=limit) for limit in (5, 9))
    assert [each.id for each in more.examples[:5]] == [each.id for each in few.examples]
    assert (few.left_out, more.left_out) == (55, 51)
    other = load(EXAMPLE, "hotpotqa-mini", limit=5, seed=1)
    assert {each.id for each in other.examples} != {each.id for each in few.examples}


def test_a_sample_is_over_its_own_evidence_alone() -> None:
    drawn = load(EXAMPLE, "hotpotqa-mini", tokens=2500)
    assert len(drawn.dataset.documents) == 10 * len(drawn.examples) == 30


def test_an_absent_data_set_names_the_command_that_gets_it(tmp_path: Path) -> None:
    for name in ("hotpotqa", "musique"):
        with pytest.raises(EvaluationError, match=r"kraq bench fetch"):
            load(tmp_path, name)


def test_questions_without_a_corpus_are_refused(tmp_path: Path) -> None:
    save(Dataset("bare", (), (Example("q", "Who?", ("x",)),)), tmp_path / "bare")
    with pytest.raises(EvaluationError, match="no corpus"):
        load(tmp_path, "bare")


def test_a_set_of_the_uniform_schema_works_under_any_name(tmp_path: Path) -> None:
    save(Dataset("mine", (Document("d", "", "text"),), (Example("q", "Who?", ("x",), ("d",)),)), tmp_path / "mine")
    assert load(tmp_path, "mine").dataset.name == "mine"
