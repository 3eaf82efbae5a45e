"""The papers' settings for each data set (KRAQ paper, section 4; thesis, 5.2.7)."""

from dataclasses import dataclass


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
