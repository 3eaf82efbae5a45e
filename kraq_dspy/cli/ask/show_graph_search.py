"""How `kraq ask` shows what GraphRAG's searches went by: entities and reports, or rated points."""

from typing import TYPE_CHECKING

from rich.text import Text

from kraq_dspy.cli.shared.terminal import output, short

if TYPE_CHECKING:
    import dspy


def show_graph_search(answer: "dspy.Prediction", count: int = 5) -> None:
    """The names of the entities and the titles of their reports, or the best `count` points."""
    if "points" in answer:
        output.print(Text(f"{len(answer.points)} points from {len(answer.hits)} reports in {answer.n_batches} batches"))
        for point in answer.points[:count]:
            output.print(Text(f"  {point.importance:3} ", style="cyan") + short(point.point, 160))
        return
    names = ", ".join(entity.name for entity in answer.entities)
    links = len(answer.relationships)
    output.print(Text(f"entities ({links} relationships, {answer.context_tokens:,} tokens): ") + short(names, 300))
    for hit in answer.reports[:count]:
        output.print(Text(f"  {hit.score:.2f} ", style="cyan") + short(hit.chunk.title, 160))
