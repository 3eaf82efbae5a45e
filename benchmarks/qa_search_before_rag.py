"""QA search in front of RAG against RAG alone: what prepared answers add, and their price (QA search paper, figure 5).

    python benchmarks/qa_search_before_rag.py answers.jsonl --lm gguf/qwen2.5-coder-1.5b.gguf [--data ../shared/data]

Half of what is asked are other phrasings of questions with a prepared answer (squad's, gold), half questions without
one. RAG reads three passages of dense search. Each question is asked of RAG once and kept in the file, so that another
run goes on; behind QA search stands what RAG said then, with the seconds that it took.
"""

import argparse
import gzip
import json
import random
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import dspy

from kraq_dspy import Corpus, Document
from kraq_dspy.asset.store.catalogue import Catalogue, NewEntry
from kraq_dspy.asset.store.served_answers import ServedAnswers
from kraq_dspy.asset.store.vectors import LocalVectorStore
from kraq_dspy.eval.metrics.answers import contains, token_f1
from kraq_dspy.eval.statistics import bootstrap_difference, bootstrap_mean
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.programs.qa_search.program import QASearch
from kraq_dspy.programs.traditional import TraditionalRAG
from kraq_dspy.settings import RoleSettings, Settings

PASSAGES = 3
ARMS: Mapping[str, dict[str, Any]] = {
    "rules, similarity .8": {"check": "rules", "similarity": 0.8},
    "rules, similarity .9": {"check": "rules", "similarity": 0.9},
    "rules and the model": {"check": "model", "similarity": 0.7},
}


@dataclass(frozen=True)
class Asked:
    """A question as it is asked, its gold answers, and whether an answer is prepared."""

    id: str
    question: str
    answers: tuple[str, ...]
    prepared: bool


class Recorded(dspy.Module):
    """Says again what RAG said."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        super().__init__()
        self.answers = answers

    def forward(self, question: str) -> dspy.Prediction:
        return dspy.Prediction(answer=self.answers[question], hits=[])


def rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def ask_rag(
    questions: Sequence[Asked], data: Path, lm: dspy.LM, embedder: Any, file: Path
) -> dict[str, dict[str, Any]]:
    known = {row["id"]: row for row in map(json.loads, file.read_text("utf-8").splitlines())} if file.exists() else {}
    todo = [each for each in questions if each.id not in known]
    if todo:
        corpus = [Document(row["id"], row["title"], row["text"]) for row in rows(data / "squad" / "corpus.jsonl.gz")]
        rag = TraditionalRAG(Corpus.from_texts(corpus, embedder=embedder).retriever, k=PASSAGES)
        rag.set_lm(lm)
    for each in todo:
        started = perf_counter()
        answer = rag(question=each.question).answer
        known[each.id] = {"id": each.id, "answer": answer, "seconds": perf_counter() - started}
        with file.open("a", encoding="utf-8") as out:
            out.write(json.dumps(known[each.id]) + "\n")
        print(len(known), f"{known[each.id]['seconds']:.1f} s", each.question, "->", answer[:80], flush=True)
    return known


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("kept", type=Path)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--lm", required=True)
    parser.add_argument("--pairs", type=int, default=60)
    options = parser.parse_args()
    row_of = {
        row["question"]: row for row in rows(options.data / "squad" / "questions.jsonl.gz") if row.get("paraphrase")
    }
    some = random.Random(0).sample(list(row_of.values()), 2 * options.pairs)
    questions = [
        Asked(row["id"], row["paraphrase"], tuple(row["answers"]), n < options.pairs) for n, row in enumerate(some)
    ]
    embedder = load_embedder(Settings().encoder)
    lm = make_lm(RoleSettings(model=options.lm, threads=1, slots=1, max_tokens=100), embedder=embedder)
    with dspy.context(adapter=KraqAdapter(), disable_history=True), tempfile.TemporaryDirectory() as folder:
        answers = ask_rag(questions, options.data, lm, embedder, options.kept)
        catalogue, store = Catalogue(Path(folder) / "c.db"), LocalVectorStore(Path(folder) / "v", embedder.dimension)
        pairs = [NewEntry(row["question"], row["answers"][0]) for row in some[: options.pairs]]
        catalogue.add_all(pairs, by="benchmark")
        program = Recorded({each.question: answers[each.id]["answer"] for each in questions})
        arms = {"RAG alone": [(answers[each.id]["answer"], answers[each.id]["seconds"], False) for each in questions]}
        for name, how in ARMS.items():
            search = QASearch(program, ServedAnswers(catalogue, store, embedder), scan="nearest", collect=False, **how)
            search.set_lm(lm)
            arms[name] = []
            for each in questions:
                prediction = search(question=each.question)
                hit = prediction.source == "catalogue"
                behind = 0.0 if hit else answers[each.id]["seconds"]
                arms[name].append((prediction.answer, prediction.search.seconds + behind, hit))
        store.close()
        catalogue.close()
    print("| arm | asked | gold in answer | against RAG alone | token F1 | from the catalogue | s, median (mean) |")
    print("|---|---|---|---|---|---|---|")
    for name, outcomes in arms.items():
        for kind, places in (("prepared", [0, 1]), ("not prepared", [1, 2]), ("both", [0, 2])):
            part = slice(*(place * options.pairs for place in places))
            gold = [each.answers for each in questions[part]]
            right = [float(contains(g, a)) for g, (a, _, _) in zip(gold, outcomes[part], strict=True)]
            alone = [float(contains(g, a)) for g, (a, _, _) in zip(gold, arms["RAG alone"][part], strict=True)]
            f1 = statistics.mean(token_f1(g, a) for g, (a, _, _) in zip(gold, outcomes[part], strict=True))
            mean, more = bootstrap_mean(right), bootstrap_difference(right, alone)
            seconds = [taken for _, taken, _ in outcomes[part]]
            print(
                f"| {name} | {kind} | {mean.estimate:.3f} [{mean.low:.3f}, {mean.high:.3f}] | {more.estimate:+.3f} "
                f"[{more.low:+.3f}, {more.high:+.3f}] | {f1:.3f} | {sum(hit for _, _, hit in outcomes[part])} of "
                f"{len(seconds)} | {statistics.median(seconds):.2f} ({statistics.mean(seconds):.2f}) |"
            )


if __name__ == "__main__":
    main()
