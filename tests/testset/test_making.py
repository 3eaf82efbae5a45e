"""A test set is made from an index, without a model and with one, and is what `kraq eval` reads."""

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.embedded.testset.facts import question_for
from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval import Testset, TestsetPlan, evaluate, make_testset, read_questions
from kraq_dspy.eval.system import AskedSystem
from kraq_dspy.extend import LanguageModels
from kraq_dspy.indexing import build_index
from kraq_dspy.models.lms.local_models import QUESTIONS
from kraq_dspy.records import Chunk, Document, GoldPassage, TestsetRow, content_id
from kraq_dspy.settings import RoleSettings, Settings
from kraq_dspy.testset.making import estimate_testset
from kraq_dspy.testset.testset import as_line, as_row
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import choose_program
from tests.conftest import WarmShell
from tests.kept import kept_index

PAGES = {
    "Ed Wood": "Ed Wood is a comedy film. It was directed by Tim Burton in 1994. It stars Johnny Depp as its hero.",
    "Tim Burton": "Tim Burton is an American director. He was born in Burbank in 1958. He founded Skellington Films.",
    "Burbank": "Burbank is a city in California. It was founded in 1887 by David Burbank and grew with aviation.",
    "Johnny Depp": "Johnny Depp is an American actor. He was born in Owensboro in 1963 and played the guitar.",
    "Owensboro": "Owensboro is a city in Kentucky. It was named after Colonel Abraham Owen in 1817 by the state.",
    "Mrs Dalloway": "Mrs Dalloway is a novel by Virginia Woolf. It was published by the Hogarth Press in 1925.",
    "Orlando": "Orlando is a novel by Virginia Woolf. It was published on 11 October 1928 to great success.",
    "Virginia Woolf": "Virginia Woolf was an English writer. She founded the Hogarth Press with Leonard Woolf in 1917.",
    "Hogarth House": "Hogarth House is a house in Richmond. Virginia Woolf founded the Hogarth Press in its cellar.",
    "Leonard Woolf": "Leonard Woolf was a British publisher. He was born in Kensington in 1880 and worked in Ceylon.",
    "Kensington": "Kensington is a district of London. It was described in the Domesday Book of 1086 as a manor.",
    "Ada Lovelace": "Ada Lovelace was an English mathematician. She translated an article by Luigi Menabrea in 1842.",
    "Luigi Menabrea": "Luigi Menabrea was an Italian general. He was born in Chambery in 1809 and was a minister.",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("index") / "pages.kraq"
    documents = [Document(title.lower().replace(" ", "-"), title, text) for title, text in PAGES.items()]
    return kept_index(documents, path)


@pytest.fixture(scope="module")
def made(folder: Path) -> Testset:
    with Workspace.open(folder) as space:
        return make_testset(space, 40, seed=1)


def test_without_a_model_every_kind_that_the_texts_give_is_asked_and_what_is_left_out_is_told(made: Testset) -> None:
    kinds = made.counts()

    assert kinds["fact"] >= 3
    assert made.left_out.keys() >= {"bridge", "list", "comparison"}
    assert kinds["unanswerable"] >= 1
    assert all(len(row.nuggets) > 1 for row in made if row.type == "broad")
    assert not any(row.question.startswith(("What is known", "What is the connection")) for row in made)
    assert all(len(row.passages) > 1 for row in made if row.type == "broad")
    assert set(made.left_out.values()) <= {"no question passed", "nothing to ask it of"}
    assert {row.model for row in made} == {"embedded"}
    assert sum(count for count in made.rejected.values()) > 0


class Asker(DummyLM):
    """Asks "In which year" for "When" of what the parse asks, and about what no text says elsewhere."""

    def __init__(self) -> None:
        super().__init__([])

    def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
        given = re.search(
            r"statement ## ]]\s+(.+?)\s+\[\[ ## answer ## ]]\s+(.+?)\n", messages[-1]["content"], re.DOTALL
        )
        assert given is not None
        question = question_for(given[1].replace("He ", "Burton ").replace("It ", "Owensboro "), given[2])
        is_when = question.startswith("When ")
        self.answers = iter(
            [{"question": f"In which year {question[5:]}" if is_when else "Who owns the moon of Mars?"}]
        )
        return super().forward(prompt, messages, **kwargs)


def test_facts_are_worded_by_the_model_of_the_role_asker_and_say_so(folder: Path) -> None:
    plan = TestsetPlan(8, {"fact": 1})
    with Workspace.open(folder) as space:
        by_parse = make_testset(space, plan=plan)
    with Workspace.open(folder, lm={"asker": Asker()}) as space:
        made = make_testset(space, plan=plan)

    worded = [row for row in made if row.model == "dummy"]
    assert worded
    assert all(row.question.startswith("In which year") for row in worded)
    assert {row.model for row in made} == {"dummy", "embedded"}
    assert not any("moon" in row.question for row in made)
    assert {row.model for row in by_parse} == {"embedded"}


def test_an_adapter_that_writes_communities_questions_is_not_asked_for_a_test_set(folder: Path) -> None:
    small = RoleSettings("gguf/smollm2-135m", adapter=QUESTIONS)
    with Workspace.open(folder) as space:
        models = LanguageModels(
            Settings(roles={"default": RoleSettings(), "generator": small}), embedder=space.embedder
        )
        indexed_with_it = Workspace(space.index, space.embedder, models)
        made = make_testset(indexed_with_it, 5, shares={"fact": 1})

    assert {row.model for row in made} == {"embedded"}


def test_every_answer_stands_in_a_gold_passage_at_its_place_in_the_document(made: Testset, folder: Path) -> None:
    with Workspace.open(folder) as space:
        texts = {chunk.id: chunk for chunk in space.index.all(Chunk)}
    answerable = [row for row in made if row.is_answerable]

    assert answerable
    for row in answerable:
        chunks = [texts[passage.chunk_id] for passage in row.passages]
        assert {chunk.document_id for chunk in chunks} == set(row.supporting_ids)
        assert [(p.start, p.end) for p in row.passages] == [(chunk.start, chunk.end) for chunk in chunks]
        assert [p.text_hash for p in row.passages] == [content_id("text", chunk.text)[:16] for chunk in chunks]
        if row.type in ("fact", "bridge"):
            assert any(row.answers[0] in chunk.passage for chunk in chunks), row
            assert row.answers[0] not in row.question


def test_rules_make_more_questions_for_each_that_is_kept_than_a_model_that_costs(folder: Path) -> None:
    with Workspace.open(folder) as space:
        by_rules = estimate_testset(space, TestsetPlan(2, {"fact": 1}))
    with Workspace.open(folder, lm=DummyLM([{}])) as space:
        by_model = estimate_testset(space, TestsetPlan(2, {"fact": 1}))

    assert by_rules.calls > by_model.calls


def test_what_other_kinds_lack_is_asked_as_facts(folder: Path) -> None:
    with Workspace.open(folder) as space:
        alone = make_testset(space, plan=TestsetPlan(2, {"fact": 1}))
        with_lists = make_testset(space, plan=TestsetPlan(6, {"fact": 1, "list": 2}))

    assert len(alone) == 2
    assert with_lists.counts() == {"fact": 6}
    assert with_lists.left_out["list"] == "no question passed"


@pytest.mark.parametrize(("n_passages", "is_asked"), [(8, True), (9, False)])
def test_what_more_than_eight_passages_tell_is_no_broad_question(
    n_passages: int, is_asked: bool, tmp_path: Path
) -> None:
    """Of more, nobody knows whether those that were found are all that there are."""
    painted = {
        "Orr": "iron gate", "Lurr": "stone pier", "Harrow": "garden fence", "Denby": "chapel roof",
        "Ashford": "school bench", "Milton": "market hall", "Selby": "bakery oven", "Thorne": "ferry deck",
        "Wexley": "tower clock",
    }  # fmt: skip
    documents = [
        Document(town, town, f"Nora Quill painted the {thing} of {town} in 19{year}.")
        for year, (town, thing) in enumerate([*painted.items()][:n_passages], 10)
    ]
    kept_index(documents, tmp_path / "lighthouse.kraq")
    with Workspace.open(tmp_path / "lighthouse.kraq") as space:
        made = make_testset(space, plan=TestsetPlan(4, {"broad": 1}))

    assert ([len(row.passages) for row in made] == [n_passages]) is is_asked
    assert (made.rejected.get("is told by too many passages", 0) == 0) is is_asked


def test_the_same_seed_makes_the_same_set_and_another_one_another(folder: Path, made: Testset) -> None:
    with Workspace.open(folder) as space:
        again = make_testset(space, 40, seed=1)
        other = make_testset(space, 6, seed=2)
    assert again.rows == made.rows
    assert {row.id for row in other} != {row.id for row in make_six(folder)}


def make_six(folder: Path) -> Testset:
    with Workspace.open(folder) as space:
        return make_testset(space, 6, seed=3)


def test_a_run_that_was_interrupted_goes_on_and_asks_for_nothing_twice(
    folder: Path, tmp_path: Path, made: Testset
) -> None:
    draft = tmp_path / "test.jsonl.draft"
    with Workspace.open(folder) as space:
        make_testset(space, 40, seed=1, draft=draft)
    whole = draft.read_text("utf-8").splitlines()
    draft.write_text("\n".join(whole[: len(whole) // 2]) + '\n{"key": "torn', "utf-8")

    with Workspace.open(folder) as space:
        again = make_testset(space, 40, seed=1, draft=draft)

    assert again.rows == made.rows
    assert sorted(draft.read_text("utf-8").splitlines()) == sorted(whole)


def test_a_set_is_read_as_it_was_saved_and_kraq_eval_reads_it_unchanged(made: Testset, tmp_path: Path) -> None:
    file = made.save(tmp_path / "test.jsonl")

    assert Testset.load(file).rows == made.rows
    examples = read_questions(file)
    assert [one.id for one in examples] == [row.id for row in made]
    assert [one.supporting_ids for one in examples] == [row.supporting_ids for row in made]
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    assert {line["answerable"] for line in lines} == {True, False}
    assert all(as_row(as_line(row)) == row for row in made)


def test_a_file_that_is_no_test_set_is_refused_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "other.jsonl"
    file.write_text('{"question": "Where?"}\n', "utf-8")

    with pytest.raises(EvaluationError, match=r"line 1 is no row of a test set \(KeyError: 'id'\)"):
        Testset.load(file)


def test_examples_are_for_dspy_and_a_table_has_a_row_each(made: Testset) -> None:
    example = made.examples()[0]

    assert example.inputs().toDict() == {"question": example.question}
    pandas = pytest.importorskip("pandas", reason="needs pandas: pip install 'kraq-dspy[eval]'")
    table = made.to_pandas()
    assert isinstance(table, pandas.DataFrame)
    assert list(table["question"]) == [row.question for row in made]


def test_no_document_is_evidence_on_both_sides_of_a_split(made: Testset) -> None:
    learn, measure = made.split(0.5, seed=0)

    assert len(learn) + len(measure) == len(made)
    assert abs(len(learn) - len(measure)) <= len(made) / 2
    documents = [
        {one for row in part for one in (*row.supporting_ids, *row.hidden_documents)} for part in (learn, measure)
    ]
    assert not documents[0] & documents[1]


def test_rows_that_are_linked_through_others_stay_together() -> None:
    rows = [("a", ("d1", "d2")), ("b", ("d2", "d3")), ("c", ("d3",)), ("d", ("d9",))]
    linked = Testset(tuple(TestsetRow(id, f"{id}?", "bridge", ("x",), supporting_ids=docs) for id, docs in rows))

    for seed in range(5):
        parts = linked.split(0.5, seed=seed)
        assert [{row.id for row in part} & {"a", "b", "c"} for part in parts].count(set()) == 1


def test_a_question_without_answer_is_asked_as_if_its_documents_were_not_there(made: Testset, folder: Path) -> None:
    row = next(row for row in made if row.type == "unanswerable")
    line = as_line(row) | {"hidden_documents": list(row.hidden_documents)}
    seen = line | {"id": "seen", "hidden_documents": []}
    with Workspace.open(folder) as space:
        choice = choose_program("traditional")
        program = AskedSystem(
            "traditional", space.make_program(choice), True, {}, choice, lambda index: index.make_program(choice)
        )
        retriever = AskedSystem(
            "dense", space.retriever("dense"), False, {}, make=lambda index: index.retriever("dense")
        )
        result = evaluate({"p": program, "r": retriever}, [line, seen], ["grounded", "answer_found"], space=space)
        names = {chunk.id: chunk.document_id for chunk in space.index.all(Chunk)}
    found = {(one.system, one.question_id): {names[id] for id in one.hit_ids} for one in result.rows}

    for system in ("traditional", "dense"):
        assert not found[system, row.id] & set(row.hidden_documents)
        assert found[system, "seen"] >= set(row.hidden_documents)


def test_a_program_of_ones_own_cannot_be_kept_from_documents_and_that_costs_the_row_alone(folder: Path) -> None:
    class Knowing(dspy.Module):
        def forward(self, question: str) -> dspy.Prediction:
            return dspy.Prediction(answer="London", hits=[])

    rows = [{"question": "Where?", "hidden_documents": ["burbank"]}, {"question": "Who?"}]
    with Workspace.open(folder) as space:
        result = evaluate({"own": Knowing()}, rows, ["grounded"], space=space)

    failures = {row.question_id: row.failure for row in result.rows}
    assert "kraq cannot hide them from 'own'" in str(failures["q1"])
    assert failures["q2"] is None


def test_gold_is_found_in_near_duplicates_and_elsewhere_in_the_text(tmp_path: Path) -> None:
    pages = {**PAGES, "Burton, the director": PAGES["Tim Burton"]}
    documents = [Document(title, title, text) for title, text in pages.items()]
    build_index(documents, tmp_path / "twice.kraq")
    with Workspace.open(tmp_path / "twice.kraq") as space:
        made = make_testset(space, plan=TestsetPlan(60, {"fact": 1}))
        ways = {way for row in made for passage in row.passages for way in passage.found_by}
        n_documents = len({chunk.document_id for chunk in space.index.all(Chunk)})

    assert "source" in ways
    if n_documents == len(pages):  # a build that keeps the same text twice
        assert "twin" in ways


def test_the_estimate_asks_no_model_and_grows_with_the_number(folder: Path) -> None:
    with Workspace.open(folder) as space:
        small, large = (estimate_testset(space, TestsetPlan(n)) for n in (2, 6))

    assert 0 < small.calls < large.calls
    assert 0 < small.prompt_tokens < large.prompt_tokens


def test_kinds_that_are_not_known_are_refused_before_anything_is_asked(folder: Path) -> None:
    with Workspace.open(folder) as space, pytest.raises(ConfigError, match="There is no kind 'riddle'"):
        make_testset(space, 5, shares={"riddle": 1})


def test_the_command_makes_a_set_that_kraq_eval_reads(kraq: WarmShell, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "test.jsonl"

    made = kraq("testset", "make", str(folder), "--out", str(out), "-n", "10", "--kinds", "fact=2,unanswerable")
    asked = kraq("eval", str(folder), str(out), "--retrieval-only", "--out", str(tmp_path / "run"), "--json")
    wrong = kraq("testset", "make", str(folder), "--out", str(out), "--kinds", "fact=many")
    few = kraq("testset", "make", str(folder), "--out", str(tmp_path / "few.jsonl"), "-n", "90", "--kinds", "fact")

    assert made.returncode == 0, made.stderr
    assert {row.type for row in Testset.load(out)} == {"fact", "unanswerable"}
    assert json.loads(asked.stdout)["runs"][0]["header"]["extra"]["asked"] == 10
    assert wrong.returncode == 2
    assert "expected KIND or KIND=SHARE" in wrong.stderr
    n_few = len(Testset.load(tmp_path / "few.jsonl"))
    assert f"{n_few} made questions of the 90 that were asked for" in " ".join(few.stderr.split())
    assert "that were asked for" not in made.stderr


def test_a_set_without_a_question_ends_with_an_error(kraq: WarmShell, tmp_path: Path) -> None:
    build_index([Document("short", "Short", "Nothing to ask.")], tmp_path / "short.kraq")

    made = kraq("testset", "make", str(tmp_path / "short.kraq"), "--out", str(tmp_path / "test.jsonl"))

    assert made.returncode == 1
    assert "No question could be made" in made.stderr
    assert "Try:" not in made.stdout

    former = Testset((TestsetRow("t", "Who is Ada?", "fact", ("Ada",)),)).save(tmp_path / "test.jsonl").read_text()
    assert kraq("testset", "make", str(tmp_path / "short.kraq"), "--out", str(tmp_path / "test.jsonl")).returncode == 1
    assert (tmp_path / "test.jsonl").read_text() == former


def test_what_a_passage_said_when_it_was_gold_stands_in_the_row() -> None:
    passage = GoldPassage("c", "d", 0, 4, "hash", ("source",))

    assert as_row(as_line(TestsetRow("t", "Q?", "fact", passages=(passage,)))).passages == (passage,)
    assert dataclasses.fields(GoldPassage)[0].name == "chunk_id"


def rows_of(path: Path, texts: dict[str, str], n: int = 20) -> Testset:
    build_index([Document(name, name.title(), text) for name, text in texts.items()], path)
    with Workspace.open(path) as space:
        return make_testset(space, n)


def test_one_sentence_gives_a_fact_and_the_kinds_that_are_missing_are_named(tmp_path: Path) -> None:
    made = rows_of(tmp_path / "dam.kraq", {"dam": "The dam at Lurr was built by Nora Bell in 1934."})

    assert made.counts() == {"fact": 1, "own": 1}
    assert [row.half for row in made] == ["made", "own"]
    assert made.left_out["unanswerable"] == "what it asks, another kind asks already"
    assert set(made.left_out) == {"bridge", "list", "comparison", "broad", "unanswerable", "false_premise"}


def test_a_text_that_stands_in_six_documents_is_asked_about_once_and_all_six_are_gold(tmp_path: Path) -> None:
    mill = "The mill at Orrin was built by Karl Voss in 1871. Its owner was Nora Bell. It employed 40 people."
    made = rows_of(tmp_path / "mill.kraq", {f"report {number}": mill for number in range(6)})

    [fact] = [row for row in made if row.type == "fact"]
    assert set(fact.supporting_ids) == {f"report {number}" for number in range(6)}
    assert sum(row.type == "unanswerable" for row in made) <= 1


def test_a_set_of_questions_without_an_answer_is_followed_by_a_command_that_runs(
    folder: Path, tmp_path: Path, kraq: WarmShell
) -> None:
    out = tmp_path / "none.jsonl"
    made = kraq("testset", "make", str(folder), "--out", str(out), "-n", "2", "--kinds", "unanswerable")

    [suggested] = [line for line in made.stdout.splitlines() if line.startswith("Try: kraq ")]
    words = suggested.removeprefix("Try: kraq ").split()

    assert "--retrieval-only" not in words
    assert kraq(*words, "--out", str(tmp_path / "run")).returncode == 0
