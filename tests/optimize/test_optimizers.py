"""Each of DSPy's optimizers at toy size, on a model that learns from its prompt."""

import importlib.util
from collections.abc import Callable

import dspy
import pytest

from kraq_dspy.errors import ConfigError, MissingExtraError
from kraq_dspy.optimize import OPTIMIZERS, Method, Resources, Sizes, compile_program
from kraq_dspy.optimize.optimizers import find_optimizer
from kraq_dspy.optimize.rows import Row
from tests.optimize.learner import Learner

TOY = Sizes(demos=2, candidates=3, rounds=2, threads=2)


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
def test_every_optimizer_finds_what_the_model_can_learn(
    optimizer: str,
    models: dict[str, dspy.LM],
    engine: Learner,
    answering: Callable[[int], list[Row]],
) -> None:
    compiled = compile_program(
        "answering",
        answering(16),
        method=Method(optimizer, sizes=TOY),
        resources=Resources(lm=models),
        metric="token_f1",
    )
    assert max(compiled.before) < 0.3  # whole sentences
    assert compiled.after == (1.0,) * 8  # the year alone
    assert engine.calls == compiled.usage.calls


def test_an_unknown_optimizer_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"no optimizer 'bootstrp'.*random-search"):
        find_optimizer("bootstrp")


@pytest.mark.parametrize(("optimizer", "package"), [("mipro", "optuna"), ("gepa", "gepa")])
def test_a_missing_package_is_told_before_the_first_call(
    optimizer: str,
    package: str,
    models: dict[str, dspy.LM],
    engine: Learner,
    answering: Callable[[int], list[Row]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *more: None if name == package else find_spec(name, *more)
    )
    with pytest.raises(MissingExtraError, match=rf"{package}.*kraq-dspy\[optimize\]"):
        compile_program("answering", answering(16), method=optimizer, resources=Resources(lm=models))
    assert engine.calls == 0


def test_labeled_shows_rows_without_asking_for_them(
    models: dict[str, dspy.LM], engine: Learner, answering: Callable[[int], list[Row]]
) -> None:
    compiled = compile_program(
        "answering", answering(16), method=Method("labeled", sizes=TOY), resources=Resources(lm=models)
    )
    assert engine.calls == 16  # 8 rows, measured before and after
    [predictor] = compiled.program.predictors()
    assert [set(demo.keys()) - {"augmented"} for demo in predictor.demos] == [{"question", "passages", "answer"}] * 2


def test_labeled_is_refused_where_rows_do_not_hold_what_the_step_writes(models: dict[str, dspy.LM]) -> None:
    rows = [{"passage": f"Ada met Charles {n}.", "triples": [["Ada", "met", f"Charles {n}"]]} for n in range(8)]
    with pytest.raises(ConfigError, match="Choose bootstrap"):
        compile_program("extraction", rows, method="labeled", resources=Resources(lm=models))


@pytest.mark.parametrize("optimizer", ["mipro", "gepa"])
def test_the_embedded_model_is_not_asked_to_write_instructions(
    optimizer: str, answering: Callable[[int], list[Row]]
) -> None:
    with pytest.raises(ConfigError, match="embedded one cannot"):
        compile_program("answering", answering(16), method=optimizer)


def test_sizes_that_make_no_sense_are_refused() -> None:
    with pytest.raises(ConfigError, match="candidates is 1; it must be a whole number, 2 or more"):
        Sizes(candidates=1)
