"""Reads the catalogue of the papers' tables: what each shows, needs and printed, and which table of ours stands for it.

A table of a paper is a grid of cells. A row and a column each fix some coordinates (data set, system, metric,
statistic), and together name one figure of a run.
"""

import dataclasses
import functools
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy._internal.dspy_internals import thawed
from kraq_dspy.errors import ConfigError, counted, did_you_mean
from kraq_dspy.state import base_signature

FOLDER = Path(__file__).with_name("printed")
PAPERS = ("kraq", "thesis", "qa_rag", "k2rag", "qa_search")


@dataclass(frozen=True, slots=True)
class TablePart:
    """A row or a column: the coordinates that it fixes, "" if it leaves one open.

    `suffix` ends the system's name where the other part begins it. Several `systems` stand for the mean of theirs.
    `statistic` is "mean", "q1" or "q3"; `against` names the system from which a share is saved, in percent.
    """

    label: str
    dataset: str = ""
    systems: tuple[str, ...] = ()
    suffix: str = ""
    metric: str = ""
    statistic: str = ""
    against: str = ""
    percent: bool = False

    def with_other(self, other: "TablePart") -> "TablePart":
        """Both parts' coordinates; those of `other` where this one leaves them open."""
        systems, suffix = self.systems or other.systems, self.suffix or other.suffix
        return TablePart(
            self.label,
            self.dataset or other.dataset,
            tuple(f"{system}{suffix}" for system in systems),
            "",
            self.metric or other.metric,
            self.statistic or other.statistic or "mean",
            self.against or other.against,
            self.percent or other.percent,
        )


@dataclass(frozen=True, slots=True)
class PaperTable:
    """`definition` names the table of ours that is run for it; "" if another `command` makes the report.

    `theirs` are the printed figures, row by row, and `datasets` the paper's data sets, in its
    order. `settings` and `options` are what `--paper` adds to the table's definition.
    """

    id: str
    paper: str
    number: str
    shows: str
    needs: str
    command: str
    datasets: tuple[str, ...]
    rows: tuple[TablePart, ...]
    columns: tuple[TablePart, ...]
    definition: str = ""
    theirs: tuple[tuple[float | None, ...], ...] = ()
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def cells(self) -> list[list[TablePart]]:
        return [[row.with_other(column) for column in self.columns] for row in self.rows]

    @property
    def systems(self) -> frozenset[str]:
        cells = [cell for row in self.cells for cell in row]
        return frozenset(name for cell in cells for name in (*cell.systems, cell.against) if name)

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(cell.metric for row in self.cells for cell in row))


@dataclass(frozen=True, slots=True)
class PaperSetup:
    """The setup of a paper's experiments (`setups.toml`).

    `models` are the paper's by role, `settings` sections of kraq.toml, `prompts` instructions by signature. `otherwise`
    is what is done in another way here whatever is set.
    """

    models: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    prompts: Mapping[str, str] = field(default_factory=dict)
    otherwise: tuple[str, ...] = ()

    def give_prompts(self, program: dspy.Module) -> None:
        """The program's predictors get the paper's instructions, if it has some for their signature."""
        with thawed(program):
            for predictor in program.predictors():
                if text := self.prompts.get(base_signature(predictor)[0]):
                    predictor.signature = predictor.signature.with_instructions(text)

    def described(self, models: Mapping[str, str]) -> dict[str, str]:
        """Return what a run with these models has of the paper, what stands in for what it has not,
        and what is otherwise."""
        settings = []
        for section, values in self.settings.items():
            named_values = ", ".join(f"{name} = {value}" for name, value in values.items())
            settings.append(f"[{section}] {named_values}")

        roles_of_pair: dict[str, list[str]] = {}
        for role, theirs in self.models.items():
            if role in models and theirs.partition(",")[0].lower() not in models[role].lower():
                roles_of_pair.setdefault(f"{models[role] or 'none'} for {theirs}", []).append(role)

        instead = [f"{pair} ({', '.join(roles)})" for pair, roles in roles_of_pair.items()]
        return {
            "as in the paper": "; ".join((*settings, f"instructions of {', '.join(self.prompts)}")),
            "in place of the paper's": "; ".join(instead),
            "otherwise than the paper": "; ".join(self.otherwise),
        }


