"""Compares what a question costs through every door: called, awaited, in threads, evaluated, over HTTP.

    python benchmarks/awaited.py demo.kraq [--questions 40] [--warm 300] [--json]

A door's cost is the processor time of this process for each question, all threads together, so that a machine that is
busy with other things can be measured on. The ratio is to a plain call in the same run: of the program or, for `aask`
and HTTP, which look for next questions too, of `ask`. The model is a stand-in that answers at once.

OMP_NUM_THREADS and the like, which hide threads that wait busily, are unset here. The passages of --warm are encoded
first, so that an encoder that changes its engine after many texts has done so.

Ends with 1 if a door costs more than 1.3 times a plain call.
"""

import argparse
import asyncio
import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HIDING = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "GOTO_NUM_THREADS")
MOST = 1.3
"""Times the cost of a plain call."""
AT_ONCE = 20
ROUNDS = 3
ASKING = ("ask", "aask, one by one", f"aask, {AT_ONCE} at once", "over HTTP")
"""Doors that look for next questions too."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("--questions", type=int, default=40)
    parser.add_argument("--warm", type=int, default=0, metavar="TEXTS")
    parser.add_argument("--program", default="traditional")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()

    if hiding := [name for name in HIDING if name in os.environ]:  # they count when numpy is loaded
        environment = {name: value for name, value in os.environ.items() if name not in hiding}
        os.execve(sys.executable, [sys.executable, *sys.argv], environment)

    costs = measured(options.index, options.program, options.questions, options.warm)
    rows = {door: {"ms": 1000 * each, "ratio": each / costs[plain_door(door)]} for door, each in costs.items()}
    if options.json:
        print(json.dumps({"load_average": os.getloadavg()[0], "doors": rows}, indent=2))
    else:
        print(f"load average {os.getloadavg()[0]:.1f}; ms of processor a question, and the ratio to a plain call")
        for door, row in rows.items():
            print(f"{door:24} {row['ms']:7.1f} {row['ratio']:6.2f}")
    if dear := [door for door, row in rows.items() if row["ratio"] > MOST]:
        sys.exit(f"More than {MOST} times a plain call: {', '.join(dear)}")


def plain_door(door: str) -> str:
    return "ask" if door in ASKING else "called"


def measured(index: Path, program_name: str, n_questions: int, n_warm: int) -> dict[str, float]:
    """Seconds of processor a question, by door."""
    from dspy.utils import DummyLM

    import kraq_dspy as kraq
    from kraq_dspy.records import Chunk

    replies = [{"answer": "x", "reasoning": "r"}] * (40 * n_questions)
    with kraq.Workspace.open(index, lm=DummyLM(replies)) as space:
        program = space.program(program_name)
        questions = [question.text for question in space.index.questions()][:n_questions]
        if n_warm:
            passages = [chunk.passage for chunk in space.index.all(Chunk)]
            space.embedder.encode_passages(passages[:n_warm])
        space.ask(questions[0], program)

        doors: dict[str, Callable[[list[str]], Any]] = {
            "called": lambda some: [program(question=question) for question in some],
            "acall, one by one": lambda some: asyncio.run(awaited(program.acall, some)),
            f"acall, {AT_ONCE} at once": lambda some: asyncio.run(awaited(program.acall, some, AT_ONCE)),
            f"threads, {AT_ONCE} at once": lambda some: in_threads(program, some),
            "evaluate": lambda some: evaluated(program, some),
            "ask": lambda some: [space.ask(question, program) for question in some],
            "aask, one by one": lambda some: asyncio.run(asked(space, program, some)),
            f"aask, {AT_ONCE} at once": lambda some: asyncio.run(asked(space, program, some, AT_ONCE)),
            "over HTTP": lambda some: asyncio.run(over_http(space, program_name, some)),
        }
        return cost(doors, questions)


def cost(doors: dict[str, Callable[[list[str]], Any]], questions: Sequence[str]) -> dict[str, float]:
    """Seconds of processor a question, by door: the least of some rounds, since other jobs disturb a round.

    No round asks in the words of another, since an encoder remembers the last questions; they are of one length.
    """
    seconds: dict[str, list[float]] = {door: [] for door in doors}
    numbers = itertools.count(100)
    for _ in range(ROUNDS):
        for door, work in doors.items():
            number = next(numbers)
            new = [f"{question} {number}" for question in questions]
            started = time.process_time()
            work(new)
            seconds[door].append(time.process_time() - started)
    return {door: min(each) / len(questions) for door, each in seconds.items()}


async def awaited(acall: Callable[..., Any], questions: Sequence[str], at_once: int = 1) -> None:
    for start in range(0, len(questions), at_once):
        await asyncio.gather(*(acall(question=question) for question in questions[start : start + at_once]))


async def asked(space: Any, program: Any, questions: Sequence[str], at_once: int = 1) -> None:
    for start in range(0, len(questions), at_once):
        await asyncio.gather(*(space.aask(question, program) for question in questions[start : start + at_once]))


def in_threads(program: Any, questions: Sequence[str]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda question: program(question=question), questions))


def evaluated(program: Any, questions: Sequence[str]) -> None:
    import kraq_dspy as kraq

    rows = [{"question": question, "answers": ["x"]} for question in questions]
    kraq.evaluate(program, rows, metrics=["exact_match"])


async def over_http(space: Any, program_name: str, questions: Sequence[str]) -> None:
    import httpx

    from kraq_dspy.apps.serve.app import make_app
    from kraq_dspy.apps.serve.serve_settings import ServeSettings
    from kraq_dspy.apps.serve.served import ServedIndex

    app = make_app({"index": ServedIndex("index", space)}, ServeSettings(at_once=AT_ONCE, waiting=1000))
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", timeout=600) as client:

        async def post(question: str) -> None:
            reply = await client.post("/api/ask", json={"question": question, "program": program_name})
            reply.raise_for_status()

        for start in range(0, len(questions), AT_ONCE):
            await asyncio.gather(*map(post, questions[start : start + AT_ONCE]))


if __name__ == "__main__":
    main()
