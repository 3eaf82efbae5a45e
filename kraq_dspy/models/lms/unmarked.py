"""Reads a reply that has none of the markers that were asked for, fields named in lines or the one text alone, and
takes a model's thinking off its front.

rationale: The passage says where she was born.
response: Rome

1. `rationale` (str): The passage says where she was born.
2. `response` (str): Rome
"""

import json
import re
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

_FENCE = re.compile(r"\s*```(\w+)[ \t]*\n(.*?)\n?```\s*", re.DOTALL)
_REPEATED = 40
_UNEVEN = 0.1
"""How much the distances of a loop may differ, of both together: what is counted or named in it differs in length."""
_TYPES = ("str", "string", "text", "output")
_COMPLETED = re.compile(
    r"(?:\[\[ ?##? ?completed ?##? ?\]\]|^[ \t]*\d+\.[ \t]*`completed`[^\n]*)\s*\Z", re.IGNORECASE | re.MULTILINE
)
_FORM = re.compile(r"\s*[\[{<`]|.*(?:\[\[|##|```)", re.DOTALL)
_OFFER = r"\s*(?:sure|certainly|of course|absolutely|okay|ok|here(?:['’]s| is| are| you))\b"
_OFFERED = re.compile(rf"{_OFFER}[^\n]{{0,200}}:[ \t]*\n+", re.IGNORECASE)
_CHATTER = re.compile(rf"{_OFFER}|\s*(?:i['’]m sorry|i am sorry|sorry\b|as an ai\b|i can(?:no|['’])t\b)", re.IGNORECASE)


def unmarked(reply: str, fields: Mapping[str, Any]) -> dict[str, str]:
    """Text by field name; empty where no such form is there."""
    reply = _COMPLETED.sub("", reply)
    fence = _FENCE.fullmatch(reply)
    if list(fields.values()) == [str]:
        [name] = fields
        if fence:
            return {name: fence[2]} if fence[1].casefold() in (name.casefold(), *_TYPES) and fence[2].strip() else {}
        text = named_lines(reply, fields).get(name) or _alone(reply, name)
        return {name: text} if text else {}
    return named_lines(fence[2] if fence else reply, fields)


def _alone(reply: str, name: str) -> str:
    """The reply as the one text that was asked for, without an introduction that ends in a colon; "" for chatter, a
    loop, the field's bare name, and what is a broken form rather than prose."""
    text = _OFFERED.sub("", reply, count=1).strip()
    is_name = text.strip("\"'`*_.: ").casefold() == name.casefold()
    is_unusable = is_name or _FORM.match(text) or _CHATTER.match(text) or repeats_itself(text)
    return "" if is_unusable else text


def repeats_itself(reply: str) -> bool:
    """Whether the reply's last words stand in it three times or more, at even distances, as in a loop.

    At uneven ones they may be the long name of a film.
    """
    reply = reply.rstrip(" \t\r\n.?!")
    last = reply[-_REPEATED:]
    if len(last) < _REPEATED:
        return False
    third = len(reply) - _REPEATED
    second = reply.rfind(last, 0, third + _REPEATED - 1)
    first = reply.rfind(last, 0, max(0, second + _REPEATED - 1)) if second >= 0 else -1
    return first >= 0 and abs((third - second) - (second - first)) <= _UNEVEN * (third - first)


def with_named_texts(sections: Mapping[str, str], fields: Mapping[str, Any]) -> dict[str, str]:
    """The sections, where a text without a marker stands inside the one before it, behind its name and a colon, parted.

    [[ ## answer ## ]]
    Rome

    Explanation: The passage says where she was born.
    """
    parted = dict(sections)
    for before, name in pairwise(fields):
        if name in parted or before not in parted or fields[name] is not str:
            continue
        line = _begins_with([name]).search(parted[before])
        texts = (parted[before][: line.start()].strip(), parted[before][line.end() :].strip()) if line else ()
        if texts and all(texts):
            parted[before], parted[name] = texts
    return parted


def named_lines(reply: str, names: Iterable[str]) -> dict[str, str]:
    """Text by field name; empty unless the reply begins with the first field and has every one, once and in order.

    A name stands at the beginning of a line, before a colon or an equals sign or alone on it, perhaps with its number
    and type as the prompt lists them; anything less is prose.
    """
    names = list(names)
    places = list(_begins_with(names).finditer(reply))
    if [place[1].casefold() for place in places] != [name.casefold() for name in names]:
        return {}
    if reply[: places[0].start()].strip():
        return {}
    ends = [*(place.start() for place in places[1:]), len(reply)]
    texts = [_unquoted(reply[place.end() : end].strip()) for place, end in zip(places, ends, strict=True)]
    return dict(zip(names, texts, strict=True)) if all(texts) else {}


