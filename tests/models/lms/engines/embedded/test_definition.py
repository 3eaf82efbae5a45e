"""A sentence that defines a name becomes a question that asks for it, where it tells the name apart from others."""

import pytest

from kraq_dspy.models.lms.engines.embedded.definition import ask_for_defined


@pytest.mark.parametrize(
    ("sentence", "question"),
    [
        (
            "Carrefour S.A. is a French multinational retailer headquartered in Massy, France, near Paris.",
            "Which French multinational retailer is headquartered in Massy?",
        ),
        (
            "Vivaaha Bhojanambu (English: Wedding) is a 1988 Telugu comedy film, produced by Jandhyala and directed "
            "by Jaya.",
            "Which 1988 Telugu comedy film was produced by Jandhyala?",
        ),
        (
            "Carol Martin (born 13 October 1957) is a former Australian politician who served as a Labor member of the "
            "Assembly of Western Australia.",
            "Which former Australian politician served as a Labor member of the Assembly of Western Australia?",
        ),
        (
            "Felicia Day is an American actress, comedian, and writer known for The Guild and Eureka.",
            "Which American actress is known for The Guild and Eureka?",
        ),
        (
            "Fort Knox is a United States Army post in Kentucky, south of Louisville.",
            "Which United States Army post is in Kentucky?",
        ),
        (
            "UMKC is a public research university serving the greater Kansas City metropolitan area.",
            "Which public research university serves the greater Kansas City metropolitan area?",
        ),
        (
            "Ambition was the sixth studio album released in 1996 by the metal band Mortification.",
            "What was the sixth studio album released in 1996 by the metal band Mortification?",
        ),
        (
            "Time Inc. is a media corporation founded on November 28, 1922 by Henry Luce.",
            "Which media corporation was founded on November 28, 1922 by Henry Luce?",
        ),
    ],
)
def test_the_name_is_asked_for_by_what_tells_it_apart(sentence: str, question: str) -> None:
    assert ask_for_defined(sentence)[1] == question


@pytest.mark.parametrize(
    "sentence",
    [
        "She was the first woman president of the Royal Institution.",  # names nobody
        "Another formation is a group in Leeds.",
        "Mehmet Tillem (born 1974) is a former Australian politician.",  # as are many
        "The Rush Medical College is the college of Rush Medical in Chicago.",  # would give itself away
        "Doctor Strange is a 2016 film based on the character of the same name.",
        "The United States presidential election of 1824 was the tenth quadrennial presidential election, held from "
        "Tuesday, October 26, to Thursday, December 2, 1824.",  # half a date
        "Peter is a part of the set in Leeds.",
        "Massy is a , odd town in France.",
        "Massy is the of known for it.",
        "Ada met Bob in London.",
    ],
)
def test_what_defines_nothing_or_no_one_thing_is_not_asked_for(sentence: str) -> None:
    assert ask_for_defined(sentence) == ("", "")
