"""Declares the options of `kraq` itself, and what every failure looks like to a shell."""

import logging
import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.text import Text

from kraq_dspy.apps.cli.commands import add_commands
from kraq_dspy.apps.cli.shared.logs import set_up_logs, set_up_spans
from kraq_dspy.apps.cli.shared.terminal import errors, printable
from kraq_dspy.errors import ConfigError, KraqError, ModelError

logger = logging.getLogger(__name__)

app = typer.Typer(
    name="kraq",
    help="Representative questions from a corpus, and answers that use them.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

USAGE, FAILURE = 2, 1


def _show_version(is_wanted: bool) -> None:
    if is_wanted:
        typer.echo(f"kraq {version('kraq-dspy')}")
        raise typer.Exit


@app.callback()
def _root(
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", metavar="", help="Log what happens, to standard error.")
    ] = False,
    log_json: Annotated[
        bool, typer.Option("--log-json", metavar="", help="Log as JSON, one object a line, and nothing else there.")
    ] = False,
    otel: Annotated[
        bool,
        typer.Option("--otel", metavar="", help="Send spans of stages and calls to an OpenTelemetry collector."),
    ] = False,
    _version: Annotated[
        bool,
        typer.Option("--version", metavar="", callback=_show_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    set_up_logs(verbose=verbose, as_json=log_json)
    if otel:
        set_up_spans()


add_commands(app)


def run() -> None:
    """Runs the program. Exit codes: 0 done, 1 failed, 2 wrong use or settings, 130 interrupted (typer's)."""
    try:
        app()
    except ConfigError as error:
        _show(error)
        sys.exit(USAGE)
    except KraqError as error:
        _show(error)
        sys.exit(FAILURE)
    except BrokenPipeError:  # the reader of a pipe has gone, as in `kraq questions DIR | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILURE)
    except OSError as error:
        if error.filename is None:
            raise
        logger.info("The error in full", exc_info=error)
        _show(KraqError(f"{str(error.filename)!r} cannot be read or written: {error.strerror}."))
        sys.exit(FAILURE)
    except Exception as error:
        from dspy.utils.exceptions import DSPyError  # slow to import, unless it is what was raised

        if not isinstance(error, DSPyError):
            raise
        _show(_of_a_model(error))
        sys.exit(FAILURE)


def _show(error: KraqError) -> None:
    if errors.quiet:  # --log-json
        logger.error(str(error), extra={"kind": type(error).__name__})
    else:
        errors.print(Text.assemble(("Error: ", "red"), printable(str(error))))


def _of_a_model(error: Exception) -> ModelError:
    """What DSPy raises about a call, with the way out for who asked by command; its own advice is for programmers."""
    from dspy import ContextWindowExceededError

    reason = str(error).strip().partition("\n")[0].rstrip(".")
    if isinstance(error, ContextWindowExceededError):
        return ModelError(
            f"The prompt does not fit into the model's context, even with everything cut that can be: {reason}. Take a "
            "model with a larger context, or start its server with one (vLLM: --max-model-len)."
        )
    return ModelError(
        f"A call to the model failed: {reason}. Check that its server runs, and --lm, --api-base and the key "
        "(roles in kraq.toml)."
    )
