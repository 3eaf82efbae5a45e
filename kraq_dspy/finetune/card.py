"""Describes an adapter beside its weights: a card to read, the same as JSON, and the losses as a plot."""

import hashlib
import json
import math
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kraq_dspy.errors import MissingExtraError, counted
from kraq_dspy.eval.learned import write_learned
from kraq_dspy.eval.tables.plots import loss_plot
from kraq_dspy.finetune.pairs import read_pairs
from kraq_dspy.finetune.training import LossPoint, Trained

PACKAGES = ("kraq-dspy", "torch", "transformers", "peft", "dspy")


def write_card(trained: Trained, kind: str, data: Path) -> dict[str, Any]:
    """Writes README.md, training.json and, with matplotlib, loss.svg into the adapter's folder; returns the JSON.

    Beside them stands learned.json, the fingerprints of the questions in `data`: `kraq eval` leaves these out.
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
        "losses": [_numbers(point) for point in trained.curve],
        "versions": {package: version(package) for package in PACKAGES},
    }
    (trained.folder / "training.json").write_text(json.dumps(facts, indent=2, ensure_ascii=False) + "\n", "utf-8")
    (trained.folder / "README.md").write_text(_card(trained, kind, facts), "utf-8")
    pairs = read_pairs(data, kind)
    write_learned(trained.folder, [str({**pair.inputs, **pair.outputs}["question"]) for pair in pairs])
    try:
        plot = loss_plot(curves_of(trained))
    except MissingExtraError:
        return facts
    (trained.folder / "loss.svg").write_text(plot.svg + "\n", "utf-8")
    return facts


def curves_of(trained: Trained) -> dict[str, list[tuple[float, float]]]:
    return {
        "trained on": [(point.step, point.train) for point in trained.curve if not math.isnan(point.train)],
        "held out": [(point.step, point.held_out) for point in trained.curve],
        "held out, field values alone": [(point.step, point.values) for point in trained.curve],
    }


def _numbers(point: LossPoint) -> dict[str, Any]:
    return {name: None if math.isnan(value) else value for name, value in asdict(point).items()}


def _card(trained: Trained, kind: str, facts: dict[str, Any]) -> str:
    settings, data = trained.settings, facts["data"]
    rows = "\n".join(
        f"| {point.step} | {'' if math.isnan(point.train) else f'{point.train:.4f}'} | {point.held_out:.4f} "
        f"| {point.values:.4f} |"
        for point in trained.curve
    )
    versions = ", ".join(f"{package} {number}" for package, number in facts["versions"].items())
    return f"""---
base_model: {trained.base}
library_name: peft
pipeline_tag: text-generation
---

# {kind}, a LoRA adapter for {Path(trained.base).name}

Trained by `kraq finetune {kind}` on the prompts that the step is asked with; the loss is on the {settings.loss_on}.

    [roles.{kind}]
    model = "{trained.served}"
    adapter = "{trained.folder}"

| | |
|---|---|
| weights | {trained.weights_hash} |
| data | {data["file"]}, sha256 {data["sha256"]} |
| rows | {data["trained_on"]} trained on, {data["held_out"]} held out, {data["left_out_as_too_long"]} too long |
| adapter | r {settings.r}, alpha {settings.alpha}, dropout {settings.dropout}, \
{trained.trained_parameters:,} parameters |
| 4 bits | {facts["quantized"]} |
| training | {counted(settings.epochs, "epoch")}, {settings.batch_size} x {settings.accumulate} rows a step, \
learning rate {settings.learning_rate:g}, {settings.max_tokens} tokens, seed {settings.seed} |
| made with | {versions} |

Losses in nats a token, on replies; "values" leaves the field markers out.

| step | trained on | held out | held out, values |
|---|---|---|---|
{rows}
"""
