"""Serves what `kraq.toml` asks of vLLM, and manages its adapters while it runs: `kraq lm`."""

import os
import shutil
from typing import Annotated

import typer
from rich.text import Text

from kraq_dspy.apps.cli.shared.options import Config, Json
from kraq_dspy.apps.cli.shared.terminal import errors, output, print_json, say
from kraq_dspy.errors import ConfigError, ModelError

Address = Annotated[str, typer.Option("--api-base", metavar="URL", help="Of the server, e.g. http://localhost:8000/v1")]
Key = Annotated[str | None, typer.Option("--key-env", help="Environment variable with the server's key.")]


def serve(
    config: Config,
    more: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- OPTIONS", help="Options of vLLM's own, after --.", show_default=False),
    ] = None,
    run: Annotated[bool, typer.Option("--run", help="Run the command instead of printing it.")] = False,
    role: Annotated[str | None, typer.Option("--role", help="Only the server of this role.")] = None,
    vllm: Annotated[
        str, typer.Option("--vllm", metavar="PATH", help="The program, e.g. in an environment of its own.")
    ] = "vllm",
    runtime_loras: Annotated[
        bool, typer.Option("--runtime-loras", help="Let `kraq lm load` and `unload` change adapters.")
    ] = False,
    json: Json = False,
) -> None:
    """Print the vLLM command for the roles with hosted_vllm/ models in kraq.toml, or run it."""
    from kraq_dspy.models.lms.servers.vllm_server import servers_of

    servers = servers_of(config.written(config.file()))  # a server of one's own is started, and none is sent anything
    if role is not None:
        servers = [server for server in servers if role in server.roles]
        if not servers:
            raise ConfigError(f"The role {role!r} is not served by vLLM in these settings.")
    if not run:
        shown = [server.shown(runtime=runtime_loras, more=more or ()) for server in servers]
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
    environment = {**os.environ, **server.environment(runtime=runtime_loras)}
    command = server.command(program, runtime=runtime_loras, more=more or ())
    errors.print(Text(server.shown(runtime=runtime_loras, more=more or ())), soft_wrap=True)
    output.file.flush()
    os.execve(program, command, environment)  # in our place: what stops us, stops the server


def load(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The adapter's folder, as the server sees it.")],
    api_base: Address,
    name: Annotated[
        str | None, typer.Option("--name", help="Served under this name. Default: the folder's, with its hash.")
    ] = None,
    key_env: Key = None,
    json: Json = False,
) -> None:
    """Load an adapter into a running vLLM (started with --runtime-loras)."""
    from kraq_dspy.models.lms.adapter_name import served_name
    from kraq_dspy.models.lms.servers.vllm_server import load_adapter

    served = name or served_name(folder)
    load_adapter(api_base, served, os.path.abspath(folder), key=_key(key_env))
    _print(served, "loaded", json)


def unload(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name it is served under.")],
    api_base: Address,
    key_env: Key = None,
    json: Json = False,
) -> None:
    """Take an adapter out of a running vLLM."""
    from kraq_dspy.models.lms.servers.vllm_server import unload_adapter

    unload_adapter(api_base, name, key=_key(key_env))
    _print(name, "unloaded", json)


def _key(variable: str | None) -> str | None:
    if variable is None:
        return None
    if not os.environ.get(variable):
        raise ModelError(f"The environment variable {variable} is not set.")
    return os.environ[variable]


def _print(name: str, done: str, json: bool) -> None:
    if json:
        print_json({"model": f"hosted_vllm/{name}", "state": done})
    else:
        say(f"hosted_vllm/{name} is {done}.")
