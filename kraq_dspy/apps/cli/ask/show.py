"""Shows a prediction: the answer, what the program says it rests on, and the best passages."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.panel import Panel
from rich.text import Text

from kraq_dspy.apps.cli.shared.terminal import output, printable, say, short

if TYPE_CHECKING:
    import dspy

    from kraq_dspy.records import Hit
    from kraq_dspy.workspace.specs import ProgramChoice

EVIDENCE = 3  # passages shown unless more are asked for


def answer_fields(question: str, program: str, model: str, answer: "dspy.Prediction") -> dict[str, Any]:
    """The prediction as JSON values."""
    return {"question": question, "program": program, "model": model, **answer.toDict()}


def show_answer(
    question: str, choice: "ProgramChoice", model: str, answer: "dspy.Prediction", evidence: int = EVIDENCE
) -> None:
    """The answer, what the program says it rests on, and the best `evidence` passages of all queries in turn."""
    output.print(short(question, 1000), style="bold")
    text = Text(printable(answer.answer).strip())
    output.print(Panel(text, subtitle=f"{choice.spec.name}, {model}", subtitle_align="left"))
    for line in choice.lines(answer):
        output.print(line)
    shown = _in_turn(answer.hits, evidence)
    for place, hit in shown:
        _show_hit(place, hit)
    left = len(answer.hits) - len(shown)
    if left and evidence:
        say(f"and {left} more passages: --evidence {len(answer.hits)}", style="dim")


def _show_hit(place: int, hit: "Hit") -> None:
    """Two lines: where the passage is from, which search found it with which score of its own, and how it begins."""
    title, document = hit.chunk.title, hit.chunk.document_id
    name = f"{title} ({document})" if title and title != document else document
    if page := hit.chunk.metadata.get("page"):
        last = hit.chunk.metadata.get("last_page")
        name += f", pages {page}-{last}" if last else f", page {page}"
    head = Text.assemble((f"{place:3} ", "cyan"), short(name, max(20, output.width - 30)))
    output.print(head + Text(f"  {hit.why} {hit.score:.3f}", style="dim"), no_wrap=True, overflow="ellipsis")
    passage = short(hit.chunk.text, 2 * output.width)
    passage.no_wrap, passage.overflow = True, "ellipsis"
    output.print(Padding(passage, (0, 0, 0, 4)))


def _in_turn(hits: "Sequence[Hit]", count: int) -> "list[tuple[int, Hit]]":
    """(place, hit) of `count` hits, the best of each query before the second of any, in the order of their places."""
    turns: Counter[str] = Counter()
    ranked = []
    for place, hit in enumerate(hits, start=1):
        turns[hit.query] += 1
        ranked.append((turns[hit.query], place, hit))
    shown = sorted(ranked, key=lambda entry: entry[:2])[:count]
    return [(place, hit) for _, place, hit in sorted(shown, key=lambda entry: entry[1])]
