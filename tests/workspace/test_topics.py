"""Broad communities that no model wrote a question for have a topic; their questions are no starters."""

import dataclasses
import json
import shutil
from pathlib import Path

import pytest

from kraq_dspy import Index, Workspace
from kraq_dspy.apps.cli.demo import show_broadest
from kraq_dspy.apps.mcp.tools import IndexTools
from kraq_dspy.records import PARSE, TOPIC, Chunk, Community, Document, Entity, Question, content_id
from kraq_dspy.settings import EMBEDDED
from kraq_dspy.workspace.choices import choose_program
from kraq_dspy.workspace.suggesting import starters
from kraq_dspy.workspace.topics import BROAD, asking_first, is_broad, topic_of, topics
from tests.conftest import KeywordEmbedder, WarmShell
from tests.kept import kept_index

EMBEDDER = KeywordEmbedder("knox", "farragut", "memphis")
TEXTS = ["Farragut held a fair.", *(f"Knox County held its fair of {1900 + year}." for year in range(1, BROAD))]

ON_BROAD, ON_NARROW = content_id("question", "broad"), content_id("question", "narrow")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One broad community with one narrow inside; a template asked about either."""
    out = tmp_path_factory.mktemp("topics") / "fairs.kraq"
    kept_index([Document(f"d{n}", f"d{n}", text) for n, text in enumerate(TEXTS)], out, embedder=EMBEDDER)
    with Index.open(out, write=True) as index:
        chunk_ids = tuple(index.ids(Chunk))
        degrees = {"Fair": 1, "Farragut": 3, "Knoxville": 3, "Knox County": 9, "Tennessee": 4}
        passages = {"Knoxville": 2}
        entities = [
            Entity(name, name, "place", "", (name,), chunk_ids[: passages.get(name, 1)], degree)
            for name, degree in degrees.items()
        ]
        broad = Community("broad", 0, None, ("narrow",), tuple(degrees), (), chunk_ids)
        narrow = Community("narrow", 1, "broad", (), ("Farragut",), (), chunk_ids[:1])
        questions = [
            Question(
                ON_BROAD,
                "Where was the fair of Knox County?",
                "kraq",
                "broad",
                0,
                chunk_ids,
                ("d0",),
                EMBEDDED,
                evidence=chunk_ids[1:3],
            ),
            Question(
                ON_NARROW,
                "What did Farragut hold?",
                "kraq",
                "narrow",
                1,
                chunk_ids[:1],
                ("d0",),
                EMBEDDED,
                evidence=chunk_ids[:1],
            ),
        ]
        index.replace(Entity, entities)
        index.replace(Community, [broad, narrow])
        index.replace(Question, questions)
        texts = [each.text for each in questions]
        index.question_vectors.upsert([each.id for each in questions], EMBEDDER.encode_queries(texts), texts)
    return out


@pytest.fixture
def fairs(made: Path, tmp_path: Path) -> Path:
    return shutil.copytree(made, tmp_path / "fairs.kraq")


def asked_by_a_model(folder: Path) -> None:
    with Index.open(folder, write=True) as index:
        index.add([dataclasses.replace(each, model="openai/gpt-4o-mini") for each in index.questions()])


def test_the_topic_is_the_three_names_with_most_links_and_passages(made: Path) -> None:
    with Index.open(made) as index:
        assert topics(index, index.questions()) == {ON_BROAD: "Knox County, Tennessee, Knoxville"}


WRITTEN = {"Members": 2, "members": 1, "Regional": 1, "regional": 1, "Guam": 3, "Palau": 5}


def named(name: str, degree: int, n_passages: int = 2) -> Entity:
    return Entity(name, name, "", "", (name,), tuple(map(str, range(n_passages))), degree)


@pytest.mark.parametrize(
    ("names", "topic"),
    [
        (["Guam", "1200 UTC", "Storm kills eleven in the north", "Palau"], "Guam, Palau"),
        (["Members", "Guam", "Regional", "Palau"], "Guam, Palau"),  # the texts have "members" and "regional", too
        (["China", "Report of China", "Guam", "Palau"], "China, Guam, Palau"),  # no name with another inside
        (["JAKs", "JAK", "NF"], "JAKs, NF"),
        (["12 of 40", "7th"], "12 of 40, 7th"),  # something rather than nothing
    ],
)
def test_a_topic_is_made_of_names_that_tell(names: list[str], topic: str) -> None:
    members = [named(name, degree=100 - place) for place, name in enumerate(names)]
    assert topic_of(members, written=WRITTEN) == topic


def test_what_a_text_writes_small_now_and_then_is_still_its_central_name() -> None:
    members = [named("Steam", 9), named("Valve", 8)]
    assert topic_of(members, written={"Steam": 8, "steam": 2}) == "Steam, Valve"
    assert topic_of(members, written={"Steam": 4, "steam": 2}) == "Valve"


def test_beside_a_title_a_topic_has_names_of_several_passages() -> None:
    members = [named("Row 7", 9, 1), named("Cateel", 5, 4), named("Pablo", 4, 8), named("Nathaniel", 8, 1)]
    assert topic_of(members, "Effects of Typhoon Pablo") == "Effects of Typhoon Pablo: Cateel"
    assert topic_of(members[:1], "Effects of Typhoon Pablo") == "Effects of Typhoon Pablo"


def test_a_group_of_one_document_has_its_title_for_a_topic(tmp_path: Path) -> None:
    fair = " ".join(f"Knox County held its fair number {number} in the town of Farragut." for number in range(400))
    documents = [Document("fairs", "Fairs of Tennessee", fair), Document("f2", "Notes", fair[::-1])]
    kept_index(documents, tmp_path / "x.kraq", embedder=EMBEDDER)
    with Index.open(tmp_path / "x.kraq", write=True) as index:
        of_first, of_second = ([each.id for each in index.all(Chunk, document_id=id)] for id in ("fairs", "f2"))
        assert len(of_first) >= BROAD
        index.replace(Entity, [Entity("Knox", "Knox County", "", "", (), tuple(of_first), 3)])
        communities = [
            Community("one", 0, None, (), ("Knox",), (), tuple(of_first)),
            Community("other", 0, None, (), ("Knox",), (), tuple(of_second)),
        ]
        index.replace(Community, communities)
        questions = [
            Question(each.id, "Where?", "kraq", each.id, 0, each.chunk_ids, (), EMBEDDED) for each in communities
        ]
        assert topics(index, questions) == {"one": "Fairs of Tennessee: Knox County", "other": "Notes: Knox County"}

        rest = [Community("rest", 0, None, (), (), (), tuple(of_first[-BROAD:]))]
        index.replace(Community, [communities[0], rest[0]])
        asked = [*questions[:1], dataclasses.replace(questions[1], id="rest", community_id="rest")]
        assert topics(index, asked) == {
            "one": "Fairs of Tennessee: Knox County", "rest": "Fairs of Tennessee: other passages"
        }  # fmt: skip
        index.replace(Community, rest[:1])
        assert topics(index, asked[1:]) == {"rest": "Fairs of Tennessee"}


def test_a_question_of_a_model_has_no_topic(fairs: Path) -> None:
    asked_by_a_model(fairs)
    with Index.open(fairs) as index:
        assert topics(index, index.questions()) == {}


def test_without_narrower_ones_inside_the_passages_make_a_community_broad(made: Path) -> None:
    with Index.open(made) as index:
        [broad] = index.get(Community, ["broad"])
    leaf = dataclasses.replace(broad, child_ids=())
    assert is_broad(leaf)
    assert not is_broad(dataclasses.replace(leaf, chunk_ids=leaf.chunk_ids[: BROAD - 1]))


def test_starters_begin_with_the_narrower_question(fairs: Path) -> None:
    with Index.open(fairs) as index:
        assert [each.question.id for each in starters(index, 1)] == [ON_NARROW]
        assert [each.question.id for each in starters(index)] == [ON_NARROW, ON_BROAD]
    asked_by_a_model(fairs)
    with Index.open(fairs) as index:
        assert [each.question.id for each in starters(index)] == [ON_BROAD, ON_NARROW]


def test_the_terminal_lists_the_largest_groups_of_a_level_first(kraq: WarmShell, fairs: Path) -> None:
    asked_by_a_model(fairs)
    with Index.open(fairs, write=True) as index:
        many, few = (dataclasses.replace(each, level=0) for each in index.questions())
        index.replace(Question, [few, many])
    rows = json.loads(kraq("questions", fairs, "--json").stdout)
    assert [row["id"] for row in rows] == [many.id, few.id]


def test_what_asks_something_stands_before_headlines_and_these_before_topics() -> None:
    def question(id: str, text: str, model: str, level: int) -> Question:
        return Question(id, text, "kraq", id, level, ("c1",), ("d1",), model=model)

    topic = question("topic", "Harrow, lamp", TOPIC, 0)
    headline = question("headline", "What is “Harrow has a new lamp at last” about?", EMBEDDED, 0)
    broad = question("broad", "Who built the lamp of Harrow?", EMBEDDED, 0)
    asks = question("asks", "What did Mira Tolan repair in 1902?", PARSE, 1)
    listed = asking_first([topic, headline, broad, asks], {"broad": "Harrow, lamp, Mira Tolan"})
    assert [each.id for each in listed] == ["asks", "headline", "topic", "broad"]


def test_the_terminal_shows_the_topic_with_the_question_as_an_example(kraq: WarmShell, fairs: Path) -> None:
    topic = "About Knox County, Tennessee, Knoxville, 8 passages, such as: Where was the fair of Knox County?"
    shown = kraq("questions", fairs).stdout
    assert topic in " ".join(shown.split())
    assert "What did Farragut hold?" in shown
    rows = json.loads(kraq("questions", fairs, "--json").stdout)
    assert [(row["text"], row["topic"], row["share"]) for row in rows] == [
        ("What did Farragut hold?", "", 1.0),
        ("Where was the fair of Knox County?", "Knox County, Tennessee, Knoxville", 0.25),
    ]

    asked_by_a_model(fairs)
    shown = kraq("questions", fairs).stdout
    assert "Where was the fair of Knox County?" in shown
    assert "About" not in shown


def test_the_terminal_shows_how_many_passages_answer_a_question_and_the_first_of_them(
    kraq: WarmShell, fairs: Path
) -> None:
    asked_by_a_model(fairs)
    lines = [" ".join(line.split()) for line in kraq("questions", fairs).stdout.splitlines()]
    assert lines[:2] == [
        "Where was the fair of Knox County?",
        "2 passages answer it: d1. Knox County held its fair of 1901.",
    ]
    in_full = [" ".join(line.split()) for line in kraq("questions", fairs, "--long").stdout.splitlines()]
    assert "level 0, stands for 8 passages, 1 file" in in_full
    assert "d2. Knox County held its fair of 1902." in in_full


def test_agents_are_told_the_topic_with_the_question(fairs: Path) -> None:
    with Workspace.open(fairs, embedder=EMBEDDER) as space:
        tools = IndexTools(space, choose_program("traditional"))
        listed = tools.questions_about()["questions"]
        assert [(each["text"], each["topic"]) for each in listed] == [
            ("Where was the fair of Knox County?", "Knox County, Tennessee, Knoxville"),
            ("What did Farragut hold?", ""),
        ]
        assert tools.starters()["questions"][-1]["topic"] == "Knox County, Tennessee, Knoxville"
        [of_group] = tools.community("broad")["questions"]
        assert of_group["topic"] == "Knox County, Tennessee, Knoxville"

    asked_by_a_model(fairs)
    with Workspace.open(fairs, embedder=EMBEDDER) as space:
        tools = IndexTools(space, choose_program("traditional"))
        assert {each["topic"] for each in tools.questions_about()["questions"]} == {""}


def test_the_demo_shows_the_topic_with_an_example(fairs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Workspace.open(fairs, embedder=EMBEDDER) as space:
        show_broadest(space)
    shown = " ".join(capsys.readouterr().out.split())
    assert "About Knox County, Tennessee, Knoxville, 8 passages, such as: Where was the fair" in shown
