"""Opens indexes for the commands that serve them, and runs the server."""

import os
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kraq_dspy.cli.shared.interrupt import INTERRUPTED
from kraq_dspy.cli.shared.logs import Logs, tell_what_is_cut_off
from kraq_dspy.cli.shared.opened import opened
from kraq_dspy.cli.shared.options import Limits, Models
from kraq_dspy.cli.shared.terminal import command, counted, note, output
from kraq_dspy.errors import needs

if TYPE_CHECKING:
    from kraq_dspy.serve.served import Served
    from kraq_dspy.serve.settings import ServeSettings
    from kraq_dspy.serve.worker_memory import Shared

PORT = 8377


def require_server(purpose: str) -> None:
    """Raises MissingExtraError before anything is opened."""
    with needs("starlette", "serve", purpose):
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401


def one_thread_a_question() -> None:
    """Before numpy is imported: questions that are answered at the same time have threads of their own, and OpenBLAS's,
    which wait for each other busily, made a crowded server four times slower."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def opened_all(
    index_dirs: Sequence[Path], models: Models, limits: Limits | None = None, *, edit: bool = False
) -> "AbstractContextManager[Served]":
    from kraq_dspy.serve.served import served

    return served(index_dirs, lambda path, stack: stack.enter_context(opened(path, models, limits)), edit=edit)


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
    with bound(settings.host, settings.port, next_free=next_free) as listening:

        def tell() -> None:
            port = listening.getsockname()[1]
            if settings.port not in (0, port):
                note(f"the port {settings.port} is in use; this is {port}")
            note_unfinished(indexes)
            say_started(contents(indexes), address_of(listening))
            started(address_of(listening))

        at_once_at_the_end(lambda: run(app, listening, started=tell))


@dataclass(frozen=True)
class ServeIndexes:
    """What a worker of `kraq serve` does: it opens the indexes for itself, and serves its part."""

    index_dirs: tuple[Path, ...]
    models: Models
    limits: Limits
    settings: "ServeSettings"
    shared: "Shared"
    logs: Logs

    def __call__(self, number: int, listening: socket.socket, ready: Callable[[list[str]], None]) -> None:
        self.logs.set_up()
        tell_what_is_cut_off()
        self.shared.count_together()
        one_thread_a_question()
        os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // self.settings.workers)))
        from kraq_dspy.serve.app import make_app
        from kraq_dspy.serve.served import served
        from kraq_dspy.serve.server import run

        spending = (self.shared.spent_on(each, number) for each in range(len(self.index_dirs)))
        with served(
            self.index_dirs,
            lambda path, stack: stack.enter_context(opened(path, self.models, self.limits, shared=next(spending))),
            edit=self.settings.edit,
        ) as indexes:
            app = make_app(indexes, self.settings.of_worker(number), self.shared)
            if number == 0:
                note_unfinished(indexes)
            at_once_at_the_end(lambda: run(app, listening, started=lambda: ready(contents(indexes))))


def serve_with_workers(index_dirs: Sequence[Path], models: Models, limits: Limits, settings: "ServeSettings") -> None:
    """As `run_server`, in `settings.workers` processes besides this one."""
    from kraq_dspy.serve.server import address_of, bound
    from kraq_dspy.serve.worker_memory import shared_by
    from kraq_dspy.serve.workers import run_workers

    with bound(settings.host, settings.port) as listening, shared_by(settings.workers, len(index_dirs)) as shared:
        work = ServeIndexes(tuple(index_dirs), models, limits, settings, shared, Logs.here())

        def started(lines: list[str]) -> None:
            say_started([*lines, f"{settings.workers} workers"], address_of(listening))

        run_workers(work, settings.workers, listening, started=started, ended=shared.forget)


def note_unfinished(indexes: "Served") -> None:
    for each in indexes:
        if not each.index.manifest.complete:
            note(f"{each.name} is unfinished; go on: {command('resume', each.index.path)}")


def contents(indexes: "Served") -> list[str]:
    """A line for each index."""
    return [
        f"{each.name}: {counted(len(each.atlas.questions), 'question')}, {each.index.counts()['chunks']:,} passages"
        for each in indexes
    ]


def say_started(lines: Sequence[str], address: str) -> None:
    for line in (*lines, f"{address}  (Ctrl-C ends it)"):
        output.print(line, markup=False)


def at_once_at_the_end(serve: Callable[[], None]) -> None:
    """Serves, and ends the process without waiting for answers that nobody waits for any more; what is kept is on
    disk."""
    code = 0
    try:
        serve()
    except KeyboardInterrupt:
        code = INTERRUPTED
        if "opentelemetry.sdk" in sys.modules:  # its spans go out at the end
            raise
    if "opentelemetry.sdk" not in sys.modules:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
