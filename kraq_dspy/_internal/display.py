"""Shows predictions, records and lists of them as small tables, and in a notebook how a long run goes."""

import dataclasses
import sys
from collections.abc import Iterator, Mapping, Set
from html import escape
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kraq_dspy.ports import Progress

ITEMS = 5  # of a long list
CHARACTERS = 300  # of a long text
_TEXTS = ("text", "chunk", "question", "name", "title", "point", "id")  # what stands for a record within another


def show(thing: Any) -> None:
    """Show a prediction of any program, a record, or a list of records, in a notebook or in the terminal.

    >>> kraq.show(space.ask("Who signed Executive Order 10925?"))  # doctest: +SKIP

    Args:
        thing: what to show. `show` prints other objects by their fields, or as text.
    """
    from rich import print as rich_print

    rich_print(as_table(thing))


def as_table(thing: Any) -> Any:
    """A `rich.table.Table`."""
    from rich.table import Table
    from rich.text import Text

    table = Table("", "", title=_title(thing), title_justify="left", show_header=False)
    for name, lines in rows(thing):
        table.add_row(Text(name, style="bold"), Text("\n".join(lines)))
    return table


def as_html(thing: Any) -> str:
    """The same table for a notebook, which asks for `_repr_html_`; whatever a document holds is text in it."""
    lines = [f"<table><caption>{escape(_title(thing))}</caption>"]
    for name, texts in rows(thing):
        cells = "<br>".join(escape(text) for text in texts)
        lines.append(
            f'<tr><th style="text-align:left">{escape(name)}</th><td style="text-align:left">{cells}</td></tr>'
        )
    return "\n".join([*lines, "</table>"])


def _title(thing: Any) -> str:
    """The name of its type; that of a prediction is the same for every program."""
    return "Prediction" if callable(getattr(thing, "toDict", None)) else type(thing).__name__


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


def default_progress() -> "Progress":
    """Bars in a notebook, nothing elsewhere: a library prints only if it is asked to."""
    from kraq_dspy.ports import SilentProgress  # with numpy, for which `import kraq_dspy` need not wait

    ipython = sys.modules.get("IPython")  # where it is not imported, no notebook runs
    shell = ipython.get_ipython() if ipython else None
    return NotebookProgress() if type(shell).__name__ == "ZMQInteractiveShell" else SilentProgress()


class NotebookProgress:
    """`ports.Progress` as a bar of tqdm for each stage."""

    def __init__(self) -> None:
        self._bars: dict[str, Any] = {}

    def start(self, stage: str, total: int | None) -> None:
        from tqdm.auto import tqdm

        if stage not in self._bars:
            self._bars[stage] = tqdm(desc=stage, total=total)

    def advance(self, stage: str, done: int = 1, *, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        self.start(stage, None)
        self._bars[stage].update(done)

    def finish(self, stage: str) -> None:
        if stage in self._bars:
            self._bars[stage].close()
