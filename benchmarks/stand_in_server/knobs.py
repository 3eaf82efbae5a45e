"""What can be set when the server starts (`--latency-ms`) and while it runs (POST /config)."""

import dataclasses
from dataclasses import dataclass
from typing import Any


@dataclass
class Knobs:
    latency_ms: float = 0.0  # fixed delay of each chat call
    per_token_ms: float = 0.0  # more delay for each token of the reply
    per_ktok_in_ms: float = 0.0  # and for 1,000 tokens of the prompt
    jitter: float = 0.0  # 0 to 1: the delay varies by this share, the same way for the same request
    embed_latency_ms: float = 0.0  # fixed delay of each embedding call
    slots: int = 0  # chat calls served at once; 0 is without limit
    rate_429: float = 0.0  # chances of a fault at each attempt
    rate_500: float = 0.0
    rate_503: float = 0.0
    rate_timeout: float = 0.0
    rate_malformed: float = 0.0
    rate_empty: float = 0.0
    context_tokens: int = 0  # longer prompts (letters / 4) get the 400 that vLLM gives; 0 is off
    timeout_s: float = 30.0  # how long a timeout hangs before the socket is closed
    retry_after: float = 1.0  # seconds in the header of a 429
    rpm: float = 0.0  # requests a minute, above which there are real 429s; 0 is off
    seed: int = 0
    dim: int = 384  # of embeddings
    fault_kinds: str = ""  # kinds of prompt that have faults, parted by commas; empty is all
    keep_mb: int = 256  # prompts and replies that are kept to count their tokens later
    verbose: int = 0  # keeps 400 requests for GET /log

    def set(self, name: str, value: Any) -> None:
        """Takes a value as JSON or the command line has it. Raises KeyError for a name that is none of these."""
        types = {field.name: field.type for field in dataclasses.fields(self)}
        kind = types[name]
        assert isinstance(kind, type)
        setattr(self, name, kind(value))
