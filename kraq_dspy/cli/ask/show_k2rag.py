"""How `kraq ask` shows what K2RAG went by."""

from typing import TYPE_CHECKING

from rich.text import Text

from kraq_dspy.cli.shared.terminal import errors, output, short

if TYPE_CHECKING:
    import dspy


def show_k2rag(answer: "dspy.Prediction") -> None:
    """The graph's account, and each sub-question with its answer."""
    output.print(Text("the graph: ", style="bold") + short(answer.account_summary or "nothing", 400))
    for each in answer.sub_answers:
        output.print(Text("  ? ", style="cyan") + short(each.question, 160))
        output.print(Text("    ") + short(each.shortened, 200))
    if answer.n_failed:
        errors.print(Text(f"{answer.n_failed} sub-questions failed; see --log-json for the reasons.", style="yellow"))
