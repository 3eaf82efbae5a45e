"""An agent's calls return short results, and it goes on from one to the next by ids and offsets."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kraq_dspy import build_index
from kraq_dspy.apps.mcp.tools import IndexTools
from kraq_dspy.errors import ConfigError, IndexStateError, UnknownRecordError
from kraq_dspy.records import Document, Question
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import choose_program
from tests.apps.mcp.conftest import PASSAGES


@pytest.fixture(scope="module")
def tools(people: Path) -> Iterator[IndexTools]:
    with Workspace.open(people) as space:
        yield IndexTools(space, choose_program("traditional", options={"k": 4}))


def test_an_answer_comes_with_its_evidence_and_what_made_it(tools: IndexTools) -> None:
    result = asyncio.run(tools.ask("Who was the father of Ada Lovelace?", evidence=1))
    assert "Byron" in result["answer"]
    assert (result["program"], result["model"]) == ("traditional", "embedded")
    assert result["n_passages"] > len(result["evidence"]) == 1
    assert result["seconds"] >= 0
    assert asyncio.run(tools.ask("Who was the father?", program="combined"))["program"] == "combined"


def test_pages_of_a_search_are_parts_of_one_ranking_and_lead_into_the_document(tools: IndexTools) -> None:
    everything = tools.search("Charles Babbage London", limit=20)
    first = tools.search("Charles Babbage London", limit=1)
    assert first["next_offset"] == 1
    second = tools.search("Charles Babbage London", limit=1, offset=first["next_offset"])
    assert [*first["passages"], *second["passages"]] == everything["passages"][:2]
    assert everything["total"] == len(everything["passages"])
    assert everything["next_offset"] is None
    passage = everything["passages"][0]
    beginning = tools.read_document(passage["chunk_id"], length=20)
    assert passage["text"].startswith(beginning["text"])
    assert beginning["document_id"] == passage["document_id"]
    only = tools.search("poet", document_ids=["notes/Lord Byron.txt"])
    assert {each["document_id"] for each in only["passages"]} == {"notes/Lord Byron.txt"}


def test_a_document_is_read_on_to_its_end(tools: IndexTools) -> None:
    text, offset = "", 0
    while True:
        part = tools.read_document("notes/Charles Babbage.txt", offset=offset, length=1000)
        assert part["offset"] == len(text)
        text += part["text"]
        if part["next_offset"] is None:
            break
        offset = part["next_offset"]
    assert text == PASSAGES["Charles Babbage"]
    assert part["total_characters"] == len(text)


def test_reading_on_from_a_passage_counts_from_its_beginning(tools: IndexTools) -> None:
    document = PASSAGES["Charles Babbage"]
    passages = tools.search("Analytical Engine", limit=20)["passages"]
    later = next(
        each
        for each in passages
        if each["title"] == "Charles Babbage" and not document.startswith(each["text"].rstrip("…"))
    )
    first = tools.read_document(later["chunk_id"], length=30)
    assert first["offset"] > 0
    assert first["next_offset"] == 30
    second = tools.read_document(later["chunk_id"], offset=first["next_offset"], length=30)
    assert first["text"] + second["text"] == document[first["offset"] : first["offset"] + 60]


def test_questions_lead_to_communities_and_those_to_entities_and_passages(tools: IndexTools) -> None:
    (question, *_), _ = tools.questions_about("Lord Byron", limit=1)["questions"], None
    assert question["similarity"] is not None
    assert question["community_id"] is not None
    community = tools.community(question["community_id"])
    assert question["question_id"] in {each["question_id"] for each in community["questions"]}
    assert community["title"]
    assert community["n_entities"] >= len(community["entities"]) > 0
    linked = tools.neighbours_of(community["entities"][0]["id"])
    assert linked["entity_id"] == community["entities"][0]["id"]
    assert tools.community(question["community_id"], limit=1)["entities"] == community["entities"][:1]


def test_questions_without_a_topic_are_listed_broadest_first(tools: IndexTools) -> None:
    listed = tools.questions_about()["questions"]
    assert [each["level"] for each in listed] == sorted(each["level"] for each in listed) != []
    assert all(each["similarity"] is None for each in listed)
    assert {each["level"] for each in tools.questions_about("London", level=0)["questions"]} == {0}


def test_neighbours_say_how_they_are_linked_in_both_directions(tools: IndexTools) -> None:
    byron = tools.neighbours_of("lord byron")
    ada = next(each for each in byron["neighbours"] if each["name"] == "Ada Lovelace")
    assert ada["sentence"].startswith("Lord Byron ")
    assert ada["sentence"].endswith(" Ada Lovelace")
    assert ada["chunk_ids"]
    back = next(each for each in tools.neighbours_of("Ada Lovelace")["neighbours"] if each["name"] == "Lord Byron")
    assert back["sentence"] == ada["sentence"]
    assert byron["total"] >= len(byron["neighbours"])


@pytest.mark.parametrize(
    ("call", "error", "way_out"),
    [
        (lambda tools: asyncio.run(tools.ask("Who?", program="magic")), ConfigError, "there are: traditional"),
        (lambda tools: asyncio.run(tools.ask("   ")), ConfigError, "question is empty"),
        (lambda tools: tools.search("x", retriever="magic"), ConfigError, "there are: dense"),
        (lambda tools: tools.community("nothing"), UnknownRecordError, "questions_about"),
        (lambda tools: tools.read_document("nothing"), UnknownRecordError, "see `search`"),
        (lambda tools: tools.neighbours_of("Byron, Lord of"), UnknownRecordError, "Near to it: Lord Byron"),
        (lambda tools: tools.neighbours_of("xyz"), UnknownRecordError, "`search` finds passages"),
    ],
)
def test_what_is_not_there_is_said_with_the_way_on(
    tools: IndexTools, call: Callable[[IndexTools], object], error: type[Exception], way_out: str
) -> None:
    with pytest.raises(error, match=way_out):
        call(tools)


def test_an_index_without_questions_says_what_to_use_instead(tmp_path: Path) -> None:
    build_index([Document("d", "", "Lord Byron wrote Don Juan.")], tmp_path / "i.kraq")
    with Workspace.open(tmp_path / "i.kraq", write=True) as space:
        space.index.replace(Question, [])
        with pytest.raises(IndexStateError, match="Use `search`"):
            IndexTools(space, choose_program()).questions_about("Byron")
