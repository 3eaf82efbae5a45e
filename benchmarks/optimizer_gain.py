"""Before and after, for every optimizer, with a language model.

    python benchmarks/optimizer_gain.py --data ../shared/data --lm gguf/smollm2-135m --rows 80 --out runs/gain.jsonl

Answering: questions of HotpotQA with their supporting paragraphs, word F1. Judging: gold answers and gold answers of
other questions, agreement with what they are. Question generation: paragraphs of SQuAD of at most 150 words, relevance
to the questions that people asked about each. Extraction: passages of MuSiQue, of which models below two billion
parameters list names and links alone, F1 of the links against those of gpt-3.5-turbo-1106. An optimizer learns from one
half of the rows and is measured on the other. The model is its own teacher, and reflects for GEPA; a finished optimizer
is a line of `--out`, which the same command leaves out.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import Any

import dspy
from extraction_quality import whole_triples
from stand_in import machine

from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.optimize import OPTIMIZERS, Method, Resources, Sizes, compile_program
from kraq_dspy.optimize.rows import Row, read_rows
from kraq_dspy.papers.tables.data import load
from kraq_dspy.ports import Embedder
from kraq_dspy.settings import EncoderSettings, RoleSettings, Settings

MOST_WORDS = 150  # of a paragraph that stands in for a community's summary


def answering(data: Path, count: int) -> list[Row]:
    texts = {document["id"]: document["text"] for document in read_rows(data / "hotpotqa/corpus.jsonl.gz")}
    rows: list[Row] = []
    for question in read_rows(data / "hotpotqa/questions.jsonl.gz"):
        passages = [texts[id] for id in dict.fromkeys(question["supporting_ids"]) if id in texts]
        if passages and question["answers"] and question["answers"][0] not in ("yes", "no") and len(rows) < count:
            rows.append({"question": question["question"], "answers": question["answers"], "passages": passages})
    return rows


def judging(data: Path, count: int) -> list[Row]:
    """To each question its gold answer and the next one's, some in a sentence: a verdict takes more than comparing."""
    examples = [each for each in load(data, "hotpotqa", limit=count, seed=0).examples
                if each.answers and each.answers[0].lower() not in ("yes", "no")]  # fmt: skip
    rows: list[Row] = []
    for example, other in zip(examples, [*examples[1:], examples[0]], strict=True):
        for answer in dict.fromkeys((example.answers[0], other.answers[0])):
            shown = f"I think that it was {answer} in the end" if len(rows) % 3 else answer
            gold = list(example.answers)
            rows.append({"question": example.question, "answers": gold, "answer": shown, "right": answer in gold})
    return rows[:count]


def question_generation(data: Path, count: int) -> list[Row]:
    """Paragraphs with what people asked about each, from as many articles as possible."""
    questions_of: dict[str, list[str]] = defaultdict(list)
    for question in read_rows(data / "squad/questions.jsonl.gz"):
        for id in question["supporting_ids"]:
            questions_of[id].append(question["question"])
    by_article: dict[str, list[Row]] = defaultdict(list)
    for document in read_rows(data / "squad/corpus.jsonl.gz"):
        if document["id"] in questions_of and len(document["text"].split()) <= MOST_WORDS:
            by_article[document["title"]].append(
                {"summary": document["text"], "questions": questions_of[document["id"]]}
            )
    in_turn = zip_longest(*by_article.values())
    return [row for turn in in_turn for row in turn if row is not None][:count]


def extraction(data: Path, count: int) -> list[Row]:
    """Passages with their triples; those without one are left out."""
    passages = {document["id"]: document["text"] for document in read_rows(data / "musique/corpus.jsonl.gz")}
    rows: list[Row] = []
    for passage in read_rows(data / "musique/triples.jsonl.gz"):
        triples = whole_triples(passage["triples"])
        if triples and len(rows) < count:
            rows.append({"passage": passages[passage["passage_id"]], "triples": triples})
    return rows


TASKS: dict[str, tuple[Callable[[Path, int], list[Row]], str]] = {
    "answering": (answering, "token_f1"),
    "judging": (judging, "agreement"),
    "question-generation": (question_generation, "relevance"),
    "extraction": (extraction, "link_f1"),
}
"""By name of a step: its rows, and the metric."""


def gain(task: str, optimizer: str, options: argparse.Namespace, lm: dspy.BaseLM, embedder: Embedder) -> dict[str, Any]:
    """One optimizer on one task: scores before and after on rows that it did not see, calls, seconds."""
    rows, metric = TASKS[task]
    compiled = compile_program(
        task,
        rows(options.data, options.rows),
        method=Method(
            optimizer,
            sizes=Sizes(
                demos=options.demos, candidates=options.candidates, rounds=options.rounds, threads=options.concurrency
            ),
        ),
        resources=Resources(
            settings=Settings(roles={"default": RoleSettings(model=options.lm)}),
            lm={"default": lm},
            embedder=embedder,
        ),
        metric=metric,
        force=True,
    )
    comparison = compiled.comparison
    return {
        "task": task,
        "optimizer": optimizer,
        "before": comparison.baseline.estimate,
        "after": comparison.system.estimate,
        "difference": [comparison.difference.estimate, comparison.difference.low, comparison.difference.high],
        "p": comparison.test.p_value,
        "calls": compiled.usage.calls,
        "seconds": compiled.seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=120)
    parser.add_argument("--only", choices=list(OPTIMIZERS), nargs="+", default=list(OPTIMIZERS))
    parser.add_argument("--tasks", choices=list(TASKS), nargs="+")
    parser.add_argument("--lm", required=True, help="a model string")
    parser.add_argument("--free", action="store_true", help="hold no reply of --lm to a schema")
    parser.add_argument("--max-tokens", type=int, default=300, help="of a reply of --lm")
    parser.add_argument("--demos", type=int, default=4)
    parser.add_argument("--candidates", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--concurrency", type=int, default=2)
    parser.add_argument("--out", type=Path, help="a line of JSON for every optimizer that is done")
    options = parser.parse_args()
    embedder = load_embedder(EncoderSettings())
    form = "none" if options.free else "auto"
    lm = make_lm(RoleSettings(options.lm, temperature=0.0, max_tokens=options.max_tokens, structured=form))
    before = options.out.read_text("utf-8").splitlines() if options.out and options.out.exists() else []
    done = {(row["task"], row["optimizer"]): row for row in map(json.loads, before)}
    print(f"{machine()}; {options.lm}; {options.rows} rows, half of them to learn from; 95 %; seed 0")
    print("| step | optimizer | before | after | difference | p | calls | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for task in options.tasks or TASKS:
        for optimizer in options.only:
            row = done.get((task, optimizer))
            if row is None:
                row = gain(task, optimizer, options, lm, embedder)
                if options.out:
                    with options.out.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")
            print(
                "| {task} | {optimizer} | {before:.3f} | {after:.3f} | {0:+.3f} [{1:+.3f}, {2:+.3f}] | {p:.4f} | "
                "{calls:,} | {seconds:.0f} |".format(*row["difference"], **row),
                flush=True,
            )


if __name__ == "__main__":
    main()
