"""The papers' settings for each data set (KRAQ paper, section 4; thesis, 5.2.7)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preset:
    """`n` passages retrieved, in `k` clusters, for `m` drafts."""

    n: int
    k: int
    m: int


PRESETS = {
    "bioasq": Preset(n=18, k=5, m=10),
    "hotpotqa": Preset(n=10, k=4, m=8),
    "triviaqa": Preset(n=10, k=2, m=5),
    "pubhealth": Preset(n=10, k=2, m=5),
}
