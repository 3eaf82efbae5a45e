"""Trains a real model of two layers: from rows to an adapter that answers otherwise than its base."""

import dataclasses
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.lm15 import Message, Request, Response, TextPart, Usage

from kraq_dspy import make_lm
from kraq_dspy.errors import ModelError, TrainingError
from kraq_dspy.extend import KraqAdapter
from kraq_dspy.finetune import Trained, TrainSettings, train_adapter
from kraq_dspy.finetune.token_rows import IGNORED, hold_out, token_row
from kraq_dspy.finetune.training import _prepare
from kraq_dspy.models.lms.engines.transformers_engine import engine_of
from kraq_dspy.models.lms.local_models import WEIGHTS, require_whole, weights_hash
from kraq_dspy.ports import SilentProgress
from kraq_dspy.settings import RoleSettings
from kraq_dspy.signatures import GenerateQuestion
from tests.conftest import TinyModels

FAST = TrainSettings(
    r=16, alpha=32, target_modules="all-linear", learning_rate=1e-2, epochs=6, batch_size=4, accumulate=1
)


@pytest.fixture(scope="module")
def trained(base: str, chats: list[Any], tmp_path_factory: pytest.TempPathFactory) -> Trained:
    return train_adapter(chats, base, tmp_path_factory.mktemp("tuned") / "generator", FAST)


def test_the_loss_falls_on_rows_that_were_not_trained_on(trained: Trained) -> None:
    first, last = trained.curve[0], trained.curve[-1]
    assert (first.step, math.isnan(first.train)) == (0, True)
    assert last.held_out < 0.7 * first.held_out
    assert last.train < trained.curve[1].train
    assert trained.rows == (22, 2)


def test_the_losses_are_those_of_all_logits(trained: Trained, base: str, chats: list[Any]) -> None:
    """Only those that tell a label are computed; before the first step the adapter changes nothing."""
    import torch
    import transformers

    loaded: Any = transformers.AutoTokenizer.from_pretrained(base)
    model: Any = transformers.LlamaForCausalLM.from_pretrained(base)
    rows = hold_out([token_row(loaded, chat) for chat in chats], FAST)[1]
    losses: list[float] = []
    for row in rows:
        with torch.no_grad():
            logits = model(torch.tensor([row.ids])).logits[0, :-1].log_softmax(-1)
        losses += [-float(logits[at][label]) for at, label in enumerate(row.labels[1:]) if label != IGNORED]
    assert trained.curve[0].held_out == pytest.approx(sum(losses) / len(losses), rel=0.02)


def test_labels_are_the_reply_and_its_end_and_nothing_of_the_prompt(base: str, chats: list[Any]) -> None:
    import transformers

    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(base)
    row = token_row(tokenizer, chats[0])
    assert len(row.ids) == len(row.labels)
    reply = tokenizer.decode([label for label in row.labels if label != IGNORED])
    assert reply == "[[ ## question ## ]]\nWhat did Ada do?\n\n[[ ## completed ## ]]<|end|>"
    assert tokenizer.decode(list(row.ids)) == tokenizer.apply_chat_template(chats[0], tokenize=False).replace(
        "]]\n<|end|>", "]]<|end|>"
    )


def test_a_model_is_trained_on_the_prompt_that_it_is_asked_with(base: str, chats: list[Any]) -> None:
    class Recorder:
        """Answers as the row says, and keeps what it was asked."""

        request: Any = None

        def complete(self, request: Request) -> Response:
            self.request = request
            message = Message.assistant([TextPart(chats[0][-1]["content"])])
            return Response(id=None, model="m", message=message, finish_reason="stop", usage=Usage())

    recorder = Recorder()
    with dspy.context(lm=dspy.LM("m", engine=recorder, cache=False), adapter=KraqAdapter()):
        assert dspy.Predict(GenerateQuestion)(summary="Ada is a cook.").question == "What did Ada do?"
    engine = engine_of(RoleSettings(model=f"transformers/{base}"))
    row = token_row(engine.tokenizer, chats[0])
    assert engine._prompt(recorder.request) == [
        token for token, label in zip(row.ids, row.labels, strict=True) if label == IGNORED
    ]


def test_base_and_adapter_share_the_weights_and_answer_differently(trained: Trained, base: str) -> None:
    tuned = make_lm(RoleSettings(model=f"transformers/{base}", adapter=str(trained.folder), max_tokens=40))
    plain = make_lm(RoleSettings(model=f"transformers/{base}", max_tokens=40))
    assert tuned.engine.inner is plain.engine.inner
    assert tuned.model == trained.model == f"transformers/{base}#{trained.folder}@{trained.weights_hash[:8]}"
    ask = dspy.Predict(GenerateQuestion)
    with dspy.context(lm=tuned, adapter=KraqAdapter(second_try=False)):
        assert re.fullmatch(r"What did \w+ do\?", ask(summary="Ada is a cook.").question)
    with dspy.context(lm=plain, adapter=KraqAdapter(second_try=False)):
        assert not re.match(r"What did", ask(summary="Ada is a cook.").question)


