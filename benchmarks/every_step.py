"""Runs every command that asks a model, on a small index, and says which fail; keeps what each step was asked.

    python benchmarks/every_step.py --out runs/steps                                    # with the embedded engine
    python benchmarks/every_step.py --out runs/steps-1.5b --lm gguf/qwen2.5-coder-1.5b.gguf --passages 20 --questions 1

The passages are those that answer the first questions of `examples/hotpotqa-mini`, and their neighbours. `inputs.jsonl`
in the folder holds up to 20 different inputs of every signature, as `readable_replies.py` takes them; `outcomes.jsonl`
has a line a command: seconds, exit code, the end of what it printed. The same command goes on where it stopped.
"""

import argparse
import contextlib
import io
import json
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from kraq_dspy.apps.cli import main as kraq
from kraq_dspy.eval.judges import BinaryJudge, RubricJudge
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.settings import RoleSettings
from kraq_dspy.signatures.learning import SummarizeEvidence
from kraq_dspy.signatures.speculative import ExplainResponse

CORPUS = Path(__file__).resolve().parents[1] / "examples" / "hotpotqa-mini"
SETTINGS = """[resolve]
confirm = true
similarity = 0.75
description_tokens = 40
"""
PROGRAMS = (
    "traditional", "combined", "speculative", "efficient", "graph-local", "graph-global", "k2rag", "naive-graph",
    "qa-search",
)  # fmt: skip
REWRITING = ("qr-fusion",)
VARIANTS = ("v", "type1", "type2")
Row = dict[str, Any]


class AskedInputs(BaseCallback):  # type: ignore[misc]
    """Different inputs of every signature, the first `most` of each, appended to a file."""

    def __init__(self, file: Path, most: int) -> None:
        self.file, self.most = file, most
        self.texts: dict[str, set[str]] = defaultdict(set)
        if file.exists():
            for line in file.read_text("utf-8").splitlines():
                row = json.loads(line)
                self.texts[row["signature"]].add(json.dumps(row["inputs"], sort_keys=True))

    def on_adapter_format_start(self, call_id: str, instance: Any, inputs: Row) -> None:
        signature = inputs["signature"]
        values = {name: inputs["inputs"].get(name) for name in signature.input_fields}
        text = json.dumps(values, sort_keys=True, ensure_ascii=False, default=str)
        texts = self.texts[signature.__name__]
        if text in texts or len(texts) >= self.most:
            return
        texts.add(text)
        with self.file.open("a", encoding="utf-8") as lines:
            row = {"signature": signature.__name__, "inputs": json.loads(text)}
            lines.write(json.dumps(row, ensure_ascii=False) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lm", default="embedded")
    parser.add_argument("--api-base")
    parser.add_argument("--passages", type=int, default=60)
    parser.add_argument("--questions", type=int, default=6)
    parser.add_argument("--inputs", type=int, default=20, help="kept of each signature")
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--only", action="append", help="commands that begin so, for another try at them")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    questions = rows_of(CORPUS / "questions.jsonl")[: options.questions]
    write_corpus(options.out, options.passages)
    (options.out / "kraq.toml").write_text(SETTINGS, encoding="utf-8")
    dspy.configure(callbacks=[AskedInputs(options.out / "inputs.jsonl", options.inputs)])
    outcomes = options.out / "outcomes.jsonl"
    done = {row["command"] for row in rows_of(outcomes) if row["code"] == 0} if outcomes.exists() else set()
    with contextlib.chdir(options.out):
        for name, run in steps(options, questions):
            if name in done or (options.only and not name.startswith(tuple(options.only))):
                continue
            outcome = timed(name, run)
            with Path("outcomes.jsonl").open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(outcome, ensure_ascii=False) + "\n")
            print(f"{outcome['code']}  {outcome['seconds']:7.1f} s  {name}", flush=True)
            if outcome["code"]:
                print("      " + outcome["output"][-700:].replace("\n", "\n      "), flush=True)


