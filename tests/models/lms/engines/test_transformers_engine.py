"""Runs a tiny random Llama: what it says means nothing, but torch checks every token and score."""

import asyncio
import math
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.lm15 import Config, ContextLengthError, Message, Request, Response, UnsupportedModelError

from kraq_dspy import make_lm
from kraq_dspy.errors import ModelError
from kraq_dspy.extend import LanguageModels
from kraq_dspy.models.lms.engines import generation
from kraq_dspy.models.lms.engines.generation import Batches, GenerationJob, pieces_of
from kraq_dspy.models.lms.engines.transformers_engine import (
    AsyncTransformersEngine,
    TransformersEngine,
    engine_of,
    shared_engine,
)
from kraq_dspy.models.lms.logprobs import field_logprobs, take_logprobs
from kraq_dspy.settings import RoleSettings, Settings
from tests.conftest import TinyModels
from tests.lazily import lazily

torch = lazily("torch", "transformers")
transformers = lazily("transformers", "transformers")
peft = lazily("peft", "train")

PROMPT = "<|user|>which city?<|end|><|assistant|>"


@pytest.fixture(scope="module")
def model(tiny_models: TinyModels, tmp_path_factory: pytest.TempPathFactory) -> str:
    return tiny_models.llama(tmp_path_factory.mktemp("tiny-llama"))


