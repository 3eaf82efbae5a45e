"""Times how long one question takes to encode while every core is busy, against an idle machine.

    python benchmarks/encoder_under_load.py [--rounds 5]

Each round runs four fresh processes, in turn: passive and spinning threads, idle and with one busy process a core.
Ratios are of the same round; the machine should have nothing else to do.
"""

import argparse
import multiprocessing
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

QUESTION = "Which of the two towns on the river was founded first?"
ENCODE = f"""
import time, statistics
from kraq_dspy.embedders.sentence import SentenceEmbedder
encoder = SentenceEmbedder()
for _ in range(5):
    encoder.encode_queries([{QUESTION!r}])
seconds = []
for _ in range(40):
    start = time.perf_counter()
    encoder.encode_queries([{QUESTION!r}])
    seconds.append(time.perf_counter() - start)
print(statistics.median(seconds) * 1000)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    cores = os.cpu_count() or 1
    ratios: dict[str, list[float]] = {"PASSIVE": [], "ACTIVE": []}
    print(f"{cores} cores, load before: {os.getloadavg()[0]:.1f}\n\n| threads | idle ms | every core busy ms | ratio |")
    print("|---|---|---|---|")
    for _ in range(arguments.rounds):
        for policy, column in ratios.items():
            idle = _encode(policy)
            with _busy(cores):
                busy = _encode(policy)
            column.append(busy / idle)
            print(f"| {policy.lower()} | {idle:.1f} | {busy:.1f} | {busy / idle:.1f} |", flush=True)
    for policy, column in ratios.items():
        print(f"\n{policy.lower()}: median ratio {statistics.median(column):.1f}")


def _encode(policy: str) -> float:
    """Median milliseconds, in a process of its own: the policy is read when torch is imported."""
    environment = {**os.environ, "OMP_WAIT_POLICY": policy}
    environment.pop("OMP_NUM_THREADS", None)
    done = subprocess.run([sys.executable, "-c", ENCODE], env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


@contextmanager
def _busy(cores: int) -> Iterator[None]:
    workers = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(cores)]
    for worker in workers:
        worker.start()
    try:
        yield
    finally:
        for worker in workers:
            worker.terminate()


def _spin() -> None:
    while True:
        pass


if __name__ == "__main__":
    main()
