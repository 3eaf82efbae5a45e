"""Writes the rows of a data set in the forms that other tools read: Hugging Face, Ragas, BEIR, `kraq finetune`."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from kraq_dspy._internal.files import replaced
from kraq_dspy.apps.dataset.rows import Row
from kraq_dspy.asset.store.index import Index
from kraq_dspy.finetune.pairs import Pair, leak
from kraq_dspy.records import Chunk, Summary

Rows = Mapping[str, Sequence[Row]]
"""By split; none that is empty."""


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
