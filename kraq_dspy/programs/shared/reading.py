"""Makes the last step of a program that reads passages: the answer alone, or with an explanation of it."""

from kraq_dspy._internal.step import FittingPredict
from kraq_dspy.errors import ConfigError
from kraq_dspy.programs.shared.steps import SignatureLike, signature_for
from kraq_dspy.signatures import AnswerAndExplain, AnswerQuestion

EXPLAIN = "Also say what in the passages supports the answer."


def make_reader(explain: bool = False, signature: SignatureLike = None) -> FittingPredict:
    """What is asked with `question` and `passages`; where they are too long, it shortens the passages.

    Raises ConfigError for a signature without `explanation` where one is to be had.
    """
    chosen = signature_for(AnswerAndExplain if explain else AnswerQuestion, signature)
    if explain and "explanation" not in chosen.output_fields:
        raise ConfigError(
            f"explain=True needs the output 'explanation', which {chosen.__name__} does not have. Add the output "
            "field, or leave explain out."
        )
    return FittingPredict(chosen, shorten="passages")
