"""A question of a test set is asked by its signature, cleaned, and dropped with its reason where it is of no use."""

from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.errors import ConfigError
from kraq_dspy.testset.asking import AskForRow, CheckGold, CheckRow, PutOtherwise, SupposeOfAnother
from kraq_dspy.testset.kinds import KINDS

ADA = "Ada Lovelace\nAda Lovelace lived in London. She wrote notes on an engine."


def asked(kind: str, reply: dict[str, Any], **inputs: Any) -> dspy.Prediction:
    with dspy.context(lm=DummyLM([reply])):
        return AskForRow(kind)(**inputs)


def test_a_question_and_its_answer_are_taken_out_of_a_chatty_reply() -> None:
    made = asked(
        "fact", {"question": "Sure!\n1. Where did Ada Lovelace live?", "answer": "London."}, passage=ADA, about=[]
    )

    assert (made.question, made.answers, made.rejected) == ("Where did Ada Lovelace live?", ["London"], "")


@pytest.mark.parametrize(
    ("question", "answer", "reason"),
    [
        ("Tell me about Ada", "London", "nothing was asked"),
        ("Where did Ada live?", "", "nothing was answered"),
        ("Where did Ada live?", "Paris", "the answer is not in the passages"),
        ("Did Ada Lovelace live in London?", "London", "gives its answer away"),
        ("Where did she, says the passage, live?", "London", "does not stand alone"),
        ("Where did Ada live, as the first passage says?", "London", "does not stand alone"),
        ("Where do both passages say that Ada lived?", "London", "does not stand alone"),
        ("Where did Ada live before the first passage of the Suez Canal?", "London", ""),
        ("Where did Ada live?", "London " * 30, "the answer is long"),
        ("What moves the pointer?", "Use the", "the answer is cut off"),
    ],
)
def test_what_is_no_question_for_a_test_is_dropped_with_its_reason(question: str, answer: str, reason: str) -> None:
    assert asked("fact", {"question": question, "answer": answer}, passage=ADA, about=[]).rejected == reason


@pytest.mark.parametrize(
    ("written", "question"),
    [
        ("where did Ada Lovelace live", "Where did Ada Lovelace live?"),
        ('Who wrote "Night', 'Who wrote "Night"?'),
        ("Ada lived in London", "Ada lived in London"),
        ("What a life.", "What a life."),
        ("Whatever Ada wrote", "Whatever Ada wrote"),
    ],
)
def test_a_question_gets_the_mark_that_a_small_model_leaves_out_and_nothing_else_does(
    written: str, question: str
) -> None:
    assert asked("fact", {"question": written, "answer": "London"}, passage=ADA, about=[]).question == question


BYRON = {"first_passage": "Lord Byron's only daughter was Ada Lovelace.", "second_passage": ADA, "link": "Ada Lovelace"}


@pytest.mark.parametrize(
    ("description", "question", "bridge"),
    [
        (
            "the only daughter of Lord Byron.",
            "Where did Ada Lovelace live?",
            "Where did the only daughter of Lord Byron live?",
        ),
        (
            "Ada Lovelace was the daughter of Lord Byron.",
            "Where did Ada Lovelace live?",
            "Where did the daughter of Lord Byron live?",
        ),
        ("The daughter of Byron", "Ada Lovelace lived where?", "The daughter of Byron lived where?"),
        ("", "Where did the only daughter of Lord Byron live?", "Where did the only daughter of Lord Byron live?"),
    ],
)
def test_in_a_bridge_a_description_takes_the_place_of_the_name_that_links(
    description: str, question: str, bridge: str
) -> None:
    row = asked("bridge", {"description": description, "question": question, "answer": "London"}, **BYRON)

    assert (row.question, row.rejected) == (bridge, "")


@pytest.mark.parametrize(
    ("description", "reason"),
    [
        ("", "names what links the passages"),
        ("the daughter called Ada Lovelace", "names what links the passages"),
        ("the inventor of an engine", "is described as no passage says"),
    ],
)
def test_a_bridge_whose_link_is_named_or_is_not_described_by_its_passage_is_none(description: str, reason: str) -> None:
    reply = {"description": description, "question": "Where did Ada Lovelace live?", "answer": "London"}

    assert asked("bridge", reply, **BYRON).rejected == reason


def test_a_description_that_begins_the_question_is_looked_up_as_well() -> None:
    reply = {"description": "the inventor of an engine", "question": "Ada Lovelace lived where?", "answer": "London"}

    assert asked("bridge", reply, **BYRON).rejected == "is described as no passage says"


def test_a_question_for_what_links_the_passages_takes_one_of_them_alone() -> None:
    reply = {"description": "", "question": "Who was the only daughter of Lord Byron?", "answer": "Ada Lovelace"}

    assert asked("bridge", reply, **BYRON).rejected == "asks for what links the passages"


