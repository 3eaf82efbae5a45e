"""Makes a data set of an index: collects rows, lets critics judge them, splits them, writes the forms and a card."""

import json
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy._internal.files import replaced
from kraq_dspy.apps.dataset.rows import SPLITS, Row, collect_rows, split_by_document
from kraq_dspy.asset.store.index import Index
from kraq_dspy.build.catalogue.sources import opened_catalogue
from kraq_dspy.build.catalogue.synthesize import AUDIENCE
from kraq_dspy.errors import ConfigError, IndexStateError, did_you_mean
from kraq_dspy.finetune.leaks import leak
from kraq_dspy.finetune.pairs import Pair
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Progress, SilentProgress
from kraq_dspy.programs.qa_search.critics import RateSyntheticPair, RereadSyntheticPair
from kraq_dspy.records import CatalogueEntry, Chunk, Summary
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.kept import StoredSteps

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


CRITICS = "dataset critics"


@dataclass(frozen=True, slots=True)
class DatasetPlan:
    """What goes in: answers of the catalogue that are approved, with `pending` also those that wait for review, with
    `unanswered` also questions without one; `passages` of evidence at most for each row.

    With `least` (1 to 5) every critic must rate a row that much for an `audience`; with `reread` the judge must give a
    row's answer again from its evidence, which small models do better than to rate. `forms` are names of FORMS,
    `licence` is that of the documents, for the card.
    """

    forms: tuple[str, ...] = ("hf",)
    pending: bool = False
    unanswered: bool = False
    passages: int = 20
    least: int | None = None
    reread: bool = False
    audience: str = AUDIENCE
    shares: tuple[float, float, float] = (0.8, 0.1, 0.1)
    seed: int = 0
    licence: str = "unknown"

    @property
    def is_judged(self) -> bool:
        return self.least is not None or self.reread


@dataclass(frozen=True, slots=True)
class DatasetReport:
    """`rows` by split; `left_out` by reason; `rejected` by the critic that did not let a row pass."""

    files: tuple[Path, ...]
    rows: Mapping[str, int]
    left_out: Mapping[str, int]
    rejected: Mapping[str, int]
    calls: int


def export_dataset(
    index: Index,
    out: Path,
    plan: DatasetPlan | None = None,
    *,
    models: LanguageModels | None = None,
    progress: Progress | None = None,
) -> DatasetReport:
    """Write the data set into the folder `out`, which is made; files of an earlier one are replaced.

    The critics ask the role "judge" of `models`, keep what they said in the index (open for writing, then), and ask
    nothing twice. Raises IndexStateError where no row is left, ConfigError for an unknown form, bad shares, two kinds
    of critics, or critics without models.
    """
    plan = plan or DatasetPlan()
    if plan.least is not None and plan.reread:
        raise ConfigError("Rows are rated (`least`) or read again (`reread`), not both; leave one out.")
    if unknown := [name for name in plan.forms if name not in FORMS]:
        near = did_you_mean(unknown[0], FORMS)
        raise ConfigError(f"There is no form {unknown[0]!r}{near}; there are: {', '.join(FORMS)}.")
    left_out: Counter[str] = Counter()
    rejected: Counter[str] = Counter()
    entries = _entries(index, plan)
    rows = list(collect_rows(index, entries, unanswered=plan.unanswered, passages=plan.passages, left_out=left_out))
    calls = 0
    if plan.is_judged:
        if models is None:
            raise ConfigError("The critics ask a model: hand `models` over, too.")
        before = index.results.calls(CRITICS)
        rows = run_coroutine(_judged(index, rows, plan, models, progress or SilentProgress(), left_out, rejected))
        calls = index.results.calls(CRITICS) - before
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
    report = DatasetReport(tuple(files), {name: len(some) for name, some in filled.items()}, left_out, rejected, calls)
    card = write_card(index, filled, plan, report, out)
    return DatasetReport((*files, card), report.rows, left_out, rejected, calls)


def _entries(index: Index, plan: DatasetPlan) -> list[CatalogueEntry]:
    """Never those that are stale: their documents say something else by now."""
    with opened_catalogue(index.path) as catalogue:
        if catalogue is None:
            return []
        return catalogue.entries("approved") + (catalogue.entries("pending") if plan.pending else [])


async def _judged(
    index: Index,
    rows: Sequence[Row],
    plan: DatasetPlan,
    models: LanguageModels,
    progress: Progress,
    left_out: Counter[str],
    rejected: Counter[str],
) -> list[Row]:
    """Those with an answer that every critic lets pass; questions without one are left out."""
    answered = {row.id: row for row in rows if row.answer is not None}
    left_out["without an answer"] += len(rows) - len(answered)
    judge = RereadSyntheticPair() if plan.reread else RateSyntheticPair(plan.audience, plan.least or 1)
    passed: set[str] = set()

    async def items() -> AsyncIterator[Item]:
        for row in answered.values():
            passage = "\n\n".join(chunk.passage for chunk in row.evidence)
            yield Item(row.id, {"question": row.question, "answer": row.answer, "passage": passage})

    judged = 0
    steps = StoredSteps(index.results, models, progress)
    try:
        async for done in steps.map(CRITICS, "judge", judge, items(), total=len(answered)):
            judged += 1
            if critic := done.prediction.rejected_by:
                rejected[critic] += 1
            else:
                passed.add(done.id)
    finally:
        await models.aclose()
        progress.finish(CRITICS)
    left_out["could not be judged"] = len(answered) - judged
    return [row for row in answered.values() if row.id in passed]


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


def write_card(
    index: Index, rows: Mapping[str, Sequence[Row]], plan: DatasetPlan, report: DatasetReport, out: Path
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


def _front_matter(rows: Mapping[str, Sequence[Row]], plan: DatasetPlan, total: int) -> str:
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


def _how(index: Index, rows: Sequence[Row], plan: DatasetPlan, report: DatasetReport) -> str:
    models = sorted({row.model for row in rows if row.model})
    origins = Counter(row.origin for row in rows)
    left_out = ", ".join(f"{count:,} {reason}" for reason, count in report.left_out.items() if count) or "none"
    lines = [
        f"- Questions by origin: {', '.join(f'{name} {count:,}' for name, count in sorted(origins.items()))}.",
        f"- Models that wrote questions: {', '.join(models) or 'none'}; of the index: "
        f"{', '.join(f'{role} {name}' for role, name in index.manifest.models.items()) or 'none'}.",
        f"- Answers: {'approved' if not plan.pending else 'approved, and pending a review'}, of the index's catalogue.",
        f"- Judged: {_of_judgement(plan, report)}.",
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


def _of_judgement(plan: DatasetPlan, report: DatasetReport) -> str:
    rejected = f"{sum(report.rejected.values()):,}"
    if plan.reread:
        return f"a model answered each again from its evidence; {rejected} came out otherwise and were left out"
    if plan.least is None:
        return "no critic was asked"
    return (
        "three critics (is it answered there, does anybody ask it, can it be understood alone?) rated each at least "
        f"{plan.least} of 5; they rejected {rejected}"
    )
