"""Makes blocks of code of the examples in docstrings, so that no output of theirs is read as a link.

`mkdocs.yml` names it: mkdocstrings lets it see each docstring before it reads it.
"""

from typing import Any

import griffe


class DoctestBlocks(griffe.Extension):
    """Fences each example, from its ">>>" to the next empty line."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(text: str) -> str:
    """The docstring with a fence around each example.

    >>> print(fenced("Adds.\\n\\n>>> 1 + 1\\n2\\n\\nFast."))
    Adds.
    <BLANKLINE>
    ```python
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    Fast.
    """
    lines: list[str] = []
    indent: str | None = None  # of the open example
    in_block = False
    for line in text.split("\n"):
        stripped = line.lstrip()
        if indent is None and stripped.startswith("```"):
            in_block = not in_block
        if indent is None and not in_block and stripped.startswith(">>> "):
            indent = line[: len(line) - len(stripped)]
            lines.append(f"{indent}```python")
        elif indent is not None and not stripped:
            lines.append(f"{indent}```")
            indent = None
        lines.append(line.replace("  # doctest: +SKIP", ""))
    if indent is not None:
        lines.append(f"{indent}```")
    return "\n".join(lines)
