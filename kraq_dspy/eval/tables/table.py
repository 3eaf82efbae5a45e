"""Reads what a table compares from one TOML file (see `definitions/`)."""

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kraq_dspy.errors import ConfigError

KINDS = ("questions", "answers", "retrievers")
"""Of questions: how near they come to reference questions. Of answers: programs over an index. Of retrievers: what they
find at several budgets."""

DATASET_NAMES = {"hotpotqa": "hotpot_qa", "triviaqa": "trivia_qa", "pubhealth": "pub_health"}
"""The papers' spelling, and the name under which the set can be fetched."""


@dataclass(frozen=True, slots=True)
class System:
    """`use` names a program, a retriever or a source of questions, by the table's kind; `options` are its settings.

    `varied` is the option that an ablation varies; "" for a system of its own.
    """

    name: str
    use: str
    options: Mapping[str, Any] = field(default_factory=dict)
    varied: str = ""


@dataclass(frozen=True, slots=True)
class Ablation:
    """One setting of one system, varied. `points` are (value, name of the system that has it), in order."""

    parameter: str
    of: str
    points: tuple[tuple[float, str], ...]
    datasets: tuple[str, ...] = ()

    def covers(self, dataset: str) -> bool:
        """Whether it is run on a data set; "hotpotqa" covers "hotpotqa-mini" too."""
        return not self.datasets or any(_plain(dataset).startswith(_plain(name)) for name in self.datasets)


@dataclass(frozen=True, slots=True)
class Table:
    """`datasets` may be any that the schema of `eval.datasets` fits. `budgets` are the retrievers' numbers of passages.

    `precompute` is how many passages of each question get E(d|q) stored, where a system needs that. `concurrency`
    overrules the settings': a table of latencies asks one question at a time.
    """

    name: str
    title: str
    kind: str
    datasets: tuple[str, ...]
    baseline: str
    metrics: tuple[str, ...]
    systems: tuple[System, ...]
    ablations: tuple[Ablation, ...] = ()
    budgets: tuple[int, ...] = ()
    precompute: int = 100
    concurrency: int | None = None
    options_of: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def systems_for(self, dataset: str) -> list[System]:
        """Systems with the data set's own settings, and those of the ablations that cover it."""
        covered = {name for ablation in self.ablations if ablation.covers(dataset) for _, name in ablation.points}
        own = next((some for name, some in self.options_of.items() if _plain(dataset).startswith(_plain(name))), {})
        return [
            replace(system, options={**system.options, **_applicable(system, own)})
            for system in self.systems
            if not system.varied or system.name in covered
        ]

    def against(self, baseline: str) -> "Table":
        """The same with another baseline. Raises ConfigError for a name that is no system."""
        names = [system.name for system in self.systems]
        if baseline not in names:
            raise ConfigError(f"The baseline {baseline!r} is no system of the table; there are: {', '.join(names)}.")
        return replace(self, baseline=baseline)

    def with_state(self, file: Path) -> "Table":
        """The same with a file of `kraq optimize` in the systems' programs: in all of them, or, as "NAME=FILE", in
        system NAME and what varies it.

        Raises ConfigError where no system is a program, or for a system that has a state already.
        """
        if self.kind != "answers":
            raise ConfigError(f"A program's state goes into a table of answers; {self.name!r} is one of {self.kind}.")
        system, separator, path = str(file).partition("=")
        named = [system.name for system in self.systems if not system.varied]
        if not separator or system not in named:
            if separator and not file.exists():
                raise ConfigError(f"{str(file)!r} is no file, and {system!r} no system; there are: {', '.join(named)}.")
            return replace(self, systems=tuple(_stated(system, str(file)) for system in self.systems))
        of = {system} | {name for each in self.ablations if each.of == system for _, name in each.points}
        return replace(self, systems=tuple(_stated(each, path) if each.name in of else each for each in self.systems))

    @property
    def needs_random_questions(self) -> bool:
        return any("random" in (system.use, system.options.get("questions")) for system in self.systems)


