"""Declares the options of `kraq` itself, and what every failure looks like to a shell."""

import contextlib
import gc
import io
import os
import sys
from importlib.metadata import version
from typing import Annotated, Any

import typer
from typer import Option

from kraq_dspy.apps.cli.commands import Commands, Runnable
from kraq_dspy.apps.cli.failures import in_words
from kraq_dspy.apps.cli.logs import set_up_logs
from kraq_dspy.apps.cli.terminal import show_error
from kraq_dspy.asset.store.access import guard_copies
from kraq_dspy.errors import ConfigError

USAGE, FAILURE = 2, 1


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"kraq {version('kraq-dspy')}")
        raise typer.Exit


def _root(
    verbose: Annotated[
        bool, Option("--verbose", "-v", metavar="", help="Log what happens, to standard error.")
    ] = False,
    _version: Annotated[
        bool, Option("--version", metavar="", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    set_up_logs(verbose=verbose)


def _run(command: Runnable, **_: Any) -> None:
    """Run what was chosen. The garbage collector, which `main` stopped, never looks at what was imported: that would
    take a fifth of the time of a question."""
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
    command.run()


def make_app() -> typer.Typer:
    """The program with all its commands."""
    app = typer.Typer(
        name="kraq",
        cls=Commands,
        help="Representative questions from a corpus, and answers that use them.",
        no_args_is_help=True,
        result_callback=_run,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )

    app.callback()(_root)
    return app


def run() -> None:
    """Runs the program. Exit codes: 0 done, 1 failed, 2 wrong use or settings, 3 a run below what was
    asked of it (`kraq eval --fail-under`), 130 interrupted (typer's)."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(io.UnsupportedOperation):  # standard input that was read from already
                stream.reconfigure(errors="replace")  # a character that cannot be written costs itself alone

    guard_copies()  # what a command writes of an index is no more open than that
    try:
        make_app()()
    except BrokenPipeError:  # the reader of a pipe has gone, as in `kraq questions DIR | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILURE)
    except Exception as error:
        shown = in_words(error)
        if shown is None:
            raise
        show_error(shown)
        sys.exit(USAGE if isinstance(shown, ConfigError) else FAILURE)
