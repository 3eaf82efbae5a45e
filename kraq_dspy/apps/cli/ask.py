"""Answers a question, or one after another, from an index: `kraq ask`."""

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

import dspy
from dspy.streaming import StatusMessage, StreamResponse
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text
from typer import Argument, Option

from kraq_dspy.apps.cli.logs import tell_what_is_cut_off
from kraq_dspy.apps.cli.model_options import ChosenProgram, Reads, Refuses, TakesStates
from kraq_dspy.apps.cli.options import Flag, IndexDir, Json, command_class
from kraq_dspy.apps.cli.terminal import counted, note, output, print_json, printable, say, short
from kraq_dspy.apps.lines import prediction_lines
from kraq_dspy.apps.views import PrintedAnswer
from kraq_dspy.asset.corpus.normalise import is_blank, normalised
from kraq_dspy.errors import ConfigError
from kraq_dspy.records import Hit, Turn
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import ProgramChoice
from kraq_dspy.workspace.not_searched import is_searched
from kraq_dspy.workspace.refusing import is_refusal
from kraq_dspy.workspace.suggesting import SuggestedQuestion

FROM_WHOM = {"faq": "prepared answer", "refusal": "--no-refuse asks all the same"}
"""The line under an answer that no program gave, by its source."""
EVIDENCE = 3  # passages shown unless more are asked for


@command_class
class Ask(TakesStates, ChosenProgram, Reads, Refuses):
    """Answer QUESTION from the index, and show the evidence.

    If the documents do not answer it, kraq refuses and offers the nearest questions that they do answer.

    Without QUESTION, ask one question after another, without waiting for models to load again. A question may refer to
    earlier ones ("Where was he born?"). Type the number of a suggested question to ask it, "/new" to begin another
    conversation, "/help" for help, and an empty line to end.
    """

    index_dir: IndexDir
    question: Annotated[str | None, Argument(metavar="QUESTION", help="Your question; without it, a conversation.")] = (
        None
    )
    evidence: Annotated[int, Option("--evidence", "-e", min=0, help="Passages to show.")] = EVIDENCE
    stream: Annotated[bool, Flag("--stream/--no-stream", help="Show the answer while the model writes it.")] = True
    json: Json = False

    def run(self) -> None:
        if self.question is None:
            if self.json:
                raise ConfigError("--json is for one question; name it.")

            from kraq_dspy.apps.cli.chat import chat  # which answers as this command does

            chat(self)
            return

        question = normalised(self.question)
        if is_blank(question):
            raise ConfigError("The question is empty.")
        choice = self.choice()
        tell_what_is_cut_off()
        with self.opened(self.index_dir) as space:
            answer = space.prepared(question) if self.is_default and not self.optimized else None
            if answer is None:
                program = space.make_program(choice)
                self.require_asked("ask", "conversation", programs=[program])
                refuse = self.refuses(space)
                stream = self.stream and not self.json
                answer = asked(space, program, question, stream=stream, refuse=refuse, anyway=self.no_refuse)
            model = space.models[choice.role].model
        if self.json:
            print_json(answer_fields(question, choice.spec.name, model, answer))
        else:
            show_answer(question, choice, model, answer, self.evidence)
        if (
            self.k is not None
            and is_searched(answer)
            and not is_refusal(answer)
            and choice.budget > len(answer.hits) > 0
        ):
            note(f"--k asks for {counted(choice.budget, 'passage')}; there were {len(answer.hits):,} to be found.")


