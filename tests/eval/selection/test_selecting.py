"""A selection picks what finds most, takes the cheapest of what cannot be told apart, and goes on where it stopped."""

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy import Limits, Workspace
from kraq_dspy.apps.cli.select import show_selection
from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval import Selection, SelectionPlan, select
from kraq_dspy.indexing import build_index
from kraq_dspy.ports import SilentProgress
from kraq_dspy.records import Document, Entity
from kraq_dspy.settings import RoleSettings, Settings, read_settings
from tests.conftest import KeywordEmbedder, WarmShell

PARTS = [f"{letter}{number}7" for letter in "ABCDEFGH" for number in (1, 2, 3, 4, 5)]
"""An encoder of one axis takes all of these for the same; words tell them apart."""
DOCUMENTS = [Document(part, "", f"Part {part} lies in hall {part[1]} of Bergen, said Ada Lovelace.") for part in PARTS]
ROWS = [{"id": part, "question": f"Where is part {part}?", "supporting_ids": [part]} for part in PARTS]


@pytest.fixture
def embedder(keyword_embedder: type[KeywordEmbedder]) -> KeywordEmbedder:
    return keyword_embedder("part")


@pytest.fixture
def choose(embedder: KeywordEmbedder) -> Callable[..., Selection]:
    def select_with(rows: Any = ROWS, *, out: Path | None = None, settings: Any = None, **plan: Any) -> Selection:
        chosen = SelectionPlan(**{"retrievers": ("dense", "bm25"), "chunk_tokens": (100,), "ks": (1,), **plan})
        return select(DOCUMENTS, rows, plan=chosen, embedder=embedder, out=out, settings=settings)

    return select_with


def test_what_finds_more_is_chosen_and_said_to_be_better_than_chance(choose: Callable[..., Selection]) -> None:
    selection = choose()

    assert selection.chosen.candidate.name == "bm25, 100 tokens, k 1"
    assert selection.chosen.score.estimate == 1.0
    assert [one.candidate.retriever for one in selection.tried] == ["bm25", "dense"]
    assert not selection.tried[1].is_undecided
    assert selection.tried[1].difference.high < -0.5
    assert selection.verdict.endswith("It is the best, by more than chance.")


def test_of_what_cannot_be_told_apart_the_cheapest_is_chosen(choose: Callable[..., Selection]) -> None:
    selection = choose(retrievers=("bm25",), ks=(20, 1, 5))

    assert selection.chosen.candidate.k == 1
    assert "These questions tell none of the 2 candidates from another" in selection.verdict
    assert all(one.cost.tokens > selection.chosen.cost.tokens for one in selection.tried[1:])


def test_a_cheaper_one_that_loses_more_than_a_hundredth_is_shown_with_what_it_costs_and_not_chosen(
    choose: Callable[..., Selection],
) -> None:
    two = {"id": "two", "question": "Where are A17 and B17?", "supporting_ids": ["A17", "B17"]}

    twice = [*ROWS, *({**row, "id": f"again {row['id']}", "question": f"{row['question'][:-1]} now?"} for row in ROWS)]
    selection = choose([*twice, two], retrievers=("bm25",), ks=(1, 5))
    of_few = choose([*ROWS[:9], two], retrievers=("bm25",), ks=(1, 5))

    assert (selection.best.candidate.k, selection.best.score.estimate) == (5, 1.0)
    assert selection.chosen.candidate.k == 1  # .006 lower
    assert "k 5, is higher by 0.006" in selection.verdict
    assert (of_few.chosen.candidate.k, of_few.cheapest.candidate.k) == (5, 1)
    assert "The cheapest that is not decided to be worse, bm25, 100 tokens, k 1, is lower by 0.050" in of_few.verdict


def test_the_worse_half_is_not_asked_all_questions(choose: Callable[..., Selection]) -> None:
    selection = choose(ks=(1, 2))

    assert set(selection.dropped) == {"dense, 100 tokens, k 1", "dense, 100 tokens, k 2"}
    assert set(selection.dropped.values()) == {"in the worse half after 20 questions"}
    asked = [row.system for row in selection.summary.rows]
    assert asked.count("dense, 100 tokens, k 1") == 20
    assert asked.count("bm25, 100 tokens, k 1") == len(ROWS)


def test_candidates_that_hand_on_too_much_are_out(choose: Callable[..., Selection]) -> None:
    selection = choose(retrievers=("bm25",), ks=(1, 20), context=100)

    assert [one.candidate.k for one in selection.tried] == [1]
    assert selection.dropped["bm25, 100 tokens, k 20"].endswith("more than 100")


