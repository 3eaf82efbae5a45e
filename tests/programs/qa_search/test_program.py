"""Runs QA search over a real FAQ cache of six questions; the model's replies come one by one from a list."""

import asyncio
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy import ContextWindowExceededError
from dspy.lm15 import Request, Response
from dspy.utils import DummyLM

from kraq_dspy.asset.store.faq import NewEntry
from kraq_dspy.asset.store.served_answers import ServedAnswers
from kraq_dspy.asset.store.vectors import LocalVectorStore
from kraq_dspy.errors import ConfigError, ServerDownError
from kraq_dspy.extend import FaqCache, KraqAdapter
from kraq_dspy.programs import QASearch
from kraq_dspy.programs.qa_search.program import failure_of, notes
from kraq_dspy.records import Chunk, Hit
from tests.conftest import KeywordEmbedder

OPEN, CLOSE, CARD, LOAN, FEE, RATE = range(1, 7)
ENTRIES = [
    ("How do I open an account?", "In the app, under New."),
    ("How do I close an account?", "Write to us."),
    ("Where is my card?", "It takes five days."),
    ("What does a loan cost?", "4 %."),
    ("Which fee is charged abroad?", "1 %."),
    ("What was the rate in 2019?", "0.5 %."),
]
NONE = {"number": "-1"}
SAME, OTHER = {"same": "True"}, {"same": "False"}


def named(number: int) -> dict[str, str]:
    return {"number": str(number)}


class Program(dspy.Module):
    """What stands behind the FAQ cache: says what it is told to, and keeps what it was asked."""

    def __init__(self, **fields: Any) -> None:
        super().__init__()
        self.fields = fields
        self.questions: list[str] = []

    def forward(self, question: str) -> dspy.Prediction:
        self.questions.append(question)
        if isinstance(error := self.fields.get("error"), Exception):
            raise error
        hit = Hit(Chunk("c1", "d1", 0, 0, 9, "The bank.", 3, title="bank"), 0.5, question, "dense")
        return dspy.Prediction(**{"answer": "from the program", "hits": [hit], "timings": {"wall": 1.0}, **self.fields})

    async def aforward(self, question: str) -> dspy.Prediction:
        return self.forward(question)


@pytest.fixture
def answers(tmp_path: Path, keyword_embedder: type[KeywordEmbedder]) -> Iterator[ServedAnswers]:
    embedder = keyword_embedder("account", "card", "loan", "fee", "rate", "open")
    faq = FaqCache(tmp_path / "faq.db")
    faq.add_all([NewEntry(question, answer) for question, answer in ENTRIES], by="test")
    store = LocalVectorStore(tmp_path / "vectors", embedder.dimension)
    yield ServedAnswers(faq, store, embedder)
    store.close()
    faq.close()


def ask(search: QASearch, question: str, replies: Sequence[dict[str, str]]) -> tuple[dspy.Prediction, list[str]]:
    """What comes of the question, the same when awaited; and the prompts."""
    lm, again = DummyLM(list(replies)), DummyLM(list(replies))
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        prediction = search(question=question)
    with dspy.context(lm=again, adapter=KraqAdapter()):
        awaited = asyncio.run(search.acall(question=question))
    assert (awaited.answer, awaited.source, awaited.entry) == (prediction.answer, prediction.source, prediction.entry)
    assert awaited.search.calls == prediction.search.calls == len(lm.history) == len(again.history)
    return prediction, [entry["messages"][-1]["content"] for entry in lm.history]


def test_a_question_of_the_same_meaning_gets_the_prepared_answer_and_the_program_is_not_asked(
    answers: ServedAnswers,
) -> None:
    program = Program()
    prediction, prompts = ask(QASearch(program, answers), "Tell me how to open an account", [named(OPEN), SAME])
    assert prediction.answer == "In the app, under New."
    assert (prediction.source, prediction.entry.number, prediction.hits) == ("faq", OPEN, [])
    assert (prediction.search.blocks, prediction.search.calls, prediction.search.exact) == (1, 2, False)
    assert "1: How do I open an account?" in prompts[0]
    assert program.questions == []


def test_a_question_that_is_there_word_for_word_costs_no_call(answers: ServedAnswers) -> None:
    prediction, prompts = ask(QASearch(Program(), answers), "  where is my CARD ", [])
    assert (prediction.answer, prediction.search.exact, prompts) == ("It takes five days.", True, [])


