"""Reads and checks the rows of a dev set, and splits them so that nothing is measured on what was learned from."""

import csv
import hashlib
import json
import random
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy._internal.checks import suggestion
from kraq_dspy._internal.files import json_objects
from kraq_dspy.errors import EvaluationError, counted

MIN_ROWS = 4
"""Of the rows to learn from, and of those to measure on: fewer show nothing."""

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ProgramInputs:
    """What a program is called with: `needed` each time, and what it takes `besides`; None for whatever comes.

    >>> ProgramInputs(("question",), besides=("k",)).unknown({"question", "passages"})
    ['passages']
    """

    needed: tuple[str, ...]
    besides: tuple[str, ...] | None = ()

    def missing(self, given: Collection[str]) -> list[str]:
        return [name for name in self.needed if name not in given]

    def unknown(self, given: Collection[str]) -> list[str]:
        if self.besides is None:
            return []
        return sorted(set(given).difference(self.needed, self.besides))


@dataclass(frozen=True, slots=True)
class RowKind:
    """How to make examples of rows.

    Args:
        fields: the fields that a row may have; None for any.
        example: makes an example, and raises EvaluationError, KeyError, TypeError or ValueError for an
            unusable row.
        cells: read those cells of a csv file that are not text, by column.
        inputs: the inputs that the program needs; None to skip this check.

    >>> kind = RowKind({"question", "answers"}, lambda row: dspy.Example(**row).with_inputs("question"))
    >>> kind.example({"question": "Which city?", "answers": ["Oslo"]}).answers
    ['Oslo']
    """

    fields: Collection[str] | None
    example: Callable[[Row], dspy.Example]
    cells: Mapping[str, Callable[[str], Any]] = field(default_factory=dict)
    inputs: ProgramInputs | None = None


@dataclass(frozen=True, slots=True)
class Split:
    """Examples to learn from and examples to measure on. `problems` are what was found and mended; `digest` is a hash
    of the rows."""

    train: tuple[dspy.Example, ...]
    dev: tuple[dspy.Example, ...]
    problems: tuple[str, ...]
    digest: str


Rows = str | Path | Sequence[Row | dspy.Example]
"""A csv file or JSON lines, rows, or examples that say which of their fields are inputs."""


def read_rows(path: Path, cells: Mapping[str, Callable[[str], Any]] | None = None) -> list[Row]:
    """The rows of a csv file, or of JSON lines, gzipped or not, one object each.

    `cells` read the cells of a csv file that are not text; empty cells are left out. Raises EvaluationError naming the
    line.
    """
    rows: list[Row]
    if path.suffix.lower() in (".csv", ".tsv"):
        rows = _csv_rows(path, cells or {})
    else:
        rows = [row for _, row in json_objects(path, EvaluationError, "the dev set")]
    if not rows:
        raise EvaluationError(f"The dev set {str(path)!r} has no rows.")
    return rows


def _csv_rows(path: Path, cells: Mapping[str, Callable[[str], Any]]) -> list[Row]:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    rows: list[Row] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line in csv.DictReader(file, delimiter=delimiter, restkey="", strict=True):
                if "" in line:
                    raise EvaluationError(f"{str(path)!r}, row {len(rows) + 1} has more cells than there are columns.")
                rows.append({name: cells.get(name, str)(cell) for name, cell in line.items() if cell})
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise EvaluationError(f"Cannot read the dev set {str(path)!r}: {error}.") from error
    return rows


