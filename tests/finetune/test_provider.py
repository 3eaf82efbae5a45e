"""Runs DSPy's fine-tuning optimizers on this library's programs, with local LoRA."""

from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.lm15 import Request, Response

from kraq_dspy.errors import ConfigError
from kraq_dspy.extend import KraqAdapter
from kraq_dspy.finetune import LocalLoRA, Pair, TrainSettings, finetunable_lm
from kraq_dspy.settings import RoleSettings
from kraq_dspy.signatures import GenerateQuestion

QUICK = TrainSettings(
    r=16, alpha=32, target_modules="all-linear", learning_rate=1e-2, epochs=4, batch_size=4, accumulate=1
)


class Teacher:
    """An engine that knows the question of every summary."""

    supported_params = frozenset({"temperature", "max_tokens"})

    def __deepcopy__(self, memo: object) -> "Teacher":
        return self

    def complete(self, request: Request) -> Response:
        from dspy.lm15 import Message, Response, TextPart, Usage

        name = request.messages[-1].text.split("]]\n")[1].split()[0]
        text = f"[[ ## question ## ]]\nWhat did {name} do?\n\n[[ ## completed ## ]]"
        message = Message.assistant([TextPart(text)])
        return Response(id=None, model="teacher", message=message, finish_reason="stop", usage=Usage())


def metric(example: dspy.Example, prediction: dspy.Prediction, trace: object = None) -> float:
    return float(prediction.question.startswith("What did"))


@pytest.mark.parametrize("optimizer", ["finetune", "together"])
def test_dspys_optimizers_train_an_adapter_and_give_back_a_program_that_uses_it(
    optimizer: str, base: str, pairs: list[Pair], tmp_path: Path
) -> None:
    lm = finetunable_lm(RoleSettings(model=f"transformers/{base}", max_tokens=40), tmp_path / "adapters", QUICK)
    student, teacher = dspy.Predict(GenerateQuestion), dspy.Predict(GenerateQuestion)
    student.set_lm(lm)
    teacher.set_lm(dspy.LM("teacher", engine=Teacher(), cache=False))
    rows = [dspy.Example(**pair.inputs, **pair.outputs).with_inputs(*pair.inputs) for pair in pairs]
    with dspy.context(lm=lm, adapter=KraqAdapter(second_try=False)):
        if optimizer == "finetune":
            tuned = dspy.BootstrapFinetune(metric=metric, num_threads=2).compile(student, rows, teacher)
        else:
            weights = dspy.BootstrapFinetune(metric=metric, num_threads=2)
            together = dspy.BetterTogether(metric=metric, w=weights)
            options = {"w": {"teacher": teacher}}
            tuned = together.compile(
                student, trainset=rows, valset=rows[:4], strategy="w", optimizer_compile_args=options
            )
        assert tuned(summary="Ada is a cook.").question.startswith("What did")
    assert tuned.lm.model.startswith(f"transformers/{base}#{tmp_path / 'adapters' / 'adapter-1'}@")
    assert tuned.lm.engine.inner is lm.engine.inner  # one base in memory
    assert lm.model == f"transformers/{base}"


def test_a_tuned_model_is_trained_on_from_its_adapter(base: str, chats: list[Any], tmp_path: Path) -> None:
    provider = LocalLoRA(tmp_path, QUICK)
    rows = [{"messages": chat} for chat in chats]
    first = provider.finetune(None, f"transformers/{base}", rows, "chat", {"epochs": 1})  # type: ignore[arg-type]
    second = provider.finetune(None, first, rows, "chat", {"epochs": 1})  # type: ignore[arg-type]
    assert (Path(first.split("#")[1].split("@")[0]).name, Path(second.split("#")[1].split("@")[0]).name) == (
        "adapter-1",
        "adapter-2",
    )
    assert first.split("@")[1] != second.split("@")[1]


def test_settings_that_do_not_exist_and_models_elsewhere_are_refused(base: str, tmp_path: Path) -> None:
    provider = LocalLoRA(tmp_path, QUICK)
    with pytest.raises(ConfigError, match="epoch is not known; did you mean 'epochs'"):
        provider.finetune(None, f"transformers/{base}", [], "chat", {"epoch": 1})  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="does not run in this process"):
        finetunable_lm(RoleSettings(model="openai/gpt-4o"), tmp_path)
