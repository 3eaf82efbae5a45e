"""Asks programs and retrievers about questions of your own, and says how good they are, with intervals."""

import io
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from html import escape
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy._internal.concurrency import as_done
from kraq_dspy.errors import ConfigError, EvaluationError, counted
from kraq_dspy.eval import questions
from kraq_dspy.eval.asked import Asking, hidden_documents
from kraq_dspy.eval.columns import FOUND, QuestionColumns
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.datasets.dataset import checksum_of
from kraq_dspy.eval.evidence import with_known_documents
from kraq_dspy.eval.halves import Decision, about_made, as_human, require_halves
from kraq_dspy.eval.judges import ANSWER_RELEVANCY, JUDGED, SPLITS_STATEMENTS
from kraq_dspy.eval.metrics.for_dspy import METRICS, RANKINGS, Metric, own_metric
from kraq_dspy.eval.questions import QuestionSource
from kraq_dspy.eval.recorded import has_document_ids, has_passages
from kraq_dspy.eval.refused import is_answerable
from kraq_dspy.eval.reports.frame import rows_as_frame
from kraq_dspy.eval.reports.page import write_report
from kraq_dspy.eval.reports.summary import RunSummary, TableSummary, failed_rows, summarise_run
from kraq_dspy.eval.reports.terminal import print_run
from kraq_dspy.eval.rows import ResultRow, RowWriter, RunHeader, write_rows
from kraq_dspy.eval.scoring import OF_RETRIEVAL, SIMILARITY, RowScorer, is_of_answers, require_metric
from kraq_dspy.eval.system import Asked, AskedSystem, system_of
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.lms.meter import prices_of
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.records import REJECTED, STALE, Chunk, Document, Entity, Question, Relationship, Summary, content_id
from kraq_dspy.settings import EMBEDDED, EncoderSettings
from kraq_dspy.workspace import Workspace

RETRIEVED = 10
"""Passages that a retriever is asked for, where retrieval is measured."""


