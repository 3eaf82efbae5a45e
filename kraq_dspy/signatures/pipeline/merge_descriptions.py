"""Makes one description of many of the same entity (KRAQ, stage 2)."""

import dspy


class MergeDescriptions(dspy.Signature):
    """Write one description of the entity that keeps every fact of the given ones and says each once.

    Third person, at most five sentences; where descriptions contradict each other, give both versions.
    """

    name: str = dspy.InputField()
    descriptions: list[str] = dspy.InputField()
    description: str = dspy.OutputField()
