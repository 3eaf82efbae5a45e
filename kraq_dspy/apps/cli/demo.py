"""Goes the whole way on bundled passages, with the embedded model or another: `kraq demo`."""

import dataclasses
import json as json_lines
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Option

from kraq_dspy.apps.cli.options import Json, Models, command_class
from kraq_dspy.apps.cli.progress import Bars, show_report
from kraq_dspy.apps.cli.terminal import command, counted, grid, output, print_json, say

if TYPE_CHECKING:
    from kraq_dspy.workspace import Workspace
    from kraq_dspy.workspace.choices import ProgramChoice

PROGRAMS = ("traditional", "combined")
BUDGET = 10  # passages for each question
SHOWN = 3  # questions answered on the screen
BROADEST = 12  # questions listed


@command_class
class Demo(Models):
    """Index bundled passages, show their questions, answer, measure, and pick a retriever by a
    self-synthetic test set."""

    first: Annotated[
        int | None, Option(min=1, metavar="N", help="Only N questions and their passages: for slow models.")
    ] = None
    out: Annotated[Path, Option("--out", "-o", metavar="DIR", help="Folder of the index.")] = Path("demo.kraq")
    json: Json = False

    def run(self) -> None:
        from kraq_dspy.apps.cli.ask import answer_fields
        from kraq_dspy.apps.cli.demo_testset import show_testset, take_testset
        from kraq_dspy.asset.corpus.load import bundled_example
        from kraq_dspy.embedded_model import analyst
        from kraq_dspy.indexing.index.build import build_index
        from kraq_dspy.models.embedders import load_embedder, resolve_encoder
        from kraq_dspy.workspace import Workspace
        from kraq_dspy.workspace.choices import choose_program

        example = bundled_example()
        settings = self.settings()
        encoder = resolve_encoder(settings.encoder)
        if encoder.precision == "auto":  # torch would change the third digit of the figures
            encoder = dataclasses.replace(encoder, precision="int8")
        settings = dataclasses.replace(settings, encoder=encoder)
        embedder = load_embedder(settings.encoder)  # a missing package is said before anything else
        questions, corpus = self._questions_and_corpus(example)
        analyst().take_shipped(example)
        if not self.json:
            say(
                ("1. Index", "bold"),
                f" {example.name}: HotpotQA passages from Wikipedia, CC BY-SA 4.0",
            )
        with Bars(settings, quiet=self.json) as bars:
            report = build_index(corpus, self.out, settings=settings, embedder=embedder, progress=bars)

        with Workspace.open(self.out, settings=settings, embedder=embedder) as space:
            if not self.json:
                show_report(report, json=False)
                say("\n2. Questions that it answers, the broadest first", style="bold")
                show_broadest(space)
            choices = {name: choose_program(name, options={"k": BUDGET}) for name in PROGRAMS}
            answers = self._answers(space, choices, questions)
            model = space.models["answerer"].model
            testset = None
            if not self.first:
                with Bars(quiet=self.json) as bars:
                    testset = take_testset(space, questions, bars)

        measured = {name: _measured(questions, own) for name, own in answers.items()}
        if self.json:
            shown = [
                answer_fields(question["question"], name, model, own[place])
                for place, question in enumerate(questions[:SHOWN])
                for name, own in answers.items()
            ]
            print_json({"report": report, "answers": shown, "measured": measured, "testset": testset})
            return
        _show_answers(questions[:SHOWN], choices, answers, model)
        all_of_them = counted(len(questions), "question")
        say((f"4. All of {all_of_them}", "bold"), f", model {model}, encoder {embedder.name}")
        names = list(measured[PROGRAMS[0]])
        rows = []
        for program, means in measured.items():
            rows.append((program, *(f"{mean:.3f}" for mean in means.values())))
        output.print(grid("", ["program", *names], rows, right=names))
        if testset is not None:
            show_testset(testset)
        next_question = questions[: SHOWN + 1][-1]["question"]
        say(f"The index stays in {self.out}. Try: {command('ask', self.out, next_question)}")

    def _questions_and_corpus(self, example: Path) -> tuple[list[dict[str, Any]], Any]:
        """Return the questions to ask, and all passages, or only those that belong to the
        questions."""
        from kraq_dspy.asset.corpus.load import load_documents

        lines = (example / "questions.jsonl").read_text("utf-8").splitlines()
        questions = [json_lines.loads(line) for line in lines[: self.first]]
        corpus = example / "corpus.jsonl"
        if self.first is None:
            return questions, corpus

        shown_with_them: set[str] = set()
        for question in questions:
            shown_with_them.update(question["context_ids"])
        documents = load_documents(corpus)
        return questions, [each for each in documents if getattr(each, "id", None) in shown_with_them]

    def _answers(
        self,
        space: "Workspace",
        choices: Mapping[str, "ProgramChoice"],
        questions: Sequence[dict[str, Any]],
    ) -> dict[str, list[Any]]:
        """Each program's answer to each question."""
        programs = {name: space.make_program(choice) for name, choice in choices.items()}
        answers: dict[str, list[Any]] = {name: [] for name in programs}

        with Bars(quiet=self.json) as bars:
            bars.start("answer", len(questions) * len(programs))
            for question in questions:
                for name, program in programs.items():
                    answer = space.ask(question["question"], program, next_questions=0)
                    answers[name].append(answer)
                    bars.advance("answer")
        return answers


def show_broadest(space: "Workspace") -> None:
    """The first questions as `kraq questions` lists them, and how many passages answer each."""
    from kraq_dspy.apps.cli.index import shown_question
    from kraq_dspy.workspace.topics import asking_first, topics

    every = list(space.index.questions())
    topic_by_id = topics(space.index, every)
    listed = asking_first(every, topic_by_id)[:BROADEST]
    rows = [(len(each.evidence), shown_question(each, topic_by_id.get(each.id, ""))) for each in listed]
    output.print(grid("", ("answering", "question"), rows, right=("answering",), box=None))


def _show_answers(
    questions: Sequence[dict[str, Any]],
    choices: Mapping[str, "ProgramChoice"],
    answers: Mapping[str, Sequence[Any]],
    model: str,
) -> None:
    from kraq_dspy.apps.cli.ask import show_answer

    how_many = counted(len(questions), "question")
    say(f"\n3. {how_many}, answered by both programs from {BUDGET} passages", style="bold")
    for place, question in enumerate(questions):
        for name, own in answers.items():
            show_answer(question["question"], choices[name], model, own[place], evidence=2)
        say(f"  gold answer: {', '.join(question['answers'])}\n", style="green")


def _measured(questions: Sequence[dict[str, Any]], answers: Sequence[Any]) -> dict[str, float]:
    """Means over the questions; the measures are those of `kraq_dspy.eval`."""
    from kraq_dspy.eval.metrics.answers import substring_match
    from kraq_dspy.eval.metrics.retrieval import all_supporting_at_k, recall_at_k

    def mean(values: Iterable[float]) -> float:
        return sum(values) / len(questions)

    gold = [frozenset(question["supporting_ids"]) for question in questions]
    ranked = [list(dict.fromkeys(hit.chunk.document_id for hit in answer.hits)) for answer in answers]
    pairs = list(zip(gold, ranked, strict=True))
    return {
        f"recall@{BUDGET}": mean(recall_at_k(*pair, k=BUDGET) for pair in pairs),
        f"all found@{BUDGET}": mean(all_supporting_at_k(*pair, k=BUDGET) for pair in pairs),
        "gold in answer": mean(
            substring_match(question["answers"], answer.answer)
            for question, answer in zip(questions, answers, strict=True)
        ),
    }
