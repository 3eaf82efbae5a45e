"""History, usage, callbacks and traces of DSPy show the calls of a program."""

import io
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import dspy
import pytest
from dspy.utils.callback import BaseCallback

from kraq_dspy.programs import TraditionalRAG

QUESTION = "Where does the Rhine flow into?"


def test_the_history_shows_prompt_and_reply(lm: dspy.LM, program: TraditionalRAG) -> None:
    shown = io.StringIO()
    with dspy.context(lm=lm):
        program(question=QUESTION)
    lm.inspect_history(n=1, file=shown)
    assert QUESTION in shown.getvalue()
    assert "North Sea" in shown.getvalue()
    shown = io.StringIO()
    dspy.inspect_history(n=1, file=shown)
    assert QUESTION in shown.getvalue()
    assert len(program.history) == 1


def test_usage_is_tracked_around_a_call_and_in_the_prediction(lm: dspy.LM, program: TraditionalRAG) -> None:
    with dspy.context(lm=lm), dspy.track_usage() as tracker:
        program(question=QUESTION)
    assert tracker.get_total_tokens()["obliging/model"]["prompt_tokens"] > 0
    with dspy.context(lm=lm, track_usage=True):
        prediction = program(question=QUESTION)
    assert prediction.get_lm_usage()["obliging/model"]["completion_tokens"] > 0


def test_callbacks_see_the_program_its_step_and_the_model(lm: dspy.LM, program: TraditionalRAG) -> None:
    begun: list[str] = []

    class Watcher(BaseCallback):
        def on_module_start(self, call_id: str, instance: dspy.Module, inputs: dict[str, Any]) -> None:
            begun.append(type(instance).__name__)

        def on_lm_start(self, call_id: str, instance: dspy.BaseLM, inputs: dict[str, Any]) -> None:
            begun.append(instance.model)

    with dspy.context(lm=lm, callbacks=[Watcher()]):
        program(question=QUESTION)
    assert begun[0] == "TraditionalRAG"
    assert begun[-2:] == ["FittingPredict", "obliging/model"]


def test_a_trace_names_the_step_with_its_inputs_and_outputs(lm: dspy.LM, program: TraditionalRAG) -> None:
    trace: list[Any] = []
    with dspy.context(lm=lm, trace=trace):
        program(question=QUESTION)
    [(step, inputs, outputs)] = trace
    assert step is program.answer
    assert inputs["question"] == QUESTION
    assert outputs.answer == "North Sea"


@pytest.fixture
def mlflow(tmp_path: Path) -> Iterator[Any]:
    """Traces DSPy into a file of this test; for whoever installed mlflow or mlflow-skinny."""
    mlflow = pytest.importorskip("mlflow", reason="needs mlflow: pip install mlflow")
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'traces.db'}")
    mlflow.dspy.autolog()
    yield mlflow
    mlflow.dspy.autolog(disable=True)


def test_mlflow_traces_the_program_the_adapter_and_the_model(
    mlflow: ModuleType, lm: dspy.LM, program: TraditionalRAG
) -> None:
    with dspy.context(lm=lm):
        program(question=QUESTION)
    mlflow.flush_trace_async_logging()
    trace = mlflow.get_trace(mlflow.get_last_active_trace_id())

    names = {span.name.partition(".")[0] for span in trace.data.spans}
    assert {type(program).__name__, "ChatAdapter"} <= names
    assert len(names) > 2  # the model, by its class
