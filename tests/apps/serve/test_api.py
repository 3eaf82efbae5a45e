"""The JSON API answers over a small index."""

import dataclasses
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from kraq_dspy import Index
from kraq_dspy._internal.display import shown_model
from kraq_dspy.apps.serve.served import names_of
from kraq_dspy.errors import IndexStateError
from kraq_dspy.records import Community, Question
from kraq_dspy.settings import EMBEDDED
from kraq_dspy.workspace.topics import topics
from tests.apps.serve.conftest import MARKUP, open_all
from tests.asset.store.indexes import current_home

Clients = Callable[..., TestClient]


def got(client: TestClient, path: str, status: int = 200) -> Any:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    return answer.json()


def events(text: str) -> list[tuple[str, Any]]:
    return [(name, json.loads(data)) for name, data in re.findall(r"event: (\w+)\ndata: (.*)\n\n", text)]


def test_the_status_says_what_there_is_and_names_no_folder_and_no_setting(client: TestClient, poets: Path) -> None:
    status = got(client, "/api/status")
    assert (status["index"], status["indexes"]) == ("poets", ["poets"])
    assert status["counts"]["documents"] == 4
    assert sum(level["questions"] for level in status["levels"]) > 0
    assert {"traditional", "combined"} <= {program["name"] for program in status["programs"]}
    assert status["faq"] == {"pending": 2, "approved": 1, "stale": 0}
    assert str(poets.parent) not in json.dumps(status)


def test_questions_come_broadest_first_by_level_words_and_page(client: TestClient) -> None:
    everything = got(client, "/api/questions")
    levels = [question["level"] for question in everything["items"]]
    assert levels == sorted(levels)
    assert everything["total"] == len(levels) > 0
    page = got(client, "/api/questions?offset=1&limit=1")
    assert page["items"] == everything["items"][1:2]
    assert got(client, "/api/questions?q=no+such+words")["items"] == []
    assert {each["level"] for each in got(client, "/api/questions?level=0")["items"]} == {0}


def test_a_community_leads_to_its_entities_passages_and_documents(client: TestClient) -> None:
    question = got(client, "/api/questions?limit=1")["items"][0]
    community = got(client, f"/api/communities/{question['community_id']}")
    assert community["question"] == question["text"]
    assert community["summary"]["text"]
    passage = community["passages"]["items"][0]
    text = got(client, f"/api/documents/{passage['document_id']}")["text"]
    assert passage["text"] in text
    assert {entity["id"] for entity in community["entities"]} >= {
        mention["entity_id"] for mention in passage["mentions"][:1]
    }
    for mention in passage["mentions"]:
        entity = got(client, f"/api/entities/{mention['entity_id']}")
        words = passage["text"][mention["start"] : mention["end"]]
        assert words.casefold() in [name.casefold() for name in entity["names"]]
    assert got(client, f"/api/communities/{community['id']}/passages?limit=1")["items"] == [passage]


def test_communities_of_one_passage_are_listed_apart_from_those_of_several(client: TestClient) -> None:
    whole = got(client, "/api/communities?limit=200")["items"]
    single, several = (got(client, f"/api/communities?limit=200&single={word}")["items"] for word in ("true", "false"))
    assert all(each["n_passages"] == 1 for each in single)
    assert all(each["n_passages"] > 1 for each in several)
    assert len(single) + len(several) == len(whole) > 0


def test_an_entity_has_its_links_in_both_directions_and_the_communities_it_is_in(client: TestClient) -> None:
    found = got(client, "/api/search?q=lord+byron&kinds=entities")["entities"]
    [byron] = [each for each in found if each["name"] == "Lord Byron"]
    entity = got(client, f"/api/entities/{byron['id']}")
    assert {link["to"] for link in entity["links"]} <= {True, False}
    assert len(entity["links"]) > 0
    assert len(entity["communities"]) > 0
    assert entity["passages"]["total"] == byron["n_passages"]


def test_a_graph_stays_within_its_limit_and_its_links_within_its_nodes(client: TestClient) -> None:
    question = got(client, "/api/questions?limit=1")["items"][0]
    for limit in (2, 1000):
        graph = got(client, f"/api/communities/{question['community_id']}/graph?limit={limit}")
        ids = {node["id"] for node in graph["nodes"]}
        assert 0 < len(ids) <= limit
        assert {end for edge in graph["edges"] for end in (edge["source"], edge["target"])} <= ids


def test_a_document_whose_id_has_a_slash_is_found_with_its_passages_as_spans(client: TestClient) -> None:
    document = got(client, "/api/documents/notes/babbage.md")
    assert document["text"][document["passages"][0]["start"] :].startswith("Charles Babbage invented")


