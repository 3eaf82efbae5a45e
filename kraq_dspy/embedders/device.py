"""Chooses where an encoder computes: a GPU where there is one, else the processor."""

from typing import Any

from kraq_dspy.errors import ConfigError


def device_named(name: str, torch: Any) -> str:
    """ "cpu", "cuda" or "mps" for `name`; "auto" is the best that this torch can reach.

    Raises ConfigError where the named one is not there.
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