def asked(
    space: Workspace,
    program: dspy.Module,
    question: str,
    *,
    stream: bool,
    history: Sequence[Turn] = (),
    refuse: bool = False,
    anyway: bool = False,
) -> dspy.Prediction:
    """Ask as `space.ask` does. With `stream` and a terminal, show the answer while the model
    writes it."""
    if not stream or not output.is_terminal:
        return space.ask(question, program, history=history, refuse=refuse, anyway=anyway)

    text, stage = "", ""
    prediction: Any = None
    with Live(console=output, transient=True, refresh_per_second=10) as live:
        for value in space.stream(question, program, history=history, refuse=refuse, anyway=anyway):
            if isinstance(value, StatusMessage):
                stage = value.message
            elif isinstance(value, StreamResponse):
                text += value.chunk
            else:
                prediction = value
            live.update(Panel(Text(printable(text).strip()), subtitle=f"{stage} ...", subtitle_align="left"))
    return prediction  # type: ignore[no-any-return]


def answer_fields(question: str, program: str, model: str, answer: dspy.Prediction) -> dict[str, Any]:
    """The prediction as JSON values."""

    return PrintedAnswer.of(answer, question, program, model).to_json()


def show_answer(
    question: str, choice: ProgramChoice, model: str, answer: dspy.Prediction, evidence: int = EVIDENCE
) -> None:
    """Print the answer, its grounds in the program's words, and the best `evidence` passages of
    each query in turn. For a refusal, print the nearest passages and questions that the
    documents do answer."""
    output.print(short(question, 1000), style="bold")
    if standalone := answer.get("standalone_question"):
        output.print(Text("asked as: ", style="dim") + short(standalone, 1000))

    text = Text(printable(answer.answer).strip())
    from_whom = FROM_WHOM.get(str(answer.get("source")), f"{choice.spec.name}, {model}")
    output.print(Panel(text, subtitle=from_whom, subtitle_align="left"))
    for flaw in answer.get("flaws", ()):
        note(flaw)

    for line in prediction_lines(choice, answer):
        output.print(line)

    shown = _in_turn(answer.hits, evidence)
    for place, hit in enumerate(shown, start=1):
        _show_hit(place, hit)
    left = len(answer.hits) - len(shown)
    if left and evidence:
        say(f"and {left} more: --evidence {len(answer.hits)}", style="dim")
    show_suggested(answer.get("next_questions") or (), "next:" if answer.get("source") != "refusal" else "they answer:")


def show_suggested(suggested: Sequence[SuggestedQuestion], title: str) -> None:
    """Questions by number, each with the document that answers it."""
    if suggested:
        say(title, style="dim")
    for place, each in enumerate(suggested, start=1):
        name = f"  ({short(each.passage.title or each.passage.document_id, 60)})"
        output.print(Text.assemble((f"{place:3} ", "cyan"), short(each.text, 300), (name, "dim")))


def _show_hit(place: int, hit: Hit) -> None:
    """Print two lines: the passage's document, the search that found it, and its beginning.

    The line shows only cosines: with other scores, the best passage has a high one even if none
    fits.
    """
    title, document = hit.chunk.title, hit.chunk.document_id
    name = f"{title} ({document})" if title and title != document else document
    if page := hit.chunk.metadata.get("page"):
        last = hit.chunk.metadata.get("last_page")
        name += f", pages {page}-{last}" if last else f", page {page}"

    head = Text.assemble((f"{place:3} ", "cyan"), short(name, max(20, output.width - 30)))
    how = f"{hit.why} {hit.score:.2f}" if hit.why == "dense" else hit.why
    output.print(head + Text(f"  {how}", style="dim"), no_wrap=True, overflow="ellipsis")

    passage = short(hit.chunk.text, 2 * output.width)
    passage.no_wrap, passage.overflow = True, "ellipsis"
    output.print(Padding(passage, (0, 0, 0, 4)))


def _in_turn(hits: Sequence[Hit], count: int) -> list[Hit]:
    """`count` hits, the best of each query before the second of any, in the order of their places."""
    turns: Counter[str] = Counter()
    ranked = []
    for place, hit in enumerate(hits, start=1):
        turns[hit.query] += 1
        ranked.append((turns[hit.query], place, hit))
    shown = sorted(ranked, key=lambda entry: entry[:2])[:count]
    return [hit for _, _, hit in sorted(shown, key=lambda entry: entry[1])]