def test_search_finds_while_the_last_word_is_still_being_typed(client: TestClient) -> None:
    results = got(client, "/api/search?q=lord+byr")
    assert "Lord Byron" in [entity["name"] for entity in results["entities"]]
    assert "byron" in [passage["document_id"] for passage in results["passages"]]
    assert got(client, "/api/search?q=lord&kinds=entities").keys() == {"query", "entities"}
    assert got(client, "/api/search?q=+%3F!")["passages"] == []
    near = got(client, "/api/search?q=byron&retriever=dense&kinds=passages")["passages"]
    assert {hit["why"] for hit in near} == {"dense"}


def test_an_answer_brings_its_evidence_its_times_and_what_it_took(client: TestClient) -> None:
    body = {"question": "Who wrote Don Juan?", "program": "traditional", "options": {"k": 2}, "retriever": "bm25"}
    answer = client.post("/api/ask", json=body).json()
    assert "Byron" in answer["answer"]
    assert [hit["why"] for hit in answer["hits"]] == ["bm25", "bm25"]
    assert answer["timings"]["wall"] > 0
    assert answer["usage"]["calls"] == 1
    assert answer["usage"]["prompt_tokens"] > 0


def test_a_streamed_answer_ends_with_the_same_one(client: TestClient) -> None:
    body = {"question": "Who wrote Don Juan?", "program": "combined"}
    whole = client.post("/api/ask", json=body).json()
    streamed = client.post("/api/ask", json={**body, "stream": True})
    assert streamed.headers["content-type"].startswith("text/event-stream")
    came = events(streamed.text)
    assert [data["stage"] for name, data in came if name == "stage"] == ["retrieving", "answering"]
    assert came[-1][0] == "answer"
    assert came[-1][1]["answer"] == whole["answer"]
    assert came[-1][1]["details"]["auxiliary_questions"] == whole["details"]["auxiliary_questions"]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"question": " "}, "empty"),
        ({"question": "Who?", "program": "magic"}, "there are: traditional"),
        ({"question": "Who?", "program": "combined", "options": {"beta": 1}}, "no option 'beta'"),
        ({"question": "Who?", "options": {"k": "many"}}, "expected a whole number"),
        ({"question": "Who?", "retriever": "magic"}, "no retriever 'magic'"),
        ({"question": "Who?", "surprise": 1}, "surprise: Extra inputs"),
        ({"question": "x" * 5000}, "at most 4000"),
        ({}, "question: Field required"),
    ],
)
def test_a_request_that_does_not_fit_is_refused_in_its_own_words(
    client: TestClient, body: dict[str, Any], message: str
) -> None:
    answer = client.post("/api/ask", json=body)
    assert answer.status_code == 422
    assert message in answer.json()["error"]["message"]


def test_what_stands_in_the_address_of_a_post_is_not_passed_over(client: TestClient) -> None:
    answer = client.post("/api/ask?index=another", json={"question": "Who?"})
    assert answer.status_code == 422
    assert "parameters index; send them in the JSON body" in answer.json()["error"]["message"]


def test_what_must_be_prepared_first_is_said_with_its_command_and_without_a_folder(
    client: TestClient, poets: Path
) -> None:
    answer = client.post("/api/ask", json={"question": "Who?", "program": "k2rag"})
    assert (answer.status_code, answer.json()["error"]["code"]) == (409, "not_prepared")
    assert "kraq precompute DIR k2rag" in answer.json()["error"]["message"]
    assert str(poets) not in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/api/communities/none", "/api/entities/none", "/api/documents/none", "/api/documents/../../etc/passwd",
        "/api/faq/99", "/api/questions?index=none", "/api/none", "/page/none.js", "/page/../app.py",
        "/api/communities/none/graph", "/api/entities/none/passages", "/api/communities/..%2f",
    ],
)  # fmt: skip
def test_what_is_not_there_is_not_found(client: TestClient, path: str) -> None:
    assert client.get(path, follow_redirects=False).status_code == 404


@pytest.mark.parametrize("query", ["limit=0", "limit=many", "limit=9999", "offset=-1", "level=-1", "surprise=1"])
def test_a_page_that_cannot_be_is_refused(client: TestClient, query: str) -> None:
    assert client.get(f"/api/questions?{query}").status_code == 422


def test_an_index_without_questions_is_served_without_them(copy: Path, client_of: Clients) -> None:
    without_questions(copy)
    client = client_of(copy)
    assert got(client, "/api/questions")["items"] == []
    assert got(client, "/api/status")["counts"]["questions"] == 0
    assert got(client, "/api/communities")["items"][0]["question"] == ""
    body = {"question": "Who wrote Don Juan?"}
    assert client.post("/api/ask", json={**body, "program": "traditional"}).json()["answer"]
    assert client.post("/api/ask", json={**body, "program": "combined"}).json()["answer"]  # by retrieval alone


