"""Free cores of the machine that the tests run on, within what must hold anywhere."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kraq_dspy.errors import ConfigError
from kraq_dspy.models import machine
from kraq_dspy.models.machine import device_named, multiplies_in_bf16
from kraq_dspy.settings import EncoderSettings
from tests.lazily import lazily

torch = lazily("torch", "transformers")


def torch_with(*, cuda: bool = False, mps: bool = False) -> SimpleNamespace:
    return SimpleNamespace(
        __version__="2.0",
        cuda=SimpleNamespace(is_available=lambda: cuda),
        backends=SimpleNamespace(mps=SimpleNamespace(is_available=lambda: mps)),
    )


@pytest.mark.parametrize(
    ("devices", "name", "expected"),
    [
        (torch_with(), "auto", "cpu"),
        (torch_with(cuda=True, mps=True), "auto", "cuda"),
        (torch_with(mps=True), "auto", "mps"),
        (torch_with(cuda=True), "cpu", "cpu"),
        (torch_with(cuda=True), "cuda", "cuda"),
    ],
)
def test_auto_is_the_best_that_is_there(devices: SimpleNamespace, name: str, expected: str) -> None:
    assert device_named(name, devices) == expected


def test_a_device_that_is_not_there_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match=r'device is "cuda", which torch 2.0 does not reach here; it reaches "cpu"'):
        device_named("cuda", torch_with())
    with pytest.raises(ConfigError, match="device"):
        EncoderSettings(device="tpu")


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere torch is asked")
@pytest.mark.parametrize(
    ("flags", "expected"), [("fpu avx512f avx512_bf16 amx_tile", True), ("fpu amx_bf16", True), ("fpu avx512f", False)]
)
def test_bf16_is_read_from_what_linux_knows_of_the_processor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: str, expected: bool
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    monkeypatch.setattr(machine, "_PROCESSORS", tmp_path / "cpuinfo")

    assert multiplies_in_bf16() is expected


def test_linux_and_torch_agree_about_this_processor() -> None:
    able: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()

    assert multiplies_in_bf16() == bool(able.get("avx512_bf16") or able.get("amx_bf16"))
