"""A random model says nothing sensible, but under a schema what it says has the schema's form."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import dspy
import pytest
from dspy.lm15 import Config, InvalidRequestError, Message, Request

from kraq_dspy.errors import ModelError
from kraq_dspy.extend import KraqAdapter
from kraq_dspy.models.lms.engines.generation import in_template, without_system_role
from kraq_dspy.models.lms.engines.transformers_engine import TransformersEngine
from kraq_dspy.models.lms.schemas import reply_schema
from tests.conftest import TinyModels
from tests.lazily import lazily

for needed in ("torch", "transformers", "llguidance"):
    lazily(needed, "transformers")


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


class Template:
    """A tokenizer's chat template, as far as `in_template` asks it."""

    chat_template = "there is one"

    def __init__(self, takes_system: str) -> None:
        self.takes_system = takes_system

    def apply_chat_template(self, messages: Any, *, tokenize: bool, add_generation_prompt: bool) -> str:
        if self.takes_system == "never" or (self.takes_system == "no" and messages[0]["role"] == "system"):
            raise ValueError("System role not supported")
        shown = [one for one in messages if self.takes_system != "drops" or one["role"] != "system"]
        text = "".join(f"<{one['role']}>{one['content']}<end>" for one in shown)
        return text + "<assistant>" * add_generation_prompt


CHAT = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Who?"}]


@pytest.mark.parametrize("takes", ["no", "drops"])
def test_what_the_system_says_stands_before_the_users_words_where_a_template_has_no_place_for_it(takes: str) -> None:
    assert in_template(Template(takes), CHAT, add_generation_prompt=True) == "<user>Be short.\n\nWho?<end><assistant>"


def test_a_template_that_takes_a_system_message_gets_one() -> None:
    assert in_template(Template("yes"), CHAT) == "<system>Be short.<end><user>Who?<end>"


def test_a_template_that_cannot_write_the_messages_is_refused_in_words() -> None:
    with pytest.raises(ModelError, match="cannot write these messages: System role not supported"):
        in_template(Template("never"), CHAT)


def test_a_system_message_alone_becomes_the_users() -> None:
    assert without_system_role(CHAT[:1]) == [{"role": "user", "content": "Be short."}]
    assert without_system_role(CHAT[1:]) == CHAT[1:]
