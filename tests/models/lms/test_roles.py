"""Roles, and the settings that cannot work."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from dspy.utils import DummyLM

from kraq_dspy.errors import ConfigError, ModelError
from kraq_dspy.models.lms.local_models import QUESTIONS, adapter_folder, weights_hash, with_adapter
from kraq_dspy.models.lms.roles import LanguageModels, make_lm
from kraq_dspy.settings import ROLES, RoleSettings, Settings

LOCAL = RoleSettings(model="hosted_vllm/m", api_base="http://localhost:8000/v1")


def test_unset_roles_share_the_default_model() -> None:
    models = LanguageModels(Settings())
    assert models["extractor"] is models["answerer"]
    assert models["extractor"].model == "embedded"


def test_equal_settings_share_a_model_and_all_share_a_meter() -> None:
    settings = Settings(roles={"default": RoleSettings(), "answerer": LOCAL, "judge": LOCAL})
    models = LanguageModels(settings)
    assert models["answerer"] is models["judge"]
    assert models["answerer"] is not models["extractor"]
    assert models["answerer"].engine.ledger.meter is models.meter is models["extractor"].engine.ledger.meter


def test_names_are_of_all_roles() -> None:
    names = LanguageModels(Settings(roles={"default": RoleSettings(), "judge": LOCAL})).names()
    assert set(names) == set(ROLES)
    assert (names["judge"], names["extractor"]) == ("hosted_vllm/m", "embedded")


def test_the_smallest_model_asks_questions_with_the_packaged_adapter_unless_the_role_has_its_own() -> None:
    small = RoleSettings(model="gguf/smollm2-135m", max_tokens=60)
    names = LanguageModels(Settings(roles={"default": small})).names()
    assert re.fullmatch(r"gguf/smollm2-135m#kraq-questions@[0-9a-f]{8}", names["generator"])
    assert names["summarizer"] == "gguf/smollm2-135m"
    own = LanguageModels(Settings(roles={"default": small, "generator": small})).names()
    assert own["generator"] == "gguf/smollm2-135m"
    other = LanguageModels(Settings(roles={"default": RoleSettings(model="gguf/qwen2.5-coder-0.5b")})).names()
    assert other["generator"] == "gguf/qwen2.5-coder-0.5b"


def test_the_packaged_adapter_is_named_by_its_name_and_not_by_where_it_lies() -> None:
    settings = with_adapter(RoleSettings(model="gguf/m.gguf", adapter=QUESTIONS))
    assert re.fullmatch(r"gguf/m.gguf#kraq-questions@[0-9a-f]{8}", settings.model)
    assert with_adapter(RoleSettings(model="gguf/m.gguf#kraq-questions")).model == settings.model
    folder, known = adapter_folder(settings.model.partition("#")[2])
    assert json.loads((Path(folder) / "adapter_config.json").read_text("utf-8"))["r"] == 8
    assert weights_hash(folder).startswith(known)


def test_an_unknown_role_is_named_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match=r"'reader'.*answerer"):
        LanguageModels(Settings())["reader"]


def test_dspy_neither_caches_nor_retries_above_the_engine() -> None:
    lm = make_lm(LOCAL)
    assert (lm.cache, lm.num_retries) == (False, 0)


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"model": "vllm/llama"}, "hosted_vllm/llama.*api_base"),
        ({"model": "hosted_vllm/llama"}, "api_base"),
        ({"model": "openai/gpt-4o"}, "OPENAI_API_KEY"),
        ({"model": "openai/gpt-4o", "api_key_env": "NOT_SET_HERE"}, "NOT_SET_HERE"),
        ({"model": "hosted_vllm/m", "api_base": "http://x/v1", "api_key_env": "NOT_SET_HERE"}, "NOT_SET_HERE"),
        ({"model": "anthropic/claude"}, "ANTHROPIC_API_KEY"),
        ({"model": "opnai/gpt-4o"}, "did you mean 'openai'"),
        ({"model": "llama"}, "PROVIDER/NAME"),
        ({"model": "openai/"}, "PROVIDER/NAME"),
        ({"model": "openai/o3", "api_base": "http://x/v1", "temperature": 0.2}, "temperature"),
    ],
)
def test_settings_that_cannot_work_are_refused(
    settings: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ModelError, match=says):
        make_lm(RoleSettings(**settings))  # type: ignore[arg-type]


def test_an_ambient_key_is_not_sent_to_another_address(scripted: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "s3cr3t")
    make_lm(RoleSettings(model="openai/m", api_base=scripted.url))("hello")  # type: ignore[attr-defined]
    assert scripted.keys == ["Bearer none"]  # type: ignore[attr-defined]


def test_native_models_do_not_import_litellm() -> None:
    code = (
        "import sys, kraq_dspy.models.lms.roles as roles; from kraq_dspy.settings import RoleSettings;"
        "roles.make_lm(RoleSettings()); roles.make_lm(RoleSettings(model='ollama_chat/x'));"
        "roles.make_lm(RoleSettings(model='hosted_vllm/x', api_base='http://x/v1'));"
        "heavy = {'torch', 'transformers'} & set(sys.modules);"
        # DSPy puts a placeholder under the name; the real package has loaded its submodules
        "print(sorted(heavy | {n for n in sys.modules if n.startswith('litellm.')}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("model", ["embedded", "openai/gpt-4o-mini"])
def test_a_model_is_made_from_its_name_alone(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    assert make_lm(model).model == make_lm(RoleSettings(model)).model


def test_models_show_their_roles() -> None:
    models = LanguageModels(models={"drafter": DummyLM([{"answer": "x"}])})
    assert "drafter='dummy'" in repr(models)
    assert "answerer='embedded'" in repr(models)
