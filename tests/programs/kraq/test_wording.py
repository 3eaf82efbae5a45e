"""A model words what the parse asks, and checks decide whether its words or those of the parse stay."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy import Index, build_index, signatures
from kraq_dspy.embedded.testset.facts import question_for
from kraq_dspy.extend import KraqAdapter
from kraq_dspy.language.analysis import Analysis, Asked, Sentence
from kraq_dspy.programs.kraq.wording import PutInWords, asked_kind, fault_in, fault_in_passage, stated_in
from kraq_dspy.records import PARSE, Failure
from kraq_dspy.settings import RoleSettings, Settings

RECORDED = Path(__file__).resolve().parents[2] / "recorded"
STATEMENT = "The Harrow lighthouse was mended by Nora Quill in 1911, before the storm reached the coast."


class Asker(DummyLM):
    """Words what the parse asks of a statement by `wording`."""

    def __init__(self, name: str, wording: Callable[[str], str]) -> None:
        super().__init__([])
        self.model, self.wording, self.calls = name, wording, 0

    def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
        self.calls += 1
        request = str(prompt.messages[-1].content if messages is None else messages[-1]["content"])
        given = re.search(r"## statement ## ]]\s+(.+?)\s+\[\[ ## answer ## ]]\s+(.+?)\n", request, re.DOTALL)
        assert given is not None
        self.answers = iter([{"question": self.wording(question_for(given[1], given[2]))}])
        return super().forward(prompt, messages, **kwargs)


def in_other_words(question: str) -> str:
    """ "When did" as "In which year did", "What" as "Which thing", "Who" as "Which person"."""
    question = question.replace("When ", "In which year ").replace("Who ", "Which person ")
    return question.replace("What ", "Which thing ")


@pytest.mark.parametrize(
    ("question", "answer", "word", "fault"),
    [
        ("In which year was the Harrow lighthouse mended?", "1911", "when", ""),
        ("Who mended the Harrow lighthouse before the storm?", "Nora Quill", "who", ""),
        ("Which person mended the Harrow lighthouse?", "Nora Quill", "who", ""),
        (
            "When did Nora Quill’s mended Harrow lighthouse face the storm's reach?",
            "1911",
            "when",
            "says what the statement does not: face",
        ),
        ("Where did Nora Quill's storm reach the lighthouse?", "the coast", "where", ""),
        ("Who mended the Harrow lighthouse in 1912?", "Nora Quill", "who", "says what the statement does not: 1912"),
        ("Who painted the Harrow lighthouse?", "Nora Quill", "who", "says what the statement does not: painted"),
        ("Where was the Harrow lighthouse mended?", "1911", "when", "asks where where the answer says when"),
        ("When did Nora Quill mend it before the storm?", "1911", "when", "points at something that it does not name"),
        ("Which person called Nora Quill mended the lighthouse?", "Nora Quill", "who", "has its own answer"),
        ("The Harrow lighthouse was mended in 1911?", "1911", "when", "begins with no question word"),
        ("Who mended the lighthouse in the text of this passage?", "Nora Quill", "who", "speaks of the text"),
        ("Who mended it?", "Nora Quill", "who", "is of 3 words, not of 5 to 22"),
        ("", "1911", "when", "is empty"),
    ],
)
def test_what_the_statement_does_not_answer_or_say_is_a_fault(
    question: str, answer: str, word: str, fault: str
) -> None:
    told = fault_in(question, STATEMENT, answer, word)
    assert told.startswith(fault)
    assert bool(told) == bool(fault)


def test_a_question_of_what_may_ask_for_a_year_a_country_or_a_number() -> None:
    kinds = [asked_kind(f"{begun} the mill?") for begun in ("What year saw", "In which country is", "How long is")]
    assert kinds == ["when", "where", "how many"]


def test_the_statement_is_found_by_its_question_with_the_title_where_that_is_needed() -> None:
    asked = Asked("When was Nora Quill born?", "in 1880", "when", 0.5)
    other = Asked("When did she marry?", "in 1901", "when", 0.5)
    unsaid = Asked("What does Acme share?", "names", "what", 0.5)
    analysis = Analysis("Nora Quill", (Sentence("She was born in 1880.", asked=(asked, other, unsaid)),))
    stated = stated_in("When was Nora Quill born?", [Analysis("", ()), analysis])
    assert stated is not None
    assert stated.statement == "Nora Quill\nShe was born in 1880."
    assert stated_in("What does Acme share?", [analysis]) is None  # nothing at hand says who that is
    assert stated_in("Where was Nora Quill born?", [analysis]) is None


def test_a_question_about_a_tale_goes_on_saying_which_one() -> None:
    king = {"statement": "The king gave the tailor a golden ring.", "answer": "The king", "word": "who"}
    with dspy.context(lm=DummyLM([{"question": "Who gave the tailor a golden ring?"}])):
        worded = PutInWords()(**king, own="In “The Brave Tailor”, who gave his ring?")
    assert worded.question == "In “The Brave Tailor”, who gave the tailor a golden ring?"


def test_a_wording_of_another_part_of_the_statement_is_not_kept() -> None:
    nora = {"statement": STATEMENT, "answer": "Nora Quill", "word": "who"}
    own = "Who mended the Harrow lighthouse in 1911?"
    with dspy.context(lm=DummyLM([{"question": "Who reached the coast before the storm?"}])):
        kept = PutInWords()(**nora, own=own)
    assert (kept.question, kept.fault) == (own, "asks something else than the parse")


def built(folder: Path, asker: Asker | None, settings: Settings) -> list[tuple[str, str]]:
    for place, year in (("Oslo", 1911), ("Bern", 1912), ("Lima", 1913)):
        text = f"{place} Steel bought {place} Rail in {year}. Then {place} Rail left {place} Steel."
        (folder / f"{place}.txt").write_text(text)
    build_index(folder, folder / "out.kraq", settings=settings, lm={} if asker is None else {"asker": asker})
    with Index.open(folder / "out.kraq") as index:
        assert not list(index.all(Failure))
        return sorted((question.text, question.model) for question in index.questions(duplicates=True))


def test_communities_questions_are_worded_where_the_role_is_set_and_say_who_worded_them(tmp_path: Path) -> None:
    with_role = Settings(roles={"default": RoleSettings(), "asker": RoleSettings()})
    by_parse = built(tmp_path, None, Settings())
    assert {model for _, model in by_parse} == {PARSE}

    strange = Asker("strange", lambda question: "Who sold the old mill of Harrow?")
    assert (built(tmp_path, strange, Settings()), strange.calls) == (by_parse, 0)  # the role is not set
    assert built(tmp_path, strange, with_role) == by_parse  # nothing is asked that the statement does not say
    assert strange.calls == len(by_parse)

    fitting = Asker("fitting", in_other_words)
    worded = built(tmp_path, fitting, with_role)
    assert worded == sorted((in_other_words(question), "fitting") for question, _ in by_parse)
    assert fitting.calls == len(by_parse)
    assert built(tmp_path, fitting, with_role) == worded
    assert fitting.calls == len(by_parse)  # kept, like every answer of a model


PASSAGE = "Quill's shop\nYou may return a lamp within a month. Nora Quill shares no addresses before she has asked."


@pytest.mark.parametrize(
    ("question", "fault"),
    [
        ("Which lamp may customers return within a month?", ""),  # the passage addresses them as "you"
        ("What must Nora Quill ask before she is sharing addresses?", ""),
        ("Which addresses does Nora Quill share?", ""),
        ("In “Quill's shop”, how can I return the lamp within a month?", ""),  # whoever asks
        ("Who is Quill of the shop?", "does not say what it is about"),  # no more than the title
        ("Who returns the lamp?", "does not say what it is about"),
        ("Which lamp may he return within a month?", "does not say which thing it asks about"),
        ("Which lamp may Nora Quill return to our shop?", "points at something that it does not name"),
        ("What is the main purpose of the lamp shop?", "says what the statement does not: main"),
    ],
)
def test_a_question_about_a_passage_says_nothing_that_it_does_not(question: str, fault: str) -> None:
    assert fault_in_passage(question, PASSAGE) == fault


def test_a_recorded_question_that_asks_only_who_the_title_is_has_a_fault() -> None:
    rows = map(json.loads, (RECORDED / "GenerateQuestion.jsonl").read_text("utf-8").splitlines())
    [row] = [row for row in rows if row["form"] == "a passage"]
    question = KraqAdapter().parse(signatures.GenerateQuestion, row["reply"])["question"]
    assert fault_in_passage(question, row["inputs"]["summary"]) == "does not say what it is about"
