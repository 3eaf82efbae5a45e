"""Tests that a person sees an answer and a failure honestly, in order, and without marks of another format."""

import errno
import io
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import LMTransportError
from rich.console import Console

from kraq_dspy.apps.cli import ask as asking, failures, program, terminal
from kraq_dspy.errors import KraqError, MissingExtraError, ModelError, counted, needs
from kraq_dspy.models.lms.adapter import UnreadableReplyError
from kraq_dspy.records import Chunk, Hit
from kraq_dspy.signatures import AnswerQuestion
from kraq_dspy.workspace.choices import choose_program


def hit(number: int, query: str, why: str, text: str = "Text.", document: str = "") -> Hit:
    return Hit(Chunk(f"c{number}", document or f"d{number}", 0, 0, len(text), text, 1), 1.0, query, why)


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Console:
    console = Console(file=io.StringIO(), width=60, highlight=False)
    monkeypatch.setattr(asking, "output", console)
    monkeypatch.setattr(terminal, "output", console)
    return console


def shown(console: Console) -> list[str]:
    file: Any = console.file
    return [line.rstrip() for line in file.getvalue().splitlines()]


def test_evidence_is_counted_as_it_is_shown_and_a_score_that_means_nothing_is_not(screen: Console) -> None:
    hits = [hit(1, "mine", "adaptive"), hit(2, "mine", "adaptive"), hit(3, "other", "dense")]
    answer = dspy.Prediction(answer="Yes.", hits=hits)
    asking.show_answer("Who?", choose_program("traditional"), "embedded", answer, evidence=2)
    lines = shown(screen)
    assert "  1 d1  adaptive" in lines
    assert "  2 d3  dense 1.00" in lines
    assert "and 1 more: --evidence 3" in lines


def test_a_reply_that_cannot_be_used_is_no_server_that_is_down() -> None:
    looping = UnreadableReplyError(AnswerQuestion, "and and and", {}, ["answer: repeats itself"])
    message = str(failures._of_a_model(looping))
    assert "repeats itself" in message
    assert "server" not in message
    assert "Check that its server runs" in str(failures._of_a_model(LMTransportError("Connection refused.")))


@pytest.mark.parametrize(
    ("number", "what", "words"),
    [
        (1, "passage", "1 passage"),
        (0, "epoch", "0 epochs"),
        (2000, "entry", "2,000 entries"),
        (1, "entity", "1 entity"),
    ],
)
def test_one_is_no_plural(number: int, what: str, words: str) -> None:
    assert counted(number, what) == words


def behind(cause: Exception, error: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "The disk is full."),
        (OSError(errno.ENOSPC, "No space left on device", "x.parquet"), "The disk is full at 'x.parquet'."),
        (PermissionError(errno.EACCES, "Permission denied", "x"), "'x' cannot be read or written: Permission denied."),
        (OSError(errno.EMFILE, "Too many open files", "x.py"), "Let the process open more (ulimit -n 1024)"),
        (behind(OSError(errno.EMFILE, "Too many open files"), ValueError("no answer")), "No more files can be opened"),
        (
            OSError(errno.EFBIG, "File too large"),
            "may not write the file so large: File too large. Let it write larger",
        ),
        (behind(OSError(errno.EFBIG, "File too large", "x"), ValueError("no answer")), "may not write 'x' so large"),
        (behind(OSError(errno.ENOSPC, "No space left"), ValueError("no answer")), "The disk is full."),
        (MemoryError(), "The memory that this process may use is too small"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "The memory that this process may use is too small"),
        (RuntimeError("can't start new thread"), "The memory that this process may use is too small"),
        (
            behind(MemoryError(), ModelError("A call failed.")),
            "is too small (ulimit -v, or a container's limit). What fa",
        ),
        (ExceptionGroup("tasks", [ValueError(), MemoryError()]), "The memory that this process may use is too small"),
        (
            behind(ImportError("x.so: failed to map segment"), KraqError("torch cannot be loaded.")),
            "What failed first: torch cannot be loaded.",
        ),
    ],
)
def test_what_the_machine_lacks_is_said_in_words(
    error: BaseException, words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise error

    monkeypatch.setattr(program, "make_app", lambda: fail)
    with pytest.raises(SystemExit) as ended:
        program.run()
    assert ended.value.code == 1
    assert words in " ".join(capsys.readouterr().err.split())


def test_a_package_that_is_there_and_cannot_be_loaded_is_not_taken_for_missing() -> None:
    expected = r"cannot be loaded: failed to map segment.*\. The memory that this process may use is too small"
    with pytest.raises(KraqError, match=expected) as caught, needs("x", "y", "It"):
        raise ImportError("failed to map segment from shared object")
    assert not isinstance(caught.value, MissingExtraError)
    with pytest.raises(MissingExtraError), needs("x", "y", "It"):
        raise ModuleNotFoundError("No module named 'x'")


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_command_is_printed_without_a_line_break_in_it(is_terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    narrow = Console(file=io.StringIO(), width=60, force_terminal=is_terminal, color_system=None)
    monkeypatch.setattr(terminal, "output", narrow)
    command = terminal.command(
        "ask", "a folder with a long name/docs.kraq", "Who keeps the light of the northern harbor?"
    )
    terminal.say("Try: ", (command, "bold"))
    assert narrow.file.getvalue() == f"Try: {command}\n"  # type: ignore[attr-defined]


def test_prose_is_folded_between_words_in_a_terminal_and_left_whole_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    prose = "The answer rests on passages that were found by questions of the index itself."
    printed = {}
    for is_terminal in (True, False):
        narrow = Console(file=io.StringIO(), width=40, force_terminal=is_terminal, color_system=None)
        monkeypatch.setattr(terminal, "errors", narrow)
        terminal.note(prose, label="")
        printed[is_terminal] = narrow.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert printed[False] == [prose]
    assert max(map(len, printed[True])) <= 40
    assert " ".join(" ".join(printed[True]).split()) == prose
