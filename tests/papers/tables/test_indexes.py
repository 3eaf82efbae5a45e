"""An index is built once; what differs in the questions' generator alone starts from a copy."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from stand_in import stand_in

from kraq_dspy import Index
from kraq_dspy.eval import Dataset, Example
from kraq_dspy.eval.datasets import PassageTriples
from kraq_dspy.papers.tables.indexes import fingerprint, prepare_index, prepared
from kraq_dspy.ports import Embedder
from kraq_dspy.records import Document
from kraq_dspy.settings import RoleSettings, Settings

TEXTS = {
    "ada": "Ada Lovelace wrote notes on the Analytical Engine. Charles Babbage designed the Analytical Engine.",
    "byron": "Lord Byron wrote Don Juan. Lord Byron was the father of Ada Lovelace.",
}


def poets(**changes: Any) -> Dataset:
    documents = tuple(Document(name, name, text) for name, text in TEXTS.items())
    return dataclasses.replace(Dataset("poets", documents, (Example("q", "Who?", ("Ada",), ("ada",)),)), **changes)


@pytest.fixture(scope="module")
def ready() -> tuple[Settings, Embedder]:
    return prepared(Settings())


def test_an_index_is_built_once_and_found_again(tmp_path: Path, ready: tuple[Settings, Embedder]) -> None:
    first = prepare_index(poets(), tmp_path, *ready)
    again = prepare_index(poets(), tmp_path, *ready)
    assert first.report is not None
    assert again.report is None
    assert (again.path, again.fingerprint) == (first.path, first.fingerprint)
    assert first.path.name.startswith("poets-")


def test_random_questions_are_added_to_an_index_and_stay(tmp_path: Path, ready: tuple[Settings, Embedder]) -> None:
    prepare_index(poets(), tmp_path, *ready)
    prepared = prepare_index(poets(), tmp_path, *ready, random_questions=True)
    assert prepared.report is not None
    assert "extract" not in prepared.report.usage  # nothing but the random questions was asked
    assert prepare_index(poets(), tmp_path, *ready).report is None
    with Index.open(prepared.path) as index:
        counts = [len(index.questions(source=source, duplicates=True)) for source in ("kraq", "random")]
    assert counts[0] == counts[1] > 0


def test_another_generator_asks_for_nothing_but_the_questions(tmp_path: Path, ready: tuple[Settings, Embedder]) -> None:
    settings, embedder = ready
    base = prepare_index(poets(), tmp_path, settings, embedder)
    for name in ("tuned", "plain"):  # neither is the model of any other role
        with stand_in(latency_ms=0) as server:
            generator = RoleSettings(model=f"openai/{name}", api_base=server.url)
            other = dataclasses.replace(settings, roles={"default": RoleSettings(), "generator": generator})
            prepared_index = prepare_index(poets(), tmp_path, other, embedder)
        assert prepared_index.path != base.path
        assert prepared_index.report is not None
        assert set(prepared_index.report.usage) == {"ask"}
        with Index.open(prepared_index.path) as index:
            assert {question.model for question in index.questions(source="kraq")} == {f"openai/{name}"}


def test_given_triples_are_not_extracted_anew(tmp_path: Path, ready: tuple[Settings, Embedder]) -> None:
    triples = (PassageTriples("ada", ("Ada", "Engine"), (("Ada", "wrote about", "Engine"),)),)
    prepared_index = prepare_index(poets(triples=triples), tmp_path, *ready)
    assert prepared_index.report is not None
    assert "extract" not in prepared_index.report.usage
    with Index.open(prepared_index.path) as index:
        assert index.counts()["entities"] == 2


def test_the_fingerprint_follows_what_the_index_is_made_of() -> None:
    settings = Settings()
    own = fingerprint(poets(), settings)
    assert fingerprint(poets(examples=()), settings) == own  # the questions asked do not change the index
    assert fingerprint(poets(documents=poets().documents[:1]), settings) != own
    chunks = dataclasses.replace(settings, chunks=dataclasses.replace(settings.chunks, tokens=100))
    assert fingerprint(poets(), chunks) != own
    answerer = dataclasses.replace(settings, roles={**settings.roles, "answerer": RoleSettings(model="openai/x")})
    assert fingerprint(poets(), answerer) == own
    base = RoleSettings(model="gguf/smollm2-135m")
    tuned = dataclasses.replace(base, adapter="kraq-questions")  # else its questions were taken for the base model's
    marks = {
        fingerprint(poets(), dataclasses.replace(settings, roles={**settings.roles, "generator": role}))
        for role in (base, tuned)
    }
    assert len(marks) == 2
    speed = dataclasses.replace(settings, run=dataclasses.replace(settings.run, concurrency=1))
    assert fingerprint(poets(), speed) == own


def test_an_index_by_other_prompts_is_another_one() -> None:
    own, asked = Settings(), {"GenerateQuestion": "Ask a question."}
    assert fingerprint(poets(), own, prompts={}) == fingerprint(poets(), own)
    assert fingerprint(poets(), own, prompts=asked) != fingerprint(poets(), own)
