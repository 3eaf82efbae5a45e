"""Makes a data set of an index: collects rows, splits them, writes the forms and a card."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kraq_dspy._internal.files import replaced
from kraq_dspy.apps.dataset.rows import SPLITS, Row, collect_rows, split_by_document
from kraq_dspy.asset.store.index import Index
from kraq_dspy.build.catalogue.sources import opened_catalogue
from kraq_dspy.errors import ConfigError, IndexStateError, did_you_mean
from kraq_dspy.finetune.pairs import Pair, leak
from kraq_dspy.records import CatalogueEntry, Chunk, Summary

Rows = Mapping[str, Sequence[Row]]
"""By split; none that is empty."""


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """What goes in: answers of the catalogue that are approved, with `pending` also those that wait for review, with
    `unanswered` also questions without one; `passages` of evidence at most for each row.

    `forms` are names of FORMS,
    `licence` is that of the documents, for the card.
    """

    forms: tuple[str, ...] = ("hf",)
    pending: bool = False
    unanswered: bool = False
    passages: int = 20
    shares: tuple[float, float, float] = (0.8, 0.1, 0.1)
    seed: int = 0
    licence: str = "unknown"


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """`rows` by split; `left_out` by reason."""

    files: tuple[Path, ...]
    rows: Mapping[str, int]
    left_out: Mapping[str, int]


def export_dataset(index: Index, out: Path, plan: DatasetPlan | None = None) -> DatasetReport:
    """Write the data set into the folder `out`, which is made; files of an earlier one are replaced.

    Raises IndexStateError where no row is left, ConfigError for an unknown form or bad shares.
    """
    plan = plan or DatasetPlan()
    if unknown := [name for name in plan.forms if name not in FORMS]:
        near = did_you_mean(unknown[0], FORMS)
        raise ConfigError(f"There is no form {unknown[0]!r}{near}; there are: {', '.join(FORMS)}.")
    left_out: Counter[str] = Counter()
    entries = _entries(index, plan)
    rows = list(collect_rows(index, entries, unanswered=plan.unanswered, passages=plan.passages, left_out=left_out))
    split = split_by_document([row.document_ids for row in rows], plan.shares, seed=plan.seed)
    left_out["over two splits"] = split.of_rows.count(None)
    by_split: dict[str, Sequence[Row]] = {
        name: [row for row, its in zip(rows, split.of_rows, strict=True) if its == name] for name in SPLITS
    }
    filled = {name: some for name, some in by_split.items() if some}
    if not filled:
        raise IndexStateError(_nothing(index, left_out))
    _remove_old(out)
    files = [path for name in plan.forms for path in FORMS[name](index, filled, out)]
    card = write_card(index, filled, plan, left_out, out)
    return DatasetReport((*files, card), {name: len(some) for name, some in filled.items()}, left_out)


def _entries(index: Index, plan: DatasetPlan) -> list[CatalogueEntry]:
    """Never those that are stale: their documents say something else by now."""
    with opened_catalogue(index.path) as catalogue:
        if catalogue is None:
            return []
        return catalogue.entries("approved") + (catalogue.entries("pending") if plan.pending else [])


def _nothing(index: Index, left_out: Mapping[str, int]) -> str:
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)
    return (
        f"{str(index.path)!r} gives no row ({reasons or 'it has no questions'}). Answer its questions with `kraq "
        "catalogue seed` and approve them, take answers that nobody has approved (--pending), or questions without one "
        "(--unanswered); in Python: DatasetPlan(pending=True, unanswered=True)."
    )


def _remove_old(out: Path) -> None:
    """What an earlier export may have written for a split that is empty now."""
    for pattern in ("data/*.parquet", "ragas/*.jsonl", "beir/qrels/*.tsv", "finetune/*.jsonl"):
        for path in out.glob(pattern):
            if path.stem in (*SPLITS, "dev"):
                path.unlink()


SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def write_card(index: Index, rows: Rows, plan: DatasetPlan, left_out: Mapping[str, int], out: Path) -> Path:
    """`README.md` with the front matter that Hugging Face reads: licence, size, and which file is which split."""
    path = out / "README.md"
    every = [row for some in rows.values() for row in some]
    parts = [
        _front_matter(rows, plan, len(every)),
        f"# Questions of {index.path.stem}\n\nQuestions about a corpus, with evidence, made by kraq-dspy "
        f"{version('kraq-dspy')} from its knowledge graph: each community of entities has a representative question.",
        _counts(rows),
        _how(index, every, plan, left_out),
        LIMITS,
    ]
    path.parent.mkdir(parents=True, exist_ok=True)  # a form may have no rows to write
    with replaced(path) as draft:
        draft.write_text("\n\n".join(parts) + "\n", encoding="utf-8", errors="replace")
    return path


def _front_matter(rows: Rows, plan: DatasetPlan, total: int) -> str:
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


def _counts(rows: Rows) -> str:
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


def _how(index: Index, rows: Sequence[Row], plan: DatasetPlan, left_out: Mapping[str, int]) -> str:
    models = sorted({row.model for row in rows if row.model})
    origins = Counter(row.origin for row in rows)
    missing = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count) or "none"
    lines = [
        f"- Questions by origin: {', '.join(f'{name} {count:,}' for name, count in sorted(origins.items()))}.",
        f"- Models that wrote questions: {', '.join(models) or 'none'}; of the index: "
        f"{', '.join(f'{role} {name}' for role, name in index.manifest.models.items()) or 'none'}.",
        f"- Answers: {'approved' if not plan.pending else 'approved, and pending a review'}, of the index's catalogue.",
        f"- Evidence: at most {plan.passages} passages a row, the first of its community in reading order.",
        f"- Splits by document, seed {plan.seed}: no document, and so no passage, stands behind rows of two splits.",
        f"- Left out: {missing}.",
        f"- Licence of the documents, as it was given: {plan.licence}.",
    ]
    return "## How it was made\n\n" + "\n".join(lines)


LIMITS = """## Limits

