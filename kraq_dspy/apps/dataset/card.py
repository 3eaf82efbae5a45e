"""Writes the card of a data set: what it holds, how it was made, and where its limits are."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from kraq_dspy._internal.files import replaced
from kraq_dspy.apps.dataset.rows import Row
from kraq_dspy.asset.store.index import Index

if TYPE_CHECKING:
    from kraq_dspy.apps.dataset.export import DatasetPlan, DatasetReport

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def write_card(
    index: Index, rows: Mapping[str, Sequence[Row]], plan: "DatasetPlan", report: "DatasetReport", out: Path
) -> Path:
    """`README.md` with the front matter that Hugging Face reads: licence, size, and which file is which split."""
    path = out / "README.md"
    every = [row for some in rows.values() for row in some]
    parts = [
        _front_matter(rows, plan, len(every)),
        f"# Questions of {index.path.stem}\n\nQuestions about a corpus, with evidence, made by kraq-dspy "
        f"{version('kraq-dspy')} from its knowledge graph: each community of entities has a representative question.",
        _counts(rows),
        _how(index, every, plan, report),
        LIMITS,
    ]
    path.parent.mkdir(parents=True, exist_ok=True)  # a form may have no rows to write
    with replaced(path) as draft:
        draft.write_text("\n\n".join(parts) + "\n", encoding="utf-8", errors="replace")
    return path


def _front_matter(rows: Mapping[str, Sequence[Row]], plan: "DatasetPlan", total: int) -> str:
    size = next((name for limit, name in SIZES if total < limit), "n>1M")
    lines = [
        "---", f"license: {json.dumps(plan.licence)}", "task_categories:", "- question-answering",
        "- text-retrieval", "size_categories:", f"- {size}",
    ]  # fmt: skip
    if "hf" in plan.forms:
        lines += ["configs:", "- config_name: default", "  data_files:"]
        for split in rows:
            lines += [f"  - split: {split}", f"    path: data/{split}.parquet"]
    return "\n".join([*lines, "---"])


def _counts(rows: Mapping[str, Sequence[Row]]) -> str:
    lines = ["| split | rows | answered | documents | hard | medium | easy |", "|---|---|---|---|---|---|---|"]
    for split, some in rows.items():
        difficulty = Counter(row.difficulty for row in some)
        cells = (
            len(some), sum(row.answer is not None for row in some),
            len({id for row in some for id in row.document_ids}),
            difficulty["hard"], difficulty["medium"], difficulty["easy"],
        )  # fmt: skip
        lines.append(f"| {split} | {' | '.join(f'{cell:,}' for cell in cells)} |")
    return "## Rows\n\n" + "\n".join(lines)


def _how(index: Index, rows: Sequence[Row], plan: "DatasetPlan", report: "DatasetReport") -> str:
    models = sorted({row.model for row in rows if row.model})
    origins = Counter(row.origin for row in rows)
    left_out = ", ".join(f"{count:,} {reason}" for reason, count in report.left_out.items() if count) or "none"
    lines = [
        f"- Questions by origin: {', '.join(f'{name} {count:,}' for name, count in sorted(origins.items()))}.",
        f"- Models that wrote questions: {', '.join(models) or 'none'}; of the index: "
        f"{', '.join(f'{role} {name}' for role, name in index.manifest.models.items()) or 'none'}.",
        f"- Answers: {'approved' if not plan.pending else 'approved, and pending a review'}, of the index's catalogue.",
        f"- Judged: {_judged(plan, report)}.",
        f"- Evidence: at most {plan.passages} passages a row, the first of its community in reading order.",
        f"- Splits by document, seed {plan.seed}: no document, and so no passage, stands behind rows of two splits.",
        f"- Left out: {left_out}.",
        f"- Licence of the documents, as it was given: {plan.licence}.",
    ]
    return "## How it was made\n\n" + "\n".join(lines)


LIMITS = """## Limits

`difficulty` is read off the level of a question's community (0, the broadest, is hard; the deepest is easy) and was not
measured. Answers are as good as the program and the people who gave them. Questions follow the corpus's dominant
themes, and with them its biases."""


def _judged(plan: "DatasetPlan", report: "DatasetReport") -> str:
    rejected = f"{sum(report.rejected.values()):,}"
    if plan.reread:
        return f"a model answered each again from its evidence; {rejected} came out otherwise and were left out"
    if plan.least is None:
        return "no critic was asked"
    return (
        "three critics (is it answered there, does anybody ask it, can it be understood alone?) rated each at least "
        f"{plan.least} of 5; they rejected {rejected}"
    )