def test_a_list_has_two_items_or_more_all_of_them_in_the_passages() -> None:
    passages = ["The Rhine flows into the North Sea.", "The Elbe flows into the North Sea."]
    question = "Which rivers flow into the North Sea?"

    full = asked("list", {"question": question, "items": ["Rhine", "Elbe"]}, passages=passages, shared="North Sea")
    short = asked("list", {"question": question, "items": ["Rhine"]}, passages=passages, shared="North Sea")

    assert (full.answers, full.rejected) == (["Rhine", "Elbe"], "")
    assert short.rejected == "nothing was answered"


def test_a_signature_of_ones_own_takes_the_place_of_the_step() -> None:
    class AskShortly(dspy.Signature):
        """Ask in five words."""

        passage: str = dspy.InputField()
        question: str = dspy.OutputField()
        answer: str = dspy.OutputField()

    assert AskForRow("fact", AskShortly).ask.signature.instructions == "Ask in five words."
    with pytest.raises(ConfigError, match="returns no 'answer'"):
        AskForRow("fact", dspy.Signature("passage -> question"))


def test_a_supposition_changes_the_name_also_where_a_model_copies_the_question() -> None:
    replies = [{"changed": "Where did Eve live then?"}, {"changed": "Where did Ada live?"}, {"changed": "Eve lived."}]
    with dspy.context(lm=DummyLM(replies)):
        suppose = SupposeOfAnother()
        made = [suppose(question="Where did Ada live?", name="Ada", other="Eve") for _ in range(3)]
        unnamed = suppose.deepcopy()

    assert [one.question for one in made] == ["Where did Eve live then?", "Where did Eve live?", "Where did Eve live?"]
    with dspy.context(lm=DummyLM([{"changed": "Where?"}])):
        assert unnamed(question="Where did Ada live?", name="Bob", other="Eve").rejected == "was not changed"


def test_other_words_keep_names_and_numbers() -> None:
    replies = [{"paraphrase": "In which city was Ada's home in 1843?"}, {"paraphrase": "Where was the home?"}]
    with dspy.context(lm=DummyLM(replies)):
        put = PutOtherwise()
        kept, lost = (put(question="Where did Ada live in 1843?", avoid=["live"]).question for _ in range(2))

    assert kept == "In which city was Ada's home in 1843?"
    assert lost == "Where did Ada live in 1843?"


@pytest.mark.parametrize("mark", ["؟", "？"])
def test_a_question_ends_with_the_mark_of_its_language(mark: str) -> None:
    assert KINDS["fact"].fault(f"أين عاشت آدا{mark}", ["London"], [ADA]) == ""


def test_an_answer_in_a_script_that_parts_no_words_is_found_in_its_text() -> None:
    passage = "赵鹏于1997年便加入河南建业青年队，身高185cm。"
    reply = {"question": "赵鹏于哪一年便加入河南建业青年队？", "answer": "1997年"}
    assert asked("fact", reply, passage=passage, about=[]).rejected == ""

    reply = {"question": "赵鹏于哪一年便加入河南建业KA队？", "answer": "1998年"}
    assert asked("fact", reply, passage=passage, about=[]).rejected == "the answer is not in the passages"
    reply = {"question": "赵鹏于1997年便加入哪一年？", "answer": "1997年"}
    assert asked("fact", reply, passage=passage, about=[]).rejected == "gives its answer away"


def test_an_ordinal_inside_of_a_question_is_no_number_of_a_list() -> None:
    passage = "Die Galerie für Uhren schloss am 25. Februar 2010."
    reply = {"question": "1. Welche Galerie schloss am 25. Februar 2010?", "answer": "Die Galerie für Uhren"}
    assert asked("fact", reply, passage=passage, about=[]).question == "Welche Galerie schloss am 25. Februar 2010?"


def test_a_name_is_replaced_as_a_whole_word_alone() -> None:
    with dspy.context(lm=DummyLM([{"changed": "Where did Adam meet Ada?"}])):
        made = SupposeOfAnother()(question="Where did Adam meet Ada?", name="Ada", other="Eve")
    assert made.question == "Where did Adam meet Eve?"


def test_other_words_keep_a_name_in_quotation_marks() -> None:
    with dspy.context(lm=DummyLM([{"paraphrase": "Which author is it?"}])):
        assert PutOtherwise()(question='Who wrote "Emma"?', avoid=[]).question == 'Who wrote "Emma"?'


def test_who_reads_again_must_come_to_the_same_answer() -> None:
    alone, apart = {"stands_alone": "True"}, {"same": "False"}
    row = {"kind": "fact", "question": "Where did Ada live?", "answers": ["London"], "passages": [ADA]}
    with dspy.context(lm=DummyLM([alone, {"answer": "In Paris"}, apart])):
        assert CheckRow()(**row).rejected == "read again"
    with dspy.context(lm=DummyLM([{"stands_alone": "False"}])):
        assert CheckRow()(**row).rejected == "stands alone"


def test_a_passage_is_gold_where_a_reader_says_so() -> None:
    with dspy.context(lm=DummyLM([{"answered": "False"}])):
        assert CheckGold()("Where did Ada live?", "London", "London is large.").answered is False


def test_broad_questions_are_not_held_to_words_of_the_passages() -> None:
    assert KINDS["broad"].fault("What did poets do?", ["They wrote a great many poems together"], ["Poems."]) == ""
