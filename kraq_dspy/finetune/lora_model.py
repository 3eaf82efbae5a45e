"""Loads a base model, gives it a LoRA adapter where that fits into memory, and makes the trainer of it."""

import importlib.util
import inspect
import logging
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kraq_dspy.errors import MissingExtraError, ModelError, import_extra
from kraq_dspy.finetune.token_rows import IGNORED, TokenRow
from kraq_dspy.finetune.train_settings import TrainSettings
from kraq_dspy.models.embedders.model_folder import quiet_transformers, unpacked
from kraq_dspy.models.lms.engines.generation import checked_weights
from kraq_dspy.models.machine import multiplies_in_bf16
from kraq_dspy.ports import Progress


class TrainPackages:
    """What the extra "train" brings, imported once and quietly."""

    def __init__(self) -> None:
        self.torch, self.transformers, self.peft, _ = (
            import_extra(package, "train", "Fine-tuning") for package in ("torch", "transformers", "peft", "accelerate")
        )

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Keeps transformers' own bars and warnings away: this library's progress tells how it goes."""
        with quiet_transformers(), warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # between these packages, not for who trains
            yield


def in_four_bits(packages: TrainPackages, settings: TrainSettings) -> bool:
    """Whether the settings mean 4-bit weights on this machine. Raises MissingExtraError if bitsandbytes is
    missing."""
    has_four_bits = importlib.util.find_spec("bitsandbytes") is not None
    if settings.quantize == "nf4" and not has_four_bits:
        raise MissingExtraError("bitsandbytes", "train", "Training on 4-bit weights (--quantize nf4)")
    if settings.quantize == "auto":
        return has_four_bits and bool(packages.torch.cuda.is_available())
    return settings.quantize == "nf4"


def read_base(packages: TrainPackages, name: str) -> tuple[Any, Any]:
    """The tokenizer and the configuration of a base model, without its weights."""
    place, options = checked_weights(name)
    try:
        tokenizer = packages.transformers.AutoTokenizer.from_pretrained(place, **options)
        return tokenizer, packages.transformers.AutoConfig.from_pretrained(place, **options)
    except (OSError, ValueError) as error:
        raise ModelError(f"The base model {name!r} cannot be loaded: {error} Give the folder of its files.") from error


def make_lora_model(packages: TrainPackages, name: str, start: str, settings: TrainSettings, *, four_bits: bool) -> Any:
    """The base model with a new adapter, or with the one in the folder `start`, to be trained on."""
    torch, peft = packages.torch, packages.peft
    cuda = torch.cuda.is_available()
    place, options = checked_weights(name)
    options = unpacked(options)
    options["dtype"] = torch.bfloat16 if four_bits and cuda else torch.float32
    if four_bits:
        options["quantization_config"] = packages.transformers.BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.float16 if cuda else torch.float32,
        )
        options["device_map"] = {"": 0 if cuda else "cpu"}

    try:
        model = packages.transformers.AutoModelForCausalLM.from_pretrained(place, **options)
        model.config.use_cache = False
        if "gguf_file" in options:  # torch's weights were made of it, and transformers takes them for the file's
            model.is_quantized = False
        if four_bits:
            model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=cuda)
        if start:
            return peft.PeftModel.from_pretrained(model, start, is_trainable=True)

        named = [word.strip() for word in settings.target_modules.split(",") if word.strip()]
        config = peft.LoraConfig(
            r=settings.r,
            lora_alpha=settings.alpha,
            lora_dropout=settings.dropout,
            target_modules="all-linear" if named == ["all-linear"] else named or None,
            task_type="CAUSAL_LM",
        )
        return peft.get_peft_model(model, config)
    except (OSError, ValueError) as error:
        raise ModelError(f"The model {name!r} cannot be trained: {error}") from error


logger = logging.getLogger(__name__)

STAGE = "training"
EVALUATIONS = 4  # in an epoch


def make_trainer(
    packages: TrainPackages,
    model: Any,
    learned: Sequence[TokenRow],
    held_out: Sequence[TokenRow],
    checkpoints: Path,
    settings: TrainSettings,
    pad: int,
    four_bits: bool,
    progress: Progress,
) -> tuple[Any, int]:
    """transformers' own trainer, and the steps that it will take."""
    torch, transformers = packages.torch, packages.transformers
    cuda = torch.cuda.is_available()
    batches = -(-len(learned) // settings.batch_size)
    an_epoch = -(-batches // settings.accumulate)
    every = max(1, an_epoch // EVALUATIONS)
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
        seed=settings.seed,
        use_cpu=not cuda,
        dataloader_pin_memory=cuda,
        remove_unused_columns=False,
        disable_tqdm=True,
        report_to=[],
    )

    callback: Any = transformers.TrainerCallback

    class Report(callback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            progress.advance(STAGE)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            logger.info("step %d: %s", state.global_step, logs)

    inner = transformers.Trainer(
        model=model,
        args=arguments,
        train_dataset=list(learned),
        eval_dataset=list(held_out),
        data_collator=make_collate(packages, model, pad),
        callbacks=[Report()],
    )
    inner.remove_callback(transformers.PrinterCallback)
    return inner, an_epoch * settings.epochs


def make_collate(packages: TrainPackages, model: Any, pad: int) -> Callable[[Sequence[TokenRow]], dict[str, Any]]:
    """Makes a batch of rows, padded to the longest; the logits of what all prompts begin with are not worked out."""
    torch = packages.torch
    cuts_logits = "logits_to_keep" in inspect.signature(model.get_base_model().forward).parameters

    def padded(batch: Sequence[TokenRow]) -> dict[str, Any]:
        width = max(len(row.ids) for row in batch)

        def filled(values: Sequence[Sequence[int]], filler: int) -> Any:
            return torch.tensor([[*row, *[filler] * (width - len(row))] for row in values])

        inputs = {
            "input_ids": filled([row.ids for row in batch], pad),
            "attention_mask": filled([[1] * len(row.ids) for row in batch], 0),
            "labels": filled([row.labels for row in batch], IGNORED),
        }
        if cuts_logits:  # the logits before the one that tells the first label have no part in the loss
            first = min(next(place for place, label in enumerate(row.labels) if label != IGNORED) for row in batch)
            needed = width - max(0, first - 1)
            inputs |= {"labels": inputs["labels"][:, -needed:], "logits_to_keep": needed}
        return inputs

    return padded
