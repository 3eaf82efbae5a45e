"""Shows a prediction or a record as a small table: in a notebook as HTML, in a terminal with rich."""

import dataclasses
import html
import importlib
import sys
from collections.abc import Iterator, Mapping, Set
from typing import Any

ITEMS = 5  # of a long list
CHARACTERS = 300  # of a long text
_TEXTS = ("text", "chunk", "question", "name", "title", "point", "id")  # what stands for a record within another


class Shown:
    """Gives a dataclass its table in notebooks (`_repr_html_`) and for rich (`rich.print`)."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return as_html(self)

    def __rich__(self) -> Any:
        return as_table(self)


def show(thing: Any) -> None:
    """Show a prediction of any program, or a record: as HTML in a notebook, else in the terminal."""
    if in_notebook():
        picture = {"text/html": as_html(thing), "text/plain": repr(thing)}
        importlib.import_module("IPython.display").display(picture, raw=True)
        return
    from rich import print as rich_print

    rich_print(as_table(thing))


def in_notebook() -> bool:
    """Whether this code runs in the kernel of a notebook."""
    ipython = sys.modules.get("IPython")  # where it is not imported, no notebook runs
    shell = ipython.get_ipython() if ipython else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def show_predictions_in_notebooks() -> None:
    """Let a `dspy.Prediction` at the end of a cell be shown as its table. Does nothing outside of a notebook."""
    if in_notebook():
        formatter = sys.modules["IPython"].get_ipython().display_formatter.formatters["text/html"]
        formatter.for_type_by_name("dspy.primitives.prediction", "Prediction", as_html)


def as_html(thing: Any) -> str:
    cells = [
        f"<tr><th style='text-align:left;vertical-align:top'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{'<br>'.join(map(html.escape, lines))}</td></tr>"
        for name, lines in rows(thing)
    ]
    return f"<table><caption>{html.escape(type(thing).__name__)}</caption>{''.join(cells)}</table>"


def as_table(thing: Any) -> Any:
    """A `rich.table.Table`."""
    from rich.table import Table
    from rich.text import Text

    table = Table("", "", title=type(thing).__name__, title_justify="left", show_header=False)
    for name, lines in rows(thing):
        table.add_row(Text(name, style="bold"), Text("\n".join(lines)))
    return table


def rows(thing: Any) -> Iterator[tuple[str, list[str]]]:
    """Names and lines of what is not empty, in their order. Raises TypeError for what has no named parts."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        values = [(field.name, getattr(thing, field.name)) for field in dataclasses.fields(thing)]
    elif callable(getattr(thing, "items", None)):
        values = list(thing.items())
    else:
        raise TypeError(f"{thing!r:.80} ({type(thing).__name__}) is neither a prediction nor a record.")
    for name, value in values:
        if value is not None and value != "" and not (isinstance(value, tuple | list | Set | Mapping) and not value):
            yield str(name), _lines(value)


def _lines(value: Any) -> list[str]:
    if isinstance(value, Mapping):
        value = [f"{name}: {_brief(each)}" for name, each in value.items()]
    if not isinstance(value, tuple | list | Set):
        return [_brief(value)]
    items = sorted(value) if isinstance(value, Set) else list(value)
    more = [f"and {len(items) - ITEMS} more"] if len(items) > ITEMS else []
    return [_brief(item) for item in items[:ITEMS]] + more


def _brief(value: Any) -> str:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = next((getattr(value, name) for name in _TEXTS if getattr(value, name, None)), repr(value))
        score = getattr(value, "score", None)
        return _brief(inner) + (f" ({score:.3f})" if isinstance(score, float) else "")
    text = f"{value:.3f}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= CHARACTERS else text[: CHARACTERS - 1] + "…"
