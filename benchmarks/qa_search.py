"""QA search: how often the right prepared answer is found, how often a wrong one, and at what price.

    python benchmarks/qa_search.py [--data ../shared/data] [--sets NAME ...] [--asked 100] [--lm MODEL --api-base URL]
        [--smallest] [--scans NAME ...] [--markdown FILE] [--json]
    python benchmarks/qa_search.py --large 100000

FAQ caches are made of real questions; what is asked are other phrasings of them, and questions that are not there:

- banking77: an entry is a phrasing, its answer the intent; asked are other phrasings, and those of seven intents that
  the FAQ cache lacks;
- squad: questions, and the paraphrases of a half of them; those of the other half are not there;
- medical_question_pairs: questions; doctors' rewritings, and their questions in similar words with another meaning;
- cmu_wiki_qa, xquad_de, xquad_zh: sets without paraphrases: asked are key words, made by a rule;
- squad asked in German and in Chinese (xquad's translations).

The default model is the embedded one, which compares sentence embeddings and words: it shows what the search makes of a
weak matcher. A real one: --lm hosted_vllm/NAME --api-base URL; with `--smallest` it is asked about the smallest
FAQ cache of each set alone, in a few settings. `--large` times what a search asks of an FAQ cache of that size, without
a model and with random vectors.
"""

import argparse
import dataclasses
import gzip
import json
import random
import re
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import dspy
import numpy as np
from rich.console import Console
from rich.progress import Progress
from scipy.stats import binomtest

from kraq_dspy.asset.store.faq import FaqCache, NewEntry
from kraq_dspy.asset.store.served_answers import ServedAnswers
from kraq_dspy.asset.store.vectors import LocalVectorStore
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.ports import Embedder, Vectors
from kraq_dspy.programs.qa_search.near_miss import FUNCTION, contradiction
from kraq_dspy.programs.qa_search.program import SCANS, QASearch
from kraq_dspy.settings import RoleSettings, Settings

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
BLOCKS = (30, 100, 300)
SIMILARITIES = (0.7, 0.8, 0.9)
Setting = tuple[str, int, str, float]
"""Scan, block, check and least similarity of a search."""
SIZES = (300, 1_000, 3_000, 10_000)
HAN_FUNCTION = re.compile(r"[的了是吗呢在有和与？。，]")


@dataclass(frozen=True)
class Case:
    """(question, answer) of the FAQ cache; (question, right answer) of what is asked, "" for what is not there."""

    name: str
    entries: Sequence[tuple[str, str]]
    queries: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Figures:
    """Shares with 95 % Wilson intervals (share, low, high); None where nothing was counted.

    `precision` is the share of right answers among all hits, `recall` among the questions that are there, `false_hits`
    the share of those that are not there and got an answer.
    """

    case: str
    entries: int
    scan: str
    block: int
    check: str
    similarity: float
    precision: tuple[float, float, float] | None
    recall: tuple[float, float, float] | None
    false_hits: tuple[float, float, float] | None
    calls: float
    median_ms: float
    p95_ms: float


