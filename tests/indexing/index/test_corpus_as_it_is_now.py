"""An index follows its corpus: what cannot be read stays, and what only moved is not paid for again."""

import json
import os
import shutil
from functools import partial
from pathlib import Path

import pytest

from kraq_dspy import Index, add_documents, build_index, update_index
from kraq_dspy.records import Chunk, Document, Question
from kraq_dspy.workspace import Workspace
from tests.kept import kept

TEXTS = {
    "a.txt": "Ada Lovelace met Charles Babbage in London. Charles Babbage lived in London.",
    "sub/b.txt": "Charles Babbage built the Difference Engine with Ada Lovelace in London.",
    "sub/c.txt": "Grace Hopper met Howard Aiken in Boston. Howard Aiken built the Mark I.",
}


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    kept("files that change", partial(build_index, folder), tmp_path / "x.kraq")
    return folder


def stored(path: Path) -> dict[str, tuple[str, str]]:
    """Source and text by id."""
    with Index.open(path) as index:
        return {document.id: (document.source, document.text) for document in index.all(Document)}


def rows(file: Path, *texts: str) -> Path:
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    return file


@pytest.mark.parametrize("damage", [b"Ada \xff\xfe", b"", b" \n", b"%PDF-1.4\x00\x00", None])
def test_a_file_that_cannot_be_read_keeps_its_document(corpus: Path, tmp_path: Path, damage: bytes | None) -> None:
    file = corpus / "sub" / "b.txt"
    if damage is None:
        file.unlink()
        file.symlink_to("/nowhere")
    else:
        file.write_bytes(damage)
    before = stored(tmp_path / "x.kraq")
    report = update_index(tmp_path / "x.kraq", corpus)
    assert stored(tmp_path / "x.kraq") == before
    assert [failure.item_id for failure in report.failures] == ["sub/b.txt"]
    with Index.open(tmp_path / "x.kraq") as index:
        assert index.count(Chunk) == 3
    file.unlink()
    update_index(tmp_path / "x.kraq", corpus)
    assert "sub/b.txt" not in stored(tmp_path / "x.kraq")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_cannot_be_read_keeps_its_documents(corpus: Path, tmp_path: Path) -> None:
    (corpus / "sub").chmod(0)
    try:
        update_index(tmp_path / "x.kraq", corpus)
    finally:
        (corpus / "sub").chmod(0o755)
    assert set(stored(tmp_path / "x.kraq")) == set(TEXTS)


def test_boilerplate_of_pages_is_counted_and_known_when_another_page_comes(tmp_path: Path) -> None:
    menu = "\n".join(f"[Section {number}](https://a.org/{number})" for number in range(12))
    folder = tmp_path / "corpus"
    folder.mkdir()
    for name in ("a", "b", "c"):
        (folder / f"{name}.md").write_text(
            f"# Page {name}\n\nAda Lovelace met {name} in London.\n\nPopular now\n{menu}"
        )
    build_index(folder, tmp_path / "x.kraq")
    with Index.open(tmp_path / "x.kraq") as index:
        assert index.left_out() == {"documents": 3, "lines": 39}
    (tmp_path / "d.md").write_text(f"# Page d\n\nAda wrote a program.\n\nPopular now\n{menu}")
    add_documents(tmp_path / "x.kraq", tmp_path / "d.md")
    assert stored(tmp_path / "x.kraq")["d.md"][1] == "# Page d\n\nAda wrote a program."


def test_a_broken_row_removes_nothing_of_its_file(tmp_path: Path) -> None:
    file = rows(tmp_path / "r.jsonl", *TEXTS.values())
    build_index(file, tmp_path / "y.kraq")
    before = stored(tmp_path / "y.kraq")
    lines = file.read_text().splitlines()
    file.write_text("\n".join([lines[0], lines[1][:30], lines[2]]))
    update_index(tmp_path / "y.kraq", file)
    assert stored(tmp_path / "y.kraq") == before


def test_a_document_that_repeats_another_goes(corpus: Path, tmp_path: Path) -> None:
    (corpus / "sub" / "b.txt").write_text(TEXTS["a.txt"])
    update_index(tmp_path / "x.kraq", corpus)
    assert set(stored(tmp_path / "x.kraq")) == {"a.txt", "sub/c.txt"}


def asked(path: Path, corpus: Path) -> int:
    """Calls of the models for an update."""
    return sum(usage.calls for usage in update_index(path, corpus).usage.values())


def test_a_file_that_moves_is_not_paid_for_again(corpus: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.kraq"
    (corpus / "elsewhere").mkdir()
    shutil.move(corpus / "sub" / "b.txt", corpus / "elsewhere" / "b.txt")
    assert asked(path, corpus) == 0
    assert stored(path)["sub/b.txt"] == ("elsewhere/b.txt", TEXTS["sub/b.txt"])
    assert asked(path, corpus) == 0  # and stays what it is
    (corpus / "sub" / "b.txt").write_text("Alan Turing met Max Newman in Cambridge.")
    update_index(path, corpus)
    assert sorted(text for _, text in stored(path).values()) == sorted(
        [*TEXTS.values(), "Alan Turing met Max Newman in Cambridge."]
    )
    before = stored(path)
    assert asked(path, corpus) == 0
    assert stored(path) == before


def test_rows_put_on_top_are_paid_for_alone(tmp_path: Path) -> None:
    file = rows(tmp_path / "r.jsonl", *TEXTS.values())
    build_index(file, tmp_path / "y.kraq")
    before = stored(tmp_path / "y.kraq")
    rows(file, "Alan Turing met Max Newman in Cambridge.", *TEXTS.values())
    report = update_index(tmp_path / "y.kraq", file)
    assert stored(tmp_path / "y.kraq").items() > before.items()
    assert report.usage["extract"].calls <= 2  # of one row: a call and a gleaning
    (tmp_path / "moved").mkdir()
    shutil.move(file, tmp_path / "moved" / "s.jsonl")
    assert asked(tmp_path / "y.kraq", tmp_path / "moved") == 0


def test_struck_out_documents_are_known_again(tmp_path: Path) -> None:
    from kraq_dspy.settings import RedactSettings, Settings

    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "a.txt").write_text(TEXTS["a.txt"] + " Write to ada@example.org.")
    settings = Settings(redact=RedactSettings(emails=True))
    build_index(folder, tmp_path / "y.kraq", settings=settings)
    (folder / "new").mkdir()
    shutil.move(folder / "a.txt", folder / "new" / "a.txt")
    assert asked(tmp_path / "y.kraq", folder) == 0
    assert set(stored(tmp_path / "y.kraq")) == {"a.txt"}


def test_documents_and_questions_are_written_in_one_way(tmp_path: Path) -> None:
    text = "Peter\u00a0Marlow opened the gran\u00adary. The cafe\u0301 of Peter Marlow is well\u2011known."
    build_index([Document("a", "Peter\u202fMarlow", text)], tmp_path / "y.kraq")
    with Workspace.open(tmp_path / "y.kraq") as space:
        [document] = space.index.all(Document)
        assert document.title == "Peter Marlow"
        assert document.text == "Peter Marlow opened the granary. The caf\u00e9 of Peter Marlow is well-known."
        program = space.program("traditional", "bm25")
        for question in ("gran\u00adary", "Marlow", "cafe\u0301", "well\u2011known"):
            assert [hit.chunk.document_id for hit in space.ask(question, program).hits] == ["a"]
        assert all("\u00a0" not in question.text for question in space.index.all(Question))
