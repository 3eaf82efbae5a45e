"""Shows how a long run goes under the cell of a notebook that started it."""

import html
import importlib
import threading
import time
from dataclasses import dataclass
from typing import Any

from kraq_dspy._internal.display import in_notebook
from kraq_dspy.ports import Progress, SilentProgress

EVERY_S = 0.2  # between two pictures: each is a message to the browser
CARD = "font-family:monospace;border-spacing:.6em 0"


def default_progress() -> Progress:
    """Bars in a notebook, nothing elsewhere: a library prints only where it is asked to."""
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
