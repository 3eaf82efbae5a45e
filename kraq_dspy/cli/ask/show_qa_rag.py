"""How `kraq ask` shows what QA-RAG's plug-ins made of the question and of the passages."""

from typing import TYPE_CHECKING

from rich.text import Text

from kraq_dspy.cli.shared.terminal import output, short

if TYPE_CHECKING:
    import dspy


def show_plug_ins(answer: "dspy.Prediction") -> None:
    """The parts of the question, how many pairs there were and where they came from, and the validator's verdict."""
    for part in answer.sub_questions:
        output.print(Text("  ? ", style="cyan") + short(part, 160))
    counts = [(answer.n_looked_up, "looked up"), (answer.n_made, "made now"), (answer.n_failed, "failed")]
    passages = ", ".join(f"{count} {what}" for count, what in counts if count)
    output.print(Text(f"{len(answer.pairs)} question-answer pairs; passages: {passages or 'none'}"))
    if answer.valid is False:
        output.print(Text("judged wrong: ", style="yellow") + short(answer.response, 300))
