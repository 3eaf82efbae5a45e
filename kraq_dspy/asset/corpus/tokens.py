"""Counts tokens of cl100k_base, offline.

tiktoken would download its vocabulary, so `cl100k_base.xz` beside this file holds it (OpenAI's, MIT licence): of each
token its length in one byte and its bytes, in the order of their ranks.
"""

import hashlib
import lzma
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from kraq_dspy.errors import ModelError

if TYPE_CHECKING:
    import tiktoken

VOCABULARY = Path(__file__).with_name("cl100k_base.xz")
VOCABULARY_SHA256 = "6bfd43f7b31b50b645b3228413547e662af1ae4801e9b192b9791680a71d650c"  # unpacked
WORDS = (  # the pattern is `tiktoken_ext`'s own
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+"
    r"|\s++$|\s*[\r\n]|\s+(?!\S)|\s"
)
LONGEST_TOKEN = 128  # characters: a run of spaces


def count_tokens(text: str) -> int:
    """The number of cl100k_base tokens; special tokens such as `<|endoftext|>` count as the plain text they are."""
    return len(encoding().encode_ordinary(text))


def exceeds_tokens(text: str, limit: int) -> bool:
    """Whether the text has more tokens; a short one is not counted, since no token is less than a byte."""
    return len(text.encode("utf-8", "replace")) > limit and count_tokens(text) > limit


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
        decoded = encoding().decode_bytes(tokens[:n_tokens]).decode("utf-8", "ignore")
        # A cut can change how the end is tokenised (spaces before a word belong to it), hence the second count.
        beginning = text[: len(decoded)]
        if count_tokens(beginning) <= limit:
            return beginning
    return ""


@lru_cache(maxsize=1)
def encoding() -> "tiktoken.Encoding":
    """The tokenizer, read once (0.2 s). Raises ModelError when the vocabulary is absent or damaged."""
    import tiktoken

    try:
        vocabulary = lzma.decompress(VOCABULARY.read_bytes())
    except (OSError, lzma.LZMAError):
        vocabulary = b""
    if hashlib.sha256(vocabulary).hexdigest() != VOCABULARY_SHA256:
        raise ModelError(
            f"The cl100k_base vocabulary {str(VOCABULARY)!r} is {'damaged' if VOCABULARY.exists() else 'absent'}. "
            "Reinstall this library: pip install --force-reinstall --no-deps kraq-dspy"
        )
    ranks: dict[bytes, int] = {}
    start = 0
    while start < len(vocabulary):
        end = start + 1 + vocabulary[start]
        ranks[vocabulary[start + 1 : end]] = len(ranks)
        start = end
    return tiktoken.Encoding("cl100k_base", pat_str=WORDS, mergeable_ranks=ranks, special_tokens={})
