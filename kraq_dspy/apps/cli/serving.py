"""Serves indexes over HTTP, and shows them in the browser: `kraq serve`."""

import os
import sys
import threading
import webbrowser
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from kraq_dspy.apps.cli import INTERRUPTED
from kraq_dspy.apps.cli.logs import tell_what_is_cut_off
from kraq_dspy.apps.cli.model_options import Limits, Models, QuestionFile, Reads, Refuses, TakesStates
from kraq_dspy.apps.cli.options import Flag, Host, Port, command_class
from kraq_dspy.apps.cli.terminal import command, counted, note, say
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.errors import ConfigError, needs

if TYPE_CHECKING:
    from kraq_dspy.apps.serve.served import ServedIndex
    from kraq_dspy.apps.serve.testset_desk import TestsetDesk
    from kraq_dspy.workspace import Workspace


@command_class
class Serve(TakesStates, Reads, Limits, Refuses, QuestionFile):
    """Serve one or more indexes: a page and a JSON API.

    The page shows the questions, the largest groups first, what is behind them, and answers. With --open, your browser
    shows it.
    """

    index_dirs: Annotated[list[Path], Argument(metavar="DIR ...", help="Index folders, made by `kraq index`.")]
    host: Host = ServeSettings.host
    port: Port = ServeSettings.port
    token: Annotated[
        str | None,
        Option(
            metavar="TEXT",
            envvar="KRAQ_TOKEN",
            show_envvar=False,
            help="Bearer token that requests must send. Better: the variable KRAQ_TOKEN.",
        ),
    ] = None
    tokens: Annotated[
        Path | None,
        Option(metavar="FILE", help="A file of tokens (TOML): who may ask, and which indexes."),
    ] = None
    access_log: Annotated[
        str | None,
        Option(metavar="FILE", help="Write a line of JSON for each request; - is standard output."),
    ] = None
    log_questions: Annotated[
        Path | None,
        Option(metavar="FILE", help="Keep what is asked, for kraq testset label, in a private file."),
    ] = None
    open: Annotated[
        bool, Flag("--open", help="Open the page in your browser; if the port is in use, take another.")
    ] = False
    edit: Annotated[
        bool, Flag("--edit", help="Let the FAQ cache and the test set be reviewed: approve, edit, reject.")
    ] = False
    questions: Annotated[
        Path | None,
        Option(metavar="FILE", help="Questions of your own (csv, jsonl or parquet): show what they never touch."),
    ] = None
    testset: Annotated[
        Path | None, Option(metavar="FILE", help="A test set of `kraq testset make`, to be reviewed.")
    ] = None
    workers: Annotated[int, Option(min=1, help="Questions answered at the same time.")] = ServeSettings.workers
    queue: Annotated[int, Option(min=0, help="Questions that may wait; further ones get 503.")] = ServeSettings.queue
    allow_host: Annotated[
        list[str] | None, Option(metavar="NAME", help="Host name that requests may use; repeatable.")
    ] = None

    def run(self) -> None:
        require_serve("kraq serve")
        self.require_asked("serve", "answering", "conversation")
        from kraq_dspy.apps.serve.callers import Callers
        from kraq_dspy.apps.serve.served import names_of
        from kraq_dspy.apps.serve.testset_desk import TestsetDesk

        desk = TestsetDesk.of(self.questions, self.testset, self.columns())
        scope = self.scope()
        if desk is not None and (len(self.index_dirs) > 1 or self.tokens):
            raise ConfigError("--questions and --testset are for the owner of one index, without --tokens.")
        if desk is not None and scope is not None and not scope.is_everything:
            raise ConfigError(
                "Questions and test sets may tell of any document: --questions and --testset need --owner."
            )
        names = tuple(self.allow_host or ())
        if self.tokens and scope is not None:
            raise ConfigError("With --tokens the file says what each caller may read: labels, or everything = true.")
        callers = Callers(self.tokens, names_of(self.index_dirs)) if self.tokens else None
        settings = ServeSettings(
            self.host, self.port, self.token or None, self.workers, self.queue, names, callers, self.no_refuse
        )
        opened = self.opened if callers is None else partial(Models.opened, self)
        run_server(
            self, self.index_dirs, settings, edit=self.edit, access_log=self.access_log,
            log_questions=self.log_questions, opened=opened, desk=desk, or_any_port=self.open,
            started=open_in_browser if self.open else _do_nothing,
        )  # fmt: skip


def open_in_browser(address: str) -> None:
    """In a thread: a browser that is started may not come back before it is closed."""
    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()


def _do_nothing(address: str) -> None:
    """Nothing is done once the server has started."""


def require_serve(command: str) -> None:
    """Before numpy is imported: questions that are answered at the same time have threads of their own, and OpenBLAS's
    threads, which wait for each other busily, would take their cores in searches of large indexes."""
    with needs("starlette", "serve", command):
        import prometheus_client  # noqa: F401
        import sse_starlette  # noqa: F401
        import uvicorn  # noqa: F401
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def run_server(
    command: Models,
    index_dirs: Sequence[Path],
    settings: "ServeSettings",
    *,
    edit: bool = False,
    desk: "TestsetDesk | None" = None,
    access_log: str | None = None,
    log_questions: Path | None = None,
    opened: "Callable[[Path], AbstractContextManager[Workspace]] | None" = None,
    or_any_port: bool = False,
    started: Callable[[str], None] = _do_nothing,
    ended: Callable[[], None] = lambda: None,
) -> None:
    """Serve until Ctrl-C, and say where on standard output, before the first request."""
    from kraq_dspy.apps.serve.access_log import AccessLog
    from kraq_dspy.apps.serve.app import make_app
    from kraq_dspy.apps.serve.question_log import AskedLog
    from kraq_dspy.apps.serve.served import served
    from kraq_dspy.apps.serve.server import Server, address_of, bound

    tell_what_is_cut_off()
    log = AccessLog(access_log) if access_log else None
    question_log = AskedLog(log_questions) if log_questions else None
    with (
        served(index_dirs, opened or command.opened, edit=edit, desk=desk) as indexes,
        bound(settings.host, settings.port, or_any=or_any_port) as listening,
    ):
        for each in indexes.values():
            each.require_prices()

        def tell() -> None:
            port = listening.getsockname()[1]
            if settings.port not in (0, port):
                note(f"the port {settings.port} is in use; this is {port}")
            say_started(indexes, address_of(listening))
            started(address_of(listening))

        server = Server(make_app(indexes, settings, access_log=log, question_log=question_log), tell)

        def serve() -> None:
            try:
                server.run_on(listening)
            finally:
                for each in indexes.values():
                    each.let_go()
                ended()

        at_once_at_the_end(serve)


def say_started(indexes: "Mapping[str, ServedIndex]", address: str) -> None:
    for each in indexes.values():
        if each.space.has_labels:
            say(f"{each.name}: each caller gets what its labels allow")
            continue
        if not each.index.manifest.complete:
            note(f"{each.name} is unfinished; go on: {command('index', each.index.path)}")
        passages = counted(each.index.counts()["chunks"], "passage")
        say(f"{each.name}: {counted(len(each.atlas.questions), 'question')}, {passages}")
    say(f"{address}  (Ctrl-C ends it)")


def at_once_at_the_end(serve: Callable[[], None]) -> None:
    """Serves, and ends the process without waiting for answers that nobody waits for any more; what is kept is on
    disk."""
    code = 0
    try:
        serve()
    except KeyboardInterrupt:
        code = INTERRUPTED
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
