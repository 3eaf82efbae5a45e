"""How `kraq ask` shows the answers of the speculative programs."""

from typing import TYPE_CHECKING

from rich.text import Text

from kraq_dspy.cli.shared.terminal import errors, output, short

if TYPE_CHECKING:
    import dspy


def show_speculation(answer: "dspy.Prediction") -> None:
    """The rationale, the drafts and the times; for the efficient program the question that stood in."""
    output.print(Text("because ", style="bold") + short(answer.rationale, 600))
    for draft in answer.drafts:
        mark = "→" if draft.number == answer.chosen else " "
        score = answer.scores.get(draft.number)
        shown = f"{score.total:8.3f}" if score else "  failed"
        line = Text(f"  {mark} draft {draft.number} {shown} ", style="cyan" if draft.number == answer.chosen else "")
        output.print(line + short(draft.response, 100))
    for failure in answer.failures:
        errors.print(Text(f"  draft {failure.number} failed: ", style="yellow") + short(failure.reason, 200))
    if "proxy_used" in answer:
        output.print(_proxy(answer))
    times = answer.timings
    stages = ("retrieve", "proxy", "lookup", "embed", "cluster", "draft_max", "verify_max", "select")
    parts = ", ".join(f"{name} {1000 * getattr(times, name):.1f}" for name in stages if getattr(times, name))
    output.print(Text(f"ms: {parts}; wall {1000 * times.wall:.1f}; papers' model {1000 * times.parallel_model:.1f}"))


def _proxy(answer: "dspy.Prediction") -> Text:
    if answer.proxy is None:
        return Text("no stored question; passages embedded online")
    similarity = f"{answer.proxy_similarity:.2f}"
    if not answer.proxy_used:
        return Text(f"nearest question at {similarity} not used; passages embedded online")
    counts = f"{answer.n_looked_up} looked up, {answer.n_embedded} embedded online"
    return Text(f"seen from ({similarity}, {counts}): ") + short(answer.proxy.question.text, 120)