def test_a_graph_is_made_only_if_a_better_candidate_could_be_told(
    choose: Callable[..., Selection], embedder: KeywordEmbedder, tmp_path: Path
) -> None:
    without = choose(retrievers=("bm25", "adaptive"), out=tmp_path / "without")
    with_graph = choose(retrievers=("dense", "adaptive"), out=tmp_path / "with")

    assert "misses so little" in without.dropped["candidates with a graph"]
    assert with_graph.chosen.candidate.retriever == "adaptive"
    for folder, has_graph in (("without", False), ("with", True)):
        with Workspace.open(tmp_path / folder / "chunks-100.kraq", embedder=embedder) as space:
            assert bool(space.index.count(Entity)) is has_graph


def test_a_language_model_is_not_asked_for_a_graph_unless_it_is_said_how_much_it_may_take(
    choose: Callable[..., Selection],
) -> None:
    settings = Settings(
        roles={"default": RoleSettings(model="openai/none-of-this-name", api_base="http://localhost:1")}
    )

    selection = choose(retrievers=("dense", "adaptive"), settings=settings)

    reason = selection.dropped["candidates with a graph"]
    assert reason.startswith("a graph would ask openai/none-of-this-name about ")
    assert "--max-calls" in reason


class Interrupting(SilentProgress):
    """Ctrl-C after so many questions."""

    def __init__(self, after: int) -> None:
        self.left = after

    def advance(self, stage: str, done: int = 1, **tokens: int) -> None:
        if stage.startswith("ask "):
            self.left -= done
            if self.left < 0:
                raise KeyboardInterrupt


def test_an_interrupted_selection_goes_on_and_comes_to_the_same(
    choose: Callable[..., Selection], embedder: KeywordEmbedder, tmp_path: Path
) -> None:
    whole = choose(ks=(1, 2))
    plan = SelectionPlan(retrievers=("dense", "bm25"), chunk_tokens=(100,), ks=(1, 2))
    for after in (5, 40):
        with pytest.raises(KeyboardInterrupt):
            select(DOCUMENTS, ROWS, plan=plan, embedder=embedder, out=tmp_path, progress=Interrupting(after))
    kept = (tmp_path / "rows.jsonl").read_text("utf-8")

    again = choose(ks=(1, 2), out=tmp_path)

    rows = (tmp_path / "rows.jsonl").read_text("utf-8")
    assert kept
    assert rows.startswith(kept)
    assert [one.candidate for one in again.tried] == [one.candidate for one in whole.tried]
    assert [one.score for one in again.tried] == [one.score for one in whole.tried]
    choose(ks=(1, 2), out=tmp_path)
    assert (tmp_path / "rows.jsonl").read_text("utf-8") == rows


def test_time_that_is_over_keeps_what_was_done(choose: Callable[..., Selection], tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match=r"The time of this run, 1e-09 min, is over\. It keeps what is done"):
        choose(minutes=1e-9, out=tmp_path)

    assert choose(out=tmp_path).chosen.candidate.retriever == "bm25"


