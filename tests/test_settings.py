"""Tests settings: what they refuse, in the words of kraq.toml, and the page about them."""

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy._internal.options import Checked, options_of
from kraq_dspy.errors import ConfigError
from kraq_dspy.settings import (
    ROLES,
    ChunkSettings,
    EncoderSettings,
    InstructedSettings,
    QuestionSettings,
    ResolveSettings,
    RoleSettings,
    RunSettings,
    Settings,
    SummarySettings,
    read_settings,
    settings_from_dict,
)

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ChunkSettings(tokens=-5), "chunks.tokens is -5; it must be a whole number, 1 or more."),
        (
            lambda: ChunkSettings(tokens=100, overlap=100),
            "chunks.overlap is 100; it must be from 0 to chunks.tokens - 1.",
        ),
        (
            lambda: ResolveSettings(description_tokens=0),
            "resolve.description_tokens is 0; it must be a whole number, 1 or more.",
        ),
        (lambda: EncoderSettings(threads=0), "encoder.threads is 0; it must be a whole number, 1 or more."),
        (
            lambda: InstructedSettings(kind="inbedder"),
            "instructed.kind is 'inbedder': give instructed.name, the folder of its weights.",
        ),
        (
            lambda: RunSettings(ray_address="ray://head:10001"),
            'run.ray_address is \'ray://head:10001\'; it must be "auto", "local" or HOST:PORT (no ray://).',
        ),
    ],
)
def test_a_value_out_of_range_is_refused_in_the_words_of_the_file(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        make()
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"chunk": {}}, "f.toml: [chunk] is no section; did you mean 'chunks'?"),
        ({"chunks": 300}, "f.toml: chunks is 300; it must be a section [chunks]."),
        ({"chunks": {"token": 300}}, "f.toml: chunks.token is not known; did you mean 'tokens'?"),
        ({"chunks": {"size": 300}}, "f.toml: chunks.size is not known; known: tokens, overlap."),
        ({"chunks": {"tokens": "300"}}, "f.toml: chunks.tokens is '300'; it must be a whole number, 1 or more."),
        ({"chunks": {"tokens": True}}, "f.toml: chunks.tokens is True; it must be a whole number, 1 or more."),
        ({"redact": {"emails": 1}}, "f.toml: redact.emails is 1; it must be true or false."),
        ({"encoder": {"name": 5}}, "f.toml: encoder.name is 5; it must be text."),
        (
            {"encoder": {"precision": "int3"}},
            "f.toml: encoder.precision is 'int3'; it must be one of auto, int8, int4, fp32, bf16.",
        ),
        ({"roles": {"genrator": {}}}, "f.toml: [roles.genrator] is no role; did you mean 'generator'?"),
        ({"roles": {"judge": "gpt"}}, "f.toml: roles.judge is 'gpt'; it must be a section [roles.judge]."),
        ({"roles": {"judge": {"modl": "x"}}}, "f.toml: roles.judge.modl is not known; did you mean 'model'?"),
        (
            {"roles": {"judge": {"prompt_price": -1}}},
            "f.toml: roles.judge.prompt_price is -1; it must be a number, 0 or more.",
        ),
    ],
)
def test_a_mistake_in_the_file_is_named_by_section_and_key(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings_from_dict(tables, where="f.toml")
    assert str(refused.value) == message


def test_what_is_left_out_keeps_its_default_and_a_role_falls_back_to_the_default_one(tmp_path: Path) -> None:
    (tmp_path / "kraq.toml").write_text('[chunks]\ntokens = 200\n[roles.judge]\nmodel = "openai/x"\ntimeout_s = 5\n')

    settings = read_settings(tmp_path / "kraq.toml")

    assert settings.chunks == ChunkSettings(tokens=200, overlap=50)
    assert settings.role("judge") == RoleSettings(model="openai/x", timeout_s=5.0)
    assert settings.role("answerer") == RoleSettings()


def test_a_preset_takes_the_place_of_defaults_and_the_file_goes_before_it(tmp_path: Path) -> None:
    file = tmp_path / "kraq.toml"
    file.write_text('preset = "thrifty"\n[summaries]\nmin_entities = 5\n[chunks]\ntokens = 200\n')

    settings = read_settings(file)

    assert settings.extract.gleanings == 0
    assert settings.summaries == SummarySettings(input_tokens=400, min_entities=5)
    assert settings.chunks.tokens == 200
    file.write_text('preset = "thrify"\n')
    with pytest.raises(ConfigError, match=r"kraq\.toml: preset is 'thrify'.*thrifty"):
        read_settings(file)


def test_a_file_that_is_absent_or_not_toml_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"There is no settings file .*kraq\.toml"):
        read_settings(tmp_path / "kraq.toml")
    (tmp_path / "kraq.toml").write_text("[chunks\n")
    with pytest.raises(ConfigError, match=r"kraq\.toml' is not valid TOML"):
        read_settings(tmp_path / "kraq.toml")


def test_settings_survive_the_way_through_a_dictionary() -> None:
    settings = Settings(chunks=ChunkSettings(tokens=200), roles={"default": RoleSettings(), "judge": RoleSettings("m")})

    assert settings_from_dict(settings.to_dict()) == settings


@pytest.mark.parametrize("section", [name for name in options_of(Settings) if name != "roles"])
def test_every_section_names_itself_in_its_errors(section: str) -> None:
    with pytest.raises(ConfigError, match=rf"settings: {section}\.nonsense is not known"):
        settings_from_dict({section: {"nonsense": 1}})


@pytest.mark.parametrize("kind", Checked.__subclasses__())
def test_every_default_is_a_value_that_fits(kind: type[Checked]) -> None:
    """A default is not checked when settings are made, so it is here."""
    for each in options_of(kind).values():
        if not each.is_required:
            checked = each.checked(each.default)
            assert checked == each.default
            assert type(checked) is type(each.default)


def test_a_value_that_only_equals_the_default_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"refusals.refuse is 1; it must be true or false"):
        settings_from_dict({"refusals": {"refuse": 1}})


def test_the_page_of_settings_is_what_the_code_says() -> None:
    """If this fails: python scripts/settings_reference.py"""
    spec = importlib.util.spec_from_file_location("settings_reference", ROOT / "scripts" / "settings_reference.py")
    assert spec is not None
    assert spec.loader is not None
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)

    page = reference.page()

    assert (ROOT / "docs" / "reference" / "settings.md").read_text("utf-8") == page
    assert all(f"`{role}`" in page for role in ROLES)


def test_the_random_baseline_draws_from_a_range() -> None:
    assert Settings(questions=QuestionSettings(random_least=3)).questions.random_most == 7
    with pytest.raises(ConfigError, match="random_least is 8, above random_most, 7"):
        QuestionSettings(random_least=8)


@pytest.mark.parametrize(
    ("summaries", "roles", "tokens"),
    [
        ({}, {}, 600),
        ({"context": "model"}, {}, 6144),
        ({"context": "model"}, {"default": {"model": "gguf/m.gguf", "context": 4096}}, 3072),
        ({"context": "model"}, {"summarizer": {"context": 32768}}, 24576),
        ({"context": "model", "input_tokens": 2000}, {}, 2000),
    ],
)
def test_a_summary_sees_what_its_preset_or_its_number_says(
    summaries: dict[str, Any], roles: dict[str, Any], tokens: int
) -> None:
    assert settings_from_dict({"summaries": summaries, "roles": roles}).community_tokens == tokens
