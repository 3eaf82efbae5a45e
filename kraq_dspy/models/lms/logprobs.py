"""Assigns the log-probabilities of a prediction's tokens to the output fields they belong to.

A model's answer is one stream of tokens with field markers in it. Scores of Speculative RAG need
the log-probabilities of one field's value. So it joins the bytes of the tokens and finds the fields
as DSPy's adapters do. A token belongs to a field if it shares a byte with its value.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from kraq_dspy.errors import MissingLogprobsError
from kraq_dspy.models.lms.repair import marked_spans

Span = tuple[int, int]


def take_logprobs(prediction: Any, *, role: str, wanted_by: str) -> Any:
    """Take the raw `logprobs` out of a DSPy prediction, so that they reach neither demos nor saved programs.

    Raises MissingLogprobsError when the model gave none; `role` and `wanted_by` (a scorer) are named in it.
    """
    logprobs = prediction.get("logprobs")
    if logprobs is not None:
        del prediction["logprobs"]
    if not _entries(logprobs):
        raise MissingLogprobsError(
            f"The {role} model returned no token log-probabilities, which the scorer {wanted_by!r} needs. Serve it "
            "with a server that honours `logprobs=True` (vLLM does; check its --max-logprobs), or choose the scorer "
            "'vote', which needs none."
        )
    return logprobs


def field_logprobs(logprobs: Any, values: Mapping[str, str]) -> dict[str, tuple[float, ...]]:
    """The log-probabilities of the tokens of each field's value.

    `logprobs` is what DSPy gives (`{"content": [{"token", "logprob", "bytes"}, ...]}`, as dicts or as objects, or the
    list alone); `values` are the parsed fields. Fields are looked for under what KraqAdapter reads as markers, then as
    keys of a JSON object, then as the only occurrence of the value. A field that is found nowhere is left out of the
    result.

    Markers, quotes and white space around a value do not count; a token that holds a part of both does. A token
    without bytes (servers report characters that span tokens so) counts where it stands.
    """
    entries = _entries(logprobs)
    pieces = [_bytes(entry) for entry in entries]
    # Surrogates stand for bytes that are no UTF-8, so that offsets survive characters cut in two.
    text = b"".join(pieces).decode("utf-8", "surrogateescape")
    marked = marked_spans(text, values)
    ends = list(accumulate(len(piece) for piece in pieces))
    by_field: dict[str, tuple[float, ...]] = {}
    for name, value in values.items():
        span = (
            _within(text, marked.get(name), value)
            or _keyed_span(text, name)
            or ((text.index(value), text.index(value) + len(value)) if text.count(value) == 1 else None)
            or marked.get(name)
        )
        if span is None or span[0] == span[1]:
            continue

        start, end = (len(text[:position].encode("utf-8", "surrogateescape")) for position in span)
        by_field[name] = tuple(
            float(_item(entry, "logprob"))
            for entry, piece, stop in zip(entries, pieces, ends, strict=True)
            if (stop - len(piece) < end and stop > start) or (not piece and start <= stop < end)
        )
    return by_field


def mean_logprob(logprobs: Sequence[float]) -> float:
    """log P_conf: the mean token log-probability (KRAQ paper, appendix C.1). Raises ValueError when there is none."""
    if not logprobs:
        raise ValueError("P_conf of no tokens is undefined.")
    return -math.inf if -math.inf in logprobs else math.fsum(logprobs) / len(logprobs)


def _entries(logprobs: Any) -> Sequence[Any]:
    if logprobs is None or isinstance(logprobs, list | tuple):
        return logprobs or ()
    return _item(logprobs, "content") or ()


def _item(holder: Any, name: str) -> Any:
    """Some clients return dicts, some objects, some objects that can be indexed."""
    try:
        return holder[name]
    except (KeyError, TypeError):
        return getattr(holder, name, None)


def _bytes(entry: Any) -> bytes:
    raw = _item(entry, "bytes")
    return bytes(raw) if raw is not None else str(_item(entry, "token")).encode("utf-8", "surrogateescape")


def _keyed_span(text: str, name: str) -> Span | None:
    """The value behind the name as a key of a JSON object, without its quotes."""
    key = re.search(rf'"{re.escape(name)}"\s*:\s*', text)
    if key is None:
        return None
    try:
        _, end = json.JSONDecoder(strict=False).raw_decode(text, key.end())
    except ValueError:
        return None
    quoted = text[key.end()] == '"'
    return key.end() + quoted, end - quoted


def _within(text: str, span: Span | None, value: str) -> Span | None:
    """The span cut to the value that it begins with, or that stands in it once ("(Yes)"), in any case of letters: an
    end-of-turn token, which is not in the text, may follow, or words that an adapter dropped."""
    if span is not None and value:
        start, end = span
        if text[start : min(start + len(value), end)].casefold() == value.casefold():
            return start, start + len(value)
        places = list(re.compile(rf"(?<!\w){re.escape(value)}(?!\w)", re.IGNORECASE).finditer(text, start, end))
        if len(places) == 1:
            return places[0].span()
    return None
