"""Names that are similar are merged by spelling or by meaning where that is set, and people by a model alone."""

import asyncio
from typing import Any

import dspy
from dspy.utils import DummyLM

from kraq_dspy.extend import KraqAdapter, LanguageModels, load_embedder
from kraq_dspy.programs import KRAQ
from kraq_dspy.records import ExtractedEntity, Extraction
from kraq_dspy.settings import EncoderSettings, ResolveSettings, Settings
from kraq_dspy.steps.direct import DirectSteps


def merges(*names: str | tuple[str, str], lm: dspy.BaseLM | None = None, embedder: Any = None, **resolve: Any) -> Any:
    """(kept, merged, how) of names, with or without their types, each in a passage of its own."""
    entities = [
        ExtractedEntity(name, "", "") if isinstance(name, str) else ExtractedEntity(*name, "") for name in names
    ]
    extractions = [Extraction(f"chunk {number}", (entity,)) for number, entity in enumerate(entities)]
    kraq = KRAQ(Settings(resolve=ResolveSettings(**resolve)), embedder)
    with dspy.context(lm=lm or LanguageModels()["summarizer"], adapter=KraqAdapter()):
        graph = asyncio.run(kraq.graph(extractions, DirectSteps()))
    return [(merge.kept_name, merge.merged_name, merge.method) for merge in graph.merges]


LIVABILITY = ("Global Liveability Ranking", "Global Livability Ranking")
COURTS = ("Court of Justice of the Union", "Court of Justice of the Unions")


def test_new_york_city_is_one_city_whatever_it_is_called() -> None:
    found = merges("New York City", "NYC", "City of New York", "Broadway")
    assert {kept for kept, _, _ in found} == {"City of New York"}
    assert {merged for _, merged, _ in found} == {"New York City", "NYC"}


def test_the_united_states_are_one_country_whatever_they_are_called() -> None:
    found = merges("United States of America", "U.S.A.", "USA", "U.S.")
    assert {kept for kept, _, _ in found} == {"United States of America"}
    assert len(found) == 3


def test_an_acronym_that_one_name_of_the_corpus_fits_proves_nothing() -> None:
    assert merges("CIA", "Chennai International Airport", alike="spelling", confirm=False) == []


def test_names_that_are_similar_stay_apart_unless_that_is_set() -> None:
    assert merges(*LIVABILITY) == []
    assert merges(*COURTS) == []


def test_a_slip_inside_a_long_name_is_merged_by_spelling_unasked() -> None:
    assert merges(*LIVABILITY, alike="spelling") == [(*LIVABILITY, "spelling")]


def test_others_are_merged_where_the_model_says_so() -> None:
    lm = DummyLM([{"same": "True"}])
    assert merges(*COURTS, alike="spelling", lm=lm) == [(COURTS[1], COURTS[0], "confirmed")]
    assert merges(*COURTS, alike="spelling", lm=DummyLM([{"same": "False"}])) == []


def test_the_embedded_model_is_not_asked_about_them() -> None:
    assert merges(*COURTS, alike="spelling") == []


def test_without_confirmation_the_threshold_decides() -> None:
    assert merges(*COURTS, alike="spelling", confirm=False) == [(COURTS[1], COURTS[0], "spelling")]
    assert merges(*COURTS, alike="spelling", confirm=False, similarity=0.99) == []


def test_people_are_never_merged_by_similarity_alone() -> None:
    people = (("Maria Garcia", "Mario Garcia"), ("Li Wei", "Li Wen"), ("Anna Bergmann", "Anne Bergmann"))
    for first, second in people:
        for kind in ("", "person"):
            assert merges((first, kind), (second, kind), alike="spelling", confirm=False, similarity=0.8) == []


def test_single_words_are_never_merged_by_similarity_alone() -> None:
    assert merges("Kuwait", "Kuwaiti", "Cumbria", "Umbria", alike="spelling", confirm=False, similarity=0.9) == []


def test_names_that_differ_in_a_number_or_a_direction_are_not_even_asked_about() -> None:
    lm = DummyLM([])
    names = ("World War I", "World War II", "University of North Korea", "University of South Korea")
    assert merges(*names, alike="spelling", lm=lm, similarity=0.8) == []
    assert lm.history == []


def test_no_chain_leads_from_one_thing_to_another() -> None:
    names = ("House of the red rose", "House of the red roses", "Houses of the red roses")
    found = merges(*names, alike="spelling", confirm=False, similarity=0.9)
    assert len(found) == 1


def test_by_meaning_other_words_for_the_same_thing_are_proposed() -> None:
    names = ("Leader of the Opposition", "Opposition leader")
    lm = DummyLM([{"same": "True"}])
    embedder = load_embedder(EncoderSettings())
    assert merges(*names, alike="spelling", lm=DummyLM([])) == []
    assert merges(*names, alike="meaning", lm=lm, embedder=embedder, similarity=0.85) == [(*names, "confirmed")]


def test_two_people_of_one_name_are_one_entity_by_their_name_alone() -> None:
    """What is done, and said in the guide: a name is all that tells people apart."""
    lm = DummyLM([])
    assert merges(("Li Wei", "person"), ("Li Wei", "person"), alike="meaning", lm=lm) == []
    assert lm.history == []
