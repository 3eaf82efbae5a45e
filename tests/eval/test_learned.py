"""Tests that questions which an adapter learned from are left out where it is measured."""

from pathlib import Path

import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import Dataset, Example
from kraq_dspy.eval.questions import fingerprint_of, learned_by, learned_note, without_learned, write_learned
from kraq_dspy.models.lms.local_models import QUESTIONS
from kraq_dspy.papers.tables.data import load
from kraq_dspy.records import Document
from tests.eval.saving import save

ASKED = [Example("a", "Who directed The Nun?", ("Corin Hardy",)), Example("b", "Where is Oslo?", ("Norway",))]


def test_a_question_is_told_again_whatever_its_punctuation(tmp_path: Path) -> None:
    write_learned(tmp_path, ["who directed the nun", "What is KRAQ?"])
    learned = learned_by([f"gguf/m.gguf#{tmp_path}@1a2b3c4d", "openai/gpt-4o-mini", "gguf/other.gguf#nowhere@1a2b3c4d"])
    assert len(learned) == 2
    assert [example.id for example in without_learned(ASKED, learned)] == ["b"]
    assert fingerprint_of("Where is Oslo") not in learned


def test_a_data_set_is_loaded_without_them_and_says_how_many(tmp_path: Path) -> None:
    save(Dataset("mine", (Document("d", "", "Oslo is in Norway."),), tuple(ASKED)), tmp_path / "mine")
    questions = load(tmp_path, "mine", learned={fingerprint_of(ASKED[0].question)})
    assert [example.id for example in questions.examples] == ["b"]
    assert questions.learned == 1
    assert learned_note(1) == "1 question is left out: an adapter in use was trained on it."


def test_the_shipped_adapter_names_what_it_saw() -> None:
    assert len(learned_by([f"gguf/smollm2-135m#{QUESTIONS}@1a2b3c4d"])) > 600


def test_a_file_that_holds_no_fingerprints_is_told(tmp_path: Path) -> None:
    (tmp_path / "learned.json").write_text("nothing")
    with pytest.raises(EvaluationError, match="no fingerprints"):
        learned_by([f"gguf/m.gguf#{tmp_path}"])
