"""A person labels human questions by keyboard: what answers them, or that nothing does, in a file that goes on."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from kraq_dspy.apps.cli.label import Desk
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import read_questions
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.labeling import Labeling, Sitting, in_minutes, unlike_first
from kraq_dspy.indexing.index.vectors_only import build_vectors
from kraq_dspy.records import Document
from kraq_dspy.testset.testset import Testset
from kraq_dspy.workspace import Workspace
from tests.conftest import KeywordEmbedder

TOPICS = ("bell", "mill", "inn", "light", "ferry", "orchard", "chapel")
DOCUMENTS = [Document(topic, topic.title(), f"The {topic} of Bergen is old, says Ida.") for topic in TOPICS]
TWIN = Document("bell-copy", "Bell", DOCUMENTS[0].text)
QUESTIONS = [Example(f"q{place}", f"How old is the {topic}?", ()) for place, topic in enumerate(TOPICS[:4])]


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory, keyword_embedder: type[KeywordEmbedder]) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("labeling") / "x.kraq"
    embedder = keyword_embedder(*TOPICS)
    build_vectors([*DOCUMENTS, TWIN], folder, embedder=embedder)
    with Workspace.open(folder, embedder=embedder) as opened:
        yield opened


def desk_of(space: Workspace, out: Path, keys: str, n: int = 10) -> Desk:
    typed = io.StringIO(keys)
    return Desk(Labeling(space, QUESTIONS, out, n=n), lambda: typed.read(1), Sitting())


def test_keys_mark_what_answers_and_what_nothing_answers(space: Workspace, tmp_path: Path) -> None:
    desk = desk_of(space, tmp_path / "few.jsonl", "1\nn11\n2\n")

    desk.run()

    rows = Testset.load(tmp_path / "few.jsonl").rows
    assert [row.is_answerable for row in rows][:2] == [True, False]
    assert rows[1].type == "unanswerable"
    assert len(rows) == 3  # the third was marked and unmarked, which Enter refuses, then marked again
    read = {each.question: each for each in read_questions(tmp_path / "few.jsonl")}
    assert read[rows[0].question].supporting_ids == rows[0].supporting_ids
    assert read[rows[1].question].metadata["answerable"] is False
    assert "3 questions, 1 of them unanswerable" in desk.summary()
    assert "1 question left" in desk.summary()


def test_a_label_takes_near_equal_passages_along(space: Workspace, tmp_path: Path) -> None:
    labeling = Labeling(space, QUESTIONS[:1], tmp_path / "few.jsonl", n=1)
    bell = next(chunk for chunk in labeling.passages(QUESTIONS[0]) if chunk.document_id == "bell")

    row = labeling.label(QUESTIONS[0], [bell])

    assert set(row.supporting_ids) == {"bell", "bell-copy"}
    assert {passage.found_by for passage in row.passages} == {("person",), ("twin",)}


def test_the_same_call_goes_on_and_undo_takes_back_what_was_labeled_before(space: Workspace, tmp_path: Path) -> None:
    out = tmp_path / "few.jsonl"
    first = desk_of(space, out, "1\n1\nq")
    first.run()
    questions = [row.question for row in Testset.load(out)]

    again = desk_of(space, out, "un")
    again.run()

    rows = Testset.load(out).rows
    assert [row.question for row in rows] == questions
    assert [row.is_answerable for row in rows] == [True, False]
    assert again.labeling.questions[:2] == first.labeling.questions[:2]


def test_a_question_that_is_put_off_comes_last(space: Workspace, tmp_path: Path) -> None:
    desk = desk_of(space, tmp_path / "few.jsonl", "s1\n1\n1\nn")
    first = desk.labeling.next()

    desk.run()

    assert first is not None
    assert Testset.load(tmp_path / "few.jsonl").rows[-1].question == first.question
    assert desk.labeling.left == []


def test_more_passages_come_by_a_key_and_every_other_key_names_the_keys(
    space: Workspace, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    desk_of(space, tmp_path / "few.jsonl", "m1\n?u", n=1).run()
    output = capsys.readouterr().out

    [row] = Testset.load(tmp_path / "few.jsonl").rows
    shown = output.partition("q end")[0]
    assert row.supporting_ids[0].title() not in shown
    assert "u undo" in output


def test_unlike_questions_are_drawn_before_others_that_ask_the_same(keyword_embedder: type[KeywordEmbedder]) -> None:
    embedder = keyword_embedder(*TOPICS)
    log = [Example(f"b{number}", f"How old is the bell, {number}?", ()) for number in range(5)]
    log += [Example("m", "Whose is the mill?", ()), Example("i", "When does the inn open?", ())]

    drawn = unlike_first(log, 3, embedder)

    assert drawn[0].id.startswith("b")
    assert {each.id for each in drawn[1:]} == {"m", "i"}
    assert unlike_first(log, 2, embedder, first=[log[5]])[0].id == "m"
    with pytest.raises(EvaluationError, match="no questions to label"):
        unlike_first([], 3, embedder)


def test_durations_are_told_in_minutes() -> None:
    assert (in_minutes(59.6), in_minutes(61)) == ("1 min 0 s", "1 min 1 s")
