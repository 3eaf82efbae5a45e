"""A random model says nothing sensible, but under a schema what it says has the schema's form."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import dspy
import pytest
from dspy.lm15 import Config, InvalidRequestError, Message, Request

from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.engines.transformers_engine import TransformersEngine
from kraq_dspy.models.lms.schemas import reply_schema
from tests.conftest import TinyModels

pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("llguidance")


class Rating(dspy.Signature):
    """Rate the text."""

    text: str = dspy.InputField()
    fits: bool = dspy.OutputField()
    mark: Literal["good", "bad"] = dspy.OutputField()


@pytest.fixture(scope="module")
def engine(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> TransformersEngine:
    folder = tiny_models.llama(tmp_path_factory.mktemp("tiny-llama"), context=1024)
    return TransformersEngine(folder, max_tokens=40, gather_ms=50)


def held(fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "name": "reply", "strict": True, "schema": reply_schema(fields)}


def reply(engine: TransformersEngine, text: str, **config: Any) -> str:
    request = Request(engine.name, messages=(Message.user(text),), config=Config(**config))
    return engine.complete(request).message.text or ""


def test_a_reply_under_a_schema_has_its_form_and_ends_with_it(engine: TransformersEngine) -> None:
    text = reply(engine, "the cat", response_format=held({"fits": bool, "sure": bool}))

    value = json.loads(text)
    assert text == json.dumps(value)  # the spaces that models are used to: without them they write empty lists
    assert set(value) == {"fits", "sure"}
    assert {type(part) for part in value.values()} == {bool}


def test_rows_of_one_batch_are_held_each_to_its_own_schema_or_to_none(engine: TransformersEngine) -> None:
    options: list[dict[str, Any]] = [{}, {"response_format": held({"a": bool})}, {"response_format": held({"b": bool})}]
    alone = [reply(engine, "a dog ran", **option) for option in options]

    with ThreadPoolExecutor(3) as pool:
        together = list(pool.map(lambda option: reply(engine, "a dog ran", **option), options))

    assert together == alone
    assert [set(json.loads(text)) for text in together[1:]] == [{"a"}, {"b"}]


def test_a_row_that_is_cut_inside_its_schema_disturbs_nobody(
    engine: TransformersEngine, capfd: pytest.CaptureFixture[str]
) -> None:
    held_to = {"response_format": held({"a": bool, "b": bool, "c": bool})}
    options: list[dict[str, Any]] = [held_to, {**held_to, "max_tokens": 3}]
    alone = [reply(engine, "a dog ran", **option) for option in options]

    with ThreadPoolExecutor(2) as pool:
        together = list(pool.map(lambda option: reply(engine, "a dog ran", **option), options))

    assert together == alone
    assert len(together[1]) < len(together[0])
    assert "Parser Error" not in capfd.readouterr().err  # llguidance's own, of padding that no schema allows


def test_a_typed_signature_is_read_at_the_first_call(engine: TransformersEngine) -> None:
    lm = dspy.LM(engine.name, engine=engine, cache=False)
    with dspy.context(lm=lm, adapter=KraqAdapter(second_try=False)):
        prediction = dspy.Predict(Rating)(text="the mat")

    assert isinstance(prediction.fits, bool)
    assert prediction.mark in ("good", "bad")


def test_a_schema_that_cannot_be_followed_is_refused_with_its_fault(engine: TransformersEngine) -> None:
    broken = {"type": "json_schema", "name": "x", "schema": {"type": "no such type"}}

    with pytest.raises(InvalidRequestError, match="no such type"):
        reply(engine, "the cat", response_format=broken)
