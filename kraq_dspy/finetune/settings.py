"""Defines how an adapter is trained. The defaults are the KRAQ paper's (appendix A)."""

from typing import Annotated

from kraq_dspy._internal.options import AboveZero, Bounds, OneOf, Positive, checked


@checked()
class TrainSettings:
    """QLoRA: r, alpha and dropout of the adapter, then how it is trained.

    >>> TrainSettings(r=16, epochs=1).learning_rate
    0.0002

    `target_modules` are the layers that get an adapter: "" is peft's choice for the architecture (the query and value
    projections of most), "all-linear" every linear layer, else names with commas. `quantize` is "nf4" (4 bits, double
    quantisation, by bitsandbytes), "none", or "auto": nf4 on a GPU where bitsandbytes is installed.

    The loss is on the model's reply alone. `loss_on` "reply" is the reply as it is served, the question within its
    field markers, and its end; "values" leaves the markers out too, for a model that knows the format.

    `evaluations` of the held-out share in each epoch, with a checkpoint after each.
    """

    r: Positive = 64
    alpha: Positive = 16
    dropout: Annotated[float, Bounds(least=0, below=1)] = 0.05
    target_modules: str = ""
    quantize: Annotated[str, OneOf(("auto", "nf4", "none"))] = "auto"
    learning_rate: AboveZero = 2e-4
    batch_size: Positive = 2
    accumulate: Positive = 4
    epochs: Positive = 3
    max_tokens: Positive = 2048
    held_out: Annotated[float, Bounds(above=0, below=1)] = 0.1
    loss_on: Annotated[str, OneOf(("reply", "values"))] = "reply"
    evaluations: Positive = 4
    seed: int = 0
