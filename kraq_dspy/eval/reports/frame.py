"""Puts the rows of a run into a table of pandas."""

from collections.abc import Sequence
from typing import Any

from kraq_dspy.errors import needs
from kraq_dspy.eval.latency import TOTAL
from kraq_dspy.eval.rows import ResultRow


def rows_as_frame(rows: Sequence[ResultRow]) -> Any:
    """A `pandas.DataFrame` with a row for each of `rows`, in their order.

    Raises MissingExtraError without pandas.
    """
    with needs("pandas", "pandas", "A table of the rows"):
        import pandas

    metrics = list(dict.fromkeys(metric for row in rows for metric in row.metrics))
    records = []
    for row in rows:
        usage = row.extra.get("usage", {})
        record = {
            "question_id": row.question_id,
            "system": row.system,
            "question": row.extra.get("question", row.question_id),
            "gold": list(row.extra.get("gold", ())),
            "type": row.extra.get("type", ""),
            "answer": row.answer,
            "failure": row.failure,
            **{metric: row.metrics.get(metric) for metric in metrics},
            "evidence": list(row.extra.get("evidence", ())),
            "hit_ids": list(row.hit_ids),
            "seconds": row.timings.get(TOTAL),
            "prompt_tokens": usage.get("prompt_tokens"),
            "completion_tokens": usage.get("completion_tokens"),
        }
        if refusal := row.extra.get("refusal"):
            record["answerable"] = refusal["answerable"]
            record["refused"] = bool(refusal["below_threshold"] or refusal["passed_over"])
            record["answerable_score"] = refusal["answerable_score"]
        records.append(record)
    return pandas.DataFrame.from_records(records)
