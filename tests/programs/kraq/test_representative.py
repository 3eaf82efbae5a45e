"""A community is asked first about what several passages tell, and keeps no topic where a passage answers something."""

import os
import subprocess
import sys
from dataclasses import replace

import pytest

from kraq_dspy.language.analysis import Act, Analysis, Asked, Named, Sentence
from kraq_dspy.programs.kraq.representative import Representative, representatives
from kraq_dspy.records import PHRASE

BRIDGE = Named("harbor bridge", PHRASE, "bridge")
SALT, TRUCKS = Named("road salt", PHRASE, "salt"), Named("heavy trucks", PHRASE, "truck")
BUILT = Asked("Who built the harbor bridge of Harrow in 1902?", "Mira Tolan", "who", 0.9, ("harbor bridge",))
BY_SALT = Sentence(
    "Road salt weakens the harbor bridge every winter.",
    (SALT, BRIDGE),
    asked=(BUILT,),
    acts=(Act("weaken", "road salt", "harbor bridge"),),
)
BY_TRUCKS = Sentence(
    "Heavy trucks damage the harbor bridge by day.",
    (TRUCKS, BRIDGE),
    acts=(Act("damage", "heavy trucks", "harbor bridge"),),
)


def test_what_several_passages_answer_comes_before_what_one_statement_does() -> None:
    passages = {"a": Analysis("", (BY_SALT,)), "b": Analysis("", (BY_TRUCKS,))}
    asked = representatives(passages, {"harbor bridge": 1.0})
    assert [each.question for each in asked[:2]] == ["What affects the harbor bridge?", BUILT.question]


def test_a_statement_comes_before_a_form_that_one_statement_answers() -> None:
    asked = representatives({"a": Analysis("", (BY_SALT,))}, {"harbor bridge": 1.0})
    assert asked[0] == Representative(BUILT.question, chunk_id="a")
    assert "How does road salt affect the harbor bridge?" in [each.question for each in asked]


def test_a_narrow_community_is_asked_about_what_its_passages_tell_of_others_and_a_broad_one_is_not() -> None:
    narrow = {"a": Analysis("", (BY_SALT,))}
    assert representatives(narrow, {"winter": 1.0})[0].question == BUILT.question
    assert representatives({id: Analysis("", (BY_SALT,)) for id in "abcd"}, {"winter": 1.0}) == []


def test_a_statement_of_the_weightiest_name_comes_before_a_better_question_of_a_lesser_one() -> None:
    spread = Asked("Who spread the road salt of Harrow in 1902?", "Mira Tolan", "who", 0.9, ("road salt",))
    built = replace(BUILT, weight=0.5)
    sentences = (
        Sentence("Mira Tolan spread the road salt.", (SALT,), asked=(spread,)),
        Sentence("Mira Tolan built the harbor bridge.", (BRIDGE,), asked=(built,)),
    )
    asked = representatives({"a": Analysis("", sentences)}, {"harbor bridge": 9.0, "road salt": 1.0})
    assert [each.question for each in asked] == [built.question, spread.question]


NEARNESS = """
import random
from kraq_dspy.programs.kraq.representative import _nearness_to_middle

chance = random.Random(0)
words = [f"word{number}x" for number in range(300)]
print(_nearness_to_middle([" ".join(chance.choices(words, k=40)) for _ in range(50)]))
"""


def test_what_stands_for_a_community_does_not_depend_on_the_process_that_chooses(
    capsys: pytest.CaptureFixture[str],
) -> None:
    exec(NEARNESS, {})  # in this process, whose hashes are of another seed
    elsewhere = subprocess.run(
        [sys.executable, "-c", NEARNESS],
        env={**os.environ, "PYTHONHASHSEED": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert elsewhere.stdout == capsys.readouterr().out != ""
