"""One thing of a question is changed for another of its kind, and never so that a passage says it."""

import random

from kraq_dspy.records import Chunk, Entity
from kraq_dspy.testset.changes import Changes
from kraq_dspy.testset.corpus import AskedQuestion, Corpus, Material

TEXTS = {
    "a": "Ada Bell sold the mill of Orr to weavers in 1902.",
    "b": "Nora Quill cut the rent of weavers.",
    "c": "Nora Quill mended the pier of Lurr.",
}
PEOPLE = [
    Entity("e1", "Ada Bell", "person", "", ("Ada Bell",), ("a",)),
    Entity("e2", "Nora Quill", "person", "", ("Nora Quill",), ("c", "b")),
    Entity("e3", "Lurr", "place", "", ("Lurr",), ("c",)),
]


def change(question: str, texts: dict[str, str], about: tuple[str, ...] = ()) -> tuple[str, str] | None:
    """The change of a question that was asked of the first text."""
    chunk = Chunk("a", "a", 0, 0, len(texts["a"]), texts["a"], 9)
    material = Material({"passage": texts["a"], "about": list(about)}, (chunk,), id="m", kind="false_premise")
    return changes(texts).of(AskedQuestion(material, question, ("answer",)), random.Random(0))


def changes(texts: dict[str, str]) -> Changes:
    return Changes(Corpus([Chunk(id, id, 0, 0, len(text), text, 9) for id, text in texts.items()], PEOPLE, []))


def test_a_year_is_put_for_an_earlier_one() -> None:
    changed = change("What did the town of Orr buy in 1902?", TEXTS)
    assert changed is not None
    assert changed[0] == "1902"
    assert 1890 <= int(changed[1]) <= 1900


def test_a_name_is_put_for_one_of_its_kind_that_stands_apart() -> None:
    assert change("What did Ada Bell sell?", TEXTS, ("Ada Bell",)) == ("Ada Bell", "Nora Quill")


def test_a_change_that_some_passage_says_is_none() -> None:
    texts = {**TEXTS, "b": "Nora Quill sold the mill of Orr to weavers, too."}
    assert change("What did Ada Bell sell to weavers of Orr?", TEXTS, ("Ada Bell",)) is not None
    assert change("What did Ada Bell sell to weavers of Orr?", texts, ("Ada Bell",)) is None


def test_nobody_is_put_for_who_spoke_since_the_sentences_of_a_turn_do_not_name_the_speaker() -> None:
    texts = {**TEXTS, "a": "Ada Bell: We begin. The levy of 1902 will rise."}
    assert change("What did Ada Bell say about the levy of 1902?", texts, ("Ada Bell",)) is None


def test_what_is_put_in_leaves_longer_words_that_have_the_same_letters() -> None:
    swaps = changes({**TEXTS, "d": "Six cabins belong to the tenants."})
    assert swaps.is_said("Which tenants had ten cabins?", "ten", "six")
    assert not swaps.is_said("Which tenants had ten boats?", "ten", "six")
