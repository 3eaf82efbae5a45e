"""A LoRA adapter, trained on chats: QLoRA on a GPU, plain LoRA elsewhere, resumable."""

import gc
import hashlib
import importlib
import importlib.util
import json
import logging
import random
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from kraq_dspy.errors import MissingExtraError, ModelError, TrainingError
from kraq_dspy.finetune.memory import check_memory, free_memory
from kraq_dspy.finetune.settings import TrainSettings
from kraq_dspy.finetune.token_rows import IGNORED, Chat, TokenRow, token_row, too_long
from kraq_dspy.lms.adapter_name import TRANSFORMERS, adapter_folder, weights_hash
from kraq_dspy.ports import Progress, SilentProgress

logger = logging.getLogger(__name__)

STAGE = "training"
LEAST_ROWS = 4
LOSSES = ("loss", "eval_reply_loss", "eval_values_loss")
CHECKPOINTS = "checkpoints"


@dataclass(frozen=True, slots=True)
class LossPoint:
    """Losses after `step` optimizer steps, nats a token. `train` is the mean since the point before; NaN at step 0.

    `held_out` is on the replies of rows that are not trained on, `values` on the field values of these replies alone.
    """

    step: int
    train: float
    held_out: float
    values: float


@dataclass(frozen=True, slots=True)
class Trained:
    """An adapter that was trained. `model` names it for a role: "transformers/BASE#FOLDER@HASH"."""

    folder: Path
    base: str
    model: str
    weights_hash: str
    data_hash: str
    settings: TrainSettings
    quantized: bool
    rows: tuple[int, int]  # trained on, held out
    longest: int  # tokens of the longest row
    trained_parameters: int
    curve: tuple[LossPoint, ...]
    left_out: int = 0
    resumed_from: int = 0  # the step of the checkpoint that it went on from


def train_adapter(
    chats: Sequence[Chat],
    base: str,
    out: Path,
    settings: TrainSettings | None = None,
    *,
    drop_long: bool = False,
    progress: Progress | None = None,
) -> Trained:
    """Trains an adapter for `base` on the replies of `chats`, and writes it to the folder `out`.

    `base` is a folder, a hub name, or "transformers/NAME#ADAPTER": then it goes on from that adapter. Interrupted, the
    same call goes on from the last checkpoint; with other rows or settings it is refused. A finished one is trained
    anew where something differs, and returned as it is where nothing does.

    Raises TrainingError for too few rows, rows that are too long (unless `drop_long`), too little memory;
    MissingExtraError without peft; ModelError when the base does not load.
    """
    settings = settings or TrainSettings()
    progress = progress or SilentProgress()
    packages = _Packages()
    name, _, started = base.removeprefix(TRANSFORMERS).partition("#")
    start = adapter_folder(started)[0] if started else ""
    four_bits = _four_bits(packages, settings)
    if not chats:
        raise TrainingError("There is nothing to train on: 0 rows. Make some with `kraq pairs`.")
    with packages.quiet():
        tokenizer, config = _read_base(packages, name)
    rows = [token_row(tokenizer, chat) for chat in chats]
    rows, left_out = _fitting(rows, settings, config, drop_long=drop_long)
    learned, held_out = _parted(rows, settings)
    data_hash = _digest(rows)
    plan = {
        "base": name,
        "start": weights_hash(start) if start else "",
        "rows": data_hash,
        "settings": asdict(settings),
        "quantized": four_bits,
    }
    resumed = _prepare(out, plan)
    with packages.quiet():
        trained = _count(packages, config, settings)
        longest = max(len(row.ids) for row in rows)
        check_memory(
            settings, config=config, parameters=trained[0], trained=trained[1], longest=longest, four_bits=four_bits,
            free=free_memory(packages.torch),
        )  # fmt: skip
        packages.transformers.set_seed(settings.seed)
        model = _model(packages, name, start, settings, four_bits=four_bits)
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        trainer = _trainer(packages, model, learned, held_out, out, settings, pad, four_bits, progress)
        progress.start(STAGE, trainer.total_steps)
        progress.advance(STAGE, resumed[1])
        trainer.inner.train(resume_from_checkpoint=resumed[0])
        progress.finish(STAGE)
        model.save_pretrained(str(out))
    curve = _curve(trainer.inner.state.log_history)
    del model, trainer
    gc.collect()
    packages.torch.cuda.empty_cache()  # does nothing without a GPU
    shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
    digest = weights_hash(out)
    return Trained(
        folder=out,
        base=name,
        model=f"{TRANSFORMERS}{name}#{out}@{digest[:8]}",
        weights_hash=digest,
        data_hash=data_hash,
        settings=settings,
        quantized=four_bits,
        rows=(len(learned), len(held_out)),
        longest=longest,
        trained_parameters=trained[1],
        curve=curve,
        left_out=left_out,
        resumed_from=resumed[1],
    )


