"""Compares equal numbers of questions about one corpus: KRAQ's, Random's, RAGAS's, DeepEval's, and people's own.

    python benchmarks/question_sets/run.py --model models/qwen2.5-coder-0.5b.gguf \\
        [--judge models/qwen2.5-coder-1.5b.gguf] [--tuned models/smollm2-135m.gguf] [--data ../shared/data]
        [--questions 24] [--systems kraq ragas ...] [--out runs/question_sets] [--json]

Forty paragraphs of eight articles of squad. Every generator asks the same small model, which llama.cpp serves; RAGAS
and DeepEval run in environments of their own, made under --out. What was made and judged is kept there and not made
again: the same command goes on, and a file of made/ that is deleted is made anew. KRAQ's graph and summaries are the
embedded model's, so that the sets differ in how they are asked. Without --judge nothing is said of answers.
"""

import argparse
import json
import os
import random
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script finds what is beside it, not what is above

from peers.environments import python_of
from peers.process import run_measured, served
from peers.run import tokenizers
from question_sets.corpus import Corpus, in_turn, read_corpus
from question_sets.judge import Pair, judge, threshold, told_apart
from question_sets.measures import (
    RETRIEVERS,
    SCORES,
    MadeQuestion,
    agreement_interval,
    covered,
    found_documents,
    is_question,
    nearest_source,
    rank_agreement,
    repeats,
    same_sized,
    scored,
    self_bleu,
)
from question_sets.systems import ALL, BY_NAME, System
from question_sets.table import cost_table, quality_table, ranking_table
from stand_in import machine

from kraq_dspy.asset.store.index import Index
from kraq_dspy.eval.metrics.generation import BertScorer
from kraq_dspy.eval.metrics.questions import question_relevance
from kraq_dspy.eval.statistics import bootstrap_difference, bootstrap_mean
from kraq_dspy.eval.tables.data import prepare_index, prepared
from kraq_dspy.programs.kraq.describe import shown_summary
from kraq_dspy.records import Chunk, Community, Entity, Summary
from kraq_dspy.settings import Settings
from kraq_dspy.workspace import Workspace

HERE = Path(__file__).resolve().parent
BENCHMARKS = HERE.parent
PEOPLE = "people"
LEAST = 8  # a set with fewer questions is told of, and not compared
Rows = list[dict[str, Any]]


class Bench:
    """A folder `out` with environments, the index, and what each system made."""

    def __init__(self, out: Path, corpus: Corpus, *, questions: int, minutes: float) -> None:
        self.out, self.corpus = out, corpus
        self.questions, self.minutes = questions, minutes
        self.settings, self.embedder = prepared(Settings())

    @cached_property
    def index(self) -> Path:
        """With graph, summaries and questions by the embedded model."""
        return prepare_index(self.corpus.dataset, self.out / "index", self.settings, self.embedder).path

    @cached_property
    def surroundings(self) -> Path:
        """The same of all passages among which retrievers search."""
        return prepare_index(self.corpus.surroundings, self.out / "index", self.settings, self.embedder).path

    def find(self, texts: Sequence[str]) -> dict[str, dict[str, list[str]]]:
        """By retriever and question the ids of documents, best first; kept beside the index."""
        kept = self.surroundings.with_suffix(".hits.json")
        hits: dict[str, dict[str, list[str]]] = json.loads(kept.read_text("utf-8")) if kept.exists() else {}
        with Workspace.open(self.surroundings, embedder=self.embedder) as space:
            for name in RETRIEVERS:
                known, retrieve = hits.setdefault(name, {}), space.retriever(name)
                known.update({text: found_documents(retrieve, text) for text in texts if text not in known})
        kept.write_text(json.dumps(hits), "utf-8")
        return hits

    def items(self, shown: str) -> Rows:
        """What generators are shown, more than they are to ask about: some will fail."""
        if shown == "passage":
            return [{"id": id, "passage": self.corpus.passage(id), "sources": [id]} for id in in_turn(self.corpus)]
        with Index.open(self.index) as index:
            if shown == "summary":
                return summary_items(index)
            limits = self.settings.questions.random_least, self.settings.questions.random_most
            return random_items(list(index.all(Chunk)), 2 * self.questions, limits)

    def ask(self, system: System, server: str | None, tuned: str) -> None:
        """What is missing is made; nothing is begun after `minutes`."""
        made = self.out / "made" / f"{system.name}.jsonl"
        items = self.out / "items" / f"{system.shown}.jsonl"
        for path in (made, items, self.out / "jobs" / "x"):
            path.parent.mkdir(parents=True, exist_ok=True)
        items.write_text(
            "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in self.items(system.shown)), "utf-8"
        )
        options = dict(system.options)
        if str(options.get("model", "")).startswith("gguf/"):
            options |= {"model": f"gguf/{tuned}", "threads": 1, "slots": 1}
        task = {
            "items": str(items),
            "out": str(made),
            "questions": self.questions,
            "until": time.time() + 60 * self.minutes,
            "server": server if system.is_served else None,
            "options": options,
        }
        job = self.out / "jobs" / f"{system.name}.json"
        job.write_text(json.dumps(task, indent=1), "utf-8")
        log = self.out / "logs" / f"{system.name}.log"
        command = [str(python_of(system.peer, self.out)), str(HERE / "inside" / system.script), "ask", str(job)]
        taken = run_measured(command, environment_of(system), log)
        if taken.exit_code:
            raise RuntimeError(f"{system.title}: exit code {taken.exit_code}; see {log}")

    def made(self, system: System) -> tuple[list[MadeQuestion], dict[str, Any]]:
        """The questions, and what they cost with those that failed."""
        path = self.out / "made" / f"{system.name}.jsonl"
        rows = rows_of(path) if path.exists() else []
        sources = {item["id"]: tuple(item["sources"]) for item in self.items(system.shown)}
        questions = [MadeQuestion(row["question"], sources[row["id"]]) for row in rows if "question" in row]
        return questions, costs(rows)

    @property
    def references(self) -> list[MadeQuestion]:
        return [MadeQuestion(each.question, each.supporting_ids) for each in self.corpus.references]

    @property
    def held_out(self) -> list[MadeQuestion]:
        return [MadeQuestion(each.question, each.supporting_ids) for each in self.corpus.held_out]


