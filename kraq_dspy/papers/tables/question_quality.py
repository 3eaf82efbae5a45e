"""Makes the rows of Table 1: each reference question, the generated one nearest to it, and how alike they are."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import ConfigError
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.metrics.generation import BertScorer
from kraq_dspy.eval.metrics.questions import pair_questions
from kraq_dspy.eval.rows import ResultRow, write_rows
from kraq_dspy.papers.tables import systems
from kraq_dspy.papers.tables.indexes import PreparedIndex
from kraq_dspy.papers.tables.run import Run
from kraq_dspy.settings import EMBEDDED, Settings

RELEVANCE = "relevance"
_BLOCK = 256  # pairs scored before their rows are written


def measure(run: Run, folder: Path) -> None:
    """Question sets against the data set's questions: each is asked for in an index of its own settings.

    A generator's share of templates (it wrote nothing) is told.
    """
    chosen, notes = run.systems()
    sets: dict[str, list[str]] = {}
    templates: dict[str, int] = {}
    first: PreparedIndex | None = None
    for system, settings in chosen:
        if unknown := set(system.options) - {"roles", "settings", "state", "needs_state", "domain"}:
            raise ConfigError(
                f"{system.name!r}: unknown option {min(unknown)!r}; a source of questions takes roles, settings, "
                "state, domain."
            )
        if system.options.get("needs_state") and "state" not in system.options:
            notes.append(f"{system.name} is left out: give what tuned it, --optimized '{system.name}=FILE'.")
            continue
        if system.options.get("domain"):
            settings = _told_of_the_corpus(run, settings, folder)
            reader, types = settings.extract.persona, settings.extract.types
            notes.append(f"{system.name}: the extractor reads as {reader!r}, for {types or 'any type'}.")
        asks_random = systems.asks_random(system)
        states = [Path(system.options["state"])] if "state" in system.options else []
        index = run.index(settings, random_questions=asks_random, optimized=states)
        first = first or index
        with Index.open(index.path) as opened:
            records = opened.questions(source=system.use, duplicates=True)
        sets[system.name] = [question.text for question in records]
        templates[system.name] = sum(question.model == EMBEDDED for question in records)
    if first is None:
        raise ConfigError(f"No system of the table {run.table.name!r} can be run. {' '.join(notes)}")

    scorer = run.options.bertscore()
    counts = {name: len(texts) for name, texts in sets.items()}
    extra = {"questions": counts, "templates": templates, "notes": notes}
    writer = run.writer(folder, first, extra, bertscore=f"{scorer.name}, layer {scorer.layer}")
    for name, texts in sets.items():
        rows_of_set = partial(_rows_of_set, run, name, texts, scorer)
        write_rows(name, rows_of_set, run.questions.examples, writer, run.progress)


def _told_of_the_corpus(run: Run, settings: Settings, folder: Path) -> Settings:
    """The settings with the persona and the types that `kraq index --domain` proposes.

    What the model said is kept in `folder`/domain.json, so that it is asked once. Raises ConfigError where the options
    of the run have nothing that asks it.
    """
    file = folder / "domain.json"
    if not file.exists():
        if run.options.describe is None:
            raise ConfigError(f"{run.table.name!r} tells extraction of the corpus: give RunOptions(describe=...).")
        models = run.models(settings)
        domain = run.options.describe(run.questions.dataset.documents, settings, lm=models, seed=run.options.seed)
        models.close()
        folder.mkdir(parents=True, exist_ok=True)
        with replaced(file) as draft:
            draft.write_text(json.dumps({"persona": domain.persona, "types": ", ".join(domain.types)}), "utf-8")
    kept = json.loads(file.read_text("utf-8"))
    return replace(settings, extract=replace(settings.extract, persona=kept["persona"], types=kept["types"]))


def _rows_of_set(
    run: Run, name: str, texts: Sequence[str], scorer: BertScorer, examples: Sequence[Example]
) -> Iterator[ResultRow]:
    """A row for each question of the data set, with the question of the set nearest to it.

    A metric without a threshold is the score itself, another one whether the score reaches its threshold.
    """
    if not examples:
        return
    thresholds = {metric: threshold_of(metric) for metric in run.table.metrics}
    pairs = pair_questions([example.question for example in examples], texts, run.embedder)
    for start in range(0, len(pairs), _BLOCK):
        block = pairs[start : start + _BLOCK]
        scores = scorer.score([pair.reference for pair in block], [pair.generated for pair in block]).tolist()
        for example, pair, f1 in zip(examples[start : start + _BLOCK], block, scores, strict=True):
            metrics = {metric: f1 if least is None else float(f1 >= least) for metric, least in thresholds.items()}
            about = {"question": example.question, "f1": f1, "cosine": pair.cosine, "type": example.type}
            yield ResultRow(example.id, name, answer=pair.generated, metrics=metrics, extra=about)


def threshold_of(metric: str) -> float | None:
    """Read the threshold of "relevance@0.70"; None for "relevance". Raises ConfigError for another
    metric."""
    name, _, tau = metric.partition("@")
    try:
        if name == RELEVANCE:
            return float(tau) if tau else None
    except ValueError:
        pass
    raise ConfigError(f"There is no metric {metric!r} of questions; there are: relevance, relevance@0.70 and the like.")
