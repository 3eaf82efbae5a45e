"""Reads PubHealth: claims about public health, to be verified from an article (Kotonya and Toni, 2020)."""

import logging
from collections.abc import Iterable, Mapping

from kraq_dspy.eval.datasets.dataset import Dataset, Example
from kraq_dspy.eval.datasets.hub import HubTable, RawRow
from kraq_dspy.records import Document

_log = logging.getLogger(__name__)

NAME = "pub_health"
TABLES = tuple(
    HubTable(name, "ImperialCollegeLondon/health_fact", "default", split, script=True)
    for name, split in (("claims", "test"), ("train", "train"))
)
LABELS = ("false", "mixture", "true", "unproven")
"""In the order of the numbers that stand for them on the hub; -1 is a missing label."""


def convert(tables: Mapping[str, Iterable[RawRow]]) -> Dataset:
    """A question is a claim, its answer "true", "false" or "mixture", its evidence the article's text.

    Those of the test split come first; the thesis asks 2,400, more than it has. As in the KRAQ paper, "unproven" claims
    are left out, and with them those without label, claim or text.
    """
    documents: list[Document] = []
    examples: dict[str, Example] = {}
    dropped = 0
    for row in (row for table in TABLES for row in tables[table.name]):
        label = row["label"] if isinstance(row["label"], str) else (*LABELS, "")[row["label"]]
        claim, text = (row["claim"] or "").strip(), (row["main_text"] or "").strip()
        claim_id = f"pubhealth-{row['claim_id']}"
        if label not in ("true", "false", "mixture") or not claim or not text or claim_id in examples:
            dropped += 1
            continue
        documents.append(Document(claim_id, "", text))
        examples[claim_id] = Example(claim_id, claim, (label,), (claim_id,), "veracity")
    _log.info("%s: %d claims kept, %d dropped", NAME, len(examples), dropped)
    return Dataset(NAME, tuple(documents), tuple(examples.values()))
