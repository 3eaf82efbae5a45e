"""Declares how an adapter is trained, each number once: `TrainSettings` in Python, options of `kraq finetune`."""

from dataclasses import dataclass
from typing import Literal

from kraq_dspy._internal.options import Checked, option


@dataclass(frozen=True)
class TrainSettings(Checked):
    """How to train an adapter. The defaults are from the KRAQ paper (QLoRA).

    Args:
        r: the rank of the adapter.
        alpha: the adapter's output is scaled by `alpha / r`.
        dropout: dropout of the adapter's input, in [0, 1).
        target_modules: the layers to adapt: "" for peft's choice, "all-linear", or names with commas.
        quantize: "nf4" (4 bits, double quantization, by bitsandbytes), "none", or "auto" ("nf4" on a GPU with
            bitsandbytes, otherwise "none").
        learning_rate: the peak learning rate.
        batch_size: examples at once.
        accumulate: batches in one step.
        epochs: passes over the examples.
        max_tokens: the most tokens of an example; longer ones are left out.
        held_out: the share of examples to evaluate on. The training evaluates four times an epoch, and saves a
            checkpoint each time.
        seed: the random seed of split, order and weights.

    The loss counts only the tokens of the reply, with field markers and end.

    >>> TrainSettings(r=16, epochs=1).learning_rate
    0.0002
    """

    r: int = option(64, "Rank of the adapter (r).", least=1)
    alpha: int = option(16, "The adapter counts alpha / r.", least=1)
    dropout: float = option(0.05, "Dropout of the adapter's input.", least=0, most=0.99)
    target_modules: str = option("", "Layers to adapt: names with commas, or all-linear.")
    quantize: Literal["auto", "nf4", "none"] = option("auto", "nf4, none, or auto: nf4 on a GPU.")
    learning_rate: float = option(2e-4, "Learning rate of the optimizer at its peak.", least=0)
    batch_size: int = option(2, "Rows at once.", least=1)
    accumulate: int = option(4, "Batches in one step.", least=1)
    epochs: int = option(3, "Times through the rows.", least=1)
    max_tokens: int = option(2048, "Maximum tokens per row; longer rows are skipped.", least=1)
    held_out: float = option(0.1, "Share to evaluate on.", least=0.01, most=0.9)
    seed: int = option(0, "Random seed of the split, the order and the weights.")