def summary_items(index: Index, seed: int = 0) -> Rows:
    """Summaries of communities of all levels, in an order drawn by the seed."""
    communities = {community.id: community for community in index.all(Community)}
    document_of = index.reading_order()
    items = [
        {
            "id": summary.community_id,
            "summary": shown_summary(summary.title, summary.text),
            "sources": list(dict.fromkeys(document_of[id] for id in communities[summary.community_id].chunk_ids)),
        }
        for summary in sorted(index.all(Summary), key=lambda each: each.community_id)
    ]
    random.Random(seed).shuffle(items)
    return items


def random_items(chunks: Sequence[Chunk], count: int, limits: tuple[int, int], seed: int = 0) -> Rows:
    """As many draws of `limits` chunks each, uniformly and without repeats, as the baseline Random makes them."""
    draw = random.Random(seed)
    draws = [draw.sample(list(chunks), min(draw.randint(*limits), len(chunks))) for _ in range(count)]
    return [
        {
            "id": f"random-{number}",
            "passages": [chunk.passage for chunk in drawn],
            "sources": list(dict.fromkeys(chunk.document_id for chunk in drawn)),
        }
        for number, drawn in enumerate(draws)
    ]


def costs(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Sums over all that was tried; `calls` and what follows are None where the server was not asked."""
    made = sum("question" in row for row in rows)
    sums: dict[str, Any] = {"made": made, "tried": len(rows), "seconds": sum(row["seconds"] for row in rows)}
    names = ("calls", "prompt_tokens", "written_tokens", "cut", "refused")
    served = [row["asked"] for row in rows if row.get("asked")]
    return sums | {name: sum(counts[name] for counts in served) if served else None for name in names}


def environment_of(system: System) -> dict[str, str]:
    environment = {
        **os.environ,
        "TIKTOKEN_CACHE_DIR": str(tokenizers()),
        "OPENAI_API_KEY": "not-needed",
        "RAGAS_DO_NOT_TRACK": "true",
        "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
        "HF_HUB_OFFLINE": "1",
    }
    environment.pop("PYTHONPATH", None)
    return environment | ({"PYTHONPATH": str(BENCHMARKS.parent)} if system.peer is None else {})


def make(bench: Bench, systems: Sequence[System], model: Path, tuned: str, threads: int) -> None:
    """Every set that is not complete; the server is started if one of them needs it."""
    open_ones = [system for system in systems if bench.made(system)[1]["made"] < bench.questions]
    needs_server = any(system.is_served for system in open_ones)
    with (
        served(BENCHMARKS / "model_server.py", str(model), "--threads", str(threads))
        if needs_server
        else nullcontext() as server
    ):
        for system in open_ones:
            print(f"{system.title} ...", file=sys.stderr, flush=True)
            try:
                bench.ask(system, server, tuned)
            except RuntimeError as error:
                print(error, file=sys.stderr, flush=True)


def measure(bench: Bench, sets: Mapping[str, Sequence[MadeQuestion]], similarity: float) -> dict[str, dict[str, Any]]:
    """What needs no judge, by the name of the set; all sets have one size. Relevance is also told as the difference
    from "kraq", paired by people's questions, and agreement with people's ranking by every score."""
    embedder, scorer = bench.embedder, BertScorer.packaged()
    references = bench.references
    with Workspace.open(bench.index, embedder=embedder) as space:
        passages = space.index.chunk_vectors.vectors(space.index.ids(Chunk))
        names = sorted({entity.name for entity in space.index.all(Entity)})
    hits = bench.find(list(dict.fromkeys(q.text for questions in (references, *sets.values()) for q in questions)))
    by_people = {score: scored(references, hits, score) for score in SCORES}
    relevance = {
        name: question_relevance([q.text for q in references], [q.text for q in questions], embedder, scorer).f1
        for name, questions in sets.items()
    }
    rows = {}
    for name, questions in sets.items():
        asked = [question.text for question in questions]
        vectors = embedder.encode_queries(asked)
        ranked = {score: scored(questions, hits, score) for score in SCORES}
        rows[name] = {
            "questions": len(asked),
            "are_questions": sum(map(is_question, asked)) / len(asked),
            "words": sorted(len(text.split()) for text in asked)[len(asked) // 2],
            "covered": asdict(covered(vectors, passages, asked, names)),
            "duplicates": sum(repeats(asked, vectors, similarity)) / len(asked),
            "self_bleu": ends(bootstrap_mean(self_bleu(asked))),
            "relevance": ends(bootstrap_mean(relevance[name])),
            "relevance_from_kraq": ends(bootstrap_difference(relevance[name], relevance["kraq"]))
            if "kraq" in sets and name != "kraq"
            else None,
            "means": {score: {r: float(sum(v) / len(v)) for r, v in ranked[score].items()} for score in SCORES},
            "agreement": {
                score: {
                    "rho": rank_agreement(ranked[score], by_people[score]),
                    "interval": agreement_interval(ranked[score], by_people[score]),
                }
                for score in SCORES
            },
        }
    return rows


def people_rank(bench: Bench, size: int) -> dict[str, Any]:
    """How people's questions rank the retrievers, and how well so many of them agree with the others."""
    everything = [*bench.references, *bench.held_out]
    hits = bench.find([question.text for question in everything])
    ranked = {score: scored(everything, hits, score) for score in SCORES}
    return {
        "means": {score: {r: float(sum(v) / len(v)) for r, v in ranked[score].items()} for score in SCORES},
        "same_sized": {score: same_sized(ranked[score], size) for score in SCORES},
    }


def judged(bench: Bench, sets: Mapping[str, Sequence[MadeQuestion]], model: Path, threads: int) -> dict[str, Any]:
    """The share of each set that are questions which, so the judge, their passage answers, and how well the judge tells
    known pairs apart. Of several passages that a question came from, the one nearest to it is judged."""
    documents = [document.id for document in bench.corpus.dataset.documents]
    encoded = bench.embedder.encode_passages([bench.corpus.passage(id) for id in documents])
    vectors = dict(zip(documents, encoded, strict=True))

    def pair(question: MadeQuestion, id: str | None = None) -> Pair:
        if id is None:
            vector = bench.embedder.encode_queries([question.text])[0]
            id = nearest_source(vector, question.sources, vectors)
        return Pair(id, bench.corpus.passage(id), question.text)

    known = bench.references[: 2 * bench.questions]
    answered = [pair(question) for question in known]
    unanswered = [pair(question, other_paragraph(bench.corpus, question.sources[0])) for question in known]
    pairs = {name: [pair(question) for question in questions] for name, questions in sets.items()}
    everything = [*answered, *unanswered, *(each for some in pairs.values() for each in some)]
    with served(BENCHMARKS / "model_server.py", str(model), "--threads", str(threads)) as server:
        yes = judge(everything, server, bench.out / f"judged-{model.stem}.jsonl")
    right, wrong = ([yes[each.key] for each in some] for some in (answered, unanswered))
    cut = threshold(right, wrong)
    shares = {
        name: ends(bootstrap_mean([float(yes[each.key] >= cut and is_question(each.question)) for each in some]))
        for name, some in pairs.items()
    }
    return {
        "shares": shares,
        "judge": model.stem,
        "told_apart": told_apart(right, wrong),
        "threshold": cut,
        "of_answered": sum(p >= cut for p in right) / len(right),
        "of_unanswered": sum(p >= cut for p in wrong) / len(wrong),
    }


def spread(questions: Sequence[MadeQuestion], title_of: Mapping[str, str], size: int) -> list[MadeQuestion]:
    """`size` of the questions, the first of each article before the second of any: a few of one set must not be about
    fewer articles than those of another by the order in which they were made. A question is of its first source's."""
    turns: Counter[str] = Counter()
    places = []
    for place, question in enumerate(questions):
        title = title_of[question.sources[0]]
        places.append((turns[title], place))
        turns[title] += 1
    return [questions[place] for _, place in sorted(places)[:size]]


def other_paragraph(corpus: Corpus, document_id: str) -> str:
    """The next paragraph of the same article; after the last the first."""
    title = next(document.title for document in corpus.dataset.documents if document.id == document_id)
    ids = [document.id for document in corpus.dataset.documents if document.title == title]
    return ids[(ids.index(document_id) + 1) % len(ids)]


def ends(interval: Any) -> list[float]:
    return [interval.estimate, interval.low, interval.high]


def rows_of(path: Path) -> Rows:
    """A last line that was broken off is left out."""
    return [json.loads(line) for line in path.read_text("utf-8").split("\n")[:-1] if line]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [system.name for system in ALL]
    parser.add_argument("--model", type=Path, required=True, help="a GGUF file: what the generators ask")
    parser.add_argument("--judge", type=Path, help="a GGUF file: what says whether a question has an answer")
    parser.add_argument(
        "--tuned", default="smollm2-135m", help="the file that the packaged adapter is for, or its name"
    )
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--systems", nargs="+", choices=names, default=names)
    parser.add_argument("--questions", type=int, default=24, help="of each set")
    parser.add_argument("--minutes", type=float, default=60, help="after so many a system begins no question")
    parser.add_argument("--threads", type=int, default=1, help="of llama.cpp")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/question_sets"), help="kept: environments, what was made"
    )
    parser.add_argument("--json", action="store_true", help="a JSON object instead of tables")
    options = parser.parse_args()
    systems = [BY_NAME[name] for name in options.systems]
    corpus = read_corpus(options.data, held_out=options.questions)
    bench = Bench(options.out.resolve(), corpus, questions=options.questions, minutes=options.minutes)
    bench.out.mkdir(parents=True, exist_ok=True)
    make(bench, systems, options.model, options.tuned, options.threads)
    kept = {system.name: bench.made(system) for system in systems}
    compared = {PEOPLE: bench.held_out} | {name: some for name, (some, _) in kept.items() if len(some) >= LEAST}
    size = min(map(len, compared.values()))
    title_of = {document.id: document.title for document in corpus.dataset.documents}
    sets = {name: spread(some, title_of, size) for name, some in compared.items()}
    figures: dict[str, Any] = {
        "machine": machine(),
        "model": options.model.stem,
        "corpus": {"passages": len(corpus.dataset.documents), "references": len(corpus.references), "size": size},
        "costs": {name: cost for name, (_, cost) in kept.items()},
        "sets": measure(bench, sets, bench.settings.questions.duplicate_similarity),
        "people": people_rank(bench, size),
        "judged": judged(bench, sets, options.judge, options.threads) if options.judge else None,
    }
    if options.json:
        print(json.dumps(figures, indent=1))
        return
    titles = {PEOPLE: "people", **{system.name: system.title for system in ALL}}
    print(f"{figures['machine']}, {figures['model']}, {figures['corpus']}\n")
    print(cost_table(figures["costs"], titles), "\n")
    print(quality_table(figures["sets"], titles, (figures["judged"] or {}).get("shares")), "\n")
    print(ranking_table(figures["sets"], titles, figures["people"]["same_sized"]))
    if figures["judged"]:
        told = {name: value for name, value in figures["judged"].items() if name != "shares"}
        print(f"\njudge: {told}")


if __name__ == "__main__":
    main()
