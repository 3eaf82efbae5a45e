"""How `kraq ask` shows where an answer came from: the catalogue, or the program behind it."""

from typing import TYPE_CHECKING

from rich.text import Text

from kraq_dspy.cli.shared.terminal import output, short

if TYPE_CHECKING:
    import dspy


def show_catalogue_search(answer: "dspy.Prediction") -> None:
    """The entry that answered and what it rests on; what was looked at and did not pass; whether it was noted."""
    search, entry = answer.search, answer.entry
    if entry is not None:
        how = "word for word" if search.exact else f"{search.calls} calls"
        output.print(
            Text(f"entry {entry.number}, version {entry.version} ({how}): ", "cyan") + short(entry.question, 160)
        )
        if entry.sources:
            documents = ", ".join(source.document_id for source in entry.sources)
            output.print(Text("from ") + short(documents, 300))
    else:
        output.print(
            Text(f"not in the catalogue: {_counted(search.blocks, 'block')}, {_counted(search.calls, 'call')}")
        )
    for rejected in search.rejected:
        said = Text(f"  entry {rejected.entry.number} is another question: ", style="yellow")
        output.print(said + short(rejected.entry.question, 120) + Text(" (") + short(rejected.reason, 120) + Text(")"))
    if search.invalid or search.failed:
        output.print(Text(f"{search.invalid} replies named no entry, {search.failed} calls failed", style="yellow"))
    if search.collected:
        output.print(Text("noted for review: kraq catalogue review DIR"))


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