def test_its_lines_say_by_how_many_calls_an_entry_was_found_or_that_it_was_there_word_for_word(
    answers: ServedAnswers,
) -> None:
    by_calls, _ = ask(QASearch(Program(), answers), "Tell me how to open an account", [named(OPEN), SAME])
    by_words, _ = ask(QASearch(Program(), answers), "  where is my CARD ", [])

    assert [note.label for note in notes(by_calls)] == [f"entry {OPEN}, version 1 (2 calls): "]
    assert [note.label for note in notes(by_words)] == [f"entry {by_words.entry.number}, version 1 (word for word): "]


def test_without_a_match_the_program_answers_and_its_prediction_is_kept(answers: ServedAnswers) -> None:
    program = Program(extra=7)
    prediction, _ = ask(QASearch(program, answers), "Who founded the bank?", [NONE])
    assert (prediction.answer, prediction.source, prediction.entry) == ("from the program", "program", None)
    assert prediction.extra == 7
    assert [hit.chunk.id for hit in prediction.hits] == ["c1"]
    assert set(prediction.timings) == {"faq", "wall"}
    assert prediction.search.collected is False


@pytest.mark.parametrize("timings", [None, {"wall": 1.0}, ["one second"]])
def test_the_search_is_timed_beside_a_program_that_says_nothing_of_its_stages(
    answers: ServedAnswers, timings: object
) -> None:
    prediction, _ = ask(QASearch(Program(timings=timings), answers), "Who founded the bank?", [NONE])
    if isinstance(timings, list):
        assert prediction.timings == timings
    else:
        assert set(prediction.timings) == {"faq", "wall"}


def test_an_empty_faq_leads_straight_to_the_program(answers: ServedAnswers) -> None:
    for number in range(1, 7):
        answers.faq.remove(number, by="test")
    for scan in ("narrow", "full"):
        prediction, prompts = ask(QASearch(Program(), answers, scan=scan), "How do I open one?", [])
        assert (prediction.source, prediction.search.blocks, prompts) == ("program", 0, [])


def test_the_narrow_scan_shows_the_nearest_questions_alone_best_first(answers: ServedAnswers) -> None:
    _, [prompt] = ask(QASearch(Program(), answers, block=2), "Can one open an account online", [NONE])
    assert "1: How do I open an account?" in prompt
    assert "2: How do I close an account?" in prompt
    assert prompt.index("1: How") < prompt.index("2: How")
    assert "3: Where" not in prompt


def test_the_full_scan_goes_block_by_block_and_stops_at_the_first_match(answers: ServedAnswers) -> None:
    search = QASearch(Program(), answers, block=2, scan="full")
    prediction, prompts = ask(search, "Where did my card go?", [NONE, named(CARD), SAME])
    assert (prediction.entry.number, prediction.search.blocks) == (CARD, 2)
    assert [number for number, (text, _) in enumerate(ENTRIES, 1) if f"{number}: {text}" in prompts[0]] == [OPEN, CLOSE]
    assert [number for number, (text, _) in enumerate(ENTRIES, 1) if f"{number}: {text}" in prompts[1]] == [CARD, LOAN]
    missed, _ = ask(search, "Who founded the bank?", [NONE, NONE, NONE])
    assert (missed.source, missed.search.blocks) == ("program", 3)


def test_the_exhaustive_scan_asks_about_every_block_and_takes_the_first_that_was_found(answers: ServedAnswers) -> None:
    search = QASearch(Program(), answers, block=2, scan="exhaustive", check="none")
    prediction, prompts = ask(search, "What of my card and loan?", [named(OPEN), NONE, named(FEE)])
    assert (prediction.entry.number, prediction.search.blocks, len(prompts)) == (OPEN, 3, 3)


def test_the_nearest_scan_names_an_entry_without_a_call_and_has_it_looked_at_again(answers: ServedAnswers) -> None:
    search = QASearch(Program(), answers, scan="nearest")
    found, [prompt] = ask(search, "Tell me how to open an account", [SAME])
    assert (found.entry.number, found.search.calls, found.search.blocks) == (OPEN, 1, 0)
    assert "How do I open an account?" in prompt
    turned_down, _ = ask(search, "Where did my card go?", [OTHER])
    assert (turned_down.source, turned_down.search.calls) == ("program", 1)
    assert [rejected.entry.number for rejected in turned_down.search.rejected] == [CARD]
    unasked, prompts = ask(QASearch(Program(), answers, scan="nearest", check="rules"), "Where did my card go?", [])
    assert (unasked.entry.number, prompts) == (CARD, [])


