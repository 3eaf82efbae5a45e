"""Takes a model's thinking off the front of its reply, and leaves alone text that is about such tags.

Models think in `<think>`, `[THINK]`, `◁think▷`, `<|START_THINKING|>` or the channels of gpt-oss, and new ones in tags
of their own. Thinking stands before the answer and nowhere else: a tag inside a field, a quotation or JSON is data.

>>> without_thinking("<think>Rome? No.</think>Paris")
'Paris'
>>> without_thinking("A model writes <think> and </think> around its thoughts.")
'A model writes <think> and </think> around its thoughts.'
"""

import re

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
    """The reply behind the thinking that it begins with; the reply as it is where there is none, or nothing behind."""
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
