"""Tests that a real model's words about a corpus (tests/recorded) become a section that extraction is told."""

import json
from pathlib import Path

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.errors import CorpusError
from kraq_dspy.extend import KraqAdapter
from kraq_dspy.optimize import Domain, describe_domain
from kraq_dspy.programs.kraq.by_size import extractor
from kraq_dspy.settings import ExtractSettings, Settings, read_settings
from kraq_dspy.signatures import DescribeDomain, ExtractElements

RECORDED = Path(__file__).resolve().parents[1] / "recorded" / "DescribeDomain.jsonl"
TEXTS = [f"The gene cdc{number} makes the protein p{number}." for number in range(40)]
REPLY = {"domain": "yeast\n genetics", "persona": 'A "yeast" person.', "entity_types": '["Gene", "gene ", "", "a, b"]'}


def typed(path: Path, domain: Domain) -> Settings:
    path.write_text(domain.to_toml(), "utf-8")
    return read_settings(path)


def test_a_few_passages_are_drawn_and_shown_once_and_the_answer_is_a_section_of_kraq_toml(tmp_path: Path) -> None:
    lm = DummyLM([REPLY, REPLY])
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        domain = describe_domain(TEXTS, passages=5)
        assert describe_domain(TEXTS, passages=5) == domain
    assert domain == Domain("yeast genetics", 'A "yeast" person.', ("gene", "a b"))
    first, second = (entry["messages"][-1]["content"] for entry in lm.history)
    assert (first, first.count("The gene cdc")) == (second, 5)
    settings = typed(tmp_path / "kraq.toml", domain)
    assert (settings.extract.types, settings.extract.persona) == ("gene, a b", 'A "yeast" person.')


@pytest.mark.parametrize("line", RECORDED.read_text("utf-8").splitlines())
def test_what_a_real_model_said_is_read_into_settings(line: str, tmp_path: Path) -> None:
    row = json.loads(line)
    if row["readable"] == "no":
        pytest.skip("the recorded reply cannot be read, as its row says")
    description = KraqAdapter().parse(DescribeDomain, row["reply"])
    lm = DummyLM(
        [{name: json.dumps(value) if isinstance(value, list) else value for name, value in description.items()}]
    )
    with dspy.context(lm=lm):
        domain = describe_domain(row["inputs"]["passages"])
    assert typed(tmp_path / "kraq.toml", domain).extract.types == ", ".join(domain.types)


@pytest.mark.parametrize("preset", ["full", "small"])
def test_every_step_of_extraction_is_told_the_types_and_the_persona(preset: str) -> None:
    settings = Settings(extract=ExtractSettings(preset, types="gene, protein", persona="A geneticist."))
    signatures = [step.signature for step in extractor(settings).predictors()]
    assert signatures
    for signature in signatures:
        assert signature.instructions.startswith("You are reading as this person: A geneticist.\n\n")
        assert signature.instructions.endswith("Only entities of these types, nothing else: gene, protein.")
    assert signatures[0].__name__ in ("ExtractElements", "NameElements")


def test_untold_extraction_asks_as_it_did() -> None:
    assert extractor(Settings()).predictors()[0].signature is not None
    plain = extractor(Settings(extract=ExtractSettings("full"))).predictors()[0]
    assert plain.signature.instructions == ExtractElements.instructions


def test_a_corpus_without_text_is_refused() -> None:
    with pytest.raises(CorpusError, match="no text"):
        describe_domain([""])
