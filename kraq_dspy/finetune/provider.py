"""Trains LoRA adapters here for DSPy's own optimizers: `dspy.BootstrapFinetune` and `dspy.BetterTogether`.

lm = finetunable_lm(RoleSettings(model="transformers/path/to/model"), out=Path("adapters"))
program.set_lm(lm)
tuned = dspy.BootstrapFinetune(metric=..., train_kwargs={"epochs": 3}).compile(program, trainset=...)
"""

import dataclasses
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import dspy
from dspy import Provider, TrainingJob

from kraq_dspy._internal.checks import suggestion
from kraq_dspy.errors import ConfigError, TrainingError
from kraq_dspy.finetune.train_settings import TrainSettings
from kraq_dspy.finetune.training import train_adapter
from kraq_dspy.models.lms.kraq_lm import KraqLM
from kraq_dspy.models.lms.local_models import TRANSFORMERS
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.ports import Progress
from kraq_dspy.settings import RoleSettings


class LocalJob(TrainingJob):
    """A training in a thread of this process: it cannot be cancelled, only waited for."""

    def status(self) -> str:
        if not self.done():
            return "running"
        return "failed" if isinstance(self.result(), Exception) else "succeeded"


class LocalLoRA(Provider):
    """Trains LoRA adapters in this process, for DSPy's fine-tuning optimizers. The tuned model shares the base's
    weights.

    Args:
        out: the folder of the adapters. Each training makes a folder in `out`.
        settings: what DSPy's `train_kwargs` do not say.
        progress: is called as a training advances.

    If a model has an adapter, the training continues from this adapter.

    >>> lm = dspy.LM("transformers/models/small", provider=LocalLoRA(Path("adapters"), TrainSettings(epochs=1)))
    """

    def __init__(self, out: Path, settings: TrainSettings | None = None, *, progress: Progress | None = None) -> None:
        super().__init__()
        self.finetunable = True
        self.TrainingJob = LocalJob
        self.out = out
        self.settings = settings or TrainSettings()
        self.progress = progress
        self._one_at_a_time = threading.Lock()

    def __deepcopy__(self, memo: object) -> "LocalLoRA":
        return self

    def finetune(
        self,
        job: TrainingJob,
        model: str,
        train_data: list[dict[str, Any]],
        train_data_format: Any,
        train_kwargs: dict[str, Any] | None = None,
    ) -> str:
        """The name of the tuned model. DSPy hands what this raises to its optimizer, which raises it."""
        _require_local(model)
        if getattr(train_data_format, "value", train_data_format) != "chat":
            raise TrainingError(
                f"The rows are in the format {train_data_format!r}; expected chats. Use KraqAdapter or ChatAdapter."
            )

        settings = dataclasses.replace(self.settings, **_known_settings(train_kwargs or {}))
        chats = [row["messages"] for row in train_data]
        with self._one_at_a_time:
            number = 1
            while (self.out / f"adapter-{number}" / "adapter_config.json").exists():
                number += 1
            out = self.out / f"adapter-{number}"
            return train_adapter(chats, model, out, settings, progress=self.progress).model

    def launch(self, lm: dspy.LM, launch_kwargs: dict[str, Any] | None = None) -> None:
        """Nothing to start: the model runs in this process."""

    def kill(self, lm: dspy.LM, launch_kwargs: dict[str, Any] | None = None) -> None:
        """Nothing to stop: the base stays in memory, and what is trained is a copy."""


def finetunable_lm(settings: RoleSettings, out: Path, train: TrainSettings | None = None) -> KraqLM:
    """Make a role's model that DSPy's fine-tuning optimizers can train.

    Args:
        settings: the role.
        out: the folder of the adapters.
        train: how to train; by default as the KRAQ paper.

    Returns:
        The model.

    Raises:
        ConfigError: for a model that cannot be trained, and as `make_lm`.

    >>> lm = finetunable_lm(RoleSettings(model="transformers/models/small"), Path("adapters"))  # doctest: +SKIP
    >>> tuned = dspy.BootstrapFinetune(metric=metric).compile(program, rows, teacher)  # doctest: +SKIP
    """
    _require_local(settings.model)
    lm = make_lm(settings)
    lm.provider = LocalLoRA(out, train)
    return lm


def _known_settings(train_kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
    known = [field.name for field in dataclasses.fields(TrainSettings)]
    for name in train_kwargs:
        if name not in known:
            raise ConfigError(f"{name} is not known; {suggestion(name, known)}")
    return train_kwargs


def _require_local(model: str) -> None:
    if not model.startswith(TRANSFORMERS):
        raise ConfigError(f"{model!r} does not run in this process; local LoRA takes {TRANSFORMERS}FOLDER.")