def steps(options: Any, questions: Sequence[Row]) -> list[tuple[str, Callable[[], object]]]:
    model = ["--lm", options.lm, *(["--api-base", options.api_base] if options.api_base else [])]
    many = ["--concurrency", str(options.concurrency)]
    words: list[list[str]] = [
        ["index", "corpus.jsonl", "--domain", *model],
        ["index", "corpus.jsonl", "--out", "docs.kraq", "--random-questions", *model, *many],
        *(["precompute", "docs.kraq", flag, *model] for flag in ("qa-pairs", "raptor", "graph", "k2rag")),
        ["precompute", "docs.kraq", "--top-n", "20"],
        ["faq", "seed", "docs.kraq", "--limit", str(2 * options.questions), "--approve", *model, *many],
        [
            "faq",
            "seed",
            "docs.kraq",
            "--of",
            "passages",
            "--limit",
            str(2 * options.questions),
            "--approve",
            *model,
            *many,
        ],
    ]
    for question in (row["question"] for row in questions):
        ask = ["ask", "docs.kraq", question, *model]
        words += [[*ask, "--program", program] for program in PROGRAMS]
        words += [[*ask, "--program", "traditional", "--retriever", retriever] for retriever in REWRITING]
        words += [[*ask, "--program", "qa-rag", "-P", f"variant={variant}"] for variant in VARIANTS]
    words += [
        ["optimize", "answering", "--dev", "questions.jsonl", "--index", "docs.kraq", "--out", "answering.json",
         "--demos", "1", "--candidates", "2", "--force", *model],
        ["finetune", "pairs", "--dataset", "musique", "--limit", str(2 * options.questions),
         "--out", "pairs.jsonl", *model],
    ]  # fmt: skip
    commands: list[tuple[str, Callable[[], object]]] = [(" ".join(line), partial(run_kraq, line)) for line in words]
    role = RoleSettings(model=options.lm, api_base=options.api_base, temperature=0.0)
    return [*commands, ("judges and teachers", lambda: judge_and_teach(role, questions))]


def judge_and_teach(role: RoleSettings, questions: Sequence[Row]) -> None:
    """Steps of `kraq eval` and `kraq finetune pairs` that need data sets of their own, on the questions at hand."""
    texts = {row["id"]: row["text"] for row in rows_of(Path("corpus.jsonl"))}
    with dspy.context(lm=make_lm(role), adapter=KraqAdapter()):
        for row in questions:
            question, answers = row["question"], tuple(row["answers"])
            passages = [texts[name] for name in row["supporting_ids"] if name in texts]
            for answer in (answers[0], "It is not known."):
                example, prediction = dspy.Example(question=question, answers=answers), dspy.Prediction(answer=answer)
                BinaryJudge()(example, prediction)
                BinaryJudge()(example.copy(answer_items=[answers, ["Paris"]]), prediction)
                RubricJudge()(example, prediction)
            dspy.Predict(SummarizeEvidence)(passages=passages, question=question)
            dspy.Predict(ExplainResponse)(question=question, passages=passages, response=answers[0])


def run_kraq(words: Sequence[str]) -> None:
    before = sys.argv
    sys.argv = ["kraq", *words]
    try:
        kraq()
    finally:
        sys.argv = before


def timed(name: str, run: Callable[[], object]) -> Row:
    start, output, code = time.monotonic(), io.StringIO(), 0
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            run()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        except Exception:  # noqa: BLE001 what breaks is what this looks for
            code = 1
            traceback.print_exc(file=output)
    return {"command": name, "code": code, "seconds": time.monotonic() - start, "output": output.getvalue()[-4000:]}


def write_corpus(folder: Path, count: int) -> None:
    """The passages that answer the questions, then the ones shown with them, in the order of the questions."""
    questions = rows_of(CORPUS / "questions.jsonl")
    by_id = {row["id"]: row for row in rows_of(CORPUS / "corpus.jsonl")}
    first = [name for row in questions for name in row["supporting_ids"]][: count // 2]
    names = dict.fromkeys([*first, *(name for row in questions for name in row["context_ids"])])
    rows = [by_id[name] for name in names if name in by_id][:count]
    corpus_ids = {row["id"] for row in rows}
    answered = [
        {**row, "context_ids": [name for name in row["context_ids"] if name in corpus_ids]}
        for row in questions
        if corpus_ids.issuperset(row["supporting_ids"])
    ]
    dataset = folder / "data" / "musique"  # the name is one that `kraq finetune pairs` knows
    dataset.mkdir(parents=True, exist_ok=True)
    for name, lines in (("corpus.jsonl", rows), ("questions.jsonl", answered)):
        text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in lines)
        (folder / name).write_text(text, encoding="utf-8")
        (dataset / name).write_text(text, encoding="utf-8")


def rows_of(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    main()
