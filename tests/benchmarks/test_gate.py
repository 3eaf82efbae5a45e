"""The faults of the gate's benchmark can be planted, and it judges as the gate does."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from gate import (
    Answers,
    KeptVectors,
    Outcome,
    costs_to_have,
    found_by,
    is_fault,
    is_harmless,
    strength_of_fault,
    strength_of_harmless,
)
from planted import FAULTS, HARMLESS, Planted, Setup, missing

from kraq_dspy.eval import evaluate
from kraq_dspy.eval.gate import worse_checks
from kraq_dspy.records import Chunk, Document, Hit
from tests.conftest import KeywordEmbedder

pytestmark = pytest.mark.slow

WORDS = ("harbour", "lighthouse", "ferry", "bridge", "market", "castle", "river", "garden", "station", "museum")
MORE = "Many people come here on a sunny day. " * 12
ARCHIVE = [Document(f"a{number}", f"Archive {number}", f"Box {number} holds letters. {MORE}") for number in range(50)]
PLACES = [
    Document(word, word.title(), f"The {word} of Bergen opened in 18{number}0. {MORE}")
    for number, word in enumerate(WORDS)
]
DOCUMENTS = (*PLACES, *ARCHIVE)
QUESTIONS = [f"When did the {word} open?" for word in WORDS]


@pytest.fixture
def encoder(tmp_path: Path) -> KeptVectors:
    return KeptVectors(KeywordEmbedder(*WORDS), tmp_path / "vectors")


@pytest.mark.parametrize("planted", [*FAULTS, *HARMLESS], ids=lambda planted: planted.name)
def test_every_change_can_be_planted_in_each_of_its_strengths(planted: Planted, encoder: KeptVectors) -> None:
    assert len(set(planted.strengths)) == len(planted.strengths) > 1
    for strength in planted.strengths:
        setup = planted.change(strength)(Setup(DOCUMENTS, planted.retriever))

        found = found_by(setup, QUESTIONS, encoder)

        assert len(found) == len(QUESTIONS)
        assert all(len(documents) <= 10 for documents in found)
        known = {document.id for document in setup.documents}
        assert all(known.issuperset(documents) for documents in found)


def test_there_are_forty_of_each_with_names_of_their_own() -> None:
    assert len(FAULTS) == len(HARMLESS) == 40
    assert len({planted.name for planted in (*FAULTS, *HARMLESS)}) == 80


def test_a_document_that_is_missing_is_not_found_and_the_others_are(encoder: KeptVectors) -> None:
    named = Setup(tuple(PLACES))
    before = found_by(named, QUESTIONS, encoder)
    after = found_by(missing(0.2)(named), QUESTIONS, encoder)

    assert [documents[0] for documents in before] == list(WORDS)
    assert sum(word in documents for word, documents in zip(WORDS, after, strict=True)) == 8


def test_vectors_are_kept_for_a_later_run(encoder: KeptVectors, tmp_path: Path) -> None:
    encoder.encode_queries(["ferry"])
    encoder.save()

    class Refusing(KeywordEmbedder):
        def encode_queries(self, texts):  # type: ignore[no-untyped-def]
            raise AssertionError(f"encoded again: {texts}")

    again = KeptVectors(Refusing(*WORDS), tmp_path / "vectors")
    assert (again.encode_queries(["ferry"]) == encoder.encode_queries(["ferry"])).all()


def losing(n_lost: int, *, is_reordered: bool = True) -> Outcome:
    """One answer to each of 200 questions, and so many lost."""
    return Outcome([1.0] * 200, [float(n >= n_lost) for n in range(200)], is_reordered)


def test_the_costs_to_have_are_spread_evenly_over_one_to_ten_points() -> None:
    costs = costs_to_have(3)

    assert sorted(costs) == pytest.approx([0.025, 0.055, 0.085])
    assert costs == costs_to_have(3)


@pytest.mark.parametrize(
    ("cost", "strength", "n_tried"),
    [(0.02, 2, 2), (0.035, 3, 3), (0.09, 3, 4)],  # 4 points are nearer to .09 than 17.5
)
def test_a_faults_strength_is_the_one_whose_cost_is_nearest(cost: float, strength: int, n_tried: int) -> None:
    lost = {1: 1, 2: 4, 3: 8, 4: 35}
    tried: list[int] = []

    def people(strength: int) -> Outcome:
        tried.append(strength)
        return losing(lost[strength])

    assert strength_of_fault(Planted("a fault", missing, (1, 2, 3, 4)), cost, people) == strength
    assert len(tried) == n_tried


def test_a_fault_that_costs_too_little_or_too_much_in_every_strength_has_none() -> None:
    fault = Planted("a fault", missing, (1, 30))

    assert strength_of_fault(fault, 0.05, losing) is None


def test_a_harmless_change_has_the_first_strength_that_alters_a_ranking_and_costs_nothing() -> None:
    outcomes = {5: losing(5), 4: losing(0, is_reordered=False), 3: losing(1), 2: losing(0)}

    assert strength_of_harmless(Planted("harmless", missing, (5, 4, 3, 2)), outcomes.__getitem__) == 3
    assert strength_of_harmless(Planted("harmless", missing, (5, 4)), outcomes.__getitem__) is None


def test_answers_are_asked_once_and_read_again(tmp_path: Path) -> None:
    questions = {"people": [["When did the ferry open?", ["ferry"]], ["When did the market open?", ["market"]]]}
    (tmp_path / "questions.json").write_text(json.dumps(questions))
    asked: list[str] = []

    def ask(planted: Planted, strength: float, questions: Sequence[str]) -> list[list[str]]:
        asked.append(planted.name)
        return [["ferry"], ["market"] if planted.name.startswith("base") else []]

    fault = Planted("a fault", missing, (0.5,))
    first = Answers(tmp_path, ask).outcome(fault, 0.5, "people")
    again = Answers(tmp_path).outcome(fault, 0.5, "people")

    assert first == again
    assert asked == ["base dense", "a fault"]
    assert first.difference().estimate == -0.5
    assert first.is_reordered
    with pytest.raises(FileNotFoundError, match=r"gate\.py run"):
        Answers(tmp_path).outcome(fault, 0.7, "people")


@pytest.mark.parametrize(("n_found", "is_worse"), [(60, False), (58, False), (50, True)])
def test_the_benchmark_decides_as_the_gate_does(tmp_path: Path, n_found: int, is_worse: bool) -> None:
    rows = [{"id": f"q{n}", "question": f"Question {n}", "supporting_ids": [f"d{n}"]} for n in range(60)]

    def run(count: int, folder: str) -> Path:
        def find(question: str, k: int) -> list[Hit]:
            number = int(question.split()[1])
            name = f"d{number}" if number < count else "nothing"
            return [Hit(Chunk(name, name, 0, 0, 1, "x", 1), 1.0, question)]

        evaluate({"find": find}, rows, ["recall@10"], out=tmp_path / folder)
        return tmp_path / folder

    [check] = worse_checks(run(59, "base"), run(n_found, f"now-{n_found}"))
    outcome = Outcome([float(n < 59) for n in range(60)], [float(n < n_found) for n in range(60)], True)

    assert (outcome.difference().high < 0) is (not check.passed) is is_worse
    assert is_fault(outcome.difference()) is (n_found == 58)  # 1.7 points; 15 are too many
    assert not is_harmless(outcome)
