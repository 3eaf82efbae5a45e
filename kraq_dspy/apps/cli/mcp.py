"""Offers an index as tools for agents: `kraq mcp`."""

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Annotated

import typer

from kraq_dspy.apps.cli.options import ChosenProgram, IndexDir, Models, opened
from kraq_dspy.apps.cli.serving import at_once_at_the_end
from kraq_dspy.apps.cli.terminal import note
from kraq_dspy.errors import ConfigError, needs


def mcp(
    index_dir: IndexDir,
    chosen: ChosenProgram,
    models: Models,
    http: Annotated[bool, typer.Option(help="Over HTTP instead of standard input and output.")] = False,
    host: Annotated[str, typer.Option(help="Where to listen; all but this machine needs a token.")] = ("127.0.0.1"),
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8765,
    token_env: Annotated[
        str, typer.Option(metavar="VARIABLE", help="Of the environment: holds the token for HTTP.")
    ] = "KRAQ_TOKEN",
) -> None:
    """Offer the index to agents by the Model Context Protocol: ask, search, starters, questions_about, community,
    neighbours_of, read_document.

    A client starts this command and speaks to it over standard input and output; with --http it runs by itself. The
    program and the models chosen here are those of the tool `ask`.
    """
    token = os.environ.get(token_env) or None
    listening = _listening(host, port, token, token_env) if http else None
    with ExitStack() as stack:
        with stdout_on_stderr():  # what loading prints would be taken for protocol
            import anyio

            from kraq_dspy.apps.mcp.server import make_server
            from kraq_dspy.apps.mcp.tools import IndexTools

            choice = chosen.choice()
            space = stack.enter_context(opened(index_dir, models))
            server = make_server(IndexTools(space, choice))
        if listening is None:
            anyio.run(server.run_stdio_async)  # in which the SDK itself sends everybody else's output to standard error
            os.dup2(2, 1)  # and what is left in Python's buffer goes there, too
        else:
            from kraq_dspy.apps.mcp.server import PATH, http_app
            from kraq_dspy.apps.serve.server import Server, address_of

            def started() -> None:
                note(f"{address_of(listening)}{PATH}", ", with a token" if token else "", label="MCP: ")

            over_http = Server(http_app(server, host, token), started)
            at_once_at_the_end(lambda: over_http.run_on(listening))


def _listening(host: str, port: int, token: str | None, token_env: str) -> socket.socket:
    """Before anything is loaded. Raises ConfigError for a port that is taken, and for a wide door without a token."""
    from kraq_dspy.apps.serve.guard import is_local

    if token is None and not is_local(host):
        raise ConfigError(
            f"{host} can be reached from other machines: put a token into the variable {token_env}, which clients send "
            "as `Authorization: Bearer TOKEN`, or stay on this machine (--host 127.0.0.1)."
        )
    with needs("mcp", "mcp", "kraq mcp --http"):
        from kraq_dspy.apps.serve.server import bound
    return bound(host, port)


@contextmanager
def stdout_on_stderr() -> Iterator[None]:
    """Whatever writes to standard output, C code too, writes to standard error."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)
