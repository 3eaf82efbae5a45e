"""Makes transformers' Trainer for rows of tokens, with checkpoints and both held-out losses."""

import inspect
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy.finetune.lora_model import TrainPackages
from kraq_dspy.finetune.settings import TrainSettings
from kraq_dspy.finetune.token_rows import IGNORED, HeldOut, TokenRow
from kraq_dspy.models.machine import multiplies_in_bf16
from kraq_dspy.ports import Progress

logger = logging.getLogger(__name__)

STAGE = "training"


@dataclass(frozen=True, slots=True)
class LoRATrainer:
    """transformers' own trainer, and the steps that it will take."""

    inner: Any
    total_steps: int


def make_trainer(
    packages: TrainPackages,
    model: Any,
    rows: HeldOut,
    checkpoints: Path,
    settings: TrainSettings,
    pad: int,
    four_bits: bool,
    progress: Progress,
) -> LoRATrainer:
    torch, transformers = packages.torch, packages.transformers
    cuda = torch.cuda.is_available()
    batches = -(-len(rows.learned) // settings.batch_size)
    an_epoch = -(-batches // settings.accumulate)
    every = max(1, an_epoch // settings.evaluations)
    arguments = transformers.TrainingArguments(
        output_dir=str(checkpoints),
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulate,
        num_train_epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        optim="paged_adamw_8bit" if four_bits else "adamw_torch",
        bf16=torch.cuda.is_bf16_supported() if cuda else multiplies_in_bf16(),
        eval_strategy="steps",
        eval_steps=every,
        eval_on_start=True,
        logging_steps=every,
        save_steps=every,
        save_total_limit=2,
        train_sampling_strategy="group_by_length",
        seed=settings.seed,
        use_cpu=not cuda,
        dataloader_pin_memory=cuda,
        remove_unused_columns=False,
        disable_tqdm=True,
        report_to=[],
    )

    def features(some: Sequence[TokenRow], labels: str) -> list[dict[str, Any]]:
        return [{"input_ids": row.ids, "labels": getattr(row, labels)} for row in some]

    cuts_logits = "logits_to_keep" in inspect.signature(model.get_base_model().forward).parameters

    def collate(batch: Sequence[dict[str, Any]]) -> dict[str, Any]:
        width = max(len(row["input_ids"]) for row in batch)

        def padded(values: Sequence[Sequence[int]], filler: int) -> Any:
            return torch.tensor([[*row, *[filler] * (width - len(row))] for row in values])

        inputs = {
            "input_ids": padded([row["input_ids"] for row in batch], pad),
            "attention_mask": padded([[1] * len(row["input_ids"]) for row in batch], 0),
            "labels": padded([row["labels"] for row in batch], IGNORED),
        }
        if cuts_logits:
            needed = width - min(_before_first_label(row["labels"]) for row in batch)
            inputs |= {"labels": inputs["labels"][:, -needed:], "logits_to_keep": needed}
        return inputs

    callback: Any = transformers.TrainerCallback

    class Report(callback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            progress.advance(STAGE)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            logger.info("step %d: %s", state.global_step, logs)

    inner = transformers.Trainer(
        model=model,
        args=arguments,
        train_dataset=features(rows.learned, settings.loss_on),
        eval_dataset={"reply": features(rows.held_out, "reply"), "values": features(rows.held_out, "values")},
        data_collator=collate,
        callbacks=[Report()],
    )
    inner.remove_callback(transformers.PrinterCallback)
    return LoRATrainer(inner, an_epoch * settings.epochs)


def _before_first_label(labels: Sequence[int]) -> int:
    """The place whose logits tell the first label; those before it have no part in the loss, and are not computed."""
    return max(0, next((place for place, label in enumerate(labels) if label != IGNORED), len(labels)) - 1)
