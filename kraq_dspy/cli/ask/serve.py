"""Serves indexes over HTTP, as a page, a JSON API and an OpenAI-compatible one: `kraq serve`."""

from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.cli.ask.serving import (
    PORT,
    one_thread_a_question,
    opened_all,
    require_server,
    run_server,
    serve_with_workers,
)
from kraq_dspy.cli.shared.logs import tell_what_is_cut_off
from kraq_dspy.cli.shared.options import Limits, Models


def serve(
    index_dirs: Annotated[list[Path], typer.Argument(metavar="DIR ...", help="Index folders, made by `kraq index`.")],
    models: Models,
    limits: Limits,
    host: Annotated[
        str,
        typer.Option("--host", metavar="ADDRESS", help="Address to listen on; any but this machine's needs a token."),
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", help="Port to listen on; 0 takes a free one.")] = PORT,
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            metavar="TEXT",
            envvar="KRAQ_TOKEN",
            show_envvar=False,
            help="What requests must bear (Authorization: Bearer TEXT). Better in the variable KRAQ_TOKEN.",
        ),
    ] = None,
    edit: Annotated[bool, typer.Option("--edit", help="Let the catalogue be reviewed.")] = False,
    at_once: Annotated[int, typer.Option("--at-once", min=1, help="Questions answered at the same time.")] = 8,
    waiting: Annotated[
        int, typer.Option("--waiting", min=0, help="Questions that may wait; the next one is refused (503).")
    ] = 64,
    workers: Annotated[
        int, typer.Option("--workers", min=1, help="Processes that answer; the bounds are those of all together.")
    ] = 1,
    rate: Annotated[
        float,
        typer.Option("--rate", min=0, help="Requests of one client a second; more are refused (429). 0: no bound."),
    ] = 20.0,
    max_body: Annotated[int, typer.Option("--max-body", min=1, metavar="KB", help="Largest request.")] = 1024,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A name by which it may be called; repeatable."),
    ] = None,
    allow_origin: Annotated[
        list[str] | None,
        typer.Option("--allow-origin", metavar="ORIGIN", help="A web page's origin that may call it; repeatable."),
    ] = None,
) -> None:
    """Serve one or more indexes: a page to explore, a JSON API, and OpenAI's chat completions with programs as models.

    /page/api.html lists the addresses; /health, /ready and /metrics are for machines.
    """
    require_server("kraq serve")
    one_thread_a_question()
    from kraq_dspy.serve.settings import ServeSettings

    settings = ServeSettings(
        host=host, port=port, token=token or None, edit=edit, body_bytes=max_body * 1024, rate=rate, at_once=at_once,
        waiting=waiting, hosts=tuple(allow_host or ()), origins=tuple(allow_origin or ()), workers=workers,
    )  # fmt: skip
    if workers > 1:
        serve_with_workers(index_dirs, models, limits, settings)
        return
    tell_what_is_cut_off()
    with opened_all(index_dirs, models, limits, edit=edit) as indexes:
        run_server(indexes, settings)
