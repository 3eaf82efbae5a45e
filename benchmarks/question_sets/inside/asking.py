"""Reads what a generator is to ask about, and writes what came of each item; needs the standard library alone.

A job names `items` (JSON lines with an id and what the generator is shown), `out` (JSON lines, an item each),
`questions` (how many are wanted), `until` (seconds of the clock after which nothing is begun), `server` (its address,
or null where the model is in the generator's own process) and the system's `options`.
"""

import json
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

KEY, MODEL = "not-needed", "local"
Item = dict[str, Any]


def ask_each(job: dict[str, Any], question_of: Callable[[Item], dict[str, Any]]) -> None:
    """One item after the other, until there are enough questions; what an earlier run tried is not tried again.

    `question_of` gives `question` and more; what it raises is kept as the reason why there is none. Beside each is what
    it took: seconds, and what the server was asked meanwhile, so that sums survive a run that was broken off.
    """
    out = Path(job["out"])
    rows = read_rows(out) if out.exists() else []
    tried, made = {row["id"] for row in rows}, sum("question" in row for row in rows)
    for item in read_rows(Path(job["items"])):
        if made >= job["questions"] or time.time() > job["until"]:
            return
        if item["id"] in tried:
            continue
        start, before = time.monotonic(), _counts(job)
        try:
            row = question_of(item)
        except Exception as error:  # noqa: BLE001 whatever a generator raises is counted, and the next item tried
            row = {"error": f"{type(error).__name__}: {error}"[:500]}
        row = {"id": item["id"], **row, "seconds": round(time.monotonic() - start, 2)}
        row["asked"] = {name: count - before[name] for name, count in _counts(job).items()}
        made += "question" in row
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")


def asked(question: object, **more: Any) -> dict[str, Any]:
    """Raises ValueError where there is no question."""
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f"The question is {question!r}.")
    return {"question": " ".join(question.split()), **more}


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Of a file of JSON lines; a last line that was broken off is left out."""
    lines = path.read_text("utf-8").split("\n")[:-1]
    return [json.loads(line) for line in lines if line]


def _counts(job: dict[str, Any]) -> dict[str, float]:
    if job["server"] is None:
        return {}
    with urllib.request.urlopen(f"{job['server']}/stats", timeout=60) as reply:
        counts: dict[str, float] = json.loads(reply.read())
    return counts
