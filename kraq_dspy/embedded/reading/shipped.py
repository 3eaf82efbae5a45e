"""Analyses that come with the package: those of the bundled example's passages, which `kraq demo` need not parse.

`scripts/read_example.py` writes them. They count only for the reading that made them (`MADE_BY`).
"""

import json
import lzma
from collections.abc import Mapping
from pathlib import Path

from kraq_dspy.embedded.reading.analysis import Analysis, from_values, to_values
from kraq_dspy.embedded.reading.reader import MADE_BY

FILE = "analyses.json.xz"
"""Its name in the example's folder."""


def shipped_analyses(example: Path) -> dict[str, Analysis]:
    """The analysis of each passage of an example's folder; none if another reading made them, or no file is there."""
    try:
        shipped = json.loads(lzma.decompress((example / FILE).read_bytes()))
    except FileNotFoundError:
        return {}
    if shipped["made_by"] != MADE_BY:
        return {}
    return {passage: from_values(values) for passage, values in shipped["passages"].items()}


def write_analyses(example: Path, analyses: Mapping[str, Analysis]) -> Path:
    """Write what `shipped_analyses` reads. The same analyses make the same bytes."""
    passages = {passage: to_values(analysis) for passage, analysis in analyses.items()}
    text = json.dumps({"made_by": MADE_BY, "passages": passages}, ensure_ascii=False, separators=(",", ":"))
    file = example / FILE
    file.write_bytes(lzma.compress(text.encode(), preset=9))
    return file
