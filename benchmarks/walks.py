"""Times walks over random graphs of passages and entities, of growing size, whose entities come up as names do.

    python benchmarks/walks.py [--sizes 10000 100000 1000000]

Eight entities a passage and eight links an entity; twenty passages to start from. Milliseconds are of the processor, so
that other work on the machine does not count.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from stand_in import machine

from kraq_dspy.graph.passage_graph import PassageGraph, of_edges

EACH, STARTS, WALKS = 8, 20, 12


def random_graph(passages: int, chance: np.random.Generator) -> PassageGraph:
    entities = passages * 11 // 10
    often = np.cumsum(1 / (np.arange(entities) + 10.0))

    def drawn() -> NDArray[np.int64]:
        entity: NDArray[np.int64] = np.searchsorted(often, chance.random(EACH * passages) * often[-1])
        return entity + passages

    one, other = drawn(), drawn()
    sources = np.concatenate([np.repeat(np.arange(passages), EACH), np.minimum(one, other)])
    targets = np.concatenate([drawn(), np.maximum(one, other)])
    apart = sources != targets
    ids = np.array([f"{number:032x}".encode() for number in range(passages)], "S")
    return of_edges(ids, passages + entities, (sources * (passages + entities) + targets)[apart])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    print(machine())
    chance = np.random.default_rng(0)
    for passages in parser.parse_args().sizes:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "passages.graph"
            random_graph(passages, chance).save(file)
            graph = PassageGraph.open(file)
            seconds = []
            for _ in range(WALKS):
                places = chance.choice(passages, STARTS, replace=False)
                weights = np.exp(-chance.exponential(3, STARTS))
                start = {graph.ids[at].decode(): float(one) for at, one in zip(places, weights, strict=True)}
                begun = time.process_time()
                graph.visits(start, 0.8).best(50)
                seconds.append(time.process_time() - begun)
            size = f"{len(graph.neighbours):,} entries, {file.stat().st_size >> 20} MB"
            print(f"{passages:,} passages, {size}: {1000 * statistics.median(seconds):.0f} ms a walk")


if __name__ == "__main__":
    main()
