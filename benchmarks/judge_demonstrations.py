"""Does a judge copy the verdicts of the demonstrations it is shown?

    python benchmarks/judge_demonstrations.py --data ../shared/data --lm transformers/FOLDER [--rows 40]

The rows of optimizer_gain.py's judging: gold answers of HotpotQA and those of other questions, half of each. The judge
is shown none or two demonstrations, of rows that it is not asked about, in every order of right and wrong. A reply that
cannot be read counts as neither verdict.
"""

import argparse
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import dspy
from optimizer_gain import judging
from stand_in import machine

from kraq_dspy.config import RoleSettings
from kraq_dspy.lms.roles import make_lm
from kraq_dspy.lms.structured.adapter import KraqAdapter
from kraq_dspy.programs.failed_calls import CALL_ERRORS
from kraq_dspy.signatures import JudgeAnswer

SHOWN: tuple[tuple[bool, ...], ...] = ((), (True, True), (True, False), (False, True), (False, False))
"""The verdicts of the demonstrations, in their order."""


def example(row: dict[str, object]) -> dspy.Example:
    inputs = {"question": row["question"], "reference_answers": row["answers"], "answer": row["answer"]}
    return dspy.Example(**inputs, correct=row["right"]).with_inputs(*inputs)


def verdicts(
    judge: dspy.Predict, asked: Sequence[dspy.Example], lm: dspy.BaseLM, concurrency: int
) -> list[bool | None]:
    def verdict(row: dspy.Example) -> bool | None:
        with dspy.context(lm=lm, adapter=KraqAdapter()):
            try:
                return bool(judge(**row.inputs()).correct)
            except CALL_ERRORS as error:
                print(f"{row.question!r}: {error}")
                return None

    with ThreadPoolExecutor(concurrency) as pool:
        return list(pool.map(verdict, asked))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--lm", required=True)
    parser.add_argument("--rows", type=int, default=40, help="that are asked about")
    parser.add_argument("--max-tokens", type=int, default=300)
    parser.add_argument("--concurrency", type=int, default=8)
    options = parser.parse_args()
    lm = make_lm(RoleSettings(options.lm, temperature=0.0, max_tokens=options.max_tokens))
    examples = [example(dict(row)) for row in judging(options.data, options.rows + 8)]
    of_kind = {kind: [row for row in examples if row.correct is kind] for kind in (True, False)}
    asked = {kind: rows[4:] for kind, rows in of_kind.items()}
    print(f"{machine()}; {options.lm}")
    print("| demonstrations | right answers called right | wrong answers called right |\n|---|---|---|")
    for shown in SHOWN:
        judge = dspy.Predict(JudgeAnswer)
        judge.demos = [of_kind[kind][place] for place, kind in enumerate(shown)]
        cells = [", ".join("right" if kind else "wrong" for kind in shown) or "none"]
        for rows in asked.values():
            said = verdicts(judge, rows, lm, options.concurrency)
            cells.append(f"{said.count(True)} of {len(said)}")
        print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
