"""Says what stands behind the public doors of the package, and what a warm question runs through.

    python scripts/doors.py

Importing a name loads modules of the package: their rooms, their tokens without comments, and the processor's seconds
in a fresh process, the median of five. A warm question is the third one to an index of twelve passages. Files and
functions are those that it enters, frames the most of the package's on one stack. PYTHONPATH=CHECKOUT measures another
version of the package.
"""

import argparse
import io
import statistics
import subprocess
import sys
import tempfile
import threading
import tokenize
from pathlib import Path
from types import FrameType

EXAMPLE = Path(__file__).resolve().parents[1] / "examples" / "hotpotqa-mini" / "corpus.jsonl"
PASSAGES = 12
QUESTIONS = (
    "Who directed Ed Wood?",
    "What nationality was Ed Wood?",
    "Were Scott Derrickson and Ed Wood of the same nationality?",
)
REPEATS = 5

DOORS = (
    "import dspy",
    "from kraq_dspy.programs import CombinedRetrieveRAG",
    "from kraq_dspy.retrievers import CombinedRetriever",
    "from kraq_dspy import Workspace",
    "from kraq_dspy import evaluate",
    "from kraq_dspy.optimize import compile_program",
    "import kraq_dspy.apps.cli",
)

_LOADED = """
import sys, time
started = time.process_time()
{door}
seconds = time.process_time() - started
print(seconds, *(module for module in sys.modules if module.startswith("kraq_dspy.")))
"""
_LAYOUT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}


def loaded_by(door: str, package: Path) -> tuple[float, list[str]]:
    """The seconds that a fresh process computes for an import, and the modules of the package that it loads."""
    command = [sys.executable, "-c", _LOADED.format(door=door)]
    seconds, *modules = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=package.parent
    ).stdout.split()
    return float(seconds), modules


def tokens_of(package: Path, module: str) -> int:
    place = package.parent.joinpath(*module.split("."))
    file = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
    return sum(token.type not in _LAYOUT for token in tokenize.generate_tokens(io.StringIO(file.read_text()).readline))


def print_doors(package: Path) -> None:
    print("| door | rooms | modules | thousand tokens | seconds |\n|---|---|---|---|---|")
    for door in DOORS:
        runs = [loaded_by(door, package) for _ in range(REPEATS)]
        modules = runs[0][1]
        rooms = {module.split(".")[1] for module in modules}
        tokens = sum(tokens_of(package, module) for module in modules)
        seconds = statistics.median(seconds for seconds, _ in runs)
        print(f"| `{door}` | {len(rooms)} | {len(modules)} | {tokens / 1000:.0f} | {seconds:.2f} |", flush=True)


class Trace:
    """Hears which functions of the package are called, in all threads, and how many of them wait for each other."""

    def __init__(self, package: Path) -> None:
        self.functions: set[tuple[str, str]] = set()
        self.frames = 0
        self._inside = str(package)

    def __enter__(self) -> "Trace":
        threading.setprofile(self._hear)
        sys.setprofile(self._hear)
        return self

    def __exit__(self, *exception: object) -> None:
        sys.setprofile(None)
        threading.setprofile(None)

    def _hear(self, frame: FrameType, event: str, argument: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(self._inside):
            return
        self.functions.add((frame.f_code.co_filename, frame.f_code.co_qualname))

        frames = 0
        caller: FrameType | None = frame
        while caller is not None:
            frames += caller.f_code.co_filename.startswith(self._inside)
            caller = caller.f_back
        self.frames = max(self.frames, frames)


def print_question(package: Path) -> None:
    import kraq_dspy as kraq

    with tempfile.TemporaryDirectory() as folder:
        corpus, index = Path(folder, "corpus.jsonl"), Path(folder, "docs.kraq")
        corpus.write_text("\n".join(EXAMPLE.read_text("utf-8").splitlines()[:PASSAGES]) + "\n", "utf-8")
        kraq.build_index(corpus, index)
        with kraq.Workspace.open(index) as space:
            for question in QUESTIONS[:-1]:
                space.ask(question)
            with Trace(package) as trace:
                space.ask(QUESTIONS[-1])

    files = {file for file, _ in trace.functions}
    print(f"\nA warm space.ask: {len(files)} files, {len(trace.functions)} functions, {trace.frames} frames")


def main() -> None:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    import kraq_dspy

    package = Path(kraq_dspy.__file__).parent
    print_doors(package)
    print_question(package)


if __name__ == "__main__":
    main()