def split_rows(rows: Rows, kind: RowKind, *, train: Rows | None = None, seed: int = 0) -> Split:
    """Half of the rows to learn from, the rest to measure on; or all of `rows` to measure on, given `train`.

    Rows with the same inputs count as one: the later ones are dropped, from `train` where it repeats `rows`. Raises
    EvaluationError for rows that cannot be used, or too few of them.
    """
    rows = read_rows(Path(rows), kind.cells) if isinstance(rows, str | Path) else rows
    train = read_rows(Path(train), kind.cells) if isinstance(train, str | Path) else train
    problems: list[str] = []
    earlier: dict[str, str] = {}
    measured = _distinct(rows, kind, "dev", earlier, problems)
    draw = random.Random(seed)
    if train is not None:
        learned = _distinct(train, kind, "train", earlier, problems)
        draw.shuffle(learned)
    else:
        draw.shuffle(measured)
        half = round(len(measured) / 2)
        learned, measured = measured[:half], measured[half:]

    for part, what in ((learned, "to learn from"), (measured, "to measure on")):
        if len(part) < MIN_ROWS:
            raise EvaluationError(
                f"Found {counted(len(part), 'row')} {what} ({len(learned)} and {len(measured)} after the "
                "split); expected "
                f"{MIN_ROWS} or more. Give more rows."
            )

    body = json.dumps([list(rows), list(train or ())], sort_keys=True, ensure_ascii=False, default=str)
    digest = hashlib.blake2b(body.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
    return Split(tuple(learned), tuple(measured), tuple(problems), digest)


def _distinct(
    rows: Sequence[Row | dspy.Example], kind: RowKind, where: str, earlier: dict[str, str], problems: list[str]
) -> list[dspy.Example]:
    """The rows as examples, without those whose inputs were `earlier`, which it adds to."""
    examples = []
    repeats: list[str] = []
    for number, row in enumerate(rows, start=1):
        name = f"{where} row {number} ({row['id']})" if row.get("id") else f"{where} row {number}"
        example = _example(row, kind, name)
        # equal for inputs that differ in case and white space alone
        inputs = json.dumps(example.inputs().toDict(), sort_keys=True, ensure_ascii=False, default=str)
        key = "".join(inputs.lower().replace("\\n", " ").replace("\\t", " ").split())
        if key in earlier:
            repeats.append(f"{name} repeats {earlier[key]}")
        else:
            earlier[key] = name
            examples.append(example)

    if repeats:
        more = f" and {len(repeats) - 1} more" if len(repeats) > 1 else ""
        problems.append(
            f"{len(repeats)} {where} row(s) have the inputs of an earlier row and were left out: {repeats[0]}{more}."
        )
    return examples


def _example(row: Row | dspy.Example, kind: RowKind, name: str) -> dspy.Example:
    """The row as an example; one that says which of its fields are inputs is used as it is, if the program takes
    these."""
    if isinstance(row, dspy.Example):
        if row._input_keys:
            return row if kind.inputs is None else _with_inputs_of(kind.inputs, row, name)
        row = row.toDict()

    for known in row:
        if kind.fields is not None and known not in kind.fields:
            raise EvaluationError(f"{name} has the unknown field {known!r}; {suggestion(known, sorted(kind.fields))}")
    try:
        return kind.example(row)
    except EvaluationError as error:
        raise EvaluationError(f"{name}: {error}") from error
    except KeyError as error:
        raise EvaluationError(f"{name}: the field {error} is missing; it has {', '.join(row)}.") from error
    except (TypeError, ValueError, AttributeError) as error:
        raise EvaluationError(f"{name}: {type(error).__name__}: {error}") from error


def _with_inputs_of(inputs: ProgramInputs, example: dspy.Example, name: str) -> dspy.Example:
    """The example with what the program needs among its inputs. Raises EvaluationError if it has not all of that, or
    gives what the program does not take."""
    given = set(example._input_keys)
    unknown = inputs.unknown(given)
    if unknown:
        takes = ", ".join(map(repr, (*inputs.needed, *(inputs.besides or ())))) or "no inputs"
        fitting = ", ".join(f'"{each}"' for each in sorted(given.difference(unknown)) or inputs.needed)
        raise EvaluationError(
            f"{name} names {', '.join(map(repr, unknown))} as an input, which the program does not take: it takes "
            f"{takes}. Write example.with_inputs({fitting})."
        )

    missing = inputs.missing(given)
    lacking = [each for each in missing if each not in example]
    if lacking:
        raise EvaluationError(
            f"{name} has no {', '.join(map(repr, lacking))}, which the program needs; it has "
            f"{', '.join(example.keys())}."
        )
    return example.with_inputs(*given, *missing) if missing else example
