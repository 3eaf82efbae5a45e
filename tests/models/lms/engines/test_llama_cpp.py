"""Runs a tiny random Llama by llama.cpp in this process: what it says means nothing, but torch says the same."""

import asyncio
import json
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from dspy.lm15 import Config, Message, Request, Response
from dspy.utils.exceptions import ContextWindowExceededError

from kraq_dspy import make_lm
from kraq_dspy.errors import ModelError
from kraq_dspy.models.lms.engines import gguf_file
from kraq_dspy.models.lms.engines.llama_cpp import LlamaCpp, shared_model
from kraq_dspy.models.lms.engines.transformers_engine import TransformersEngine
from kraq_dspy.models.lms.from_threads import FromThreads
from kraq_dspy.settings import RoleSettings
from tests.conftest import TinyModels

pytest.importorskip("xllamacpp", reason="needs xllamacpp: pip install 'kraq-dspy[local]'")
pytest.importorskip("gguf", reason="needs gguf: pip install 'kraq-dspy[local]'")
psutil: Any = pytest.importorskip("psutil", reason="needs psutil: pip install psutil")


@pytest.fixture(scope="module")
def folder(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_models.llama(tmp_path_factory.mktemp("tiny-llama"), context=100_000)


@pytest.fixture(scope="module")
def file(tiny_models: TinyModels, folder: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_models.gguf(folder, tmp_path_factory.mktemp("gguf") / "tiny.gguf")


@pytest.fixture(scope="module")
def model(file: Path) -> Iterator[LlamaCpp]:
    model = LlamaCpp(file, threads=1, slots=2)
    yield model
    model.close()


def ask(text: str = "which city?", **config: Any) -> Request:
    return Request("gguf/tiny", messages=(Message.user(text),), config=Config(**{"temperature": 0.0, **config}))


def scores(response: Response) -> list[float]:
    return [token.logprob for token in response.logprobs or ()]


def assert_agree(ours: Response, theirs: Response) -> None:
    """In order; tokens that add no whole character are left out. llama.cpp keeps keys and values in 16 bits."""
    expected = iter(scores(theirs))
    assert len(scores(ours)) >= 5
    assert all(any(abs(score - other) < 0.02 for other in expected) for score in scores(ours))


@pytest.mark.parametrize("text", ["which city?", "the cat sat", "Zürich and 東京"])
def test_log_probabilities_are_those_of_the_same_weights_in_torch(model: LlamaCpp, folder: str, text: str) -> None:
    engine = TransformersEngine(folder)
    expected = engine.complete(
        Request(folder, messages=(Message.user(text),), config=Config(max_tokens=10, logprobs=0))
    )
    response = FromThreads(model).complete(ask(text, max_tokens=10, logprobs=0))
    assert_agree(response, expected)
    assert response.model == "gguf/tiny"


def test_without_a_temperature_the_likeliest_words_are_written(model: LlamaCpp) -> None:
    engine = FromThreads(model)
    expected = engine.complete(ask("the cat", max_tokens=20)).message.text
    assert {engine.complete(ask("the cat", max_tokens=20, temperature=None)).message.text for _ in range(3)} == {
        expected
    }


def test_an_adapter_by_name_changes_the_answers_as_it_does_in_torch(
    tiny_models: TinyModels, folder: str, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gguf_file, "models_folder", lambda: tmp_path / "cache" / "models")
    adapter = tiny_models.adapter(folder, tmp_path / "generator", seed=1)
    plain, tuned = (make_lm(RoleSettings(model=f"gguf/{file}", adapter=name, threads=1)) for name in (None, adapter))
    engine = TransformersEngine(folder, adapters={"generator": adapter})
    for lm, name in ((plain, folder), (tuned, "generator"), (plain, folder)):
        messages = (Message.user("the cat sat on the mat"),)
        expected = engine.complete(Request(name, messages=messages, config=Config(max_tokens=16, logprobs=0)))
        config = Config(max_tokens=16, logprobs=0, temperature=0.0)
        assert_agree(lm.engine.complete(Request(lm.model, messages=messages, config=config)), expected)
    assert plain.async_engine.inner is tuned.async_engine.inner  # one copy in memory
    plain.engine.close()
    shared_model.cache_clear()


def test_requests_of_many_threads_and_tasks_get_their_own_answers(file: Path) -> None:
    lm = make_lm(RoleSettings(model=f"gguf/{file}", threads=1, max_tokens=6, temperature=0.0))
    texts = [f"the {word} ran" for word in ("cat", "dog", "city", "house", "mat", "cat and dog")]
    alone = [lm(text) for text in texts]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(lm, texts)) == alone

    async def together() -> list[Any]:
        return await asyncio.gather(*(lm.acall(text) for text in texts))

    assert asyncio.run(together()) == alone
    assert asyncio.run(together()) == alone  # another event loop
    lm.engine.close()
    assert lm(texts[0]) == alone[0]  # it loads again
    lm.engine.close()
    shared_model.cache_clear()


def test_threads_that_ask_for_a_file_together_load_it_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Path] = []

    def slowly(path: Path, **_: Any) -> object:
        loads.append(path)
        time.sleep(0.05)
        return object()

    monkeypatch.setattr("kraq_dspy.models.lms.engines.llama_cpp.LlamaCpp", slowly)
    try:
        with ThreadPoolExecutor(4) as pool:
            models = list(pool.map(lambda path: shared_model(path, None, None, 1), [file] * 4))
    finally:
        shared_model.cache_clear()
    assert loads == [file]
    assert len(set(map(id, models))) == 1


