"""Every command that shows something of an index asks who asks, and shows what that one may read."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy import Document, build_index
from kraq_dspy.apps.cli.options import Owner
from tests.conftest import WarmShell
from tests.whole_program import all_commands

SECRET = "Quenzar"
DOCUMENTS = [
    Document(
        "open", "The canteen", "Anna Berg opened the canteen of Oslo. The canteen opens at nine.", labels=("staff",)
    ),
    Document("closed", "The site", f"{SECRET} bought the canteen of Oslo from Anna Berg.", labels=("board",)),
]
OWNERS = {"check", "precompute", "remove", "update"}
"""Commands of whoever may write the files."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("commands") / "x.kraq"
    build_index(DOCUMENTS, out)
    (out.parent / "questions.jsonl").write_text(
        json.dumps({"question": "Who bought the canteen?", "answer": "Anna"}) + "\n"
    )
    return out


def test_a_command_that_opens_an_index_says_who_asks_or_is_its_owner_s() -> None:
    unscoped = set()
    for name, loaded in all_commands():
        command: Any = loaded
        opens_index = "index_dir" in {field.name for field in fields(command)}
        if opens_index and not issubclass(command, Owner):
            unscoped.add(name)
    assert unscoped == OWNERS


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["questions"],
        ["questions", "--starters", "3"],
        ["ask", "Who bought the canteen?"],
        ["bench", "bias"],
        ["bench", "bias", "--json"],
        ["export", "--format", "jsonl", "--out", "exported"],
        ["eval", "questions.jsonl", "-m", "exact_match"],
        ["testset", "make", "--n", "2", "--out", "test.jsonl"],
    ],
    ids=" ".join,
)
def test_a_command_refuses_without_a_scope_and_shows_no_more_than_it(
    kraq: WarmShell, path: Path, words: list[str]
) -> None:
    head = words[:2] if words[0] in ("testset",) or words[:2] == ["bench", "bias"] else words[:1]
    command: list[str | Path] = [*head, path, *words[len(head) :]]
    refused = kraq(*command, cwd=path.parent)
    assert refused.returncode == 1
    assert "who may read its documents" in refused.stderr
    assert SECRET not in refused.stdout + refused.stderr

    shown = kraq(*command, "--scope", "staff", cwd=path.parent)
    assert shown.returncode == 0, shown.stderr
    written = [file for file in path.parent.rglob("*") if file.is_file() and path not in file.parents]
    texts = [file.read_text("utf-8", "replace") for file in written]
    assert not any(SECRET in text for text in [shown.stdout, shown.stderr, *texts])


def test_somebody_sees_the_prepared_answers_that_rest_on_what_may_be_read(kraq: WarmShell, path: Path) -> None:
    for question, answer, source in (
        ("When does the canteen open?", "At nine.", "open"),
        ("Who bought the canteen?", f"{SECRET} did.", "closed"),
    ):
        added = kraq("faq", "add", path, question, answer, "--source", source, "--owner")
        assert added.returncode == 0, added.stderr

    listed = kraq("faq", "list", path, "--json", "--scope", "staff")
    assert listed.returncode == 0, listed.stderr
    assert [each["question"] for each in json.loads(listed.stdout)] == ["When does the canteen open?"]
    exported = kraq("faq", "list", path, "--out", path.parent / "answers.jsonl", "--scope", "staff")
    assert exported.returncode == 0, exported.stderr
    assert SECRET not in (path.parent / "answers.jsonl").read_text("utf-8")

    assert SECRET in kraq("faq", "list", path, "--json", "--owner").stdout
    assert kraq("faq", "list", path).returncode == 1


def test_a_run_says_in_which_scope_its_rows_were_made(kraq: WarmShell, path: Path) -> None:
    out = path.parent / "run"
    done = kraq("eval", path, "questions.jsonl", "-m", "exact_match", "--scope", "staff", "--out", out, cwd=path.parent)
    assert done.returncode == 0, done.stderr
    assert json.loads((out / "run.json").read_text("utf-8"))["extra"]["scope"] == ["staff"]

    other = kraq("eval", path, "questions.jsonl", "-m", "exact_match", "--owner", "--out", out, cwd=path.parent)
    assert other.returncode != 0  # what another scope made is not gone on with


@pytest.mark.parametrize(
    ("label", "hint"),
    [
        ("Staff", "nothing can be read."),
        ("staff, board", "Several labels are several options: --scope ONE --scope OTHER."),
    ],
)
def test_whoever_mistypes_a_label_is_told(label: str, hint: str, kraq: WarmShell, path: Path) -> None:
    commands: list[list[str | Path]] = [["ask", path, "Who bought the canteen?"], ["status", path]]
    for words in commands:
        shown = kraq(*words, "--scope", label, cwd=path.parent)
        assert shown.returncode == 0
        told = " ".join(shown.stderr.split())
        assert f"no document has the label {label!r}" in told
        assert told.endswith(hint)
        assert SECRET not in shown.stdout + shown.stderr
    assert "no document has the label" not in kraq("status", path, "--scope", "staff", cwd=path.parent).stderr


def test_a_server_gives_no_scope_to_all_beside_a_file_of_tokens(kraq: WarmShell, path: Path) -> None:
    tokens = path.parent / "tokens.toml"
    tokens.write_text('[[token]]\nname = "staff"\ntoken = "staff-token"\nlabels = ["staff"]\n')
    refused = kraq("serve", path, "--tokens", tokens, "--scope", "board", cwd=path.parent)
    assert refused.returncode != 0
    assert "the file says what each caller may read" in " ".join(refused.stderr.split())


def test_own_questions_and_test_sets_are_shown_to_the_owner_alone(kraq: WarmShell, path: Path) -> None:
    refused = kraq("serve", path, "--questions", "questions.jsonl", "--scope", "staff", cwd=path.parent)
    assert refused.returncode != 0
    assert "--questions and --testset need --owner" in " ".join(refused.stderr.split())
