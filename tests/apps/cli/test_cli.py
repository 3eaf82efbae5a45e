"""Runs `kraq` as a shell user does: whole processes, their output, their exit codes."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from stand_in import stand_in

from kraq_dspy.apps.cli.terminal import print_json
from tests.asset.corpus.corpora import write_pdf
from tests.conftest import WarmShell

PASSAGES = {
    "Ada Lovelace": "Ada Lovelace wrote notes on the Analytical Engine. "
    "Charles Babbage designed the Analytical Engine.",
    "Charles Babbage": "Charles Babbage invented the Difference Engine in London. Babbage met Ada Lovelace in 1833.",
    "Lord Byron": "Lord Byron wrote Don Juan. Lord Byron was the father of Ada Lovelace. "
    "Lord Byron died in Missolonghi.",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    for title, text in PASSAGES.items():
        (folder / f"{title}.md").write_text(f"# {title}\n\n{text}\n")
    (folder / "broken.txt").write_bytes(b"\xff\xfe\x00\xd8 not text \x80")
    return folder


@pytest.fixture(scope="module")
def index(kraq: WarmShell, corpus: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("cli") / "poets.kraq"
    done = kraq("index", corpus, "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    return out


def as_json(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_help_names_every_command(kraq: WarmShell) -> None:
    done = kraq("--help")
    assert done.returncode == 0
    for command in ("index", "status", "questions", "ask", "export", "demo"):
        assert command in done.stdout


def test_a_demo_of_fewer_questions_than_it_shows_goes_to_its_end(kraq: WarmShell, tmp_path: Path) -> None:
    done = kraq("demo", "--first", "1", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "3. 1 question, answered by both programs" in done.stdout
    assert "4. All of 1 question, model embedded" in done.stdout
    assert "Try: kraq ask demo.kraq 'Were Scott Derrickson and Ed Wood" in " ".join(done.stdout.split())


def test_without_out_the_index_is_named_after_the_corpus_and_never_laid_into_it(
    kraq: WarmShell, tmp_path: Path
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "ada.txt").write_text(PASSAGES["Ada Lovelace"])
    kraq("index", "notes", cwd=tmp_path)
    assert (tmp_path / "notes.kraq" / "manifest.json").is_file()
    (tmp_path / "notes.kraq").rename(tmp_path / "first.kraq")
    done = kraq("index", ".", cwd=tmp_path / "notes")
    assert (tmp_path / "notes.kraq" / "manifest.json").is_file(), done.stderr
    assert sorted(path.name for path in (tmp_path / "notes").iterdir()) == ["ada.txt"]


def test_columns_have_the_names_that_the_command_says_and_evidence_its_page(kraq: WarmShell, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "poets.csv").write_text(f"nr;heading;wording\n7;Lord Byron;{PASSAGES['Lord Byron']}\n")
    write_pdf(tmp_path / "notes" / "engines.pdf", "A preface.", PASSAGES["Charles Babbage"])
    assert "--text-column" in kraq("index", "notes", cwd=tmp_path).stderr
    (tmp_path / "kraq.toml").write_text('[corpus]\ntext_column = "wording"\ntitle_column = "heading"\n')
    done = kraq("index", "notes", "--out", "both.kraq", "--id-column", "nr", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    shown = kraq("ask", "both.kraq", "Who invented the Difference Engine in London?", cwd=tmp_path).stdout
    assert "engines (engines.pdf), pages 1-2" in shown
    assert "Lord Byron (7)" in shown


def test_an_index_of_another_corpus_is_not_overwritten_by_default(kraq: WarmShell, tmp_path: Path) -> None:
    for place in ("a", "b"):
        (tmp_path / place / "notes").mkdir(parents=True)
        (tmp_path / place / "notes" / "ada.txt").write_text(PASSAGES["Ada Lovelace"])
    assert kraq("index", "a/notes", cwd=tmp_path).returncode == 0
    done = kraq("index", "b/notes", cwd=tmp_path)
    assert done.returncode == 2
    assert "Name another folder with --out" in done.stderr


def test_questions_of_a_level_or_a_source_that_is_not_there_are_refused(kraq: WarmShell, index: Path) -> None:
    assert "the deepest level with questions here" in kraq("questions", index, "--level", "99").stderr
    assert "'kraq', 'random'" in kraq("questions", index, "--source", "foo").stderr


def test_an_export_to_where_nothing_can_be_written_is_a_message(kraq: WarmShell, index: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    done = kraq("export", index, "--out", tmp_path / "file" / "tables")
    assert done.returncode in (1, 2)
    assert str(tmp_path / "file") in done.stderr.replace("\n", "")
    assert "Traceback" not in done.stderr


def test_version(kraq: WarmShell) -> None:
    assert kraq("--version").stdout.startswith("kraq 1.")


def test_index_prints_a_summary_and_names_the_file_that_it_could_not_read(
    kraq: WarmShell, corpus: Path, tmp_path: Path
) -> None:
    done = kraq("index", corpus, "--out", tmp_path / "i.kraq")
    assert done.returncode == 0, done.stderr
    assert "documents" in done.stdout
    assert "broken.txt" in done.stderr


def test_status_is_json_and_nothing_else(kraq: WarmShell, index: Path) -> None:
    status = as_json(kraq("status", index, "--json"))
    assert sum(status["questions_by_model"].values()) == status["counts"]["questions"]
    assert status["counts"]["questions"] == len(as_json(kraq("questions", index, "--json")))
    assert status["questions_by_model"].keys() <= {"embedded", "parse", "topic"}
    assert status["complete"] is True
    assert status["counts"]["documents"] == 3
    assert sum(status["merges_by_method"].values()) == status["counts"]["merges"]
    assert [failure["item_id"] for failure in status["failures"]] == ["broken.txt"]


def test_questions_of_a_level(kraq: WarmShell, index: Path) -> None:
    everything = as_json(kraq("questions", index, "--json"))
    broadest = as_json(kraq("questions", index, "--level", "0", "--json"))
    assert broadest == [question for question in everything if question["level"] == 0] != []


@pytest.mark.parametrize("program", ["traditional", "combined"])
def test_ask_answers_with_evidence(kraq: WarmShell, index: Path, program: str) -> None:
    answer = as_json(
        kraq("ask", index, "Who was the father of Ada Lovelace?", "--program", program, "--k", "2", "--json")
    )
    assert "Byron" in answer["answer"]
    assert answer["model"] == "embedded"
    assert len(answer["hits"]) == 2
    assert {"chunk", "score", "query", "why"} <= set(answer["hits"][0])


def test_ask_shows_a_person_the_answer_and_the_passages(kraq: WarmShell, index: Path) -> None:
    done = kraq("ask", index, "Who wrote Don Juan?")
    assert done.returncode == 0, done.stderr
    assert "Byron" in done.stdout
    assert "Lord Byron (Lord Byron.md)" in done.stdout
    assert "more: --evidence" not in done.stdout  # there are no more than three
    one = kraq("ask", index, "Who wrote Don Juan?", "--evidence", "1")
    assert "and 2 more: --evidence 3" in one.stdout


def test_programs_and_retrievers_are_listed_with_their_options(kraq: WarmShell) -> None:
    listed = kraq("ask", "--programs").stdout
    for words in ("combined  Retrieves with your question", "alpha=0.5  Share of the passages", "  fusion  "):
        assert words in listed


@pytest.mark.parametrize("format", ["graphml", "jsonl"])
def test_export_in_other_formats(kraq: WarmShell, index: Path, tmp_path: Path, format: str) -> None:
    target = tmp_path / ("graph.graphml" if format == "graphml" else "records")
    written = as_json(kraq("export", index, "--out", target, "--format", format, "--json"))
    text = "".join(Path(path).read_text("utf-8") for path in written)
    assert "Charles Babbage designed the Analytical Engine." in text


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["status", "nowhere.kraq"], 1, "There is no index"),
        (["ask", "nowhere.kraq", "Who?"], 1, "There is no index"),
        (["index", "nowhere", "--out", "i.kraq"], 1, "nowhere"),
        (["index", ".", "--out", "i.kraq", "--config", "none.toml"], 2, "no settings file"),
        (["index", ".", "--out", "i.kraq", "--api-base", "http://localhost:1"], 2, "--lm"),
        (["index", ".", "--out", "i.kraq", "--config", "."], 2, "cannot be read: Is a directory"),
        (["ak", "i.kraq", "Who?"], 2, "Did you mean 'ask'?"),
        (["status", "i.kraq", "--jsno"], 2, "--json"),
        (["nonsense"], 2, "nonsense"),
    ],
)
def test_bad_input_gets_a_message_and_an_exit_code(
    kraq: WarmShell, tmp_path: Path, words: list[str], code: int, says: str
) -> None:
    done = kraq(*words, cwd=tmp_path)
    assert done.returncode == code
    assert says in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--program", "nonsense"], "there are: traditional, combined"),
        (["--retriever", "nonsense"], "there are: dense"),
        (["--lm", "nonsense/model"], "nonsense"),
        (["--lm", "m.gguf"], "--lm gguf/m.gguf"),
        (["-p", "speculative", "-P", "k=50", "-k", "3"], "lower the clusters"),
    ],
)
def test_ask_names_what_it_knows(kraq: WarmShell, index: Path, words: list[str], says: str) -> None:
    done = kraq("ask", index, "Who?", *words)
    assert done.returncode in (1, 2)
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_model_that_cannot_be_asked_is_a_message_with_the_way_out(kraq: WarmShell, index: Path) -> None:
    ask = ("ask", index, "Who wrote Don Juan?", "--program", "traditional", "--lm", "hosted_vllm/m", "--api-base")
    with stand_in(context_tokens=30) as server:
        small = kraq(*ask, server.url)
    gone = kraq(*ask, server.url)
    for done, says in ((small, "larger context"), (gone, "server runs")):
        assert done.returncode == 1
        assert "Traceback" not in done.stderr
        assert says in " ".join(done.stderr.split())


def test_text_of_documents_is_not_read_as_markup(kraq: WarmShell, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "odd.txt").write_text(
        "The [bold]Red House[/bold] of Ada \x1b[31mLovelace met Charles Babbage."
    )
    assert kraq("index", tmp_path / "docs", "--out", tmp_path / "i.kraq").returncode == 0
    done = kraq("ask", tmp_path / "i.kraq", "Who met Charles Babbage?", "--program", "traditional")
    assert "[bold]Red House[/bold]" in done.stdout
    assert "\x1b[31m" not in done.stdout


def test_json_holds_nothing_that_a_terminal_would_obey(capsys: pytest.CaptureFixture[str]) -> None:
    text = "a\x9b31mb\u202ec\u2066d\x7fe\ud800 naïve 日本 😀"
    print_json({"text": text})
    shown = capsys.readouterr().out
    assert not [each for each in shown if not each.isprintable() and each != "\n"]
    assert "naïve 日本 😀" in shown
    assert json.loads(shown) == {"text": text.replace("\ud800", "\ufffd")}
