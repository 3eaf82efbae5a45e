"""Tells what this machine has for models in this process: a GPU, products in bf16."""

import sys
from pathlib import Path
from typing import Any

from kraq_dspy.errors import ConfigError, needs
from kraq_dspy.settings import PRECISIONS

_BF16 = frozenset(("avx512_bf16", "amx_bf16"))
_PROCESSORS = Path("/proc/cpuinfo")


def device_named(name: str, torch: Any) -> str:
    """ "cpu", "cuda" or "mps" for `name`; "auto" is the best that this torch can reach.

    Raises ConfigError if the named one is not there.
    """
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if name == "auto":
        return next(device for device, is_there in there.items() if is_there)
    if not there.get(name):
        reachable = " or ".join(f'"{device}"' for device, is_there in there.items() if is_there)
        raise ConfigError(
            f'device is "{name}", which torch {torch.__version__} does not reach here; it reaches {reachable}.'
        )
    return name


def precision_of(precision: str) -> str:
    """Return what "auto" means on this machine; "fp32" and "bf16" themselves. Without support in
    hardware bf16 is slower."""
    if precision not in PRECISIONS:
        raise ConfigError(f'precision is {precision!r}; it must be "auto", "fp32" or "bf16".')
    if precision != "auto":
        return precision
    return "bf16" if multiplies_in_bf16() else "fp32"


def multiplies_in_bf16() -> bool:
    """Whether this processor does, as Linux tells, or else torch, whose import takes seconds."""
    if sys.platform == "linux":
        return not _BF16.isdisjoint(_PROCESSORS.read_text().split())
    with needs("torch", "transformers", "A model in torch"):
        import torch
    able: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()
    return any(able.get(name) for name in _BF16)
