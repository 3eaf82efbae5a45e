"""One thing of a question is changed for another of its kind, and never so that a passage says it."""

import random

from kraq_dspy.language.analysis import SAID_ALOUD, Act, Analysis, Named, Sentence
from kraq_dspy.records import PHRASE, Chunk, Entity
from kraq_dspy.testset.changes import Change, Changes, with_articles
from kraq_dspy.testset.corpus import AskedQuestion, Corpus, Material

TEXTS = {
    "a": "The town of Orr paid the wage subsidy to millers in 1902.",
    "b": "The council cut the rent subsidy of weavers.",
    "c": "Nora Quill mended the pier of Lurr.",
}


def corpus(texts: dict[str, str], phrases: dict[str, str], entities: list[Entity] | None = None) -> Corpus:
    chunks = [Chunk(id, id, 0, 0, len(text), text, 9) for id, text in texts.items()]
    analyses = {
        id: Analysis("", (Sentence(texts[id], (Named(phrase, PHRASE, phrase.split()[-1]),)),) * 2)
        for id, phrase in phrases.items()
    }
    return Corpus(chunks, entities or [], [], analyses)


def asked(question: str, texts: dict[str, str], about: tuple[str, ...] = ()) -> AskedQuestion:
    chunk = Chunk("a", "a", 0, 0, len(texts["a"]), texts["a"], 9)
    material = Material("m", "false_premise", {"passage": texts["a"], "about": list(about)}, (chunk,))
    return AskedQuestion(material, question, ("answer",))


def change(question: AskedQuestion, of: Corpus, seed: int = 0) -> Change | None:
    return Changes(of).of(question, random.Random(seed))


def test_a_kind_of_a_thing_is_put_for_another_kind_of_it() -> None:
    made = change(
        asked("Who paid the wage subsidy to millers?", TEXTS),
        corpus(TEXTS, {"a": "wage subsidy", "b": "rent subsidy"}),
    )
    assert made is not None
    assert (made.name, made.other) == ("wage subsidy", "rent subsidy")


def test_a_year_and_a_number_are_put_for_others() -> None:
    made = change(asked("What did the town of Orr pay in 1902?", TEXTS), corpus(TEXTS, {}))
    assert made is not None
    assert made.name == "1902"
    assert 1890 <= int(made.other) <= 1900


def test_two_are_a_number_like_others_and_one_is_none() -> None:
    texts = {"a": "The town of Orr paid 2 millers."}
    made = change(asked("What did Orr pay 2 millers for?", texts), corpus(texts, {}))
    assert made is not None
    assert made.name == "2"
    assert change(asked("What did Orr pay 1 millers for?", texts), corpus(texts, {})) is None


def test_a_change_that_some_passage_says_is_none() -> None:
    said = {**TEXTS, "d": "The town of Orr paid the rent subsidy to millers, too."}
    phrases = {"a": "wage subsidy", "b": "rent subsidy"}
    assert change(asked("Who paid the wage subsidy to millers?", said), corpus(said, phrases)) is None


def test_what_is_put_in_leaves_longer_words_that_have_the_same_letters() -> None:
    said = {**TEXTS, "d": "Six cabins belong to the tenants."}
    changes = Changes(corpus(said, {}))
    assert changes.is_said("Which tenants had ten cabins?", "ten", "six")
    assert not changes.is_said("Which tenants had ten boats?", "ten", "six")


def test_a_name_is_put_for_one_of_its_kind_that_stands_apart() -> None:
    people = [
        Entity("e1", "Ada Bell", "person", "", ("Ada Bell",), ("a",)),
        Entity("e2", "Nora Quill", "person", "", ("Nora Quill",), ("c", "b")),
        Entity("e3", "Lurr", "place", "", ("Lurr",), ("c",)),
    ]
    texts = {**TEXTS, "a": "Ada Bell sold the mill of Orr."}
    made = change(asked("What did Ada Bell sell?", texts, ("Ada Bell",)), corpus(texts, {}, people))
    assert made is not None
    assert (made.name, made.other) == ("Ada Bell", "Nora Quill")


def test_the_article_is_that_of_the_word_put_in() -> None:
    assert with_articles("Who sold a old mill and an new boat?") == "Who sold an old mill and a new boat?"
    assert with_articles("Who wears a uniform in an hour?") == "Who wears a uniform in an hour?"


def test_who_spoke_is_put_for_somebody_of_the_meeting_who_is_called_alike_and_never_spoke_beside_the_matter() -> None:
    turns = {
        "a": ("m", "Nora Quill", "The harbor levy will rise in spring."),
        "b": ("m", "Ada Bell", "We mend the pier."),
        "c": ("n", "Tom Orr", "We sold the mill."),
        "d": ("m", "Jon Lurr", "The harbor is deep."),
        "e": ("m", "the Chair", "We begin."),
    }
    chunks = [Chunk(id, document, 0, 0, 9, f"{who}: {said}", 9) for id, (document, who, said) in turns.items()]
    analyses = {
        id: Analysis("", (Sentence(said, acts=(Act(SAID_ALOUD, who, ""),)),)) for id, (_, who, said) in turns.items()
    }
    material = Material("m", "false_premise", {"passage": chunks[0].text, "about": []}, (chunks[0],))
    question = AskedQuestion(material, "What did Nora Quill say about the harbor levy?", ("It will rise",))

    made = Changes(Corpus(chunks, [], [], analyses)).of(question, random.Random(0))

    assert made is not None
    assert (made.name, made.other) == ("Nora Quill", "Ada Bell")


def test_a_number_of_a_name_and_a_piece_of_a_longer_phrase_stay() -> None:
    texts = {**TEXTS, "a": "The town of Orr paid the old wage subsidy board for Portal 2 in June."}
    phrases = {"a": "wage subsidy", "b": "rent subsidy"}
    assert change(asked("Who paid the wage subsidy board for Portal 2?", texts), corpus(texts, phrases)) is None