@pytest.mark.parametrize("scan", ["narrow", "nearest"])
def test_what_is_less_similar_than_asked_for_is_not_looked_at(answers: ServedAnswers, scan: str) -> None:
    search = QASearch(Program(), answers, scan=scan, check="rules", similarity=0.9)
    missed, prompts = ask(search, "Is a fee due for my card, my loan and its rate?", [])  # no entry has more than one
    assert (missed.source, missed.search.blocks, prompts) == ("program", 0, [])
    found, _ = ask(search, "Where did my card go?", [named(CARD)] if scan == "narrow" else [])
    assert found.entry.number == CARD


@pytest.mark.parametrize(("reply", "invalid"), [("17", 1), ("none of them", 1), ("The match is number 3.", 0)])
def test_a_reply_that_names_no_entry_is_a_counted_miss_and_prose_around_a_number_is_not(
    answers: ServedAnswers, reply: str, invalid: int
) -> None:
    lm = DummyLM([{"number": reply}, SAME] if not invalid else [{"number": reply}] * 3)
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        prediction = QASearch(Program(), answers)(question="Where did my card go?")
    assert prediction.search.invalid == invalid
    assert (prediction.source, prediction.entry and prediction.entry.number) == (
        ("program", None) if invalid else ("faq", CARD)
    )


def test_a_near_miss_is_turned_down_by_a_rule_without_a_call_and_the_rest_is_asked_again(
    answers: ServedAnswers,
) -> None:
    search = QASearch(Program(), answers)
    prediction, prompts = ask(search, "How can I close an account of mine?", [named(OPEN), named(CLOSE), SAME])
    assert prediction.answer == "Write to us."
    [rejected] = prediction.search.rejected
    assert (rejected.entry.number, rejected.reason) == (OPEN, "opposites: close, open")
    assert "1: How do I open" not in prompts[1]
    assert (prediction.search.blocks, prediction.search.calls) == (1, 3)


def test_a_near_miss_that_no_rule_sees_is_turned_down_by_the_model(answers: ServedAnswers) -> None:
    question = "Where is my card charged?"
    prediction, _ = ask(QASearch(Program(), answers), question, [named(CARD), OTHER, NONE])
    assert (prediction.source, len(prediction.search.rejected)) == ("program", 1)
    by_rules, _ = ask(QASearch(Program(), answers, check="rules"), question, [named(CARD)])
    assert by_rules.source == "faq"


def test_the_rest_of_a_block_is_asked_about_before_the_next_block(answers: ServedAnswers) -> None:
    question = "Where is my card charged?"
    search = QASearch(Program(), answers, block=3, scan="full")
    _, prompts = ask(search, question, [named(CARD), OTHER, NONE, NONE])

    listed = [prompt for prompt in prompts if "catalogue" in prompt]
    assert "3: Where is my card?" in listed[0]
    assert "1: How do I open an account?" in listed[1]
    assert "3: Where is my card?" not in listed[1]
    assert "4: What does a loan cost?" in listed[2]


def test_another_year_passes_only_where_nothing_is_checked(answers: ServedAnswers) -> None:
    question = "What was the rate in 2018?"
    checked, _ = ask(QASearch(Program(), answers, check="rules"), question, [named(RATE), NONE])
    assert (checked.source, checked.search.rejected[0].reason) == ("program", "another number: 2018, 2019")
    unchecked, _ = ask(QASearch(Program(), answers, check="none"), question, [named(RATE)])
    assert unchecked.answer == "0.5 %."


def test_two_rejections_end_a_block(answers: ServedAnswers) -> None:
    replies = [named(OPEN), OTHER, named(CLOSE), OTHER]
    prediction, _ = ask(QASearch(Program(), answers), "An account, what is that?", replies)
    assert [rejected.entry.number for rejected in prediction.search.rejected] == [OPEN, CLOSE]


