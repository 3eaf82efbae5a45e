"""Without a configured model `kraq index` takes the small question generator that is here, or says how to get it."""

from pathlib import Path

import pytest

from kraq_dspy.apps.cli.index import BROADEST, with_generator
from kraq_dspy.models.lms.local_models import QUESTIONS
from kraq_dspy.settings import QUESTIONS_BASE, RoleSettings, Settings


def test_without_its_file_one_command_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    settings, told = with_generator(Settings())
    assert settings == Settings()
    assert "lm get smollm2-135m" in told


def test_its_file_is_enough_for_the_broadest_communities(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xllamacpp", reason="needs xllamacpp: pip install 'kraq-dspy[local]'")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "kraq-dspy" / "models").mkdir(parents=True)
    (tmp_path / "kraq-dspy" / "models" / "smollm2-135m.gguf").touch()
    settings, told = with_generator(Settings())
    generator = settings.role("generator")
    assert (generator.model, generator.adapter) == (QUESTIONS_BASE, QUESTIONS)
    assert settings.role("extractor") == RoleSettings()
    assert settings.questions.broadest == BROADEST
    assert str(BROADEST) in told


def test_a_configured_model_is_left_alone() -> None:
    configured = Settings(roles={"default": RoleSettings("openai/any")})
    assert with_generator(configured) == (configured, "")
