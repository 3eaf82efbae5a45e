"""Tests that pairs from question-answering data are written once, with their provenance, and without the question."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from stand_in import stand_in

from kraq_dspy.errors import ConfigError, TrainingError
from kraq_dspy.eval import Dataset, Example
from kraq_dspy.extend import LanguageModels
from kraq_dspy.finetune import Pair, chats_of, pairs_from_dataset, read_pairs
from kraq_dspy.finetune.pairs import leak
from kraq_dspy.finetune.teacher import PairWriter
from kraq_dspy.programs.kraq.describe import shown_summary
from kraq_dspy.records import Document
from kraq_dspy.settings import RoleSettings, Settings

SUMMARY = "Ada Lovelace is known for her notes on the Analytical Engine. She worked with Charles Babbage in London."


@pytest.mark.parametrize(
    ("summary", "question", "reason"),
    [
        (SUMMARY, "Who wrote the first programme?", None),
        (SUMMARY, "Where did Ada Lovelace live?", None),
        (SUMMARY + " Where did she work?", "Who was she?", "the summary has a question"),
        (SUMMARY + " This question is about Ada.", "Who was she?", "speaks of a question"),
        ("So where did Ada live, they said.", "Where did Ada live?", "the question's words"),
        ("They told when did the old queen of Bath die.", "When did the old queen of Bath reign?", "in a row"),
        ("In Bath the queen founded schools for orphans.", "Which queen founded orphans schools in Bath?", "telling"),
    ],
)  # fmt: skip
def test_a_summary_must_not_give_its_question_away(summary: str, question: str, reason: str | None) -> None:
    leaked = leak(summary, question)
    assert (leaked is None) if reason is None else (leaked is not None and reason in leaked)


@pytest.fixture
def dataset() -> Dataset:
    texts = [
        "Ada Lovelace lived in London. She wrote notes on the engine.",
        "Jane Austen lived in Bath. She wrote novels.",
    ]
    documents = tuple(Document(id=f"d{n}", title="", text=text) for n, text in enumerate(texts))
    questions = ["What did Lovelace write about?", "Jane Austen lived in Bath. She wrote novels?", "Who is who?"]
    evidence = [("d0",), ("d1",), ()]
    return Dataset(
        name="made",
        documents=documents,
        examples=tuple(
            Example(id=f"q{n}", question=question, answers=("novels",), supporting_ids=evidence[n])
            for n, question in enumerate(questions)
        ),
    )


def models(model: str = "embedded", **settings: Any) -> LanguageModels:
    return LanguageModels(Settings(roles={"default": RoleSettings(model=model, **settings)}))


def test_pairs_have_their_provenance_and_leaks_are_left_out_with_the_reason(dataset: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    report = pairs_from_dataset(dataset, out, models())
    assert (report.pairs, sum(report.rejected.values()), report.known) == (1, 1, 0)
    [pair] = read_pairs(out)
    assert pair.inputs["summary"].startswith("Ada Lovelace and London\nAda Lovelace lived in London.")
    assert pair.outputs == {"question": "What did Lovelace write about?"}
    assert (pair.source, pair.example_id, pair.document_ids, pair.model) == ("made", "q0", ("d0",), "embedded")
    [rejected] = [json.loads(line) for line in (tmp_path / "pairs.jsonl.rejected").read_text().splitlines()]
    assert (rejected["example_id"], "question's" in rejected["reason"]) == ("q1", True)


def test_what_is_decided_is_not_asked_again(dataset: Dataset, tmp_path: Path) -> None:
    out = tmp_path / "pairs.jsonl"
    pairs_from_dataset(dataset, out, models(), limit=1)
    before = out.read_text()
    asking = models()
    again = pairs_from_dataset(dataset, out, asking)
    assert (again.pairs, again.known, sum(again.rejected.values())) == (0, 1, 1)
    assert out.read_text() == before
    third = models()
    assert pairs_from_dataset(dataset, out, third).known == 2
    assert third.meter.total().calls == 0
    with stand_in() as server, pytest.raises(ConfigError, match="pairs of the teacher 'embedded'"):
        pairs_from_dataset(dataset, out, models("openai/other", api_base=server.url))


def test_a_summary_that_gives_its_question_away_is_written_once_more_and_a_good_one_is_not(
    dataset: Dataset, tmp_path: Path
) -> None:
    written = [SUMMARY + " What did she write?", SUMMARY, "never asked for"]

    class Teacher(dspy.Predict):
        async def acall(self, **inputs: Any) -> dspy.Prediction:
            return dspy.Prediction(title="Ada Lovelace", summary=written.pop(0))

    step = Teacher("passages, question -> title, summary")
    report = pairs_from_dataset(dataset, tmp_path / "pairs.jsonl", models(), limit=1, step=step)

    assert (report.pairs, written) == (1, ["never asked for"])


def test_rows_for_the_drafter_have_the_known_answer_and_its_reasons(dataset: Dataset, tmp_path: Path) -> None:
    pairs_from_dataset(dataset, tmp_path / "rows.jsonl", models(), kind="drafter")
    first = read_pairs(tmp_path / "rows.jsonl", "drafter")[0]
    assert first.outputs["response"] == "novels"
    assert first.outputs["rationale"]
    [chat] = chats_of([first], "drafter")
    assert [message["role"] for message in chat] == ["system", "user", "assistant"]
    assert "[[ ## rationale ## ]]" in chat[-1]["content"]


def test_data_without_evidence_and_files_without_pairs_are_refused(dataset: Dataset, tmp_path: Path) -> None:
    bare = Dataset("bare", dataset.documents, dataset.examples[2:])
    with pytest.raises(TrainingError, match="names its evidence"):
        pairs_from_dataset(bare, tmp_path / "none.jsonl", models())
    (tmp_path / "empty.jsonl").write_text("\n")
    with pytest.raises(TrainingError, match="holds no pairs"):
        read_pairs(tmp_path / "empty.jsonl")
    (tmp_path / "half.jsonl").write_text('{"summary": "Ada."}\n')
    with pytest.raises(TrainingError, match=r"half\.jsonl, line 1: question is None"):
        read_pairs(tmp_path / "half.jsonl")
    with pytest.raises(TrainingError, match="kraq finetune pairs"):
        read_pairs(tmp_path / "nowhere.jsonl")


def test_ids_do_not_depend_on_what_the_teacher_wrote() -> None:
    one, other = (Pair.generator(text, "Q?", source="s", example_id="1") for text in ("a", "b"))
    assert one.id == other.id != Pair.generator("a", "Q?", source="s", example_id="2").id


def test_a_line_separator_in_a_summary_is_no_end_of_a_pair(tmp_path: Path) -> None:
    pair = Pair.generator("One.\u2028Two.", "Which?", source="s", example_id="1")
    PairWriter(tmp_path / "pairs.jsonl", "").decide(pair, None)
    assert not PairWriter(tmp_path / "pairs.jsonl", "").is_new(pair.id)


def test_the_generator_is_trained_on_summaries_as_it_is_asked_about_them() -> None:
    assert shown_summary("Ada Lovelace", "She lived in London.") == "Ada Lovelace\nShe lived in London."
    assert shown_summary("", "She lived in London.") == "She lived in London."
