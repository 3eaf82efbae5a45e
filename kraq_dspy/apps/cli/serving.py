"""Serves indexes over HTTP, shows one in the browser, or writes it as a page: `kraq serve` and `kraq explore`."""

import os
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich import filesize

from kraq_dspy.apps.cli import INTERRUPTED
from kraq_dspy.apps.cli.logs import tell_what_is_cut_off
from kraq_dspy.apps.cli.options import IndexDir, Limits, Models, opened, require_writable_file
from kraq_dspy.apps.cli.terminal import command, counted, note, output, say
from kraq_dspy.errors import needs

if TYPE_CHECKING:
    from kraq_dspy.apps.serve.guard import ServeSettings
    from kraq_dspy.apps.serve.served import Served

PORT = 8377


def serve(
    index_dirs: Annotated[list[Path], typer.Argument(metavar="DIR ...", help="Index folders, made by `kraq index`.")],
    models: Models,
    limits: Limits,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; any but this machine's needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on; 0 takes a free one.")] = PORT,
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            envvar="KRAQ_TOKEN",
            show_envvar=False,
            help="What requests must bear (Authorization: Bearer TEXT). Better in the variable KRAQ_TOKEN.",
        ),
    ] = None,
    edit: Annotated[bool, typer.Option(help="Let the catalogue be reviewed.")] = False,
    at_once: Annotated[int, typer.Option(min=1, help="Questions answered at the same time.")] = 8,
    waiting: Annotated[int, typer.Option(min=0, help="Questions that may wait; the next one is refused (503).")] = 64,
    max_body: Annotated[int, typer.Option(min=1, metavar="KB", help="Largest request.")] = 1024,
    allow_host: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="A name by which it may be called; repeatable.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(metavar="ORIGIN", help="A web page's origin that may call it; repeatable.")
    ] = None,
) -> None:
    """Serve one or more indexes: a page to explore, a JSON API, and OpenAI's chat completions with programs as models.

    /page/api.html lists the addresses; /health, /ready and /metrics are for machines.
    """
    _require_server("kraq serve")
    _one_thread_a_question()
    from kraq_dspy.apps.serve.guard import ServeSettings

    settings = ServeSettings(
        host=host, port=port, token=token or None, edit=edit, body_bytes=max_body * 1024, at_once=at_once,
        waiting=waiting, hosts=tuple(allow_host or ()), origins=tuple(allow_origin or ()),
    )  # fmt: skip
    with _opened_all(index_dirs, models, limits, edit=edit) as indexes:
        _run(indexes, settings)


def explore(
    index_dir: IndexDir,
    models: Models,
    limits: Limits,
    edit: Annotated[bool, typer.Option(help="Let the catalogue be reviewed: approve, edit, reject.")] = False,
    port: Annotated[int, typer.Option(help="Port of this machine; where it is in use, the next free one.")] = PORT,
    no_browser: Annotated[bool, typer.Option(help="Only say the address.")] = False,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write a page of one file instead, which cannot ask."),
    ] = None,
) -> None:
    """Open the index in the browser: its questions from broad to narrow, what stands behind them, and answers."""
    if out is not None:
        require_writable_file(out)
        from kraq_dspy.apps.serve.one_file import write_page

        with _opened_all([index_dir], models) as indexes:
            size = write_page(indexes[None], out)
        say(f"{out}: {filesize.decimal(size)}; open it in any browser")
        return
    _require_server("kraq explore")
    _one_thread_a_question()
    from kraq_dspy.apps.serve.guard import ServeSettings

    def started(address: str) -> None:
        if not no_browser:  # in a thread: a browser that is started may not come back before it is closed
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    with _opened_all([index_dir], models, limits, edit=edit) as indexes:
        _run(indexes, ServeSettings(port=port, edit=edit), next_free=True, started=started)


def _require_server(purpose: str) -> None:
    """Raises MissingExtraError before anything is opened."""
    with needs("starlette", "serve", purpose):
        import prometheus_client  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401


def _one_thread_a_question() -> None:
    """Before numpy is imported: questions that are answered at the same time have threads of their own, and OpenBLAS's,
    which wait for each other busily, made a crowded server four times slower."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


@contextmanager
def _opened_all(
    index_dirs: Sequence[Path], models: Models, limits: Limits | None = None, *, edit: bool = False
) -> "Iterator[Served]":
    from kraq_dspy.apps.serve.served import served

    tell_what_is_cut_off()
    with served(index_dirs, lambda path, stack: stack.enter_context(opened(path, models, limits)), edit=edit) as all_:
        yield all_


def _run(
    indexes: "Served",
    settings: "ServeSettings",
    *,
    next_free: bool = False,
    started: Callable[[str], None] = lambda address: None,
) -> None:
    """Until Ctrl-C; says where it listens on standard output, before the first request."""
    from kraq_dspy.apps.serve.app import make_app
    from kraq_dspy.apps.serve.server import address_of, bound, run

    app = make_app(indexes, settings)
    with bound(settings.host, settings.port, next_free=next_free) as listening:

        def tell() -> None:
            port = listening.getsockname()[1]
            if settings.port not in (0, port):
                note(f"the port {settings.port} is in use; this is {port}")
            say_started(indexes, address_of(listening))
            started(address_of(listening))

        at_once_at_the_end(lambda: run(app, listening, started=tell))


def say_started(indexes: "Served", address: str) -> None:
    for each in indexes:
        if not each.index.manifest.complete:
            note(f"{each.name} is unfinished; go on: {command('resume', each.index.path)}")
    contents = [
        f"{each.name}: {counted(len(each.atlas.questions), 'question')}, "
        f"{counted(each.index.counts()['chunks'], 'passage')}"
        for each in indexes
    ]
    for line in (*contents, f"{address}  (Ctrl-C ends it)"):
        output.print(line, markup=False)


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
