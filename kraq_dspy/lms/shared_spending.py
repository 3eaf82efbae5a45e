"""Lets several processes spend from one budget: each notes in shared memory what it spent, and reads what all did."""

from collections.abc import MutableSequence
from dataclasses import dataclass

from kraq_dspy.records import Usage

NOTHING = Usage()
FIELDS = 8
"""Numbers in the row of one process."""


@dataclass(frozen=True, slots=True)
class SpendingTotal:
    """Answered calls with their tokens and cost, and what the calls in flight are expected to take."""

    usage: Usage = NOTHING
    cost: float = 0.0
    in_flight: Usage = NOTHING
    in_flight_cost: float = 0.0

    def __add__(self, other: "SpendingTotal") -> "SpendingTotal":
        return SpendingTotal(
            self.usage + other.usage,
            self.cost + other.cost,
            self.in_flight + other.in_flight,
            self.in_flight_cost + other.in_flight_cost,
        )


class SharedSpending:
    """The rows of all processes, of which this one writes its own alone.

    So none of them needs a lock, which a killed process would keep. Two that ask at the very same moment may each take
    the last call that a limit allows. `memory` holds `FIELDS` numbers a process, zeros at first. A process that takes
    the row of a killed one goes on from what that spent; its calls in flight are over.
    """

    def __init__(self, memory: MutableSequence[float], row: int) -> None:
        self._memory = memory
        self._row = row
        before = self._read(row)
        self._before = SpendingTotal(before.usage, before.cost)
        self.note(SpendingTotal())

    def note(self, spent: SpendingTotal) -> None:
        """What this process has spent since it began, all in all."""
        total = self._before + spent
        numbers = (
            total.usage.calls, total.usage.prompt_tokens, total.usage.completion_tokens, total.cost,
            total.in_flight.calls, total.in_flight.prompt_tokens, total.in_flight.completion_tokens,
            total.in_flight_cost,
        )  # fmt: skip
        for place, number in enumerate(numbers, self._row * FIELDS):
            self._memory[place] = number

    def elsewhere(self) -> SpendingTotal:
        """What the other processes have spent, and those that had this one's row before."""
        rows = range(len(self._memory) // FIELDS)
        return sum((self._read(row) for row in rows if row != self._row), self._before)

    def _read(self, row: int) -> SpendingTotal:
        numbers = [self._memory[place] for place in range(row * FIELDS, (row + 1) * FIELDS)]
        calls, prompt, completion = map(int, numbers[:3])
        calls_in_flight, prompt_in_flight, completion_in_flight = map(int, numbers[4:7])
        in_flight = Usage(calls_in_flight, prompt_in_flight, completion_in_flight)
        return SpendingTotal(Usage(calls, prompt, completion), numbers[3], in_flight, numbers[7])
