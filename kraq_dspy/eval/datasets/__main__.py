"""Lists, fetches and samples data sets: `python -m kraq_dspy.eval.datasets`."""

from pathlib import Path
from typing import Annotated

import typer

from kraq_dspy.errors import KraqError
from kraq_dspy.eval.datasets.local import save_local
from kraq_dspy.eval.datasets.registry import NAMES, fetch_dataset, load_dataset
from kraq_dspy.eval.datasets.sample import sample_to_tokens

app = typer.Typer(add_completion=False, no_args_is_help=True, help=__doc__)


@app.command("list")
def list_names() -> None:
    """The names of the data sets that can be fetched."""
    for name in NAMES:
        typer.echo(name)


@app.command()
def fetch(
    name: str,
    out: Annotated[Path, typer.Option(help="Folder for data sets; the set gets a folder of its own in it.")],
    file: Annotated[list[Path] | None, typer.Option(help="BioASQ's golden files.")] = None,
) -> None:
    """Download a data set from the hub (or take BioASQ's files over)."""
    fetch_dataset(name, out, files=file or [])
    _report(name, out)


@app.command()
def sample(
    name: str,
    folder: Annotated[Path, typer.Option(help="Folder for data sets, as given to fetch.")],
    tokens: Annotated[int, typer.Option(help="cl100k_base tokens of evidence to reach.")],
    out: Annotated[Path, typer.Option(help="Folder for the sample, in the uniform schema.")],
    seed: int = 0,
) -> None:
    """Draw questions until their evidence reaches a number of tokens."""
    drawn = sample_to_tokens(load_dataset(name, folder), tokens, seed=seed)
    save_local(drawn, out)
    typer.echo(f"{out}: {len(drawn.examples)} questions, {len(drawn.documents)} documents")


def _report(name: str, folder: Path) -> None:
    dataset = load_dataset(name, folder)
    typer.echo(f"{folder / name}: {len(dataset.examples)} questions, {len(dataset.documents)} documents")


def main() -> None:
    """Errors that are the user's to mend are one line, not a traceback."""
    try:
        app()
    except KraqError as error:
        typer.echo(f"error: {error}", err=True)
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
