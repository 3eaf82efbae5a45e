"""Declares the options of `kraq` itself, and what every failure looks like to a shell."""

import contextlib
import errno
import io
import logging
import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.text import Text

from kraq_dspy.apps.cli.commands import add_commands
from kraq_dspy.apps.cli.logs import set_up_logs
from kraq_dspy.apps.cli.terminal import errors, printable
from kraq_dspy.errors import TOO_LITTLE_MEMORY, ConfigError, KraqError, ModelError, lacks_memory

logger = logging.getLogger(__name__)

USAGE, FAILURE = 2, 1


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"kraq {version('kraq-dspy')}")
        raise typer.Exit


def _root(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", metavar="", help="Log what happens, to standard error.")
    ] = False,
    _version: Annotated[
        bool, typer.Option("--version", metavar="", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    set_up_logs(verbose=verbose)


def make_app() -> typer.Typer:
    """The program with all its commands."""
    app = typer.Typer(
        name="kraq",
        help="Representative questions from a corpus, and answers that use them.",
        no_args_is_help=True,
        result_callback=lambda command, **_: command.run(),
        rich_markup_mode="rich",
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    app.callback()(_root)
    add_commands(app)
    return app


def run() -> None:
    """Runs the program. Exit codes: 0 done, 1 failed, 2 wrong use or settings, 3 a run below what was
    asked of it (`kraq eval --fail-under`), 130 interrupted (typer's)."""
    for stream in (sys.stdin, sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            with contextlib.suppress(io.UnsupportedOperation):  # standard input that was read from already
                stream.reconfigure(errors="replace")  # a character that cannot be written costs itself alone

    try:
        make_app()()
    except BrokenPipeError:  # the reader of a pipe has gone, as in `kraq questions DIR | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILURE)
    except Exception as error:
        shown = _in_words(error)
        if shown is None:
            raise
        errors.print(Text.assemble(("Error: ", "red"), printable(str(shown))))
        sys.exit(USAGE if isinstance(shown, ConfigError) else FAILURE)


def _in_words(error: Exception) -> KraqError | None:
    """The error as a person meets it; None for a fault of ours, which Python shows in full."""
    if lacks_memory(error):
        return _of_memory(error)
    if isinstance(error, KraqError):
        return error
    if isinstance(error, OSError):
        return _of_a_file(error)
    from dspy.utils.exceptions import DSPyError  # slow to import, unless it is what was raised

    return _of_a_model(error) if isinstance(error, DSPyError) else None


def _of_a_file(error: OSError) -> KraqError | None:
    is_full = error.errno in (errno.ENOSPC, errno.EDQUOT) or "No space left" in str(error)
    if error.filename is None and not is_full:
        return None
    logger.info("The error in full", exc_info=error)
    if is_full:
        where = f" at {str(error.filename)!r}" if error.filename else ""
        return KraqError(f"The disk is full{where}. Free some space, or write elsewhere, and run it again.")
    return KraqError(f"{str(error.filename)!r} cannot be read or written: {error.strerror}.")


def _of_memory(error: Exception) -> KraqError:
    logger.info("The error in full", exc_info=error)
    first = str(error).strip().partition("\n")[0].rstrip(".")
    if TOO_LITTLE_MEMORY in str(error):
        return KraqError(str(error))
    return KraqError(f"{TOO_LITTLE_MEMORY} What failed first: {first}." if first else TOO_LITTLE_MEMORY)


def _of_a_model(error: Exception) -> ModelError:
    """Return what DSPy raises about a call, with the way out for who asked by command; its own
    advice is for programmers."""
    from dspy import ContextWindowExceededError
    from dspy.utils.exceptions import AdapterParseError, LMTimeoutError, LMTransportError

    reason = str(error).strip().partition("\n")[0].rstrip(".")
    if isinstance(error, AdapterParseError):
        return ModelError(f"The model gave no answer that can be read: {reason}.")
    if isinstance(error, ContextWindowExceededError):
        return ModelError(
            f"The prompt does not fit into the model's context, even with everything cut that can be: {reason}. Take a "
            "model with a larger context, or start its server with one (vLLM: --max-model-len)."
        )
    running = "that its server runs, and " if isinstance(error, LMTimeoutError | LMTransportError) else ""
    return ModelError(
        f"A call to the model failed: {reason}. Check {running}--lm, --api-base and the key (roles in kraq.toml)."
    )
