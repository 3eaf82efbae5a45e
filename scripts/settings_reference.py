"""Writes docs/reference/settings.md from kraq_dspy/settings.py: `python scripts/settings_reference.py`."""

import ast
import inspect
import itertools
import textwrap
from pathlib import Path
from typing import Any

from kraq_dspy import settings as config
from kraq_dspy._internal.options import options_of

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "settings.md"
BEGINNING = """# Settings

<!-- Written by scripts/settings_reference.py from kraq_dspy/settings.py: change it there. -->

kraq reads `kraq.toml` of the current folder, or the file after `--config`, once. You may leave out any section and key;
kraq rejects unknown ones by name. Options of the command line win over the file.

`preset = "thrifty"`, before the first section, takes the place of some defaults: an index for six times the corpus's
tokens in prompts instead of nine and a half ([what it costs](../results.md#cost-and-growth)).
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
    """One line a key: its default, what it takes, its description."""
    described = descriptions(kind)
    rows = []
    for key, option in options_of(kind).items():
        rows.append(f"- `{key}`, {option.takes}, default {default_in_toml(option.default)}: {described[key]}")
    return "\n".join(rows) + "\n"


def descriptions(kind: type) -> dict[str, str]:
    """The text under each field of a class, on one line. KeyError in `lines` for a field without one."""
    tree: Any = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    return {
        ast.unparse(field.target): " ".join(str(ast.literal_eval(text.value)).split())
        for field, text in itertools.pairwise(tree.body[0].body)
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
    }


def default_in_toml(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    return f'`"{value}"`' if isinstance(value, str) else f"`{value}`"


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