`difficulty` is read off the level of a question's community (0, the broadest, is hard; the deepest is easy) and was not
measured. Answers are as good as the program and the people who gave them. Questions follow the corpus's dominant
themes, and with them its biases."""


def write_parquet(index: Index, rows: Rows, out: Path) -> list[Path]:
    """`data/SPLIT.parquet`, which `datasets.load_dataset` reads with the card's help."""
    import pyarrow as pa
    import pyarrow.parquet

    text, texts = pa.string(), pa.list_(pa.string())
    passage = pa.struct({"id": text, "document_id": text, "title": text, "text": text})
    schema = pa.schema(
        {
            "id": text, "question": text, "answer": text, "evidence": pa.list_(passage), "document_ids": texts,
            "community_id": text, "level": pa.int64(), "difficulty": text, "origin": text, "model": text,
        }
    )  # fmt: skip
    paths = []
    for split, some in rows.items():
        path = _made(out / "data" / f"{split}.parquet")
        with replaced(path) as draft, pyarrow.parquet.ParquetWriter(draft, schema) as writer:
            for start in range(0, len(some), 1000):
                part = [_sound(asdict(row)) for row in some[start : start + 1000]]
                writer.write_table(pa.Table.from_pylist(part, schema=schema))
        paths.append(path)
    return paths


def write_ragas(index: Index, rows: Rows, out: Path) -> list[Path]:
    """`ragas/SPLIT.jsonl` in the columns of its single-turn samples; rows with an answer alone, and no empty file."""
    samples = {
        split: [
            {
                "user_input": row.question,
                "reference": row.answer,
                "reference_contexts": [chunk.passage for chunk in row.evidence],
            }
            for row in some
            if row.answer is not None
        ]
        for split, some in rows.items()
    }
    return [_write_lines(out / "ragas" / f"{split}.jsonl", some) for split, some in samples.items() if some]


def write_beir(index: Index, rows: Rows, out: Path) -> list[Path]:
    """`beir/`: every chunk of the index as `corpus.jsonl`, all questions as `queries.jsonl`, the evidence of each split
    as `qrels/train.tsv`, `dev.tsv`, `test.tsv`."""
    folder = out / "beir"
    corpus = ({"_id": chunk.id, "title": chunk.title, "text": chunk.text} for chunk in index.all(Chunk))
    queries = (
        {"_id": row.id, "text": row.question, "metadata": {"level": row.level, "difficulty": row.difficulty}}
        for some in rows.values()
        for row in some
    )
    written = [_write_lines(folder / "corpus.jsonl", corpus), _write_lines(folder / "queries.jsonl", queries)]
    for split, some in rows.items():
        path = _made(folder / "qrels" / f"{'dev' if split == 'validation' else split}.tsv")
        lines = (f"{row.id}\t{chunk.id}\t1\n" for row in some for chunk in row.evidence)
        with replaced(path) as draft, draft.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(["query-id\tcorpus-id\tscore\n", *lines])
        written.append(path)
    return written


def write_pairs(index: Index, rows: Rows, out: Path) -> list[Path]:
    """`finetune/SPLIT.jsonl`: (summary, question) of KRAQ questions, as `kraq finetune generator --pairs` reads them.

    A summary that gives its question away is left out, as `kraq pairs` does.
    """
    summaries = {summary.community_id: summary.text for summary in index.all(Summary)}

    def pairs(some: Sequence[Row]) -> Iterable[dict[str, Any]]:
        for row in some:
            summary = summaries.get(row.community_id or "", "")
            if summary and leak(summary, row.question) is None:
                about = {"document_ids": row.document_ids, "model": row.model}
                yield Pair.generator(summary, row.question, source=index.path.name, example_id=row.id, **about).row()

    return [_write_lines(out / "finetune" / f"{split}.jsonl", pairs(some)) for split, some in rows.items()]


FORMS: dict[str, Callable[[Index, Rows, Path], list[Path]]] = {
    "hf": write_parquet,
    "ragas": write_ragas,
    "beir": write_beir,
    "finetune": write_pairs,
}


def _sound(value: Any) -> Any:
    """Half characters (lone surrogates), which parquet's UTF-8 does not have, become question marks."""
    return json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))


def _write_lines(path: Path, rows: Iterable[Mapping[str, Any]]) -> Path:
    with replaced(_made(path)) as draft, draft.open("w", encoding="utf-8", errors="replace", newline="\n") as lines:
        for row in rows:
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")
    return path


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
