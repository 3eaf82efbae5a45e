"""Lets a person mark, by keyboard, which passages answer human questions: `kraq testset label FILE INDEX`."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from kraq_dspy.apps.cli.model_options import QuestionFile, Reads
from kraq_dspy.apps.cli.options import Flag, IndexDir, Port, command_class, require_writable_file
from kraq_dspy.apps.cli.serving import open_in_browser, require_serve, run_server
from kraq_dspy.apps.cli.terminal import command, printable, say, short
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.apps.serve.testset_desk import LabelingDesk, TestsetDesk
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.labeling import NOTHING_TO_UNDO, Labeling, Sitting, excerpt
from kraq_dspy.eval.questions import read_questions
from kraq_dspy.records import Chunk
from kraq_dspy.testset.testset import Testset

TO_LABEL = 10
"""Questions that somebody labels."""

ON_A_PAGE = 5
"""Passages that are shown at once."""
EXCERPT, WHOLE = 320, 4000
"""Characters of a passage that are shown, and with `f`."""
KEYS = "1-5 mark a passage, Enter takes the marks, n nothing answers it, m more, f whole texts, s later, u undo, q end"
ENTER, END = ("\r", "\n"), ""


@command_class
class LabelQuestions(Reads, QuestionFile):
    """Mark which passages answer questions that people asked.

    `kraq eval --human` and `kraq select --human` read the result. kraq draws N questions of FILE, unlike ones
    first. Unlike retrievers pool passages, and you press a key for each that answers; what nothing answers becomes
    unanswerable. kraq keeps each label at once, and the same command goes on. Keys may come from a pipe. With
    --page you label in the browser, by the same keys. Labeling calls no model.
    """

    questions: Annotated[Path, Argument(metavar="FILE", help="Questions that people asked, with answers or without.")]
    index_dir: IndexDir
    out: Annotated[Path, Option("--out", "-o", metavar="FILE", help="The labeled questions, as a test set.")] = Path(
        "few.jsonl"
    )
    n: Annotated[int, Option("--n", "-n", min=1, help="Questions to label in all.")] = TO_LABEL
    page: Annotated[bool, Flag("--page", help="Label in the browser, on a page of this machine alone.")] = False
    port: Port = ServeSettings.port

    def run(self) -> None:
        if self.page:
            require_serve("kraq testset label --page")
        require_writable_file(self.out)
        examples = read_questions(self.questions, self.columns())
        if self.page:
            self._serve(examples)
            return
        with self.opened(self.index_dir) as space:
            desk = Desk(Labeling(space, examples, self.out, n=self.n), key_reader(), Sitting())
            desk.run()
        self._say_what_next(desk.summary(), n_left=len(desk.labeling.left), n_labeled=len(desk.labeling.labeled))

    def _say_what_next(self, summary: str, *, n_left: int, n_labeled: int) -> None:
        say(summary)
        if n_left:
            say("To go on, run the same command.")
        elif n_labeled:
            beside = ("--human", self.out, "--retrieval-only", "-r", "dense", "-r", "bm25", "-r", "hybrid")
            say("Beside a test set: ", command("eval", self.index_dir, "test.jsonl", *beside))

    def _serve(self, examples: Sequence[Example]) -> None:
        """On the page."""

        if self.out.exists():
            Testset.load(self.out)  # raises for a file that is no test set, before anything is served
        labels = LabelingDesk(examples, self.out, self.n)

        def shown(address: str) -> None:
            page = f"{address}/#label"
            say(f"Label here: {page}")
            open_in_browser(page)

        def ended() -> None:
            self._say_what_next(f"{self.out}: {labels.summary}", n_left=labels.n_left, n_labeled=labels.n_labeled)

        settings = ServeSettings(port=self.port)
        run_server(
            self, [self.index_dir], settings, desk=TestsetDesk(labels=labels), or_any_port=True,
            started=shown, ended=ended,
        )  # fmt: skip


def key_reader() -> Callable[[], str]:
    """Reads one key: of the terminal without waiting for Enter, or a character of what is piped; "" at its end."""
    if sys.stdin.isatty():
        return typer.getchar
    return lambda: sys.stdin.read(1)


@dataclass
class Desk:
    """One person's work on the questions, by keys."""

    labeling: Labeling
    read_key: Callable[[], str]
    sitting: Sitting
    _marked: list[str] = field(default_factory=list)
    _page: int = 0
    _whole: bool = False

    def run(self) -> None:
        """Show one question after another until all are labeled, or the person ends."""
        while (example := self.labeling.next()) is not None:
            self._marked, self._page, self._whole = [], 0, False
            if not self._label(example):
                break

    def summary(self) -> str:
        """What was labeled, and how long it took."""
        return f"{self.labeling.out}: {self.sitting.summary(self.labeling)}"

    def _label(self, example: Example) -> bool:
        """Whether to go on with the next question."""
        passages = self.labeling.passages(example)
        self.sitting.show()
        self._show(example, passages)
        while True:
            key = self._key()
            if key in ("q", "Q", END, "\x04"):
                return False
            if key in ENTER and not self._marked:
                say("No passage is marked. Mark one, or press n if nothing answers the question.")
            elif key in (*ENTER, "n", "N"):
                marked = [chunk for chunk in passages if chunk.id in self._marked] if key in ENTER else []
                self.sitting.label(self.labeling, example, marked)
                return True
            elif key in ("s", "S"):
                self.labeling.put_off(example)
                return True
            elif key in ("u", "U"):
                if self._undo():
                    return True
            else:
                self._look(key, example, passages)

    def _key(self) -> str:
        try:
            return self.read_key()
        except EOFError:
            return END

    def _undo(self) -> bool:
        before = self.sitting.undo(self.labeling)
        if before is None:
            say(NOTHING_TO_UNDO)
            return False
        say("Taken back: ", short(before.question, 80))
        return True

    def _look(self, key: str, example: Example, passages: Sequence[Chunk]) -> None:
        """Keys that change what is marked and shown."""
        on_page = passages[self._page * ON_A_PAGE :][:ON_A_PAGE]
        if key in ("m", "M"):
            n_pages = max(1, -(-len(passages) // ON_A_PAGE))
            self._page = (self._page + 1) % n_pages
            self._show(example, passages)
        elif key in ("f", "F"):
            self._whole = not self._whole
            self._show(example, passages)
        elif key.isdecimal() and 1 <= int(key) <= len(on_page):
            chunk = on_page[int(key) - 1]
            is_marked = chunk.id in self._marked
            self._marked = [id for id in self._marked if id != chunk.id] + ([] if is_marked else [chunk.id])
            say(f"  {key} is no longer marked" if is_marked else f"  {key} is marked")
        else:
            say(KEYS, style="dim")

    def _show(self, example: Example, passages: Sequence[Chunk]) -> None:
        total = len(self.labeling.questions)
        number = total - len(self.labeling.left) + 1
        say(f"\n{number} of {total}  ", (printable(example.question), "bold"))
        if example.answers:
            say("answer: ", short("; ".join(example.answers), 160), style="dim")
        if not passages:
            say("No retriever brings a passage.")
        for place, chunk in enumerate(passages[self._page * ON_A_PAGE :][:ON_A_PAGE], start=1):
            mark = "x" if chunk.id in self._marked else " "
            say((f"{place} [{mark}] ", "cyan"), (printable(chunk.title or chunk.document_id), "bold"))
            say("      ", short(chunk.text, WHOLE) if self._whole else short(excerpt(example.question, chunk), EXCERPT))
        say(KEYS, style="dim")
