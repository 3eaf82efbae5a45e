"""Tests that a language model confirms acronyms and the names that they stand for; the embedded one never does."""

import asyncio
from typing import Any

import dspy
from dspy.utils import DummyLM

from kraq_dspy.extend import KraqAdapter, LanguageModels
from kraq_dspy.programs import KRAQ
from kraq_dspy.records import ExtractedEntity, Extraction
from kraq_dspy.settings import ResolveSettings, Settings
from kraq_dspy.steps.direct import DirectSteps

UBA, FULL = ExtractedEntity("UBA", "", "UBA has trained five laureates."), "Universidad de Buenos Aires"
CHUNKS = [
    Extraction("a", (UBA, ExtractedEntity("Bernardo Houssay", "person", "He won a Nobel Prize."))),
    Extraction("b", (ExtractedEntity(FULL, "school", "A public university."), ExtractedEntity("Houssay", "", "He."))),
]


def merges(lm: dspy.BaseLM, extractions: list[Extraction] = CHUNKS, **resolve: Any) -> list[tuple[str, str, str]]:
    kraq = KRAQ(Settings(resolve=ResolveSettings(**resolve)))
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        graph = asyncio.run(kraq.graph(extractions, DirectSteps()))
    return [(merge.kept_name, merge.merged_name, merge.method) for merge in graph.merges]


def test_a_language_model_is_asked_about_acronyms_alone_with_what_is_known_of_both() -> None:
    lm = DummyLM([{"same": "True"}])
    assert merges(lm) == [(FULL, "UBA", "confirmed")]
    [call] = lm.history
    prompt = call["messages"][-1]["content"]
    assert "UBA: UBA has trained five laureates." in prompt
    assert f"{FULL} (school): A public university." in prompt


def test_what_the_model_denies_stays_apart() -> None:
    assert merges(DummyLM([{"same": "False"}])) == []


def test_the_setting_keeps_the_model_from_being_asked() -> None:
    lm = DummyLM([])
    assert merges(lm, acronyms=False) == []
    assert lm.history == []


def test_the_embedded_model_merges_what_a_text_introduces_and_nothing_else() -> None:
    embedded = LanguageModels()["summarizer"]
    assert merges(embedded) == []
    introduced = Extraction("c", (ExtractedEntity("Buenos Aires", "place", f"Seat of the {FULL} (UBA)."),))
    assert merges(embedded, [*CHUNKS, introduced]) == [(FULL, "UBA", "acronym")]


def test_a_language_model_is_asked_whether_a_form_of_address_is_the_one_person_of_that_name() -> None:
    extractions = [
        Extraction("a", (ExtractedEntity("Sherlock Holmes", "person", "He lived in Baker Street."),)),
        Extraction("b", (ExtractedEntity("Mr. Holmes", "person", "He kept a letter from Irene Adler."),)),
    ]
    lm = DummyLM([{"same": "True"}])
    assert merges(lm, extractions) == [("Sherlock Holmes", "Mr. Holmes", "confirmed")]
    assert "He kept a letter from Irene Adler." in lm.history[0]["messages"][-1]["content"]
    assert merges(DummyLM([{"same": "False"}]), extractions) == []
    assert merges(LanguageModels()["summarizer"], extractions) == []
