"""Reads what a table compares from one TOML file (see `definitions/`)."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from kraq_dspy._internal.toml_file import read_toml
from kraq_dspy.errors import ConfigError
from kraq_dspy.papers.catalogue import PaperSetup, PaperTable, is_covered, setups

DEFINITIONS = Path(__file__).parent / "definitions"

KINDS = {"questions": "source", "answers": "program", "retrievers": "retriever", "qa_search": "approach"}
"""What a table compares, and the key under which a system says what it is. Of questions: how near they come to
reference questions. Of answers: programs over an index. Of retrievers: what they find at several budgets. Of qa_search:
prepared answers, and a program before or behind them."""

DATASET_NAMES = {
    "hotpotqa": "hotpot_qa", "triviaqa": "trivia_qa", "pubhealth": "pub_health", "openbookqa": "openbook_qa",
}  # fmt: skip
"""The papers' spelling, and the name under which the set can be fetched."""

_REQUIRED = ("title", "kind", "baseline", "systems")
_KNOWN = {
    *_REQUIRED, "datasets", "metrics", "ablations", "budgets", "precompute", "concurrency", "options", "references",
    "faq", "folds", "paper",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class System:
    """`use` names a program, a retriever or a source of questions, by the table's kind; `options` are its settings.

    `options` are those of the program. They may also hold `settings` (sections of kraq.toml for
    this system alone), `roles` (another role's model for a role) and `step_roles` (another role's
    model for a step). `varied` names the system that an ablation made it from, otherwise "".
    `fixed` are options that a data set's settings do not overrule. `datasets` are its data sets;
    empty means all.
    """

    name: str
    use: str
    options: Mapping[str, Any] = field(default_factory=dict)
    varied: str = ""
    fixed: frozenset[str] = frozenset()
    datasets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AsInPaper:
    """The setup of a paper, for `--paper`: its name (`papers/setups.toml`), the `tokens` of
    evidence, the number of questions of a data set, options of systems by what they use, and
    more sections of kraq.toml."""

    setup: str = ""
    tokens: int | None = None
    samples: Mapping[str, int] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def sample(self, dataset: str) -> int | None:
        return next((count for name, count in self.samples.items() if is_covered(dataset, name)), None)


@dataclass(frozen=True, slots=True)
class EvalTable:
    """`datasets` may be any that the schema of `eval.datasets` fits. `budgets` are the retrievers' numbers of passages.

    `precompute` is how many passages of each question get E(d|q) stored, where a system needs that. `concurrency`
    overrules the settings': a table of latencies asks one question at a time. With `folds`, the report has the means
    over so many parts of the questions too. `references` "model" takes a model's
    answer from the gold evidence as the reference, "gold" the data set's. `faq` "gold" prepares the data set's
    own answers, "synthetic" pairs that a model makes of its documents. `papers` are ids of the papers' tables that the
    report shows; empty for all. `of_papers` says that programs find with the papers' retriever if none is named, and
    not with the index's own. `as_paper` is the setup that `--paper` asked for.
    """

    name: str
    title: str
    kind: str
    baseline: str
    systems: tuple[System, ...]
    datasets: tuple[str, ...] = ()
    metrics: tuple[str, ...] = ()
    budgets: tuple[int, ...] = ()
    precompute: int = 100
    concurrency: int | None = None
    options_of: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    references: str = "gold"
    faq: str = "gold"
    folds: int = 0
    paper: AsInPaper = AsInPaper()
    papers: tuple[str, ...] = ()
    of_papers: bool = False
    as_paper: PaperSetup | None = None

    def systems_for(self, dataset: str) -> list[System]:
        """Return those that are asked on the data set, with its own settings of options that they
        have."""
        own = next((some for name, some in self.options_of.items() if is_covered(dataset, name)), {})
        systems = []
        for system in self.systems:
            if not system.datasets or any(is_covered(dataset, name) for name in system.datasets):
                overruled = own.keys() & system.options.keys() - system.fixed
                options = {**system.options, **{name: own[name] for name in overruled}}
                systems.append(replace(system, options=options))
        return systems

    def against(self, baseline: str) -> "EvalTable":
        """The same with another baseline. Raises ConfigError for a name that is no system."""
        names = [system.name for system in self.systems]
        if baseline not in names:
            raise ConfigError(f"The baseline {baseline!r} is no system of the table; there are: {', '.join(names)}.")
        return replace(self, baseline=baseline)

    def for_paper(self, figure: PaperTable) -> "EvalTable":
        """Return what a table of a paper needs: its systems and those they are made of, its data
        sets, what `--paper` sets for it, and its metrics, or all if it has none of ours."""
        names = set(figure.systems)
        for system in self.systems:
            if system.name in figure.systems:
                names.update(system.options[part] for part in ("first", "then") if part in system.options)
        in_figure = tuple(replace(system, datasets=()) for system in self.systems if system.name in names)

        paper = replace(
            self.paper,
            settings=_merged(self.paper.settings, figure.settings),
            options=_merged(self.paper.options, figure.options),
        )
        return replace(
            self, systems=in_figure, baseline=self.baseline if self.baseline in names else in_figure[0].name,
            papers=(figure.id,), datasets=figure.datasets, paper=paper,
            metrics=tuple(metric for metric in self.metrics if metric in figure.metrics) or self.metrics,
        )  # fmt: skip

    def as_in_paper(self) -> "EvalTable":
        """Put in the paper's setup, and the options that it gave its systems."""
        setup = setups().get(self.paper.setup, PaperSetup())
        systems = tuple(
            replace(system, options={**system.options, **self.paper.options.get(system.use, {})})
            for system in self.systems
        )
        as_paper = replace(setup, settings=_merged(setup.settings, self.paper.settings))
        return replace(self, as_paper=as_paper, systems=systems)

    def with_state(self, file: Path) -> "EvalTable":
        """The same with a file of `kraq optimize` in the systems' programs: in all of them, or, as "NAME=FILE", in
        system NAME and what varies it. A source of questions has it in the pipeline that makes them.

        Raises ConfigError if no system is a program, and for a name that is no system.
        """
        if self.kind not in ("answers", "questions"):
            raise ConfigError(
                f"A program's state goes into a table of answers or questions; {self.name!r} is one of {self.kind}."
            )

        chosen, separator, path = str(file).rpartition("=")
        names = [system.name for system in self.systems if not system.varied]
        if separator and chosen not in names:
            raise ConfigError(f"{chosen!r} is no system; there are: {', '.join(names)}.")

        systems = tuple(
            replace(system, options={**system.options, "state": path})
            if chosen in ("", system.name, system.varied)
            else system
            for system in self.systems
        )
        return replace(self, systems=systems)


def read_table(path: Path) -> EvalTable:
    """Raises ConfigError for a file that is absent, not TOML, or asks for what is not known."""
    return replace(
        table_from_dict(path.stem, read_toml(path, "table of systems")),
        of_papers=path.resolve().parent == DEFINITIONS.resolve(),
    )


def table_from_dict(name: str, content: Mapping[str, Any]) -> EvalTable:
    """Raises ConfigError; see `read_table`."""
    where = f"table {name!r}"
    _require_keys(content, where)
    kind = content["kind"]
    systems = _systems_in(content, where)

    aside = ("systems", "ablations", "options", "paper")
    plain = {key: value for key, value in content.items() if key not in aside}
    lists = {key: tuple(value) for key, value in plain.items() if isinstance(value, list)}
    if kind == "retrievers":
        budgets = lists.setdefault("budgets", (5, 10, 15))
        rankings = lists.get("metrics") or ("recall", "all_supporting")
        lists["metrics"] = tuple(f"{metric}@{budget}" for metric in rankings for budget in budgets)

    try:
        paper = AsInPaper(**content.get("paper", {}))
    except TypeError as error:
        raise ConfigError(f"{where}: the section paper holds what it cannot: {error}.") from error
    table = EvalTable(
        name,
        systems=tuple(systems),
        options_of=content.get("options", {}),
        paper=paper,
        **{**plain, **lists},
    )
    return table.against(content["baseline"])


def _require_keys(content: Mapping[str, Any], where: str) -> None:
    """Raises ConfigError for a key that there is not or that lacks, or a value that there is not."""
    unknown = sorted(set(content) - _KNOWN)
    if unknown:
        known = ", ".join(sorted(_KNOWN))
        raise ConfigError(f"{where}: unknown key {unknown[0]!r}; known: {known}.")
    for key in _REQUIRED:
        if key not in content:
            raise ConfigError(f"{where} is missing {key!r}.")

    choices = {
        "kind": tuple(KINDS),
        "references": ("gold", "model"),
        "faq": ("gold", "synthetic"),
    }
    for key, values in choices.items():
        if content.get(key, values[0]) not in values:
            expected = ", ".join(values)
            raise ConfigError(f"{where}: {key} is {content[key]!r}; expected one of {expected}.")


def _systems_in(content: Mapping[str, Any], where: str) -> list[System]:
    """The systems that a table declares, and those of its ablations. Raises ConfigError."""
    kind = KINDS[content["kind"]]
    systems: list[System] = []
    for declared in content["systems"]:
        systems += [_system(entry, kind, where) for entry in _product(declared)]
    for entry in content.get("ablations", ()):
        systems += _ablation(entry, systems, where)

    names = [system.name for system in systems]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError(f"{where}: two systems are named {name!r}.")
    return systems


def _system(entry: Any, use: str, where: str) -> System:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("name"), str) or not isinstance(entry.get(use), str):
        raise ConfigError(f"{where}: a system needs a name and a {use}; found {entry!r}.")
    return System(entry["name"], entry[use], {key: entry[key] for key in entry if key not in ("name", use)})


