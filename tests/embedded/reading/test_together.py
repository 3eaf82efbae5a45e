"""Statements of several passages that go together are asked about by one plain question, and others by none."""

from collections.abc import Sequence

import pytest

from kraq_dspy.embedded.reading.acts import DEMANDED, PURPOSE, STATED
from kraq_dspy.embedded.reading.together import groups_in
from kraq_dspy.language.analysis import SAID_ALOUD, Act, Analysis, Named, Sentence
from kraq_dspy.records import PHRASE

SALT, TRUCKS = "Road salt weakens the harbor bridge every winter.", "Heavy trucks damage the harbor bridge by day."
BRIDGE = Named("harbor bridge", PHRASE, "bridge")


def passages(*said: tuple[str, Sequence[Named], Act], title: str = "") -> dict[str, Analysis]:
    return {
        f"p{place}": Analysis(title, (Sentence(text, tuple(named), (), (), (act,)),))
        for place, (text, named, act) in enumerate(said)
    }


def asked(*said: tuple[str, Sequence[Named], Act], title: str = "") -> list[str]:
    return [group.question for group in groups_in(passages(*said, title=title))]


def test_what_several_passages_say_affects_a_thing_is_asked_with_a_statement_of_each() -> None:
    salt, trucks = Named("road salt", PHRASE, "salt"), Named("heavy trucks", PHRASE, "truck")
    [group] = groups_in(
        passages(
            (SALT, (salt, BRIDGE), Act("weaken", "road salt", "harbor bridge")),
            (TRUCKS, (trucks, BRIDGE), Act("damage", "heavy trucks", "harbor bridge")),
        )
    )

    assert group.question == "What affects the harbor bridge?"
    assert group.told == {"p0": SALT, "p1": TRUCKS}
    assert group.names == ("harbor bridge",)


def test_what_one_passage_says_is_no_group() -> None:
    salt = Named("road salt", PHRASE, "salt")
    assert asked((SALT, (salt, BRIDGE), Act("weaken", "road salt", "harbor bridge"))) == []


def test_two_passages_that_say_the_same_are_no_group() -> None:
    salt = Named("road salt", PHRASE, "salt")
    said = (SALT, (salt, BRIDGE), Act("weaken", "road salt", "harbor bridge"))
    assert asked(said, said) == []


@pytest.mark.parametrize(
    ("first", "second", "question"),
    [
        (
            ("The Orr Mill used its steam engine to grind corn.", Act(f"use{PURPOSE}", "", "steam engine")),
            ("In summer a steam engine was used for the pumps.", Act(f"use{PURPOSE}", "", "steam engine")),
            "What is a steam engine used for?",
        ),
        (
            ("Nora Quill rebuilt the northern pier in a year.", Act("rebuild", "Nora Quill", "northern pier", True)),
            ("After the flood Nora Quill rebuilt the school.", Act("rebuild", "Nora Quill", "school", True)),
            "What did Nora Quill rebuild?",
        ),
        (
            ("Our ticket prices fell by a third in spring.", Act("fall", "ticket prices", "", True)),
            ("Before the war, ticket prices rose every year.", Act("rise", "ticket prices", "", True)),
            "How did ticket prices change?",
        ),
        (
            ("The night ferry should run on every Sunday.", Act(DEMANDED, "night ferry", "")),
            ("A crew of nine must be on the night ferry.", Act(DEMANDED, "night ferry", "")),
            "What should the night ferry be like?",
        ),
        (
            ("Families in Orr need the school bus most of all.", Act(SAID_ALOUD, "Mira Tolan", "")),
            ("Drivers will bring the school bus back at noon.", Act(SAID_ALOUD, "Mira Tolan", "")),
            "What did Mira Tolan say about the school bus?",
        ),
    ],
)
def test_a_group_is_asked_about_in_the_form_of_its_acts(
    first: tuple[str, Act], second: tuple[str, Act], question: str
) -> None:
    named = (
        Named("steam engine", PHRASE, "engine"),
        Named("ticket prices", PHRASE, "price"),
        Named("night ferry", PHRASE, "ferry"),
        Named("school bus", PHRASE, "bus"),
        Named("northern pier", PHRASE, "pier"),
        Named("Nora Quill", "person", "quill"),
    )
    said = [(text, [each for each in named if each.text in text], act) for text, act in (first, second)]
    assert question in asked(*said)