class _Packages:
    """What the extra "train" brings, imported once and quietly."""

    def __init__(self) -> None:
        self.torch, self.transformers = self._import("torch"), self._import("transformers")
        self.peft = self._import("peft")
        self._import("accelerate")

    @staticmethod
    def _import(package: str) -> Any:
        try:
            return importlib.import_module(package)
        except ImportError:
            raise MissingExtraError(package, "train", "Fine-tuning") from None

    def has(self, package: str) -> bool:
        return importlib.util.find_spec(package) is not None

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Without transformers' own bars and warnings: this library's progress tells how it goes."""
        said = self.transformers.utils.logging
        level, bars = said.get_verbosity(), said.is_progress_bar_enabled()
        said.set_verbosity_error()
        said.disable_progress_bar()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # between these packages, not for who trains
                yield
        finally:
            said.set_verbosity(level)
            if bars:
                said.enable_progress_bar()


def _four_bits(packages: _Packages, settings: TrainSettings) -> bool:
    if settings.quantize == "nf4" and not packages.has("bitsandbytes"):
        raise MissingExtraError("bitsandbytes", "train", "Training on 4-bit weights (--quantize nf4)")
    if settings.quantize == "auto":
        return bool(packages.torch.cuda.is_available()) and packages.has("bitsandbytes")
    return settings.quantize == "nf4"


def _read_base(packages: _Packages, name: str) -> tuple[Any, Any]:
    try:
        tokenizer = packages.transformers.AutoTokenizer.from_pretrained(name)
        return tokenizer, packages.transformers.AutoConfig.from_pretrained(name)
    except (OSError, ValueError) as error:
        raise ModelError(f"The base model {name!r} cannot be loaded: {error} Give the folder of its files.") from error


def _fitting(
    rows: Sequence[TokenRow], settings: TrainSettings, config: Any, *, drop_long: bool
) -> tuple[list[TokenRow], int]:
    """The rows to use, and how many were left out. Rows are never cut: a cut row would lose its reply."""
    context = int(config.get_text_config().max_position_embeddings)
    limit = min(settings.max_tokens, context)
    long = set(too_long(rows, limit))
    if long and not drop_long:
        longest = max(len(rows[place].ids) for place in long)
        more = f" (the model takes {context})" if context <= settings.max_tokens else ""
        raise TrainingError(
            f"{len(long)} of {len(rows)} rows have more than {limit} tokens{more}, row {min(long) + 1} first; the "
            f"longest has {longest}. Leave them out with --drop-long, or raise --max-tokens where the model takes more."
        )
    kept = [row for place, row in enumerate(rows) if place not in long]
    if long:
        logger.warning("%d of %d rows have more than %d tokens and are left out", len(long), len(rows), limit)
    if len(kept) < LEAST_ROWS:
        raise TrainingError(
            f"There are {len(kept)} rows to train on ({len(long)} left out as too long); {LEAST_ROWS} are the least, "
            "and hundreds what it takes to learn something. Make more with `kraq pairs`."
        )
    return kept, len(long)


def _parted(rows: Sequence[TokenRow], settings: TrainSettings) -> tuple[list[TokenRow], list[TokenRow]]:
    """Rows with equal prompts stay on one side, so that nothing is measured on what was learned."""
    by_prompt: dict[tuple[int, ...], list[TokenRow]] = {}
    for row in rows:
        n_prompt = sum(label == IGNORED for label in row.reply)
        by_prompt.setdefault(row.ids[:n_prompt], []).append(row)
    groups = list(by_prompt.values())
    if len(groups) < 2:
        raise TrainingError("All rows have the same prompt, so none can be held out. Give other rows.")
    random.Random(settings.seed).shuffle(groups)
    n_held = min(max(1, round(settings.held_out * len(groups))), len(groups) - 1)
    return [row for group in groups[n_held:] for row in group], [row for group in groups[:n_held] for row in group]


def _digest(rows: Sequence[TokenRow]) -> str:
    body = json.dumps([row.ids for row in rows]).encode()
    return hashlib.blake2b(body, digest_size=16).hexdigest()


def _prepare(out: Path, plan: dict[str, Any]) -> tuple[str | None, int]:
    """The checkpoint to go on from and its step; (None, 0) for a fresh start."""
    file, folder = out / CHECKPOINTS / "plan.json", out / CHECKPOINTS
    if file.is_file():
        known = json.loads(file.read_text("utf-8"))
        if known != plan:
            differs = [key for key in plan if known.get(key) != plan[key]]
            raise TrainingError(
                f"{str(folder)!r} holds an unfinished training with other {', '.join(differs)}. Go on with the same, "
                "give another --out, or delete that folder to begin anew."
            )
    steps = sorted(
        (int(place.parent.name.rpartition("-")[2]), place.parent)
        for place in folder.glob("checkpoint-*/trainer_state.json")  # written last
    )
    if steps:
        logger.info("going on from step %d", steps[-1][0])
        return str(steps[-1][1]), steps[-1][0]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(plan), "utf-8")
    except OSError as error:
        raise TrainingError(f"{str(out)!r} cannot be written: {error.strerror}. Give another --out.") from error
    return None, 0


def _count(packages: _Packages, config: Any, settings: TrainSettings) -> tuple[int, int]:
    """The model's parameters, and those of the adapter: without memory for either."""
    with packages.torch.device("meta"):
        model = packages.transformers.AutoModelForCausalLM.from_config(config)
        parameters = sum(parameter.numel() for parameter in model.parameters())
        model = packages.peft.get_peft_model(model, _lora(packages, settings))
    return parameters, sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def _lora(packages: _Packages, settings: TrainSettings) -> Any:
    named: Any = settings.target_modules or None
    if named is not None and named != "all-linear":
        named = [word.strip() for word in named.split(",") if word.strip()]
    return packages.peft.LoraConfig(
        r=settings.r,
        lora_alpha=settings.alpha,
        lora_dropout=settings.dropout,
        bias="none",
        target_modules=named,
        task_type="CAUSAL_LM",
    )


