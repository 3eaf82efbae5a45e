"""The faults of the gate's benchmark can be planted, and it judges as the gate does."""

from pathlib import Path

import pytest
from gate import KeptVectors, Outcome, found_by, is_fault, is_harmless
from planted import FAULTS, HARMLESS, Planted, Setup, missing

from kraq_dspy.eval import evaluate
from kraq_dspy.eval.gate import worse_checks
from kraq_dspy.records import Chunk, Document, Hit
from tests.conftest import KeywordEmbedder

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
    return KeptVectors(KeywordEmbedder(*WORDS), tmp_path / "vectors.npz")


@pytest.mark.parametrize("planted", [*FAULTS, *HARMLESS], ids=lambda planted: planted.name)
def test_every_change_can_be_planted(planted: Planted, encoder: KeptVectors) -> None:
    setup = planted.change(Setup(DOCUMENTS, planted.retriever))

    found = found_by(setup, QUESTIONS, encoder)

    assert setup != Setup(DOCUMENTS, planted.retriever)
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

    again = KeptVectors(Refusing(*WORDS), tmp_path / "vectors.npz")
    assert (again.encode_queries(["ferry"]) == encoder.encode_queries(["ferry"])).all()


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
