"""Answers one question after another over an index and models that stay open: `kraq chat`."""

import contextlib
from dataclasses import dataclass

from kraq_dspy.apps.cli.ask import EVIDENCE, Evidence, Stream, asked, show_answer, show_suggested
from kraq_dspy.apps.cli.failures import in_words
from kraq_dspy.apps.cli.logs import tell_what_is_cut_off
from kraq_dspy.apps.cli.options import ChosenProgram, IndexDir, Reads, Refuses, TakesStates
from kraq_dspy.apps.cli.terminal import errors, say, show_error

HELP = (
    "A question is answered from the index. A number asks the suggested question with that number. /new begins another "
    "conversation; /help shows this; an empty line ends."
)


@dataclass(frozen=True, kw_only=True)
class Chat(TakesStates, ChosenProgram, Reads, Refuses):
    """Ask one question after another, without waiting for models to load again.

    A question may refer to earlier ones ("Where was he born?"); "/new" begins another conversation,
    and "/help" says what can be typed. Type the number of a suggested question to ask it, press the
    arrow keys for earlier questions, and end with an empty line. If the documents do not answer a
    question, kraq refuses and offers the nearest ones that they do answer.
    """

    index_dir: IndexDir
    evidence: Evidence = EVIDENCE
    stream: Stream = True

    def run(self) -> None:
        from kraq_dspy.asset.corpus.normalise import normalised
        from kraq_dspy.records import Turn
        from kraq_dspy.workspace.not_searched import is_searched

        with contextlib.suppress(ImportError):
            import readline  # noqa: F401 (input uses it)
        choice = self.choice()
        tell_what_is_cut_off()
        with self.opened(self.index_dir) as space:
            program = space.make_program(choice)
            self.require_asked("chat", "conversation", programs=[program])
            model = space.models[choice.role].model  # an error of its name or file ends the chat before a question
            suggested = list(space.starters(4))
            turns: list[Turn] = []
            say(
                f"{self.index_dir}, {choice.spec.name}. A number asks a suggested question; /new begins another "
                "conversation; /help tells more; an empty line ends.",
                style="dim",
            )
            show_suggested(suggested, "to begin with:")
            while line := _line():
                if line == "/help":
                    say(HELP, style="dim")
                    continue
                if line == "/new":
                    turns.clear()
                    say("A new conversation.", style="dim")
                    continue
                if line.startswith("/") and line[1:].isalpha():
                    say(f"There is no command {line!r}. {HELP}", style="dim")
                    continue
                question, history = normalised(line), tuple(turns)
                is_suggested = line.isdecimal() and 0 < int(line) <= len(suggested)
                if is_suggested:
                    question, history = suggested[int(line) - 1].text, ()
                try:
                    prepared = (
                        space.prepared(question) if self.is_default and not (history or self.program_state) else None
                    )
                    answer = prepared or asked(
                        space,
                        program,
                        question,
                        stream=self.stream,
                        history=history,
                        refuse=self.refuses(space),
                        anyway=self.answer_anyway or is_suggested,
                    )
                except Exception as error:  # of this question; the next one may do
                    failure = in_words(error)
                    if failure is None:
                        raise
                    show_error(failure)
                    continue
                if not is_searched(answer):
                    say(str(answer.answer))
                    continue
                turns.append(Turn(answer.get("standalone_question") or question, str(answer.answer or "")))
                suggested = list(answer.get("next_questions") or ())
                show_answer(question, choice, model, answer, self.evidence)


def _line() -> str:
    """Return what the person types; "" at the end of input."""
    errors.print("? ", end="", style="bold")
    try:
        return input().strip()
    except EOFError:
        return ""
