"""Draws paired differences with their intervals: a row for each metric and system, around a line at zero."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kraq_dspy.eval.statistics import Interval

ROW = 26  # pixels from one row to the next
LABELS = 300  # pixels for the names at the left
WIDTH = 860
FIGURES = 170  # pixels for the figures at the right
TOP = 28


@dataclass(frozen=True, slots=True)
class Difference:
    """What a system has more than the baseline by one metric; `is_sure` if its interval excludes 0."""

    label: str
    interval: Interval
    is_sure: bool


def draw_differences(differences: Sequence[Difference], *, title: str) -> str:
    """An SVG picture of the differences, as text of an HTML page; "" without any.

    >>> interval = Interval(-0.1, -0.2, -0.02, confidence=0.95, n=50, resamples=1000, seed=0)
    >>> worse = Difference("recall@10, dense", interval, True)
    >>> draw_differences([worse], title="Less than adaptive").startswith("<svg")
    True
    """
    if not differences:
        return ""
    reach = max(max(abs(each.interval.low), abs(each.interval.high)) for each in differences) or 1.0
    left, right = LABELS, WIDTH - FIGURES
    middle = (left + right) / 2

    def across(value: float) -> float:
        return middle + value / reach * (right - left - 20) / 2

    height = TOP + ROW * len(differences) + 12
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(title)}" class="plot">',
        f'<line class="zero" x1="{middle}" x2="{middle}" y1="{TOP - 6}" y2="{height - 6}"/>',
        _text(across(-reach), TOP - 12, f"{-reach:+.3f}", "middle", "dim"),
        _text(middle, TOP - 12, "0", "middle", "dim"),
        _text(across(reach), TOP - 12, f"{reach:+.3f}", "middle", "dim"),
    ]
    for place, each in enumerate(differences):
        y = TOP + ROW * place + ROW / 2
        interval = each.interval
        kind = ("better" if interval.estimate > 0 else "worse") if each.is_sure else "unsure"
        figures = f"{interval.estimate:+.3f} [{interval.low:+.3f}, {interval.high:+.3f}]"
        low, high, estimate = across(interval.low), across(interval.high), across(interval.estimate)
        parts += [
            _text(left - 14, y + 4, _shortened(each.label), "end"),
            f'<line class="{kind}" x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}"/>',
            f'<circle class="{kind}" cx="{estimate:.1f}" cy="{y}" r="4.5"/>',
            _text(right + 10, y + 4, figures, "start", "figures"),
        ]
    parts.append("</svg>")
    return "\n".join(parts)


def _text(x: float, y: float, text: str, anchor: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _shortened(label: str, most: int = 44) -> str:
    return label if len(label) <= most else label[: most - 1] + "…"
