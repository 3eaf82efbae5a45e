"""The benchmark of test sets asks only what it has no score of, and counts what a set says of systems and faults."""

import json
from pathlib import Path

import numpy as np
import pytest
from testset_ranking import Questions, ask, compare, faults, lacking, part_in
from testset_systems import SYSTEMS, K, Scores

pytestmark = pytest.mark.slow

ADA, EVE, BOB = ("Where did Ada live?", {"ada"}), ("Where did Eve live?", {"eve"}), ("Who was Bob?", {"bob"})


def questions(*pairs: tuple[str, set[str]]) -> Questions:
    return [(text, frozenset(gold)) for text, gold in pairs]


class Finder:
    """Finds one document for every question, and remembers the questions."""

    def __init__(self, document: str) -> None:
        self.document = document
        self.asked: list[str] = []

    def __call__(self, question: str) -> list[str]:
        self.asked.append(question)
        return [self.document] * K


def test_questions_that_came_later_are_asked_alone(tmp_path: Path) -> None:
    file, find = tmp_path / "dense.json", Finder("ada")
    ask(find, questions(ADA, EVE), file)
    assert not lacking(file, questions(ADA, EVE))
    assert lacking(file, questions(ADA, EVE, BOB))

    ask(find, questions(ADA, EVE, BOB), file)

    assert find.asked == [ADA[0], EVE[0], BOB[0]]
    assert json.loads(file.read_text("utf-8"))["scores"] == [1.0, 0.0, 0.0]


def test_other_questions_are_asked_anew(tmp_path: Path) -> None:
    file = tmp_path / "dense.json"
    ask(Finder("ada"), questions(ADA, EVE), file)

    find = Finder("bob")
    ask(find, questions(BOB, EVE), file)

    assert find.asked == [BOB[0], EVE[0]]
    assert json.loads(file.read_text("utf-8"))["scores"] == [1.0, 0.0]


def scores_that_rank(best_first: list[int]) -> Scores:
    """Of forty questions, each system finds one less than the one before it."""
    scores = np.zeros((40, len(SYSTEMS)))
    for place, system in enumerate(best_first):
        scores[: 38 - 3 * place, system] = 1
    return scores


@pytest.mark.parametrize(("order", "agreed"), [([0, 1, 2, 3], 6), ([3, 2, 1, 0], 0)])
def test_pairs_that_people_separate_are_counted_by_what_the_other_set_says(order: list[int], agreed: int) -> None:
    compared = compare(scores_that_rank([0, 1, 2, 3]), scores_that_rank(order), [0, 1, 2, 3])

    assert compared["separated"] >= 3
    assert compared["undecided"] == 0
    assert compared["agree"] == (compared["separated"] if agreed else 0)
    assert compared["tau"] == pytest.approx(1 if agreed else -1)
    assert compared["lost"] == pytest.approx(0 if agreed else 9 / 40)


def test_a_fault_is_noticed_where_the_whole_system_is_better_than_the_broken_one() -> None:
    places = {system.name: place for place, system in enumerate(SYSTEMS)}
    people = np.zeros((40, len(SYSTEMS)))
    people[:30, places["dense"]] = 1
    blind = np.ones((40, len(SYSTEMS)))
    upside_down = 1 - people

    n_of_dense = sum(system.broken and system.name.startswith("dense") for system in SYSTEMS)
    assert n_of_dense > 1
    assert faults(people, people) == {"noticed": n_of_dense, "missed": 0, "beyond": 0, "better": 0}
    assert faults(people, blind) == {"noticed": 0, "missed": n_of_dense, "beyond": 0, "better": 0}
    assert faults(people, upside_down) == {"noticed": 0, "missed": n_of_dense, "beyond": 0, "better": n_of_dense}


def test_parts_of_the_systems_are_told_as_one_of_how_many() -> None:
    parts = [SYSTEMS[first::step] for first, step in (part_in("0/2"), part_in("1/2"))]

    assert sorted(system.name for part in parts for system in part) == sorted(system.name for system in SYSTEMS)
