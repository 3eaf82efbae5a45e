"""Names every part of DSPy that is not public and that this library needs, so that a change of DSPy is met in one file.

`tests/_internal/test_dspy_internals.py` says by name what DSPy moved.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import dspy
from dspy._vendor.lm15.access import AccessPolicy as AccessPolicy
from dspy._vendor.lm15.compat import OpenAIChatCompat as OpenAIChatCompat
from dspy._vendor.lm15.registry import ProviderDefinition as ProviderDefinition, lookup as lookup
from dspy._vendor.lm15.result import StreamAccumulator as StreamAccumulator
from dspy._vendor.lm15.serde import (
    request_to_dict as request_to_dict,
    response_from_dict as response_from_dict,
    response_to_dict as response_to_dict,
)
from dspy._vendor.lm15.transports import (
    StdlibAsyncTransport as StdlibAsyncTransport,
    TransportError,
    TransportRequest as TransportRequest,
)
from dspy.adapters.types.base_type import CUSTOM_TYPE_START_IDENTIFIER as CUSTOM_TYPE_START_IDENTIFIER
from dspy.adapters.utils import (
    apply_output_field_defaults as apply_output_field_defaults,
    format_field_value as format_field_value,
    parse_value as parse_value,
    serialize_for_json as serialize_for_json,
)
from dspy.clients.backend_selection import CLIENT_KEYS as CLIENT_KEYS
from dspy.clients.call_context import adapter_fallback_scope as adapter_fallback_scope
from dspy.clients.engines import AsyncLiteLLMEngine as AsyncLiteLLMEngine, AsyncLM15Engine as AsyncLM15Engine
from dspy.clients.model_metadata import model_info as model_info

NetworkError = TransportError


@contextmanager
def thawed(program: dspy.Module) -> Iterator[None]:
    """Inside, no part of the program counts as compiled: DSPy passes over the predictors of compiled parts."""
    frozen = [part for _, part in program.named_sub_modules() if getattr(part, "_compiled", False)]
    for part in frozen:
        part._compiled = False
    try:
        yield
    finally:
        for part in frozen:
            part._compiled = True
