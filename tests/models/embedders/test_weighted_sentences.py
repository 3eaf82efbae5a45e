"""The weights are checked on made-up vectors; that they follow questions, with the packaged encoder."""

from collections.abc import Sequence

import numpy as np
import pytest

from kraq_dspy.models.embedders.instructed import WeightedSentences, load_instructed_embedder
from kraq_dspy.ports import Vectors
from kraq_dspy.settings import InstructedSettings

SENTENCES = {
    "Ada was born in Rome.": [1.0, 0.0, 0.0],
    "She built a ship.": [0.0, 1.0, 0.0],
    "It sank.": [0.0, 0.6, 0.8],
    "": [0.0, 0.0, 1.0],
    " \n": [0.0, 0.0, 1.0],
}


class Known:
    """Vectors that the tests choose, and how many passages were read."""

    name, dimension = "known", 3

    def __init__(self) -> None:
        self.read: list[str] = []

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return np.array([[1.0, 0.0, 0.0] for _ in texts], dtype=np.float32)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        self.read += texts
        return np.array([SENTENCES[text] for text in texts], dtype=np.float32).reshape(len(texts), 3)


def test_a_passage_is_the_softmax_of_its_sentences_by_their_cosine_with_the_question() -> None:
    [vector] = WeightedSentences(Known(), sharpness=2.0).encode("Where?", ["Ada was born in Rome. She built a ship."])
    weights = np.exp([2.0, 0.0]) / np.exp([2.0, 0.0]).sum()
    assert vector == pytest.approx(np.array([*weights, 0]) / np.linalg.norm(weights), abs=1e-6)


@pytest.mark.parametrize(("sharpness", "expected"), [(0.0, [1, 1, 0]), (1000.0, [1, 0, 0])])
def test_no_sharpness_is_the_mean_and_a_great_one_the_nearest_sentence(sharpness: float, expected: list[int]) -> None:
    [vector] = WeightedSentences(Known(), sharpness=sharpness).encode("?", ["Ada was born in Rome. She built a ship."])
    assert vector == pytest.approx(np.array(expected) / np.linalg.norm(expected), abs=1e-6)


def test_sentences_that_were_read_are_weighed_for_any_question_without_reading_them_again() -> None:
    known = Known()
    embedder = WeightedSentences(known)
    passages = ["Ada was born in Rome. She built a ship.", "It sank."]
    sentences = embedder.sentences(passages)
    assert known.read == ["Ada was born in Rome.", "She built a ship.", "It sank."]
    assert embedder.weighed("When?", sentences[::-1]) == pytest.approx(embedder.encode("When?", passages)[::-1])
    assert [rows.shape for rows in sentences] == [(2, 3), (1, 3)]


@pytest.mark.parametrize("blank", ["", " \n"])
def test_a_passage_without_a_sentence_is_read_as_it_is(blank: str) -> None:
    assert WeightedSentences(Known()).encode("?", [blank]) == pytest.approx(np.array([[0, 0, 1]]))
    assert WeightedSentences(Known()).encode("?", []).shape == (0, 3)


def test_another_question_moves_passages_and_rows_have_length_one() -> None:
    pytest.importorskip("torch", reason="needs torch: pip install 'kraq-dspy[transformers]'")
    embedder = load_instructed_embedder(InstructedSettings(kind="sentences"))
    passages = [
        "Ada was born in Rome. She studied whales for thirty years.",
        "Ben was born in Rome. He wrote a cookbook about soup.",
    ]
    birth, work = (
        embedder.encode(question, passages) for question in ("Who was born in Rome?", "What did they study?")
    )
    assert np.linalg.norm(birth, axis=1) == pytest.approx([1, 1], abs=1e-5)
    assert birth[0] @ birth[1] > work[0] @ work[1] + 0.1
    assert embedder.name.startswith("sentences:")