def _product(entry: Any) -> Iterator[Any]:
    """The systems that an entry with lists stands for: one for each combination, whose name holds the values."""
    fields = entry if isinstance(entry, Mapping) else {}
    lists = {key: value for key, value in fields.items() if isinstance(value, list)}
    for values in itertools.product(*lists.values()):
        chosen = dict(zip(lists, values, strict=True))
        yield {**entry, **chosen, "name": str(entry.get("name", "")).format(**chosen)} if chosen else entry


def _ablation(entry: Mapping[str, Any], systems: Sequence[System], where: str) -> Iterator[System]:
    """The systems that it adds: a value that a system has already is not run twice."""
    for key in ("of", "parameter", "values"):
        if key not in entry:
            raise ConfigError(f"{where}: an ablation is missing {key!r}; found {dict(entry)!r}.")
    base = next((system for system in systems if system.name == entry["of"]), None)
    if base is None:
        raise ConfigError(f"{where}: the ablation of {entry['of']!r} names no system.")

    parameter, others = entry["parameter"], entry.get("with", {})
    about = "".join(f", {key}={value}" for key, value in others.items())
    fixed = frozenset((*others, parameter))
    datasets = tuple(entry.get("datasets", ()))

    for value in entry["values"]:
        if not others and base.options.get(parameter) == value:
            continue  # the system itself
        options = {**base.options, **others, parameter: value}
        name = f"{base.name}{about}, {parameter}={value:g}"
        yield System(name, base.use, options, base.name, fixed, datasets)


def _merged(some: Mapping[str, Mapping[str, Any]], more: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    return {name: {**some.get(name, {}), **more.get(name, {})} for name in (*some, *more)}
