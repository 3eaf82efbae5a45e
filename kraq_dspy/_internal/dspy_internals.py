"""Names every part of DSPy that is not public and that this library needs, so that a change of DSPy is met in one file.

`tests/_internal/test_dspy_internals.py` says by name what DSPy moved.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import dspy
from dspy._vendor.lm15.access import AccessPolicy
from dspy._vendor.lm15.compat import OpenAIChatCompat
from dspy._vendor.lm15.registry import ProviderDefinition, lookup
from dspy._vendor.lm15.result import StreamAccumulator
from dspy._vendor.lm15.serde import request_to_dict, response_from_dict, response_to_dict
from dspy._vendor.lm15.transports import StdlibAsyncTransport, TransportRequest
from dspy._vendor.lm15.transports import TransportError as NetworkError
from dspy.adapters.types.base_type import CUSTOM_TYPE_START_IDENTIFIER
from dspy.adapters.utils import apply_output_field_defaults, format_field_value, parse_value, serialize_for_json
from dspy.clients.backend_selection import CLIENT_KEYS
from dspy.clients.call_context import adapter_fallback_scope
from dspy.clients.engines import AsyncLiteLLMEngine, AsyncLM15Engine
from dspy.clients.model_metadata import model_info

__all__ = [
    "CLIENT_KEYS",
    "CUSTOM_TYPE_START_IDENTIFIER",
    "AccessPolicy",
    "AsyncLM15Engine",
    "AsyncLiteLLMEngine",
    "NetworkError",
    "OpenAIChatCompat",
    "ProviderDefinition",
    "StdlibAsyncTransport",
    "StreamAccumulator",
    "TransportRequest",
    "adapter_fallback_scope",
    "apply_output_field_defaults",
    "format_field_value",
    "lookup",
    "model_info",
    "parse_value",
    "request_to_dict",
    "response_from_dict",
    "response_to_dict",
    "serialize_for_json",
    "thawed",
]


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
