"""Answers one question after another over an index and models that stay open: `kraq ask` without a question."""

import contextlib
from dataclasses import dataclass, field

import dspy

from kraq_dspy.apps.cli.ask import Ask, asked, show_answer, show_suggested
from kraq_dspy.apps.cli.failures import in_words
from kraq_dspy.apps.cli.logs import tell_what_is_cut_off
from kraq_dspy.apps.cli.terminal import errors, say, show_error
from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.records import Turn
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import ProgramChoice
from kraq_dspy.workspace.not_searched import is_searched
from kraq_dspy.workspace.suggesting import SuggestedQuestion

HELP = (
    "A question is answered from the index. A number asks the suggested question with that number. /new begins another "
    "conversation; /help shows this; an empty line ends."
)


def chat(command: Ask) -> None:
    """Ask one question after another, without waiting for models to load again, until an empty line."""
    with contextlib.suppress(ImportError):
        import readline  # noqa: F401 (input uses it)
    choice = command.choice()
    tell_what_is_cut_off()
    with command.opened(command.index_dir) as space:
        program = space.make_program(choice)
        command.require_asked("ask", "conversation", programs=[program])
        model = space.models[choice.role].model  # an error of its name or file ends the chat before a question
        talk = _Talk(command, choice, space, program, model, list(space.starters(4)))
        say(
            f"{command.index_dir}, {choice.spec.name}. A number asks a suggested question; /new begins another "
            "conversation; /help tells more; an empty line ends.",
            style="dim",
        )
        show_suggested(talk.suggested, "to begin with:")
        while line := _line():
            if not talk.obeys(line):
                talk.ask(line)


@dataclass
class _Talk:
    """A conversation in the terminal: its turns, and the questions that were suggested last."""

    command: Ask
    choice: ProgramChoice
    space: Workspace
    program: dspy.Module
    model: str
    suggested: list[SuggestedQuestion]
    turns: list[Turn] = field(default_factory=list)

    def obeys(self, line: str) -> bool:
        """Do what a line with a slash says; False for a question."""
        if line == "/help":
            say(HELP, style="dim")
        elif line == "/new":
            self.turns.clear()
            say("A new conversation.", style="dim")
        elif line.startswith("/") and line[1:].isalpha():
            say(f"There is no command {line!r}. {HELP}", style="dim")
        else:
            return False
        return True

    def ask(self, line: str) -> None:
        """Answer a question, or the suggested one of this number. An error of the question ends nothing."""

        is_suggested = line.isdecimal() and 0 < int(line) <= len(self.suggested)
        question = self.suggested[int(line) - 1].text if is_suggested else normalised(line)
        try:
            answer = self._answer(question, is_suggested=is_suggested)
        except Exception as error:  # of this question; the next one may do
            failure = in_words(error)
            if failure is None:
                raise
            show_error(failure)
            return

        if not is_searched(answer):
            say(str(answer.answer))
            return
        self.turns.append(Turn(answer.get("standalone_question") or question, str(answer.answer or "")))
        self.suggested = list(answer.get("next_questions") or ())
        show_answer(question, self.choice, self.model, answer, self.command.evidence)

    def _answer(self, question: str, *, is_suggested: bool) -> dspy.Prediction:
        """The prepared answer if the question begins a conversation and there is one, else the program's."""
        command, history = self.command, () if is_suggested else tuple(self.turns)
        takes_prepared = command.is_default and not (history or command.optimized)
        prepared = self.space.prepared(question) if takes_prepared else None
        if prepared:
            return prepared
        return asked(
            self.space,
            self.program,
            question,
            stream=command.stream,
            history=history,
            refuse=command.refuses(self.space),
            anyway=command.no_refuse or is_suggested,
        )


def _line() -> str:
    """Return what the person types; "" at the end of input."""
    errors.print("? ", end="", style="bold")
    try:
        return input().strip()
    except EOFError:
        return ""
