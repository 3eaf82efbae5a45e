"""Holds what all kinds of questions share while one set is made: its steps, its corpus, its gold, its seed."""

from dataclasses import dataclass

from kraq_dspy.exam.corpus import Corpus
from kraq_dspy.exam.gold import GoldCollector
from kraq_dspy.exam.steps import TestsetSteps


@dataclass(frozen=True, slots=True)
class ExamRun:
    """One run of `make_testset`, as a kind sees it."""

    steps: TestsetSteps
    corpus: Corpus
    gold: GoldCollector
    seed: int
