"""Reads what was typed into a PDF: values of form fields, and text laid over a page."""

from collections.abc import Iterator
from typing import Any

from kraq_dspy.asset.corpus.normalise import is_blank, normalised

_HIDDEN, _NO_VIEW = 1 << 1, 1 << 5  # flags of an annotation
_PASSWORD, _PUSH_BUTTON = 1 << 13, 1 << 16  # flags of a field
_MOST_PARENTS = 20


def typed_in(page: Any) -> Iterator[str]:
    """A line for each field of a page that has a value, as "label: value", and for each text laid over it.

    Passwords, buttons and what is hidden are left out.
    """
    annotations = page.get("/Annots")
    for reference in annotations.get_object() if annotations is not None else ():
        annotation = reference.get_object()
        if _integer(annotation.get("/F")) & (_HIDDEN | _NO_VIEW):
            continue
        kind = annotation.get("/Subtype")
        if kind == "/FreeText":
            line = _text(annotation.get("/Contents"))
        elif kind == "/Widget":
            line = _field(annotation)
        else:
            continue
        if not is_blank(line):
            yield line


def _field(widget: Any) -> str:
    chain = list(_with_parents(widget))
    kind, value, flags = (_inherited(chain, name) for name in ("/FT", "/V", "/Ff"))
    if kind not in ("/Tx", "/Ch", "/Btn") or _integer(flags) & (_PUSH_BUTTON if kind == "/Btn" else _PASSWORD):
        return ""
    written = _choice(widget, value) if kind == "/Btn" else _text(value)
    if not written:
        return ""
    label = _text(_inherited(chain, "/TU")) or _name(chain)
    return f"{label}: {written}" if label else written


def _choice(widget: Any, value: Any) -> str:
    """Tell what a box or a radio button stands for, "" unless it is chosen."""
    state = widget.get("/AS", value)
    if state is None or state == "/Off" or (value is not None and state != value):
        return ""
    name = _text(state).removeprefix("/")
    return "yes" if name in ("", "Yes", "On", "1", "true") else name


def _with_parents(widget: Any) -> Iterator[Any]:
    field = widget
    for _ in range(_MOST_PARENTS):
        yield field
        if field.get("/Parent") is None:
            return
        field = field["/Parent"].get_object()


def _inherited(chain: list[Any], name: str) -> Any:
    return next((field[name] for field in chain if name in field), None)


def _name(chain: list[Any]) -> str:
    """The field's full name, without what a program numbers fields with: "form1[0].name[0]" is "name"."""
    names = [_text(field["/T"]) for field in chain if "/T" in field]
    return names[0].partition("[")[0] if names else ""


def _text(value: Any) -> str:
    value = value.get_object() if hasattr(value, "get_object") else value
    if value is None:
        return ""
    if isinstance(value, list):
        return ", ".join(filter(None, map(_text, value)))
    if hasattr(value, "get_data"):
        value = value.get_data().decode("utf-8", "replace")
    return " ".join(normalised(str(value)).split())


def _integer(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0
