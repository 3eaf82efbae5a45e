"""Trains an adapter on pairs: `kraq finetune`."""

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from kraq_dspy.apps.cli.research.pairs import Kind
from kraq_dspy.apps.cli.shared.bars import Bars
from kraq_dspy.apps.cli.shared.options import Json
from kraq_dspy.apps.cli.shared.terminal import grid, output, print_json, say, two_columns
from kraq_dspy.apps.cli.shared.writable import require_writable

Pairs = Annotated[Path, typer.Option("--pairs", metavar="FILE", help="What `kraq pairs` wrote.")]
Base = Annotated[
    str, typer.Option("--base", metavar="MODEL", help="Folder or hub name of the model to adapt, or gguf/NAME.")
]
Out = Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The adapter's folder.")]
DropLong = Annotated[bool, typer.Option("--drop-long", help="Leave rows out that are too long.")]


@dataclass(frozen=True)
class Training:
    """`kraq_dspy.finetune.settings.TrainSettings` as options."""

    PANEL: ClassVar[str] = "Training"

    r: Annotated[int, typer.Option("--rank", min=1, help="Of the adapter (r).")] = 64
    alpha: Annotated[int, typer.Option("--alpha", min=1, help="The adapter counts alpha / r.")] = 16
    dropout: Annotated[float, typer.Option("--dropout", min=0, max=0.99, help="Of the adapter's input.")] = 0.05
    target_modules: Annotated[
        str, typer.Option("--target-modules", help="Layers to adapt: names with commas, or all-linear.")
    ] = ""
    quantize: Annotated[str, typer.Option("--quantize", help="nf4, none, or auto: nf4 on a GPU.")] = "auto"
    learning_rate: Annotated[float, typer.Option("--learning-rate", help="Of the optimizer, at its peak.")] = 2e-4
    batch_size: Annotated[int, typer.Option("--batch-size", min=1, help="Rows at once.")] = 2
    accumulate: Annotated[int, typer.Option("--accumulate", min=1, help="Batches in one step.")] = 4
    epochs: Annotated[int, typer.Option("--epochs", min=1, help="Times through the rows.")] = 3
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Of a row; longer ones are refused.")] = 2048
    held_out: Annotated[float, typer.Option("--held-out", min=0.01, max=0.9, help="Share to evaluate on.")] = 0.1
    loss_on: Annotated[str, typer.Option("--loss-on", help="reply, or values: the reply without markers.")] = "reply"
    evaluations: Annotated[int, typer.Option("--evaluations", min=1, help="In an epoch; each is a checkpoint.")] = 4
    seed: Annotated[int, typer.Option("--seed", help="Of the split, the order and the weights.")] = 0


def generator(
    pairs: Pairs, base: Base, out: Out, training: Training, drop_long: DropLong = False, json: Json = False
) -> None:
    """Train the question generator on (summary, question) pairs; the defaults are the papers'. Interrupted? The same
    command goes on from its last checkpoint."""
    _train(Kind.generator, pairs, base, out, training, drop_long=drop_long, json=json)


def drafter(
    pairs: Pairs, base: Base, out: Out, training: Training, drop_long: DropLong = False, json: Json = False
) -> None:
    """Train the drafter of Speculative RAG on (question, passages, rationale, response) rows."""
    _train(Kind.drafter, pairs, base, out, training, drop_long=drop_long, json=json)


def _train(kind: Kind, pairs: Path, base: str, out: Path, training: Training, *, drop_long: bool, json: bool) -> None:
    from kraq_dspy.finetune.card import write_card
    from kraq_dspy.finetune.pairs import chats_of, read_pairs
    from kraq_dspy.finetune.settings import TrainSettings
    from kraq_dspy.finetune.training import train_adapter

    settings = TrainSettings(**dataclasses.asdict(training))
    require_writable(out)
    chats = chats_of(read_pairs(pairs, kind.value), kind.value)
    with Bars(quiet=json) as bars:
        trained = train_adapter(chats, base, out, settings, drop_long=drop_long, progress=bars)
    facts = write_card(trained, kind.value, pairs)
    if json:
        print_json({"folder": str(out), **facts})
    else:
        _show(facts, kind, out)


def _show(facts: dict[str, Any], kind: Kind, out: Path) -> None:
    losses = []
    for point in facts["losses"]:
        values = (point[name] for name in ("train", "held_out", "values"))
        losses.append((point["step"], *("" if value is None else f"{value:.4f}" for value in values)))
    output.print(grid("Losses, nats a token", "step,trained on,held out,of its values", losses))
    data = facts["data"]
    rows = {
        "rows": f"{data['trained_on']:,} trained on, {data['held_out']:,} held out",
        "4 bits": facts["quantized"],
        "weights": facts["weights_hash"],
        "model": facts["model"],
        "card, plot": f"{out / 'README.md'}, {out / 'loss.svg'}",
    }
    output.print(two_columns(f"{kind.value} in {out}", rows))
    say(f'\n[roles.{kind.value}]\nmodel = "{facts["served"]}"\nadapter = "{out}"')
