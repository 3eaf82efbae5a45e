"""Counts tokens of cl100k_base, offline.

tiktoken would download its vocabulary; litellm, which comes with DSPy, packages the same file. It is read from there
and litellm itself is not imported (that takes seconds).
"""

import base64
import hashlib
import importlib.util
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from kraq_dspy.errors import ModelError

if TYPE_CHECKING:
    import tiktoken

# The file's name is the SHA-1 of the address that tiktoken downloads it from; the pattern is `tiktoken_ext`'s own.
VOCABULARY = "9b5ad71b2ce5302211f9c61530b329a4922fc6a4"
VOCABULARY_SHA256 = "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7"
WORDS = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
LONGEST_TOKEN = 128  # characters: a run of spaces


def count_tokens(text: str) -> int:
    """The number of cl100k_base tokens; special tokens such as `<|endoftext|>` count as the plain text they are."""
    return len(encoding().encode_ordinary(text))


def truncate_tokens(text: str, limit: int) -> str:
    """The longest beginning of `text` that cuts between its tokens and counts at most `limit` of them.

    No character is cut in two. Raises ValueError when `limit` is negative.
    """
    if limit < 0:
        raise ValueError(f"limit is {limit}; it must be 0 or more.")
    if len(text) > LONGEST_TOKEN * (limit + 1):
        text = text[: LONGEST_TOKEN * (limit + 1)]  # holds more than `limit` tokens, whatever they are
    tokens = encoding().encode_ordinary(text)
    if len(tokens) <= limit:
        return text
    for n_tokens in range(limit, 0, -1):
        kept = encoding().decode_bytes(tokens[:n_tokens]).decode("utf-8", "ignore")
        # A cut can change how the end is tokenised (spaces before a word belong to it), hence the second count.
        beginning = text[: len(kept)]
        if count_tokens(beginning) <= limit:
            return beginning
    return ""


@lru_cache(maxsize=1)
def encoding() -> "tiktoken.Encoding":
    """The tokenizer, read once (0.2 s). Raises ModelError when the vocabulary is absent or damaged."""
    import tiktoken

    path = _vocabulary_path()
    vocabulary = path.read_bytes() if path is not None and path.is_file() else b""
    if hashlib.sha256(vocabulary).hexdigest() != VOCABULARY_SHA256:
        raise ModelError(
            f"The cl100k_base vocabulary is {'damaged' if vocabulary else 'absent'}: expected the file {VOCABULARY} "
            "in litellm/litellm_core_utils/tokenizers. Reinstall it with: pip install --force-reinstall litellm"
        )
    pairs = (line.split() for line in vocabulary.splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
    return tiktoken.Encoding("cl100k_base", pat_str=WORDS, mergeable_ranks=ranks, special_tokens={})


def _vocabulary_path() -> Path | None:
    litellm = importlib.util.find_spec("litellm")
    if litellm is None or litellm.origin is None:
        return None
    return Path(litellm.origin).parent / "litellm_core_utils" / "tokenizers" / VOCABULARY