@pytest.fixture(scope="module")
def adapters(tiny_models: TinyModels, model: str, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("adapters")
    return {
        name: tiny_models.adapter(model, folder / name, seed=seed)
        for seed, name in enumerate(("generator", "drafter"), 1)
    }


@pytest.fixture(scope="module")
def engine(model: str, adapters: dict[str, str]) -> TransformersEngine:
    return TransformersEngine(model, adapters=adapters, max_tokens=12, gather_ms=50)


def ask(name: str, text: str = "which city?", **config: Any) -> Request:
    return Request(name, messages=(Message.user(text),), config=Config(**{"logprobs": 0, **config}))


def said(engine: TransformersEngine, request: Request) -> str:
    return engine.complete(request).message.text or ""


def test_greedy_answers_and_log_probabilities_are_the_models_own(engine: TransformersEngine, model: str) -> None:
    response = engine.complete(ask(model, max_tokens=8))
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    plain = transformers.AutoModelForCausalLM.from_pretrained(model).eval()
    ids = tokenizer("<|user|>which city?<|end|><|assistant|>", add_special_tokens=False, return_tensors="pt")[
        "input_ids"
    ]
    assert response.logprobs is not None
    for token in response.logprobs:  # step by step, without a cache, a batch or padding
        with torch.no_grad():
            scores = torch.log_softmax(plain(ids).logits[0, -1], dim=-1)
        assert int(scores.argmax()) == token.token_id
        assert token.logprob == pytest.approx(float(scores.max()), abs=1e-4)
        ids = torch.cat([ids, torch.tensor([[token.token_id]])], dim=1)
    assert "".join(token.token for token in response.logprobs) == response.message.text
    assert response.usage.output_tokens == len(response.logprobs)


def test_requests_of_many_threads_meet_in_one_batch_and_get_the_answers_they_would_get_alone(
    engine: TransformersEngine, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    generate = engine._generate

    def counted(jobs: Sequence[GenerationJob], cancelled: Sequence[Callable[[], bool]]) -> list[Response]:
        sizes.append(len(jobs))
        return generate(jobs, cancelled)

    monkeypatch.setattr(engine, "_generate", counted)
    texts = ["the cat", "a dog ran to the house and sat on the mat", "which city is this?", "Zürich"]
    requests = [ask(name, text, max_tokens=4 + i) for i, text in enumerate(texts) for name in (model, "generator")]
    alone = [engine.complete(request) for request in requests]
    sizes.clear()
    with ThreadPoolExecutor(len(requests)) as pool:
        together = list(pool.map(engine.complete, requests))
    assert sizes == [8]
    for one, other in zip(alone, together, strict=True):
        assert one.message.text == other.message.text
        assert one.logprobs is not None
        assert other.logprobs is not None
        assert [t.logprob for t in one.logprobs] == pytest.approx([t.logprob for t in other.logprobs], abs=1e-4)


def test_a_short_prompt_is_not_filled_up_to_a_long_one_that_came_with_it(
    engine: TransformersEngine, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lengths: list[list[int]] = []
    generate = engine._generate

    def noted(jobs: Sequence[GenerationJob], cancelled: Sequence[Callable[[], bool]]) -> list[Response]:
        lengths.append([len(job.ids) for job in jobs])
        return generate(jobs, cancelled)

    monkeypatch.setattr(engine, "_generate", noted)
    monkeypatch.setattr(generation, "LITTLE_PADDING", 4)
    texts = ["the cat", "a dog", " ".join(["the cat sat on the mat"] * 8)]
    with ThreadPoolExecutor(len(texts)) as pool:
        answers = list(pool.map(engine.complete, [ask(model, text, max_tokens=4) for text in texts]))

    assert [len(part) for part in lengths] == [2, 1]
    assert lengths[1][0] > 2 * max(lengths[0])
    assert [answer.usage.input_tokens for answer in answers][2] == lengths[1][0]


def test_the_model_name_chooses_the_adapter(engine: TransformersEngine, model: str, adapters: dict[str, str]) -> None:
    def scores(name: str) -> list[float]:
        response = engine.complete(ask(name, max_tokens=6))
        return [token.logprob for token in response.logprobs or ()]

    base, generator, drafter = scores(model), scores("generator"), scores("drafter")
    assert base != pytest.approx(generator)
    assert generator != pytest.approx(drafter)
    assert scores(f"transformers/{model}") == pytest.approx(base, abs=1e-4)
    assert scores(f"transformers/{model}#{adapters['drafter']}") == pytest.approx(drafter, abs=1e-4)
    merged = peft.PeftModel.from_pretrained(
        transformers.AutoModelForCausalLM.from_pretrained(model), adapters["generator"]
    ).merge_and_unload()
    ids = torch.tensor([engine.tokenizer(PROMPT, add_special_tokens=False)["input_ids"]])
    with torch.no_grad():
        expected = torch.log_softmax(merged.eval()(ids).logits[0, -1], dim=-1).max()
    assert generator[0] == pytest.approx(float(expected), abs=1e-4)


def test_a_model_name_that_nobody_knows_is_refused(engine: TransformersEngine, model: str) -> None:
    with pytest.raises(UnsupportedModelError, match=r"no model 'generatr' here; known: .*'generator', 'drafter'"):
        engine.complete(ask("generatr"))
    with pytest.raises(UnsupportedModelError, match="neither an adapter by name nor the folder"):
        engine.complete(ask(f"{model}#nowhere"))


def test_temperature_changes_the_text_but_the_scores_stay_the_models_own(
    engine: TransformersEngine, model: str
) -> None:
    hot = [engine.complete(ask(model, temperature=2.0, seed=seed, max_tokens=6)) for seed in (1, 1, 2)]
    assert hot[0].message.text == hot[1].message.text != hot[2].message.text
    first = hot[0].logprobs[0]  # type: ignore[index]
    ids = torch.tensor([engine.tokenizer(PROMPT, add_special_tokens=False)["input_ids"]])
    plain = transformers.AutoModelForCausalLM.from_pretrained(model).eval()
    with torch.no_grad():
        scores = torch.log_softmax(plain(ids).logits[0, -1], dim=-1)
    assert first.logprob == pytest.approx(float(scores[first.token_id]), abs=1e-4)


def test_an_answer_ends_before_a_stop_string_with_the_scores_of_what_is_left(
    engine: TransformersEngine, model: str
) -> None:
    whole = said(engine, ask(model, max_tokens=10))
    stop = whole[3:5]
    response = engine.complete(ask(model, max_tokens=10, stop=(stop,)))
    assert response.message.text == whole[: whole.index(stop)]
    assert response.finish_reason == "stop"
    assert "".join(token.token for token in response.logprobs or ()) == response.message.text


def test_no_scores_are_given_unless_asked_for(engine: TransformersEngine, model: str) -> None:
    assert engine.complete(ask(model, logprobs=None, max_tokens=3)).logprobs is None


def test_a_prompt_beyond_the_context_is_refused_and_a_long_answer_stays_within(
    engine: TransformersEngine, model: str
) -> None:
    with pytest.raises(ContextLengthError, match="takes 256"):
        engine.complete(ask(model, "the cat sat " * 200))
    prompt = "the cat sat on the mat " * 30
    n_prompt = len(engine.tokenizer(f"<|user|>{prompt}<|end|><|assistant|>", add_special_tokens=False)["input_ids"])
    response = engine.complete(ask(model, prompt, max_tokens=10_000))
    assert response.usage.output_tokens is not None
    assert response.usage.output_tokens <= 256 - n_prompt


def test_one_predict_through_dspy_gets_text_and_confidence(engine: TransformersEngine, model: str) -> None:
    """The tiny model cannot follow DSPy's format, so the adapter takes whatever it says for the answer."""

    class Plain(dspy.ChatAdapter):  # type: ignore[misc]
        def format(
            self, signature: type[dspy.Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
        ) -> list[dict[str, Any]]:
            return [{"role": "user", "content": inputs["question"]}]

        def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
            return {"answer": completion}

    lm = dspy.LM(model, engine=engine, async_engine=AsyncTransformersEngine(engine), cache=False, max_tokens=10)
    predict = dspy.Predict("question -> answer")
    with dspy.context(lm=lm, adapter=Plain()):
        prediction = predict(question="which city?", config={"logprobs": True})
        again = asyncio.run(predict.acall(question="which city?", config={"logprobs": True}))
    logprobs = take_logprobs(prediction, role="drafter", wanted_by="kraq")
    [scores] = field_logprobs(logprobs, {"answer": prediction.answer}).values()
    assert 5 < len(scores) <= 10
    assert all(score <= 0 for score in scores)
    assert again.answer == prediction.answer


def test_a_cancelled_task_ends_its_answer_and_not_its_neighbours(engine: TransformersEngine, model: str) -> None:
    twin = AsyncTransformersEngine(engine)
    endless = "the"  # greedy decoding of this prompt is compared with itself below

    steps: list[int] = []

    async def run() -> tuple[str, bool]:
        kept = asyncio.create_task(twin.complete(ask(model, endless, max_tokens=30)))
        dropped = asyncio.create_task(twin.complete(ask(model, endless, max_tokens=240)))
        while not (steps or kept.done()):  # it has begun, and the other with it
            await asyncio.sleep(0.005)
        dropped.cancel()
        answer = await kept
        follower = await twin.complete(ask(model, endless, max_tokens=30))
        return answer.message.text or "", follower.message.text == answer.message.text

    hook = engine.model.register_forward_pre_hook(lambda *_: steps.append(1))
    try:
        text, same = asyncio.run(run())
    finally:
        hook.remove()
    assert text
    assert same
    assert len(steps) < 240


def test_copies_of_a_program_share_the_weights(engine: TransformersEngine, model: str) -> None:
    program = dspy.Predict("question -> answer")
    program.lm = dspy.LM(model, engine=engine, async_engine=AsyncTransformersEngine(engine))
    assert program.deepcopy().lm.engine is engine


def test_a_model_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="cannot be loaded"):
        TransformersEngine(str(tmp_path))
    with pytest.raises(ModelError, match=r"There is no folder .*away' to load a model from"):
        TransformersEngine(str(tmp_path / "away"))


def test_pieces_of_tokens_join_to_the_text_also_where_tokens_split_characters(model: str) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    for text in ("Zürich and 東京 are cities", "😀 ünïcödé 🏔", "the  cat\n\nsat"):
        ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        pieces = pieces_of(tokenizer, ids)
        assert "".join(pieces) == text
        assert len(pieces) == len(ids)
    smile = tokenizer("😀", add_special_tokens=False)["input_ids"]
    assert pieces_of(tokenizer, smile)[0] == ""
    assert pieces_of(tokenizer, smile[:-1]) == [""] * (len(smile) - 1)


def test_a_batch_that_fails_is_an_error_to_all_its_callers_and_the_next_one_works() -> None:
    def work(jobs: Sequence[str], cancelled: Sequence[Callable[[], bool]]) -> list[Any]:
        if "bad" in jobs:
            raise ZeroDivisionError("batch")
        return [job.upper() if job != "odd" else KeyError("odd") for job in jobs]

    batches: Batches[str, str] = Batches(work, size=4, gather_s=0.05)
    futures = [batches.submit(job) for job in ("good", "bad")]
    assert [type(future.exception()) for future in futures] == [ZeroDivisionError] * 2
    good, odd = batches.submit("good"), batches.submit("odd")
    assert good.result() == "GOOD"
    assert isinstance(odd.exception(), KeyError)


def test_jobs_cancelled_while_they_wait_are_not_done() -> None:
    done: list[str] = []
    busy = threading.Event()

    def work(jobs: Sequence[str], cancelled: Sequence[Callable[[], bool]]) -> list[Any]:
        busy.wait()
        done.extend(jobs)
        return list(jobs)

    batches: Batches[str, str] = Batches(work, size=1, gather_s=0.01)
    first, second, third = (batches.submit(job) for job in ("first", "second", "third"))
    second.cancel()
    busy.set()
    assert (first.result(), third.result()) == ("first", "third")
    assert done == ["first", "third"]


def test_log_probabilities_are_finite(engine: TransformersEngine, model: str) -> None:
    response = engine.complete(ask(model))
    assert all(math.isfinite(token.logprob) for token in response.logprobs or ())


def test_a_role_may_name_a_model_of_this_process_and_an_adapter(
    model: str, adapters: dict[str, str], engine: TransformersEngine, capfd: pytest.CaptureFixture[str]
) -> None:
    base = make_lm(RoleSettings(model=f"transformers/{model}", max_tokens=8, precision="fp32"))
    named = f"transformers/{model}#{adapters['generator']}"
    tuned = make_lm(RoleSettings(model=named, max_tokens=8, precision="fp32"))
    assert base("which city?") == [said(engine, ask(model, max_tokens=8))]
    assert asyncio.run(tuned.acall("which city?")) == [said(engine, ask("generator", max_tokens=8))]
    assert base.engine.inner is tuned.engine.inner  # the weights are in memory once
    assert "Loading" not in capfd.readouterr().err
    shared_engine.cache_clear()


def test_a_model_whose_user_is_done_answers_its_next_user(model: str) -> None:
    role = RoleSettings(model=f"transformers/{model}", max_tokens=4, precision="fp32")
    first, second = (LanguageModels(Settings(roles={"default": role})) for _ in range(2))

    async def asked(models: LanguageModels) -> Any:
        try:
            return await models["judge"].acall("which city?")
        finally:
            await models.aclose()

    reply = asyncio.run(asked(first))
    assert asyncio.run(asked(second)) == reply
    assert first["answerer"]("which city?") == reply
    first.close()
    shared_engine.cache_clear()


@pytest.mark.parametrize(
    ("precision", "processor_can", "dtype"),
    [("auto", True, "bfloat16"), ("auto", False, "float32"), ("fp32", True, "float32"), ("bf16", False, "bfloat16")],
)
def test_a_role_computes_in_the_format_that_the_machine_is_quick_in(
    model: str, monkeypatch: pytest.MonkeyPatch, precision: str, processor_can: bool, dtype: str
) -> None:
    monkeypatch.setattr("kraq_dspy.models.machine.multiplies_in_bf16", lambda: processor_can)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    engine = engine_of(RoleSettings(model=f"transformers/{model}", precision=precision))
    try:
        assert engine.model.dtype == getattr(torch, dtype)
        assert engine.complete(ask(model, max_tokens=4)).usage.output_tokens
        same = {"bfloat16": "bf16", "float32": "fp32"}[dtype]
        again = engine_of(RoleSettings(model=f"transformers/{model}", precision=same))
        assert again is engine  # however it was asked for
    finally:
        shared_engine.cache_clear()


def test_threads_that_ask_for_a_model_together_share_one(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []

    def slowly(name: str, **_: Any) -> object:
        loads.append(name)
        time.sleep(0.05)
        return object()

    monkeypatch.setattr("kraq_dspy.models.lms.engines.transformers_engine.TransformersEngine", slowly)
    try:
        with ThreadPoolExecutor(4) as pool:
            engines = list(pool.map(engine_of, [RoleSettings(model="transformers/a model")] * 4))
    finally:
        shared_engine.cache_clear()
    assert loads == ["a model"]
    assert len(set(map(id, engines))) == 1