def _model(packages: _Packages, name: str, start: str, settings: TrainSettings, *, four_bits: bool) -> Any:
    torch, peft = packages.torch, packages.peft
    cuda = torch.cuda.is_available()
    options: dict[str, Any] = {"dtype": torch.bfloat16 if four_bits and cuda else torch.float32}
    if four_bits:
        options["quantization_config"] = packages.transformers.BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type="nf4",
            bnb_4bit_use_double_quant=True,
            bnb_4bit_compute_dtype=torch.float16 if cuda else torch.float32,
        )
        options["device_map"] = {"": 0 if cuda else "cpu"}
    try:
        model = packages.transformers.AutoModelForCausalLM.from_pretrained(name, **options)
        model.config.use_cache = False
        if four_bits:
            model = peft.prepare_model_for_kbit_training(model, use_gradient_checkpointing=cuda)
        if start:
            return peft.PeftModel.from_pretrained(model, start, is_trainable=True)
        return peft.get_peft_model(model, _lora(packages, settings))
    except (OSError, ValueError) as error:
        raise ModelError(f"The model {name!r} cannot be trained: {error}") from error


@dataclass(frozen=True, slots=True)
class _Trainer:
    inner: Any
    total_steps: int


def _trainer(
    packages: _Packages,
    model: Any,
    learned: Sequence[TokenRow],
    held_out: Sequence[TokenRow],
    out: Path,
    settings: TrainSettings,
    pad: int,
    four_bits: bool,
    progress: Progress,
) -> _Trainer:
    torch, transformers = packages.torch, packages.transformers
    cuda = torch.cuda.is_available()
    batches = -(-len(learned) // settings.batch_size)
    an_epoch = -(-batches // settings.accumulate)
    every = max(1, an_epoch // settings.evaluations)
    arguments = transformers.TrainingArguments(
        output_dir=str(out / CHECKPOINTS),
        per_device_train_batch_size=settings.batch_size,
        per_device_eval_batch_size=settings.batch_size,
        gradient_accumulation_steps=settings.accumulate,
        num_train_epochs=settings.epochs,
        learning_rate=settings.learning_rate,
        optim="paged_adamw_8bit" if four_bits else "adamw_torch",
        bf16=cuda and torch.cuda.is_bf16_supported(),
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

    def features(rows: Sequence[TokenRow], labels: str) -> list[dict[str, Any]]:
        return [{"input_ids": row.ids, "labels": getattr(row, labels)} for row in rows]

    def collate(batch: Sequence[dict[str, Any]]) -> dict[str, Any]:
        width = max(len(row["input_ids"]) for row in batch)

        def padded(values: Sequence[Sequence[int]], filler: int) -> Any:
            return torch.tensor([[*row, *[filler] * (width - len(row))] for row in values])

        return {
            "input_ids": padded([row["input_ids"] for row in batch], pad),
            "attention_mask": padded([[1] * len(row["input_ids"]) for row in batch], 0),
            "labels": padded([row["labels"] for row in batch], IGNORED),
        }

    callback: Any = transformers.TrainerCallback

    class Told(callback):  # type: ignore[misc]
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            progress.advance(STAGE)

        def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **_: Any) -> None:
            logger.info("step %d: %s", state.global_step, logs)

    inner = transformers.Trainer(
        model=model,
        args=arguments,
        train_dataset=features(learned, settings.loss_on),
        eval_dataset={"reply": features(held_out, "reply"), "values": features(held_out, "values")},
        data_collator=collate,
        callbacks=[Told()],
    )
    inner.remove_callback(transformers.PrinterCallback)
    return _Trainer(inner, an_epoch * settings.epochs)


def _curve(history: Sequence[dict[str, Any]]) -> tuple[LossPoint, ...]:
    """transformers logs the three losses of a step apart."""
    points: dict[int, dict[str, float]] = {}
    for entry in history:
        point = points.setdefault(int(entry["step"]), {})
        point.update({key: float(entry[key]) for key in LOSSES if key in entry})
    nothing = float("nan")
    return tuple(
        LossPoint(step, losses.get("loss", nothing), losses["eval_reply_loss"], losses["eval_values_loss"])
        for step, losses in sorted(points.items())
        if "eval_reply_loss" in losses and "eval_values_loss" in losses
    )