def _begins_with(names: Iterable[str]) -> re.Pattern[str]:
    """The beginning of a line with one of the names before a colon or an equals sign, or alone."""
    begin, named = r"^[ \t>*_`\"#-]*(?:\d+\.[ \t*_`\"]*)?", "|".join(map(re.escape, names))
    return re.compile(
        rf"{begin}({named})[*_`\"]*(?:[ \t]*\(\w+\))?[ \t]*(?:[:=]|$)[*_`]*", re.MULTILINE | re.IGNORECASE
    )


def _unquoted(text: str) -> str:
    """What stands in quotes, where all of it does."""
    try:
        value = json.loads(text, strict=False) if text.startswith('"') else text
    except ValueError:
        return text
    return value.strip() if isinstance(value, str) else text


_WORD = r"(?:think|thought|reason|reflect|analysis|scratch|ponder|deliberat)"
_OPENING = re.compile(
    rf"\s*([<\[◁〈《【(|]{{1,2}}\|?)([\w:-]{{0,30}}{_WORD}[\w:-]{{0,30}})(\|?[>\]▷〉》】)|]{{1,2}})", re.IGNORECASE
)
_CLOSING = re.compile(r"</(?:think|thinking|reasoning)>|\[/THINK\]|◁/think▷", re.IGNORECASE)
"""Tags that end a thought whose beginning some chat templates write into the prompt."""
_ANSWER = re.compile(r"\s*(?:\n|\[\[|\{|```|\Z)")
"""What stands behind such a tag where it is none that a text is about."""
_BEGUN = re.compile(r"\s*[\[{`]|.*?^[ \t]*\[\[ ?##", re.DOTALL | re.MULTILINE)
"""A reply, up to such a tag, that has begun with a field or with JSON."""
_CHANNEL = re.compile(r"\s*<\|(?:start|channel)\|>")
_FINAL = re.compile(r".*<\|channel\|>final\b[^<]*<\|message\|>", re.DOTALL)
_END_OF_CHANNEL = re.compile(r"<\|(?:return|end)\|>\s*\Z")
_NO_THOUGHT = re.compile(r"\W*(?:and|or|to|und|oder|et|ou|y|o|[,/&…])\W*", re.IGNORECASE)
"""What stands between two tags that are spoken of."""


def without_thinking(reply: str) -> str:
    """The reply behind the thinking that it begins with; the reply as it is where there is none, or nothing behind.

    Models think in `<think>`, `[THINK]`, `◁think▷`, `<|START_THINKING|>` or the channels of gpt-oss, and new ones in
    tags of their own. Thinking stands before the answer and nowhere else: a tag inside a field or JSON is data.

    >>> without_thinking("<think>Rome? No.</think>Paris")
    'Paris'
    >>> without_thinking("A model writes <think> and </think> around its thoughts.")
    'A model writes <think> and </think> around its thoughts.'
    """
    if _CHANNEL.match(reply) and (final := _FINAL.match(reply)):
        return _END_OF_CHANNEL.sub("", reply[final.end() :])
    opening = _OPENING.match(reply)
    if opening is not None:
        closing = _closing_of(opening).search(reply, opening.end())
        if closing is None or _NO_THOUGHT.fullmatch(reply, opening.end(), closing.start()):
            return reply
        return without_thinking(reply[closing.end() :]) if reply[closing.end() :].strip() else reply
    closing = _CLOSING.search(reply)
    if closing and _ANSWER.match(reply, closing.end()) and not _BEGUN.match(reply[: closing.start()]):
        return reply[closing.end() :]
    return reply


def _closing_of(opening: re.Match[str]) -> re.Pattern[str]:
    """`</name>` for `<name>`, `<|END_name|>` for `<|START_name|>`, and their like."""
    before, name, after = opening.groups()
    bare = re.sub(r"^(?:begin|start)(?:_of)?_", "", name, flags=re.IGNORECASE)
    return re.compile(
        rf"{re.escape(before)}(?:/|end_|end_of_)(?:{re.escape(name)}|{re.escape(bare)}){re.escape(after)}",
        re.IGNORECASE,
    )
