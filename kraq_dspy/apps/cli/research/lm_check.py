"""Checks, step by step, whether a model's replies can be read, and says what to set: `kraq lm check`."""

import dataclasses
from typing import Annotated

import typer

from kraq_dspy.apps.cli.shared.options import Json, Models
from kraq_dspy.apps.cli.shared.terminal import grid, in_time, note, output, print_json, say


def check(
    models: Models,
    role: Annotated[str, typer.Option("--role", metavar="NAME", help="The role whose model is asked.")] = "default",
    quick: Annotated[bool, typer.Option("--quick", help="Only what an index needs: extract, summarize, ask.")] = False,
    json: Json = False,
) -> None:
    """Ask a model each step twice: are its replies readable? Ends with 1 where it cannot make an index."""
    from kraq_dspy import signatures
    from kraq_dspy.models.lms.check import MAIN_JOB, check_model
    from kraq_dspy.models.lms.roles import LanguageModels

    lm = LanguageModels(models.settings())[role]
    steps = [getattr(signatures, name) for name in (MAIN_JOB if quick else signatures.NAMES)]
    report = check_model(
        lm, steps, tell=lambda step: None if json else note(in_time(step.seconds), label=f"{step.step}: ")
    )
    if json:
        print_json({**dataclasses.asdict(report), "fit": report.fit, "advice": report.advice})
    else:
        headings = "step,>at once,>repaired,>2nd call,>not,>time,>read,>written"
        rows = [
            (
                *(step.step, step.at_once, step.repaired, step.second_call, step.unreadable),
                *(in_time(step.seconds), step.prompt_tokens, step.completion_tokens),
            )
            for step in report.steps
        ]
        output.print(grid(f"{report.model}: replies by step; time and tokens of all trials", headings, rows))
        for step in report.steps:
            if step.reason:
                say((step.step, "yellow"), f": {step.reason}")
        schemas, logprobs = ("yes" if able else "no" for able in (report.schemas, report.logprobs))
        say(f"JSON schemas: {schemas}; log-probabilities: {logprobs}")
        for line in report.advice:
            note(line)
        say(("It can make an index.", "green") if report.fit else ("It cannot make an index.", "red"))
    if not report.fit:
        raise typer.Exit(1)