def test_a_reply_keeps_to_a_schema(model: LlamaCpp) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"type": "string", "maxLength": 3}, "large": {"type": "boolean"}},
        "required": ["city", "large"],
        "additionalProperties": False,
    }
    response = FromThreads(model).complete(
        ask(max_tokens=300, response_format={"type": "json_schema", "name": "town", "schema": schema, "strict": True})
    )
    [part] = response.message.parts
    value = getattr(part, "value", None) or json.loads(getattr(part, "text", ""))  # lm15 reads booleans itself
    assert set(value) == {"city", "large"}
    assert len(value["city"]) <= 3


def test_the_beginning_of_a_prompt_is_kept(model: LlamaCpp) -> None:
    text = "the cat sat on the mat and a dog ran to the house"
    engine = FromThreads(model)
    engine.complete(ask(text, max_tokens=2))
    usage = engine.complete(ask(f"{text} in which city?", max_tokens=2)).usage
    assert usage.input_tokens is not None
    assert (usage.cache_read_tokens or 0) > usage.input_tokens / 2


def test_a_cancelled_task_ends_its_request(file: Path) -> None:
    model = LlamaCpp(file, threads=1, slots=1, context=100_000)

    async def run() -> Any:
        endless = ask("the cat", max_tokens=90_000, extensions={"ignore_eos": True})
        task = asyncio.create_task(model.complete(endless))
        await asyncio.sleep(0.5)
        assert not task.done()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await asyncio.wait_for(model.complete(ask("the cat", max_tokens=2)), timeout=120)

    assert asyncio.run(run()).usage.output_tokens == 2
    model.close()


def test_tokens_are_streamed_as_they_are_written(model: LlamaCpp) -> None:
    events = list(FromThreads(model).stream(ask(max_tokens=12)))
    whole = FromThreads(model).complete(ask(max_tokens=12))
    texts = [event.delta.text for event in events if event.type == "delta"]
    assert len(texts) > 3
    assert "".join(texts) == whole.message.text


def test_no_connection_is_kept_that_the_server_may_end(model: LlamaCpp) -> None:
    list(FromThreads(model).stream(ask(max_tokens=4)))
    FromThreads(model).complete(ask(max_tokens=4))
    [url] = model.started().client._make().config.base_urls.values()
    port = urlsplit(url).port
    to_the_server = [one for one in psutil.Process().net_connections("tcp") if one.raddr and one.raddr.port == port]
    assert [one for one in to_the_server if one.status in (psutil.CONN_ESTABLISHED, psutil.CONN_CLOSE_WAIT)] == []


def test_a_prompt_that_is_too_long_is_named_so(file: Path) -> None:
    lm = make_lm(RoleSettings(model=f"gguf/{file}", threads=1, slots=1, context=64))
    with pytest.raises(ContextWindowExceededError, match="exceeds the available context"):
        lm("the cat sat on the mat " * 100)
    lm.engine.close()
    shared_model.cache_clear()


def test_ctrl_c_stays_pythons_own(file: Path) -> None:
    """llama.cpp's server takes the signal, and ends the process at the second one."""
    model = LlamaCpp(file, threads=1)
    model.started()
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    model.close()


def test_a_file_without_a_chat_template_says_which_one_to_take(
    tiny_models: TinyModels, folder: str, tmp_path: Path
) -> None:
    base = tiny_models.gguf(folder, tmp_path / "base.gguf", template=False)
    with pytest.raises(ModelError, match=r"no chat template.*-Instruct"):
        LlamaCpp(base)


def test_a_file_that_llama_cpp_refuses_says_what_to_do(tiny_models: TinyModels, folder: str, tmp_path: Path) -> None:
    file = tiny_models.gguf(folder, tmp_path / "odd.gguf")
    file.write_bytes(file.read_bytes().replace(b"blk.0.attn_q.weight", b"blk.0.attn_x.weight"))
    with pytest.raises(ModelError, match=r"cannot load.*checksum"):
        make_lm(RoleSettings(model=f"gguf/{file}", threads=1))("the cat")
