"""Measures refusals: how many questions of people would be refused, and how many that the corpus does not answer.

    python benchmarks/refusals.py prepare --data ../shared/data --out runs/refusals
    python benchmarks/refusals.py run --data ../shared/data --out runs/refusals
    python benchmarks/refusals.py report --out runs/refusals

`prepare` draws up to 600 passages with the evidence of up to 300 questions that are answered and with the passages of
up to 150 that are not, and indexes them with questions by templates: no language model is asked. `run` scores these
questions, and 40 of each other set, which are about something else. What is done is kept, so an interrupted run goes
on. `report` prints the table.

The rule for the threshold was chosen on CHOSEN_ON, how far it lies above foreign scores with musique too, which a first
choice had failed. The sets of HELD_OUT set nothing.
"""

import argparse
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score
from stand_in import machine

from kraq_dspy import Document, Workspace, build_index
from kraq_dspy.eval.datasets import Example, load_dataset
from kraq_dspy.eval.statistics import bootstrap_mean
from kraq_dspy.indexing.refusals.foreign_questions import FOREIGN
from kraq_dspy.indexing.refusals.threshold import keep_threshold
from kraq_dspy.settings import QuestionSettings, Settings

CHOSEN_ON = ("hotpotqa", "clapnq", "squad", "bioasq", "qasper", "musique")
HELD_OUT = ("popqa", "multihop_rag", "lihua_world", "pubmedqa")
SETS = (*HELD_OUT, *CHOSEN_ON)
NOT_ANSWERED = ("unanswerable", "null_query", "null")
"""What the sets call questions that their documents do not answer."""
MOST_PASSAGES, MOST_ANSWERED, MOST_OTHERS, MOST_GOLD = 600, 300, 150, 10
OF_ANOTHER = 40
"""Questions of each other set that are asked of a corpus."""
Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Sample:
    documents: tuple[Document, ...]
    answered: tuple[str, ...]
    not_answered: tuple[str, ...]


def sample(name: str, data: Path) -> Sample:
    """The same for each run, drawn by the seed 0."""
    dataset = load_dataset(name, data)
    examples = sorted(dataset.examples, key=lambda each: each.id)
    random.Random(0).shuffle(examples)
    others = [each for each in examples if each.type in NOT_ANSWERED][:MOST_OTHERS]
    needed = {document_id for each in others for document_id in each.supporting_ids}

    answered: list[Example] = []
    for example in examples:
        documents = needed | set(example.supporting_ids)
        is_answered = 0 < len(example.supporting_ids) <= MOST_GOLD and example.type not in NOT_ANSWERED
        if is_answered and len(answered) < MOST_ANSWERED and len(documents) <= MOST_PASSAGES:
            answered.append(example)
            needed = documents

    rest = [document for document in dataset.documents if document.id not in needed]
    random.Random(1).shuffle(rest)
    chosen = needed | {document.id for document in rest[: MOST_PASSAGES - len(needed)]}
    return Sample(
        tuple(document for document in dataset.documents if document.id in chosen),
        tuple(dict.fromkeys(each.question for each in answered)),
        tuple(dict.fromkeys(each.question for each in others)),
    )


def prepare(name: str, data: Path, out: Path) -> None:
    path = out / f"{name}.kraq"
    done = out / f"{name}.indexed"
    if not done.exists():
        print(f"indexing {name}", flush=True)
        settings = Settings(questions=QuestionSettings(asked_by="templates"))
        build_index(sample(name, data).documents, path, settings=settings)
        done.touch()


def run(name: str, data: Path, out: Path) -> None:
    """Writes what each question scored, by its kind; the threshold is measured again, so that it is of today's rule."""
    drawn = sample(name, data)
    others = [each for each in SETS if each != name]
    foreign = [question for other in others for question in sample(other, data).answered[:OF_ANOTHER]]
    kinds: dict[str, Sequence[str]] = {
        "answered": drawn.answered,
        "not answered": drawn.not_answered,
        "of other sets": foreign,
        "packaged": list(FOREIGN),
    }
    with Workspace.open(out / f"{name}.kraq", write=True) as space:
        threshold = keep_threshold(space.index, space.embedder)
        rows = {}
        for kind, questions in kinds.items():
            judged = [space.answerability(question) for question in questions]
            rows[kind] = [(each.score, each.is_answerable) for each in judged]
    lines = {"threshold": None if threshold is None else threshold.score, "rows": rows}
    (out / f"{name}.json").write_text(json.dumps(lines), "utf-8")


def report(out: Path) -> None:
    print(f"{machine()}\n")
    print(
        "| set | passages | threshold | people's refused | unanswered refused | of other sets refused | AUC "
        "| AUC other |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in SETS:
        file = out / f"{name}.json"
        if not file.exists():
            continue
        made = json.loads(file.read_text("utf-8"))
        rows = made["rows"]
        with Workspace.open(out / f"{name}.kraq") as space:
            passages = space.index.counts()["chunks"]
        shares = [refused(rows[kind]) for kind in ("answered", "not answered", "of other sets")]
        separations = [told_apart(rows[kind], rows["answered"]) for kind in ("not answered", "of other sets")]
        threshold = "none" if made["threshold"] is None else f"{made['threshold']:.3f}"
        print(f"| {name} | {passages:,} | {threshold} | {' | '.join((*shares, *separations))} |")


def refused(rows: Sequence[tuple[float, bool | None]]) -> str:
    if not rows:
        return "-"
    share = bootstrap_mean([float(is_answerable is False) for _, is_answerable in rows])
    return f"{share.estimate:.3f} [{share.low:.3f}, {share.high:.3f}] of {len(rows)}"


def told_apart(others: Sequence[tuple[float, bool | None]], people: Sequence[tuple[float, bool | None]]) -> str:
    if not others:
        return "-"
    unlike, like = (np.array([1 - score for score, _ in rows]) for rows in (others, people))
    labels = np.repeat([1, 0], [len(unlike), len(like)])
    return f"{roc_auc_score(labels, np.concatenate([unlike, like])):.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=("prepare", "run", "report"))
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"of {', '.join(SETS)}; all without any")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("runs/refusals"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.step == "report":
        report(options.out)
        return
    for name in options.sets or SETS:
        if options.step == "prepare":
            prepare(name, options.data, options.out)
        elif not (options.out / f"{name}.json").exists():
            run(name, options.data, options.out)


if __name__ == "__main__":
    main()
