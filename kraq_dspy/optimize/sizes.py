"""Declares how large an optimizer's run is, each number once: `Sizes` in Python, options of `kraq optimize`."""

from dataclasses import dataclass

from kraq_dspy._internal.options import Checked, option

DOMAIN_PASSAGES = 15
"""Passages of a corpus from which a model says what it is about."""


@dataclass(frozen=True)
class Sizes(Checked):
    """The sizes of an optimizer's search.

    Args:
        demos: demonstrations of a predictor.
        candidates: programs or instructions to try at a time.
        rounds: rounds of an optimizer that has rounds.
        threads: examples to work on at once.

    >>> Sizes(demos=2).candidates
    6
    """

    demos: int = option(4, "Demonstrations in a prompt.", least=1)
    candidates: int = option(6, "Programs or instructions to try.", least=2)
    rounds: int = option(3, "Optimization rounds (mipro only).", least=1)
    threads: int = option(8, "Rows at work at once.", least=1)

    @property
    def trials(self) -> int:
        """Combinations that mipro measures."""
        return self.candidates * self.rounds
