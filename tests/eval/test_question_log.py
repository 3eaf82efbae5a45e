"""An index held against a log of questions: what it anticipates, what it does not, and what the corpus lacks."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy import Document
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import QuestionLog, against_log
from kraq_dspy.workspace import Workspace
from tests.conftest import WarmShell
from tests.kept import kept_index

SECTIONS = {
    "Connecting Amazon Alexa": "Amazon Alexa lets the Aqua Kettle boil. It needs the Aqua App.",
    "Descaling with Lime Away": "Lime makes the Aqua Kettle slow. Fill it with Lime Away, and boil it.",
    "Choosing degrees Celsius": "In the Aqua App, choose 70 or 80 degrees Celsius. Green Tea wants 80.",
}
ASKED: list[dict[str, Any]] = [
    {"id": "alexa", "question": "How do I connect Amazon Alexa?", "answerable": True},
    {"id": "70", "question": "Can the kettle boil water to 70 degrees Celsius?", "answerable": "yes"},
    {"id": "lime", "question": "How do I descale the kettle?"},
    {"id": "slow", "question": "How do I descale a slow kettle?"},
    {"id": "paid", "question": "Can I pay in monthly instalments?", "type": "unanswerable"},
    {"id": "pay", "question": "Can I pay monthly instalments with a credit card?", "type": "unanswerable"},
    {"id": "paris", "question": "Which bus goes to the airport of Paris?", "answerable": False},
]


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("log") / "kettle.kraq"
    documents = [Document(title, title, text) for title, text in SECTIONS.items()]
    kept_index(documents, folder, random_questions=True)
    with Workspace.open(folder) as opened:
        yield opened


@pytest.fixture(scope="module")
def log(space: Workspace) -> QuestionLog:
    return against_log(space, ASKED, near=0.7)


def test_the_index_stands_beside_titles_random_passages_and_other_people(log: QuestionLog) -> None:
    names = [each.name for each in log.sets]
    assert names == ["the index", "titles", "How do I <title>?", "random passages", "other people's"]
    by_name = {each.name: each for each in log.sets}
    assert by_name["titles"].n == 3
    assert by_name["How do I <title>?"].relevance.estimate > by_name["titles"].relevance.estimate - 0.2
    relevance = by_name["the index"].relevance
    assert 0 < relevance.low <= relevance.estimate <= relevance.high <= 1 + 1e-6


def test_a_question_has_its_nearest_stored_one_and_its_nearest_passage(log: QuestionLog) -> None:
    alexa = next(each for each in log.asked if each.id == "alexa")
    assert alexa.title == "Connecting Amazon Alexa"
    assert alexa.question_cosine > 0.7


def test_what_nobody_anticipated_and_what_the_corpus_lacks_is_told_by_kinds(log: QuestionLog) -> None:
    assert [{each.id for each in kind} for kind in log.unanticipated] == [{"lime", "slow"}]
    assert [{each.id for each in kind} for kind in log.unanswered] == [{"paid", "pay"}]


def test_unanswerable_questions_are_told_apart_where_the_log_has_labels(space: Workspace, log: QuestionLog) -> None:
    assert log.auc is not None
    assert log.auc.estimate == 1.0
    scores = {each.id: each.unanswered for each in log.asked}
    assert min(scores[name] for name in ("paid", "pay", "paris")) > max(
        scores[name] for name in ("alexa", "70", "lime")
    )
    assert against_log(space, [{"question": row["question"]} for row in ASKED]).auc is None


def test_a_log_of_one_question_is_refused(space: Workspace) -> None:
    with pytest.raises(EvaluationError, match="has 1 question; expected two or more"):
        against_log(space, ASKED[:1])


def test_the_command_writes_a_page_and_every_question(kraq: WarmShell, space: Workspace, tmp_path: Path) -> None:
    rows = "".join(f'"{row["question"]}"\n' for row in ASKED)
    (tmp_path / "asked.csv").write_text("question\n" + rows)
    done = kraq("eval", "asked", space.index.path, "asked.csv", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["asked"] == 7
    assert answer["sets"][0]["name"] == "the index"
    page, lines = (tmp_path / file for file in answer["files"])
    assert "&lt;title&gt;" in page.read_text()  # escaped
    kept = [json.loads(line) for line in lines.read_text().splitlines()]
    assert [row["unanswered"] for row in kept] == sorted((row["unanswered"] for row in kept), reverse=True)
    shown = kraq("eval", "asked", space.index.path, "asked.csv", cwd=tmp_path)
    assert "other people's" in shown.stdout
