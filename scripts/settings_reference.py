"""Writes docs/reference/settings.md from kraq_dspy/settings.py: `python scripts/settings_reference.py`."""

import ast
import inspect
import itertools
import re
import textwrap
from pathlib import Path
from typing import Any

from kraq_dspy import settings as config
from kraq_dspy._internal.options import options_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "settings.md"
BEGINNING = """# Settings

<!-- Written by scripts/settings_reference.py from kraq_dspy/settings.py: change it there. -->

kraq reads `kraq.toml` of the current folder, or the file after `--config`. You may leave out any section and key.
kraq rejects unknown keys by name. Options of the command line have priority over the file. Each line below has a key
with its default, and in parentheses the values that the key takes. A key without a default is unset.

`preset = "thrifty"`, before the first section, changes some defaults. An index then takes about six prompt tokens for
each token of the corpus instead of nine ([figures](../results.md#other-systems)).
"""


def page() -> str:
    sections: dict[str, Any] = {name: option.kinds[0] for name, option in options_of(config.Settings).items()}
    roles = ", ".join(f"`{role}`" for role in config.ROLES)
    sections["roles"] = config.RoleSettings
    parts = [BEGINNING]
    for name, kind in sections.items():
        title = f"[{name}]" if name != "roles" else "[roles.NAME]"
        about = inspect.cleandoc(kind.__doc__ or "")
        if name == "roles":
            about += f" NAME is one of {roles}; a missing role falls back to `[roles.default]`."
        parts.append(f"\n## {title}\n\n{textwrap.fill(about, 120)}\n\n{lines(kind)}")
    return "".join(parts)


def lines(kind: type) -> str:
    """One line a key: its default, what it takes unless the default says so, its description."""
    described = descriptions(kind)
    rows = []
    for key, option in options_of(kind).items():
        takes = re.sub(r"^(?:text|true or false|a (?:whole )?number|one of)(?:, | |$)", "", option.takes)
        if option.default is None:
            shown = f"`{key}`, {option.takes}"
        elif takes:
            shown = f"`{key} = {in_toml(option.default)}` ({takes})"
        else:
            shown = f"`{key} = {in_toml(option.default)}`"
        rows.append(f"- {shown}: {described[key]}")
    return "\n".join(rows) + "\n"


def descriptions(kind: type) -> dict[str, str]:
    """The text under each field of a class, on one line. KeyError in `lines` for a field without one."""
    tree: Any = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    return {
        ast.unparse(field.target): " ".join(str(ast.literal_eval(text.value)).split())
        for field, text in itertools.pairwise(tree.body[0].body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }


def in_toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
