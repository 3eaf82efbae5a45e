"""Reads a file of labels: a table that says for paths, folders or ids of documents who may read them."""

import csv
from pathlib import Path, PurePosixPath

from kraq_dspy.asset.scope import labels_of
from kraq_dspy.errors import ConfigError, CorpusError
from kraq_dspy.records import Document

_KEYS = ("path", "id")


class LabelsFile:
    """The labels of a csv with the columns `path` or `id`, and `labels`; called with a document, it gives its labels.

    A document is found by its id, its file's path in the corpus, or the nearest folder above; one that is not found
    keeps the labels that it has. Raises ConfigError for a file that cannot be read or is no such table.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.resolve()
        self._labels: dict[str, tuple[str, ...]] = {}
        try:
            rows = list(csv.DictReader(path.read_text("utf-8-sig").splitlines(), strict=True, skipinitialspace=True))
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise ConfigError(f"The file of labels {str(path)!r} cannot be read: {error}.") from error

        if not rows:
            raise ConfigError(f"The file of labels {str(path)!r} has no rows.")
        for number, row in enumerate(rows, 1):
            key = next((row[name] for name in _KEYS if row.get(name)), "").strip().removeprefix("./").rstrip("/")
            if not key or row.get("labels") is None or None in row or key in self._labels:
                raise ConfigError(
                    f"Row {number} of the file of labels {str(path)!r} is {list(row.values())!r:.120}. Write a csv "
                    'with the columns path (or id) and labels, each path once, such as: reports/2024.md,"board, legal".'
                )
            try:
                self._labels[key] = labels_of(row["labels"])
            except CorpusError as error:
                raise ConfigError(f"Row {number} of the file of labels {str(path)!r}: {error}") from None

    def __call__(self, document: Document) -> tuple[str, ...]:
        folders = (str(folder) for folder in PurePosixPath(document.source).parents)
        keys = (document.id, document.source, *folders)
        return next((self._labels[key] for key in keys if key in self._labels), document.labels)
