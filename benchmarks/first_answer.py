"""Times `kraq ask` from the start of its process to its end, beside another checkout where one is named.

    python benchmarks/first_answer.py demo.kraq [--against ../former] [--rounds 5]

The embedded model answers, so nothing waits for a server. Rounds alternate between the checkouts: ratios are of one
run. Seconds of processor are what a quiet machine would need; by the clock, other work counts too.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

from stand_in import machine

QUESTION = "Which magazine was started first, Arthur's Magazine or First for Women?"
HERE = Path(__file__).resolve().parents[1]


def asked(checkout: Path, index: Path) -> tuple[float, float]:
    """Seconds by the clock, and of the processor."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    command = [sys.executable, "-m", "kraq_dspy", "ask", str(index.resolve()), QUESTION, "--json"]
    environment = {**os.environ, "PYTHONPATH": str(checkout)}
    subprocess.run(command, check=True, capture_output=True, cwd=checkout, env=environment)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("--against", type=Path, help="another checkout")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    checkouts = [HERE, *([options.against.resolve()] if options.against else [])]
    for checkout in checkouts:
        asked(checkout, options.index)  # a warm disk
    seconds: dict[Path, list[tuple[float, float]]] = {checkout: [] for checkout in checkouts}
    for _ in range(options.rounds):
        for checkout in checkouts:
            seconds[checkout].append(asked(checkout, options.index))
    print(f"{machine()}, load {os.getloadavg()[0]:.1f}, {options.rounds} rounds, medians")
    medians = {}
    for checkout, rounds in seconds.items():
        medians[checkout] = [statistics.median(values) for values in zip(*rounds, strict=True)]
        wall, cpu = medians[checkout]
        name = "this checkout" if checkout == HERE else "the other one"
        print(f"{name:14} {wall:5.2f} s, of the processor {cpu:5.2f} s")
    if options.against:
        ratio = [there / here for here, there in zip(medians[HERE], medians[checkouts[1]], strict=True)]
        print(f"{'ratio':14} {ratio[0]:5.2f}, of the processor {ratio[1]:5.2f}")


if __name__ == "__main__":
    main()
