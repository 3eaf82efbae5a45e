"""The `kraq` program: its commands, and what every failure looks like to a shell."""

import logging
import os
import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.markup import escape

from kraq_dspy.cli import (
    ask,
    build,
    catalogue,
    catalogue_make,
    catalogue_review,
    change,
    check,
    demo,
    estimate,
    evaluate,
    exchange,
    finetune,
    lm,
    look,
    optimize,
    speculative,
)
from kraq_dspy.cli.logs import set_up_logs, set_up_spans
from kraq_dspy.cli.terminal import errors, printable
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


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"kraq {version('kraq-dspy')}")
        raise typer.Exit


@app.callback()
def _root(
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log what happens, to standard error.")] = False,
    log_json: Annotated[
        bool, typer.Option("--log-json", help="Log what happens as JSON, one object a line, and nothing else there.")
    ] = False,
    otel: Annotated[
        bool, typer.Option("--otel", help="Send spans of stages and calls to an OpenTelemetry collector.")
    ] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    set_up_logs(verbose=verbose, as_json=log_json)
    if otel:
        set_up_spans()


app.command("index")(build.index)
app.command("add")(change.add)
app.command("remove")(change.remove)
app.command("update")(change.update)
app.command("resume")(change.resume)
app.command("check")(check.check)
app.command("estimate")(estimate.estimate)
app.command("status")(look.status)
app.command("questions")(look.questions)
app.command("ask")(ask.ask)
app.command("precompute")(speculative.precompute)
app.command("calibrate")(speculative.calibrate)
catalogue.catalogue.command("review")(catalogue_review.review)
catalogue.catalogue.command("seed")(catalogue_make.seed)
catalogue.catalogue.command("synthesize")(catalogue_make.synthesize)
app.add_typer(catalogue.catalogue, name="catalogue")
app.add_typer(exchange.imports, name="import")
app.command("export")(exchange.export)
app.add_typer(evaluate.evaluate, name="eval")
app.command("report")(evaluate.report)
app.command("optimize")(optimize.optimize)
app.command("pairs")(finetune.pairs)
app.add_typer(finetune.finetune, name="finetune")
app.add_typer(lm.lm, name="lm")
app.command("demo")(demo.demo)


def _say(error: KraqError) -> None:
    if errors.quiet:  # --log-json
        logger.error(str(error), extra={"kind": type(error).__name__})
    else:
        errors.print(f"[red]Error:[/] {escape(printable(str(error)))}")


def main() -> None:
    """Runs the program. Exit codes: 0 done, 1 failed, 2 wrong use or settings, 130 interrupted (typer's)."""
    try:
        app()
    except ConfigError as error:
        _say(error)
        sys.exit(USAGE)
    except KraqError as error:
        _say(error)
        sys.exit(FAILURE)
    except BrokenPipeError:  # the reader of a pipe has gone, as in `kraq questions DIR | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILURE)
    except Exception as error:
        from dspy.utils.exceptions import DSPyError  # slow to import, unless it is what was raised

        if not isinstance(error, DSPyError):
            raise
        _say(_of_a_model(error))
        sys.exit(FAILURE)


def _of_a_model(error: Exception) -> ModelError:
    """What DSPy raises about a call, with the way out for who asked by command; its own advice is for programmers."""
    from dspy import ContextWindowExceededError

    said = str(error).strip().partition("\n")[0]
    if isinstance(error, ContextWindowExceededError):
        return ModelError(
            f"The prompt does not fit into the model's context, even with everything cut that can be: {said} Take a "
            "model with a larger context, or start its server with one (vLLM: --max-model-len)."
        )
    return ModelError(
        f"A call to the model failed: {said} Check that its server runs, and --lm, --api-base and the key "
        "(roles in kraq.toml)."
    )
