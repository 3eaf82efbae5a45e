"""Tests that a manifest comes back with its settings and without secrets, and that a damaged one is named."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.asset.store.manifest import (
    LABELLED,
    SCHEMA_VERSION,
    Manifest,
    new_manifest,
    parse,
    read_fields,
    to_fields,
    write_fields,
)
from kraq_dspy.errors import IndexStateError
from kraq_dspy.settings import EncoderSettings, RoleSettings, Settings, StoreSettings


def test_a_manifest_comes_back_with_its_settings(tmp_path: Path) -> None:
    settings = Settings(encoder=EncoderSettings(query_prefix="search_query: "), roles={"default": RoleSettings("x/y")})
    manifest = new_manifest(settings, "minilm", 384)

    write_fields(tmp_path, to_fields(manifest))

    assert parse(read_fields(tmp_path), tmp_path) == manifest


def test_addresses_are_kept_without_user_and_password(tmp_path: Path) -> None:
    settings = Settings(
        store=StoreSettings(url="https://ann:secret@qdrant.example:6333/x"),
        roles={
            "default": RoleSettings(api_base="http://:secret@localhost:8000/v1"),
            "judge": RoleSettings(api_base="http://a:8000/v1,http://ann:secret@b:8000/v1"),
        },
    )

    write_fields(tmp_path, to_fields(new_manifest(settings, "minilm", 384)))

    assert "secret" not in (tmp_path / "manifest.json").read_text()
    kept = parse(read_fields(tmp_path), tmp_path).settings
    assert kept.store.url == "https://qdrant.example:6333/x"
    assert kept.roles["default"].api_base == "http://localhost:8000/v1"
    assert kept.roles["judge"].addresses == ("http://a:8000/v1", "http://b:8000/v1")


@pytest.mark.parametrize(
    ("by", "way_out"), [(2, "pip install -U kraq-dspy"), (-1, "Index its corpus again: kraq index CORPUS --out ")]
)
def test_another_schema_is_refused_with_the_way_out(tmp_path: Path, by: int, way_out: str) -> None:
    fields = {**to_fields(new_manifest(Settings(), "minilm", 384)), "schema_version": SCHEMA_VERSION + by}
    write_fields(tmp_path, fields)

    with pytest.raises(IndexStateError, match=rf"schema version {SCHEMA_VERSION + by} .*{way_out}"):
        read_fields(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[1]", '"x"', '{"schema_version": null}', '{"schema_version": "one"}', "{}"])
def test_a_damaged_manifest_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "manifest.json").write_text(text)

    with pytest.raises(IndexStateError, match=r"manifest.json' is damaged"):
        read_fields(tmp_path)


def test_settings_of_another_version_are_named_with_the_way_out(tmp_path: Path) -> None:
    fields = {**to_fields(new_manifest(Settings(), "minilm", 384)), "settings": {"nonsense": {}}}

    with pytest.raises(IndexStateError, match=r"nonsense.*Another version.*kraq index CORPUS"):
        parse(fields, tmp_path)


@pytest.mark.parametrize("change", [{"settings": None}, {"unknown": 1}])
def test_a_manifest_with_fields_that_do_not_fit_is_named(tmp_path: Path, change: dict[str, Any]) -> None:
    fields = {**to_fields(new_manifest(Settings(), "minilm", 384)), **change}

    with pytest.raises(IndexStateError, match="is damaged"):
        parse(fields, tmp_path)


def test_what_is_not_an_index_is_refused_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")

    with pytest.raises(IndexStateError, match=r"There is no index .*kraq index"):
        read_fields(tmp_path / "absent")
    with pytest.raises(IndexStateError, match="is a file"):
        read_fields(tmp_path / "file")
    with pytest.raises(IndexStateError, match="is not an index"):
        read_fields(tmp_path)


def test_a_write_that_fails_says_what_is_needed(tmp_path: Path) -> None:
    with pytest.raises(IndexStateError, match="must be writable and have space left; the file is as it was"):
        write_fields(tmp_path / "absent", {})


def test_the_manifest_of_today_is_the_one_of_this_schema_version() -> None:
    """A field that comes or goes changes the schema: raise SCHEMA_VERSION."""
    assert (SCHEMA_VERSION, LABELLED) == (6, 7)  # with and without labels of who may read the documents
    assert [field.name for field in dataclasses.fields(Manifest)] == [
        "schema_version", "settings", "encoder_name", "encoder_dimension", "created_at", "updated_at", "complete",
        "models", "library_version", "origin", "state", "schemas", "has_labels",
    ]  # fmt: skip
