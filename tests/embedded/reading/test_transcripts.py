"""Who speaks is told by the turns of a transcript, and what is said is asked about by who said it."""

from kraq_dspy.embedded.reading.reader import reader
from kraq_dspy.embedded.reading.transcripts import asked_of_turn, turns_of
from kraq_dspy.language.analysis import Named
from kraq_dspy.records import PHRASE

OFFER = Named("childcare offer", PHRASE, "offer")


def test_what_was_said_about_a_thing_is_asked_of_who_said_it() -> None:
    passage = (
        "Nora Quill: The childcare offer will reach every family in the valley by the summer.\n"
        "Chair: Thank you for that.\nNora Quill: Not at all."
    )
    analysis = reader().analysis(passage)
    assert analysis is not None
    asked = {each.question: each.answer for _, each in analysis.asked()}

    assert asked["What did Nora Quill say about the childcare offer?"].startswith("The childcare offer will reach")


def test_a_label_is_nobody_and_the_next_turn_ends_the_one_before() -> None:
    assert turns_of(["Nora Quill", "", "Note", ""], {"Nora Quill"}) == ["Nora Quill", "Nora Quill", "", ""]


def test_hesitation_and_any_one_of_many_are_not_asked_about() -> None:
    assert (
        asked_of_turn("Uh the childcare offer will um reach every family in the valley.", [OFFER], "Nora Quill") == []
    )
    assert asked_of_turn("A childcare offer may reach every family in the valley by then.", [OFFER], "Nora Quill") == []
    assert asked_of_turn("The childcare offer will reach every family in the valley.", [OFFER], "") == []


def test_what_points_to_the_turn_before_or_leads_the_meeting_is_no_answer() -> None:
    for said in (
        "It is monitored by the childcare offer of the valley, according to the law.",
        "We will now move on to the childcare offer of the whole valley.",
        "The childcare offer will reach every family in the valley, but—.",
    ):
        assert asked_of_turn(said, [OFFER], "Nora Quill") == []


def test_what_opens_a_turn_is_none_of_its_statement() -> None:
    passage = (
        "Nora Quill: So, Madam Chair, in May 2019 Tom Orr signed the harbor bill of Lurr.\n"
        "Chair: Thank you.\nNora Quill: Not at all."
    )
    analysis = reader().analysis(passage)
    assert analysis is not None
    asked = {each.question: each.answer for _, each in analysis.asked()}
    assert asked["When did Tom Orr sign the harbor bill of Lurr?"] == "May 2019"
