"""Questions are put in fewer and in other words, as people put them who have not read the text."""

from kraq_dspy.embedded.rewrite import OTHER_WORDS, in_other_words
from kraq_dspy.records import Entity
from kraq_dspy.testset.wording import by_other_names, other_names, shorter


def entity(name: str, *others: str, kind: str = "person") -> Entity:
    return Entity(name, name, kind, "", (name, *others), ())


def test_what_prepositions_add_is_left_out_from_the_end_while_enough_is_said() -> None:
    asked = "Which novel was published by the Hogarth Press in London in 1925?"

    assert shorter(asked) == [
        "Which novel was published by the Hogarth Press in London?",
        "Which novel was published by the Hogarth Press?",
    ]
    assert shorter("Who wrote Orlando?") == []
    assert shorter("When was the new Hogarth Press of Richmond located in Surrey?") == []


def test_a_name_is_put_by_another_that_nothing_else_has() -> None:
    things = [entity("Ada Lovelace", "Countess"), entity("Ann Byron"), entity("George Byron"), entity("Ed Wood")]

    assert other_names(things) == {"Ada Lovelace": "Countess"}
    shared = [entity("Ada Lovelace", "Countess"), entity("Eve Lane", "Countess")]
    assert other_names(shared) == {}
    assert by_other_names("Where did Ada Lovelace live?", ["Ada Lovelace"], {"Ada Lovelace": "Countess"}) == (
        "Where did Countess live?"
    )
    assert by_other_names("Where did Eve live?", ["Eve"], {}) == ""


def test_other_words_stand_for_those_to_avoid_and_names_stay() -> None:
    asked = "Which film was directed by Film Directed in a film of 1994?"

    assert (
        in_other_words(asked, ["film", "directed"]) == "Which movie was directed by Film Directed in a movie of 1994?"
    )
    assert in_other_words(asked, []) == asked
    assert in_other_words("Who was an author?", ["author"]) == "Who was a writer?"
    assert in_other_words("Who was a writer?", ["writer"]) == "Who was an author?"


def test_no_word_is_put_for_itself() -> None:
    assert all(word != other and other.strip() for word, other in OTHER_WORDS.items())
