"""A test set follows its index: rows are kept, moved, marked stale or added; and the parts that questions never touch
are named."""

import dataclasses
import json
from pathlib import Path

import pytest

from kraq_dspy._internal.rag_prediction import REFUSAL
from kraq_dspy.errors import ConfigError
from kraq_dspy.eval import Example, Testset, TestsetPlan, coverage_of, make_testset, make_trainset, update_testset
from kraq_dspy.records import Chunk, Document, TestsetRow
from kraq_dspy.workspace import Workspace
from tests.conftest import WarmShell
from tests.kept import kept_index
from tests.testset.test_making import PAGES

NEW = {
    "Alban Berg": "Alban Berg was an Austrian composer. He wrote the opera Wozzeck in Vienna in 1922.",
    "Wozzeck": "Wozzeck is an opera by Alban Berg. It was first performed in Berlin in 1925 under Erich Kleiber.",
}


def indexed(path: Path, pages: dict[str, str]) -> Path:
    return kept_index([Document(title.lower().replace(" ", "-"), title, text) for title, text in pages.items()], path)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Testset:
    folder = tmp_path_factory.mktemp("first")
    with Workspace.open(indexed(folder / "x.kraq", PAGES)) as space:
        return make_testset(space, 30, seed=1)


@pytest.fixture(scope="module")
def changed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Owensboro page says something else, Kensington is gone, and there are two new pages."""
    pages = {**PAGES, **NEW, "Owensboro": "Owensboro is a town. It is known for barbecue of mutton and a riverfront."}
    del pages["Kensington"]
    return indexed(tmp_path_factory.mktemp("second") / "x.kraq", pages)


def about(row: TestsetRow) -> set[str]:
    return {*row.supporting_ids, *row.hidden_documents}


def test_rows_whose_evidence_has_gone_are_stale_and_the_others_stand_as_they_were(made: Testset, changed: Path) -> None:
    with Workspace.open(changed) as space:
        update = update_testset(space, made, new=0)

    gone = {"owensboro", "kensington"}
    stale = {row.id for row in update.testset if row.status == "stale"}
    assert stale == {row.id for row in made if about(row) & gone}
    assert stale
    assert update.stale == len(stale)
    kept = [row for row in update.testset if row.id not in stale]
    assert kept == [row for row in made if row.id not in stale]
    assert (update.kept, update.moved, update.added) == (len(kept), 0, 0)


def test_an_update_that_finds_the_same_rows_stale_again_adds_none(made: Testset, changed: Path) -> None:
    with Workspace.open(changed) as space:
        once = update_testset(space, made)
        again = update_testset(space, once.testset)

    assert once.added > 0
    assert (
        once.unasked
        >= again.unasked
        == len(
            {"alban-berg", "wozzeck", *(title.lower().replace(" ", "-") for title in PAGES)}
            - {"kensington"}
            - {document for row in again.testset if row.status != "stale" for document in about(row)}
        )
    )
    assert (again.stale, again.added) == (once.stale, 0)
    assert again.testset == once.testset


def test_new_rows_are_asked_of_documents_that_no_row_is_about(made: Testset, changed: Path) -> None:
    with Workspace.open(changed) as space:
        update = update_testset(space, made, new=6, seed=2)

    added = update.testset.rows[len(made) :]
    used = {document for row in made for document in about(row)}
    assert update.added == len(added) > 0
    assert all(not {passage.document_id for passage in row.passages[:1]} & used for row in added)


def test_a_document_that_has_only_stale_rows_is_asked_again(made: Testset, tmp_path: Path) -> None:
    text = "Owensboro is a town in Kentucky. It was founded by William Smothers in 1797. It was flooded in 1937."
    with Workspace.open(indexed(tmp_path / "x.kraq", {**PAGES, "Owensboro": text})) as space:
        update = update_testset(space, made, new=10)
        of_nothing = update_testset(space, dataclasses.replace(made, rows=()), new=3)

    of_owensboro = [row.status for row in update.testset if "owensboro" in about(row)]
    assert {*of_owensboro} == {"stale", "new"}
    assert of_nothing.added > 0  # no row is left that tells which kinds were wanted


def test_a_passage_that_stands_elsewhere_in_its_document_is_found_again(made: Testset, tmp_path: Path) -> None:
    row = next(row for row in made if row.type == "fact")
    moved = [
        dataclasses.replace(one, chunk_id="elsewhere", start=one.start + 9, end=one.end + 9) for one in row.passages
    ]
    astray = dataclasses.replace(made, rows=(dataclasses.replace(row, passages=tuple(moved)),))
    with Workspace.open(indexed(tmp_path / "x.kraq", PAGES)) as space:
        update = update_testset(space, astray)

    assert update.testset.rows == (row,)
    assert (update.moved, update.stale) == (1, 0)


def test_what_was_supposed_falsely_is_stale_once_a_passage_says_it(changed: Path) -> None:
    said = TestsetRow("t", "Which opera is by Alban Berg?", "false_premise")
    unsaid = TestsetRow("u", "Which opera is by Luigi Menabrea?", "false_premise")
    with Workspace.open(changed) as space:
        update = update_testset(space, Testset((said, unsaid)), new=0)

        again = update_testset(space, Testset((said, dataclasses.replace(unsaid, status="stale"))), new=0)

    assert [row.status for row in update.testset] == ["stale", "new"]
    assert again.testset == update.testset


def test_communities_that_no_question_touches_are_named(changed: Path) -> None:
    named = Example("q1", "Who directed it?", (), ("ed-wood", "tim-burton"))
    unnamed = Example("q2", "Which opera did Alban Berg write?", ())
    astray = Example("q3", "How do I descale a coffee machine?", ())
    with Workspace.open(changed) as space:
        coverage = coverage_of(space, [named, unnamed, astray])
        documents = {chunk.id: chunk.document_id for chunk in space.index.all(Chunk)}
        answers = {one.id: space.answerability(one.question).is_answerable for one in (unnamed, astray)}

    touched = {documents[id] for one in coverage.communities if one.questions for id in one.chunk_ids}
    untouched = {documents[id] for one in coverage.untouched for id in one.chunk_ids}
    assert {"ed-wood", "tim-burton"} <= touched
    assert touched & {"alban-berg", "wozzeck"}
    assert untouched
    assert not touched & untouched
    assert coverage.refused == tuple(one.id for one in (unnamed, astray) if not answers[one.id])
    assert {*coverage.far} | {*(coverage.refused or ())} == {"q3"}
    assert coverage.share == pytest.approx(len(touched) / len(documents))


def test_a_question_that_the_index_asked_itself_is_anticipated_and_one_of_other_words_is_not(changed: Path) -> None:
    with Workspace.open(changed) as space:
        own = space.index.questions(source="kraq")[0]
        asked = [Example("q1", own.text, (), own.document_ids), Example("q2", "xyzzy?", (), ("ed-wood",))]
        coverage = coverage_of(space, asked)

    assert coverage.unanticipated == ("q2",)


@pytest.mark.parametrize("n", [0, -3])
def test_less_than_one_question_is_refused(changed: Path, n: int) -> None:
    with Workspace.open(changed) as space:
        with pytest.raises(ConfigError, match=rf"{n} questions.*expected 1 or more"):
            make_testset(space, n)
        with pytest.raises(ConfigError, match="expected 1 or more"):
            space.trainset(n)


def test_questions_can_be_asked_of_some_passages_alone(changed: Path) -> None:
    with Workspace.open(changed) as space:
        only = frozenset(chunk.id for chunk in space.index.all(Chunk) if chunk.document_id in ("ed-wood", "orlando"))
        part = make_testset(space, plan=TestsetPlan(5, {"fact": 1}, only=only))

    assert part.rows
    assert {row.passages[0].document_id for row in part} <= {"ed-wood", "orlando"}


def test_a_trainset_has_what_a_reader_is_given_and_what_is_right(changed: Path) -> None:
    with Workspace.open(changed) as space:
        examples = space.trainset(6)
        assert [one.question for one in make_trainset(space, 6)] == [one.question for one in examples]

    assert examples
    for example in examples:
        assert set(example.inputs().toDict()) == {"question"}
        assert any(example.answer in passage for passage in example.passages)


def test_the_commands_update_a_file_and_cover_what_a_team_left_out(
    kraq: WarmShell, made: Testset, changed: Path, tmp_path: Path
) -> None:
    file, more = made.save(tmp_path / "test.jsonl"), tmp_path / "more.jsonl"
    mine = tmp_path / "mine.csv"
    machine = "How do I descale a coffee machine?"
    mine.write_text(f"id,question\nq1,Who directed Ed Wood?\nq2,{machine}\n", "utf-8")

    update = kraq("testset", "update", changed, file, "--drop", "--json")
    cover = kraq("testset", "coverage", changed, mine, "--out", more, "-n", "4", "--json")
    shown = kraq("testset", "coverage", changed, mine)

    counts = json.loads(update.stdout)
    assert counts["stale"] > 0
    assert not [row for row in Testset.load(file) if row.status == "stale"]
    covered = json.loads(cover.stdout)
    assert 0 < covered["share"] < 1
    assert covered["added"] == len(Testset.load(more)) > 0
    assert [*(covered["refused"] or ()), *covered["near_no_passage"]] == [{"id": "q2", "question": machine}]
    assert "never touched" in shown.stdout
    assert machine in " ".join(shown.stdout.split())
    assert "0 others (no cosine of 0.5 or more; --about sets it" in " ".join(shown.stdout.split())


def test_what_ask_refuses_is_told_apart_from_what_is_only_far(changed: Path) -> None:
    """Both notions of "not answered" are one: coverage refuses exactly what the front doors refuse."""
    questions = ["Who directed Ed Wood?", "Was he fond of it all?", "How do I descale a coffee machine?", "What now?"]
    asked = [Example(f"q{place}", question, ()) for place, question in enumerate(questions)]
    with Workspace.open(changed) as space:
        coverage = coverage_of(space, asked, about=0.9)
        refused = tuple(one.id for one in asked if space.ask(one.question, refuse=True).get("source") == REFUSAL)
        one_by_one = [space.answerability(one.question) for one in asked]
        at_once = space.answerabilities([one.question for one in asked])

    assert coverage.refused == refused
    assert "q2" in refused
    assert coverage.far
    assert {*coverage.far}.isdisjoint(refused)
    assert [each.is_answerable for each in at_once] == [each.is_answerable for each in one_by_one]


def test_an_index_without_a_threshold_does_not_tell_what_is_refused(
    changed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kraq_dspy.workspace.refusing.read_threshold", lambda index: None)
    with Workspace.open(changed) as space:
        coverage = coverage_of(space, [Example("q1", "How do I descale a coffee machine?", ())])

    assert coverage.refused is None
    assert coverage.far == ("q1",)
