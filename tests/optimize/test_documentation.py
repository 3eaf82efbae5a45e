"""The worked example of docs/guide/optimizing.md runs as it is printed, and its options exist."""

import re
from pathlib import Path

from kraq_dspy.optimize import OPTIMIZERS, STEPS
from tests.conftest import WarmShell

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "guide" / "optimizing.md").read_text("utf-8")
STEPS_PAGE = (ROOT / "docs" / "reference" / "steps.md").read_text("utf-8")


def test_the_worked_example_runs(tmp_path: Path, kraq: WarmShell) -> None:
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)).replace('"examples/', f'"{ROOT}/examples/')
    process = kraq.python(code, cwd=tmp_path)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    before, problems, state, *_, guess = output.splitlines()
    assert re.fullmatch(r"before (\d\.\d\d), after \1", before)
    assert "cannot improve" in problems
    assert "demonstrations, made by labeled" in state
    assert guess.startswith("Guess token_f1")


def test_every_option_that_is_named_exists(kraq: WarmShell) -> None:
    documented = {}
    for command in ("optimize", "index", "ask"):
        documented[command] = kraq(command, "--help-all").stdout
    reference = (ROOT / "docs" / "reference" / "commands.md").read_text("utf-8")
    for group in ("eval", "testset", "faq"):  # whose own help lists commands alone
        documented[group] = "".join(part for part in reference.split("\n### ") if part.startswith(f"`kraq {group}"))

    for option in re.findall(r"`(--[a-z-]+)", PAGE):
        assert any(option in help for help in documented.values()), option
    for command, rest in re.findall(r"^    kraq (\w+)(.*)$", PAGE, re.MULTILINE):
        for option in re.findall(r"--[a-z-]+", rest):
            assert option in documented[command], (command, option)


def test_every_step_and_every_optimizer_has_its_row() -> None:
    for step in STEPS:
        assert f"\n| {step} |" in STEPS_PAGE
    for optimizer in OPTIMIZERS:
        assert f"\n| `{optimizer}` |" in PAGE
