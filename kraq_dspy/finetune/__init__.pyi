"""The public names, each written here and nowhere else."""

from kraq_dspy.finetune.pairs import Pair as Pair
from kraq_dspy.finetune.pairs import chats_of as chats_of
from kraq_dspy.finetune.pairs import read_pairs as read_pairs
from kraq_dspy.finetune.provider import LocalLoRA as LocalLoRA
from kraq_dspy.finetune.provider import finetunable_lm as finetunable_lm
from kraq_dspy.finetune.settings import TrainSettings as TrainSettings
from kraq_dspy.finetune.teacher import pairs_from_dataset as pairs_from_dataset
from kraq_dspy.finetune.teacher import pairs_from_index as pairs_from_index
from kraq_dspy.finetune.training import LossPoint as LossPoint
from kraq_dspy.finetune.training import Trained as Trained
from kraq_dspy.finetune.training import train_adapter as train_adapter

__all__: list[str]
