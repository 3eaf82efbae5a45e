"""Holds the options of the speculative programs, and the papers' sizes for each data set (KRAQ paper, section 4)."""

from dataclasses import dataclass
from typing import Literal

from kraq_dspy.errors import ConfigError
from kraq_dspy.programs.shared.options import option


@dataclass(frozen=True, slots=True)
class SpeculativePreset:
    """`n` passages retrieved, in `k` clusters, for `m` drafts: `SpeculativeRAG(..., **dataclasses.asdict(preset))`."""

    n: int
    k: int
    m: int


SPECULATIVE_PRESETS = {
    "bioasq": SpeculativePreset(n=18, k=5, m=10),
    "hotpotqa": SpeculativePreset(n=10, k=4, m=8),
    "triviaqa": SpeculativePreset(n=10, k=2, m=5),
    "pubhealth": SpeculativePreset(n=10, k=2, m=5),
}
"""As in the thesis, 5.2.6."""


@dataclass(frozen=True)
class SpeculativeOptions:
    """Sizes of a data set of the papers (`preset`), each of which may be overruled; TriviaQA's without one."""

    n: int | None = option(None, "Passages to cluster (the papers' N).", least=1, counts="passages")
    k: int | None = option(None, "Their clusters.", least=1)
    m: int | None = option(None, "Drafts.", least=1)
    preset: Literal["bioasq", "hotpotqa", "triviaqa", "pubhealth"] | None = option(None, "Sizes as in the papers.")
    scorer: Literal["kraq", "wang2024", "drafter_only", "vote"] = option("kraq", "How a draft is chosen.")
    seed: int = option(0, "Of the clusters and of the draw of subsets.", least=0)

    def __post_init__(self) -> None:
        if self.k is not None and self.k > self.sizes.n:
            raise ConfigError(f"{self.sizes.n} passages cannot be put into {self.k} clusters: lower the clusters.")

    @property
    def sizes(self) -> SpeculativePreset:
        base = SPECULATIVE_PRESETS[self.preset or "triviaqa"]
        return SpeculativePreset(
            n=base.n if self.n is None else self.n,
            k=base.k if self.k is None else self.k,
            m=base.m if self.m is None else self.m,
        )


@dataclass(frozen=True)
class EfficientOptions(SpeculativeOptions):
    """As SpeculativeOptions, over what `kraq precompute` stored."""

    min_similarity: float | None = option(
        None, "From which cosine on a stored question stands in; none for what kraq calibrate found.", least=-1, most=1
    )
    questions: Literal["kraq", "random"] = option("kraq", "Questions that stand in: kraq, or random (a baseline).")
