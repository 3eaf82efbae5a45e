"""Tests prompts that are too long for the model, against a server that refuses them as vLLM does."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any

import dspy
import numpy as np
import pytest
from dspy import ContextWindowExceededError
from hypothesis import given, strategies as st
from stand_in import StandIn, stand_in

from kraq_dspy import make_lm
from kraq_dspy._internal.step import halves
from kraq_dspy.extend import FittingPredict, KraqAdapter
from kraq_dspy.ports import Vectors
from kraq_dspy.programs import (
    AskQuestion,
    DescribeCommunity,
    DescribeEntity,
    ExtractGraph,
    GraphLocalSearch,
    SpeculativeRAG,
    TraditionalRAG,
    VoteScore,
)
from kraq_dspy.records import Chunk, Hit
from kraq_dspy.settings import RoleSettings
from kraq_dspy.signatures import AnswerQuestion

TOWNS = [f"Town{letter} lies near Lake{letter} and was founded by Anna{letter} Stone." for letter in "ABCDEFGHIJKLMNOP"]


class OneForAll:
    """An encoder to which everything looks alike."""

    name, dimension = "one", 2

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        return np.tile(np.array([[1, 0]], dtype=np.float32), (len(passages), 1))


@pytest.fixture(scope="module")
def server() -> Iterator[Any]:
    with stand_in() as running:
        yield running


@pytest.fixture
def lm(server: StandIn) -> dspy.LM:
    server.reset()
    return make_lm(RoleSettings(model="hosted_vllm/small", api_base=server.url, structured="none"))


def test_a_passage_that_is_too_long_is_read_in_parts_and_nothing_is_lost(server: StandIn, lm: dspy.LM) -> None:
    passage = "\n\n".join(TOWNS)
    server.configure(context_tokens=0)
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        program = ExtractGraph(gleanings=0)
        one_by_one = {entity.name for town in TOWNS for entity in program(passage=town).entities}
        server.configure(context_tokens=390)  # four towns
        graph = program(passage=passage)
        awaited = asyncio.run(program.acall(passage=passage))
    assert server.stats()["faults"]["context"] >= 2
    assert {entity.name for entity in graph.entities} == one_by_one
    assert awaited.toDict() == graph.toDict()


def test_a_list_of_findings_that_is_too_long_ends_the_search_and_keeps_them(server: StandIn, lm: dspy.LM) -> None:
    server.configure(context_tokens=450)  # takes the passage once, not the passage and what was found in it
    passage = " ".join(TOWNS[:6])
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        graph = ExtractGraph(gleanings=1)(passage=passage)
    assert server.stats()["faults"]["context"] == 1
    assert {"TownA", "TownD"} <= {entity.name for entity in graph.entities}


def test_an_answer_rests_on_the_best_passages_that_fit(
    server: StandIn, lm: dspy.LM, caplog: pytest.LogCaptureFixture
) -> None:
    chunks = [Chunk(f"{n}", "d", n, 0, len(town), town, 9) for n, town in enumerate(TOWNS)]
    hits = [Hit(chunk, 1 - n / 100, "q", "test") for n, chunk in enumerate(chunks)]
    server.configure(context_tokens=330)
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        program = TraditionalRAG(lambda question, k, **_: hits[:k], k=16)
        answer = program(question="Who founded TownA?").answer
        asyncio.run(program.acall(question="Who founded TownA?"))
    assert answer
    assert "passages: too long; continuing with 8 of 16 entries" in caplog.text


def test_one_long_passage_is_cut_to_its_beginning(
    server: StandIn, lm: dspy.LM, caplog: pytest.LogCaptureFixture
) -> None:
    server.configure(context_tokens=280)
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        assert FittingPredict(AnswerQuestion, "passages")(question="Who?", passages=[" ".join(TOWNS)]).answer
    assert "continuing with 431 of 863 characters" in caplog.text


def test_drafts_are_written_from_the_best_passages_that_fit(server: StandIn, lm: dspy.LM) -> None:
    hits = [Hit(Chunk(f"{n}", "d", n, 0, 9, town * 8, 9), 1.0, "q", "test") for n, town in enumerate(TOWNS[:4])]
    server.configure(context_tokens=200)
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        program = SpeculativeRAG(lambda question, k, **_: hits, OneForAll(), n=4, k=2, m=2, scorer=VoteScore())
        prediction = program(question="Who founded TownA?")
        asyncio.run(program.acall(question="Who founded TownA?"))
    assert server.stats()["faults"]["context"] >= 2
    assert prediction.failures == ()
    assert len(prediction.drafts) == 2


def test_what_a_graph_says_is_cut_once_there_are_no_passages_left(
    server: StandIn, lm: dspy.LM, caplog: pytest.LogCaptureFixture
) -> None:
    shown = dict.fromkeys(("reports", "entities", "relationships", "passages"), TOWNS)
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        program = GraphLocalSearch(lambda text, k: [], None)  # type: ignore[arg-type]  # only its step is asked here
        server.configure(context_tokens=700)
        assert program.answer(question="Who?", **shown).answer
    assert "passages: too long; continuing with 0 of 1 entries" in caplog.text
    assert "reports: too long; continuing with 8 of 16 entries" in caplog.text
    assert "entities: too long" not in caplog.text


def test_summaries_questions_and_descriptions_are_made_of_what_fits(server: StandIn, lm: dspy.LM) -> None:
    server.configure(context_tokens=420)
    long = TOWNS * 3
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        assert DescribeCommunity()(elements=long).summary
        assert AskQuestion()(summary=" ".join(long)).question
        assert DescribeEntity()(name="Town", descriptions=long).description
        assert asyncio.run(DescribeEntity().acall(name="Town", descriptions=long)).description
    assert server.stats()["faults"]["context"] >= 5


def test_a_context_that_takes_nothing_is_an_error_after_a_few_calls(server: StandIn, lm: dspy.LM) -> None:
    server.configure(context_tokens=10)
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        with pytest.raises(ContextWindowExceededError):
            FittingPredict(AnswerQuestion, shorten="passages")(question="Who?", passages=TOWNS)
        with pytest.raises(ContextWindowExceededError):
            DescribeEntity()(name="Town", descriptions=TOWNS)
        with pytest.raises(ContextWindowExceededError):
            ExtractGraph()(passage=TOWNS[0])
    assert server.stats()["requests"] <= 40


def test_a_text_is_cut_between_paragraphs_then_lines_then_sentences_then_words() -> None:
    assert halves("One. Two.\n\nThree. Four.") == ("One. Two.", "Three. Four.")
    assert halves("One. Two.\nThree. Four.") == ("One. Two.", "Three. Four.")
    assert halves("One is. Two is. Three is.") == ("One is. Two is.", "Three is.")
    assert halves("one two three") == ("one two", "three")
    assert halves("abcd") == ("ab", "cd")
    assert halves("a") == ("", "a")


@given(st.text())
def test_halves_lose_nothing_but_white_space_and_are_shorter(text: str) -> None:
    first, second = halves(text)
    assert "".join((first + second).split()) == "".join(text.split())
    assert not first or max(len(first), len(second)) < len(text.strip())
    assert first or len(text.strip()) < 2
