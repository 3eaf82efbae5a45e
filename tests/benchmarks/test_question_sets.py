"""Tests the comparison of question sets without any model: the choice of passages, the counting, the measures."""

import importlib
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from kraq_dspy.eval.datasets import Example
from kraq_dspy.records import Chunk

Modules = Callable[[str], ModuleType]
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def sets(monkeypatch: pytest.MonkeyPatch) -> Modules:
    """`sets("measures")` is the module `benchmarks/question_sets/measures.py`."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"question_sets.{name}")


@pytest.fixture
def asking(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(BENCHMARKS / "question_sets" / "inside"))
    yield importlib.import_module("asking")
    sys.modules.pop("asking", None)


def example(id: str, question: str, *supporting: str) -> Example:
    return Example(id, question, ("yes",), supporting)


def write_squad(folder: Path, articles: int, paragraphs: int) -> None:
    (folder / "squad").mkdir()
    corpus = [
        {"id": f"{a}-{p}", "title": f"Article_{a}", "text": f"Text {p} of article {a}."}
        for a in range(articles)
        for p in range(paragraphs)
    ]
    questions = [
        {"id": f"q{row['id']}", "question": f"What is {row['id']}?", "answers": ["x"], "supporting_ids": [row["id"]],
         "type": ""}
        for row in corpus
    ]  # fmt: skip
    for name, rows in (("corpus", corpus), ("questions", questions)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "squad" / f"{name}.jsonl").write_text(lines, "utf-8")


def test_the_corpus_is_whole_articles_and_no_reference_is_held_out(sets: Modules, tmp_path: Path) -> None:
    write_squad(tmp_path, articles=6, paragraphs=3)
    corpus = sets("corpus").read_corpus(tmp_path, articles=2, held_out=2)
    titles = [document.title for document in corpus.dataset.documents]
    assert len(titles) == 6
    assert len(set(titles)) == 2
    assert titles[0].startswith("Article ")
    assert len(corpus.surroundings.documents) == 18
    references, held_out = ({each.question for each in some} for some in (corpus.references, corpus.held_out))
    assert (len(references), len(held_out)) == (4, 2)
    assert not references & held_out


def test_passages_are_asked_about_article_by_article_in_turn(sets: Modules, tmp_path: Path) -> None:
    write_squad(tmp_path, articles=6, paragraphs=3)
    corpus = sets("corpus").read_corpus(tmp_path, articles=2, held_out=2)
    ids = sets("corpus").in_turn(corpus)
    assert len(set(ids)) == 6
    assert all(len({id.split("-")[0] for id in ids[at : at + 2]}) == 2 for at in (0, 2, 4))


def test_a_question_asked_twice_counts_once_and_one_without_evidence_not_at_all(sets: Modules) -> None:
    asked = [example("b", "who  ran?", "p"), example("a", "Who ran?", "p"), example("c", "Why?")]
    assert [each.id for each in sets("corpus").first_of_each(asked)] == ["a"]


def test_coverage_by_the_nearest_passage_by_five_and_by_names(sets: Modules) -> None:
    passages = np.eye(8, dtype=np.float32)
    questions = passages[[0, 0, 1]]
    texts = ["Who saw Rome?", "Where is rome?", "What did Romeo do?"]
    covered = sets("measures").covered(questions, passages, texts, ["Rome", "Oslo"])
    assert covered.nearest == 2 / 8
    assert covered.among_five == 5 / 8  # ties by position: 0 to 4 for each of them
    assert covered.names == 1 / 2


def test_a_name_is_mentioned_as_whole_words(sets: Modules) -> None:
    mentions = sets("measures").mentions
    assert mentions("What is C++ for?", "C++")
    assert not mentions("Who was Romeo?", "Rome")


def test_later_questions_that_say_the_same_are_repeats(sets: Modules) -> None:
    vectors = np.array([[1, 0], [0, 1], [0.999, 0.0447]], dtype=np.float32)
    repeats = sets("measures").repeats
    assert repeats(["One?", "Two?", "Uno?"], vectors, 0.95) == [False, False, True]
    assert repeats(["Two?", "two?"], vectors[:2], 0.95) == [False, True]


def test_self_bleu_is_one_for_the_same_words_and_low_for_others(sets: Modules) -> None:
    same, other, again = sets("measures").self_bleu(
        ["Who wrote the old book?", "Where do seven rivers meet today?", "Who wrote the old book?"]
    )
    assert same == again == pytest.approx(1)
    assert other < 0.2


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("Who ran?", True),
        ("How are they sent", True),
        ("He ran.", False),
        ("Howard ran.", False),
        ("a " * 41 + "?", False),
    ],
)
def test_a_question_has_its_mark_or_begins_as_one_and_is_not_long(sets: Modules, text: str, asks: bool) -> None:
    assert sets("measures").is_question(text) is asks


def test_of_several_sources_the_one_nearest_to_the_question_is_judged(sets: Modules) -> None:
    vectors = {"a": np.array([1.0, 0.0]), "b": np.array([0.6, 0.8]), "c": np.array([0.0, 1.0])}
    assert sets("measures").nearest_source(np.array([0.0, 1.0]), ("a", "b"), vectors) == "b"


def test_scores_are_of_the_passages_that_a_question_came_from(sets: Modules) -> None:
    measures = sets("measures")
    questions = [measures.MadeQuestion("q1", ("a",)), measures.MadeQuestion("q2", ("b", "c"))]
    found = {"dense": {"q1": ["x", "a"], "q2": ["b", "x", "x2", "x3", "x4", "c"]}}
    assert measures.scored(questions, found, "recall@1") == {"dense": [0.0, 0.5]}
    assert measures.scored(questions, found, "recall@5") == {"dense": [1.0, 0.5]}
    assert measures.scored(questions, found, "mrr") == {"dense": [0.5, 1.0]}


def test_agreement_is_of_the_order_of_the_retrievers(sets: Modules) -> None:
    measures = sets("measures")
    people = {"a": [1.0, 1.0], "b": [1.0, 0.0], "c": [0.0, 0.0]}
    assert measures.rank_agreement({"a": [0.3], "b": [0.2], "c": [0.1]}, people) == pytest.approx(1)
    assert measures.rank_agreement({"a": [0.1], "b": [0.2], "c": [0.3]}, people) == pytest.approx(-1)
    assert measures.rank_agreement({"a": [0.1], "b": [0.1], "c": [0.1]}, people) is None


def test_the_interval_of_an_agreement_holds_it_and_shrinks_with_more_questions(sets: Modules) -> None:
    measures, rng = sets("measures"), np.random.default_rng(0)
    rates = {"a": 0.8, "b": 0.6, "c": 0.5, "d": 0.4}

    def drawn(count: int) -> dict[str, list[float]]:
        return {name: (rng.random(count) < rate).astype(float).tolist() for name, rate in rates.items()}

    widths = []
    for count in (10, 1000):
        few, people = drawn(count), drawn(1000)
        low, high = measures.agreement_interval(few, people, resamples=300)
        assert low <= measures.rank_agreement(few, people) <= high
        widths.append(high - low)
    assert widths[1] < widths[0] / 2


def test_so_many_of_peoples_questions_are_compared_with_the_others(sets: Modules) -> None:
    people = {"a": [1.0] * 20, "b": [0.5] * 20, "c": [0.0] * 20}
    assert sets("measures").same_sized(people, 5) == pytest.approx((1, 1, 1))
    assert sets("measures").same_sized({"a": [1.0] * 9, "b": [1.0] * 9}, 3) is None


def test_a_yes_is_weighed_against_a_no_in_any_spelling(sets: Modules) -> None:
    likely = {"Yes": math.log(0.5), " yes": math.log(0.1), "No": math.log(0.2), "Maybe": math.log(0.2)}
    assert sets("judge").yes_probability(likely) == pytest.approx(0.75)
    assert sets("judge").yes_probability({"Maybe": 0.0}) == 0.5


def test_how_well_the_judge_tells_known_pairs_apart(sets: Modules) -> None:
    judge = sets("judge")
    assert judge.told_apart([0.9, 0.8], [0.1, 0.2]) == 1
    assert judge.told_apart([0.5], [0.5]) == 0.5
    assert judge.threshold([0.9, 0.6, 0.3], [0.4, 0.1]) == 0.6


def test_what_was_judged_is_not_asked_again(sets: Modules, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    judge, prompts = sets("judge"), []

    def ask(server: str, prompt: str) -> dict[str, float]:
        prompts.append(prompt)
        return {"Yes": 0.0}

    monkeypatch.setattr(judge, "ask", ask)
    pairs = [judge.Pair("d1", "It rains.", "Does it rain?"), judge.Pair("d1", "It rains.", "Where?")]
    file = tmp_path / "judged.jsonl"
    judge.judge(pairs[:1], "", file)
    yes = judge.judge([*pairs, pairs[0]], "", file)
    assert yes == {"d1 Does it rain?": 1.0, "d1 Where?": 1.0}
    assert len(prompts) == 2


def test_the_judge_is_tried_on_another_paragraph_of_the_same_article(sets: Modules, tmp_path: Path) -> None:
    write_squad(tmp_path, articles=6, paragraphs=3)
    corpus = sets("corpus").read_corpus(tmp_path, articles=2, held_out=2)
    ids = [document.id for document in corpus.dataset.documents]
    other = {id: sets("run").other_paragraph(corpus, id) for id in ids}
    assert all(id != there and id.split("-")[0] == there.split("-")[0] for id, there in other.items())
    assert sorted(other.values()) == sorted(ids)


def test_random_draws_are_as_large_as_asked_and_name_their_documents_once(sets: Modules) -> None:
    chunks = [Chunk(f"c{n}", f"d{n // 2}", n, 0, 1, f"t{n}", 1) for n in range(10)]
    items = sets("run").random_items(chunks, 20, (2, 3))
    assert {len(item["passages"]) for item in items} == {2, 3}
    assert all(len(set(item["sources"])) == len(item["sources"]) for item in items)
    assert items == sets("run").random_items(chunks, 20, (2, 3))


def test_a_part_of_a_set_is_about_as_many_articles_as_it_can_be(sets: Modules) -> None:
    made = sets("measures").MadeQuestion
    questions = [
        made("1", ("a1",)),
        made("2", ("a2", "b1")),
        made("3", ("b1",)),
        made("4", ("a1",)),
        made("5", ("b2",)),
    ]
    titles = {"a1": "A", "a2": "A", "b1": "B", "b2": "B"}
    assert [q.text for q in sets("run").spread(questions, titles, 3)] == ["1", "3", "2"]


def test_costs_are_sums_over_all_that_was_tried(sets: Modules) -> None:
    asked = {"calls": 2, "prompt_tokens": 100, "written_tokens": 10, "cut": 1, "refused": 0}
    rows = [{"question": "Who?", "seconds": 1.5, "asked": asked}, {"error": "no", "seconds": 1.0, "asked": asked}]
    costs = sets("run").costs(rows)
    assert (costs["made"], costs["tried"], costs["seconds"], costs["calls"], costs["cut"]) == (1, 2, 2.5, 4, 2)
    assert sets("run").costs([{"question": "Who?", "seconds": 1.0, "asked": {}}])["calls"] is None


def job_of(folder: Path, **more: Any) -> dict[str, Any]:
    items = folder / "items.jsonl"
    items.write_text("".join(json.dumps({"id": name, "passage": name}) + "\n" for name in "abcd"), "utf-8")
    until = time.time() + 60
    return {
        "items": str(items),
        "out": str(folder / "out.jsonl"),
        "questions": 2,
        "until": until,
        "server": None,
    } | more


def test_a_generator_is_asked_until_there_are_enough_and_goes_on_where_it_was(
    asking: ModuleType, tmp_path: Path
) -> None:
    tried: list[str] = []

    def question_of(item: dict[str, Any]) -> dict[str, Any]:
        tried.append(item["passage"])
        if item["id"] == "a":
            raise KeyError("persona")
        made: dict[str, Any] = asking.asked(f" What is\n{item['id']}? ")
        return made

    job = job_of(tmp_path)
    asking.ask_each({**job, "questions": 1}, question_of)
    asking.ask_each(job, question_of)
    asking.ask_each(job, question_of)
    assert tried == ["a", "b", "c"]
    rows = asking.read_rows(tmp_path / "out.jsonl")
    assert [row.get("question") for row in rows] == [None, "What is b?", "What is c?"]
    assert rows[0]["error"] == "KeyError: 'persona'"


def test_nothing_is_begun_after_the_time_and_no_text_is_no_question(asking: ModuleType, tmp_path: Path) -> None:
    asking.ask_each(job_of(tmp_path, until=time.time() - 1), lambda item: pytest.fail("asked"))
    asking.ask_each(job_of(tmp_path, questions=4), lambda item: asking.asked("  "))
    assert all("error" in row for row in asking.read_rows(tmp_path / "out.jsonl"))


def test_figures_are_written_without_the_zero_before_the_point(sets: Modules) -> None:
    share = sets("table").share
    assert [share(0.5), share(-0.25), share(1.0), share(0.999), share(12.5, 1)] == [
        ".50",
        "-.25",
        "1.00",
        "1.00",
        "12.5",
    ]
    assert share(0.25, signed=True) == "+.25"


def test_the_tables_tell_what_failed_and_what_has_no_order(sets: Modules) -> None:
    table = sets("table")
    costs = {"made": 2, "tried": 5, "seconds": 10.0, "calls": 8, "prompt_tokens": 900, "written_tokens": 50, "cut": 1}
    row = table.cost_table({"x": costs}, {"x": "X"}).splitlines()[-1]
    assert row == "| X | 2 of 5 | 4.0 | 450 | 25 | 1 | 5.0 |"
    agreement = {"rho": None, "interval": None}
    figures: dict[str, Any] = {"means": {score: {"dense": 0.5} for score in sets("measures").SCORES}}
    figures["agreement"] = dict.fromkeys(sets("measures").SCORES, agreement)
    expected = dict.fromkeys(sets("measures").SCORES, (0.8, 0.1, 0.9))
    rows = table.ranking_table({"x": figures}, {"x": "X"}, expected).splitlines()
    assert rows[-2].count("no order") == 3
    assert rows[-1].endswith("| .80 [.10, .90] | .80 [.10, .90] | .80 [.10, .90] |")
