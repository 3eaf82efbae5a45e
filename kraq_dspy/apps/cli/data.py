"""Lists and fetches the public data sets that tables are run on: `kraq data`."""

from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.apps.cli.options import Json
from kraq_dspy.apps.cli.terminal import counted, print_json, say


def list_(
    data: Annotated[Path, typer.Option(metavar="DIR", help="Folder in which fetched sets lie.")] = Path("data"),
    json: Json = False,
) -> None:
    """Name the data sets that can be fetched, and those that are in the folder."""
    from kraq_dspy.eval.datasets import NAMES
    from kraq_dspy.eval.datasets.local import is_dataset

    here = (
        sorted(path.name for path in data.iterdir() if is_dataset(path) or path.name in NAMES) if data.is_dir() else []
    )
    if json:
        print_json({"can_be_fetched": list(NAMES), "here": here})
        return
    for name in sorted({*NAMES, *here}):
        say(f"{name:16}", f" in {data}" if name in here else "")


def fetch(
    name: Annotated[str, typer.Argument(metavar="NAME", help="One of `kraq data list`.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for data sets; this one gets a folder in it.")
    ] = Path("data"),
    file: Annotated[list[Path] | None, typer.Option(help="BioASQ's golden files; may be repeated.")] = None,
) -> None:
    """Download a data set from the hub, or take BioASQ's files over. What is there already is kept."""
    from kraq_dspy.eval.datasets import fetch_dataset, load_dataset

    fetch_dataset(name, out, files=file or [])
    dataset = load_dataset(name, out)
    say(f"{out / name}: {counted(len(dataset.examples), 'question')}, {counted(len(dataset.documents), 'document')}")
