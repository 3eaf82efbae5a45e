"""Files that are written whole or not at all."""

import errno
import gzip
import json
import os
import sys
from pathlib import Path

import pytest

from kraq_dspy._internal import files
from kraq_dspy._internal.files import append_line, drop_torn_line, json_objects, replaced, try_lock
from kraq_dspy.errors import EvaluationError


def test_what_the_block_wrote_takes_the_files_place(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("old")

    with replaced(tmp_path / "a.json") as draft:
        draft.write_text("new")
        assert (tmp_path / "a.json").read_text() == "old"

    assert (tmp_path / "a.json").read_text() == "new"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_block_that_raises_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("old")

    def break_off() -> None:
        with replaced(tmp_path / "a.json") as draft:
            draft.write_text("ne")
            raise ValueError("half-way")

    with pytest.raises(ValueError, match="half-way"):
        break_off()

    assert (tmp_path / "a.json").read_text() == "old"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_folder_appears_with_all_that_is_in_it(tmp_path: Path) -> None:
    with replaced(tmp_path / "shard") as draft:
        draft.mkdir()
        (draft / "part").write_text("1")
        assert not (tmp_path / "shard").exists()

    assert (tmp_path / "shard" / "part").read_text() == "1"


@pytest.mark.parametrize("left", ["file", "folder"])
def test_a_draft_that_a_killed_writer_left_behind_does_not_matter(tmp_path: Path, left: str) -> None:
    draft = tmp_path / ".a.json.new"
    if left == "file":
        draft.write_text('{"half')
    else:
        (draft / "segments").mkdir(parents=True)

    with replaced(tmp_path / "a.json") as path:
        path.write_text("{}")

    assert os.listdir(tmp_path) == ["a.json"]


def test_a_lock_is_held_until_its_file_is_closed(tmp_path: Path) -> None:
    with open(tmp_path / "lock", "wb") as first, open(tmp_path / "lock", "wb") as second:
        assert try_lock(first.fileno())
        assert not try_lock(second.fileno())
        first.close()
        assert try_lock(second.fileno())


@pytest.mark.skipif(sys.platform == "win32", reason="Windows knows no shared lock")
def test_a_lock_may_be_shared_and_then_nobody_has_it_alone(tmp_path: Path) -> None:
    with (
        open(tmp_path / "lock", "wb") as one,
        open(tmp_path / "lock", "wb") as other,
        open(tmp_path / "lock", "wb") as alone,
    ):
        assert try_lock(one.fileno(), shared=True)
        assert try_lock(other.fileno(), shared=True)
        assert try_lock(alone.fileno()) is False


def test_a_file_system_without_locks_is_told_from_a_lock_that_another_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: int, shared: bool) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(files, "_lock", refuse)
    with open(tmp_path / "lock", "wb") as file:
        assert try_lock(file.fileno()) is None


def test_lines_are_appended_and_one_that_was_cut_off_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "made" / "rows.jsonl"
    for line in ("one", "zwölf \ud800"):
        append_line(path, line)
    whole = path.read_bytes()
    path.write_bytes(whole + b"thr")
    for _ in range(2):
        drop_torn_line(path)
        assert path.read_bytes() == whole
    assert path.read_text("utf-8", "surrogatepass") == "one\nzwölf \ud800\n"
    drop_torn_line(tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


def test_a_line_with_half_of_a_character_is_read_as_it_was_appended(tmp_path: Path) -> None:
    append_line(tmp_path / "rows.jsonl", json.dumps({"reply": "smile \ud83d"}, ensure_ascii=False))
    [(place, row)] = json_objects(tmp_path / "rows.jsonl", EvaluationError, "the replies")
    assert (place, row) == ("rows.jsonl, line 1", {"reply": "smile \ud83d"})


@pytest.mark.parametrize("line", ["[" * 200_000, '{"n": ' + "9" * 5000 + "}", "{"], ids=["nesting", "number", "torn"])
def test_a_line_beyond_what_json_can_be_is_said_with_its_place(tmp_path: Path, line: str) -> None:
    (tmp_path / "rows.jsonl").write_text(f"{{}}\n{line}\n", "utf-8")
    with pytest.raises(EvaluationError, match="line 2 is not JSON"):
        list(json_objects(tmp_path / "rows.jsonl", EvaluationError, "the replies"))


def test_a_damaged_archive_is_said_to_be_unreadable(tmp_path: Path) -> None:
    header = gzip.compress(b"")[:10]
    (tmp_path / "rows.jsonl.gz").write_bytes(header + b"\xff" * 40)
    with pytest.raises(EvaluationError, match="Cannot read the replies"):
        list(json_objects(tmp_path / "rows.jsonl.gz", EvaluationError, "the replies"))


def test_an_append_writes_on_after_a_part_of_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Short:
        """Takes three bytes at a time, as a disk that is nearly full may."""

        def __init__(self, file: object) -> None:
            self.file = file

        def __enter__(self) -> "Short":
            return self

        def __exit__(self, *_: object) -> None:
            self.file.close()  # type: ignore[attr-defined]

        def write(self, content: memoryview) -> int:
            return int(self.file.write(content[:3]))  # type: ignore[attr-defined]

        def fileno(self) -> int:
            return int(self.file.fileno())  # type: ignore[attr-defined]

    whole_open = Path.open
    monkeypatch.setattr(Path, "open", lambda path, *args, **options: Short(whole_open(path, *args, **options)))
    append_line(tmp_path / "rows.jsonl", "a line of more than three bytes")
    monkeypatch.undo()
    assert (tmp_path / "rows.jsonl").read_text("utf-8") == "a line of more than three bytes\n"
