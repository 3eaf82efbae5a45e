"""Follows a batch that transformers generates: what each row asked for, its log-probabilities, where it ends."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from kraq_dspy.models.lms.engines.loops import TEXT_UNIT, in_loop

_LOOK_EVERY = 16  # tokens between two looks for a loop: each decodes the reply


@dataclass(frozen=True, slots=True)
class GenerationJob:
    """One prompt as token ids, and how its row is to be sampled."""

    ids: list[int]
    adapter: str
    model: str
    max_tokens: int
    temperature: float
    top_p: float
    seed: int | None
    stop: tuple[str, ...]
    alternatives: int | None  # log-probabilities of so many other tokens; None: of none at all
    matcher: Any | None = None  # holds the reply to a JSON schema
    loop_unit: int | None = None  # leaves a loop of so many characters (`loops.in_loop`)


class LogprobRecorder:
    """A logits processor that changes nothing: keeps the log-probability of every token that was chosen.

    Processors run before temperature and top-p, and a step's choice is known at the next step. Keeping all logits, as
    `output_logits` does, would take gigabytes.
    """

    def __init__(self, torch: Any, alternatives: int) -> None:
        self.torch = torch
        self.alternatives = alternatives  # -1: nobody wants any
        self.chosen: list[list[float]] = []
        self.best: list[list[list[tuple[int, float]]]] = []
        self._last: Any = None

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        if self.alternatives >= 0:
            self.finish(input_ids)
            self._last = self.torch.log_softmax(scores.float(), dim=-1)
        return scores

    def finish(self, input_ids: Any) -> None:
        """The last column of `input_ids` is what was chosen from the last scores."""
        if self._last is None:
            return
        self.chosen.append(self._last.gather(1, input_ids[:, -1:])[:, 0].tolist())
        top = self._last.topk(self.alternatives) if self.alternatives else None
        rows = len(self.chosen[-1])
        self.best.append(
            [list(zip(top.indices[row].tolist(), top.values[row].tolist(), strict=True)) for row in range(rows)]
            if top is not None
            else [[]] * rows
        )
        self._last = None


class RowLimits:
    """A stopping criterion by row: its own token limit is reached, nobody waits for it any more, or it runs in a loop.

    `ends[row]` is where a loop was left, in tokens behind the prompt.
    """

    def __init__(
        self,
        torch: Any,
        jobs: Sequence[GenerationJob],
        cancelled: Sequence[Callable[[], bool]],
        n_prompt: int,
        decode: Callable[[Any], str],
    ) -> None:
        self.torch = torch
        self.jobs = jobs
        self.cancelled = cancelled
        self.n_prompt = n_prompt
        self.decode = decode
        self.ends: dict[int, int] = {}

    def __call__(self, input_ids: Any, scores: Any, **_: Any) -> Any:
        written = input_ids.shape[1] - self.n_prompt
        if written % _LOOK_EVERY == 0:
            looked = (row for row, job in enumerate(self.jobs) if job.loop_unit and row not in self.ends)
            self.ends |= {row: written for row in looked if self._loops(row, input_ids)}
        rows = zip(self.jobs, self.cancelled, strict=True)
        done = [written >= job.max_tokens or gone() or row in self.ends for row, (job, gone) in enumerate(rows)]
        return self.torch.tensor(done, dtype=self.torch.bool, device=input_ids.device)

    def _loops(self, row: int, input_ids: Any) -> bool:
        return in_loop(self.decode(input_ids[row, self.n_prompt :]), self.jobs[row].loop_unit or TEXT_UNIT)


def pieces_until(pieces: Sequence[str], cut: int) -> list[str]:
    """The pieces of the first `cut` characters; the last may be a part of a token."""
    kept: list[str] = []
    length = 0
    for piece in pieces:
        if length >= cut and piece:
            break
        kept.append(piece[: cut - length])
        length += len(piece)
    return kept


def batches_by_tokens(rows: Sequence[Any], limit: int) -> Iterator[list[Any]]:
    """Batches whose padded size stays below `limit` tokens, in order; a longer row is a batch of its own."""
    batch: list[Any] = []
    longest = 0
    for row in rows:
        size = sum(map(len, row))
        if batch and max(longest, size) * (len(batch) + 1) > limit:
            yield batch
            batch, longest = [], 0
        batch.append(row)
        longest = max(longest, size)
    if batch:
        yield batch
