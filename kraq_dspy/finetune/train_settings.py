"""Declares how an adapter is trained, each number once: `TrainSettings` in Python, options of `kraq finetune`."""

from dataclasses import dataclass
from typing import Literal

from kraq_dspy._internal.options import Checked, option


@dataclass(frozen=True)
class TrainSettings(Checked):
    """QLoRA: r, alpha and dropout of the adapter, then how it is trained.

    >>> TrainSettings(r=16, epochs=1).learning_rate
    0.0002

    `target_modules` are the layers that get an adapter: "" is peft's choice for the architecture (the query and value
    projections of most), "all-linear" every linear layer, else names with commas. `quantize` is "nf4" (4 bits, double
    quantisation, by bitsandbytes), "none", or "auto": nf4 on a GPU where bitsandbytes is installed.

    The loss is on the model's reply alone, as it is served: the question within its field markers, and its end. The
    `held_out` share is evaluated four times an epoch, with a checkpoint after each. Rows of more than `max_tokens` are
    left out.
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
