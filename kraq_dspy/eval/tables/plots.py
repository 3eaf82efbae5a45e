"""Draws the figures as SVG, by matplotlib.

matplotlib, because its SVG stands in a page as it is: tens of kilobytes, no script, no network, text that can be
searched, the same bytes for the same figures. It comes with bert-score anyway. Interactive libraries bring megabytes of
script into every page.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

from kraq_dspy.errors import needs
from kraq_dspy.eval.statistics import Interval
from kraq_dspy.eval.tables.grids import own_systems
from kraq_dspy.eval.tables.summary import RunSummary, SystemSummary

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8C6D31", "#5B5B5B")
"""Told apart with any kind of colour vision (Okabe and Ito, 2008)."""
GREY = "#8A8A8A"
LINES = ("-", ":", "-.")
"""Of the first eight systems, of the next eight, and of the rest."""
Drawing = Callable[[RunSummary], Any]
"""Gives a matplotlib figure, or None where the run has nothing to draw."""

_PANELS = 4
_LABEL = 30  # characters of a system's name


@dataclass(frozen=True, slots=True)
class Plot:
    """`svg` is one element, its ids beginning with `name`."""

    name: str
    caption: str
    svg: str


def plots(run: RunSummary, prefix: str) -> list[Plot]:
    """The plots that the run has figures for. Raises MissingExtraError."""
    drawings: dict[str, tuple[str, Drawing]] = {
        "differences": (
            f"Difference from {run.baseline} on the same questions, with 95 % interval; right of the line is better.",
            _differences,
        ),
        "ablations": ("One setting varied, all else as it was; bands are 95 % intervals.", _ablations),
        "budget": ("Score against the number of passages; bands are 95 % intervals.", _budgets),
    }
    drawn = []
    with _style():
        for name, (caption, draw) in drawings.items():
            figure = draw(run)
            if figure is not None:
                drawn.append(Plot(name, caption, svg(figure, f"{prefix}-{name}")))
    return drawn


def svg(figure: "Figure", prefix: str) -> str:
    """One <svg> element for a page that has others: ids are made its own."""
    out = StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\bid="', f'id="{prefix}-', text)
    text = text.replace('xlink:href="#', f'xlink:href="#{prefix}-').replace("url(#", f"url(#{prefix}-")
    return text.strip()


def loss_plot(curves: Mapping[str, Sequence[tuple[float, float]]], prefix: str = "loss") -> Plot:
    """Losses by (optimizer step, nats a token)."""
    with _style():
        figure, (axes,) = _figure(1, width=7.0, height=3.6)
        for place, (name, points) in enumerate(curves.items()):
            axes.plot(*zip(*points, strict=True), "o-", color=COLOURS[place], markersize=3, label=name)
        axes.set(xlabel="optimizer step", ylabel="loss, nats a token")
        axes.legend()
        return Plot("loss", "Losses while the adapter was trained.", svg(figure, prefix))


@contextmanager
def _style() -> Iterator[None]:
    with needs("matplotlib", "eval", "The report's plots"):
        import matplotlib
    with matplotlib.rc_context(
        {
            "svg.fonttype": "none",  # text stays text
            "svg.hashsalt": "kraq",  # ids do not change from run to run
            "text.parse_math": False,  # a dollar in a name is a dollar
            "font.family": ["sans-serif"],
            "font.sans-serif": ["DejaVu Sans", "Helvetica", "Arial"],
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "grid.color": "#E4E4E4",
            "grid.linewidth": 0.6,
            "legend.frameon": False,
            "lines.linewidth": 1.6,
        }
    ):
        yield


def _figure(panels: int, *, width: float, height: float, columns: int | None = None) -> tuple["Figure", list["Axes"]]:
    """Without pyplot, which keeps figures in global state."""
    from matplotlib.figure import Figure

    columns = columns or panels
    figure = Figure(figsize=(width, height), layout="constrained")
    figure.get_layout_engine().set(hspace=0.08, wspace=0.04)  # type: ignore[union-attr,call-arg]
    grid = figure.subplots(-(-panels // columns), columns, squeeze=False)
    axes = list(grid.ravel())
    for spare in axes[panels:]:
        spare.set_visible(False)
    return figure, axes[:panels]


def _shown_metrics(run: RunSummary) -> list[str]:
    """Those that some system has; of rankings at many budgets the middle one of each kind."""
    budgets = run.table.get("budgets") or ()
    metrics = [m for m in run.metrics if any(system.cells[m].interval for system in run.systems)]
    if budgets:
        middle = budgets[len(budgets) // 2]
        metrics = [metric for metric in metrics if metric.endswith(f"@{middle}")]
    return metrics[:_PANELS]


def _differences(run: RunSummary) -> "Figure | None":
    metrics = [m for m in _shown_metrics(run) if any(system.cells[m].difference for system in own_systems(run))]
    systems = [s for s in own_systems(run) if any(s.cells[metric].difference for metric in metrics)]
    if not systems or not metrics:
        return None
    figure, panels = _figure(len(metrics), width=10.0, height=0.9 + 0.34 * len(systems))
    for panel, (axes, metric) in enumerate(zip(panels, metrics, strict=True)):
        for place, system in enumerate(systems):
            difference, p = system.cells[metric].difference, system.cells[metric].p_adjusted
            if difference is None:
                continue
            sure = (difference.low > 0 or difference.high < 0) and (p is None or p < 0.05)
            colour = COLOURS[0] if sure else GREY
            axes.plot(difference.estimate, place, "o", color=colour, markersize=5)
            _whisker(axes, difference, place, colour=colour)
        axes.axvline(0, color="#333333", linewidth=0.9)
        reach = max(0.02, *(abs(end) for s in systems if (d := s.cells[metric].difference) for end in (d.low, d.high)))
        axes.set_xlim(-1.15 * reach, 1.15 * reach)
        _names(axes, systems, shown=panel == 0)
        axes.set_title(metric, fontsize=9)
        axes.grid(axis="y", visible=False)
        axes.locator_params(axis="x", nbins=4)
    return figure


def _ablations(run: RunSummary) -> "Figure | None":
    by_name = {system.name: system for system in run.systems}
    ablations = [
        ablation
        for ablation in run.table.get("ablations", ())
        if sum(name in by_name for _, name in ablation["points"]) > 1
    ]
    metrics = _shown_metrics(run)[:3]
    if not ablations or not metrics:
        return None
    figure, panels = _figure(
        len(ablations) * len(metrics), width=10.0, height=2.5 * len(ablations), columns=len(metrics)
    )
    for place, axes in enumerate(panels):
        ablation, metric = ablations[place // len(metrics)], metrics[place % len(metrics)]
        points = [
            (value, interval)
            for value, name in ablation["points"]
            if name in by_name and (interval := by_name[name].cells[metric].interval) is not None
        ]
        _curve(axes, points, COLOURS[0], "")
        baseline = by_name[run.baseline].cells[metric].interval if run.baseline in by_name else None
        if baseline is not None:
            axes.axhline(baseline.estimate, color=GREY, linestyle="--", linewidth=1.1, label=run.baseline)
            axes.legend(fontsize=8)
        axes.set(xlabel=f"{ablation['parameter']} of {_short(ablation['of'])}", xticks=[value for value, _ in points])
        axes.set_title(metric, fontsize=9)
    return figure


def _budgets(run: RunSummary) -> "Figure | None":
    budgets = list(run.table.get("budgets") or ())
    kinds = list(dict.fromkeys(metric.partition("@")[0] for metric in run.metrics if "@" in metric))[:3]
    systems = own_systems(run)
    if len(budgets) < 2 or not kinds:
        return None
    figure, panels = _figure(len(kinds), width=10.0, height=3.9)
    few = len(systems) <= 3  # more bands than that hide each other
    for axes, kind in zip(panels, kinds, strict=True):
        for place, system in enumerate(systems):
            points = [
                (budget, interval)
                for budget in budgets
                if (cell := system.cells.get(f"{kind}@{budget}")) is not None
                and (interval := cell.interval) is not None
            ]
            is_baseline = system.name == run.baseline
            line = "--" if is_baseline else LINES[place // len(COLOURS) % len(LINES)]
            colour = COLOURS[place % len(COLOURS)]
            _curve(axes, points, colour, _short(system.name), band=few or is_baseline, line=line)
        axes.set(xlabel="passages", xticks=budgets)
        axes.set_title(f"{kind}@passages", fontsize=9)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(4, len(systems)), fontsize=8)
    return figure


def _curve(
    axes: "Axes",
    points: Sequence[tuple[float, Interval]],
    colour: str,
    label: str,
    *,
    band: bool = True,
    line: str = "-",
) -> None:
    xs = [x for x, _ in points]
    axes.plot(
        xs, [each.estimate for _, each in points], line, marker="o", markersize=4, color=colour, label=label or None
    )
    if band:
        axes.fill_between(
            xs, [each.low for _, each in points], [each.high for _, each in points], color=colour, alpha=0.13
        )


def _whisker(axes: "Axes", interval: Interval, place: int, colour: str = "#222222") -> None:
    ends = [[interval.estimate - interval.low], [interval.high - interval.estimate]]
    axes.errorbar(
        interval.estimate, place, xerr=np.maximum(ends, 0), fmt="none", ecolor=colour, capsize=2.5, linewidth=1.1
    )


def _names(axes: "Axes", systems: Sequence[SystemSummary], *, shown: bool) -> None:
    axes.set_yticks(range(len(systems)), [_short(system.name) if shown else "" for system in systems])
    axes.set_ylim(len(systems) - 0.45, -0.55)  # the first one on top


def _short(name: str, most: int = _LABEL) -> str:
    return name if len(name) <= most else name[: most - 1] + "…"
