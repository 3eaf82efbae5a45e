"""Goes the whole way on bundled passages, with the embedded model or another: `kraq demo`."""

import dataclasses
import json as json_lines
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from kraq_dspy.apps.cli.ask import answer_fields, show_answer
from kraq_dspy.apps.cli.model_options import Models
from kraq_dspy.apps.cli.options import Json, command_class
from kraq_dspy.apps.cli.progress import Bars, show_report
from kraq_dspy.apps.cli.questions import shown_question
from kraq_dspy.apps.cli.terminal import command, counted, grid, output, print_json, say
from kraq_dspy.asset.corpus.load import bundled_example, load_documents
from kraq_dspy.embedded_model import analyst
from kraq_dspy.eval.evaluation import Evaluation, evaluate
from kraq_dspy.eval.metrics.answers import substring_match
from kraq_dspy.eval.metrics.retrieval import all_supporting_at_k, recall_at_k
from kraq_dspy.eval.statistics import paired_difference
from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.models.embedders import load_embedder, resolve_encoder
from kraq_dspy.models.lms.roles import rule_based_models
from kraq_dspy.ports import Progress
from kraq_dspy.testset.kinds import SHARES, WITHOUT_ANSWER
from kraq_dspy.testset.making import TestsetPlan, make_testset
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import ProgramChoice, choose_program
from kraq_dspy.workspace.topics import asking_first, topics

PROGRAMS = ("traditional", "combined")
BUDGET = 10  # passages for each question
SHOWN = 3  # questions answered on the screen
BROADEST = 12  # questions listed
RETRIEVERS = ("dense", "hybrid", "adaptive")
"""The cheapest first. A search by words alone is left out, since a test set copies words."""
N_QUESTIONS, K = 40, 5
KINDS = {kind: share for kind, share in SHARES.items() if kind not in WITHOUT_ANSWER}
"""Those that something answers, by their shares in any test set."""
METRIC = f"recall@{K}"


@command_class
class Demo(Models):
    """Index bundled passages, ask them, measure, and pick a retriever by a test set."""

    first: Annotated[
        int | None, Option(min=1, metavar="N", help="Only N questions and their passages: for slow models.")
    ] = None
    out: Annotated[Path, Option("--out", "-o", metavar="DIR", help="Folder of the index.")] = Path("demo.kraq")
    json: Json = False

    def run(self) -> None:
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
        space: Workspace,
        choices: Mapping[str, ProgramChoice],
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


def show_broadest(space: Workspace) -> None:
    """The first questions as `kraq questions` lists them, and how many passages answer each."""

    every = list(space.index.questions())
    topic_by_id = topics(space.index, every)
    listed = asking_first(every, topic_by_id)[:BROADEST]
    rows = [(len(each.evidence), shown_question(each, topic_by_id.get(each.id, ""))) for each in listed]
    output.print(grid("", ("answering", "question"), rows, right=("answering",), box=None))


def _show_answers(
    questions: Sequence[dict[str, Any]],
    choices: Mapping[str, ProgramChoice],
    answers: Mapping[str, Sequence[Any]],
    model: str,
) -> None:

    how_many = counted(len(questions), "question")
    say(f"\n3. {how_many}, answered by both programs from {BUDGET} passages", style="bold")
    for place, question in enumerate(questions):
        for name, own in answers.items():
            show_answer(question["question"], choices[name], model, own[place], evidence=2)
        say(f"  gold answer: {', '.join(question['answers'])}\n", style="green")


def _measured(questions: Sequence[dict[str, Any]], answers: Sequence[Any]) -> dict[str, float]:
    """Means over the questions; the measures are those of `kraq_dspy.eval`."""

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


@dataclass(frozen=True)
class Marks:
    """Return how much of the evidence of `n` questions each retriever finds. `picked` is the
    cheapest that cannot be told from the best, as `kraq select` picks."""

    n: int
    means: Mapping[str, float]
    picked: str


@dataclass(frozen=True)
class DemoTestset:
    """The marks by the questions that an index wrote itself, and by human questions."""

    own: Marks
    human: Marks


def take_testset(
    space: Workspace, human: Sequence[Mapping[str, Any]], progress: Progress | None = None
) -> DemoTestset | None:
    """Make a test set with the embedded reader, and ask each retriever its questions and human ones.

    Returns None if the passages yield no question.
    """
    free = Workspace(space.index, space.embedder, rule_based_models(space.embedder))
    testset = make_testset(free, plan=TestsetPlan(N_QUESTIONS, KINDS), progress=progress)
    if not testset.rows:
        return None

    systems = {name: space.retriever(name) for name in RETRIEVERS}
    own = evaluate(systems, testset.examples(), [METRIC], space=space, k=K)
    of_human = evaluate(systems, list(human), [METRIC], space=space, k=K)
    return DemoTestset(_marks(own), _marks(of_human))


def _marks(evaluation: Evaluation) -> Marks:
    scores: dict[str, list[float]] = {name: [] for name in RETRIEVERS}
    for row in sorted(evaluation.rows, key=lambda each: each.question_id):
        scores[row.system].append(row.metrics[METRIC])
    means = {name: evaluation.mean(METRIC, name) for name in RETRIEVERS}
    best = scores[max(RETRIEVERS, key=means.__getitem__)]
    picked = next(name for name in RETRIEVERS if paired_difference(scores[name], best).interval.high >= 0)
    return Marks(len(best), means, picked)


def show_testset(testset: DemoTestset) -> None:
    """Print each retriever's score, the pick, and the commands for your own documents."""
    say(f"\n5. A test set that the index wrote itself, next to human questions: {METRIC}", style="bold")
    headings = ("retriever", f"own test set, {testset.own.n}", f"human questions, {testset.human.n}")
    rows = [(name, _cell(testset.own, name), _cell(testset.human, name)) for name in RETRIEVERS]
    output.print(grid("", headings, rows, right=headings[1:]))
    say(
        "*: the cheapest that cannot be told from the best. A test set finds what is broken; human questions tell more."
    )
    say("With your documents: ", (command("testset", "make", "docs.kraq"), "bold"))
    say("                     ", (command("select", "docs/", "test.jsonl"), "bold"))


def _cell(marks: Marks, name: str) -> str:
    return f"{marks.means[name]:.3f}{'*' if name == marks.picked else ' '}"
