"""Tells what is in an index, at once and without loading any model: `kraq status`."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from kraq_dspy.apps.cli.options import IndexDir, Json, Scoped
from kraq_dspy.apps.cli.progress import has_tokens, label, models_in_words, show_failures, usage_cells, usage_headings
from kraq_dspy.apps.cli.terminal import command, counted, grid, note, output, print_json, two_columns

if TYPE_CHECKING:
    from kraq_dspy.asset.store.index import Index

BEGUN = "begun, not finished"
"""What is said of a change that no process works on."""


@dataclass(frozen=True, kw_only=True)
class Status(Scoped):
    """Contents of the index, what made it, its cost, and its failures."""

    index_dir: IndexDir
    json: Json = False

    def run(self) -> None:
        from kraq_dspy.indexing.faq.sources import count_answers

        with self.readable(self.index_dir) as index:
            contents = _contents_of(index)
        change = _change_under_way(self.index_dir)
        answers = count_answers(self.index_dir)
        if self.json:
            head = {
                "path": str(self.index_dir),
                "complete": contents.manifest.complete,
                "change": change,
            }
            print_json({**head, **_as_json(contents, answers)})
        else:
            self._show(contents, change, answers)

    def _show(self, contents: "_Contents", change: str | None, answers: Mapping[str, int] | None) -> None:
        rows = self._rows(contents, change)
        if answers:
            rows["faq"] = ", ".join(f"{count:,} {name}" for name, count in answers.items())
        output.print(two_columns(str(self.index_dir), rows))

        if contents.levels:
            sizes = []
            for level, size in contents.levels.items():
                sizes.append((level, size, contents.questions_by_level.get(level, 0)))
            names = ["level", "communities", "distinct questions"]
            output.print(grid("levels", names, sizes, right=names))
        if contents.usage:
            output.print(_usage_grid(contents.usage))
        if not contents.manifest.complete or change == BEGUN:
            note(command("index", self.index_dir), label="To finish it: ")
        if contents.personal:
            questions = command("questions", self.index_dir, "--personal")
            note(
                f" hold e-mail addresses, phone or card numbers: {questions}. To keep them out: kraq index --redact",
                label=counted(len(contents.personal), "question"),
            )
        show_failures(contents.failures, command("status", self.index_dir, "--json"))

    def _rows(self, contents: "_Contents", change: str | None) -> dict[str, Any]:
        """Return the first table's values by the names of its lines."""
        from kraq_dspy.programs.kraq.asked_by import asked_in_words

        manifest, left_out = contents.manifest, contents.left_out
        state = Text("complete", style="green") if manifest.complete else Text("unfinished")
        rows: dict[str, Any] = {"state": state}
        if change:
            rows["change"] = change
        rows["encoder"] = f"{manifest.encoder_name}, {manifest.encoder_dimension} dimensions"
        if contents.passage_precisions:
            rows["encoder"] += f", passages in {' and '.join(contents.passage_precisions)}"
        rows["models"] = models_in_words(manifest.models)
        rows |= {f"replies of {model}": how for model, how in manifest.schemas.items()}
        rows["updated"] = manifest.updated_at
        rows |= contents.counts

        if left_out.get("lines"):
            lines, documents = left_out["lines"], left_out["documents"]
            rows["left out"] = (
                f"{counted(lines, 'line')} of menus, links and notices, and parts hidden or not read, "
                f"of {counted(documents, 'document')}"
            )
        if contents.asked_by:
            rows["asked by"] = asked_in_words(contents.asked_by).partition(": ")[2]
        if contents.merges:
            methods = contents.merges.most_common()
            rows["merged as"] = ", ".join(f"{count:,} {method}" for method, count in methods)
        return rows


@dataclass(frozen=True, slots=True)
class _Contents:
    """The facts about an index; `personal` has the kinds of personal data by the question's id."""

    manifest: Any
    counts: Mapping[str, Any]
    failures: Sequence[Any]
    usage: Mapping[tuple[str, str], Any]
    merges: Counter[str]
    levels: Mapping[int, int]
    left_out: Mapping[str, int]
    questions_by_level: Counter[int]
    asked_by: Counter[str]
    personal: Mapping[str, list[str]]
    passage_precisions: Sequence[str]


def _contents_of(index: "Index") -> _Contents:
    from kraq_dspy.asset.corpus.normalise import find_personal
    from kraq_dspy.indexing.index.embedding import passage_precisions
    from kraq_dspy.indexing.index.report import located
    from kraq_dspy.records import Merge, Question

    by_level, asked_by = Counter[int](), Counter[str]()
    personal: dict[str, list[str]] = {}
    for question in index.all(Question):
        if question.source == "kraq" and question.duplicate_of is None:
            by_level[question.level] += 1
            asked_by[question.model] += 1
        kinds = {each.kind for each in find_personal(question.text)}
        if kinds:
            personal[question.id] = sorted(kinds)

    return _Contents(
        manifest=index.manifest,
        counts=index.counts(),
        failures=located(index, index.results.failures()),
        usage=index.results.usage(),
        merges=Counter(merge.method for merge in index.all(Merge)),
        levels=index.partition_sizes(),
        left_out=index.left_out(),
        questions_by_level=by_level,
        asked_by=asked_by,
        personal=personal,
        passage_precisions=passage_precisions(index),
    )


def _change_under_way(index_dir: Path) -> str | None:
    """Return what is under way after the last complete state; None if nothing is."""
    from kraq_dspy.asset.store.own_files import holder
    from kraq_dspy.asset.store.states import has_draft

    who = holder(index_dir / "lock")
    if who:
        return f"under way, by {who}"
    if has_draft(index_dir):
        return BEGUN
    return None


def _as_json(contents: _Contents, answers: Mapping[str, int] | None) -> dict[str, Any]:
    usage = []
    for (stage, model), used in contents.usage.items():
        usage.append({"stage": stage, "model": model, "usage": used})

    return {
        "manifest": contents.manifest,
        "counts": contents.counts,
        "passage_precisions": contents.passage_precisions,
        "left_out": contents.left_out,
        "merges_by_method": contents.merges,
        "partition_sizes": contents.levels,
        "questions_by_level": contents.questions_by_level,
        "questions_by_model": contents.asked_by,
        "usage": usage,
        "personal_questions": contents.personal,
        "answers": answers,
        "failures": contents.failures,
    }


def _usage_grid(usage: Mapping[tuple[str, str], Any]) -> Table:
    """Return the usage of each model in each stage so far."""
    with_tokens = has_tokens(model for _, model in usage)
    spent = []
    for (stage, model), used in usage.items():
        spent.append((label(stage), model, *usage_cells(used, with_tokens)))
    names = list(usage_headings(with_tokens))
    return grid("asked of models so far", ["stage", "model", *names], spent, right=names)
