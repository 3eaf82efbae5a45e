"""Measures what vectors of questions for each passage add to the default retriever (HyPE, QuOTE).

    python benchmarks/passage_questions.py --data ../shared/data --out runs/hype --api-base URL musique

The generator that the server holds asks five questions about each passage, the first at temperature 0; they are kept,
so that an interrupted run goes on. A passage's `best` is the cosine of the user's question with the nearest of its
five. Recall of `adaptive` alone, with a share of `best` added (both scaled to 0..1 over the passages), of `best` alone
in place of the passages' own vectors, and of dense search. Differences from `adaptive`: paired, 95 % bootstrap.
"""

import argparse
import dataclasses
import json
import os
import random
from pathlib import Path

import dspy
import numpy as np

from kraq_dspy.asset.corpus.tokens import truncate_tokens
from kraq_dspy.eval.datasets import Dataset, load_dataset
from kraq_dspy.eval.metrics.retrieval import recall_at_k
from kraq_dspy.eval.statistics import bootstrap_difference
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.papers.tables.indexes import prepare_index, prepared
from kraq_dspy.ports import Embedder
from kraq_dspy.programs.kraq.describe import shown_summary
from kraq_dspy.programs.kraq.question_text import question_in
from kraq_dspy.records import Chunk, Document
from kraq_dspy.settings import RoleSettings, Settings
from kraq_dspy.signatures import GenerateQuestion
from kraq_dspy.workspace import Workspace

QUESTIONS = 5  # about each passage
SHARES = (0.25, 0.5, 1.0)
BUDGETS = (1, 5, 10)


def sample(dataset: Dataset, questions: int, passages: int) -> Dataset:
    """Questions with known evidence, and that evidence among other passages."""
    known = [example for example in dataset.examples if example.supporting_ids]
    random.Random(0).shuffle(known)
    chosen = tuple(dataclasses.replace(example, context_ids=()) for example in known[:questions])
    evidence = {document_id for example in chosen for document_id in example.supporting_ids}
    others = [document for document in dataset.documents if document.id not in evidence]
    random.Random(1).shuffle(others)
    documents = [document for document in dataset.documents if document.id in evidence]
    documents += others[: max(0, passages - len(documents))]
    return Dataset(f"{dataset.name}-{len(documents)}", tuple(documents), chosen)


def ask(documents: tuple[Document, ...], lm: dspy.LM, path: Path) -> dict[str, list[str]]:
    """The questions about each document, by its id; those in the file are not asked for again."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    questions_of = {row["id"]: row["questions"] for row in map(json.loads, lines)}
    generate = dspy.Predict(GenerateQuestion)
    with path.open("a", encoding="utf-8") as file, dspy.context(lm=lm, adapter=KraqAdapter()):
        for document in documents:
            if document.id in questions_of:
                continue
            text = shown_summary(document.title, truncate_tokens(document.text, 300))
            warm = ({}, *({"temperature": 0.8, "rollout_id": number} for number in range(1, QUESTIONS)))
            questions_of[document.id] = [
                question_in(generate(summary=text, config=dict(each)).question) for each in warm
            ]
            file.write(json.dumps({"id": document.id, "questions": questions_of[document.id]}) + "\n")
            file.flush()
    return questions_of


def rankings(
    space: Workspace, dataset: Dataset, questions_of: dict[str, list[str]], embedder: Embedder
) -> dict[str, list[list[str]]]:
    """By system, the ranking of documents for each question."""
    adaptive = space.retriever("adaptive")
    texts = [(document_id, text) for document_id, texts in questions_of.items() for text in texts if text]
    of_text = np.array([document_id for document_id, _ in texts])
    vectors = embedder.encode_queries([text for _, text in texts])
    chunks = list(space.index.all(Chunk))
    passages = space.index.chunk_vectors.vectors([chunk.id for chunk in chunks])
    ranking_of: dict[str, list[list[str]]] = {}
    for example in dataset.examples:
        vector = embedder.encode_queries([example.question])[0]
        hits = adaptive(example.question, len(chunks), vector=vector)
        base = scaled({hit.chunk.document_id: hit.score for hit in reversed(hits)})
        cosines = vectors @ vector
        best: dict[str, float] = {}
        for document_id, cosine in zip(of_text.tolist(), cosines.tolist(), strict=True):
            best[document_id] = max(best.get(document_id, -1.0), cosine)
        nearest = scaled(best)
        own = {chunk.document_id: float(cosine) for chunk, cosine in zip(chunks, passages @ vector, strict=True)}
        systems = {"adaptive": base, "dense": own, "best alone": nearest}
        for share in SHARES:
            systems[f"adaptive + {share:g} best"] = {
                document.id: base.get(document.id, 0.0) + share * nearest.get(document.id, 0.0)
                for document in dataset.documents
            }
        for name, scores in systems.items():
            ranking_of.setdefault(name, []).append(sorted(scores, key=lambda id: (-scores[id], id)))
    return ranking_of


def scaled(scores: dict[str, float]) -> dict[str, float]:
    low, high = min(scores.values()), max(scores.values())
    return {key: (value - low) / ((high - low) or 1.0) for key, value in scores.items()}


def report(dataset: Dataset, rankings: dict[str, list[list[str]]]) -> None:
    for k in BUDGETS:
        recall = {
            name: [
                recall_at_k(example.supporting_ids, ranking, k)
                for example, ranking in zip(dataset.examples, ranked, strict=True)
            ]
            for name, ranked in rankings.items()
        }
        cells = [f"{np.mean(recall['adaptive']):.3f}"]
        for name in recall:
            if name != "adaptive":
                difference = bootstrap_difference(recall[name], recall["adaptive"])
                cells.append(f"{name} {difference.estimate:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]")
        print(f"| {dataset.name}, {len(dataset.examples)} questions, recall@{k} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+", metavar="NAME")
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--api-base", required=True, help="of an OpenAI-compatible server that holds the generator")
    parser.add_argument("--questions", type=int, default=100)
    parser.add_argument("--passages", type=int, default=350)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("GENERATOR_KEY", "none")
    role = RoleSettings(model="openai/generator", api_base=options.api_base, api_key_env="GENERATOR_KEY", max_tokens=60)
    settings, embedder = prepared(Settings())
    for name in options.datasets:
        dataset = sample(load_dataset(name, options.data), options.questions, options.passages)
        questions_of = ask(dataset.documents, make_lm(role), options.out / f"{name}.jsonl")
        index = prepare_index(dataset, options.out / "indexes", settings, embedder)
        with Workspace.open(index.path, embedder=embedder) as space:
            report(dataset, rankings(space, dataset, questions_of, embedder))


if __name__ == "__main__":
    main()
