"""Tells what is in an index, at once and without loading any model: `kraq status`."""

from collections import Counter
from dataclasses import dataclass

from rich.text import Text

from kraq_dspy.apps.cli.options import IndexDir, Json, Scoped
from kraq_dspy.apps.cli.progress import has_tokens, label, models_in_words, show_failures, usage_cells, usage_headings
from kraq_dspy.apps.cli.terminal import command, counted, grid, note, output, print_json, two_columns


@dataclass(frozen=True, kw_only=True)
class Status(Scoped):
    """What the index holds, what made it, what it took, and what failed."""

    index_dir: IndexDir
    json: Json = False

    def run(self) -> None:
        from kraq_dspy.asset.corpus.normalise import find_personal
        from kraq_dspy.asset.store.own_files import holder
        from kraq_dspy.asset.store.states import has_draft
        from kraq_dspy.indexing.catalogue.sources import count_answers
        from kraq_dspy.indexing.index.report import located
        from kraq_dspy.programs.kraq.asked_by import asked_in_words
        from kraq_dspy.records import Merge, Question

        with self.readable(self.index_dir) as index:
            manifest, counts, failures = index.manifest, index.counts(), located(index, index.results.failures())
            usage = index.results.usage()
            merges = Counter(merge.method for merge in index.all(Merge))
            levels, left_out = index.partition_sizes(), index.left_out()
            questions, asked_by, personal = Counter[int](), Counter[str](), {}
            for question in index.all(Question):
                questions[question.level] += question.source == "kraq" and question.duplicate_of is None
                if question.source == "kraq":
                    asked_by[question.model] += 1
                if kinds := find_personal(question.text):
                    personal[question.id] = kinds
        answers = count_answers(self.index_dir)
        change = None  # what is under way beside the last complete state
        if who := holder(self.index_dir / "lock"):
            change = f"under way, by {who}"
        elif has_draft(self.index_dir):
            change = f"begun, not finished; go on: {command('resume', self.index_dir)}"
        if self.json:
            print_json(
                {
                    "path": str(self.index_dir),
                    "complete": manifest.complete,
                    "change": change,
                    "manifest": manifest,
                    "counts": counts,
                    "left_out": left_out,
                    "merges_by_method": merges,
                    "partition_sizes": levels,
                    "questions_by_level": questions,
                    "questions_by_model": asked_by,
                    "usage": [
                        {"stage": stage, "model": model, "usage": used} for (stage, model), used in usage.items()
                    ],
                    "personal_questions": {id: sorted({one.kind for one in kinds}) for id, kinds in personal.items()},
                    "answers": answers,
                    "failures": failures,
                }
            )
            return
        complete = Text("complete", style="green")
        rows = {
            "state": complete if manifest.complete else f"unfinished; go on: {command('resume', self.index_dir)}",
            **({"change": change} if change else {}),
            "encoder": f"{manifest.encoder_name}, {manifest.encoder_dimension} dimensions",
            "models": models_in_words(manifest.models),
            **{f"replies of {model}": how for model, how in manifest.schemas.items()},
            "updated": manifest.updated_at,
            **counts,
        }
        if left_out.get("lines"):
            rows["left out"] = (
                f"{left_out['lines']:,} lines of menus, links and notices in {left_out['documents']:,} pages"
            )
        if asked_by:
            rows["asked by"] = asked_in_words(asked_by).partition(": ")[2]
        if merges:
            rows["merged as"] = ", ".join(f"{count:,} {method}" for method, count in merges.most_common())
        if answers:
            rows["catalogue"] = ", ".join(f"{count:,} {name}" for name, count in answers.items())
        output.print(two_columns(str(self.index_dir), rows))
        if levels:
            sizes = [(level, size, questions.get(level, 0)) for level, size in levels.items()]
            names = ["level", "communities", "new questions"]
            output.print(grid("levels", names, sizes, right=names))
        if usage:
            with_tokens = has_tokens(model for _, model in usage)
            spent = [(label(stage), model, *usage_cells(used, with_tokens)) for (stage, model), used in usage.items()]
            names = list(usage_headings(with_tokens))
            output.print(grid("asked of models so far", ["stage", "model", *names], spent, right=names))
        if personal:
            note(
                f" hold e-mail addresses, phone or card numbers: {command('questions', self.index_dir, '--personal')}. "
                "To keep them out: kraq index --redact",
                label=counted(len(personal), "question"),
            )
        show_failures(failures, command("status", self.index_dir, "--json"))