def test_only_approved_entries_are_served_and_a_change_counts_at_once(answers: ServedAnswers) -> None:
    search = QASearch(Program(), answers, block=1)
    answers.faq.change(CARD, by="test", status="stale")
    _, [prompt] = ask(search, "Where did my card go?", [NONE])
    assert "3: Where" not in prompt
    answers.faq.change(CARD, by="test", status="approved", answer="Six days.")
    prediction, _ = ask(search, "Where did my card go?", [named(CARD), SAME])
    assert prediction.answer == "Six days."
    added = answers.faq.add(NewEntry("Is a card free?", "Yes."), by="test").number
    again, _ = ask(QASearch(Program(), answers, block=2), "Does the card cost nothing?", [named(added), SAME])
    assert again.answer == "Yes."


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"answer": "I do not know."}, "I do not know."),
        ({"answer": ""}, ""),
        ({"answer": "I do not know", "response": "In 1900", "valid": False}, "In 1900"),
    ],
)
def test_what_the_program_cannot_answer_is_collected_with_its_evidence(
    answers: ServedAnswers, fields: dict[str, Any], answer: str
) -> None:
    prediction, _ = ask(QASearch(Program(**fields), answers), "Who founded the bank?", [NONE])
    entry = answers.faq.find("who founded the bank")
    assert entry is not None
    assert prediction.search.collected is True
    assert (entry.status, entry.given, entry.asked) == ("pending", answer, 2)  # asked and awaited
    assert [evidence.chunk_id for evidence in entry.evidence] == ["c1"]
    assert entry.failure == ("rejected" if "valid" in fields else "no answer")
    before = len(answers.faq.entries())
    ask(QASearch(Program(**fields), answers, collect=False), "Who leads the bank?", [NONE])
    assert len(answers.faq.entries()) == before


def test_a_program_that_fails_is_collected_and_a_server_that_is_down_is_not(answers: ServedAnswers) -> None:
    failing = ContextWindowExceededError(message="too long")
    for error, expected in ((failing, 1), (ServerDownError("nobody answers"), 0)):
        with (
            dspy.context(lm=DummyLM([NONE]), adapter=KraqAdapter()),
            pytest.raises(type(error)),
        ):
            QASearch(Program(error=error), answers)(question=f"Who founded {error}?")
        assert len([entry for entry in answers.faq.entries() if str(error) in entry.question]) == expected


class Small:
    """Takes prompts with up to two FAQ cache lines, names no match, and keeps how many lines it saw."""

    supports_function_calling = supports_reasoning = supports_response_schema = False
    supported_params = frozenset[str]()

    def __init__(self) -> None:
        self.lines: list[int] = []

    def complete(self, request: Request) -> Response:
        prompt = request.messages[-1].text
        lines = sum(f"{number}: {question}" in prompt for number, (question, _) in enumerate(ENTRIES, start=1))
        if lines > 2:
            raise ContextWindowExceededError(message="too long")
        self.lines.append(lines)
        return dspy.lm15.Response(
            id=None,
            model="small",
            message=dspy.lm15.Message.assistant(
                [dspy.lm15.TextPart("[[ ## number ## ]]\n-1\n\n[[ ## completed ## ]]")]
            ),
            finish_reason="stop",
            usage=dspy.lm15.Usage(input_tokens=1, output_tokens=1),
        )


def test_a_block_that_is_too_long_for_the_model_is_halved_until_it_fits(answers: ServedAnswers) -> None:
    engine = Small()
    with dspy.context(lm=dspy.LM("small", engine=engine, cache=False), adapter=KraqAdapter()):
        prediction = QASearch(Program(), answers, scan="full")(question="Who founded the bank?")
    assert sum(engine.lines) == len(ENTRIES)
    assert max(engine.lines) <= 2
    assert (prediction.source, prediction.search.failed) == ("program", 0)
    assert prediction.search.blocks == len(engine.lines)


def test_wrong_settings_are_refused(answers: ServedAnswers) -> None:
    with pytest.raises(ConfigError, match="no scan 'wide'"):
        QASearch(Program(), answers, scan="wide")
    with pytest.raises(ConfigError, match="no check 'twice'"):
        QASearch(Program(), answers, check="twice")
    with pytest.raises(ConfigError, match="'full' embeds nothing"):
        QASearch(Program(), answers, scan="full", similarity=0.8)
    with pytest.raises(ValueError, match="block is 0"):
        QASearch(Program(), answers, block=0)
    with pytest.raises(ConfigError, match="wrap it once"):
        QASearch(QASearch(Program(), answers), answers)
    with pytest.raises(ValueError, match="empty"):
        QASearch(Program(), answers)(question=" ")


@pytest.mark.parametrize(
    ("prediction", "failure"),
    [
        (None, "broke off"),
        (dspy.Prediction(answer="", hits=[]), "nothing found"),
        (dspy.Prediction(answer="I do not know", hits=["a hit"]), "no answer"),
        (dspy.Prediction(answer="I do not know", hits=["a hit"], valid=False), "rejected"),
    ],
)
def test_how_a_program_ended_is_told_at_once(prediction: dspy.Prediction | None, failure: str) -> None:
    assert failure_of(prediction) == failure
