"""Times what `compile_program` adds to DSPy: the same optimizer, rows, metric and calls, with and without it.

    python benchmarks/optimizer_overhead.py --data ../shared/data --repeats 7

The model answers at once, so all that is measured is code. DSPy runs as it comes, with its cache on disk, since keeping
every answer is what we do too; and, for scale, without a cache, where nothing is kept at all and more is asked. Our
checks, split, bootstrap intervals and state are counted in; both sides measure before and after. Runs alternate.
"""

import argparse
import contextlib
import io
import json
import statistics
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import dspy
from dspy.lm15 import Message, Request, Response, TextPart, Usage
from stand_in import machine

from kraq_dspy.eval.metrics.answers import token_f1
from kraq_dspy.lms.structured.adapter import KraqAdapter
from kraq_dspy.optimize import Method, Resources, Sizes, compile_program, make_target
from kraq_dspy.optimize.quiet import quiet
from kraq_dspy.optimize.rows import Row, Split, split_rows

OPTIMIZERS = ("bootstrap", "random-search", "copro")


class Instant:
    """Answers at once, the same to the same prompt: one of its words. `calls` counts."""

    supports_function_calling = supports_reasoning = supports_response_schema = False
    supported_params = frozenset({"temperature", "max_tokens"})

    def __init__(self) -> None:
        self.calls = 0

    def __deepcopy__(self, memo: object) -> "Instant":
        return self

    def complete(self, request: Request) -> Response:
        self.calls += 1
        words = (request.messages[-1].text or "").split()
        text = f"[[ ## answer ## ]]\n{words[len(words) // 2]}\n\n[[ ## completed ## ]]"
        if isinstance(request.system, str) and "proposed_instruction" in request.system:
            fields = ("proposed_instruction", "proposed_prefix_for_output_field")
            text = "\n\n".join(f"[[ ## {name} ## ]]\nTry number {self.calls}." for name in fields)
        return Response(
            id=None,
            model=request.model,
            message=Message.assistant([TextPart(text)]),
            finish_reason="stop",
            usage=Usage(input_tokens=1, output_tokens=1),
        )


def rows_of(data: Path, count: int) -> list[Row]:
    """Questions of HotpotQA with their ten paragraphs."""
    import gzip

    def lines(name: str) -> list[Any]:
        path = data / "hotpotqa" / name
        packed = path.with_suffix(".jsonl.gz")
        with gzip.open(packed, "rt") if packed.exists() else path.open() as file:
            return [json.loads(line) for line in file]

    texts = {document["id"]: document["text"] for document in lines("corpus.jsonl")}
    rows: list[Row] = []
    for question in lines("questions.jsonl"):
        passages = [texts[id] for id in question["context_ids"] if id in texts]
        if passages and question["answers"]:
            rows.append({"question": question["question"], "answers": question["answers"], "passages": passages})
        if len(rows) == count:
            break
    return rows


def metric(example: Any, prediction: Any, trace: Any = None) -> float | bool:
    score = token_f1(example.answers, prediction.answer)
    return score if trace is None else score >= 0.8


def dspys_own(optimizer: str, split: Split, lm: dspy.LM, sizes: Sizes) -> None:
    """What a careful user writes: the same optimizer, and Evaluate before and after."""
    train, dev = list(split.train), list(split.dev)
    cut = len(train) // 2
    student = dspy.Predict(make_target("answering").program.step.signature)
    few: dict[str, Any] = {"max_bootstrapped_demos": sizes.demos, "max_labeled_demos": sizes.demos}
    evaluate = dspy.Evaluate(devset=dev, metric=metric, num_threads=sizes.threads)
    with dspy.context(lm=lm, adapter=KraqAdapter(), disable_history=True):
        evaluate(student)
        if optimizer == "bootstrap":
            best = dspy.BootstrapFewShot(metric=metric, **few).compile(student, trainset=train)
        elif optimizer == "random-search":
            search = dspy.BootstrapFewShotWithRandomSearch(
                metric=metric, num_candidate_programs=sizes.candidates, num_threads=sizes.threads, **few
            )
            best = search.compile(student, trainset=train[:cut], valset=train[cut:])
        else:
            copro = dspy.COPRO(metric=metric, breadth=sizes.candidates, depth=sizes.rounds)
            best = copro.compile(student, trainset=train, eval_kwargs={"num_threads": sizes.threads})
        evaluate(best)


def ours(optimizer: str, rows: Sequence[Row], lm: dspy.LM, sizes: Sizes, out: Path) -> None:
    compile_program(
        "answering",
        rows,
        method=Method(optimizer, sizes=sizes),
        resources=Resources(models={"default": lm}),
        metric="token_f1",
        out=out,
        force=True,
    )


def timed(work: Callable[[], None]) -> float:
    started = process_time()
    with contextlib.redirect_stdout(io.StringIO()), quiet():
        work()
    return process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=120)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", choices=OPTIMIZERS)
    arguments = parser.parse_args()
    rows = rows_of(arguments.data, arguments.rows)
    sizes = Sizes(demos=4, candidates=6, rounds=3, threads=1)  # one thread: code is measured, not waiting
    split = split_rows(rows, make_target("answering").rows)
    print(
        f"{machine()}; {len(rows)} rows of HotpotQA with their paragraphs; medians of {arguments.repeats} runs in turn"
    )
    print("| optimizer | calls (ours / DSPy) | DSPy with its cache, s | without, s | ours, s | ratio | ratio without |")
    print("|---|---|---|---|---|---|---|")
    for optimizer in [arguments.only] if arguments.only else OPTIMIZERS:
        seconds: dict[str, list[float]] = {"cached": [], "plain": [], "ours": []}
        calls: dict[str, int] = {}
        for turn in range(arguments.repeats + 1):  # the first is a warm-up
            for kind in seconds:
                engine = Instant()
                with tempfile.TemporaryDirectory() as folder:
                    dspy.configure_cache(enable_disk_cache=True, enable_memory_cache=True, disk_cache_dir=folder)
                    lm = dspy.LM("instant", engine=engine, cache=kind == "cached", num_retries=0)
                    if kind == "ours":
                        took = timed(lambda: ours(optimizer, rows, lm, sizes, Path(folder) / "state.json"))  # noqa: B023
                    else:
                        took = timed(lambda: dspys_own(optimizer, split, lm, sizes))  # noqa: B023
                if turn:
                    seconds[kind].append(took)
                calls[kind] = engine.calls
        cached, plain, own = (statistics.median(seconds[kind]) for kind in ("cached", "plain", "ours"))
        counts = f"{calls['ours']} / {calls['cached']} ({calls['plain']} uncached)"
        times = f"{cached:.2f} | {plain:.2f} | {own:.2f} | {own / cached:.3f} | {own / plain:.3f}"
        print(f"| {optimizer} | {counts} | {times} |", flush=True)


if __name__ == "__main__":
    main()
