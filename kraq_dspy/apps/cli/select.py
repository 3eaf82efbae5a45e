"""Picks the retriever, passage size and k for a corpus by questions with known evidence: `kraq select`."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from typer import Option

from kraq_dspy.apps.cli.model_options import Builds, Columns, Limits, QuestionFile, TakesStates
from kraq_dspy.apps.cli.options import Corpus, Human, Json, Questions, Repeated, Seed, command_class, require_writable
from kraq_dspy.apps.cli.progress import Bars
from kraq_dspy.apps.cli.terminal import command, counted, grid, note, output, print_json, say
from kraq_dspy.errors import ConfigError
from kraq_dspy.eval.halves import bias_note
from kraq_dspy.eval.selection.candidates import CHUNK_SIZES, CONTEXT, MINUTES, NUMBERS_OF_PASSAGES, TRIED, SelectionPlan
from kraq_dspy.eval.selection.outcome import Selection, Tried
from kraq_dspy.eval.selection.selecting import select

SHOWN = 12
"""Candidates in the terminal; the report has all of them, and `--json`."""
NUMBER = re.compile(r"\d[\d,]*")


@command_class
class Select(TakesStates, Builds, Limits, Columns, QuestionFile):
    """Find the retriever, passage size and k that find most evidence.

    kraq asks CORPUS the questions of a file.

    kraq tries candidates without a graph first, on few questions, and asks the better half more. Candidates with a
    graph follow if one of them could still win. One half of a test set must be sure, and the other agree. kraq picks
    the best, or a cheaper one that loses 0.01 at most and is not decided to be worse; it prints what the cheapest would
    lose. The same command resumes an interrupted run.
    """

    corpus: Corpus
    questions: Questions
    out: Annotated[
        Path | None,
        Option("--out", "-o", metavar="DIR", help="Indexes, rows, report. Default: runs/select-CORPUS-QUESTIONS"),
    ] = None
    retriever: Annotated[
        Repeated,
        Option("--retriever", "-r", help="Retriever to try; repeatable. Default: all that call no model."),
    ] = None
    chunks: Annotated[str, Option(metavar="TOKENS", help="Passage sizes in tokens, with commas.")] = ",".join(
        map(str, CHUNK_SIZES)
    )
    k: Annotated[str, Option("--k", "-k", metavar="NUMBERS", help="Numbers of passages, with commas.")] = ",".join(
        map(str, NUMBERS_OF_PASSAGES)
    )
    context: Annotated[int, Option(min=1, help="Maximum tokens of the passages for an answer.")] = CONTEXT
    minutes: Annotated[
        float,
        Option(
            min=0.01, help="Minutes of this run; kraq keeps what it has done.", rich_help_panel="Limits of this run"
        ),
    ] = MINUTES
    metric: Annotated[
        str | None,
        Option("--metric", "-m", help="recall (the default), all_supporting, ndcg, mrr, ..., or answer_found."),
    ] = None
    human: Human = None
    seed: Seed = 0
    json: Json = False

    def run(self) -> None:
        self.require_asked("select", "answering", "building")
        plan = SelectionPlan(
            retrievers=tuple(self.retriever or TRIED),
            chunk_tokens=numbers_in(self.chunks, "--chunks"),
            ks=numbers_in(self.k, "--k"),
            context=self.context,
            minutes=self.minutes,
            seed=self.seed,
        )
        settings = self.settings()
        stem = "-".join(path.resolve().name.partition(".")[0] for path in (self.corpus, self.questions))
        folder = self.out or Path("runs") / f"select-{stem}"
        require_writable(folder)
        with Bars(settings, quiet=self.json) as bars:
            selection = select(
                self.corpus,
                self.questions,
                human=self.human,
                plan=plan,
                metric=self.metric,
                settings=settings,
                limits=self.limits(settings),
                optimized=self.optimized or (),
                columns=self.columns(),
                encoding=self.encoding or "",
                out=folder,
                progress=bars,
            )
        files = selection.write(folder)
        if self.json:
            print_json({**selection.to_dict(), "files": [str(file) for file in files]})
            return
        show_selection(selection)
        say("Settings and report: ", ", ".join(map(str, files)))
        say("Index: ", (command("index", self.corpus, "--out", "docs.kraq", "--config", files[0]), "bold"))
        say("Gate:  ", (selection.gate, "bold"))


def numbers_in(words: str, option: str) -> tuple[int, ...]:
    """Read "5,10" as (5, 10). Raises ConfigError, which names the option, for anything but
    whole numbers."""
    try:
        return tuple(int(word) for word in words.split(",") if word.strip())
    except ValueError:
        raise ConfigError(f"{option} is {words!r}; expected whole numbers with commas, such as 5,10.") from None


def show_selection(selection: Selection) -> None:
    """Print the candidates with all their questions, the decision, and what the run did not try.

    With two halves, a column for each says what a candidate has more than the best.
    """

    halves = _halves(selection)
    headings = ("retriever", "chunks", "k", selection.metric, *(halves or ("less than the best",)), "tokens", "ms", "")
    ranked = sorted(selection.tried, key=lambda each: -each.mean)
    shown = ranked[:SHOWN]
    if selection.chosen not in shown:
        shown = [*shown[:-1], selection.chosen]

    rows = [_cells(each, selection) for each in shown]
    n_asked, n_questions = selection.chosen.score.n, selection.n_questions
    all_of_them = counted(n_questions, "question")
    asked = all_of_them if n_asked == n_questions else f"{n_asked:,} of {all_of_them}"
    title = f"{counted(len(selection.tried), 'candidate')}, each asked {asked}"

    output.print(grid(title, headings, rows, right=headings[1:-1], box=None, padding=(0, 1, 0, 0)))
    say(("Chosen: ", "bold green"), selection.verdict)
    if bias := bias_note(selection.made_half):
        note(f" {bias}")
    for each in selection.notes:
        note(each)

    if reason := selection.dropped.get("candidates with a graph"):
        note(f"no graph was tried: {reason}.")
    others = [why for name, why in selection.dropped.items() if name != "candidates with a graph"]
    for why, count in counts_of(others).items():
        note(f" {'such as: ' if count > 1 else ''}{why}", label=f"{counted(count, 'candidate')} left out:")


def counts_of(reasons: Sequence[str]) -> dict[str, int]:
    """Count reasons. Those that differ in numbers alone are one, under the first of them.

    >>> counts_of(["hands on 4,655 tokens", "cannot be opened", "hands on 9,507 tokens"])
    {'hands on 4,655 tokens': 2, 'cannot be opened': 1}
    """
    alike: dict[str, list[str]] = {}
    for reason in reasons:
        alike.setdefault(NUMBER.sub("", reason), []).append(reason)
    return {those[0]: len(those) for those in alike.values()}


def _halves(selection: Selection) -> tuple[str, ...]:
    """The halves that decided, and human questions; none without two halves."""
    return tuple(dict.fromkeys(half for decision in selection.decisions for half in decision.differences))


def _cells(tried: Tried, selection: Selection) -> tuple[str, ...]:
    verdict = "chosen" if tried is selection.chosen else "undecided" if tried.is_undecided else "worse"
    candidate, cost, difference, halves = tried.candidate, tried.cost, tried.difference, _halves(selection)
    to_best = [f"{difference.estimate:+.3f} [{difference.low:+.2f}, {difference.high:+.2f}]"]
    if halves:
        of_half = {} if tried.decision is None else tried.decision.differences
        to_best = [f"{-of_half[half].interval.estimate:+.3f}" if half in of_half else "" for half in halves]
    return (
        candidate.retriever,
        str(candidate.tokens),
        str(candidate.k),
        f"{tried.mean:.3f}",
        *([""] * len(to_best) if tried is selection.best else to_best),
        f"{cost.tokens:,.0f}",
        f"{1000 * cost.seconds:.1f}",
        verdict,
    )
