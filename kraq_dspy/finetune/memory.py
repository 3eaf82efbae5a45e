"""Says whether a training fits into memory, before the weights are loaded."""

import importlib
from typing import Any

from kraq_dspy.errors import TrainingError
from kraq_dspy.finetune.settings import TrainSettings

GB = 1e9


def check_memory(
    settings: TrainSettings, *, config: Any, parameters: int, trained: int, longest: int, four_bits: bool, free: int
) -> float:
    """The bytes that training takes, about. Raises TrainingError when that is more than `free`, saying what helps.

    `config` is transformers' of the model; `longest` are the tokens of the longest row. Counted: weights, the
    adapter with gradients and the optimizer's moments, logits with their gradients, and activations (34 bytes for each
    hidden value of each layer at 16 bits, Korthikanti et al., 2022; 2 with checkpoints of them, which nf4 uses).
    """
    text = config.get_text_config()
    embedded = text.vocab_size * text.hidden_size * (1 if text.tie_word_embeddings else 2)
    weights = (parameters - embedded) * 0.55 + embedded * 2 if four_bits else parameters * 4
    adapter = trained * (4 + 4 + (2 if four_bits else 8))
    tokens = settings.batch_size * longest
    logits = tokens * text.vocab_size * 4 * 3
    hidden = tokens * text.hidden_size * text.num_hidden_layers * (4 if four_bits else 68)
    needed = weights + adapter + logits + hidden
    if needed > free:
        ways = ["--batch-size 1 (and --accumulate 8, for the same steps)"] if settings.batch_size > 1 else []
        ways += [] if four_bits else ["--quantize nf4"]
        raise TrainingError(
            f"Training takes about {needed / GB:.1f} GB ({weights / GB:.1f} of them weights), and {free / GB:.1f} GB "
            f"are free. What helps: {', '.join([*ways, 'shorter rows', 'a smaller base model'])}."
        )
    return float(needed)


def free_memory(torch: Any) -> int:
    """Bytes: of the GPU where there is one, else of the machine."""
    if torch.cuda.is_available():
        return int(torch.cuda.mem_get_info()[0])
    psutil = importlib.import_module("psutil")  # comes with accelerate
    return int(psutil.virtual_memory().available)
