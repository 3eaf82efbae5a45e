"""Tests that what was paid for is kept in one way in every run's own file, and that files of earlier versions serve."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy._internal.files import try_lock
from kraq_dspy.errors import ConfigError, EvaluationError, IndexLockedError, KraqError
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.rows import RowWriter, RunHeader, forget_failed
from kraq_dspy.finetune.teacher import PairWriter
from kraq_dspy.optimize.kept_answers import kept_answers
from kraq_dspy.papers.tables.replies import kept_replies
from kraq_dspy.ports import SilentProgress
from kraq_dspy.steps.journal import JournalFile
from kraq_dspy.steps.kept import outcome_file

HEADER = RunHeader("evaluation", "asked", settings={}, seeds={}, models={})


def draft_of_a_test_set(path: Path) -> set[Any]:
    return set(outcome_file(path, "the draft of a test set", EvaluationError))


def replies_of_a_compile(path: Path) -> set[Any]:
    answers = kept_answers(path)
    answers.close()
    return set(answers)


def references_of_a_table(path: Path) -> set[Any]:
    """The ids of the questions that are not asked, of two."""
    asked: set[str] = set()
    replies_to(["q1", "q2"], path, dspy.LM("openai/teacher"), asked)
    return {"q1", "q2"} - asked


def replies_to(ids: Sequence[str], path: Path, lm: dspy.LM, asked: set[str]) -> dict[str, Any]:
    """The replies of a model, which says its name; `asked` gets the ids of the questions that it was asked."""

    def ask(example: Example) -> str:
        asked.add(example.id)
        return str(lm.model)

    examples = [Example(id, f"What is {id}?", ()) for id in ids]
    return kept_replies(path, "references", examples, ask, lm, at_once=1, progress=SilentProgress())


def pairs_for_training(path: Path) -> set[Any]:
    writer = PairWriter(path, "embedded")
    return {pair_id for pair_id in ("p1", "p2") if not writer.is_new(pair_id)}


def pairs_that_were_rejected(path: Path) -> set[Any]:
    path.rename(path.with_name("pairs.jsonl.rejected"))
    return pairs_for_training(path.with_name("pairs.jsonl"))


def rows_of_a_run(path: Path) -> set[Any]:
    path.rename(path.with_name("rows.jsonl"))
    return set(RowWriter(path.parent, HEADER).done)


PAIR = '{"id": "p%d", "summary": "Ada lived.", "question": "Who?", "source": "made", "model": "embedded"%s}'
ROW = '{"question_id": "q%d", "system": "dense", "answer": "", "metrics": {"recall@5": 1.0}, "hit_ids": ["c1"]}'
FORMS: dict[str, tuple[Callable[[Path], set[Any]], str, str, Any]] = {
    "draft": (
        draft_of_a_test_set,
        '{"key": "k1", "output": {"question": "Where did Ada live?", "rejected": ""}}',
        '{"key": "k2", "output": {"question": "Wo lebte Ada Gräfin?", "rejected": ""}}',
        {"k1", "k2"},
    ),
    "compile": (
        replies_of_a_compile,
        '{"key":"k1","answer":{"model":"m","message":{"parts":[{"type":"text","text":"London"}]}}}',
        '{"key":"k2-1","answer":{"model":"m","message":{"parts":[{"type":"text","text":"Bath"}]}}}',
        {"k1", "k2-1"},
    ),
    "references": (
        references_of_a_table,
        '{"id": "q1", "reply": "London"}',
        '{"id": "q2", "reply": ["Where?", "In which city?"]}',
        {"q1", "q2"},
    ),
    "pairs": (pairs_for_training, PAIR % (1, ""), PAIR % (2, ""), {"p1", "p2"}),
    "rejected": (
        pairs_that_were_rejected,
        PAIR % (1, ', "reason": "telling"'),
        PAIR % (2, ', "reason": "telling"'),
        {"p1", "p2"},
    ),
    "rows": (rows_of_a_run, ROW % 1, ROW % 2, {("dense", "q1"), ("dense", "q2")}),
}
"""Of each file: who reads it, two lines as version 1.0 wrote them, and what is paid for by them."""


@pytest.mark.parametrize("form", FORMS)
def test_a_file_of_an_earlier_version_is_paid_for(form: str, tmp_path: Path) -> None:
    keys_in, first, second, keys = FORMS[form]
    path = tmp_path / "file.jsonl"
    path.write_text(f"{first}\n{second}\n", "utf-8")

    assert keys_in(path) == keys


@pytest.mark.parametrize("form", FORMS)
def test_a_last_line_that_a_crash_cut_off_is_asked_for_again_and_nothing_else_is(form: str, tmp_path: Path) -> None:
    keys_in, first, second, keys = FORMS[form]
    path = tmp_path / "file.jsonl"
    path.write_bytes(f"{first}\n{second}".encode()[:-5])

    assert len(keys_in(path)) == 1 < len(keys)


@pytest.mark.parametrize("form", FORMS)
def test_a_line_of_another_file_is_named_with_its_place(form: str, tmp_path: Path) -> None:
    keys_in, first, _, _ = FORMS[form]
    path = tmp_path / "file.jsonl"
    path.write_text(f'{first}\n{{"name": "Ada"}}\n', "utf-8")

    with pytest.raises((ConfigError, EvaluationError), match=r"jsonl(\.rejected)?, line 2 is not a line of the "):
        keys_in(path)


def test_what_another_model_replied_is_asked_again(tmp_path: Path) -> None:
    """A run that was ended before its first row may go on with another teacher; its references are not mixed."""
    path, asked = tmp_path / "references.jsonl", set[str]()
    replies_to(["q1"], path, dspy.LM("openai/first"), asked)

    replies = replies_to(["q1", "q2"], path, dspy.LM("openai/second"), asked)
    assert replies == {"q1": "openai/second", "q2": "openai/second"}
    asked.clear()
    assert replies_to(["q1"], path, dspy.LM("openai/first"), asked) == {"q1": "openai/first"}
    assert asked == set()


@contextmanager
def in_another_process(path: Path) -> Iterator[None]:
    """The file as a journal of another process has it: a lock knows descriptors, and this one is nobody's here."""
    with path.open("ab") as file:
        assert try_lock(file.fileno())
        yield


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_another_process_writes_is_named_and_left_as_it_is(form: str, tmp_path: Path) -> None:
    keys_in, first, second, _ = FORMS[form]
    path = tmp_path / "file.jsonl"
    path.write_text(f"{first}\n{second[:9]}", "utf-8")  # it is writing its second line

    with in_another_process(path), pytest.raises(IndexLockedError, match=r"^Another process is writing the .* '.*json"):
        keys_in(path)
    [left] = tmp_path.iterdir()
    assert left.read_text("utf-8") == f"{first}\n{second[:9]}"


