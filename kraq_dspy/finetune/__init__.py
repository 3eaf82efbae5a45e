"""Trains small models to do a large one's steps: pairs, LoRA adapters, and DSPy's fine-tuning optimizers.

`pairs_from_dataset` lets a teacher write `Pair`s, `read_pairs` and `chats_of` make chats of
them, `train_adapter` trains on those with `TrainSettings`; `finetunable_lm` is a model that `dspy.BootstrapFinetune`
can train.
"""

from typing import TYPE_CHECKING

from kraq_dspy._internal.lazy import lazy_names

if TYPE_CHECKING:  # for type checkers and editors; the names that are there are those below
    from kraq_dspy.finetune.pairs import Pair as Pair, chats_of as chats_of, read_pairs as read_pairs
    from kraq_dspy.finetune.provider import LocalLoRA as LocalLoRA, finetunable_lm as finetunable_lm
    from kraq_dspy.finetune.teacher import pairs_from_dataset as pairs_from_dataset
    from kraq_dspy.finetune.train_settings import TrainSettings as TrainSettings
    from kraq_dspy.finetune.training import LossPoint as LossPoint, Trained as Trained, train_adapter as train_adapter

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "kraq_dspy.finetune.pairs": ("Pair", "chats_of", "read_pairs"),
        "kraq_dspy.finetune.provider": ("LocalLoRA", "finetunable_lm"),
        "kraq_dspy.finetune.teacher": ("pairs_from_dataset",),
        "kraq_dspy.finetune.train_settings": ("TrainSettings",),
        "kraq_dspy.finetune.training": ("LossPoint", "Trained", "train_adapter"),
    },
)
