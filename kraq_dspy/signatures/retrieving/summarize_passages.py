"""Says what a cluster of passages, or of their summaries, says (RAPTOR: Sarthi et al., 2024)."""

import dspy


class SummarizePassages(dspy.Signature):
    """Summarise the passages together, from them alone, with as many of their names, numbers and dates as fit.

    Say what they share first, then what each adds; at most eight sentences.
    """

    passages: list[str] = dspy.InputField()
    summary: str = dspy.OutputField()
