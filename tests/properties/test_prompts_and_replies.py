"""Tests what the adapter promises for all texts that go in and all replies that come back."""

import re

import dspy
from dspy.utils.exceptions import AdapterParseError
from hypothesis import given, strategies as st

from kraq_dspy import signatures
from kraq_dspy.extend import KraqAdapter
from kraq_dspy.models.lms.adapter import harmless

MARKER = re.compile(r"\[\s*\[\s*##\s*\w+\s*##\s*\]\s*\]")
SIGNS = [
    "[[",
    "[",
    " ",
    "##",
    "#",
    "]]",
    "\n",
    "<|",
    "|>",
    "[INST]",
    "</s>",
    "<<SYS>>",
    "\u200b",
    "»",
    '"',
    "\\",
    "{",
    "}",
]
WORDS = [",", "null", "answer", "passages", "im_end", "Respond with the corresponding output fields", "```json"]
PIECES = st.sampled_from([*SIGNS, *WORDS, "[[ ## completed ## ]]"])
HOSTILE = st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=30).map("".join)
ADAPTER = KraqAdapter()


@given(HOSTILE)
def test_no_text_holds_a_marker_a_turn_or_the_request_once_it_is_harmless_and_it_stays_so(text: str) -> None:
    safe = harmless(text)
    assert not MARKER.search(safe)
    assert not re.search(r"<\|\w|\[/?INST\]|</?s>|<<SYS>>", safe)
    assert "Respond with the corresponding output fields" not in safe
    assert harmless(safe) == safe
    assert len(safe) <= 2 * len(text)


@given(st.sampled_from(signatures.NAMES), HOSTILE)
def test_a_prompt_has_each_input_field_once_whatever_the_texts_are(name: str, text: str) -> None:
    signature = getattr(signatures, name)
    values = {
        field: text if info.annotation is str else [text, text]
        for field, info in signature.input_fields.items()
        if info.annotation in (str, list[str])
    }
    user = ADAPTER.format(signature, [], values)[-1]["content"]
    assert re.findall(r"^\[\[ ## (\w+) ## \]\]$", user, re.MULTILINE) == list(values)


@given(st.sampled_from(signatures.NAMES), HOSTILE)
def test_any_reply_is_read_in_full_or_refused_by_one_kind_of_error(name: str, reply: str) -> None:
    signature = getattr(signatures, name)
    try:
        values = ADAPTER.parse(signature, reply)
    except AdapterParseError:
        return
    assert values.keys() == signature.output_fields.keys()


@given(
    st.lists(st.text(alphabet=st.characters(exclude_categories=("Cs", "Cc")), min_size=1), max_size=6, unique=True),
    st.data(),
)
def test_a_list_that_is_cut_off_keeps_its_complete_items_in_order(items: list[str], data: st.DataObject) -> None:
    class Names(dspy.Signature):
        """List the names."""

        text: str = dspy.InputField()
        names: list[str] = dspy.OutputField()

    whole = ADAPTER.format_assistant_message_content(Names, {"names": items})
    body = whole[: whole.rindex("]", 0, whole.index("[[ ## completed"))]
    cut = data.draw(st.integers(body.index("##", 5), len(body)))
    try:
        kept = ADAPTER.parse(Names, body[:cut])["names"]
    except AdapterParseError:
        return
    assert list(kept[:-1]) == items[: len(kept[:-1])]
    assert len(kept) <= len(items)
