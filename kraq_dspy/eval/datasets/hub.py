"""Fetches tables from the hub once, and reads them from disk afterwards, without a network (package `datasets`).

On disk: `FOLDER/NAME/TABLE/`, as `datasets.Dataset.save_to_disk` writes it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy._internal.files import replaced
from kraq_dspy.errors import EvaluationError, needs

RawRow = Mapping[str, Any]

PARQUET_BRANCH = "refs%2Fconvert%2Fparquet"


@dataclass(frozen=True, slots=True)
class HubTable:
    """One table of a repository on the hub.

    Repositories whose data come from a Python script (`script=True`) can no longer be loaded as they are; the hub keeps
    a parquet copy of them on a branch of its own. There `config` "*" means all.
    """

    name: str
    repository: str
    config: str = "default"
    split: str = "train"
    script: bool = False


def fetch_tables(name: str, tables: Iterable[HubTable], folder: Path) -> None:
    """Downloads the tables into `folder / name`; what is there already is kept.

    Raises EvaluationError when the hub cannot be reached or does not have them.
    """
    with needs("datasets", "eval", "Loading public data sets"):
        import datasets
    for table in tables:
        target = folder / name / table.name
        if target.is_dir():
            continue

        try:
            if table.script:
                files = f"hf://datasets/{table.repository}@{PARQUET_BRANCH}/{table.config}/{table.split}/*.parquet"
                loaded = datasets.load_dataset("parquet", data_files={table.split: files}, split=table.split)
            else:
                config = None if table.config == "default" else table.config
                loaded = datasets.load_dataset(table.repository, config, split=table.split)
        except (OSError, ValueError) as error:  # the hub's errors descend from these
            raise EvaluationError(
                f"{table.repository!r} ({table.config}, {table.split}) could not be fetched from the hub: {error}. On "
                "a machine without a network, fetch it elsewhere and copy the folder."
            ) from error

        target.parent.mkdir(parents=True, exist_ok=True)
        with replaced(target) as draft:
            loaded.save_to_disk(str(draft))


def read_tables(name: str, tables: Iterable[HubTable], folder: Path) -> dict[str, Iterable[RawRow]]:
    """The rows of each table by its name. Raises EvaluationError with the command that gets them when one is absent."""
    paths = {table.name: folder / name / table.name for table in tables}
    if absent := next((table for table, path in paths.items() if not path.is_dir()), None):
        raise EvaluationError(
            f"The data set {name!r} is not in {str(folder)!r}: {absent!r} is missing. Name the folder that holds it "
            f"(--data DIR), or get it with: kraq bench fetch {name} --out {folder}"
        )
    with needs("datasets", "eval", "Loading public data sets"):
        import datasets
    return {table: datasets.load_from_disk(str(path)) for table, path in paths.items()}


def as_rows(value: Any) -> Iterator[dict[str, Any]]:
    """A nested table as rows: `datasets` gives a list of dicts or a dict of lists, depending on how it was stored."""
    if isinstance(value, Mapping):
        for cells in zip(*value.values(), strict=True):
            yield dict(zip(value, cells, strict=True))
    else:
        yield from map(dict, value or ())
