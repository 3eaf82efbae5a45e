"""Holds what transformers writes to a JSON schema: tokens that the schema does not allow get no probability."""

import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
from dspy.lm15 import InvalidRequestError

from kraq_dspy.errors import import_extra

_PURPOSE = "A reply held to a JSON schema"
# Free white space is where small models lose themselves; without the usual spaces they write empty lists.
_SPACES = {"whitespace_flexible": False, "item_separator": ", ", "key_separator": ": "}


def can_hold_to_schemas() -> bool:
    """Whether llguidance, which does it, is installed."""
    return find_spec("llguidance") is not None


class SchemaGrammars:
    """Turns schemas into matchers for one tokenizer; reading the vocabulary takes a second, once.

    Raises MissingExtraError without llguidance.
    """

    def __init__(self, tokenizer: Any, ends: Sequence[int]) -> None:
        self._llguidance = import_extra("llguidance", "embedded", _PURPOSE)
        tables = import_extra("llguidance.hf", "embedded", _PURPOSE)
        self._tokens = tables.from_tokenizer(tokenizer, eos_token=list(ends) or None)

    def matcher(self, response_format: Mapping[str, Any]) -> Any:
        """For one reply. Raises InvalidRequestError for a schema that llguidance does not know how to follow."""
        grammars = self._llguidance.LLMatcher
        schema = json.dumps(response_format.get("schema", {"type": "object"}))
        grammar = grammars.grammar_from_json_schema(schema, overrides=_SPACES)
        fault = grammars.validate_grammar(grammar, self._tokens)
        if fault:
            raise InvalidRequestError(f"The JSON schema cannot be followed: {fault}")
        return grammars(self._tokens, grammar)


class SchemaMask:
    """A logits processor: a row with a matcher gets the tokens that its schema allows next, and its end at the end."""

    def __init__(self, torch: Any, matchers: Sequence[Any | None], ends: Sequence[int], n_prompt: int) -> None:
        self.torch = torch
        self.matchers = list(matchers)
        self.ends = list(ends)
        self.n_prompt = n_prompt

    def __call__(self, input_ids: Any, scores: Any) -> Any:
        for row, matcher in enumerate(self.matchers):
            if matcher is None:
                continue
            written = input_ids.shape[1] > self.n_prompt and not matcher.is_stopped()
            if written and not matcher.try_consume_tokens([int(input_ids[row, -1])]):
                self.matchers[row] = None  # padding: the row was left before its schema ended
                continue
            allowed = self._allowed(matcher, scores.shape[1])
            scores[row, ~self.torch.from_numpy(allowed).to(scores.device)] = -self.torch.inf
        return scores

    def _allowed(self, matcher: Any, vocabulary: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
        allowed = np.zeros(vocabulary, dtype=bool)
        if matcher.is_stopped():
            allowed[self.ends] = True
            return allowed
        bits = np.unpackbits(np.frombuffer(matcher.compute_bitmask(), dtype=np.uint8), bitorder="little")
        allowed[: len(bits)] = bits[:vocabulary]  # a model may have rows for tokens that its tokenizer lacks
        return allowed
