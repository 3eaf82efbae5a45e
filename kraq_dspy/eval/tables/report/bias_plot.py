"""Draws the audit for bias: each theme's share of the questions beside its share of the passages."""

from kraq_dspy.eval.tables.bias import BiasAudit, ThemeShare
from kraq_dspy.eval.tables.report.plots import COLOURS, GREY, Plot, _figure, _short, _style, svg

_LABEL = 42  # characters of a theme's name


def bias_plot(audit: BiasAudit, top: int = 15, prefix: str = "bias") -> Plot:
    """Of the themes that `shown_themes` chooses. Raises MissingExtraError."""
    themes = shown_themes(audit, top)
    with _style():
        figure, (axes,) = _figure(1, width=9.0, height=1.3 + 0.42 * len(themes))
        for place, theme in enumerate(themes):
            axes.barh(place - 0.2, theme.passages, height=0.38, color=GREY, label="passages" if place == 0 else None)
            colour = COLOURS[1] if theme.p_adjusted < 0.05 else COLOURS[0]
            axes.barh(place + 0.2, theme.questions, height=0.38, color=colour)
            range_colour = colour if colour == COLOURS[1] else "#222222"  # where no bar could show it
            axes.plot(theme.chance, (place + 0.2,) * 2, "|-", color=range_colour, linewidth=1.4, markersize=6)
        axes.barh(0, 0, color=COLOURS[0], label="questions")
        axes.barh(0, 0, color=COLOURS[1], label="questions, further off than chance (p < .05)")
        axes.plot([], [], color="#222222", label="95 % of draws by chance")
        axes.set_yticks(range(len(themes)), [_short(theme.theme, _LABEL) for theme in themes])
        axes.set_ylim(len(themes) - 0.4, -0.6)
        axes.set_xlim(left=0)
        axes.set(xlabel="share")
        axes.xaxis.set_major_formatter(lambda share, _: f"{share:.0%}")
        axes.grid(axis="y", visible=False)
        figure.legend(loc="outside lower center", ncols=2, fontsize=8)
        caption = "Share of the questions of each theme, against its share of the passages."
        return Plot("bias", caption, svg(figure, prefix))


def shown_themes(audit: BiasAudit, top: int) -> list[ThemeShare]:
    """At most `top`: half of them the largest, the others those whose questions are furthest from their passages."""
    largest = list(audit.themes[: (top + 1) // 2])
    rest = sorted(audit.themes[len(largest) :], key=lambda theme: -abs(theme.questions - theme.passages))
    chosen = {*largest, *rest[: top - len(largest)]}
    return [theme for theme in audit.themes if theme in chosen]
