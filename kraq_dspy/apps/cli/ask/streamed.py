"""Shows an answer while the model writes it, in place of which the whole prediction is shown at the end."""

from typing import TYPE_CHECKING, Any

from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from kraq_dspy.apps.cli.shared.terminal import output, printable

if TYPE_CHECKING:
    import dspy

    from kraq_dspy.workspace import Workspace


def asked(space: "Workspace", program: "dspy.Module", question: str, *, stream: bool) -> "dspy.Prediction":
    """`space.ask(program, question)`, shown as it comes where `stream` is set and standard output is a terminal."""
    if not stream or not output.is_terminal:
        return space.ask(program, question)
    from dspy.streaming import StatusMessage, StreamResponse

    text, stage = "", ""
    prediction: Any = None
    with Live(console=output, transient=True, refresh_per_second=10) as live:
        for value in space.stream(program, question):
            if isinstance(value, StatusMessage):
                stage = value.message
            elif isinstance(value, StreamResponse):
                text += value.chunk
            else:
                prediction = value
            live.update(Panel(Text(printable(text).strip()), subtitle=f"{stage} ...", subtitle_align="left"))
    return prediction  # type: ignore[no-any-return]
