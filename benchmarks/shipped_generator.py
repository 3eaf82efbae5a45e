"""Compares the shipped question generator with other ways to ask, on summaries that it never saw.

    python benchmarks/shipped_generator.py ask --out runs/generator --lm gguf/smollm2-135m --name instructed
    python benchmarks/shipped_generator.py ask --out runs/generator --lm embedded --name templates
    python benchmarks/shipped_generator.py ask --out runs/generator --lm gguf/smollm2-135m --name tuned \\
        --adapter kraq-questions --candidates 3
    python benchmarks/shipped_generator.py ask --out runs/generator --lm gguf/NAME --name quiz --instruction "Write ..."
    python benchmarks/shipped_generator.py table --out runs/generator

`test.jsonl` and the pairs of the training are made by generator_pairs.py. The training:

    kraq finetune generator --base gguf/smollm2-135m --pairs runs/generator/train.jsonl --out runs/generator/smollm2 \\
        --rank 8 --alpha 16 --dropout 0 --learning-rate 5e-4 --epochs 2 --batch-size 8 --accumulate 1 \\
        --target-modules all-linear --held-out 0.03
    python benchmarks/shipped_generator.py ship --out runs/generator --adapter runs/generator/smollm2
"""

import argparse
import json
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import dspy
import numpy as np
from dspy.utils.exceptions import AdapterParseError
from generator_pairs import ASKING, supported
from rich.console import Console
from rich.table import Table
from safetensors.torch import load_file, save_file
from stand_in import machine

from kraq_dspy.eval.questions import LEARNED_FILE
from kraq_dspy.eval.statistics import bootstrap_mean
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.local_models import QUESTIONS, adapter_folder, weights_hash
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.programs.kraq.describe import AskQuestion
from kraq_dspy.programs.kraq.question_text import shares_a_word, stands_alone
from kraq_dspy.settings import QUESTIONS_BASE, EncoderSettings, RoleSettings
from kraq_dspy.signatures import GenerateQuestion

SHIPPED = Path(adapter_folder(QUESTIONS)[0])
BASE = "HuggingFaceTB/SmolLM2-135M-Instruct"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["ask", "table", "ship"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lm")
    parser.add_argument("--adapter", type=Path)
    parser.add_argument("--name", help="of the row in the table")
    parser.add_argument("--instruction", help="ask with this wording in place of the step's own")
    parser.add_argument("--candidates", type=int, default=1, help="questions of which the plainest is taken")
    parser.add_argument("--most", type=int, default=100, help="summaries to ask about")
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--threads", type=int, help="of a model in this process")
    options = parser.parse_args()
    {"ask": ask, "table": print_table, "ship": ship}[options.step](options)


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
    program = AskQuestion(options.candidates)
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
            stands_alone(text, GenerateQuestion.instructions) and shares_a_word(text, pairs[id]["summary"])
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


def ship(options: Any) -> None:
    """Puts the adapter into the package: 16 bits a parameter, and no path of this machine."""
    weights = {name: value.half() for name, value in load_file(options.adapter / "adapter_model.safetensors").items()}
    save_file(weights, SHIPPED / "adapter_model.safetensors", metadata={"format": "pt"})
    (SHIPPED / LEARNED_FILE).write_text((options.adapter / LEARNED_FILE).read_text("utf-8"), "utf-8")
    settings = json.loads((options.adapter / "adapter_config.json").read_text("utf-8"))
    settings |= {"base_model_name_or_path": BASE, "target_modules": sorted(settings["target_modules"])}
    (SHIPPED / "adapter_config.json").write_text(json.dumps(settings, indent=2) + "\n", "utf-8")
    card = json.loads((options.adapter / "training.json").read_text("utf-8"))
    digest = weights_hash(SHIPPED)
    served = {"base": "smollm2-135m", "served": QUESTIONS_BASE, "model": f"{QUESTIONS_BASE}#{QUESTIONS}@{digest[:8]}"}
    card |= {"weights_hash": digest, **served}
    (SHIPPED / "training.json").write_text(json.dumps(card, indent=2) + "\n", "utf-8")


def is_question(text: str) -> bool:
    """One short sentence that asks, and does not repeat itself."""
    words = text.casefold().split()
    repeats = any(first == second for first, second in pairwise(words))
    return text.endswith("?") and len(words) <= 30 and bool(ASKING.search(text)) and not repeats


def rows_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    main()
