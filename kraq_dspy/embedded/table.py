"""Makes a sentence of each row of a table, so that a value stands beside the name of its column.

>>> print(with_rows_as_sentences("| Item | Small | Large |\\n|---|---|---|\\n| Kayak | 20 | 35 |").strip())
Item: Kayak; Small: 20; Large: 35.
"""

import re
from collections.abc import Iterator, Sequence

_ROW = re.compile(r"[^:;]{1,60}: [^:;]{1,80}(?:; [^:;]{1,60}: [^:;]{1,80}){1,40}\.")
_RULE = re.compile(r"\s*+\|?(?:\s*+:?-{2,}+:?\s*+\|)+\s*+(?::?-{2,}+:?)?\s*+\|?\s*$")
"""What Markdown has below the head of a table."""


def with_rows_as_sentences(text: str) -> str:
    """The text, with each row of a table as a sentence, if the table has a head or the row has its columns' names; the
    rest as it is."""
    if not any(mark in text for mark in ("|", "\t", "; ")):
        return text

    lines: list[str] = []
    block: list[str] = []
    for line in [*text.split("\n"), ""]:
        if _is_row(line):
            block.append(line)
            continue
        lines += _sentences(block)
        block = []
        lines.append(f"\n{line}." if _ROW.fullmatch(f"{line}.") else line)
    return "\n".join(lines[:-1])


def _is_row(line: str) -> bool:
    return line.count("|") >= 2 or "\t" in line.strip()


def _sentences(block: Sequence[str]) -> Iterator[str]:
    rows = [_cells(line) for line in block if not _RULE.match(line)]
    if len(rows) < 2:
        yield from block
        return

    head = rows[0]
    for row in rows[1:]:
        told = [
            f"{name}: {cell}" if name else cell
            for name, cell in zip([*head, *[""] * len(row)], row, strict=False)
            if cell
        ]
        yield f"\n{'; '.join(told)}."


def _cells(line: str) -> list[str]:
    inner = line.strip().removeprefix("|").removesuffix("|") if "|" in line else line
    return [cell.strip() for cell in inner.split("|" if "|" in line else "\t")]
