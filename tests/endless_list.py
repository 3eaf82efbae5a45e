"""A reply form whose list can only say the same thing, many times: any model that keeps to it runs in a loop."""

from typing import Any


def endless_list(times: int) -> dict[str, Any]:
    """`marks`, of so many entries, and behind them `fits`, which is true or false."""
    mark = {"type": "string", "const": "always the same"}
    marks = {"type": "array", "items": mark, "minItems": times, "maxItems": 60}
    schema = {
        "type": "object",
        "properties": {"marks": marks, "fits": {"type": "boolean"}},
        "required": ["marks", "fits"],
        "additionalProperties": False,
    }
    return {"type": "json_schema", "name": "marks", "schema": schema, "strict": True}