@dataclass(frozen=True)
class Evaluation:
    """The result of `evaluate`. `print` shows a table. `summary` has the means with intervals, and the rows.

    >>> asked = [{"question": "Where did Ada live?", "answer": "London"}]
    >>> result = evaluate("ada.kraq", asked, ["answer_found"])
    >>> result.mean("answer_found"), result.failed()
    (1.0, [])

    `folder` has the rows on disk, if you gave `out`. `left_out` counts the questions on which an adapter was trained.
    `notes` are remarks that a reader needs.
    """

    summary: RunSummary
    folder: Path | None = None
    left_out: int = 0
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> tuple[ResultRow, ...]:
        """A row for each question of each system."""
        return self.summary.rows

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def mean(self, metric: str, system: str | None = None) -> float:
        """Return the mean of a metric for a system, by default the first. Raises EvaluationError
        if it has none."""
        named = {each.name: each for each in self.summary.systems}
        chosen = named.get(system) if system is not None else next(iter(named.values()), None)
        cell = None if chosen is None else chosen.cells.get(metric)
        if cell is None or cell.interval is None:
            raise EvaluationError(f"There is no score of {metric!r} for {system or 'the first system'!r}.")
        return cell.interval.estimate

    def decisions(self, metric: str | None = None) -> tuple[Decision, ...]:
        """What two halves of a test set, and human questions, decide of each pair of systems by a metric, the first
        by default. Empty without two halves."""
        return tuple(self.summary.decisions.get(metric or next(iter(self.summary.metrics), ""), ()))

    def failed(self, metric: str | None = None, *, below: float = 1.0) -> list[ResultRow]:
        """The rows without an answer, or whose `metric` (the first one by default) is `below`, the worst first."""
        return failed_rows(self.rows, metric or next(iter(self.summary.metrics), ""), below)

    def write_report(self, folder: str | Path) -> list[Path]:
        """Write `report.html` into the folder: figures, differences, and a row for each question.

        The page is one file that loads nothing; its tables can be sorted and its questions filtered.
        """
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        return write_report(self._as_table, place)

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with a row for each question of each system.

        Its columns are question_id, system, question, gold, type, answer, failure, a column for
        each metric, `evidence` (the beginnings of the passages), `hit_ids` and `seconds`. Calls to
        a model add their tokens. If the file says which questions have no answer, there are also
        `answerable`, `refused` and `answerable_score`. Raises MissingExtraError without pandas.
        """
        return rows_as_frame(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """The figures as JSON values, without the rows."""
        return self._as_table.to_dict()

    @property
    def _as_table(self) -> TableSummary:
        return TableSummary(self.summary.table["title"], self.summary.table["kind"], (self.summary,))

    def __str__(self) -> str:
        from rich.console import Console

        console = Console(file=io.StringIO(), width=100, highlight=False)
        print_run(self.summary, console, brief=True)
        text = console.file.getvalue()  # type: ignore[attr-defined]
        return "\n".join([str(text).rstrip(), *self.notes])

    def __repr__(self) -> str:
        means = []
        for system in self.summary.systems[:1]:
            for metric, cell in system.cells.items():
                if cell.interval:
                    means.append(f"{metric} {cell.interval.estimate:.3f}")
        return f"Evaluation({counted(len(self.rows), 'row')}; {', '.join(means)})"


def evaluate(
    systems: Asked | Mapping[str, Any],
    devset: QuestionSource,
    metrics: Sequence[str | Metric | Callable[..., Any]] | Mapping[str, Callable[..., Any]] | None = None,
    *,
    human: QuestionSource | None = None,
    space: Workspace | None = None,
    columns: QuestionColumns = FOUND,
    encoding: str = "",
    k: int = RETRIEVED,
    judge: dspy.LM | None = None,
    out: str | Path | None = None,
    concurrency: int = 8,
    seed: int = 0,
    title: str = "",
    progress: Progress | None = None,
) -> Evaluation:
    """Ask each system every question and score it.

    Args:
        systems: an index (its folder or a `Workspace`), a program, a retriever, or a function. A function that
            returns a text, or something with `answer`, is a program; one that returns passages is a retriever. A
            dictionary names several systems; the first one is the baseline. None scores the answers in the rows
            (`eval.recorded` names the columns).
        devset: the questions: a csv, jsonl or parquet file, a DataFrame, dictionaries or `dspy.Example`s
            (`read_questions`).
        metrics: names (`named_metric`), Metrics or functions, or a dictionary of functions by name. "judge",
            "groundedness" and others call the model of the role "judge". Without metrics, kraq takes those for which
            the questions have gold data.
        human: three human questions or more. They decide together with the two halves of a test set
            (`kraq_dspy.eval.halves`).
        space: the index of your own program. If the program names no model, the models of this index answer.
        columns: names of columns that kraq does not find by itself.
        encoding: the encoding of a file that is not UTF-8.
        k: the number of passages that a retriever returns.
        judge: a model in place of that of the role "judge".
        out: the folder for the rows. The same call resumes an interrupted one.
        concurrency: questions at once for a system that calls language models; other systems get one at a time.
        seed: the random seed of the intervals.
        title: the title of the report; by default the name of the file of questions.
        progress: is called as the evaluation advances.

    kraq leaves out questions on which a LoRA adapter of the index's models was trained, and counts these questions.

    Some questions of a test set hide documents (`hidden_documents`). kraq asks these questions of a view of the index
    without all hidden documents. If some questions are unanswerable (`answerable` false, or the type "unanswerable"),
    the result has each system's rate of refusals and its rate of false answers.

    Returns:
        The rows, with a mean and its 95 % interval for each metric and system.

    Raises:
        ConfigError: before the first question, for an unknown metric, or a metric without a model to judge.
        MissingExtraError: before the first question, for a package that a metric lacks.
        EvaluationError: before the first question, for questions that cannot be read.

    >>> evaluate("docs.kraq", "questions.csv", ["token_f1", "recall@5"])  # doctest: +SKIP
    Evaluation(40 rows; token_f1 0.512, recall@5 0.881)
    """
    if not title:
        title = Path(devset).name.partition(".")[0] if isinstance(devset, str | Path) else "questions"
    if isinstance(metrics, str):
        metrics = [metrics]
    if isinstance(metrics, Mapping):
        metrics = [own_metric(function, name=name) for name, function in metrics.items()]
    read_examples = questions.read_questions(devset, columns, encoding=encoding)
    if human is not None:
        as_rows = as_human(questions.read_questions(human, columns, encoding=encoding))
        require_halves(read_examples)
        read_examples += as_rows
    every_example, withdrawn_note = _without_withdrawn(read_examples)

    with ExitStack() as stack:
        opened, space = _opened(systems, space, every_example, stack)
        examples = _not_learned_from(every_example, space)
        left_out = len(every_example) - len(examples)
        if not examples:
            raise EvaluationError(f"{questions.learned_note(left_out)} None remains.")
        if any(system.is_foreign for system in opened):
            examples = [example for example in examples if not hidden_documents(example)]
        examples, unknown = _with_known_documents(examples, space, metrics)
        if metrics is None:
            metrics = default_metrics(opened, examples, k)
        scorer = _scorer(opened, metrics, space, judge)

        notes = [questions.learned_note(left_out)] if left_out else []
        unread = questions.unread_note(examples)
        needs_answers = any(name in METRICS and "answers" in METRICS[name].needs for name in scorer.names)
        unknown_gold = questions.no_answers_note(examples) if needs_answers else ""
        notes_of_questions = tuple(filter(None, (unknown, withdrawn_note, unread, unknown_gold)))
        notes += notes_of_questions
        if all(_computes_here(system, space) for system in opened):
            concurrency = 1
        header = _header(title, opened, examples, scorer, space, seed=seed, concurrency=concurrency, notes=notes)
        folder = None if out is None else Path(out)
        writer = RowWriter(folder, header)

        most = _most_passages(k, scorer.names)
        prices = prices_of(space.models.settings) if space else {}
        rest = _without_hidden(space, examples, stack)
        tells_refusals = not all(map(is_answerable, examples))
        progress = progress or SilentProgress()
        for system in opened:
            at_once = 1 if _computes_here(system, space) else max(1, concurrency // system.calls_at_once)
            work = Asking(system, scorer, prices, space, most, rest, tells_refusals)
            write_rows(system.name, partial(as_done, work, limit=at_once), examples, writer, progress)

    summary = summarise_run(header, writer.rows(), seed=seed)
    return Evaluation(summary, folder, left_out, notes_of_questions)


def _computes_here(system: AskedSystem, space: Workspace | None) -> bool:
    """Whether a question waits for nothing but this process: then the next one is asked when it is answered, since
    side by side both would take twice as long by the clock."""
    return space is not None and system.make is not None and set(space.models.names().values()) <= {"", EMBEDDED}


def _not_learned_from(examples: list[Example], space: Workspace | None) -> list[Example]:
    """The questions that no adapter of the index or of its models was trained on."""
    if space is None:
        return examples
    models = {*space.index.manifest.models.values(), *space.models.names().values()}
    return questions.without_learned(examples, questions.learned_by(models))


def _without_withdrawn(examples: list[Example]) -> tuple[list[Example], str]:
    """Return the examples without the rejected and the stale rows of a test set, and what to say of those.

    Raises EvaluationError if none remains.
    """
    withdrawn = (REJECTED, STALE)
    asked = [example for example in examples if example.metadata.get("status") not in withdrawn]
    counts = {status: sum(each.metadata.get("status") == status for each in examples) for status in withdrawn}
    left_out = [counted(count, f"{status} row") for status, count in counts.items() if count]
    if not left_out:
        return examples, ""
    if not asked:
        raise EvaluationError(
            f"The test set has only {' and '.join(left_out)}, which are not asked. Approve some (kraq serve DIR --open "
            "--testset FILE --edit), or make new ones (kraq testset update DIR FILE --new N)."
        )
    return asked, f"The test set has {' and '.join(left_out)}, which are not asked."


def _with_known_documents(
    examples: list[Example], space: Workspace | None, metrics: Sequence[str | Metric | Callable[..., Any]] | None
) -> tuple[list[Example], str]:
    """The examples with documents as the index calls them, and what it lacks of them; as they are without an index.

    Raises EvaluationError if a ranking was asked for and none of the documents is there.
    """
    if space is None:
        return examples, ""
    index = space.index
    required = any(isinstance(metric, str) and metric.partition("@")[0] in RANKINGS for metric in metrics or ())
    return with_known_documents(examples, lambda ids: index.known(Document, ids), required=required)


def _answer_metrics(systems: Sequence[AskedSystem], *, has_answers: bool, knows_passages: bool) -> list[str]:
    if not any(system.answers for system in systems):
        return []
    names = ["token_f1", "exact_match", "substring_match"] if has_answers else []
    return [*names, "grounded"] if knows_passages else names


def default_metrics(systems: Sequence[AskedSystem], examples: Sequence[Example], k: int) -> list[str]:
    """Return what can be said without a model, with the gold data that the questions have; of recorded answers over all
    passages that they were read from.

    Raises EvaluationError if nothing can be said of recorded answers: there are neither right answers nor passages.
    """
    recorded = all(system.is_recorded for system in systems)
    has_answers = any(example.answers for example in examples)
    knows_passages = not recorded or has_passages(examples)
    knows_documents = not recorded or has_document_ids(examples)
    names = _answer_metrics(systems, has_answers=has_answers, knows_passages=knows_passages)
    if knows_passages and knows_documents and any(example.supporting_ids for example in examples):
        names += ["recall", "mrr"] if recorded else [f"recall@{k}", f"mrr@{k}"]
    elif knows_passages and has_answers:
        names.append("answer_found")
    if recorded and not names:
        raise EvaluationError(
            "The rows have neither right answers nor the passages that their answers were read from, so only a metric "
            "that asks a model can score them: -m answer_relevancy."
        )
    return names


def place_of(
    title: str,
    systems: Sequence[AskedSystem],
    metrics: Sequence[str] | None,
    examples: Sequence[Example],
    space: Workspace,
    folder: Path,
) -> Path:
    """Return a folder that the same evaluation of the same state of the index finds again, and another one does not."""
    about = json.dumps([[each.name, dict(each.about)] for each in systems])
    parts = about, json.dumps(metrics), checksum_of(examples), state_of(space)
    return folder / f"{title}-{content_id('place', *parts)[:8]}"


def state_of(space: Workspace) -> str:
    """Name what an index holds: rows of one state are not continued with another one.

    The records decide it, whose ids are hashes of their texts, and not the time of the last change.
    So a change without effect, or a scope's view made again, is the same state.
    """
    index = space.index
    ids = [sorted(index.ids(kind)) for kind in (Chunk, Entity, Relationship, Question)]
    summaries = sorted((summary.community_id, summary.title, summary.text) for summary in index.all(Summary))
    held = json.dumps([index.manifest.encoder_name, ids, summaries])
    return f"{space.path.name}, state {content_id('state', held)[:12]}"


def _opened(
    systems: Asked | Mapping[str, Any], space: Workspace | None, examples: Sequence[Example], stack: ExitStack
) -> tuple[list[AskedSystem], Workspace | None]:
    """The systems, and the first index that they work over; what is opened for it is closed with the stack."""
    named = dict(systems) if isinstance(systems, Mapping) else {"": systems}
    for name, system in named.items():
        if isinstance(system, str | Path) and (Path(system).is_dir() or str(system).endswith(".kraq")):
            named[name] = stack.enter_context(Workspace.open(system))
    space = space or next((system for system in named.values() if isinstance(system, Workspace)), None)
    return [system_of(system, name, space, examples) for name, system in named.items()], space


def _header(
    title: str,
    systems: Sequence[AskedSystem],
    examples: Sequence[Example],
    scorer: RowScorer,
    space: Workspace | None,
    *,
    seed: int,
    concurrency: int,
    notes: list[str],
) -> RunHeader:
    """The conditions of the rows."""
    answerers = [system.about["model"] for system in systems if system.about.get("model")]
    models_by_role = {
        "answerer": ", ".join(dict.fromkeys(answerers)),
        "judge": str(scorer.judge_lm.model) if scorer.judge_lm else "",
        "encoder": space.embedder.name if space else "",
    }

    table = {
        "title": f"Evaluation on {title}",
        "kind": "answers" if any(system.answers for system in systems) else "retrievers",
        "baseline": systems[0].name,
        "metrics": scorer.names,
        "systems": {system.name: {"about": dict(system.about)} for system in systems},
    }

    return RunHeader(
        name="evaluation",
        dataset=title,
        settings={},
        seeds={"seed": seed},
        models={role: name for role, name in models_by_role.items() if name},
        index_fingerprint=state_of(space) if space else "",
        extra={
            "table": table,
            "asked": len(examples),
            "in_flight": concurrency,
            "notes": notes,
            "data": checksum_of(examples),
            **about_made(examples),
            **(space.learned_from if space else {}),  # who may read what the rows hold
        },
    )


def _most_passages(k: int, metrics: Sequence[str]) -> int:
    """How many passages a retriever is asked for: as many as the longest ranking that is scored."""
    most = k
    for metric in metrics:
        kind, _, places = metric.partition("@")
        if kind in RANKINGS and places:
            most = max(most, int(places))
    return most


def _without_hidden(space: Workspace | None, examples: Sequence[Example], stack: ExitStack) -> Workspace | None:
    """The index without the documents that any question hides; None if none hides one."""
    hidden: set[str] = set()
    for example in examples:
        hidden.update(hidden_documents(example))
    if space is None or not hidden:
        return None
    return stack.enter_context(space.without(hidden))


def _scorer(
    systems: Sequence[AskedSystem],
    metrics: Sequence[str | Metric | Callable[..., Any]],
    space: Workspace | None,
    judge: dspy.LM | None,
) -> RowScorer:
    """Raises ConfigError for metrics that these systems cannot be scored by, or that nobody can
    judge."""
    chosen = [each if isinstance(each, str) else own_metric(each) for each in metrics]
    own = {each.name: each for each in chosen if isinstance(each, Metric)}
    names = [each if isinstance(each, str) else each.name for each in chosen]
    _require_metrics(names, own)

    of_answers = [name for name in names if name not in own and is_of_answers(name)]
    if of_answers and not any(system.answers for system in systems):
        raise ConfigError(
            f"{of_answers[0]} scores answers, and a retriever gives none; for retrievers there are: "
            f"{', '.join(sorted(OF_RETRIEVAL))}. A function that answers returns a text, or a mapping with `answer`."
        )

    lm = _judging_model(names, space, judge)
    embedder = space.embedder if space else None
    if embedder is None and {SIMILARITY, ANSWER_RELEVANCY}.intersection(names):
        embedder = load_embedder(EncoderSettings())
    return RowScorer(names, embedder, lm, own, None if space is None else space.models.states)


def _require_metrics(names: Sequence[str], own: Mapping[str, Metric]) -> None:
    """Raises ConfigError for no metric, one that is named twice, or one that there is not."""
    if not names:
        raise ConfigError("No metric was named, and the questions name no answer and no document to score by.")
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise ConfigError(f"The metric {min(twice)!r} is named twice.")
    for name in names:
        if name not in own:
            require_metric(name)


def _judging_model(names: Sequence[str], space: Workspace | None, judge: dspy.LM | None) -> dspy.LM | None:
    """The model that judges, where one of the metrics needs it. Raises ConfigError for none."""
    judged = [name for name in names if name in JUDGED]
    if not judged:
        return None

    lm = judge or (space.models["judge"] if space else dspy.settings.lm)
    if lm is None:
        raise ConfigError(f"{judged[0]} needs a language model: evaluate(..., judge=lm), or dspy.configure(lm=lm).")
    if lm.model == "embedded" and (split := SPLITS_STATEMENTS.intersection(judged)):
        raise ConfigError(
            f"{min(split)} needs a language model for the role judge, which the embedded one is not: --lm MODEL, or "
            "the role in kraq.toml."
        )
    return lm