def test_a_filler_a_supposition_and_a_heading_are_asked_about_by_nothing() -> None:
    method, salt = Named("methods", PHRASE, "method"), Named("road salt", PHRASE, "salt")
    weakened = Act("weaken", "road salt", "harbor bridge")

    assert (
        asked(
            ("New methods reduce the noise of pumps.", (method,), Act("reduce", "methods", "noise")),
            ("Some methods damage pipes of old houses.", (method,), Act("damage", "methods", "pipes")),
        )
        == []
    )
    assert (
        asked((SALT, (salt, BRIDGE), weakened), ("We ask whether frost hurts the harbor bridge.", (BRIDGE,), weakened))
        == []
    )
    assert asked((SALT, (salt, BRIDGE), weakened), ("How frost hurts the harbor bridge", (BRIDGE,), weakened)) == []


def test_a_figure_is_one_of_its_tale() -> None:
    wolf = Named("wolf", PHRASE, "wolf")
    deeds = [
        ("the wolf crossed the river at night .", "cross"),
        ("at dawn the wolf chased seven geese .", "chase"),
        ("the wolf buried a bone by the church .", "bury"),
    ]
    said = [(text, (wolf,), Act(verb, "wolf", "", True)) for text, verb in deeds]

    assert asked(*said, title="the wolf and the geese") == ["In “the wolf and the geese”, what did the wolf do?"]
    assert asked(*said, title="Wolves") == []


def test_one_statement_is_a_group_where_its_question_asks_no_more_than_it_tells() -> None:
    salt = Named("road salt", PHRASE, "salt")
    of_one = passages((SALT, (salt, BRIDGE), Act("weaken", "road salt", "harbor bridge")))
    questions = [group.question for group in groups_in(of_one, may_be_one=True)]
    assert questions == ["How does road salt affect the harbor bridge?", "What affects the harbor bridge?"]
    assert groups_in(of_one) == []

    was_done = passages((SALT, (salt, BRIDGE), Act("weaken", "road salt", "harbor bridge", past=True)))
    assert groups_in(was_done, may_be_one=True) == []


def test_a_tale_is_asked_what_a_figure_does_and_what_happens_to_one() -> None:
    fox, goose = Named("fox", PHRASE, "fox"), Named("old goose", PHRASE, "goose")
    told = passages(
        ("the fox caught the old goose in a meadow .", (fox, goose), Act("catch", "fox", "old goose", past=True)),
        title="the fox and the geese",
    )
    assert [group.question for group in groups_in(told, may_be_one=True)] == [
        "In “the fox and the geese”, what happens to the old goose?"
    ]


def test_a_site_says_something_about_a_matter_and_not_about_what_a_heading_shouts() -> None:
    matter, shouted = Named("business partners", PHRASE, "partner"), Named("SECURITY MEASURES", "concept", "measure")
    said = passages(
        ("We name our business partners and SECURITY MEASURES.", (matter, shouted), Act(STATED, "club.org", "")),
        title="club.org",
    )
    questions = [group.question for group in groups_in(said, may_be_one=True)]
    assert questions == ["What does club.org say about business partners?"]


def test_a_thing_without_its_article_and_a_plain_word_are_not_asked_about_by_one_statement() -> None:
    engine = Named("steam engine", PHRASE, "engine")
    said = "Millers used steam engine for the pumps."
    assert not groups_in(passages((said, (engine,), Act(f"use{PURPOSE}", "", "steam engine"))), may_be_one=True)
    concerns, salt = Named("concerns", PHRASE, "concern"), Named("road salt", PHRASE, "salt")
    told = passages(("Road salt raises concerns.", (salt, concerns), Act("raise", "", "concerns")))
    assert not groups_in(told, may_be_one=True)


@pytest.mark.parametrize(("name", "is_asked"), [("harbor keepers", True), ("harbor keeper", False)])
def test_people_are_asked_about_and_somebody_of_whom_no_more_is_said_is_not(name: str, is_asked: bool) -> None:
    salt, keepers = Named("road salt", PHRASE, "salt"), Named(name, PHRASE, "keeper")
    said = (f"Road salt weakens the {name} every winter.", (salt, keepers), Act("weaken", "road salt", name))
    questions = [group.question for group in groups_in(passages(said), may_be_one=True)]
    assert (f"What affects the {name}?" in questions) is is_asked


def test_an_article_that_a_quarter_of_the_passages_say_is_asked_with() -> None:
    engine = Named("steam engine", PHRASE, "engine")
    act = Act(f"use{PURPOSE}", "", "steam engine")
    texts = (
        "The Orr Mill used steam engine to grind corn.",
        "In summer steam engine was used for the pumps.",
        "Weavers of Lurr use steam engine for looms.",
        "At night a steam engine was used to light the pier.",
    )
    assert asked(*((text, (engine,), act) for text in texts)) == ["What is a steam engine used for?"]
