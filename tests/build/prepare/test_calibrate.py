"""Questions are angles: the proxy's cosine is that of the angle between, and beyond 40 degrees the clusters change."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kraq_dspy.asset.store.vectors import LocalVectorStore
from kraq_dspy.build.prepare.calibrate import Calibration, CalibrationPlan, SeenFrom, calibrate
from kraq_dspy.errors import IndexStateError
from kraq_dspy.ports import Vectors
from kraq_dspy.records import Chunk, Hit, Question, content_id

PASSAGES = [f"passage {i}" for i in range(8)]
QUESTIONS = [Question(content_id("q", str(angle)), str(angle), "kraq", None, 0, (), ()) for angle in range(0, 180, 10)]


def direction(angle: float) -> list[float]:
    return [math.cos(math.radians(angle)), math.sin(math.radians(angle))]


class Sectors:
    """From a question at angle a, passages are split by a bit of their number, another for every 60 degrees."""

    name, dimension = "sectors", 2

    def __init__(self) -> None:
        self.passes = 0

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        self.passes += len(passages)
        bit = int(question) // 60
        sides = [int(passage.split()[1]) >> bit & 1 for passage in passages]
        return np.eye(2, dtype=np.float32)[sides]


def encode(text: str) -> Vectors:
    return np.array(direction(float(text)), dtype=np.float32)


def retrieve(question: str, k: int, **_: Any) -> list[Hit]:
    chunks = [Chunk(content_id(text), "doc", i, 0, len(text), text, 1) for i, text in enumerate(PASSAGES)]
    return [Hit(chunk, 1.0, question) for chunk in chunks][:k]


@pytest.fixture
def vectors(tmp_path: Path) -> Iterator[LocalVectorStore]:
    store = LocalVectorStore(tmp_path / "questions", 2)
    store.upsert([q.id for q in QUESTIONS], np.stack([encode(q.text) for q in QUESTIONS]))
    yield store
    store.close()


def run(vectors: LocalVectorStore, **changes: Any) -> Calibration:
    users = {name: changes.pop(name) for name in ("user_questions", "encode") if name in changes}
    plan = CalibrationPlan(**{"n": 8, "k": 2, "n_questions": 18, "ranks": (1, 2, 4, 8, 12, 17), **changes})
    return calibrate(QUESTIONS, vectors, retrieve, SeenFrom(Sectors()), plan, **users)


def test_near_proxies_agree_and_far_ones_do_not(vectors: LocalVectorStore) -> None:
    calibration = run(vectors)
    assert calibration.agreement_at(math.cos(math.radians(10))) > 0.6
    assert calibration.agreement_at(math.cos(math.radians(80))) < 0.2
    assert calibration.agreement_at(1.0) == 1.0
    assert calibration.noise_floor == 1.0  # two clean clusters: every seed finds them
    assert calibration.n_pairs == 18 * 6


def test_the_threshold_is_the_least_cosine_with_the_wanted_agreement_and_rises_with_it(
    vectors: LocalVectorStore,
) -> None:
    loose, strict = run(vectors, wanted=0.3), run(vectors, wanted=0.9)
    assert loose.threshold < strict.threshold <= 1.0
    for calibration in (loose, strict):
        assert calibration.agreement_at(calibration.threshold) >= calibration.wanted
        assert calibration.agreement_at(calibration.threshold - 0.05) < calibration.wanted


def test_real_questions_can_stand_in_for_the_users(vectors: LocalVectorStore) -> None:
    calibration = run(vectors, user_questions=["5", "95"], encode=encode, ranks=(1, 2))
    # 0 and 10 degrees are 5 degrees away from the first, 90 and 100 from the second.
    assert calibration.n_pairs == 4
    assert calibration.nearest == pytest.approx(math.cos(math.radians(5)), abs=1e-5)


def test_a_passage_is_embedded_once_for_each_question(vectors: LocalVectorStore) -> None:
    encoder = Sectors()
    calibrate(QUESTIONS, vectors, retrieve, SeenFrom(encoder), CalibrationPlan(n=8, k=2, n_questions=18))
    assert encoder.passes == len(QUESTIONS) * 8


def test_what_is_stored_is_not_embedded_again(vectors: LocalVectorStore) -> None:
    class Stored:
        def lookup(self, question_id: str, chunk_ids: Sequence[str]) -> tuple[Vectors, Any]:
            texts = {question.id: question.text for question in QUESTIONS}
            return Sectors().encode(texts[question_id], PASSAGES), np.ones(len(chunk_ids), bool)

    encoder, plan = Sectors(), CalibrationPlan(n=8, k=2, n_questions=18)
    result = calibrate(QUESTIONS, vectors, retrieve, SeenFrom(encoder, Stored()), plan)
    assert encoder.passes == 0
    assert result == calibrate(QUESTIONS, vectors, retrieve, SeenFrom(Sectors()), plan)


def test_the_same_seed_gives_the_same_calibration(vectors: LocalVectorStore) -> None:
    assert run(vectors, n_questions=5, seed=3) == run(vectors, n_questions=5, seed=3)
    assert run(vectors, n_questions=5, seed=3) != run(vectors, n_questions=5, seed=4)


def test_what_cannot_be_calibrated_is_an_error(vectors: LocalVectorStore) -> None:
    with pytest.raises(IndexStateError, match="has 1 question;"):
        calibrate(QUESTIONS[:1], vectors, retrieve, SeenFrom(Sectors()))
    with pytest.raises(IndexStateError, match="fewer clusters"):
        run(vectors, k=8)
    with pytest.raises(ValueError, match="give `encode`"):
        run(vectors, user_questions=["5"])
