"""Brings and checks models, and serves what kraq.toml asks of vLLM: `kraq lm`."""

import dataclasses
import os
import shutil
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from kraq_dspy.apps.cli.options import Config, Json, Models
from kraq_dspy.apps.cli.terminal import command, errors, grid, in_time, note, output, print_json, say
from kraq_dspy.errors import ConfigError, ModelError


def get(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="smollm2-135m, qwen2.5-coder-0.5b or qwen2.5-coder-1.5b.")
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Its folder. Default: in the user's cache, where it is found."),
    ] = None,
    source: Annotated[
        Path | None, typer.Option("--from", metavar="FILE", help="A file that is here already: check it and take it.")
    ] = None,
    json: Json = False,
) -> None:
    """Bring a small language model that runs in this process. Interrupted? The same command goes on."""
    from kraq_dspy.models.lms.local_models import GGUF, QUESTIONS, get_model, known_model, models_folder
    from kraq_dspy.settings import QUESTIONS_BASE

    model = known_model(name)
    errors.print(f"{model.title}; licence {model.license}; {model.size / 1e6:,.0f} MB", markup=False)
    path = get_model(model, out, source=source)
    model_string = f"gguf/{name}" if out is None or out.resolve() == models_folder().resolve() else f"gguf/{path}"
    if json:
        print_json({"model": model_string, "file": str(path), "license": model.license, "sha256": model.sha256})
        return
    say(f"{path} is the published file (SHA-256 {model.sha256[:16]}...).")
    say("Try: ", command("index", "DOCS", "--lm", model_string))
    if GGUF + name == QUESTIONS_BASE:
        say(f'As generator of questions, in kraq.toml:\n[roles.generator]\nmodel = "{model_string}"')
        say(f'adapter = "{QUESTIONS}"')


def check(
    models: Models,
    role: Annotated[str, typer.Option(metavar="NAME", help="The role whose model is asked.")] = "default",
    quick: Annotated[bool, typer.Option(help="Only what an index needs: extract, summarize, ask.")] = False,
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
        numbers = ("readable", "2nd call", "not", "time", "read", "written")
        rows = [
            (
                *(step.step, step.readable, step.second_call, step.unreadable),
                *(in_time(step.seconds), step.prompt_tokens, step.completion_tokens),
            )
            for step in report.steps
        ]
        title = f"{report.model}: replies by step; time and tokens of all trials"
        output.print(grid(title, ("step", *numbers), rows, right=numbers))
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


def serve(
    config: Config,
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- OPTIONS", help="Options of vLLM's own, after --.", show_default=False),
    ] = None,
    run: Annotated[bool, typer.Option(help="Run the command instead of printing it.")] = False,
    role: Annotated[str | None, typer.Option(help="Only the server of this role.")] = None,
    vllm: Annotated[str, typer.Option(metavar="PATH", help="The program, e.g. in an environment of its own.")] = "vllm",
    json: Json = False,
) -> None:
    """Print the vLLM command for the roles with hosted_vllm/ models in kraq.toml, or run it."""
    from kraq_dspy.models.lms.vllm_server import servers_of

    servers = servers_of(config.written(config.file()))  # a server of one's own is started, and none is sent anything
    if role is not None:
        servers = [server for server in servers if role in server.roles]
        if not servers:
            raise ConfigError(f"The role {role!r} is not served by vLLM in these settings.")
    if not run:
        shown = [server.shown(more=more or ()) for server in servers]
        if json:
            print_json(
                [
                    {"roles": server.roles, "api_base": server.api_base, "adapters": server.adapters, "command": line}
                    for server, line in zip(servers, shown, strict=True)
                ]
            )
            return
        for line in shown:
            output.print(Text(line), soft_wrap=True)
        return
    if len(servers) > 1:
        raise ConfigError(f"There are {len(servers)} servers to run; choose one with --role.")
    program = shutil.which(vllm)
    if program is None:
        raise ModelError(
            f"There is no program {vllm!r}. vLLM wants an environment of its own: python -m venv vllm-env && "
            "vllm-env/bin/pip install vllm, then --vllm vllm-env/bin/vllm."
        )
    [server] = servers
    environment = {**os.environ, **server.environment()}
    command = server.command(program, more=more or ())
    errors.print(Text(server.shown(more=more or ())), soft_wrap=True)
    output.file.flush()
    os.execve(program, command, environment)  # in our place: what stops us, stops the server
