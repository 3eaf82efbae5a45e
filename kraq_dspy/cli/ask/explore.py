"""Shows an index in the browser, or writes it as a page of one file: `kraq explore`."""

import threading
import webbrowser
from pathlib import Path
from typing import Annotated

import typer
from rich import filesize

from kraq_dspy.cli.ask.serving import PORT, one_thread_a_question, opened_all, require_server, run_server
from kraq_dspy.cli.shared.logs import tell_what_is_cut_off
from kraq_dspy.cli.shared.options import IndexDir, Limits, Models
from kraq_dspy.cli.shared.terminal import say
from kraq_dspy.cli.shared.writable import require_writable_file


def explore(
    index_dir: IndexDir,
    models: Models,
    limits: Limits,
    edit: Annotated[bool, typer.Option("--edit", help="Let the catalogue be reviewed: approve, edit, reject.")] = False,
    port: Annotated[
        int, typer.Option("--port", help="Port of this machine; where it is in use, the next free one.")
    ] = PORT,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Only say the address.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write a page of one file instead, which cannot ask."),
    ] = None,
) -> None:
    """Open the index in the browser: its questions from broad to narrow, what stands behind them, and answers."""
    require_server("kraq explore")
    one_thread_a_question()
    from kraq_dspy.serve.one_file import write_page
    from kraq_dspy.serve.settings import ServeSettings

    if out is not None:
        require_writable_file(out)
        with opened_all([index_dir], models) as indexes:
            size = write_page(indexes[None], out)
        say(f"{out}: {filesize.decimal(size)}; open it in any browser")
        return
    tell_what_is_cut_off()
    with opened_all([index_dir], models, limits, edit=edit) as indexes:
        run_server(
            indexes,
            ServeSettings(port=port, edit=edit, rate=0),
            next_free=True,
            started=lambda address: None if no_browser else _open(address),
        )


def _open(address: str) -> None:
    """In a thread: a browser that is started may not come back before it is closed."""
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