@functools.cache
def setups() -> Mapping[str, PaperSetup]:
    """The papers' settings by the name of the paper."""
    content = tomllib.loads((FOLDER / "setups.toml").read_text("utf-8"))
    return {name: PaperSetup(**{**entry, "otherwise": tuple(entry["otherwise"])}) for name, entry in content.items()}


@functools.cache
def papers_tables() -> Mapping[str, PaperTable]:
    """The tables by id, paper by paper. Raises ConfigError for a declaration that does not hold
    together."""
    tables: dict[str, PaperTable] = {}
    for name in PAPERS:
        content = tomllib.loads((FOLDER / f"{name}.toml").read_text("utf-8"))
        for entry in content["tables"]:
            table = _table(content["paper"], entry, content.get("parts", {}), tables)
            if table.id in tables:
                raise ConfigError(f"Two tables of the papers are called {table.id!r}.")
            tables[table.id] = table
    return tables


def paper_table(table_id: str) -> PaperTable:
    """Raises ConfigError for an id that there is not."""
    tables = papers_tables()
    if table_id not in tables:
        raise ConfigError(
            f"There is no table {table_id!r} of the papers{did_you_mean(table_id, list(tables))}; all of them: kraq "
            "bench list"
        )
    return tables[table_id]


def is_covered(dataset: str, name: str) -> bool:
    """Whether what is said of the data set `name` holds for `dataset`: "hotpotqa" covers "hotpotqa-mini" too."""
    plain, known = (re.sub(r"[^a-z0-9]", "", each.lower()) for each in (dataset, name))
    return plain.startswith(known)


def _table(
    paper: str, entry: Mapping[str, Any], parts: Mapping[str, Any], known: Mapping[str, PaperTable]
) -> PaperTable:
    fields = {name: value for name, value in entry.items() if name not in ("same_as", "rows", "columns", "percent")}
    fields |= {"paper": paper, "datasets": tuple(entry.get("datasets", ()))}
    if "theirs" in entry:
        fields["theirs"] = tuple(tuple(row) for row in entry["theirs"])
    if "same_as" in entry:
        same = known[entry["same_as"]]
        command = f"kraq bench {entry['id']}" if same.definition else same.command
        return dataclasses.replace(same, **fields | {"command": command, "datasets": same.datasets})

    rows = _parts(entry.get("rows", ()), parts)
    columns = _parts(entry.get("columns", ()), parts)
    if of_rows := tuple(dict.fromkeys(row.dataset for row in rows if row.dataset)):
        fields["datasets"] = of_rows
    if entry.get("percent"):
        columns = tuple(dataclasses.replace(column, percent=True) for column in columns)
    table = PaperTable(**{"command": f"kraq bench {entry['id']}", **fields}, rows=rows, columns=columns)
    if table.theirs and [len(row) for row in table.theirs] != [len(columns)] * len(rows):
        raise ConfigError(
            f"{table.id}: the printed figures are no grid of {counted(len(rows), 'row')} and "
            f"{counted(len(columns), 'column')}."
        )
    return table


def _parts(declared: Any, parts: Mapping[str, Any]) -> tuple[TablePart, ...]:
    """Make the parts from a list of parts, from the name of one that tables share, or one for each
    data set and each of `with`."""
    if isinstance(declared, str):
        declared = parts[declared]
    if isinstance(declared, Mapping):
        inner: Sequence[Mapping[str, Any]] = declared.get("with", [{"label": ""}])
        declared = [
            {**entry, "label": f"{name} {entry['label']}".strip(), "dataset": name}
            for name in declared["datasets"]
            for entry in inner
        ]
    return tuple(_part(each) for each in declared)


def _part(entry: Mapping[str, Any]) -> TablePart:
    systems = entry.get("system", ())
    fields = {name: value for name, value in entry.items() if name != "system"}
    return TablePart(systems=(systems,) if isinstance(systems, str) else tuple(systems), **fields)
