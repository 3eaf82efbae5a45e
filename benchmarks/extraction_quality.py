"""Measures how good the extractions of a model are: facts of essays, and the names and links that a large model found.

    python benchmarks/extraction_quality.py --limit 0          # the embedded engine and the given extractions
    python benchmarks/extraction_quality.py --lm gguf/qwen2.5-coder-1.5b.gguf --limit 20 --replies runs/extraction.jsonl
    python benchmarks/extraction_quality.py --lm hosted_vllm/local --api-base http://127.0.0.1:8801/v1 --free

`kg_mine`: 84 essays with 15 facts each. How much of each fact an extraction covers (`eval/metrics/facts.py`), beside
the extractions of KGGen, GraphRAG and OpenIE that the set has, and what the set's own judge said of those: the measure
counts words, so it flatters OpenIE, which copies. `musique`: names and links of Wikipedia passages against those that
gpt-3.5-turbo-1106 found. `--limit` takes that many passages, spread evenly over each set, and scores the given
extractions on the same ones. Intervals are 95 % BCa bootstraps over passages.

Every extraction is a line of `--replies` before the next: the same command goes on where it stopped, and a later run
scores what is there without a model. A passage that could not be read counts as an empty extraction.
"""

import argparse
import dataclasses
import gzip
import json
import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError, LMError
from graph_match import ExtractedGraph, fact_coverages, link_matches, name_matches
from rich.console import Console
from rich.table import Table
from stand_in import machine

from kraq_dspy.eval.statistics import bootstrap_mean
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.meter import Meter
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.optimize.step_metrics import Triple
from kraq_dspy.ports import Embedder
from kraq_dspy.programs.kraq.by_size import extractor
from kraq_dspy.settings import EncoderSettings, ExtractSettings, RoleSettings, Settings

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
SETS = ("kg_mine", "musique")
GIVEN = {"kg_mine": ("kggen", "graphrag", "stanford_openie"), "musique": ()}
Row = dict[str, Any]


