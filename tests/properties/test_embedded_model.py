"""Whatever a corpus holds, the embedded model answers every step of the library: no text makes it fail."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pydantic
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from kraq_dspy import make_lm, signatures
from kraq_dspy.extend import KraqAdapter
from kraq_dspy.settings import RoleSettings

RECORDED = Path(__file__).parents[1] / "recorded"
LINES = """\
# A heading
## Another: of `code`

| a | Bold One | 3.5 |
|---|---|---|
- a point
1. First Point
```toml
key = "value"
```
> quoted
Ann Lee is a singer, known for it, who met Bob Ray in Rome in 1990.
A line that an editor broke because it was longer than is wide, so that
it goes on here.
¿Quién?
北京很大。人很多！
كيف حالك؟ بخير.
www.example.org/x?y=1#z
$x^{2}$ and \\(y\\)
WHO SHOUTS LIKE THIS TODAY
(
)
“
"
's
.
?
Is Acme, Inc. the U.S. firm that bought it?
We train on X.
e.g. i.e. et al. No. 5
\u200b\ufeff
😀 🇫🇷
a | b | c: d
I""".splitlines()
TEXTS = st.lists(st.one_of(st.sampled_from(LINES), st.text(max_size=30)), max_size=12).map("\n".join)


TWICE = "Ann Lee is a singer, known for it, who met Bob Ray in Rome in 1990."


def with_texts(value: Any, draw: Callable[[st.SearchStrategy[str]], str]) -> Any:
    """`value` with other texts in the places of its own."""
    if isinstance(value, str):
        return draw(TEXTS)
    if isinstance(value, list):
        return [with_texts(each, draw) for each in value]
    return {key: with_texts(each, draw) for key, each in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize("name", sorted(file.stem for file in RECORDED.glob("*.jsonl")))
@settings(
    deadline=None,
    max_examples=settings().max_examples // 2,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(data=st.data())
def test_every_step_is_answered_whatever_its_texts_are(name: str, data: st.DataObject) -> None:
    signature = getattr(signatures, name)
    recorded = json.loads((RECORDED / f"{name}.jsonl").read_text("utf-8").partition("\n")[0])["inputs"]
    inputs = {
        field: pydantic.TypeAdapter(signature.input_fields[field].annotation).validate_python(
            with_texts(value, data.draw)
        )
        for field, value in recorded.items()
    }
    with dspy.context(lm=make_lm(RoleSettings(model="embedded")), adapter=KraqAdapter()):
        prediction = dspy.Predict(signature)(**inputs)
    assert set(prediction.keys()) >= set(signature.output_fields)


@pytest.mark.parametrize(
    ("signature", "inputs"),
    [
        (signatures.AskBridge, {"first_passage": LINES[3], "second_passage": "A", "link": ""}),
        (signatures.AskList, {"passages": ["Loon Lake is a lake in Ontario."] * 2, "shared": ""}),
        (signatures.RewriteQuestion, {"question": "\n".join([TWICE] * 3)}),
        (signatures.ParaphraseQuestion, {"question": "\n".join([TWICE] * 3)}),
    ],
)
def test_what_drawn_texts_found_once_is_answered(signature: type[dspy.Signature], inputs: dict[str, Any]) -> None:
    with dspy.context(lm=make_lm(RoleSettings(model="embedded")), adapter=KraqAdapter()):
        prediction = dspy.Predict(signature)(**inputs)
    assert set(signature.output_fields) <= set(prediction.keys())