def test_another_corpus_is_not_mixed_with_the_rows_of_this_one(
    choose: Callable[..., Selection], tmp_path: Path
) -> None:
    choose(out=tmp_path)

    with pytest.raises(EvaluationError, match="made otherwise: data"):
        choose(ROWS[:30], out=tmp_path)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"question": "Where is part A17?"}], "name no answer, so nothing tells one retriever from another"),
        ([{"question": "Where?", "supporting_ids": ["elsewhere"]}], "none of the documents that the questions name"),
    ],
)
def test_questions_that_nothing_is_known_of_are_refused_before_anything_is_made(
    choose: Callable[..., Selection], tmp_path: Path, rows: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(EvaluationError, match=message):
        choose(rows, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_questions_that_copy_their_documents_do_not_make_a_search_by_words_look_good(
    embedder: KeywordEmbedder, tmp_path: Path
) -> None:
    plan = SelectionPlan(chunk_tokens=(100,), ks=(1,))
    asked = [{**row, "question": f"Whereabouts of the piece {row['id']}, please?"} for row in ROWS]

    copied = select(DOCUMENTS, ROWS, plan=plan, embedder=embedder)
    in_other_words = select(DOCUMENTS, asked, plan=plan, embedder=embedder)
    named = select(DOCUMENTS, ROWS, plan=SelectionPlan(("bm25",), (100,), (1,)), embedder=embedder)

    def tries_bm25(selection: Selection) -> bool:
        return any(row.system.startswith("bm25") for row in selection.summary.rows)

    assert [tries_bm25(each) for each in (copied, in_other_words, named)] == [False, True, True]
    [note] = copied.notes
    assert "bm25 is not tried" in note


def test_rows_without_evidence_are_left_out_and_counted(choose: Callable[..., Selection]) -> None:
    selection = choose([*ROWS, {"question": "What is not here?", "answers": []}])

    assert selection.n_questions == len(ROWS)
    assert selection.notes == ("1 question names no document that answers, and is left out.",)


@pytest.mark.parametrize(("n_left", "told"), [(0, "each asked {n} questions"), (70, "each asked {n} of {all} ")])
def test_a_run_that_ended_early_says_how_many_questions_were_asked(
    choose: Callable[..., Selection], capsys: pytest.CaptureFixture[str], n_left: int, told: str
) -> None:
    selection = choose()
    n_asked = selection.chosen.score.n

    show_selection(dataclasses.replace(selection, n_questions=n_asked + n_left))

    assert told.format(n=n_asked, all=n_asked + n_left) in " ".join(capsys.readouterr().out.split())


def test_answers_serve_where_no_document_is_named(choose: Callable[..., Selection]) -> None:
    rows = [{"id": part, "question": f"Where is part {part}?", "answer": f"Part {part} lies"} for part in PARTS]

    selection = choose(rows)

    assert (selection.metric, selection.chosen.candidate.retriever) == ("answer_found", "bm25")
    assert "--fail-under answer_found=" in selection.gate


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"retrievers": ("dence",)}, "did you mean 'dense'"),
        ({"ks": ()}, "ks is empty"),
        ({"chunk_tokens": (2,)}, "chunk_tokens is 2; expected numbers from 16 on"),
        ({"minutes": 0}, "minutes is 0"),
    ],
)
def test_a_plan_that_cannot_be_tried_is_refused(plan: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        SelectionPlan(**plan)


def test_an_index_and_a_metric_of_answers_are_refused(tmp_path: Path, choose: Callable[..., Selection]) -> None:
    build_index(["Ada Lovelace met Charles Babbage in London."], tmp_path / "ada.kraq")
    with pytest.raises(ConfigError, match="is an index, whose chunks are cut already"):
        select(tmp_path / "ada.kraq", ROWS)
    with pytest.raises(ConfigError, match="metric is 'token_f1'; retrievers are scored by one of"):
        select(DOCUMENTS, ROWS, metric="token_f1")


def test_a_retriever_that_fails_or_has_to_be_prepared_is_left_out_and_the_others_go_on(
    choose: Callable[..., Selection],
) -> None:
    selection = choose(retrievers=("raptor", "bm25"))

    assert selection.chosen.candidate.retriever == "bm25"
    assert "kraq precompute" in selection.dropped["raptor, 100 tokens, k 1"]


def test_the_settings_hold_what_was_chosen_and_the_gate_its_lower_end(
    choose: Callable[..., Selection], tmp_path: Path
) -> None:
    selection = choose()
    files = selection.write(tmp_path)

    settings = read_settings(tmp_path / "kraq.toml")
    assert (settings.chunks.tokens, settings.ask.retriever) == (100, "bm25")
    assert selection.least == 0.91  # all 40 are right: Wilson's lower end
    assert "--retrieval-only --k 1 --fail-under recall@1=0.91" in selection.to_toml()
    page = files[1].read_text("utf-8")
    assert "Difference from bm25, 100 tokens, k 1" in page


def test_limits_are_those_of_the_run() -> None:
    settings = Settings(
        roles={"default": RoleSettings(model="openai/none-of-this-name", api_base="http://localhost:1")}
    )
    plan = SelectionPlan(retrievers=("dense", "adaptive"), chunk_tokens=(100,), ks=(1,))

    missed = [{**row, "supporting_ids": PARTS[-1:]} for row in ROWS[:8]]  # so that a better one could be told

    selection = select(DOCUMENTS, [*missed, *ROWS[8:22]], plan=plan, settings=settings, limits=Limits(max_calls=0))

    assert selection.chosen.candidate.retriever == "dense"
    assert "calls" in selection.dropped["adaptive, 100 tokens, k 1"]


def test_the_command_writes_settings_with_which_the_index_answers(tmp_path: Path, kraq: WarmShell) -> None:
    lines = ({"id": each.id, "text": each.text} for each in DOCUMENTS)
    (tmp_path / "docs.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (tmp_path / "mine.csv").write_text("ask,hall\n" + "".join(f"Where is {p}?,{p}\n" for p in PARTS), "utf-8")
    own_names = ("--question-column", "ask", "--documents-column", "hall")
    words = ("select", "docs.jsonl", "mine.csv", "-r", "bm25", "-r", "dense", "--chunks", "100", "-k", "1", "-o", "run",
             *own_names)  # fmt: skip

    shown = kraq(*words, cwd=tmp_path)
    again = kraq(*words, "--json", cwd=tmp_path)

    assert shown.returncode == again.returncode == 0, shown.stderr + again.stderr
    assert "Chosen: bm25, 100 tokens, k 1" in shown.stdout
    assert "Settings and report: " in shown.stdout
    gate_words = f"Gate:  kraq eval docs.kraq mine.csv --retrieval-only --k 1 {' '.join(own_names)} --fail-under"
    assert gate_words in shown.stdout
    report = json.loads(again.stdout)
    assert report["chosen"] == "bm25, 100 tokens, k 1"
    assert report["tried"][0]["cost"]["calls"] == 0

    built = kraq("index", "docs.jsonl", "--out", "docs.kraq", "--config", "run/kraq.toml", cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    gate = report["gate"].split()[1:]
    judged = kraq(*gate, "--json", cwd=tmp_path)
    assert judged.returncode == 0, judged.stderr
    [system] = json.loads(judged.stdout)["runs"][0]["systems"]
    assert system["name"] == "bm25"
    (tmp_path / "kraq.toml").write_text('[columns]\nquestion = "ask"\ndocuments = "hall"\n', "utf-8")
    for reader in (
        ("eval", "docs.kraq", "mine.csv", "--retrieval-only"),
        ("testset", "coverage", "docs.kraq", "mine.csv"),
    ):
        assert kraq(*reader, "--json", cwd=tmp_path).returncode == 0
    (tmp_path / "kraq.toml").unlink()
    (tmp_path / "bad.csv").write_text("question\nWhere?\n", "utf-8")
    refused = kraq("select", "docs.jsonl", "bad.csv", cwd=tmp_path)
    assert refused.returncode == 1
    assert "kraq testset make" in refused.stderr


FEW = [{"id": f"few-{part}", "question": f"In which hall is {part}?", "supporting_ids": [part]} for part in PARTS[::5]]
HALVES = [{**row, "half": ("made", "own")[number % 2], "overlap": 0.9, "model": "embedded"}
          for number, row in enumerate(ROWS)]  # fmt: skip


def test_two_halves_and_human_questions_decide_together(
    embedder: KeywordEmbedder, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = SelectionPlan(retrievers=("bm25", "dense"), chunk_tokens=(100,), ks=(1,))
    options: dict[str, Any] = {"plan": plan, "embedder": embedder, "out": tmp_path / "run"}

    selection = select(DOCUMENTS, HALVES, human=FEW, **options)
    again = select(DOCUMENTS, HALVES, human=FEW, **options)
    show_selection(selection)
    files = selection.write(tmp_path / "run")

    assert selection.chosen.candidate.name == "bm25, 100 tokens, k 1"
    assert again.to_dict() == selection.to_dict()
    worse = next(each for each in selection.tried if each.candidate.name == "dense, 100 tokens, k 1")
    assert worse.decision is not None
    assert {half: each.interval.n for half, each in worse.decision.differences.items()} == {
        "made": 20, "own": 20, "human": 8,
    }  # fmt: skip
    assert (worse.decision.verdict, worse.is_undecided) == (1, False)
    output = " ".join("".join(capsys.readouterr()).split())
    assert "made own human" in output
    assert "0.90 of its questions' words stand in their passages" in output
    assert "recall: decisions" in files[1].read_text("utf-8")


def test_human_questions_need_halves_to_decide_with_and_three_of_them(embedder: KeywordEmbedder) -> None:
    plan = SelectionPlan(retrievers=("bm25",), chunk_tokens=(100,), ks=(1,))
    with pytest.raises(EvaluationError, match="have 0 made rows"):
        select(DOCUMENTS, ROWS, human=FEW, plan=plan, embedder=embedder)
    with pytest.raises(EvaluationError, match="2 human questions"):
        select(DOCUMENTS, HALVES, human=FEW[:2], plan=plan, embedder=embedder)
