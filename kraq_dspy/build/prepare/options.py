"""Says what can be chosen about the pre-computed embeddings; free of what computes them, so that help is quick."""

from dataclasses import dataclass
from typing import Literal

from kraq_dspy.programs.shared.options import option


@dataclass(frozen=True)
class InstructedOptions:
    """What is embedded as seen from which questions."""

    top_n: int | None = option(100, "Passages for each question; none for all.", least=1)
    int8: bool = option(False, "Half the size of float16, a little less exact.")
    questions: Literal["kraq", "random", "all"] = option(
        "kraq", "Questions to do it for: kraq, random (the papers' baseline) or all.", flag="--source"
    )
