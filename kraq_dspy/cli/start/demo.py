"""`kraq demo`: the whole way on bundled passages, with the embedded model, in a minute or two."""

import json as json_lines
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from kraq_dspy.cli.ask.ask import answer_fields, show_answer
from kraq_dspy.cli.shared.bars import Bars
from kraq_dspy.cli.shared.options import Json, Models
from kraq_dspy.cli.shared.report import show_report
from kraq_dspy.cli.shared.terminal import command, grid, output, print_json, say, short
from kraq_dspy.errors import CorpusError
from kraq_dspy.records import Community, Question

if TYPE_CHECKING:
    from kraq_dspy.workspace import Workspace

PROGRAMS = ("traditional", "combined")
BUDGET = 10  # passages for each question
SHOWN = 3  # questions answered on the screen


def demo(
    models: Models,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="DIR", help="Where the index goes.")] = Path("demo.kraq"),
    json: Json = False,
) -> None:
    """Index the bundled passages, show the questions that stand for them, answer, and measure."""
    from kraq_dspy.indexing.build import build_index
    from kraq_dspy.workspace import Workspace

    example = _example_folder()
    settings = models.settings()
    if not json:
        output.print(f"[bold]1. Index[/] {example.name}: HotpotQA passages from Wikipedia, CC BY-SA 4.0")
    with Bars(settings, quiet=json) as bars:
        report = build_index(example / "corpus.jsonl", out, settings=settings, progress=bars)
    questions = [json_lines.loads(line) for line in (example / "questions.jsonl").read_text("utf-8").splitlines()]
    with Workspace.open(out, settings=settings) as space:
        if not json:
            show_report(report, json=False)
            output.print("\n[bold]2. The broadest communities, their questions, and the questions inside them[/]")
            output.print(_tree(space))
            output.print(f"\n[bold]3. {SHOWN} questions, answered by both programs from {BUDGET} passages[/]")
        programs = {name: space.program(name, k=BUDGET) for name in PROGRAMS}
        model = space.models["answerer"].model
        answers: dict[str, list[Any]] = {name: [] for name in PROGRAMS}
        with Bars(quiet=json) as bars:
            bars.start("answer", len(questions) * len(PROGRAMS))
            for question in questions:
                for name, program in programs.items():
                    answers[name].append(space.ask(program, question["question"]))
                    bars.advance("answer")
        measured = {name: _measured(questions, given) for name, given in answers.items()}
        if json:
            shown = [
                answer_fields(question["question"], name, model, answers[name][place])
                for place, question in enumerate(questions[:SHOWN])
                for name in PROGRAMS
            ]
            print_json({"report": report, "answers": shown, "measured": measured})
            return
        for place, question in enumerate(questions[:SHOWN]):
            for name in PROGRAMS:
                show_answer(question["question"], name, model, answers[name][place], evidence=5)
            output.print(Text(f"  gold answer: {', '.join(question['answers'])}\n", style="green"))
    output.print(f"[bold]4. All {len(questions)} questions[/], model {model}, encoder {space.embedder.name}")
    output.print(_table(measured))
    say(f"The index stays in {out}. Try: {command('ask', out, questions[SHOWN]['question'])}")


def _example_folder() -> Path:
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "examples", package.parent / "examples"):
        if (folder / "hotpotqa-mini").is_dir():
            return folder / "hotpotqa-mini"
    raise CorpusError("The bundled example hotpotqa-mini is missing; reinstall kraq-dspy.")


def _tree(space: "Workspace", tops: int = 5, inside: int = 3) -> Tree:
    """The largest communities of level 0 with their questions, each with a few of the communities inside it."""
    index = space.index
    communities = {community.id: community for community in index.all(Community)}
    questions = {question.community_id: question for question in index.all(Question) if question.source == "kraq"}

    def label(community: Community) -> Text:
        question = questions.get(community.id)
        asked = short(question.text, 90) if question else Text("no question")
        size = f"  {len(community.entity_ids)} entities, {len(community.chunk_ids)} passages"
        return asked + Text(size, style="dim")

    tree = Tree(f"{len(communities):,} communities")
    broadest = [community for community in communities.values() if community.level == 0]
    for community in _largest(broadest, tops):
        branch = tree.add(label(community))
        children = [communities[child_id] for child_id in community.child_ids]
        for child in _largest(children, inside):
            branch.add(label(child))
        if len(children) > inside:
            branch.add(Text(f"and {len(children) - inside} more", style="dim"))
    return tree


def _largest(communities: Iterable[Community], count: int) -> list[Community]:
    return sorted(communities, key=lambda community: (-len(community.entity_ids), community.id))[:count]


def _measured(questions: Sequence[dict[str, Any]], answers: Sequence[Any]) -> dict[str, float]:
    """Means over the questions; the measures are those of `kraq_dspy.eval`."""
    from kraq_dspy.eval.metrics.answers import exact_match
    from kraq_dspy.eval.metrics.retrieval import all_supporting_at_k, recall_at_k

    def mean(values: Iterable[float]) -> float:
        return sum(values) / len(questions)

    gold = [frozenset(question["supporting_ids"]) for question in questions]
    ranked = [list(dict.fromkeys(hit.chunk.document_id for hit in answer.hits)) for answer in answers]
    pairs = list(zip(gold, ranked, strict=True))
    return {
        f"recall@{BUDGET}": mean(recall_at_k(*pair, k=BUDGET) for pair in pairs),
        f"all found@{BUDGET}": mean(all_supporting_at_k(*pair, k=BUDGET) for pair in pairs),
        "exact match": mean(
            exact_match(question["answers"], answer.answer) for question, answer in zip(questions, answers, strict=True)
        ),
    }


def _table(measured: dict[str, dict[str, float]]) -> Table:
    headings = ["program", *(f">{name}" for name in next(iter(measured.values())))]
    rows = [(program, *(f"{value:.3f}" for value in values.values())) for program, values in measured.items()]
    return grid("", ",".join(headings), rows)