def test_an_interrupted_training_goes_on_and_ends_with_the_same_weights(
    trained: Trained, base: str, chats: list[Any], tmp_path: Path
) -> None:
    class Interrupted(SilentProgress):
        steps = 0

        def advance(self, stage: str, done: int = 1, **_: Any) -> None:
            self.steps += done
            if self.steps == 9:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_adapter(chats, base, tmp_path / "generator", FAST, progress=Interrupted())
    assert not (tmp_path / "generator" / "adapter_model.safetensors").exists()
    with pytest.raises(TrainingError, match="unfinished training with other rows"):
        train_adapter(chats[1:], base, tmp_path / "generator", FAST)
    again = train_adapter(chats, base, tmp_path / "generator", FAST)
    assert again.resumed_from == 8
    assert again.weights_hash == trained.weights_hash
    assert again.curve[1:] == trained.curve[1:]


def test_other_weights_in_the_folder_are_not_answered_with(trained: Trained, base: str) -> None:
    lm = make_lm(RoleSettings(model=f"transformers/{base}#{trained.folder}@00000000", retries=0))
    with pytest.raises(ModelError, match="trained again"):
        lm("Ada")


def test_what_cannot_be_trained_is_refused_before_the_weights_are_loaded(
    base: str, chats: list[Any], tmp_path: Path
) -> None:
    with pytest.raises(TrainingError, match="nothing to train on: 0 rows"):
        train_adapter([], base, tmp_path)
    with pytest.raises(TrainingError, match=r"0 rows to train on \(24 left out, of more than 20 tokens"):
        train_adapter(chats, base, tmp_path, TrainSettings(max_tokens=20))
    with pytest.raises(TrainingError, match="same prompt"):
        train_adapter([chats[0]] * 8, base, tmp_path)
    with pytest.raises(ModelError, match=r"There is no folder .*nowhere"):
        train_adapter(chats, str(tmp_path / "nowhere"), tmp_path)


def test_the_adapter_says_what_it_was_trained_as(trained: Trained, base: str) -> None:
    config = json.loads((trained.folder / "adapter_config.json").read_text())
    assert (config["r"], config["lora_alpha"], config["lora_dropout"], config["bias"]) == (16, 32, 0.05, "none")
    assert config["base_model_name_or_path"] == base


def test_the_defaults_are_the_papers() -> None:
    settings = TrainSettings()
    assert (settings.r, settings.alpha, settings.dropout, settings.learning_rate) == (64, 16, 0.05, 2e-4)
    assert (settings.batch_size, settings.accumulate, settings.epochs) == (2, 4, 3)
    assert (settings.max_tokens, settings.held_out) == (2048, 0.1)


def test_a_gguf_file_is_trained_and_its_adapter_answers_in_llama_cpp(
    chats: list[Any], tiny_models: TinyModels, tmp_path: Path
) -> None:
    for package in ("gguf", "peft", "accelerate", "xllamacpp"):
        pytest.importorskip(package, reason=f"needs {package}: pip install 'kraq-dspy[local,train]'")
    file = tiny_models.gguf(tiny_models.llama(tmp_path / "base", context=1024), tmp_path / "tiny.gguf")
    short = [[{**message, "content": message["content"][-110:]} for message in chat] for chat in chats]
    trained = train_adapter(short, f"gguf/{file}", tmp_path / "generator", dataclasses.replace(FAST, epochs=2))
    assert trained.served == f"gguf/{file}"
    assert trained.model == f"gguf/{file}#{tmp_path / 'generator'}@{trained.weights_hash[:8]}"
    assert trained.curve[-1].held_out < 0.9 * trained.curve[0].held_out
    questions = []
    for model in (trained.served, trained.model):
        lm = make_lm(RoleSettings(model=model, max_tokens=12, temperature=0.0, threads=1, structured="none"))
        questions.append(lm(messages=short[0][:-1])[0])
        lm.engine.close()
    assert questions[0] != questions[1]


def test_a_finished_adapter_is_overwritten_only_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / WEIGHTS).write_bytes(b"weeks of work")
    with pytest.raises(TrainingError, match=r"holds a finished adapter.*--replace"):
        _prepare(tmp_path, {"base": "m"})
    assert (tmp_path / WEIGHTS).read_bytes() == b"weeks of work"
    assert _prepare(tmp_path, {"base": "m"}, replace=True) == (None, 0)
    assert _prepare(tmp_path, {"base": "m"}) == (None, 0)  # interrupted, the same call goes on


def test_what_is_no_whole_adapter_is_named(trained: Trained, tmp_path: Path) -> None:
    (tmp_path / "checkpoints").mkdir()
    with pytest.raises(ModelError, match="holds an unfinished training"):
        weights_hash(tmp_path)
    shutil.copytree(trained.folder, tmp_path / "torn")
    weights = tmp_path / "torn" / WEIGHTS
    whole = weights.read_bytes()
    require_whole(weights)
    for cut in (0, 4, 8, 100, len(whole) // 2, len(whole) - 1):
        weights.write_bytes(whole[:cut])
        with pytest.raises(ModelError, match="holds an incomplete adapter"):
            require_whole(weights)


def test_a_model_whose_template_takes_no_system_role_is_trained_all_the_same(base: str, chats: list[Any]) -> None:
    import transformers

    tokenizer: Any = transformers.AutoTokenizer.from_pretrained(base)
    refusing = "{% if m.role == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    begin = "{% for m in messages %}"
    tokenizer.chat_template = tokenizer.chat_template.replace(begin, begin + refusing)
    row = token_row(tokenizer, chats[0])
    shown = tokenizer.decode(row.ids)
    assert chats[0][0]["role"] == "system"
    assert chats[0][0]["content"].splitlines()[0] in shown
    assert chats[0][-1]["content"].strip() in tokenizer.decode([label for label in row.labels if label >= 0])
