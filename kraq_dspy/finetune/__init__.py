"""Small models in the place of large ones: pairs to learn from, LoRA adapters, and DSPy's fine-tuning optimizers."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kraq_dspy.finetune.pairs import Pair, chats_of, read_pairs
    from kraq_dspy.finetune.provider import LocalLoRA, finetunable_lm
    from kraq_dspy.finetune.settings import TrainSettings
    from kraq_dspy.finetune.teacher import pairs_from_dataset, pairs_from_index
    from kraq_dspy.finetune.training import Trained, train_adapter

_HOME = {
    "Pair": "pairs",
    "chats_of": "pairs",
    "read_pairs": "pairs",
    "LocalLoRA": "provider",
    "finetunable_lm": "provider",
    "TrainSettings": "settings",
    "pairs_from_dataset": "teacher",
    "pairs_from_index": "teacher",
    "Trained": "training",
    "train_adapter": "training",
}
__all__ = [
    "LocalLoRA",
    "Pair",
    "TrainSettings",
    "Trained",
    "chats_of",
    "finetunable_lm",
    "pairs_from_dataset",
    "pairs_from_index",
    "read_pairs",
    "train_adapter",
]


def __getattr__(name: str) -> Any:
    import importlib

    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"kraq_dspy.finetune.{_HOME[name]}"), name)
