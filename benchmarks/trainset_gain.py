"""Learns to answer from an index's own questions and from people's: what does each gain on people's questions?

    python benchmarks/trainset_gain.py rows hotpotqa squad --data DATA --indexes runs/ranking --out runs/trainset
    python benchmarks/trainset_gain.py own hotpotqa squad --indexes runs/ranking --lm LM --out runs/trainset
    python benchmarks/trainset_gain.py run hotpotqa squad --lm LM --out runs/trainset
    python benchmarks/trainset_gain.py report --out runs/trainset

`rows` writes people's questions: those to learn from have all their evidence in the index, those to measure on none of
it; and the index's own, made by rules. `own` has a language model make the index's own. `run` optimizes the step
"answering", each question with the passages that answer it, by word F1. The questions that are measured on are answered
without anything learned, too, once for every row of the table: the model is asked anew, and may batch differently.
`DATA` is a folder of data sets, the indexes are those of `testset_ranking.py prepare`.
"""

import argparse
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dspy
from stand_in import machine

from kraq_dspy import Workspace
from kraq_dspy.eval import make_trainset
from kraq_dspy.eval.datasets import Dataset, Example, load_local
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.optimize import Method, Resources, Sizes, compile_program
from kraq_dspy.records import Document
from kraq_dspy.settings import RoleSettings, Settings

TO_LEARN_FROM, TO_MEASURE_ON = 60, 300
SOURCES = ("own, by rules", "own, by the model", "people's")
OPTIMIZERS = ("labeled", "bootstrap", "random-search")
SEED = 0


def file_of(folder: Path, source: str) -> Path:
    return folder / f"{source.replace(',', '').replace(' ', '-')}.jsonl"


def write_people(name: str, data: Path, indexes: Path, out: Path) -> None:
    people = load_local(data / name)
    with Workspace.open(indexes / name / "index.kraq") as space:
        indexed = frozenset(document.id for document in space.index.all(Document))
        own = make_trainset(space, TO_LEARN_FROM, seed=SEED)

    inside = [each for each in people.examples if indexed.issuperset(each.supporting_ids)]
    outside = [each for each in people.examples if indexed.isdisjoint(each.supporting_ids)]
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    write(file_of(folder, SOURCES[0]), [row_of_own(example) for example in own])
    write(file_of(folder, SOURCES[2]), drawn(people, inside, TO_LEARN_FROM))
    write(folder / "measured-on.jsonl", drawn(people, outside, TO_MEASURE_ON))


def drawn(people: Dataset, examples: Sequence[Example], count: int) -> list[dict[str, Any]]:
    texts = {document.id: f"{document.title}\n{document.text}" for document in people.documents}
    answered = [example for example in examples if example.answers and example.supporting_ids]
    rows = []
    for example in random.Random(SEED).sample(answered, min(count, len(answered))):
        passages = [texts[id] for id in dict.fromkeys(example.supporting_ids)]
        rows.append({"question": example.question, "answers": list(example.answers), "passages": passages})
    return rows


def row_of_own(example: dspy.Example) -> dict[str, Any]:
    return {"question": example.question, "answers": list(example.answers), "passages": list(example.passages)}


def write(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    print(f"{path.parent.name}/{path.name}: {len(rows)} rows", flush=True)


def write_own(name: str, indexes: Path, role: RoleSettings, out: Path) -> None:
    models = {"generator": make_lm(role), "judge": make_lm(role)}
    with Workspace.open(indexes / name / "index.kraq", lm=models) as space:
        own = make_trainset(space, TO_LEARN_FROM, seed=SEED)
    write(file_of(out / name, SOURCES[1]), [row_of_own(example) for example in own])


def run(
    name: str, role: RoleSettings, out: Path, sources: Sequence[str], optimizers: Sequence[str], sizes: Sizes
) -> None:
    folder = out / name
    for source in sources:
        learned_from = file_of(folder, source)
        if not learned_from.exists():
            print(f"{name}: no rows {source}", flush=True)
            continue
        for optimizer in optimizers:
            done = folder / f"{learned_from.stem}.{optimizer}.result.json"
            if done.exists():
                continue
            compiled = compile_program(
                "answering",
                folder / "measured-on.jsonl",
                "token_f1",
                train=learned_from,
                method=Method(optimizer, sizes=sizes, seed=SEED),
                resources=Resources(settings=Settings(roles={"default": role}), lm={"default": make_lm(role)}),
                force=True,
            )
            result = {
                "set": name,
                "source": source,
                "optimizer": optimizer,
                "learned_from": compiled.n_train,
                "before": list(compiled.before),
                "after": list(compiled.after),
                "difference": list(interval(compiled.comparison.difference)),
                "calls": compiled.usage.calls,
                "seconds": compiled.seconds,
                "model": role.model,
                "machine": machine(),
            }
            done.write_text(json.dumps(result), encoding="utf-8")
            print(line_of(result), flush=True)


def interval(of: Any) -> tuple[float, float, float]:
    return of.estimate, of.low, of.high


def line_of(result: dict[str, Any]) -> str:
    before, after = (sum(result[when]) / len(result[when]) for when in ("before", "after"))
    difference, low, high = result["difference"]
    return (
        f"| {result['set']} | {result['source']} | {result['learned_from']} | {result['optimizer']} | {before:.3f} "
        f"| {after:.3f} | {difference:+.3f} [{low:+.3f}, {high:+.3f}] | {result['calls']:,} | {result['seconds']:.0f} |"
    )


def report(out: Path) -> None:
    results = [json.loads(path.read_text("utf-8")) for path in sorted(out.glob("*/*.result.json"))]
    for about in sorted({(result["model"].rpartition("/")[2], result["machine"]) for result in results}):
        print("; ".join(about))
    print("| set | learned from | rows | optimizer | before | after | difference | calls | s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for result in results:
        print(line_of(result))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("rows", "own", "run", "report"))
    parser.add_argument("sets", nargs="*")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--indexes", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--lm", help="a model string")
    parser.add_argument("--api-base")
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--sources", nargs="+", choices=SOURCES, default=SOURCES)
    parser.add_argument("--optimizers", nargs="+", choices=OPTIMIZERS, default=OPTIMIZERS[:2])
    parser.add_argument("--demos", type=int, default=4)
    parser.add_argument("--candidates", type=int, default=6)
    parser.add_argument("--threads", type=int, default=4)
    options = parser.parse_args()
    if options.what == "report":
        report(options.out)
        return

    role = RoleSettings(options.lm or "embedded", api_base=options.api_base, max_tokens=options.max_tokens)
    sizes = Sizes(demos=options.demos, candidates=options.candidates, threads=options.threads)
    for name in options.sets:
        if options.what == "rows":
            write_people(name, options.data, options.indexes, options.out)
        elif options.what == "own":
            write_own(name, options.indexes, role, options.out)
        else:
            run(name, role, options.out, options.sources, options.optimizers, sizes)


if __name__ == "__main__":
    main()
