"""Puts a few of people's questions beside an exam: how many pairs of systems do they decide, and how many wrongly?

    python benchmarks/few_questions.py scores hotpotqa --data DATA --out runs/few
    python benchmarks/few_questions.py report --out runs/few

`scores` draws up to 400 passages with the evidence of up to 150 of people's questions, indexes them, makes an exam by
rule and its rivals, and asks the systems of `few_systems.py` all of it. Each system's scores are kept, so an
interrupted run goes on.
"""

import argparse
import json
import random
from pathlib import Path

from few_systems import FEW_SYSTEMS
from parts import part_of
from testset_ranking import Questions, answerable_shares, ask, file_of, stored_sets
from testset_systems import opened

from kraq_dspy import Workspace
from kraq_dspy.asset.corpus.chunk import sentence_spans
from kraq_dspy.eval import TestsetPlan, make_testset
from kraq_dspy.eval.datasets import Dataset, load_local
from kraq_dspy.indexing import build_index
from kraq_dspy.records import Chunk

MOST_PASSAGES, MOST_QUESTIONS = 400, 150
MOST_MADE, MOST_OF_RIVALS = 120, 60


def question_sets(space: Workspace, people: Dataset, draft: Path) -> dict[str, Questions]:
    """People's questions, the exam, and what somebody could take in its place."""
    draw = random.Random(0)
    chunks = list(space.index.all(Chunk))
    made = make_testset(space, plan=TestsetPlan(MOST_MADE, answerable_shares()), draft=draft)

    sentences, titles, own = [], [], []
    for chunk in chunks:
        for start, end in sentence_spans(chunk.text):
            if 6 <= len(chunk.text[start:end].split()) <= 30:
                sentences.append((chunk.text[start:end], frozenset([chunk.document_id])))
        if chunk.title and not chunk.position:
            titles.append((chunk.title, frozenset([chunk.document_id])))
    for question in space.index.questions(source="kraq"):
        if question.document_ids:
            own.append((question.text, frozenset(question.document_ids)))

    return {
        "people": [(example.question, frozenset(example.supporting_ids)) for example in people.examples],
        "made": [(row.question, frozenset(row.supporting_ids)) for row in made if row.is_answerable],
        "sentences": draw.sample(sentences, min(MOST_OF_RIVALS, len(sentences))),
        "titles": draw.sample(titles, min(MOST_OF_RIVALS, len(titles))),
        "own questions": draw.sample(own, min(MOST_OF_RIVALS, len(own))),
    }


def keep_scores(name: str, data: Path, out: Path, asked: list[str]) -> None:
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    people = part_of(load_local(data / name), questions=MOST_QUESTIONS, passages=MOST_PASSAGES)
    if not (folder / "index.kraq" / "manifest.json").exists():
        build_index(list(people.documents), folder / "index.kraq")

    with opened(folder / "index.kraq") as (space, encoder):
        file = folder / "questions.json"
        if not file.exists():
            sets = question_sets(space, people, folder / "made.draft")
            to_keep = {label: [[text, sorted(gold)] for text, gold in questions] for label, questions in sets.items()}
            file.write_text(json.dumps(to_keep), "utf-8")

        sets = {label: questions for label, questions in stored_sets(folder).items() if label in asked and questions}
        print(name, {label: len(questions) for label, questions in sets.items()}, flush=True)
        encoder.encode_queries([text for questions in sets.values() for text, _ in questions])
        for system in FEW_SYSTEMS:
            find = system.make(space)
            for label, questions in sets.items():
                ask(find, questions, file_of(folder, label, system))
            print(name, system.name, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", choices=["scores", "report"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", nargs="+", default=["people", "made", "sentences", "titles", "own questions"])
    given = parser.parse_args()
    for name in given.names:
        keep_scores(name, given.data, given.out, given.sets)


if __name__ == "__main__":
    main()
