"""Texts of many kinds, written for this test, are indexed whole, and say what is worth asking of them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kraq_dspy import Index
from kraq_dspy.indexing.index.check import check_index
from kraq_dspy.records import Document, Entity, Question
from tests.conftest import KeywordEmbedder
from tests.kept import kept_index

KINDS = Path(__file__).with_name("kinds")
FEWEST_QUESTIONS = {"tales": 10, "capitals": 4, "abstracts": 8, "one_document": 1, "one_sentence": 1}
"""What prose of some twenty passages gives at least, topics not counted."""
PEOPLE = {
    "transcript": ("Nadia Brandt", "Tom Ellery", "Priya Raman", "Oliver Stanz"),
    "mails": ("Ines Vidal", "Karl Roth", "Omar Haddad", "Leah Abbot", "Mina Choi"),
}
BOILERPLATE = {
    "abstracts": ("Background", "Results", "Conclusions", "Authors", "Keywords", "Funding", "Infant Outcomes"),
    "code": ("Installation", "Usage", "Parameters", "Contribute", "Changelog", "License", "Errors"),
    "mails": ("From", "To", "Subject", "Re", "Hi Ines", "Dear members", "Kind regards", "Best wishes"),
    "transcript": ("Okay", "Um", "Yeah", "Hmm", "Right", "Wow", "Thanks", "Mm", "Uh", "Sure"),
}


@dataclass(frozen=True)
class Built:
    path: Path
    entities: tuple[Entity, ...]
    questions: tuple[Question, ...]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, keyword_embedder: type[KeywordEmbedder]) -> dict[str, Built]:
    """An index of each kind, by the name of its file."""
    embedder, folder = keyword_embedder("river", "lamp", "price"), tmp_path_factory.mktemp("kinds")
    indexes = {}
    for file in sorted(KINDS.glob("*.txt")):
        path = folder / f"{file.stem}.kraq"
        kept_index(documents_of(file), path, embedder=embedder)
        with Index.open(path) as index:
            indexes[file.stem] = Built(path, tuple(index.all(Entity)), tuple(index.all(Question)))
    return indexes


def documents_of(file: Path) -> Iterator[Document]:
    """A paragraph is a document. A line without a full stop is the title of those that follow; mails begin at From."""
    paragraphs = re.split(r"\n\n(?=From: )" if file.stem == "mails" else r"\n\n+", file.read_text("utf-8").strip())
    title = ""
    for number, paragraph in enumerate(paragraphs):
        is_title = (
            "\n" not in paragraph and not paragraph.rstrip().endswith((".", "?", "!", ")")) and len(paragraph) < 60
        )
        if is_title and len(paragraphs) > 1:
            title = paragraph.lstrip("# ")
        else:
            yield Document(f"{file.stem}-{number:02}", title, paragraph)


def names(built: Built) -> set[str]:
    return {name for entity in built.entities for name in entity.names}


def test_an_index_of_each_kind_is_whole(built: dict[str, Built]) -> None:
    assert len(built) == 11
    assert {kind: check_index(each.path).problems for kind, each in built.items()} == dict.fromkeys(built, ())


def test_prose_is_asked_about(built: dict[str, Built]) -> None:
    counts = {kind: sum(not question.is_topic for question in built[kind].questions) for kind in FEWEST_QUESTIONS}
    assert {kind: count for kind, count in counts.items() if count < FEWEST_QUESTIONS[kind]} == {}


@pytest.mark.parametrize("kind", BOILERPLATE)
def test_headings_fillers_and_greetings_are_no_entities(built: dict[str, Built], kind: str) -> None:
    folded = {name.casefold() for name in names(built[kind])}
    assert [word for word in BOILERPLATE[kind] if word.casefold() in folded] == []


def test_who_speaks_and_who_writes_is_a_person(built: dict[str, Built]) -> None:
    for kind, people in PEOPLE.items():
        type_of = {entity.name: entity.type for entity in built[kind].entities}
        assert {name: type_of.get(name) for name in people} == dict.fromkeys(people, "person")


def test_a_phrase_keeps_its_hyphen_and_skips_no_word(built: dict[str, Built]) -> None:
    assert "heat-killed vaccines" in names(built["abstracts"])
    assert "colonies" in names(built["abstracts"])
    assert not any("percent" in name for name in names(built["abstracts"]))


def test_heads_of_tables_and_lines_of_code_are_no_entities(built: dict[str, Built]) -> None:
    assert [name for name in names(built["tables"]) if "|" in name or "\t" in name] == []
    assert "pip install" not in names(built["code"])


def test_no_question_is_of_a_headline_where_a_statement_answers_one(built: dict[str, Built]) -> None:
    asked = {question.text for question in built["abstracts"].questions if not question.is_topic}
    of_statements = [question for question in asked if "“" not in question]
    assert len(of_statements) > len(asked) / 2
