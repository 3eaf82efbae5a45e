"""Makes pairs that a small model can learn from, and trains it on them: `kraq finetune pairs` and `kraq finetune`."""

from pathlib import Path
from typing import Annotated, Any, Literal

import dspy
from typer import Option

from kraq_dspy.apps.cli.model_options import Calls, Limits
from kraq_dspy.apps.cli.options import (
    DataDir,
    First,
    Flag,
    Json,
    chosen,
    command_class,
    missing,
    require_writable,
    require_writable_file,
    with_options_of,
)
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.terminal import grid, output, print_json, say, show_counts, two_columns
from kraq_dspy.eval.datasets import load_dataset
from kraq_dspy.finetune.pairs import Pair, chats_of, plain_pairs, read_pairs
from kraq_dspy.finetune.teacher import TEACHING, pairs_from_dataset
from kraq_dspy.finetune.train_settings import TrainSettings
from kraq_dspy.finetune.training import train_adapter, write_facts
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.lms.meter import Meter
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.settings import QUESTION_TOKENS
from kraq_dspy.state import load_state

Kind = Literal["generator", "drafter"]
Recipe = Literal["generator", "asker", "drafter"]


@command_class
class MakePairs(Calls, Limits):
    """Make (summary, question) pairs with a teacher model.

    The teacher writes the summary of a question's evidence, and must not give the question away. The same command
    resumes an interrupted run.
    """

    out: Annotated[
        Path | None, Option("--out", "-o", metavar="FILE", help="Needed: JSON lines to write, or to continue.")
    ] = None
    dataset: Annotated[str | None, Option(help="Needed: questions with evidence: musique, dolly, ...")] = None
    data: DataDir = Path("data")
    kind: Annotated[Kind, Option("--for", help="Model the pairs will train.")] = "generator"
    limit: First = None
    optimized: Annotated[
        Path | None, Option(metavar="FILE", help="The teacher's step as a file of save: with its demos.")
    ] = None
    json: Json = False

    def run(self) -> None:
        if self.dataset is None or self.out is None:
            raise missing({"--dataset NAME, with its folder's parent in --data": self.dataset, "--out FILE": self.out})
        require_writable_file(self.out)
        questions = load_dataset(self.dataset, self.data)
        settings = self.settings()
        models = LanguageModels(settings, embedder=load_embedder(settings.encoder), meter=Meter(self.limits(settings)))
        step = dspy.Predict(TEACHING[self.kind])
        if self.optimized is not None:
            load_state(step, self.optimized)
        with Bars(settings, quiet=self.json) as bars:
            report = pairs_from_dataset(
                questions, self.out, models, kind=self.kind, step=step, limit=self.limit, progress=bars
            )
        if self.json:
            print_json(report)
        else:
            show_counts("Pairs", report)


@with_options_of(TrainSettings, r="--rank")
@command_class
class Training:
    """The paths, and `TrainSettings` as options."""

    pairs: Annotated[Path, Option("--pairs", metavar="FILE", help="JSON lines of pairs.")]
    base: Annotated[
        str, Option("--base", metavar="MODEL", help="Folder or hub name of the model to adapt, or gguf/NAME.")
    ]
    out: Annotated[Path, Option("--out", "-o", metavar="DIR", help="The adapter's folder.")]
    replace: Annotated[bool, Flag("--replace", help="Overwrite a finished adapter in --out.")] = False
    json: Json = False

    def train(self, kind: Recipe, pairs: list[Pair] | None = None) -> None:
        settings = chosen(TrainSettings, self)
        require_writable(self.out)
        pairs = read_pairs(self.pairs, kind) if pairs is None else pairs
        chats = chats_of(pairs, kind)
        with Bars(quiet=self.json) as bars:
            trained = train_adapter(chats, self.base, self.out, settings, replace=self.replace, progress=bars)
        facts = write_facts(trained, kind, self.pairs, pairs)
        if self.json:
            print_json({"folder": str(self.out), **facts})
        else:
            _show(facts, kind, self.out)


class Generator(Training):
    """Train the question generator on (summary, question) pairs.

    The defaults are the papers'. The same command resumes an interrupted run from its last checkpoint.
    """

    def run(self) -> None:
        self.train("generator")


@command_class
class Asker(Training):
    """Train what words questions on (statement, answer, question) pairs.

    The pairs are of people. Those whose question says more than the statement, or does not stand alone, are left
    out.
    """

    source: Annotated[
        list[str] | None, Option(metavar="NAME", help="Only pairs of this data set; may be repeated.")
    ] = None

    def run(self) -> None:
        plain, faults = plain_pairs(read_pairs(self.pairs, "asker"), self.source or ())
        if not self.json:
            show_counts("Pairs", {"learned from": len(plain), **dict(faults.most_common())})
        self.train("asker", plain)


class Drafter(Training):
    """Train the drafter of Speculative RAG on its rationales.

    A row has question, passages, rationale and response.
    """

    def run(self) -> None:
        self.train("drafter")


def _show(facts: dict[str, Any], kind: Recipe, out: Path) -> None:
    losses = []
    for point in facts["losses"]:
        values = (point[name] for name in ("train", "held_out"))
        losses.append((point["step"], *("" if value is None else f"{value:.4f}" for value in values)))

    output.print(grid("Losses, nats a token", ("step", "trained on", "held out"), losses))
    data = facts["data"]
    rows = {
        "rows": f"{data['trained_on']:,} trained on, {data['held_out']:,} held out",
        "4 bits": facts["quantized"],
        "weights": facts["weights_hash"],
        "model": facts["model"],
        "facts": str(out / "training.json"),
    }
    output.print(two_columns(f"{kind} in {out}", rows))
    say("\n" + role_of(facts, kind, out))


def role_of(facts: dict[str, Any], kind: Recipe, out: Path) -> str:
    """The section of kraq.toml that uses an adapter; those of questions end replies that do not end."""

    lines = [f"[roles.{kind}]", f'model = "{facts["served"]}"', f'adapter = "{out}"']
    if kind != "drafter":
        lines.append(f"max_tokens = {QUESTION_TOKENS}")
    return "\n".join(lines)
