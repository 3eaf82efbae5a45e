"""Writes records as JSON lines."""

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kraq_dspy._internal.files import replaced


def write_jsonl(path: Path, kind: type[Any], records: Iterable[Any]) -> Path:
    """The file `path`, its folder made: UTF-8, a record per line, its fields in their order; half characters (lone
    surrogates), which UTF-8 does not have, become question marks.

    Records are written as they come; the file appears, or is replaced, when all are. Raises TypeError for a record of
    another kind.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced(path) as draft, draft.open("w", encoding="utf-8", errors="replace", newline="\n") as lines:
        for record in records:
            if not isinstance(record, kind):
                raise TypeError(f"{record!r} is no {kind.__name__}.")
            json.dump(dataclasses.asdict(record), lines, ensure_ascii=False)
            lines.write("\n")
    return path
