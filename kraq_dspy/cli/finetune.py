"""`kraq pairs` and `kraq finetune`: what to learn from, and the adapter that learned it."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from kraq_dspy.cli import options
from kraq_dspy.cli.terminal import Bars, output, print_json, two_columns

finetune = typer.Typer(help="Train a small model for a step (LoRA).", no_args_is_help=True)


class Kind(StrEnum):
    generator = "generator"
    drafter = "drafter"


def pairs(
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FILE", help="JSON lines to write or to go on with.")],
    dataset: Annotated[
        str | None, typer.Option("--dataset", metavar="NAME", help="Questions with evidence: musique, dolly, ...")
    ] = None,
    data: Annotated[Path, typer.Option("--data", metavar="DIR", help="Folder of data sets.")] = Path("data"),
    kind: Annotated[Kind, typer.Option("--for", help="Who shall learn from them.")] = Kind.generator,
    index: Annotated[
        Path | None,
        typer.Option("--index", metavar="DIR", help="Summaries of this index, with the data set's questions."),
    ] = None,
    least_similarity: Annotated[
        float, typer.Option("--least-similarity", min=-1, max=1, help="With --index: cosine of summary and question.")
    ] = 0.5,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Only the first N questions.")
    ] = None,
    config: options.SettingsFile = None,
    lm: options.Model = None,
    api_base: options.ApiBase = None,
    concurrency: options.Concurrency = None,
    max_calls: options.MaxCalls = None,
    max_tokens: options.MaxTokens = None,
    max_cost: options.MaxCost = None,
    json: options.Json = False,
) -> None:
    """Make (summary, question) pairs: a teacher writes the summary of a question's evidence, and must not give the
    question away. With --index no model is asked. Interrupted? The same command goes on."""
    from kraq_dspy.embedders import load_embedder
    from kraq_dspy.errors import ConfigError
    from kraq_dspy.eval.datasets import load_dataset
    from kraq_dspy.finetune.teacher import pairs_from_dataset, pairs_from_index
    from kraq_dspy.lms.meter import Meter
    from kraq_dspy.lms.roles import LanguageModels
    from kraq_dspy.stores.index import Index

    if dataset is None:
        raise ConfigError("Name the questions: --dataset NAME, with its folder's parent in --data.")
    if index is not None and kind is Kind.drafter:
        raise ConfigError("An index has no answers to draft: leave --index out for --for drafter.")
    found = load_dataset(dataset, data)
    if index is not None:
        with Index.open(index) as opened:
            made = pairs_from_index(
                opened,
                [example.question for example in found.examples[:limit]],
                load_embedder(opened.manifest.settings.encoder),
                out,
                source=f"{dataset} with {index.name}",
                least_similarity=least_similarity,
            )
    else:
        settings = options.settings_from(config, lm=lm, api_base=api_base, concurrency=concurrency)
        limits = options.limits_from(max_calls, max_tokens, max_cost)
        models = LanguageModels(settings, embedder=load_embedder(settings.encoder), meter=Meter(limits))
        with Bars(quiet=json) as bars:
            made = pairs_from_dataset(found, out, models, kind=kind.value, limit=limit, progress=bars)
    if json:
        print_json({"file": str(made.path), "pairs": made.pairs, "rejected": made.rejected, "known": made.known})
        return
    rows = {"new pairs": f"{made.pairs:,}", "decided before": f"{made.known:,}", "file": str(made.path)}
    for reason, count in sorted(made.rejected.items()):
        rows[f"left out: {reason}"] = f"{count:,}"
    output.print(two_columns("Pairs", rows))


def _train(
    kind: Kind,
    pairs: Annotated[Path, typer.Option("--pairs", metavar="FILE", help="What `kraq pairs` wrote.")],
    base: Annotated[str, typer.Option("--base", metavar="MODEL", help="Folder or hub name of the model to adapt.")],
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="The adapter's folder.")],
    rank: Annotated[int, typer.Option("--rank", min=1, help="Of the adapter (r).")] = 64,
    alpha: Annotated[int, typer.Option("--alpha", min=1)] = 16,
    dropout: Annotated[float, typer.Option("--dropout", min=0, max=0.99)] = 0.05,
    target_modules: Annotated[
        str, typer.Option("--target-modules", help="Layers to adapt: names with commas, or all-linear.")
    ] = "",
    quantize: Annotated[str, typer.Option("--quantize", help="nf4, none, or auto: nf4 on a GPU.")] = "auto",
    learning_rate: Annotated[float, typer.Option("--learning-rate")] = 2e-4,
    batch_size: Annotated[int, typer.Option("--batch-size", min=1)] = 2,
    accumulate: Annotated[int, typer.Option("--accumulate", min=1, help="Batches in one step.")] = 4,
    epochs: Annotated[int, typer.Option("--epochs", min=1)] = 3,
    max_tokens: Annotated[int, typer.Option("--max-tokens", min=1, help="Of a row; longer ones are refused.")] = 2048,
    held_out: Annotated[float, typer.Option("--held-out", min=0.01, max=0.9, help="Share to evaluate on.")] = 0.1,
    loss_on: Annotated[str, typer.Option("--loss-on", help="reply, or values: the reply without markers.")] = "reply",
    evaluations: Annotated[int, typer.Option("--evaluations", min=1, help="In an epoch; each is a checkpoint.")] = 4,
    drop_long: Annotated[bool, typer.Option("--drop-long", help="Leave rows out that are too long.")] = False,
    seed: Annotated[int, typer.Option("--seed")] = 0,
    json: options.Json = False,
) -> None:
    from kraq_dspy.finetune.card import write_card
    from kraq_dspy.finetune.pairs import chats_of, read_pairs
    from kraq_dspy.finetune.settings import TrainSettings
    from kraq_dspy.finetune.training import train_adapter

    settings = TrainSettings(
        r=rank, alpha=alpha, dropout=dropout, target_modules=target_modules, quantize=quantize,
        learning_rate=learning_rate, batch_size=batch_size, accumulate=accumulate, epochs=epochs,
        max_tokens=max_tokens, held_out=held_out, loss_on=loss_on, evaluations=evaluations, seed=seed,
    )  # fmt: skip
    chats = chats_of(read_pairs(pairs, kind.value), kind.value)
    with Bars(quiet=json) as bars:
        trained = train_adapter(chats, base, out, settings, drop_long=drop_long, progress=bars)
    facts = write_card(trained, kind.value, pairs)
    if json:
        print_json({"folder": str(out), **facts})
        return
    _show(facts, kind, out)


def _show(facts: dict[str, Any], kind: Kind, out: Path) -> None:
    table = Table("step", "trained on", "held out", "held out, values", title="Losses, nats a token")
    for point in facts["losses"]:
        told = (point[name] for name in ("train", "held_out", "values"))
        table.add_row(str(point["step"]), *("" if value is None else f"{value:.4f}" for value in told))
    output.print(table)
    data = facts["data"]
    rows = {
        "rows": f"{data['trained_on']:,} trained on, {data['held_out']:,} held out",
        "4 bits": facts["quantized"],
        "weights": facts["weights_hash"],
        "model": facts["model"],
        "card, plot": f"{out / 'README.md'}, {out / 'loss.svg'}",
    }
    output.print(two_columns(f"{kind.value} in {out}", rows))
    output.print(Text(f'\n[roles.{kind.value}]\nmodel = "transformers/{facts["base"]}"\nadapter = "{out}"'))


def _command(kind: Kind, about: str) -> None:
    import functools
    import inspect

    @functools.wraps(_train)
    def command(**words: Any) -> None:
        _train(kind, **words)

    signature = inspect.signature(_train)
    command.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    command.__doc__ = about
    finetune.command(kind.value)(command)


_command(
    Kind.generator,
    "Train the question generator on (summary, question) pairs; the defaults are the papers'. Interrupted? The same "
    "command goes on from its last checkpoint.",
)
_command(Kind.drafter, "Train the drafter of Speculative RAG on (question, passages, rationale, response) rows.")
