"""Opens indexes for the commands that serve them, and runs the server."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kraq_dspy.cli.shared.interrupt import INTERRUPTED
from kraq_dspy.cli.shared.opened import opened
from kraq_dspy.cli.shared.options import Limits, Models
from kraq_dspy.cli.shared.terminal import command, counted, note, output
from kraq_dspy.errors import needs

if TYPE_CHECKING:
    from kraq_dspy.serve.served import Served
    from kraq_dspy.serve.settings import ServeSettings

PORT = 8377


def require_server(purpose: str) -> None:
    """Raises MissingExtraError before anything is opened."""
    with needs("starlette", "serve", purpose):
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401


def opened_all(
    index_dirs: Sequence[Path], models: Models, limits: Limits | None = None, *, edit: bool = False
) -> "AbstractContextManager[Served]":
    from kraq_dspy.serve.served import served

    return served(index_dirs, lambda path, stack: stack.enter_context(opened(path, models, limits)), edit=edit)


@contextmanager
def at_once_on_interrupt() -> Iterator[None]:
    """Ctrl-C ends the process without waiting for answers that nobody waits for any more; what is kept is on disk."""
    try:
        yield
    except KeyboardInterrupt:
        if "opentelemetry.sdk" in sys.modules:  # its spans go out at the end
            raise
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(INTERRUPTED)


def run_server(
    indexes: "Served",
    settings: "ServeSettings",
    *,
    next_free: bool = False,
    started: Callable[[str], None] = lambda address: None,
) -> None:
    """Until Ctrl-C; says where it listens on standard output, before the first request."""
    from kraq_dspy.serve.app import make_app
    from kraq_dspy.serve.server import address_of, bound, run

    app = make_app(indexes, settings)
    with at_once_on_interrupt(), bound(settings, next_free=next_free) as listening:
        address = address_of(listening)

        def tell() -> None:
            port = listening.getsockname()[1]
            if settings.port not in (0, port):
                note(f"the port {settings.port} is in use; this is {port}")
            for each in indexes:
                if not each.index.manifest.complete:
                    note(f"{each.name} is unfinished; go on: {command('resume', each.index.path)}")
                size = f"{counted(len(each.atlas.questions), 'question')}, {each.index.counts()['chunks']:,} passages"
                output.print(f"{each.name}: {size}", markup=False)
            output.print(f"{address}  (Ctrl-C ends it)", markup=False)
            started(address)

        run(app, listening, started=tell)
