"""Reads gold answers and names of documents in the forms that data sets write them."""

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import Example
from kraq_dspy.eval.evidence import with_known_documents
from kraq_dspy.eval.gold import document_names, gold_answers

BERG = ("Jonas Berg", "J. Berg")


@pytest.mark.parametrize(
    "value",
    [
        ["Jonas Berg", "J. Berg"],
        ("Jonas Berg", "J. Berg"),
        {"text": ["Jonas Berg", "J. Berg"], "answer_start": [5, 9]},
        [{"text": "Jonas Berg", "answer_start": 5}, {"text": "J. Berg", "answer_start": 9}],
        {"value": "Jonas Berg", "aliases": ["J. Berg"], "normalized_aliases": ["jonas berg"]},
        [["Jonas Berg", "J. Berg"]],
        np.array(["Jonas Berg", "J. Berg"], dtype=object),
        {"text": np.array(["Jonas Berg", "J. Berg"], dtype=object)},
        "['Jonas Berg', 'J. Berg']",
        "['Jonas Berg' 'J. Berg']",
        '["Jonas Berg", "J. Berg"]',
        "array(['Jonas Berg', 'J. Berg'], dtype=object)",
        "{'text': array(['Jonas Berg', 'J. Berg'], dtype=object), 'answer_start': array([5, 9])}",
        '{"text": ["Jonas Berg", "J. Berg"], "answer_start": [5, 9]}',
        ["Jonas Berg", None, "J. Berg", math.nan, "Jonas Berg"],
    ],
)
def test_several_answers_are_read_in_every_form(value: Any) -> None:
    assert gold_answers(value).answers == BERG


@pytest.mark.parametrize(
    "value",
    [None, math.nan, "", " ", "NaN", "nan", "<NA>", pd.NA, pd.NaT, [], [None], {"text": [], "answer_start": []}],
)
def test_what_is_missing_is_no_answer(value: Any) -> None:
    assert gold_answers(value).answers == ()
    assert document_names(value) == ()


def test_none_is_a_word_but_in_a_table_a_missing_value() -> None:
    assert gold_answers("None").answers == ("None",)
    assert gold_answers("None", in_table=True).answers == gold_answers("null", in_table=True).answers == ()


@pytest.mark.parametrize(
    ("value", "answer"),
    [
        (1987, "1987"),
        (np.int64(12), "12"),
        (True, "yes"),
        (False, "no"),
        ("[sic] a typo", "[sic] a typo"),
        ("(a)", "(a)"),
    ],
)
def test_other_values_are_the_text_that_they_are(value: Any, answer: str) -> None:
    assert gold_answers(value).answers == (answer,)


def test_lists_in_a_list_are_items_with_their_synonyms() -> None:
    gold = gold_answers([["Alma", "MS Alma"], ["Brita"]])
    assert (gold.answers, gold.items) == (("Alma", "MS Alma", "Brita"), (("Alma", "MS Alma"), ("Brita",)))


def test_an_object_without_a_known_answer_is_refused() -> None:
    with pytest.raises(EvaluationError, match="an object with 'start', 'end'; expected a text"):
        gold_answers({"start": 1, "end": 2})


@pytest.mark.parametrize(
    ("value", "names"),
    [
        ("a.txt", ("a.txt",)),
        (["a.txt", "b.txt"], ("a.txt", "b.txt")),
        ([{"id": "a.txt", "text": "Long."}], ("a.txt",)),
        ([{"text": "a passage without an id"}], ()),
        ([["Alma", 0], ["Alma", 2], ["Brita", 1]], ("Alma", "Brita")),
        ("['a.txt', 'b.txt']", ("a.txt", "b.txt")),
    ],
)
def test_documents_are_named_in_every_form(value: Any, names: tuple[str, ...]) -> None:
    assert document_names(value) == names


def asked(*documents: str) -> list[Example]:
    return [Example(f"q{number}", "Who?", (), (each,)) for number, each in enumerate(documents)]


def test_documents_are_called_as_the_index_calls_them() -> None:
    there = {"harbour.txt", "line.txt", "museum.txt", "a, b"}
    examples, note = with_known_documents(
        asked("harbour.txt; line.txt", "./museum.txt", "a, b"), there.intersection, required=True
    )
    assert [example.supporting_ids for example in examples] == [("harbour.txt", "line.txt"), ("museum.txt",), ("a, b",)]
    assert note == ""


def test_documents_that_the_index_lacks_are_said() -> None:
    examples, note = with_known_documents(asked("harbour.txt", "ferry"), {"harbour.txt"}.intersection, required=True)
    assert examples[1].supporting_ids == ("ferry",)
    assert note == "1 of 2 questions names a document that the index does not have: 'ferry'."


def test_a_ranking_by_documents_that_the_index_lacks_all_is_refused_or_left_out() -> None:
    none: set[str] = set()
    with pytest.raises(EvaluationError, match="has none of the documents that the questions name: 'wiki'"):
        with_known_documents(asked("wiki"), none.intersection, required=True)
    examples, note = with_known_documents(asked("wiki"), none.intersection, required=False)
    assert (examples[0].supporting_ids, "'wiki'" in note) == ((), True)
