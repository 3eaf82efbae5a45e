"""Tests synthetic pairs of a real index: made once, kept when all critics agree, counted otherwise."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy import Index
from kraq_dspy.asset.store.faq import NewEntry, content_hash
from kraq_dspy.errors import ConfigError, IndexStateError
from kraq_dspy.extend import FaqCache
from kraq_dspy.indexing.faq.synthesize import (
    AUDIENCE,
    RATE,
    WRITE,
    SyntheticPlan,
    SyntheticReport,
    critics_of,
    make_synthetic_pairs,
)
from kraq_dspy.records import AnswerSource, Chunk, Document, Hit
from kraq_dspy.settings import ChunkSettings, Settings
from tests.indexing.scripted import Models

TEXTS = {
    "d1": "Ada Lovelace wrote notes.",
    "d2": "Charles Babbage built engines.",
    "d3": "It rained on Monday.",
    "d4": "Lord Byron wrote Don Juan.",
}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index.create(tmp_path / "i.kraq", Settings(), encoder_name="none", encoder_dimension=2) as index:
        index.add([Document(name, "", text) for name, text in TEXTS.items()])
        yield index


def critics(audience: str, **marks: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Replies by what is in the prompt of each critic of "Who is NAME?"; `marks` by name and critic, 5 unless given."""
    replies = {}
    for name in (text.split()[0] for text in TEXTS.values()):
        question = f"[[ ## question ## ]]\nWho is {name}?"
        for critic, prompt in (
            ("groundedness", f"{question}\n\n[[ ## answer ## ]]"),
            ("relevance", f"{audience}\n\n{question}"),
            ("stand_alone", question),
        ):
            replies[prompt] = {"evaluation": "So.", critic: marks.get(name, {}).get(critic, 5)}
    return replies


def scripted(**marks: dict[str, Any]) -> DummyLM:
    """Asks "Who is NAME?" of each passage but the rainy one, and rates it."""
    pairs = {
        text: {"question": f"Who is {text.split()[0]}?", "answer": text.split()[-1][:-1]} for text in TEXTS.values()
    }
    return DummyLM({**critics(AUDIENCE, **marks), **pairs, TEXTS["d3"]: {"question": "", "answer": ""}})


def made(index: Index, faq: FaqCache, lm: dspy.LM, **options: Any) -> SyntheticReport:
    approve = options.pop("approve", False)
    return make_synthetic_pairs(index, faq, Models(lm), SyntheticPlan(**options), by="ann", approve=approve)


def test_pairs_that_all_critics_praise_wait_for_review_and_the_rest_is_counted(index: Index, faq: FaqCache) -> None:
    models = Models(scripted(Charles={"groundedness": 4}, Lord={"stand_alone": 2}))
    report = make_synthetic_pairs(index, faq, models, by="ann")
    assert (report.chunks, report.pairs, report.empty, report.added, report.failures) == (4, 3, 1, 1, 0)
    assert report.rejected == {"groundedness": 1, "relevance": 0, "stand_alone": 1}
    [entry] = faq.entries()
    assert (entry.question, entry.answer, entry.status, entry.origin) == (
        "Who is Ada?",
        "notes",
        "pending",
        "synthetic",
    )
    assert entry.sources == (AnswerSource("d1", content_hash(Document("d1", "", TEXTS["d1"]))),)
    assert {"generator", "judge"} <= set(models.roles)


def test_a_second_run_asks_nothing_and_brings_back_nothing_that_was_removed(index: Index, faq: FaqCache) -> None:
    made(index, faq, scripted(), approve=True)
    assert {entry.status for entry in faq.entries()} == {"approved"}
    faq.remove(1, by="bob")
    again = made(index, faq, DummyLM([]))
    assert (again.pairs, again.added, again.known) == (3, 0, 3)
    assert len(faq.entries()) == 2


def test_another_audience_asks_the_critics_again_and_keeps_the_pairs(index: Index, faq: FaqCache) -> None:
    made(index, faq, scripted(Ada={"relevance": 3}))
    report = made(index, faq, DummyLM(critics("poets")), audience="poets")
    assert (report.added, report.known) == (1, 2)


def test_an_invalid_rating_is_a_failure_that_the_next_run_tries_again(index: Index, faq: FaqCache) -> None:
    report = made(index, faq, scripted(Ada={"relevance": "splendid"}))
    assert (report.added, report.failures, sum(report.rejected.values())) == (2, 1, 0)
    assert [failure.stage for failure in index.results.failures()] == [RATE]
    assert made(index, faq, scripted()).added == 1
    assert index.results.failures() == []


def kept(index: Index, stage: str) -> int:
    """How many items of a stage have an output."""
    with index._database.reading() as connection:
        return int(connection.execute("SELECT count(*) FROM results WHERE stage = ?", (stage,)).fetchone()[0])


