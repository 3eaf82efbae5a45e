"""`kraq chat`: lines in, answers out, over one open index."""

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kraq_dspy.apps.cli.program import app
from kraq_dspy.build.index.build import build_index
from kraq_dspy.records import Document


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("chat") / "poets.kraq"
    texts = ("Ada Lovelace wrote notes on the Analytical Engine.", "Lord Byron wrote Don Juan. Ada was his daughter.")
    build_index([Document(str(number), "", text) for number, text in enumerate(texts)], out)
    return out


def chat(index: Path, *lines: str) -> Result:
    return CliRunner().invoke(app, ["chat", str(index)], input="".join(f"{line}\n" for line in lines))


def test_questions_are_answered_one_after_another_and_kept(index: Path) -> None:
    done = chat(index, "Who wrote Don Juan?", "", "Who wrote notes?", "/history", "/quit", "never read")
    assert done.exit_code == 0
    assert "Lord Byron wrote Don Juan" in done.stdout
    assert "2 Who wrote notes?" in done.stdout
    assert "never read" not in done.stdout


def test_what_is_asked_for_beyond_what_is_there_is_noted(index: Path) -> None:
    done = CliRunner().invoke(app, ["ask", str(index), "Who wrote notes?", "--n", "100000", "-k", "77"])
    assert done.exit_code == 0
    assert "n is 100,000; the index has" in done.stderr
    assert "k is 77; the index has 2 passages." in done.stderr
    assert "the index has" not in CliRunner().invoke(app, ["ask", str(index), "Who wrote notes?"]).stderr


def test_an_option_of_another_program_is_said_with_its_programs(index: Path) -> None:
    done = CliRunner().invoke(app, ["ask", str(index), "Who?", "-p", "traditional", "--n", "3"])
    assert done.exit_code != 0
    assert "--n is no option of the program 'traditional'; it is one of combined" in str(done.exception)


def test_the_program_changes_within_the_session_and_a_wrong_word_does_not_end_it(index: Path) -> None:
    done = chat(
        index, "/program traditionel", "/prgram x", "/program traditional", "/evidence 1", "Who wrote Don Juan?"
    )
    assert done.exit_code == 0
    assert "did you mean 'traditional'" in " ".join(done.stderr.split())
    assert "'/prgram x' is no command here" in " ".join(done.stderr.split())
    assert "traditional, embedded" in done.stdout
    assert "and 1 more passages: --evidence 2" in done.stdout
