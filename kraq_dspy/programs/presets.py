"""The settings with which the papers ran on each data set (KRAQ paper, section 3.1; thesis, chapter 4)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CombinedPreset:
    """`k` passages in all (M in the paper), `n` auxiliary questions, the share `alpha` for the user's own question.

    `CombinedRetrieveRAG(retrieve, questions, **dataclasses.asdict(preset))`; TraditionalRAG takes the same `k`.
    """

    k: int = 15
    n: int = 2
    alpha: float = 0.5


COMBINED_PRESETS = {
    "triviaqa": CombinedPreset(),
    "hotpotqa": CombinedPreset(),
    "bioasq": CombinedPreset(),
    "pubhealth": CombinedPreset(k=10),
}
