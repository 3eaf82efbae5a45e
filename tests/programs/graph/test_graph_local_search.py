"""Tests what the model sees of a graph around a question, and that all of it fits."""

from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.programs import GraphLocalSearch
from tests.programs.graph.conftest import Town

QUESTION = "Which river has a bridge?"


def search(town: Town, **settings: Any) -> GraphLocalSearch:
    return GraphLocalSearch(town.entities, town.graph, **{"n_entities": 2, **settings})


def test_the_model_sees_entities_links_reports_and_passages_of_what_the_question_is_about(town: Town) -> None:
    lm = DummyLM([{"answer": "the Elbe"}])
    with dspy.context(lm=lm):
        prediction = search(town)(question=QUESTION)
    assert prediction.answer == "the Elbe"
    names = [entity.name for entity in prediction.entities]
    assert names[0] == "Elbe"
    assert set(names) <= {"Elbe", "Rhine", "Blue"}
    assert prediction.reports[0].chunk.title == "Rivers"
    prompt = lm.history[-1]["messages"][-1]["content"]
    assert "Elbe (thing): a river with a bridge" in prompt
    assert "Elbe | meets | Blue" in prompt
    assert "The Blue crosses the Elbe." in prompt or "The Rhine and the Elbe are rivers." in prompt


def test_links_between_the_entities_come_first_then_those_to_others(town: Town) -> None:
    context = search(town, n_entities=3).context("river and bridge")
    assert {entity.name for entity in context.entities} == {"Elbe", "Rhine", "Blue"}
    assert context.shown["relationships"] == ["Elbe | meets | Blue", "Rhine | meets | Elbe", "Blue | meets | Keep"]


def test_an_entitys_passages_that_state_its_links_come_first(town: Town) -> None:
    context = search(town, n_entities=1).context("river and bridge")
    assert [entity.name for entity in context.entities] == ["Elbe"]
    assert [hit.chunk.document_id for hit in context.hits] == ["rivers", "blank"]
    assert all(hit.why == "entity" and hit.score == context.hits[0].score for hit in context.hits)


@pytest.mark.parametrize("tokens", [20, 45, 90, 8000])
def test_everything_together_stays_in_the_budget(town: Town, tokens: int) -> None:
    context = search(town, tokens=tokens, n_entities=5).context(QUESTION)
    assert context.n_tokens <= tokens
    assert context.n_tokens == sum(count_tokens(text) for texts in context.shown.values() for text in texts)


def test_k_bounds_the_passages(town: Town) -> None:
    assert len(search(town, k=1, n_entities=5).context(QUESTION).hits) == 1
    assert len(search(town, k=9, n_entities=5).context(QUESTION).hits) == 4


def test_bad_settings_are_refused(town: Town) -> None:
    for name in ("k", "n_entities", "tokens"):
        with pytest.raises(ValueError, match=f"{name} is 0"):
            search(town, **{name: 0})