def test_of_two_processes_that_begin_a_file_the_later_one_ends_at_its_first_line(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    journal = JournalFile(path, of_key, "the draft", KraqError)
    path.touch()

    with in_another_process(path), pytest.raises(IndexLockedError):
        journal.keep({"key": "a", "output": 1})
    assert not journal
    assert not path.read_text("utf-8")
    journal.keep({"key": "a", "output": 1})
    assert list(journal) == ["a"]


def test_a_run_goes_on_in_the_process_in_which_it_failed_and_another_one_waits_for_both(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    failed = JournalFile(path, of_key, "the draft", KraqError)
    failed.keep({"key": "a", "output": 1})
    again = JournalFile(path, of_key, "the draft", KraqError)
    again.keep({"key": "b", "output": 2})

    failed.close()
    with path.open("rb") as file:
        assert not try_lock(file.fileno())
        again.close()
        assert try_lock(file.fileno())


def test_failed_rows_stay_while_another_process_writes_rows(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(ROW.replace('"metrics": {"recall@5": 1.0}', '"failure": "busy"') % 1 + "\n", "utf-8")

    with in_another_process(path), pytest.raises(IndexLockedError):
        forget_failed(tmp_path)
    assert forget_failed(tmp_path) == 1


def of_key(line: Any) -> tuple[str, Any]:
    return line["key"], line["output"]


def test_whatever_text_a_model_writes_is_read_back_as_it_was(tmp_path: Path) -> None:
    texts = ["half a pair \ud800", "one\u2028line", "Málaga", 'a "quote"\n']
    path = tmp_path / "new folder" / "file.jsonl"
    journal = JournalFile(path, of_key, "the draft", KraqError)
    for number, text in enumerate(texts):
        journal.keep({"key": str(number), "output": text})

    again = JournalFile(path, of_key, "the draft", KraqError)
    assert list(again.values()) == list(journal.values()) == texts


def test_without_a_file_everything_is_in_memory() -> None:
    journal = JournalFile(None, of_key, "the draft", KraqError)
    journal.keep({"key": "a", "output": 1})
    journal.keep({"key": "a", "output": 2})

    assert dict(journal) == {"a": 2}