class Remembering:
    """An embedder that embeds each text once: what is measured is the search, not the embedded model's encoder."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder = embedder
        self.name, self.dimension = embedder.name, embedder.dimension
        self._known: dict[tuple[str, str], Any] = {}

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self._encode("query", texts, self.embedder.encode_queries)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        return self._encode("passage", texts, self.embedder.encode_passages)

    def _encode(self, kind: str, texts: Sequence[str], encode: Callable[[Sequence[str]], Vectors]) -> Vectors:
        missing = [text for text in dict.fromkeys(texts) if (kind, text) not in self._known]
        if missing:
            self._known.update({(kind, text): row for text, row in zip(missing, encode(missing), strict=True)})
        return np.stack([self._known[kind, text] for text in texts])


class Random:
    """Vectors that depend on the text and mean nothing."""

    name, dimension = "random", 384

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        rows = np.stack([np.random.default_rng(list(text.encode())).standard_normal(self.dimension) for text in texts])
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows.astype(np.float32, copy=False)

    encode_passages = encode_queries


class Nothing(dspy.Module):
    """Stands behind the FAQ cache and says nothing."""

    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(answer="-", hits=[])


def rows_of(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def key_words(text: str) -> str:
    """The question as somebody types it in haste: without function words, or Chinese particles and stops."""
    if re.search(r"[\u3400-\u9fff]", text):
        return HAN_FUNCTION.sub("", text)
    words = [word for word in re.findall(r"[\w'’.-]*\w", text) if word.casefold() not in FUNCTION]
    return " ".join(words) or text


def banking(data: Path, n: int, dice: random.Random) -> Iterator[Case]:
    rows = rows_of(data / "banking77" / "utterances.jsonl.gz")
    dice.shuffle(rows)
    absent = set(dice.sample(sorted({row["intent"] for row in rows}), 7))
    there = [(row["question"], row["intent"]) for row in rows if row["intent"] not in absent]
    others = [(row["question"], "") for row in rows if row["intent"] in absent][:n]
    queries, left = there[:n], there[n:]
    for size in SIZES:
        yield Case("banking77", left[:size], [*queries, *others])


def with_absent(name: str, pairs: list[tuple[str, str]], sizes: Sequence[int], n: int) -> Iterator[Case]:
    """`pairs` are (stored question, what is asked). The last `n` are not stored."""
    absent = [(query, "") for _, query in pairs[-n:]]
    for size in sizes:
        stored = [(question, f"{number}") for number, (question, _) in enumerate(pairs[: min(size, len(pairs) - n)])]
        step = max(1, len(stored) // n)
        queries = [(pairs[int(answer)][1], answer) for _, answer in stored[::step][:n]]
        yield Case(name, stored, [*queries, *absent])
        if size >= len(pairs) - n:
            return


def shuffled(pairs: Sequence[tuple[str, str]], dice: random.Random) -> list[tuple[str, str]]:
    """Each stored question once."""
    unique = list(dict(pairs).items())
    dice.shuffle(unique)
    return unique


def squad(data: Path, n: int, dice: random.Random) -> Iterator[Case]:
    rows = [row for row in rows_of(data / "squad" / "questions.jsonl.gz") if row.get("paraphrase")]
    yield from with_absent("squad", shuffled([(r["question"], r["paraphrase"]) for r in rows], dice), [300, 10_000], n)


def medical(data: Path, n: int, dice: random.Random) -> Iterator[Case]:
    rows = rows_of(data / "medical_question_pairs" / "groups.jsonl.gz")
    dice.shuffle(rows)
    for size in (300, len(rows)):
        some = rows[:size]
        queries = [(text, row["id"]) for row in some for text in row["same"][:1]][:n]
        different = [(text, "") for row in some for text in row["different"][:1]][:n]
        yield Case("medical_question_pairs", [(row["question"], row["id"]) for row in some], [*queries, *different])


def by_rule(name: str) -> Callable[[Path, int, random.Random], Iterator[Case]]:
    def cases(data: Path, n: int, dice: random.Random) -> Iterator[Case]:
        rows = rows_of(data / name / "questions.jsonl.gz")
        pairs = shuffled([(row["question"], key_words(row["question"])) for row in rows], dice)
        yield from with_absent(f"{name}, key words", pairs, [300, 10_000], n)

    return cases


def translated(name: str) -> Callable[[Path, int, random.Random], Iterator[Case]]:
    def cases(data: Path, n: int, dice: random.Random) -> Iterator[Case]:
        english = {row["id"]: row["question"] for row in rows_of(data / "squad" / "questions.jsonl.gz")}
        rows = [row for row in rows_of(data / name / "questions.jsonl.gz") if row["id"] in english]
        pairs = shuffled([(english[row["id"]], row["question"]) for row in rows], dice)
        yield from with_absent(f"squad, asked as in {name}", pairs, [300], n)

    return cases


SETS: dict[str, Callable[[Path, int, random.Random], Iterator[Case]]] = {
    "banking77": banking,
    "squad": squad,
    "medical_question_pairs": medical,
    "cmu_wiki_qa": by_rule("cmu_wiki_qa"),
    "xquad_de": by_rule("xquad_de"),
    "xquad_zh": by_rule("xquad_zh"),
    "german": translated("xquad_de"),
    "chinese": translated("xquad_zh"),
}


UNASKED: list[Setting] = [("nearest", 1, "rules", similarity) for similarity in (0.0, *SIMILARITIES)]
FEW_SETTINGS: list[Setting] = [*UNASKED, ("nearest", 1, "model", 0.0), ("narrow", 100, "model", 0.0)]
ALL_SETTINGS: list[Setting] = [
    *[(scan, block, "model", 0.0) for scan in ("narrow", "full") for block in BLOCKS],
    ("narrow", 100, "rules", 0.0),
    ("narrow", 100, "none", 0.0),
    ("nearest", 1, "model", 0.0),
    *UNASKED,
]


def measure(
    case: Case,
    settings: Sequence[Setting],
    folder: Path,
    lm: dspy.LM,
    embedder: Embedder,
) -> Iterator[Figures]:
    faq = FaqCache(folder / "faq.db")
    store = LocalVectorStore(folder / "vectors", embedder.dimension)
    try:
        faq.add_all([NewEntry(question, answer) for question, answer in case.entries], by="benchmark")
        answers = ServedAnswers(faq, store, embedder)
        for scan, block, check, similarity in settings:
            search = QASearch(
                Nothing(), answers, block=block, scan=scan, check=check, collect=False, similarity=similarity
            )
            search.set_lm(lm)
            yield figures(case, len(answers.entries()), search)
    finally:
        store.close()
        faq.close()


def figures(case: Case, entries: int, search: QASearch) -> Figures:
    hits = right = there = absent = false_hits = 0
    calls, seconds = [], []
    for question, answer in case.queries:
        started = perf_counter()
        with dspy.context(adapter=KraqAdapter()):
            prediction = search(question=question)
        seconds.append(perf_counter() - started)
        calls.append(prediction.search.calls)
        hit = prediction.source == "faq"
        hits += hit
        right += hit and prediction.answer == answer
        there += bool(answer)
        absent += not answer
        false_hits += hit and not answer
    return Figures(
        case.name,
        entries,
        search.scan,
        search.block,
        search.check,
        search.similarity,
        share(right, hits),
        share(right, there),
        share(false_hits, absent),
        statistics.mean(calls),
        1000 * statistics.median(seconds),
        1000 * float(np.percentile(seconds, 95)),
    )


def large(size: int, folder: Path) -> dict[str, float]:
    """Seconds of what a search asks of an FAQ cache; of repeated ones the median of 50."""
    faq, store = FaqCache(folder / "faq.db"), LocalVectorStore(folder / "vectors", Random.dimension)
    taken: dict[str, float] = {}

    def timed(name: str, work: Callable[[], Any], times: int = 1) -> None:
        seconds = []
        for _ in range(times):
            started = perf_counter()
            work()
            seconds.append(perf_counter() - started)
        taken[name] = statistics.median(seconds)

    try:
        texts = [f"How is part {number} of machine {number % 97} put in place?" for number in range(size)]
        timed("add all", lambda: faq.add_all([NewEntry(text, "So.") for text in texts], by="benchmark"))
        answers = ServedAnswers(faq, store, Random())
        timed("read all", lambda: answers.exact(""))
        timed("store vectors", lambda: answers.nearest(texts[0], 1))
        timed("word for word", lambda: answers.exact(texts[-1]), 50)
        timed("the 100 nearest", lambda: answers.nearest(texts[-1], 100), 50)
        timed("add one", lambda: faq.add(NewEntry("A new one?", "So."), by="benchmark"))
        timed("the 100 nearest, after a change", lambda: answers.nearest(texts[-1], 100))
        return taken
    finally:
        store.close()
        faq.close()


def fitted(case: Case, embedder: Embedder, most: float) -> str:
    """A line: the least similarity whose false hits among half of the questions are at most `most`, and what comes of
    it for the other half. Nearest entry, rules."""
    near = embedder.encode_queries([text for text, _ in case.queries])
    near = near @ embedder.encode_queries([text for text, _ in case.entries]).T
    rows = []
    for (question, answer), place, cosine in zip(case.queries, near.argmax(axis=1), near.max(axis=1), strict=True):
        stored, own = case.entries[place]
        rows.append((0.0 if contradiction(question, stored) else cosine, bool(answer), bool(answer) and own == answer))
    cosines, there, right = (np.array(column) for column in zip(*rows, strict=True))
    dev, test = np.split(np.random.default_rng(0).permutation(len(rows)), [len(rows) // 2])

    def at(least: float, part: Any) -> tuple[str, float]:
        hit, absent = cosines[part] >= least, ~there[part]
        shares = (
            share(int((hit & right[part]).sum()), int(there[part].sum())),
            share(int((hit & absent).sum()), int(absent.sum())),
        )
        texts = (f"{each[0]:.3f} [{each[1]:.3f}, {each[2]:.3f}]" if each else "-" for each in shares)
        return " | ".join(texts), shares[1][0] if shares[1] else 0.0

    least = min(each for each in [*np.unique(cosines), 1.0] if at(each, dev)[1] <= most or each == 1.0)
    return f"| {case.name} | {len(case.entries):,} | {least:.3f} | {at(least, test)[0]} |"


def share(count: int, total: int) -> tuple[float, float, float] | None:
    if not total:
        return None
    interval = binomtest(count, total).proportion_ci(method="wilson")
    return count / total, float(interval.low), float(interval.high)


def markdown(rows: Sequence[Figures]) -> str:
    lines = [
        "| set | entries | scan | block | check | similarity | precision | recall | false hits | calls "
        "| ms, median | p95 |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        shares = " | ".join(
            "-" if part is None else f"{part[0]:.3f} [{part[1]:.3f}, {part[2]:.3f}]".replace("0.", ".")
            for part in (row.precision, row.recall, row.false_hits)
        )
        lines.append(
            f"| {row.case} | {row.entries:,} | {row.scan} | {row.block} | {row.check} | {row.similarity:g} | {shares} "
            f"| {row.calls:.1f} | {row.median_ms:.0f} | {row.p95_ms:.0f} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=DATA, help="folder of the data sets")
    parser.add_argument("--sets", nargs="*", choices=SETS, default=list(SETS), metavar="NAME", help=", ".join(SETS))
    parser.add_argument("--asked", type=int, default=100, help="questions that are there, and as many that are not")
    parser.add_argument("--lm", default="embedded", help="the model that matches")
    parser.add_argument("--api-base", help="where it is served")
    parser.add_argument("--smallest", action="store_true", help="each set's smallest FAQ cache, in a few settings")
    parser.add_argument("--scans", nargs="+", choices=SCANS, default=list(SCANS), help="settings with these alone")
    parser.add_argument("--markdown", type=Path, help="write the table to this file")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--fit", type=float, metavar="SHARE", help="fit the similarity on half, for so many false hits")
    parser.add_argument("--large", type=int, metavar="N", help="time an FAQ cache of N entries instead")
    options = parser.parse_args()
    if options.large:
        with tempfile.TemporaryDirectory() as folder:
            taken = large(options.large, Path(folder))
        json.dump(taken, sys.stdout, indent=2)
        return
    embedder = Remembering(load_embedder(Settings().encoder))
    if options.fit is not None:
        print("| set | entries | similarity | recall | false hits |\n|---|---|---|---|---|")
        for name in options.sets:
            cases = list(SETS[name](options.data, options.asked, random.Random(0)))
            for case in cases[:1] if options.smallest else cases:
                print(fitted(case, embedder, options.fit), flush=True)
        return
    role = RoleSettings() if options.lm == "embedded" else RoleSettings(model=options.lm, api_base=options.api_base)
    lm = make_lm(role, embedder=embedder)
    rows: list[Figures] = []
    console = Console(stderr=True)
    with Progress(console=console, disable=not console.is_terminal) as progress:
        by_set = [list(SETS[name](options.data, options.asked, random.Random(0))) for name in options.sets]
        cases = [case for some in by_set for case in (some[:1] if options.smallest else some)]
        settings = [each for each in (FEW_SETTINGS if options.smallest else ALL_SETTINGS) if each[0] in options.scans]
        bar = progress.add_task("settings", total=len(cases) * len(settings))
        for case in cases:
            with tempfile.TemporaryDirectory() as folder:
                for row in measure(case, settings, Path(folder), lm, embedder):
                    rows.append(row)
                    progress.advance(bar)
                    if options.markdown:
                        options.markdown.write_text(markdown(rows), "utf-8")
    if options.json:
        json.dump([dataclasses.asdict(row) for row in rows], sys.stdout, indent=2)
    elif not options.markdown:
        print(markdown(rows))


if __name__ == "__main__":
    main()
