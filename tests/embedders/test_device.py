from types import SimpleNamespace

import pytest

from kraq_dspy.config import EncoderSettings
from kraq_dspy.embedders.device import device_named
from kraq_dspy.errors import ConfigError


def torch_with(*, cuda: bool = False, mps: bool = False) -> SimpleNamespace:
    return SimpleNamespace(
        __version__="2.0",
        cuda=SimpleNamespace(is_available=lambda: cuda),
        backends=SimpleNamespace(mps=SimpleNamespace(is_available=lambda: mps)),
    )


@pytest.mark.parametrize(
    ("torch", "name", "expected"),
    [
        (torch_with(), "auto", "cpu"),
        (torch_with(cuda=True, mps=True), "auto", "cuda"),
        (torch_with(mps=True), "auto", "mps"),
        (torch_with(cuda=True), "cpu", "cpu"),
        (torch_with(cuda=True), "cuda", "cuda"),
    ],
)
def test_auto_is_the_best_that_is_there(torch: SimpleNamespace, name: str, expected: str) -> None:
    assert device_named(name, torch) == expected


def test_a_device_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match=r'device is "cuda", which torch 2.0 does not reach here; it reaches "cpu"'):
        device_named("cuda", torch_with())
    with pytest.raises(ConfigError, match="device"):
        EncoderSettings(device="tpu")
