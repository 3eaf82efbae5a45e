"""Tests `kraq ask`: lines go in, answers come out, and one index stays open."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from kraq_dspy.records import Document
from tests.kept import kept_index
from tests.whole_program import app


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("chat") / "poets.kraq"
    texts = ("Ada Lovelace wrote notes on the Analytical Engine.", "Lord Byron wrote Don Juan. Ada was his daughter.")
    kept_index([Document(str(number), "", text) for number, text in enumerate(texts)], out)
    return out


def chat(index: Path, *lines: str) -> Result:
    return CliRunner().invoke(app, ["ask", str(index)], input="".join(f"{line}\n" for line in lines))


def test_questions_are_answered_one_after_another_until_an_empty_line(index: Path) -> None:
    done = chat(index, "Who wrote Don Juan?", "Who wrote notes?", "", "never read")
    assert done.exit_code == 0
    assert "Lord Byron wrote Don Juan" in done.stdout
    assert "Ada Lovelace wrote notes" in done.stdout
    assert "never read" not in done.stdout


def test_help_and_a_command_that_is_none_say_what_can_be_typed(index: Path) -> None:
    said = " ".join(chat(index, "/help", "/quit", "/etc/hosts?").stdout.split())
    assert said.count("A number asks the suggested question with that number.") == 2
    assert "There is no command '/quit'." in said


def test_an_option_of_another_program_is_said_with_those_that_there_are(index: Path) -> None:
    done = CliRunner().invoke(app, ["ask", str(index), "Who?", "-p", "traditional", "-P", "n=3"])
    assert done.exit_code != 0
    assert "The program 'traditional' has no option 'n'; its options: k, explain" in str(done.exception)


def test_a_suggested_question_is_asked_by_its_number(index: Path) -> None:
    answered = chat(index, "1").stdout.partition("to begin with:")[2]
    first = answered.split("  1 ")[1].split("  (")[0]
    assert " ".join(answered.split()).count(" ".join(first.split())) >= 2


def test_starters_are_listed_with_the_documents_that_answer_them(index: Path) -> None:
    shown = CliRunner().invoke(app, ["questions", str(index), "--starters", "1"])
    assert shown.exit_code == 0
    assert "answers, among others:" in " ".join(shown.stdout.split())  # a long path wraps the line
    (starter,) = json.loads(CliRunner().invoke(app, ["questions", str(index), "--starters", "1", "--json"]).stdout)
    assert set(starter) == {"text", "question_id", "community_id", "chunk_id", "document_id", "title"}
    answered = json.loads(CliRunner().invoke(app, ["ask", str(index), "Who wrote notes?", "--json"]).stdout)
    assert all(set(each) == set(starter) for each in answered["next_questions"])


def test_a_question_may_refer_to_what_was_said_before_it(index: Path) -> None:
    said = " ".join(chat(index, "Who wrote Don Juan?", "Who was his daughter?").stdout.split())
    assert "asked as: Who wrote Don Juan? Who was his daughter?" in said


def test_a_new_conversation_refers_to_nothing(index: Path) -> None:
    done = chat(index, "Who wrote Don Juan?", "/new", "Who was his daughter?")
    assert "A new conversation." in done.stdout
    assert "asked as" not in done.stdout


def test_a_model_that_cannot_be_made_ends_the_chat_before_a_question(index: Path) -> None:
    done = CliRunner().invoke(app, ["ask", str(index), "--lm", "nonsense"], input="Who wrote Don Juan?\n")
    assert done.exit_code != 0
    assert "'nonsense' is neither" in str(done.exception)
    assert "to begin with" not in done.stdout


def test_a_server_that_is_down_fails_one_question_and_not_the_chat(index: Path) -> None:
    down = ["--lm", "openai/none", "--api-base", "http://127.0.0.1:1"]
    done = CliRunner().invoke(app, ["ask", str(index), *down], input="Who wrote Don Juan?\nWho wrote notes?\n\n")
    assert done.exit_code == 0
    assert done.stderr.count("Error: A call to the model failed") == 2


def test_a_pronoun_for_nobody_is_asked_about_instead_of_answered(index: Path) -> None:
    done = chat(index, "Where was he born?", "Who wrote Don Juan?", "Who was his daughter?")
    assert done.stdout.count('Nobody was named whom "he" stands for: ask with the name.') == 1
    assert 'Nobody was named whom "his"' not in done.stdout
    assert "asked as: Who wrote Don Juan? Who was his daughter?" in done.stdout

    anyway = CliRunner().invoke(app, ["ask", str(index), "--no-refuse"], input="Where was he born?\n")
    assert "Nobody was named" not in anyway.stdout
