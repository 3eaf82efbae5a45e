"""Shows predictions, records and lists of them as small tables, in a notebook as HTML, in a terminal with rich; in a
notebook also how a long run goes."""

import dataclasses
import html
import importlib
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kraq_dspy.ports import Progress

ITEMS = 5  # of a long list
CHARACTERS = 300  # of a long text
RECORDS = (
    "Document", "Chunk", "Entity", "Relationship", "Claim", "Community", "Summary", "Question", "Hit", "QuestionHit",
)  # fmt: skip
_TEXTS = ("text", "chunk", "question", "name", "title", "point", "id")  # what stands for a record within another


def show(thing: Any) -> None:
    """Show a prediction of any program, a record, or a list of records: as HTML in a notebook, else in the terminal.

    >>> kraq.show(space.ask("Who signed Executive Order 10925?"))  # doctest: +SKIP
    """
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


def show_tables_in_notebooks() -> None:
    """Let a `dspy.Prediction` or a record at the end of a cell be shown as its table. Does nothing elsewhere."""
    if in_notebook():
        formatter = sys.modules["IPython"].get_ipython().display_formatter.formatters["text/html"]
        formatter.for_type_by_name("dspy.primitives.prediction", "Prediction", as_html)
        for name in RECORDS:
            formatter.for_type_by_name("kraq_dspy.records", name, as_html)
        formatter.for_type_by_name("kraq_dspy.build.index.report", "BuildReport", as_html)


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
    """Names and lines of what is not empty, in their order; of a list, its places and items.

    Raises TypeError for what has no named parts.
    """
    if isinstance(thing, list | tuple):
        for place, item in enumerate(thing, 1):
            yield str(place), [brief(item)]
        return
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
        value = [f"{name}: {brief(each)}" for name, each in value.items()]
    if not isinstance(value, tuple | list | Set):
        return [brief(value)]
    items = sorted(value) if isinstance(value, Set) else list(value)
    more = [f"and {len(items) - ITEMS} more"] if len(items) > ITEMS else []
    return [brief(item) for item in items[:ITEMS]] + more


def brief(value: Any) -> str:
    """The value on one line of at most `CHARACTERS` characters; of a record, what stands for it."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        inner = next((getattr(value, name) for name in _TEXTS if getattr(value, name, None)), repr(value))
        score = getattr(value, "score", None)
        return brief(inner) + (f" ({score:.3f})" if isinstance(score, float) else "")
    text = f"{value:.3f}" if isinstance(value, float) else " ".join(str(value).split())
    return text if len(text) <= CHARACTERS else text[: CHARACTERS - 1] + "…"


def shown_model(name: str) -> str:
    """A model's name without the folder of a local file: "gguf//home/ada/m.gguf" as "gguf/m.gguf"."""
    provider, slash, rest = name.partition("/")
    if slash and (rest.startswith(("/", ".", "~")) or provider in ("gguf", "transformers")):
        return f"{provider}/{PurePath(rest).name}"
    return PurePath(name).name if name.startswith(("/", ".", "~")) else name


def whole_text(text: str) -> str:
    """The text with the halves of a character joined, and U+FFFD for each that has no other half.

    >>> whole_text("half \\ud83d")
    'half \\ufffd'
    """
    if text.isascii():
        return text
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


EVERY_S = 0.2  # between two pictures: each is a message to the browser
CARD = "font-family:monospace;border-spacing:.6em 0"


def default_progress() -> "Progress":
    """Bars in a notebook, nothing elsewhere: a library prints only where it is asked to."""
    from kraq_dspy.ports import SilentProgress  # with numpy, for which `import kraq_dspy` need not wait

    if not in_notebook():
        return SilentProgress()
    return NotebookProgress(importlib.import_module("IPython.display").display)


@dataclass
class _Stage:
    total: int | None
    done: int = 0
    ended: bool = False


class NotebookProgress:
    """`ports.Progress` as one table of bars that is drawn anew. `display` is IPython's. Safe for threads."""

    def __init__(self, display: Any) -> None:
        self._display = display
        self._handle: Any = None
        self._stages: dict[str, _Stage] = {}
        self._drawn_at = 0.0
        self._lock = threading.Lock()

    def start(self, stage: str, total: int | None) -> None:
        with self._lock:
            self._stages.setdefault(stage, _Stage(total))
            self._draw()

    def advance(self, stage: str, done: int = 1, *, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        with self._lock:
            self._stages.setdefault(stage, _Stage(None)).done += done
            if time.monotonic() - self._drawn_at >= EVERY_S:
                self._draw()

    def finish(self, stage: str) -> None:
        with self._lock:
            if stage in self._stages:
                self._stages[stage].ended = True
                self._draw()

    def html(self) -> str:
        rows = []
        for name, stage in self._stages.items():
            total = stage.done if stage.ended else stage.total
            bar = (
                "<progress></progress>"
                if total is None
                else f"<progress value={stage.done} max={total or 1}></progress>"
            )
            count = f"{stage.done}" if total is None else f"{stage.done} of {total}"
            rows.append(f"<tr><td>{html.escape(name)}</td><td>{bar}</td><td>{count}</td></tr>")
        return f"<table style='{CARD}'>{''.join(rows)}</table>"

    def _draw(self) -> None:
        self._drawn_at = time.monotonic()
        picture = {"text/html": self.html(), "text/plain": ", ".join(f"{n} {s.done}" for n, s in self._stages.items())}
        if self._handle is None:
            self._handle = self._display(picture, raw=True, display_id=True)
        else:
            self._handle.update(picture, raw=True)