def test_a_damaged_index_or_one_of_another_version_is_refused_before_anybody_asks(copy: Path) -> None:
    manifest = copy / "manifest.json"
    fields = json.loads(manifest.read_text("utf-8"))
    manifest.write_text(json.dumps({**fields, "schema_version": 99}), "utf-8")
    with pytest.raises(IndexStateError, match="schema version 99"), open_all(copy):
        pass
    manifest.write_text(json.dumps(fields), "utf-8")
    (current_home(copy) / "index.db").write_bytes(b"torn" * 1000)
    with pytest.raises(IndexStateError, match="damaged"), open_all(copy):
        pass


def test_an_index_that_is_damaged_while_it_is_served_tells_the_client_nothing_of_the_disk(
    copy: Path, client_of: Clients
) -> None:
    client = client_of(copy)
    database = current_home(copy) / "index.db"
    database.unlink()
    database.write_bytes(b"torn" * 1000)
    answer = client.get("/api/questions")
    assert answer.status_code in (200, 503)  # what was read before stays
    assert str(copy) not in answer.text


def test_a_build_that_changed_the_index_is_seen_by_the_next_request(copy: Path, client_of: Clients) -> None:
    client = client_of(copy)
    before = got(client, "/api/questions")
    for text in ("Is this new?", "Is this newer?"):
        with Index.open(copy, write=True) as index:
            first = index.questions_by_id([before["items"][0]["id"]])[0]
            index.add([dataclasses.replace(first, text=text)])
            assert got(client, "/api/questions")["items"][0]["text"] != text  # not complete yet
        assert got(client, "/api/questions")["items"][0]["text"] == text
    last = int(current_home(copy).name)
    assert {int(state.name) for state in (copy / "states").iterdir()} == {last - 1, last}  # for requests under way


def test_a_broad_question_of_a_template_comes_with_its_topic_everywhere(copy: Path, client_of: Clients) -> None:
    with Index.open(copy, write=True) as index:
        question = next(each for each in index.questions() if each.model == EMBEDDED)
        [community] = index.get(Community, [question.community_id or ""])
        index.add([dataclasses.replace(community, child_ids=("inside",))])
        topic = topics(index, [question])[question.id]
    client = client_of(copy)
    place = f"/api/communities/{community.id}"
    word = question.text.split()[0]
    lists = (got(client, "/api/questions"), got(client, "/api/communities?limit=200"))
    found = got(client, f"/api/search?q={word}&kinds=questions&limit=50")["questions"]
    of_question = {each["id"]: each["topic"] for each in [*lists[0]["items"], *found]}
    of_community = {each["id"]: each["topic"] for each in lists[1]["items"]}
    assert of_question[question.id] == of_community[community.id] == got(client, place)["topic"] == topic != ""
    assert got(client, place)["question"] == question.text

    with Index.open(copy, write=True) as index:
        index.add([dataclasses.replace(question, model="openai/gpt-4o-mini")])
    assert got(client, place)["topic"] == ""


def without_questions(folder: Path) -> None:
    with Index.open(folder, write=True) as index:
        index.question_vectors.delete(index.ids(Question))
        index.replace(Question, [])


def test_two_indexes_are_told_apart_by_name(poets: Path, copy: Path, client_of: Clients) -> None:
    other = copy.rename(copy.with_name("other.kraq"))
    without_questions(other)
    client = client_of(poets, other)
    assert got(client, "/api/status?index=other")["counts"]["questions"] == 0
    assert got(client, "/api/status")["indexes"] == ["poets", "other"]
    answer = client.post("/api/ask", json={"question": "Who?", "index": "other", "program": "traditional"}).json()
    assert answer["index"] == "other"


def test_markup_of_an_index_stays_text_in_the_json(client: TestClient) -> None:
    answer = client.get("/api/questions?level=0")
    assert any(MARKUP in question["text"] for question in answer.json()["items"])
    assert answer.headers["content-type"].startswith("application/json")
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_half_a_surrogate_pair_in_a_title_reaches_the_client(copy: Path, client_of: Clients) -> None:
    with Index.open(copy, write=True) as index:
        index.add([dataclasses.replace(index.questions(level=0)[0], text="Who is \ud83d?")])
    assert "\ud83d" in client_of(copy).get("/api/questions?level=0").json()["items"][0]["text"]


def test_names_of_folders_are_told_apart_and_models_lose_theirs(tmp_path: Path) -> None:
    assert names_of([tmp_path / "a" / "x.kraq", tmp_path / "b" / "x.kraq", tmp_path / "y"]) == ["x", "x-2", "y"]
    assert shown_model("gguf//home/ada/models/m.gguf") == "gguf/m.gguf"
    assert shown_model("openai/gpt-4o-mini") == "openai/gpt-4o-mini"
    assert shown_model("hosted_vllm/meta-llama/Llama-3") == "hosted_vllm/meta-llama/Llama-3"


def test_one_index_is_served_twice(copy: Path) -> None:
    with open_all(copy) as first, open_all(copy) as second:
        assert [each.index.counts() for each in first.values()] == [each.index.counts() for each in second.values()]