def read_table(path: Path) -> Table:
    """Raises ConfigError for a file that is absent, not TOML, or asks for what is not known."""
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ConfigError(f"Cannot read the table {str(path)!r}: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{str(path)!r} is not valid TOML: {error}") from error
    return table_from_dict(path.stem, content)


def table_from_dict(name: str, content: Mapping[str, Any]) -> Table:
    """Raises ConfigError; see `read_table`."""
    where = f"table {name!r}"
    known = {
        "title", "kind", "datasets", "baseline", "metrics", "systems", "ablations", "budgets", "precompute",
        "concurrency", "options",
    }  # fmt: skip
    if unknown := sorted(set(content) - known):
        raise ConfigError(f"{where}: unknown key {unknown[0]!r}; known: {', '.join(sorted(known))}.")
    for key in ("title", "kind", "baseline", "systems"):
        if key not in content:
            raise ConfigError(f"{where} lacks {key!r}.")
    kind = content["kind"]
    if kind not in KINDS:
        raise ConfigError(f"{where}: kind is {kind!r}; expected one of {', '.join(KINDS)}.")
    use = {"questions": "source", "answers": "program", "retrievers": "retriever"}[kind]
    systems = [_system(entry, use, where) for entry in content["systems"]]
    ablations = []
    for entry in content.get("ablations", ()):
        ablation, more = _ablation(entry, systems, where)
        ablations.append(ablation)
        systems += more
    names = [system.name for system in systems]
    if twice := next((each for each in names if names.count(each) > 1), None):
        raise ConfigError(f"{where}: two systems are named {twice!r}.")
    budgets = tuple(content.get("budgets", (5, 10, 15) if kind == "retrievers" else ()))
    metrics = tuple(content.get("metrics", ()))
    if kind == "retrievers":
        metrics = tuple(
            f"{metric}@{budget}" for metric in metrics or ("recall", "all_supporting") for budget in budgets
        )
    table = Table(
        name=name,
        title=content["title"],
        kind=kind,
        datasets=tuple(content.get("datasets", ())),
        baseline=content["baseline"],
        metrics=metrics,
        systems=tuple(systems),
        ablations=tuple(ablations),
        budgets=budgets,
        precompute=content.get("precompute", 100),
        concurrency=content.get("concurrency"),
        options_of=content.get("options", {}),
    )
    return table.against(table.baseline)


def _system(entry: Mapping[str, Any], use: str, where: str) -> System:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str) or not isinstance(entry.get(use), str):
        raise ConfigError(f"{where}: a system needs a name and a {use}; found {dict(entry)!r}.")
    return System(entry["name"], entry[use], {key: entry[key] for key in entry if key not in ("name", use)})


def _ablation(entry: Mapping[str, Any], systems: Sequence[System], where: str) -> tuple[Ablation, list[System]]:
    """The ablation, and the systems that it adds: a value that a system has already is not run twice."""
    if missing := [key for key in ("of", "parameter", "values") if key not in entry]:
        raise ConfigError(f"{where}: an ablation lacks {missing[0]!r}; found {dict(entry)!r}.")
    base = next((system for system in systems if system.name == entry["of"]), None)
    if base is None:
        raise ConfigError(f"{where}: the ablation of {entry['of']!r} names no system.")
    parameter = entry["parameter"]
    points: list[tuple[float, str]] = []
    more: list[System] = []
    for value in entry["values"]:
        if base.options.get(parameter) == value:
            points.append((value, base.name))
            continue
        system = System(f"{base.name}, {parameter}={value:g}", base.use, {**base.options, parameter: value}, parameter)
        more.append(system)
        points.append((value, system.name))
    return Ablation(parameter, base.name, tuple(points), tuple(entry.get("datasets", ()))), more


def _stated(system: System, file: str) -> System:
    if "state" in system.options:
        raise ConfigError(f"The system {system.name!r} has the state {system.options['state']!r}; it takes one.")
    return replace(system, options={**system.options, "state": file})


def _applicable(system: System, own: Mapping[str, Any]) -> dict[str, Any]:
    """The data set's settings that the system has, but for the one that an ablation varies in it."""
    return {key: value for key, value in own.items() if key in system.options and key != system.varied}


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
