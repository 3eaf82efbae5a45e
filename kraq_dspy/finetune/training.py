"""Trains a LoRA adapter on chats: QLoRA on a GPU, plain LoRA elsewhere, resumable; and keeps what it was made of."""

import gc
import hashlib
import json
import logging
import math
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kraq_dspy.errors import TrainingError
from kraq_dspy.eval.questions import write_learned
from kraq_dspy.finetune.lora_model import STAGE, TrainPackages, in_four_bits, make_lora_model, make_trainer, read_base
from kraq_dspy.finetune.pairs import Pair
from kraq_dspy.finetune.token_rows import Chat, digest_of, fitting_rows, hold_out, token_row
from kraq_dspy.finetune.train_settings import TrainSettings
from kraq_dspy.models.lms.local_models import GGUF, TRANSFORMERS, WEIGHTS, adapter_folder, local_file, weights_hash
from kraq_dspy.ports import Progress, SilentProgress

logger = logging.getLogger(__name__)

CHECKPOINTS = "checkpoints"


@dataclass(frozen=True, slots=True)
class LossPoint:
    """Losses at one point of a training, in nats per token.

    Attributes:
        step: the number of optimizer steps so far.
        train: the mean loss since the point before; NaN at step 0.
        held_out: the loss on the replies of held-out examples.
    """

    step: int
    train: float
    held_out: float


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained adapter.

    Attributes:
        folder: the folder of the adapter.
        base: the base model.
        served: the name of the base for a role: "transformers/FOLDER" or "gguf/NAME".
        model: the name of the adapter for a role: "transformers/FOLDER#ADAPTER@HASH".
        weights_hash: a hash of the adapter's weights.
        data_hash: a hash of the training examples.
        settings: the settings of the training.
        quantized: whether the base was in 4 bits.
        rows: the numbers of examples to train and to evaluate on.
        longest: the length of the longest example, in tokens.
        trained_parameters: the number of trained parameters.
        curve: the losses at each checkpoint.
        left_out: the number of examples that were too long.
        resumed_from: the step that the run resumed from; 0 for none.

    >>> trained = train_adapter(chats, "models/small", Path("adapters/mine"))  # doctest: +SKIP
    >>> trained.curve[-1].held_out, trained.model  # doctest: +SKIP
    (0.93, 'transformers/models/small#adapters/mine@1a2b3c4d')
    """

    folder: Path
    base: str
    served: str
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
    replace: bool = False,
    progress: Progress | None = None,
) -> Trained:
    """Train a LoRA adapter on the replies of chats.

    Args:
        chats: the messages of each training example, the reply last.
        base: a folder, a hub name, or "gguf/NAME"; with "#ADAPTER", training continues from that adapter.
        out: the folder of the adapter. The same call resumes from the last checkpoint.
        settings: how to train; by default as the KRAQ paper.
        replace: overwrite a finished adapter in `out`.
        progress: is called as the training advances.

    Returns:
        The adapter, with its losses.

    Raises:
        TrainingError: for too few examples, a finished adapter, or a run to resume with other examples or
            settings.
        MissingExtraError: without peft.
        ModelError: if the base does not load.

    >>> chats = chats_of(read_pairs(Path("pairs.jsonl")), "generator")  # doctest: +SKIP
    >>> train_adapter(chats, "models/small", Path("adapters/mine"), TrainSettings(epochs=1))  # doctest: +SKIP
    """
    settings = settings or TrainSettings()
    progress = progress or SilentProgress()
    packages = TrainPackages()
    served, _, started = base.partition("#")
    name = str(local_file(served.removeprefix(GGUF))) if served.startswith(GGUF) else served.removeprefix(TRANSFORMERS)
    served = served if served.startswith(GGUF) else TRANSFORMERS + name
    start = adapter_folder(started)[0] if started else ""
    four_bits = in_four_bits(packages, settings)
    if not chats:
        raise TrainingError("There is nothing to train on: 0 rows. Make some with `kraq finetune pairs`.")

    with packages.quiet():
        tokenizer, config = read_base(packages, name)
    rows = [token_row(tokenizer, chat) for chat in chats]
    rows = fitting_rows(rows, settings, config)
    learned, held_out = hold_out(rows, settings)
    data_hash = digest_of(rows)
    plan = {
        "base": name,
        "start": weights_hash(start) if start else "",
        "rows": data_hash,
        "settings": asdict(settings),
        "quantized": four_bits,
    }
    resumed = _prepare(out, plan, replace=replace)
    with packages.quiet():
        packages.transformers.set_seed(settings.seed)
        model = make_lora_model(packages, name, start, settings, four_bits=four_bits)
        pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else 0
        trainer, steps = make_trainer(
            packages, model, learned, held_out, out / CHECKPOINTS, settings, pad, four_bits, progress
        )
        progress.start(STAGE, steps)
        progress.advance(STAGE, resumed[1])
        trainer.train(resume_from_checkpoint=resumed[0])
        progress.finish(STAGE)
        _save(model, out)
        trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)

    # transformers logs the two losses of a step apart, and those of a step that it goes on from twice
    on_train, held = (
        {int(entry["step"]): float(entry[name]) for entry in trainer.state.log_history if name in entry}
        for name in ("loss", "eval_loss")
    )
    curve = tuple(LossPoint(step, on_train.get(step, math.nan), loss) for step, loss in sorted(held.items()))
    del model, trainer
    gc.collect()
    packages.torch.cuda.empty_cache()  # does nothing without a GPU
    shutil.rmtree(out / CHECKPOINTS, ignore_errors=True)
    digest = weights_hash(out)
    return Trained(
        folder=out,
        base=name,
        served=served,
        model=f"{served}#{out}@{digest[:8]}",
        weights_hash=digest,
        data_hash=data_hash,
        settings=settings,
        quantized=four_bits,
        rows=(len(learned), len(held_out)),
        longest=max(len(row.ids) for row in rows),
        trained_parameters=trained,
        curve=curve,
        left_out=len(chats) - len(rows),
        resumed_from=resumed[1],
    )


def _save(model: Any, out: Path) -> None:
    """Write the adapter, whole or not at all: a process that is killed leaves what was there, and its checkpoints."""
    made = out / CHECKPOINTS / "finished"
    shutil.rmtree(made, ignore_errors=True)
    model.save_pretrained(str(made))
    for file in sorted(made.iterdir(), key=lambda each: each.name == WEIGHTS):  # what makes it an adapter comes last
        file.replace(out / file.name)


def _prepare(out: Path, plan: dict[str, Any], *, replace: bool = False) -> tuple[str | None, int]:
    """The checkpoint to go on from and its step; (None, 0) for a fresh start.

    Raises TrainingError for another training that was not finished, and for a finished adapter unless it is to be
    replaced.
    """
    file, folder = out / CHECKPOINTS / "plan.json", out / CHECKPOINTS
    if (out / WEIGHTS).exists() and not file.is_file() and not replace:
        raise TrainingError(
            f"{str(out)!r} holds a finished adapter. Give another --out, or let the new one take its place: --replace "
            "(replace=True)."
        )

    if file.is_file():
        known = json.loads(file.read_text("utf-8"))
        if known != plan:
            differs = [key for key in plan if known.get(key) != plan[key]]
            raise TrainingError(
                f"{str(folder)!r} holds an unfinished training with other {', '.join(differs)}. "
                "Continue with the same values, give another --out, or delete that folder to begin again."
            )

    steps = sorted(
        (int(place.parent.name.rpartition("-")[2]), place.parent)
        for place in folder.glob("checkpoint-*/trainer_state.json")  # written last
    )
    if steps:
        logger.info("resuming from step %d", steps[-1][0])
        return str(steps[-1][1]), steps[-1][0]

    try:
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(plan), "utf-8")
    except OSError as error:
        raise TrainingError(f"{str(out)!r} cannot be written: {error.strerror}. Give another --out.") from error
    return None, 0


PACKAGES = ("kraq-dspy", "torch", "transformers", "peft", "dspy")


def write_facts(trained: Trained, kind: str, data: Path, pairs: Sequence[Pair]) -> dict[str, Any]:
    """Writes training.json into the adapter's folder: hashes of data and weights, settings, losses; returns it.

    `pairs` are those of the file `data` that were trained on. Beside the facts stands learned.json, the fingerprints
    of their questions: `kraq eval` leaves these out.
    """
    facts = {
        "step": kind,
        "base": trained.base,
        "served": trained.served,
        "model": trained.model,
        "weights_hash": trained.weights_hash,
        "data": {
            "file": data.name,
            "sha256": hashlib.sha256(data.read_bytes()).hexdigest(),
            "tokens_hash": trained.data_hash,
            "trained_on": trained.rows[0],
            "held_out": trained.rows[1],
            "left_out_as_too_long": trained.left_out,
            "longest_row_tokens": trained.longest,
        },
        "settings": asdict(trained.settings),
        "quantized": "nf4, double quantisation" if trained.quantized else "no",
        "trained_parameters": trained.trained_parameters,
        "resumed_from_step": trained.resumed_from,
        "losses": [
            {**asdict(point), "train": None if math.isnan(point.train) else point.train} for point in trained.curve
        ],
        "versions": {package: version(package) for package in PACKAGES},
    }
    (trained.folder / "training.json").write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", "utf-8")
    write_learned(trained.folder, [str({**pair.inputs, **pair.outputs}["question"]) for pair in pairs])
    return facts
