"""Thanks, greetings and assent are told from questions."""

import pytest

from kraq_dspy.embedded.social_turns import social_kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("ok great, thank you very much", "thanks"),
        ("Thanks!", "thanks"),
        ("cool thx", "thanks"),
        ("Thanks for the help, that was great!", "thanks"),
        ("Vielen Dank!", "thanks"),
        ("Merci beaucoup", "thanks"),
        ("谢谢", "thanks"),
        ("Hello there", "greeting"),
        ("hi, how are you?", "greeting"),
        ("Good morning", "greeting"),
        ("Perfect.", "assent"),
        ("got it", "assent"),
        ("cheers mate", "thanks"),
        ("ta", "thanks"),
        ("thx :)", "thanks"),
        ("much appreciated", "thanks"),
        ("that helped, thanks", "thanks"),
        ("🙏", "thanks"),
        ("thanks <3", "thanks"),
        ("👋", "greeting"),
        ("bye for now", "greeting"),
        ("👍", "assent"),
        ("👍🏽", "assent"),
        (":)", "assent"),
        ("nice one", "assent"),
    ],
)
def test_a_social_turn_has_its_kind(text: str, kind: str) -> None:
    assert social_kind(text) == kind


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Thanks! And who owns the mill?",
        "Great, and who owns it?",
        "Who said thanks?",
        "Is it good?",
        "And Hello?",
        "Nice",
        "👍 and who owns it?",
        "cool star",
        "perfect pitch",
        "great wall",
        "?",
        "---",
        "no",
        "yes",
        "Thank you letter format",
        "great barrier reef",
        "OK Computer",
        "thanks 12",
        "thanks " * 500,
    ],
)
def test_a_question_and_a_topic_have_none(text: str) -> None:
    assert social_kind(text) == ""
