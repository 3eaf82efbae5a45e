"""Declares the options of Combined Retrieve RAG; the defaults are the paper's, which took k = 10 on PubHealth (3.1)."""

from dataclasses import dataclass
from typing import Literal

from kraq_dspy.programs.shared.options import option

EXPLAIN = "Also say what in the passages supports the answer."


@dataclass(frozen=True)
class CombinedOptions:
    """How many passages are retrieved, and how they are shared between the question and its nearest stored ones."""

    k: int = option(15, "Passages in all (the papers' M).", least=1, counts="passages")
    n: int = option(2, "Auxiliary questions.", least=1, counts="questions")
    alpha: float | Literal["auto"] = option(
        0.5, "Share of the passages found by your question; auto: by the shape of its scores.", least=0, most=1
    )
    strict: bool = option(False, "Retrieve the paper's count, which loses what its two floors cut off.")
    explain: bool = option(False, EXPLAIN)
    questions: Literal["kraq", "random"] = option("kraq", "Auxiliary questions: kraq, or random (a baseline).")
