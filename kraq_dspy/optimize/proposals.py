"""Takes what a model proposes as an instruction for what it says."""

from typing import Any

from dspy.utils.exceptions import AdapterParseError

from kraq_dspy._internal.both_ways import blocking
from kraq_dspy.models.lms.structured.adapter import KraqAdapter

PROPOSED = "proposed_instruction"
"""The field in which DSPy's MIPROv2 and COPRO ask for an instruction."""


class ProposingAdapter(KraqAdapter):
    """KraqAdapter, but a proposal that cannot be read twice is tried as it stands: it scores what it is worth.

    Small models forget the markers or chatter, and MIPROv2 ends its whole run over one such reply. An empty one stands
    for the instruction that there was.
    """

    async def acall(
        self, lm: Any, lm_kwargs: dict[str, Any], signature: Any, demos: list[Any], inputs: dict[str, Any]
    ) -> list[dict[str, Any]]:
        try:
            return await super().acall(lm, lm_kwargs, signature, demos, inputs)
        except AdapterParseError as error:
            if PROPOSED not in signature.output_fields:
                raise
            proposed = error.lm_response.strip() or str(inputs.get("basic_instruction", "")).strip()
            if not proposed:
                raise
            others = dict.fromkeys(signature.output_fields, "")
            return [{**others, PROPOSED: proposed}]

    __call__ = blocking(acall)
