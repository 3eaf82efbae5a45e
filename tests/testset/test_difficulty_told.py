"""Plain rankers sit the test set first, and a model of who solves what says which questions tell something."""

from collections.abc import Sequence

import numpy as np

from kraq_dspy.ports import Vectors
from kraq_dspy.records import Chunk
from kraq_dspy.retrievers.in_memory import RecordsInMemory
from kraq_dspy.testset.item_response import MOST_TOLD, fit, information
from kraq_dspy.testset.rankers import RANKERS, Rankers
from kraq_dspy.workspace.registry import RETRIEVERS


def test_what_more_retrievers_solve_is_easier_and_who_solves_more_is_abler() -> None:
    solved = np.array([[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0]])

    difficulties, abilities = fit(solved)

    assert list(np.argsort(difficulties)) == [0, 1, 2, 3]
    assert list(np.argsort(-abilities)) == [0, 1, 2]


def test_a_fit_finds_the_difficulties_that_answers_were_drawn_from() -> None:
    draw = np.random.default_rng(0)
    true_difficulties, true_abilities = draw.normal(0, 1.5, 200), draw.normal(0, 1, 40)
    chance = 1 / (1 + np.exp(true_difficulties[:, None] - true_abilities[None, :]))

    difficulties, abilities = fit(draw.random(chance.shape) < chance)

    assert np.corrcoef(difficulties, true_difficulties)[0, 1] > 0.95
    assert np.corrcoef(abilities, true_abilities)[0, 1] > 0.95


def test_a_question_that_all_or_none_solve_tells_least() -> None:
    solved = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 0, 0], [1, 0, 1, 0]])

    told = information(solved)

    assert min(told[1], told[3]) > max(told[0], told[2])
    assert all(0 < one <= MOST_TOLD for one in told)


def test_what_a_question_tells_of_a_retriever_does_not_depend_on_that_retriever_alone() -> None:
    """Left out in turn: a row that one of four solves tells as much, whichever of them it is."""
    alike = np.eye(4)[:, :4]

    told = information(alike)

    assert np.allclose(told, told[0])
    assert np.allclose(information(np.ones((3, 1))), MOST_TOLD)
    assert information(np.zeros((0, 4))).shape == (0,)


class ByLength:
    """An encoder whose vectors say how long a text is."""

    name, dimension = "by length", 2

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        return np.array([[len(text), 1] for text in texts], np.float32)

    encode_queries = encode_passages


def test_rankers_find_what_shares_letters_or_words_and_none_of_them_is_offered_as_a_retriever() -> None:
    texts = {f"d{number}": f"Nothing much is said in place {number}." for number in range(8)}
    texts["gold"] = "Quixotic windmills turned."
    chunks = [Chunk(f"c-{name}", name, 0, 0, len(text), text, 5) for name, text in texts.items()]
    vectors = ByLength().encode_passages(list(texts.values()))
    rankers = Rankers(chunks, RecordsInMemory(chunks, vectors), ByLength())

    recalls = rankers.recalls(["Who saw quixotic windmills?", "Who saw quixotics?"], [["gold"], ["gold", "missing"]])

    assert recalls.shape == (2, len(RANKERS))
    assert list(recalls[0, :3]) == [1, 1, 1]
    assert recalls[1, 0] == 0.5  # by letters, although no word is shared; one of two documents
    assert not set(RANKERS) & set(RETRIEVERS)
