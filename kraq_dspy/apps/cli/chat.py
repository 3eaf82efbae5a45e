"""Answers one question after another over an index and models that stay open: `kraq chat`."""

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

from kraq_dspy.apps.cli.ask import EVIDENCE, Evidence, Stream, asked, note_scarce, show_answer, show_suggested
from kraq_dspy.apps.cli.logs import tell_what_is_cut_off
from kraq_dspy.apps.cli.options import ChosenProgram, IndexDir, Models, opened
from kraq_dspy.apps.cli.terminal import errors, note, say, short
from kraq_dspy.errors import ConfigError, KraqError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kraq_dspy.workspace import Workspace
    from kraq_dspy.workspace.suggested import SuggestedQuestion

FIRST = 4  # questions that are suggested at the beginning
HELP = (
    "/N asks the suggested question N; /starters, /program NAME, /retriever NAME, /evidence N, /history, /help, /quit; "
    "anything else is a question"
)


def chat(
    index_dir: IndexDir,
    chosen: ChosenProgram,
    models: Models,
    evidence: Evidence = EVIDENCE,
    stream: Stream = True,
) -> None:
    """Ask one question after another, without waiting for models to load again.

    Each question stands for itself; the arrow keys bring earlier ones back. /help lists what else there is.
    """
    choice = chosen.choice()
    tell_what_is_cut_off()
    with opened(index_dir, models) as space:
        note_scarce(space, choice)
        session = Session(space, chosen, choice, space.make_program(choice), evidence, stream)
        say(f"{index_dir}, {choice.spec.name}. {HELP}", style="dim")
        session.suggest(FIRST)
        while (line := _line()) is not None and line not in ("/quit", "/exit"):
            try:
                session.answer(line)
            except KraqError as error:  # of this line; the next one may do
                note(error, label="Error: ")


@dataclasses.dataclass
class Session:
    """What holds from one line to the next."""

    space: "Workspace"
    chosen: ChosenProgram
    choice: Any
    program: Any
    evidence: int
    stream: bool
    history: list[str] = dataclasses.field(default_factory=list)
    suggested: "Sequence[SuggestedQuestion]" = ()

    def suggest(self, count: int) -> None:
        self.suggested = self.space.starters(count)
        show_suggested(self.suggested, "to begin with:")

    def answer(self, line: str) -> None:
        """Raises ConfigError for a command that is none; what a program raises for a question."""
        word, _, value = line.partition(" ")
        value = value.strip()
        if not line:
            return
        if word == "/program":
            self._choose(dataclasses.replace(self.chosen, program=value, program_option=None, k=None))
        elif word == "/retriever":
            self._choose(dataclasses.replace(self.chosen, retriever=value or None, retriever_option=None))
        elif word == "/evidence" and value.isdecimal():
            self.evidence = int(value)
        elif word == "/history":
            for place, question in enumerate(self.history, start=1):
                say(f"{place:3} ", short(question, 200))
        elif word == "/starters":
            self.suggest(12)
        elif word[1:].isdecimal() and 0 < int(word[1:]) <= len(self.suggested) and not value:
            self.answer(self.suggested[int(word[1:]) - 1].text)
        elif word == "/help":
            say(HELP)
        elif line.startswith("/"):
            raise ConfigError(f"{line!r} is no command here: {HELP}.")
        else:
            self.history.append(line)
            prepared = self.space.prepared(line) if self.chosen.is_default else None
            answer = prepared or asked(self.space, self.program, line, stream=self.stream)
            self.suggested = answer.get("next_questions") or ()
            show_answer(line, self.choice, self.space.models[self.choice.role].model, answer, self.evidence)

    def _choose(self, chosen: ChosenProgram) -> None:
        choice = chosen.choice()
        note_scarce(self.space, choice)
        self.program = self.space.make_program(choice)  # before anything is changed: it may be refused
        self.chosen, self.choice = chosen, choice
        say(f"{choice.spec.name}, {chosen.retriever or 'with the retriever that suits the index'}", style="dim")


def _line() -> str | None:
    """What the person types, with the keys of readline where it is there; None at the end of input."""
    from kraq_dspy.asset.corpus.normalise import normalised

    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 (input uses it)
    errors.print("? ", end="", style="bold")
    try:
        return normalised(input()).strip()
    except EOFError:
        return None
