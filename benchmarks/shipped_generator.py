"""Makes the pairs of the shipped question generator, and compares it with other ways to ask on summaries it never saw.

    python benchmarks/shipped_generator.py pairs --data ../shared/data --out runs/generator
    kraq finetune generator --base gguf/smollm2-135m --pairs runs/generator/train.jsonl --out runs/generator/smollm2 \\
        --rank 16 --alpha 32 --learning-rate 5e-4 --epochs 1 --target-modules all-linear
    python benchmarks/shipped_generator.py ask --out runs/generator --lm gguf/smollm2-135m --name instructed
    python benchmarks/shipped_generator.py ask --out runs/generator --lm embedded --name templates
    python benchmarks/shipped_generator.py ask --out runs/generator --lm gguf/smollm2-135m --name tuned \\
        --adapter runs/generator/smollm2
    python benchmarks/shipped_generator.py ask --out runs/generator --lm gguf/NAME --name quiz --instruction "Write ..."
    python benchmarks/shipped_generator.py table --out runs/generator

A pair is a question that a person asked of a passage, and one to four sentences of the passages that hold its answer:
the form of a community's summary. Left out: questions that do not stand alone, that name what those sentences do not,
yes or no, longer than 20 words. `test.jsonl` holds documents that no pair of `train.jsonl` shares; documents of
`examples/hotpotqa-mini`, which the demo indexes, are in neither.
"""

import argparse
import json
import random
import re
import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import dspy
import numpy as np
from dspy.utils.exceptions import AdapterParseError
from rich.console import Console
from rich.table import Table
from stand_in import machine

from kraq_dspy.config import EncoderSettings, RoleSettings
from kraq_dspy.corpus.sentences import sentence_spans
from kraq_dspy.embedders import load_embedder
from kraq_dspy.eval.datasets import load_dataset
from kraq_dspy.eval.statistics import bootstrap_mean
from kraq_dspy.finetune.pairs import Pair
from kraq_dspy.lms.roles import make_lm
from kraq_dspy.lms.structured.adapter import KraqAdapter
from kraq_dspy.programs.kraq.describe_community import AskQuestion
from kraq_dspy.programs.kraq.question_text import stands_alone as is_of_its_text
from kraq_dspy.signatures import GenerateQuestion

