"""Trains small models to do a large one's steps: pairs, LoRA adapters, and DSPy's fine-tuning optimizers.

`pairs_from_index` and `pairs_from_dataset` let a teacher write `Pair`s, `read_pairs` and `chats_of` make chats of
them, `train_adapter` trains on those with `TrainSettings`; `finetunable_lm` is a model that `dspy.BootstrapFinetune`
can train.
"""

from kraq_dspy._internal.lazy import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
