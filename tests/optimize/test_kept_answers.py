"""Tests that what was paid for is not paid again: after a kill, after a crash, and with another process."""

import json
import signal
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy.errors import ConfigError, IndexLockedError
from kraq_dspy.extend import KraqAdapter
from kraq_dspy.optimize.kept_answers import Spending, kept_answers, kept_model
from kraq_dspy.ports import SilentProgress
from kraq_dspy.signatures import AnswerQuestion, JudgeAnswer
from tests.conftest import WarmShell
from tests.optimize import learner
from tests.warm import WarmProcess

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 600
INPUTS = {"question": "When was it opened?", "passages": ["It was opened in 1889 by a queen."]}

SLOW_COMPILE = """
import sys, time, json
sys.path[:0] = [{benchmarks!r}, {tests!r}]
from conftest import answering_row
from tests.optimize.learner import Learner, learner_model
from kraq_dspy.optimize import Method, Resources, Sizes, compile_program

class Slow(Learner):
    def complete(self, request):
        time.sleep({delay})
        return super().complete(request)

engine = Slow()
compiled = compile_program(
    "answering", [answering_row(number) for number in range(16)], metric="token_f1", out={out!r},
    method=Method("random-search", Sizes(demos=2, candidates=3, rounds=2, threads=2)),
    resources=Resources(lm={{"default": learner_model(engine)}}),
)
print(json.dumps([engine.calls, compiled.replayed, compiled.after, compiled.state.predictors]))
"""


def compile_in_a_process(kraq: WarmShell, out: Path, delay: float) -> WarmProcess:
    code = SLOW_COMPILE.format(
        benchmarks=str(ROOT / "benchmarks"), tests=str(ROOT / "tests" / "optimize"), delay=delay, out=str(out),
    )  # fmt: skip
    return kraq.python(code)


def ended(process: WarmProcess) -> Any:
    out, error = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, error
    return json.loads(out.splitlines()[-1])  # optimizers print before it


@pytest.fixture(scope="module")
def undisturbed(kraq: WarmShell, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return ended(compile_in_a_process(kraq, tmp_path_factory.mktemp("whole") / "whole.json", 0))


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_compile_that_was_ended_goes_on_with_what_it_had_paid_for(
    undisturbed: Any, tmp_path: Path, how: signal.Signals, kraq: WarmShell
) -> None:
    whole, _, _, expected = undisturbed
    out, kept = tmp_path / "ended.json", tmp_path / "ended.calls.jsonl"
    process = compile_in_a_process(kraq, out, 0.05)
    while process.poll() is None and (not kept.exists() or kept.read_bytes().count(b"\n") < 25):
        time.sleep(0.02)
    process.send_signal(how)
    assert process.wait() == -how
    assert not out.exists()
    paid = kept.read_bytes().count(b"\n")
    assert 24 <= paid < whole
    calls, replayed, after, state = ended(compile_in_a_process(kraq, out, 0))
    assert calls == whole - paid
    assert replayed >= paid
    assert after == [1.0] * 8
    assert state == expected


@pytest.fixture
def progress() -> SilentProgress:
    return SilentProgress()


def test_equal_requests_are_paid_once_and_resamples_one_by_one(tmp_path: Path, progress: SilentProgress) -> None:
    path = tmp_path / "calls.jsonl"

    def answers(count: int, temperature: float | None) -> tuple[list[str], int]:
        engine = learner.Learner()
        with closing(kept_answers(path)) as kept:
            lm = kept_model(learner.learner_model(engine), kept, Spending(None, progress))
            with dspy.context(lm=lm.copy(temperature=temperature) if temperature else lm):
                ask = dspy.Predict(AnswerQuestion)
                return [ask(**INPUTS).answer for _ in range(count)], engine.calls

    assert answers(3, None)[1] == 1
    sampled, paid = answers(4, 1.0)
    assert paid == 4
    assert len(set(sampled)) > 1
    assert answers(4, 1.0) == (sampled, 0)  # the n-th again as the n-th
    assert answers(5, 1.0)[1] == 1


def test_models_and_addresses_do_not_share_answers(progress: SilentProgress) -> None:
    engine = learner.Learner()
    kept = kept_answers()
    for name in ("one", "two"):
        with dspy.context(lm=kept_model(learner.learner_model(engine, name), kept, Spending(None, progress))):
            dspy.Predict(AnswerQuestion)(**INPUTS)
    assert engine.calls == 2


@pytest.mark.parametrize("holds", [True, False])
def test_a_kept_model_is_held_to_schemas_as_the_model_itself(progress: SilentProgress, holds: bool) -> None:
    class Asked(learner.Learner):
        supports_response_schema = holds
        supported_params = frozenset({"response_format", "temperature", "max_tokens"})

        def complete(self, request: Any) -> Any:
            forms.append(request.config.response_format)
            return super().complete(request)

    forms: list[Any] = []
    lm = kept_model(learner.learner_model(Asked()), kept_answers(), Spending(None, progress))
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        dspy.Predict(JudgeAnswer)(question="Who wrote Hamlet?", reference_answers=["Shakespeare"], answer="He did")
    assert (forms[0] is not None) is holds


def test_a_line_that_was_cut_off_is_dropped_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with closing(kept_answers(path)) as kept:
        kept.keep({"key": "a", "answer": {"text": "first"}})
        kept.keep({"key": "b", "answer": {"text": "second"}})
    path.write_bytes(path.read_bytes()[:-8])
    with closing(kept_answers(path)) as kept:
        assert kept.get("a") == {"text": "first"}
        assert kept.get("b") is None
        kept.keep({"key": "b", "answer": {"text": "again"}})
    path.write_bytes(path.read_bytes() + b'{"key": "c", "ans\n')
    with pytest.raises(ConfigError, match="line 3 is not JSON"):
        kept_answers(path)


def test_a_second_process_is_told_to_wait(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with closing(kept_answers(path)), pytest.raises(IndexLockedError):
        kept_answers(path)


def test_the_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    with closing(kept_answers(path)):
        assert path.stat().st_mode & 0o077 == 0
