"""Tells what is in an index, at once and without loading any model: `kraq status`."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from kraq_dspy.apps.cli.options import IndexDir, Json, Scoped, command_class
from kraq_dspy.apps.cli.progress import has_tokens, label, models_in_words, show_failures, usage_cells, usage_headings
from kraq_dspy.apps.cli.terminal import command, counted, grid, note, output, print_json, two_columns
from kraq_dspy.asset.corpus.normalise import find_personal
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.own_files import holder
from kraq_dspy.asset.store.states import has_draft
from kraq_dspy.indexing.faq.sources import count_answers
from kraq_dspy.indexing.index.report import located
from kraq_dspy.programs.kraq.asked_by import asked_in_words
from kraq_dspy.records import Merge, Question

BEGUN = "begun, not finished"
"""What is said of a change that no process works on."""


@command_class
class Status(Scoped):
    """Contents of the index, what made it, its cost, and its failures."""

    index_dir: IndexDir
    json: Json = False

    def run(self) -> None:
        with self.readable(self.index_dir) as index:
            contents = _contents_of(index)
        head = {
            "path": str(self.index_dir),
            "complete": contents["manifest"].complete,
            "change": _change_under_way(self.index_dir),
        }
        answers = {"answers": count_answers(self.index_dir)}
        if self.json:
            usage = [
                {"stage": stage, "model": model, "usage": used} for (stage, model), used in contents["usage"].items()
            ]
            print_json({**head, **contents, "usage": usage, **answers})
        else:
            self._show({**head, **contents, **answers})

    def _show(self, contents: Mapping[str, Any]) -> None:
        output.print(two_columns(str(self.index_dir), _rows(contents)))

        if contents["partition_sizes"]:
            by_level = contents["questions_by_level"]
            sizes = [(level, size, by_level.get(level, 0)) for level, size in contents["partition_sizes"].items()]
            names = ["level", "communities", "distinct questions"]
            output.print(grid("levels", names, sizes, right=names))
        if contents["usage"]:
            output.print(_usage_grid(contents["usage"]))
        if not contents["complete"] or contents["change"] == BEGUN:
            note(command("index", self.index_dir), label="To finish it: ")
        if personal := contents["personal_questions"]:
            questions = command("questions", self.index_dir, "--personal")
            note(
                f" hold e-mail addresses, phone or card numbers: {questions}. To keep them out: kraq index --redact",
                label=counted(len(personal), "question"),
            )
        show_failures(contents["failures"], command("status", self.index_dir, "--json"))


def _rows(contents: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first table's values by the names of its lines."""

    manifest, left_out = contents["manifest"], contents["left_out"]
    state = Text("complete", style="green") if manifest.complete else Text("unfinished")
    rows: dict[str, Any] = {"state": state}
    if contents["change"]:
        rows["change"] = contents["change"]
    rows["encoder"] = f"{manifest.encoder_name}, {manifest.encoder_dimension} dimensions"
    rows["models"] = models_in_words(manifest.models)
    rows |= {f"replies of {model}": how for model, how in manifest.schemas.items()}
    rows["updated"] = manifest.updated_at
    rows |= contents["counts"]

    if left_out.get("lines"):
        rows["left out"] = (
            f"{counted(left_out['lines'], 'line')} of menus, links and notices, and parts hidden or not read, "
            f"of {counted(left_out['documents'], 'document')}"
        )
    if contents["questions_by_model"]:
        rows["asked by"] = asked_in_words(contents["questions_by_model"]).partition(": ")[2]
    if merges := contents["merges_by_method"].most_common():
        rows["merged as"] = ", ".join(f"{count:,} {method}" for method, count in merges)
    if contents["answers"]:
        rows["faq"] = ", ".join(f"{count:,} {name}" for name, count in contents["answers"].items())
    return rows


def _contents_of(index: Index) -> dict[str, Any]:
    """The facts about an index, by the keys of the JSON; `personal_questions` has the kinds of personal data by the
    question's id."""

    by_level, asked_by = Counter[int](), Counter[str]()
    personal: dict[str, list[str]] = {}
    for question in index.all(Question):
        if question.source == "kraq" and question.duplicate_of is None:
            by_level[question.level] += 1
            asked_by[question.model] += 1
        kinds = {each.kind for each in find_personal(question.text)}
        if kinds:
            personal[question.id] = sorted(kinds)

    return {
        "manifest": index.manifest,
        "counts": index.counts(),
        "left_out": index.left_out(),
        "merges_by_method": Counter(merge.method for merge in index.all(Merge)),
        "partition_sizes": index.partition_sizes(),
        "questions_by_level": by_level,
        "questions_by_model": asked_by,
        "usage": index.results.usage(),
        "personal_questions": personal,
        "failures": located(index, index.results.failures()),
    }


def _change_under_way(index_dir: Path) -> str | None:
    """Return what is under way after the last complete state; None if nothing is."""

    who = holder(index_dir / "lock")
    if who:
        return f"under way, by {who}"
    if has_draft(index_dir):
        return BEGUN
    return None


def _usage_grid(usage: Mapping[tuple[str, str], Any]) -> Table:
    """Return the usage of each model in each stage so far."""
    with_tokens = has_tokens(model for _, model in usage)
    spent = []
    for (stage, model), used in usage.items():
        spent.append((label(stage), model, *usage_cells(used, with_tokens)))
    names = list(usage_headings(with_tokens))
    return grid("asked of models so far", ["stage", "model", *names], spent, right=names)