SETS = ("squad", "hotpotqa", "musique")  # CC BY-SA 4.0, CC BY-SA 4.0, CC BY 4.0
MOST_WORDS = 20
SUMMARY_WORDS = 90
ALONE = re.compile(r"\b(he|she|it|they|his|her|its|their|this|these|that)\b", re.IGNORECASE)
NAME = re.compile(r"(?<![.?!] )(?<!^)\b[A-Z][\w'-]+|\b\d{3,}\b")
WORD = re.compile(r"\w{4,}")
ASKING = re.compile(r"\b(who|whom|whose|what|which|where|when|why|how)\b", re.IGNORECASE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["pairs", "ask", "table"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--test-share", type=float, default=0.15, help="of the documents")
    parser.add_argument("--lm")
    parser.add_argument("--adapter", type=Path)
    parser.add_argument("--name", help="of the row in the table")
    parser.add_argument("--instruction", help="ask with this wording in place of the step's own")
    parser.add_argument("--most", type=int, default=100, help="summaries to ask about")
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--threads", type=int, help="of a model in this process")
    options = parser.parse_args()
    {"pairs": make_pairs, "ask": ask, "table": print_table}[options.step](options)


def make_pairs(options: Any) -> None:
    shown = {row["title"] for row in rows_of(Path("examples/hotpotqa-mini/corpus.jsonl"))}
    draw = random.Random(0)
    pairs = [pair for name in SETS for pair in pairs_of(name, options.data, shown)]
    documents = sorted({document for pair in pairs for document in pair.document_ids})
    draw.shuffle(documents)
    held_out = set(documents[: round(len(documents) * options.test_share)])
    draw.shuffle(pairs)
    options.out.mkdir(parents=True, exist_ok=True)
    parts: dict[str, list[Pair]] = {"train": [], "test": []}
    for pair in pairs:
        inside = [document in held_out for document in pair.document_ids]
        if all(inside) or not any(inside):
            parts["test" if inside[0] else "train"].append(pair)
    for part, some in parts.items():
        lines = "".join(json.dumps(pair.row(), ensure_ascii=False) + "\n" for pair in some)
        (options.out / f"{part}.jsonl").write_text(lines, encoding="utf-8")
    print(f"{len(parts['train'])} pairs to train on, {len(parts['test'])} to ask about, {len(documents)} documents")


def pairs_of(name: str, data: Path, shown: set[str]) -> Iterator[Pair]:
    dataset = load_dataset(name, data)
    texts = {document.id: document for document in dataset.documents}
    known: set[str] = set()
    for example in dataset.examples:
        question = example.question.strip()
        evidence = [texts[id] for id in example.supporting_ids if id in texts]
        key = question.casefold()
        if key in known or not evidence or not stands_alone(question) or any(text.title in shown for text in evidence):
            continue
        summary = said_about(question, [text.text for text in evidence])
        if all(part.casefold() in summary.casefold() for part in NAME.findall(question)):
            known.add(key)
            yield Pair.generator(
                summary, question, source=name, example_id=example.id, document_ids=tuple(text.id for text in evidence)
            )


def stands_alone(question: str) -> bool:
    words = question.split()
    return (
        question.endswith("?")
        and 4 <= len(words) <= MOST_WORDS
        and bool(ASKING.search(question))
        and not ALONE.search(question)
        and bool(NAME.search(question))
        and question[0].isupper()
    )


def said_about(question: str, texts: Sequence[str]) -> str:
    """Of each text the sentence that shares most words with the question, and its neighbours while there is room."""
    sought = set(WORD.findall(question.casefold()))
    parts = []
    for text in texts:
        sentences = [text[start:end].strip() for start, end in sentence_spans(text)]
        place = max(range(len(sentences)), key=lambda at: len(sought & set(WORD.findall(sentences[at].casefold()))))
        chosen = {place}
        for near in (place - 1, place + 1, place - 2):
            if 0 <= near < len(sentences):
                words = sum(len(sentences[at].split()) for at in {*chosen, near})
                if words <= SUMMARY_WORDS / len(texts):
                    chosen.add(near)
        parts.append(" ".join(sentences[at] for at in sorted(chosen)))
    return " ".join(parts)


def ask(options: Any) -> None:
    """Questions of one way to ask, a line each as they come; the same command goes on."""
    file = options.out / f"asked-{options.name}.jsonl"
    done = {row["id"] for row in rows_of(file)} if file.exists() else set()
    pairs = [row for row in rows_of(options.out / "test.jsonl")[: options.most] if row["id"] not in done]
    lm = make_lm(
        RoleSettings(
            model=options.lm,
            adapter=str(options.adapter) if options.adapter else None,
            max_tokens=60,
            temperature=0.0,
            threads=options.threads,
        )
    )
    program = AskQuestion()
    if options.instruction:
        program.generate.signature = GenerateQuestion.with_instructions(options.instruction)

    def question_of(pair: dict[str, Any]) -> dict[str, Any]:
        began = time.monotonic()
        with dspy.context(lm=lm, adapter=KraqAdapter()):
            try:
                question = program(summary=pair["summary"]).question
            except (AdapterParseError, ValueError) as error:  # three tries without a question
                print(f"{pair['id']}: {error}", flush=True)
                question = ""
        return {"id": pair["id"], "question": question, "seconds": round(time.monotonic() - began, 2)}

    with ThreadPoolExecutor(options.concurrency) as pool, file.open("a", encoding="utf-8") as lines:
        for row in pool.map(question_of, pairs):
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")
            lines.flush()


def print_table(options: Any) -> None:
    pairs = {row["id"]: row for row in rows_of(options.out / "test.jsonl")}
    embedder = load_embedder(EncoderSettings())
    table = Table(title=machine())
    for column in (
        "asked by",
        "n",
        "questions",
        "names in summary",
        "different",
        "words",
        "relevance",
        "finds its own",
        "stands alone",
        "seconds",
    ):
        table.add_column(column)
    files = sorted(options.out.glob("asked-*.jsonl"))
    rows = {file.stem.removeprefix("asked-"): rows_of(file) for file in files}
    common = sorted(set.intersection(*({row["id"] for row in some} for some in rows.values())))
    rows = {"people": [{"id": id, "question": pairs[id]["question"], "seconds": 0.0} for id in common], **rows}
    summaries = embedder.encode_passages([pairs[id]["summary"] for id in common])
    people = embedder.encode_queries([pairs[id]["question"] for id in common])
    for name, some in rows.items():
        by_id = {row["id"]: row["question"] for row in some}
        questions = [by_id[id] for id in common]
        alone = [
            is_of_its_text(text, pairs[id]["summary"], GenerateQuestion.instructions)
            for text, id in zip(questions, common, strict=True)
        ]
        backed = [supported(text, pairs[id]["summary"]) for text, id in zip(questions, common, strict=True)]
        vectors = embedder.encode_queries(questions)
        relevance = bootstrap_mean((vectors * people).sum(axis=1).tolist())
        ranks = (summaries @ vectors.T).T
        own = np.mean(ranks.argmax(axis=1) == np.arange(len(common)))
        table.add_row(
            name,
            str(len(common)),
            f"{np.mean([is_question(text) for text in questions]):.2f}",
            f"{np.mean(backed):.2f}",
            f"{len({text.casefold() for text in questions}) / len(common):.2f}",
            f"{statistics.median(len(text.split()) for text in questions):.0f}",
            f"{relevance.estimate:.3f} [{relevance.low:.3f}, {relevance.high:.3f}]",
            f"{own:.2f}",
            f"{np.mean(alone):.2f}",
            f"{np.mean([row['seconds'] for row in some if row['id'] in common]):.1f}",
        )
    Console(width=140).print(table)


def is_question(text: str) -> bool:
    """One short sentence that asks, and does not repeat itself."""
    words = text.casefold().split()
    repeats = any(first == second for first, second in pairwise(words))
    return text.endswith("?") and len(words) <= 30 and bool(ASKING.search(text)) and not repeats


def supported(question: str, summary: str) -> bool:
    """Every name and number of the question stands in the summary."""
    return all(part.casefold() in summary.casefold() for part in NAME.findall(question))


def rows_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    main()