class Replies:
    """Extractions by set, system and passage, each a line of a file."""

    def __init__(self, file: Path | None) -> None:
        self.file = file
        self.rows: dict[tuple[str, str, str], Row] = {}
        self._lock = threading.Lock()
        if file is not None and file.exists():
            for line in file.read_text("utf-8").splitlines():
                self._take(json.loads(line))

    def add(self, row: Row) -> None:
        with self._lock, self.file.open("a", encoding="utf-8") if self.file else nullcontext() as lines:
            self._take(row)
            if lines is not None:
                lines.write(json.dumps(row, ensure_ascii=False) + "\n")

    def systems(self) -> list[str]:
        return list(dict.fromkeys(system for _, system, _ in self.rows))

    def _take(self, row: Row) -> None:
        self.rows[row["set"], row["system"], row["passage_id"]] = row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--set", choices=SETS, action="append", help="both where not given")
    parser.add_argument("--lm", default="embedded", help='a model string; "none" only scores what --replies has')
    parser.add_argument("--api-base")
    parser.add_argument("--name", help="of the row; the model's where not given")
    parser.add_argument("--free", action="store_true", help="hold no reply to a schema")
    parser.add_argument("--preset", choices=("auto", "full", "small"), default="auto", help="[extract] preset")
    parser.add_argument("--threads", type=int, help="of a model in this process")
    parser.add_argument("--gleanings", type=int, default=0)
    parser.add_argument("--max-tokens", type=int, default=1500)
    parser.add_argument("--temperature", type=float, default=0.0)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--limit", type=int, default=20, help="passages of each set; 0 is all")
    parser.add_argument("--replies", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    embedder = load_embedder(EncoderSettings())
    replies = Replies(options.replies)
    rows: list[Row] = []
    for name in options.set or SETS:
        passages = spread(read(options.data / name / "corpus.jsonl.gz"), options.limit)
        if options.lm != "none":
            extract_all(name, passages, options, embedder, replies)
        rows += (kg_mine if name == "kg_mine" else musique)(options.data / name, passages, replies, embedder)
    print_rows(rows, as_json=options.json)


def extract_all(name: str, passages: Sequence[Row], options: Any, embedder: Embedder, replies: Replies) -> None:
    """Asks for the passages that the file does not have yet."""
    form = "none" if options.free else "auto"
    role = RoleSettings(
        model=options.lm,
        api_base=options.api_base,
        max_tokens=None if options.lm == "embedded" else options.max_tokens,
        temperature=options.temperature,
        structured=form,
        threads=options.threads,
    )
    meter, begun = Meter(), time.monotonic()
    lm = make_lm(role, embedder=embedder, meter=meter)
    system = options.name or options.lm + (" free" if options.free else "")
    extract_settings = ExtractSettings(preset=options.preset, gleanings=options.gleanings)
    program = extractor(Settings(extract=extract_settings, roles={"default": role}))

    def extract(passage: Row) -> None:
        row: Row = {"set": name, "system": system, "passage_id": passage["id"]}
        with dspy.context(lm=lm, adapter=KraqAdapter()):
            try:
                graph = program(passage=passage["text"])
            except (AdapterParseError, LMError) as error:  # costs the passage alone, and the table counts it
                replies.add({**row, "failure": f"{type(error).__name__}: {error}"[:300]})
                return
        replies.add({**row, "entities": [entity.name for entity in graph.entities], "links": links_of(graph)})

    missing = [passage for passage in passages if (name, system, passage["id"]) not in replies.rows]
    with ThreadPoolExecutor(options.concurrency) as pool:
        for number, _ in enumerate(pool.map(extract, missing), 1):
            if options.lm != "embedded":
                print(f"{name}: {number} of {len(missing)}", flush=True)
    spent, took = meter.total(), time.monotonic() - begun
    if spent.calls:
        print(
            f"{name}, {system}: {len(missing)} passages, {spent.calls} calls, {spent.prompt_tokens:,} prompt tokens, "
            f"{spent.completion_tokens:,} written, {took:.0f} s"
        )
    lm.engine.close()


def links_of(graph: Any) -> list[Triple]:
    """Relationships with their descriptions, and claims as links that have one end."""
    links = [(link.source, f"{link.predicate} {link.description}".strip(), link.target) for link in graph.relationships]
    return links + [(claim.subject, claim.statement, "") for claim in graph.claims]


def kg_mine(folder: Path, passages: Sequence[Row], replies: Replies, embedder: Embedder) -> Iterable[Row]:
    facts: dict[str, list[str]] = defaultdict(list)
    for fact in read(folder / "facts.jsonl.gz"):
        facts[fact["passage_id"]].append(fact["fact"])
    passage_ids = {passage["id"] for passage in passages}
    by_extractor: dict[str, list[Row]] = defaultdict(list)
    for row in read(folder / "triples.jsonl.gz"):
        if row["passage_id"] in passage_ids:
            by_extractor[row["extractor"]].append({**row, "links": row["triples"]})
    systems = {name: own_rows("kg_mine", name, passages, replies) for name in replies.systems()}
    for system, extractions in {**systems, **{name: by_extractor[name] for name in GIVEN["kg_mine"]}}.items():
        if not extractions:
            continue
        coverage = []
        for extraction in extractions:
            graph = ExtractedGraph(extraction.get("entities", []), [triple_of(link) for link in extraction["links"]])
            coverage.append(statistics.mean(fact_coverages(facts[extraction["passage_id"]], graph, embedder)))
        row = {"set": "kg_mine", "system": system, **sizes(extractions), "facts covered": interval(coverage)}
        if "facts_recovered" in extractions[0]:
            verdicts = [statistics.mean(extraction["facts_recovered"]) for extraction in extractions]
            row["facts by the set's judge"] = interval(verdicts)
        yield row


def musique(folder: Path, passages: Sequence[Row], replies: Replies, embedder: Embedder) -> Iterable[Row]:
    gold = {row["passage_id"]: row for row in read(folder / "triples.jsonl.gz")}
    for system in replies.systems():
        extractions = own_rows("musique", system, passages, replies)
        scores: dict[str, list[float]] = defaultdict(list)
        for extraction in extractions:
            reference = gold[extraction["passage_id"]]
            links = [triple_of(link) for link in extraction["links"] if link[2]]
            triples = whole_triples(reference["triples"])
            if reference["entities"]:
                matches = name_matches(reference["entities"], extraction.get("entities", []))
                scores["names: precision"].append(matches[0])
                scores["names: recall"].append(matches[1])
            if triples:
                matches = link_matches(triples, links)
                scores["links: precision"].append(matches[0])
                scores["links: recall"].append(matches[1])
        if extractions:
            named = {name: interval(values) for name, values in scores.items()}
            yield {"set": "musique", "system": system, **sizes(extractions), **named}


def triple_of(link: Sequence[Any]) -> Triple:
    subject, predicate, obj = map(str, link)
    return subject, predicate, obj


def whole_triples(links: Iterable[Sequence[Any]]) -> list[Triple]:
    """Those of three parts, none of them blank."""
    return [triple_of(link) for link in links if len(link) == 3 and all(str(part).strip() for part in link)]


def own_rows(name: str, system: str, passages: Sequence[Row], replies: Replies) -> list[Row]:
    rows = [replies.rows.get((name, system, passage["id"])) for passage in passages]
    return [{"entities": [], "links": [], **row} for row in rows if row is not None]


def sizes(extractions: Sequence[Row]) -> Row:
    return {
        "passages": len(extractions),
        "unreadable": sum("failure" in extraction for extraction in extractions),
        "names": round(statistics.mean(len(extraction["entities"]) for extraction in extractions), 1),
        "links": round(statistics.mean(len(extraction["links"]) for extraction in extractions), 1),
    }


def interval(scores: Sequence[float]) -> dict[str, float]:
    return {key: value for key, value in dataclasses.asdict(bootstrap_mean(scores)).items() if isinstance(value, float)}


def print_rows(rows: Sequence[Row], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"machine": machine(), "rows": rows}, indent=1))
        return
    console = Console(width=200)
    console.print(machine())
    for name in dict.fromkeys(row["set"] for row in rows):
        of_set = [row for row in rows if row["set"] == name]
        columns = list(dict.fromkeys(column for row in of_set for column in row if column != "set"))
        table = Table(title=name)
        for column in columns:
            table.add_column(column)
        for row in of_set:
            table.add_row(*[_cell(row.get(column, "")) for column in columns])
        console.print(table)


def _cell(value: Any) -> str:
    if isinstance(value, dict):
        return f"{value['estimate']:.3f} [{value['low']:.3f}, {value['high']:.3f}]"
    return str(value)


def spread(rows: Sequence[Row], limit: int) -> list[Row]:
    """`limit` of the rows at equal distances; all with 0."""
    if not limit or limit >= len(rows):
        return list(rows)
    return [rows[n * len(rows) // limit] for n in range(limit)]


def read(file: Path) -> list[Row]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


if __name__ == "__main__":
    main()