def test_an_answer_that_contradicts_the_faq_is_left(index: Index, faq: FaqCache) -> None:
    faq.add(NewEntry("who is ada", "A countess."), by="bob")
    report = made(index, faq, scripted())
    assert (report.added, report.conflicts) == (2, 1)
    assert faq.get(1).answer == "A countess."


def test_a_limit_is_spread_over_the_documents_and_what_left_the_index_is_forgotten(index: Index, faq: FaqCache) -> None:
    report = made(index, faq, scripted(), limit=2)
    assert (report.chunks, report.pairs, report.empty) == (2, 1, 1)  # the first and the third
    assert kept(index, WRITE) == 2
    index.delete(Document, ["d1"])
    made(index, faq, scripted())
    assert kept(index, WRITE) == 3


def test_chunks_have_the_size_that_was_asked_for(index: Index, faq: FaqCache) -> None:
    index.add([Document("long", "", " ".join(TEXTS.values()))])
    whole = made(index, faq, scripted(), limit=1)
    assert whole.chunks == 1
    assert made(index, faq, scripted(), chunks=ChunkSettings(tokens=6, overlap=0)).chunks >= 8


def test_an_index_without_text_says_what_to_do(index: Index, faq: FaqCache) -> None:
    index.replace(Document, [])
    with pytest.raises(IndexStateError, match="kraq index"):
        made(index, faq, scripted())


class Finder:
    """Finds the chunk of one document, whatever is asked."""

    def __init__(self, document_id: str) -> None:
        self.document_id = document_id

    def __call__(self, question: str, k: int, **options: Any) -> list[Hit]:
        text = TEXTS[self.document_id]
        return [Hit(Chunk("c", self.document_id, 0, 0, len(text), text, 4), 1.0, "dense")]


def rereading(*answers: str) -> DummyLM:
    """Asks as `scripted` does, and answers each question with what `answers` say after its name: "Ada notes"."""
    replies: dict[str, dict[str, Any]] = {
        f"[[ ## question ## ]]\nWho is {name}?": {"answer": again} for name, again in (each.split() for each in answers)
    }
    pairs = {
        text: {"question": f"Who is {text.split()[0]}?", "answer": text.split()[-1][:-1]} for text in TEXTS.values()
    }
    return DummyLM({**replies, **pairs, TEXTS["d3"]: {"question": "", "answer": ""}})


def test_pairs_that_do_not_give_their_answer_again_are_rejected_without_a_rating(index: Index, faq: FaqCache) -> None:
    lm = rereading("Ada notes", "Charles Babbage", "Lord Juan")
    report = made(index, faq, lm, critics="roundtrip")
    assert (report.pairs, report.added, report.empty, report.failures) == (3, 2, 1, 0)
    assert report.rejected == {"retrieval": 0, "rereading": 1}
    assert {entry.question for entry in faq.entries()} == {"Who is Ada?", "Who is Lord?"}
    again = made(index, faq, DummyLM([]), critics="roundtrip")
    assert (again.calls, again.known, again.rejected) == (0, 2, {"retrieval": 0, "rereading": 1})


def test_a_question_that_does_not_find_its_passage_is_rejected_before_the_judge_is_asked(
    index: Index, faq: FaqCache
) -> None:
    plan = SyntheticPlan(critics="roundtrip")
    models = Models(rereading("Ada notes"))
    report = make_synthetic_pairs(index, faq, models, plan, by="ann", retriever=Finder("d1"))  # type: ignore[arg-type]
    assert (report.added, report.failures, report.rejected) == (1, 0, {"retrieval": 2, "rereading": 0})
    assert kept(index, RATE) == 1
    assert [entry.question for entry in faq.entries()] == ["Who is Ada?"]


@pytest.mark.parametrize(
    ("plan", "judge", "critics"),
    [
        (SyntheticPlan(), "gguf/qwen2.5-coder-1.5b", "roundtrip"),
        (SyntheticPlan(), "hosted_vllm/Qwen2.5-7B", "ratings"),
        (SyntheticPlan(), "embedded", "ratings"),
        (SyntheticPlan(least=4), "gguf/qwen2.5-coder-1.5b", "ratings"),
        (SyntheticPlan("poets"), "gguf/qwen2.5-coder-1.5b", "ratings"),
        (SyntheticPlan(critics="ratings"), "gguf/qwen2.5-coder-1.5b", "ratings"),
        (SyntheticPlan(critics="roundtrip"), "hosted_vllm/Qwen2.5-7B", "roundtrip"),
    ],
)
def test_a_judge_too_small_to_rate_reads_again_unless_ratings_are_asked_for(
    plan: SyntheticPlan, judge: str, critics: str
) -> None:
    assert critics_of(plan, judge) == critics


def test_a_roundtrip_rates_nothing_for_anybody() -> None:
    for plan in (SyntheticPlan("poets", critics="roundtrip"), SyntheticPlan(least=5, critics="roundtrip")):
        with pytest.raises(ConfigError, match="rates nothing"):
            critics_of(plan, "embedded")
