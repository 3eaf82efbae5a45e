"""How an adapter is trained. The defaults are the KRAQ paper's (appendix A)."""

import dataclasses
from dataclasses import dataclass
from typing import Any

from kraq_dspy.errors import ConfigError

QUANTIZE = ("auto", "nf4", "none")
LOSS_ON = ("reply", "values")


@dataclass(frozen=True, slots=True)
class TrainSettings:
    """QLoRA: r, alpha and dropout of the adapter, then how it is trained.

    `target_modules` are the layers that get an adapter: "" is peft's choice for the architecture (the query and value
    projections of most), "all-linear" every linear layer, else names with commas. `quantize` is "nf4" (4 bits, double
    quantisation, by bitsandbytes), "none", or "auto": nf4 on a GPU where bitsandbytes is installed.

    The loss is on the model's reply alone. `loss_on` "reply" is the reply as it is served, the question within its
    field markers, and its end; "values" leaves the markers out too, for a model that knows the format.

    `evaluations` of the held-out share in each epoch, with a checkpoint after each.
    """

    r: int = 64
    alpha: int = 16
    dropout: float = 0.05
    target_modules: str = ""
    quantize: str = "auto"
    learning_rate: float = 2e-4
    batch_size: int = 2
    accumulate: int = 4
    epochs: int = 3
    max_tokens: int = 2048
    held_out: float = 0.1
    loss_on: str = "reply"
    evaluations: int = 4
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("r", "alpha", "batch_size", "accumulate", "epochs", "max_tokens", "evaluations"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; it must be 1 or more.")
        if self.learning_rate <= 0:
            raise ConfigError(f"learning_rate is {self.learning_rate}; it must be above 0.")
        if not 0 <= self.dropout < 1 or not 0 < self.held_out < 1:
            raise ConfigError(
                f"dropout is {self.dropout} and held_out {self.held_out}; the first must be from 0 to 1, the second "
                "between them."
            )
        for name, known in (("quantize", QUANTIZE), ("loss_on", LOSS_ON)):
            if getattr(self, name) not in known:
                raise ConfigError(f"{name} is {getattr(self, name)!r}; it must be one of {', '.join(known)}.")

    @classmethod
    def from_words(cls, **words: Any) -> "TrainSettings":
        """Settings by name, as DSPy's `train_kwargs` hold them. Raises ConfigError for a name that is unknown."""
        known = {field.name for field in dataclasses.fields(cls)}
        if unknown := sorted(words.keys() - known):
            raise ConfigError(f"There is no training setting {unknown[0]!r}; known: {', '.join(sorted(known))}.")
        return cls(**words)
