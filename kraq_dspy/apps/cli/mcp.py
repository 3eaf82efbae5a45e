"""Offers an index as tools for agents: `kraq mcp`."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Annotated

from kraq_dspy.apps.cli.model_options import ChosenProgram, Reads, Refuses, TakesStates
from kraq_dspy.apps.cli.options import Flag, Host, IndexDir, Port, command_class
from kraq_dspy.apps.cli.serving import at_once_at_the_end
from kraq_dspy.apps.cli.terminal import note
from kraq_dspy.errors import needs

if TYPE_CHECKING:
    from kraq_dspy.apps.mcp.tools import IndexTools


@command_class
class Mcp(TakesStates, ChosenProgram, Reads, Refuses):
    """Offer the index to agents by the Model Context Protocol.

    The tools are ask, search, starters, questions_about, community, neighbours_of and read_document. A client
    starts this command and talks to it over standard input and output. With --http it runs by itself; set the
    variable KRAQ_TOKEN to require a token. The tool `ask` uses the program and the models that you choose here.
    """

    index_dir: IndexDir
    http: Annotated[bool, Flag("--http", help="Speak HTTP instead of standard input and output.")] = False
    host: Host = "127.0.0.1"
    port: Port = 8765

    def run(self) -> None:
        with ExitStack() as stack:
            with stdout_on_stderr():  # what loading prints would be taken for protocol
                with needs("mcp", "mcp", "kraq mcp"):
                    import anyio

                    from kraq_dspy.apps.mcp.server import PATH, http_app, make_server
                    from kraq_dspy.apps.serve.serve_settings import ServeSettings
                    from kraq_dspy.apps.serve.server import Server, address_of, bound
                from kraq_dspy.apps.mcp.tools import IndexTools
                from kraq_dspy.workspace.newest_state import moving_on

                settings = (
                    ServeSettings(self.host, self.port, os.environ.get("KRAQ_TOKEN") or None) if self.http else None
                )
                listening = stack.enter_context(bound(self.host, self.port)) if self.http else None
                choice = self.choice()
                self.require_asked("mcp", "answering", "conversation")
                space = stack.enter_context(self.opened(self.index_dir))
                tools = IndexTools(space, choice, no_refuse=self.no_refuse)
                server = make_server(tools)
            stack.enter_context(moving_on(tools.move_on))
            if settings is None or listening is None:
                signal.signal(signal.SIGTERM, lambda *_: _end(tools))
                anyio.run(
                    server.run_stdio_async
                )  # in which the SDK itself sends everybody else's output to standard error
                os.dup2(2, 1)  # and what is left in Python's buffer goes there, too
                return

            def started() -> None:
                note(f"{address_of(listening)}{PATH}", ", with a token" if settings.token else "", label="MCP: ")

            over_http = Server(http_app(server, settings), started)

            def serve() -> None:
                try:
                    over_http.run_on(listening)
                finally:
                    tools.let_go()

            at_once_at_the_end(serve)


def _end(tools: "IndexTools") -> None:
    """Ends the process, without a state that others have left behind."""
    tools.let_go()
    os._exit(128 + signal.SIGTERM)


@contextmanager
def stdout_on_stderr() -> Iterator[None]:
    """Whatever writes to standard output, C code too, writes to standard error."""
    sys.stdout.flush()
    standard_output = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(standard_output, 1)
        os.close(standard_output)
