"""Tests an index under several processes, killed processes, folders that cannot be written, and full disks."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import numpy as np
import pytest

from kraq_dspy import Index
from kraq_dspy.errors import IndexLockedError
from kraq_dspy.records import Chunk, content_id
from tests.asset.store.indexes import chunk, make

HEAD = """
import sys, time
from pathlib import Path
import numpy as np
from kraq_dspy.records import Chunk, content_id
from kraq_dspy.asset.store.index import Index
"""


def run(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", HEAD + code, *map(str, arguments)], stdout=subprocess.PIPE, text=True
    )


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def end(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


WRITER = """
index = Index.open(sys.argv[1], write=True)
index.add([Chunk(content_id("a"), "d", 0, 0, 1, "t", 1)])
print("open", flush=True)
time.sleep(60)
"""


def test_while_one_process_writes_another_is_told_who_and_since_when(tmp_path: Path) -> None:
    make(tmp_path / "x.kraq").close()
    writer = run(WRITER, tmp_path / "x.kraq")
    try:
        assert line_of(writer) == "open"
        with pytest.raises(
            IndexLockedError, match=rf"(?s)being changed by process {writer.pid} .*since 20.*any number may ask"
        ):
            Index.open(tmp_path / "x.kraq", write=True)
    finally:
        end(writer)

    with Index.open(tmp_path / "x.kraq", write=True) as index:  # the lock went with the process
        assert index.chunk_vectors.count() == 0
        assert index.count(Chunk) == 1


def test_readers_search_the_last_complete_state_while_a_writer_makes_the_next(tmp_path: Path) -> None:
    with make(tmp_path / "x.kraq") as index:
        index.chunk_vectors.upsert([content_id("b")], np.array([[0, 1]], np.float32), ["old"])
        index.update_manifest(complete=True)
    writer = run(WRITER, tmp_path / "x.kraq")
    try:
        assert line_of(writer) == "open"
        with Index.open(tmp_path / "x.kraq") as first, Index.open(tmp_path / "x.kraq") as second:
            for reader in (first, second):
                assert reader.count(Chunk) == 0
                assert [one for one, _ in reader.chunk_vectors.search_text("old", 5)] == [content_id("b")]
        with Index.open(tmp_path / "x.kraq", unfinished=True) as index:
            assert index.count(Chunk) == 1
    finally:
        end(writer)


def test_a_reader_keeps_its_state_and_the_next_one_gets_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "x.kraq"
    with make(path) as index:
        index.update_manifest(complete=True)
    with Index.open(path) as reader:
        with Index.open(path, write=True) as writer:
            writer.add([chunk("a")])
            writer.chunk_vectors.upsert([content_id("a")], np.array([[0, 1]], np.float32), ["new"])
        assert (reader.count(Chunk), reader.chunk_vectors.count()) == (0, 0)
        with Index.open(path) as later:
            assert (later.count(Chunk), later.chunk_vectors.count()) == (1, 1)
        assert sorted(folder.name for folder in (path / "states").iterdir()) == ["1", "2"]

    assert [folder.name for folder in (path / "states").iterdir()] == ["2"]  # its last reader has gone


def test_a_killed_reader_holds_no_state(tmp_path: Path) -> None:
    path = tmp_path / "x.kraq"
    with make(path) as index:
        index.update_manifest(complete=True)
    reader = run("index = Index.open(sys.argv[1])\nprint('open', flush=True)\ntime.sleep(60)", path)
    assert line_of(reader) == "open"
    Index.open(path, write=True).close()
    assert sorted(folder.name for folder in (path / "states").iterdir()) == ["1", "2"]
    end(reader)

    Index.open(path).close()

    assert [folder.name for folder in (path / "states").iterdir()] == ["2"]


def test_what_a_reader_has_embedded_is_kept_for_the_next_unless_somebody_writes(tmp_path: Path) -> None:
    path = tmp_path / "x.kraq"
    with make(path) as index:
        index.update_manifest(complete=True)

    def embed(name: str) -> int:
        with Index.open(path) as reader:
            store = reader.vectors_named("side")
            store.upsert([content_id(name)], np.array([[0, 1]], np.float32))
            return len(store.search(np.array([[0, 1]], np.float32), 5)[0])

    assert embed("a") == 1
    with Index.open(path, write=True) as writer:
        assert embed("b") == 2
        assert embed("c") == 2  # not kept: the folder was being written
        assert writer.vectors_named("side").count() == 1
    assert embed("d") == 2


def test_a_copy_is_an_index_whatever_was_copied_first(tmp_path: Path) -> None:
    path, copy = tmp_path / "x.kraq", tmp_path / "copy.kraq"
    with make(path) as index:
        index.add([chunk("a")])
        index.update_manifest(complete=True)
    copy.mkdir()
    shutil.copy(path / "manifest.json", copy)
    with Index.open(path, write=True) as writer:
        writer.add([chunk("b")])
    shutil.copytree(path / "states", copy / "states")  # the state that the manifest names is gone

    with Index.open(copy) as index:
        assert index.count(Chunk) == 2
    with Index.open(copy, write=True) as index:
        index.add([chunk("c")])
    with Index.open(copy) as index:
        assert index.count(Chunk) == 3


def test_a_torn_draft_in_a_copy_is_left_for_the_last_complete_state(tmp_path: Path) -> None:
    path, copy = tmp_path / "x.kraq", tmp_path / "copy.kraq"
    with make(path) as index:
        index.add([chunk("a")])
        index.update_manifest(complete=True)
    with Index.open(path, write=True) as writer:
        writer.update_manifest(complete=False)
        writer.add(chunk(str(number), text="long " * 500) for number in range(200))
    shutil.copytree(path, copy)
    torn = copy / "draft" / "index.db"
    torn.write_bytes(torn.read_bytes()[: torn.stat().st_size // 2])

    with Index.open(copy, write=True) as index:
        assert index.count(Chunk) == 1
    with Index.open(path, write=True) as index:  # where it was made it is gone on with
        assert index.count(Chunk) == 201


ADDER = """
index = Index.open(sys.argv[1], write=True)
vectors = index.chunk_vectors
print("open", flush=True)
for batch in range(10_000):
    chunks = [Chunk(content_id(f"{batch}-{i}"), "d", i, 0, 1, "some words " * 50, 1) for i in range(50)]
    index.add(chunks)
    rows = np.eye(2, dtype=np.float32)[[batch % 2] * 50]
    vectors.upsert([one.id for one in chunks], rows, [one.text for one in chunks])
    if batch == 5:
        print("busy", flush=True)
"""


@pytest.mark.parametrize("pause_ms", [0, 23])
def test_a_process_killed_while_adding_leaves_whole_batches_in_records_and_vectors(
    tmp_path: Path, pause_ms: int
) -> None:
    make(tmp_path / "x.kraq").close()
    adder = run(ADDER, tmp_path / "x.kraq")
    assert (line_of(adder), line_of(adder)) == ("open", "busy")
    threading.Event().wait(pause_ms / 1000)
    end(adder)

    with Index.open(tmp_path / "x.kraq") as index:  # a reader mends the log of the killed writer
        n_chunks = index.count(Chunk)
        n_vectors = index.chunk_vectors.count()
        assert n_chunks >= 300
        assert n_chunks % 50 == 0
        assert n_chunks - n_vectors in (0, 50)
        stored = sorted(index.chunk_vectors.ids())
        np.testing.assert_array_equal(np.linalg.norm(index.chunk_vectors.vectors(stored), axis=1), 1)
        assert {one.id for one in index.chunks_by_id(stored)} == set(stored)
        assert len(index.chunk_vectors.search_text("words", 5)) == 5


@pytest.mark.parametrize("pause_ms", [0, 5, 20])
def test_a_process_killed_while_creating_leaves_what_can_be_opened_or_created_again(
    tmp_path: Path, pause_ms: int
) -> None:
    path = tmp_path / "x.kraq"
    code = """
from kraq_dspy.settings import Settings
print("go", flush=True)
index = Index.create(sys.argv[1], Settings(), encoder_name="keywords", encoder_dimension=2)
index.chunk_vectors, index.question_vectors
"""
    creator = run(code, path)
    assert line_of(creator) == "go"
    threading.Event().wait(pause_ms / 1000)
    end(creator)

    created = (path / "manifest.json").exists()
    with Index.open(path, write=True) if created else make(path) as index:
        index.chunk_vectors.upsert([content_id("a")], np.array([[0, 1]], np.float32))
        assert index.chunk_vectors.count() == 1
        assert index.question_vectors.count() == 0


READ_ONLY = """
import os
from kraq_dspy.errors import IndexStateError
from kraq_dspy.indexing.index.exchange import export_index
if os.geteuid() == 0:  # root may write anywhere
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
for name in "complete.kraq", "begun.kraq":
    with Index.open(sys.argv[1] + "/" + name) as index:
        print(index.count(Chunk), len(index.chunk_vectors.search_text("text", 5)))
        side = index.vectors_named("side")
        side.upsert([content_id("a")], np.ones((1, 2), np.float32))
        print(len(side.search(np.ones((1, 2), np.float32), 5)[0]), flush=True)
    try:
        Index.open(sys.argv[1] + "/" + name, write=True)
    except IndexStateError as error:
        print(error, flush=True)
print(len(export_index(sys.argv[1] + "/complete.kraq", sys.argv[2], "jsonl")))
try:
    Index.create(sys.argv[1] + "/y", index.manifest.settings, encoder_name="e", encoder_dimension=2)
except IndexStateError as error:
    print(error, flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="needs file modes")
def test_an_index_in_a_read_only_folder_is_read_searched_and_exported_and_says_why_it_cannot_be_written() -> None:
    folder, out = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())  # pytest's own cannot be entered by other users
    out.chmod(0o777)
    for name in ("complete", "begun"):
        with make(folder / f"{name}.kraq") as index:
            index.add([chunk("a")])
            index.chunk_vectors.upsert([content_id("a")], np.array([[0, 1]], np.float32), ["text"])
            index.update_manifest(complete=name == "complete")
    everything = [folder, *sorted(folder.rglob("*"))]
    try:
        for path in everything:
            path.chmod(0o555 if path.is_dir() else 0o444)
        process = run(READ_ONLY, folder, out)
        lines = [line_of(process) for _ in range(8)]
        end(process)
    finally:
        for path in everything:
            path.chmod(0o755)
        shutil.rmtree(folder)
        shutil.rmtree(out)

    assert lines[0:2] == ["1 1", "1"]
    assert lines[3:5] == ["1 1", "1"]
    for refusal in (lines[2], lines[5]):
        assert "Permission denied" in refusal
        assert "must exist and be writable" in refusal
    assert lines[6] == "10"
    assert "Permission denied" in lines[7]


FULL_DISK = """
from kraq_dspy.settings import Settings
from kraq_dspy.errors import IndexStateError
ballast = Path(sys.argv[1]) / "ballast"
ballast.write_bytes(bytes(20 << 20))
spare = Path(sys.argv[1]) / "spare"
spare.write_bytes(bytes(20 << 20))
index = Index.create(sys.argv[1] + "/x.kraq", Settings(), encoder_name="e", encoder_dimension=384)

def fill_vectors():
    for batch in range(1000):
        ids = [content_id(f"{batch}-{i}") for i in range(500)]
        index.chunk_vectors.upsert(ids, np.ones((500, 384), np.float32), ["some words"] * 500)

def fill_records():
    for batch in range(1000):
        index.add([Chunk(content_id(f"{batch}-{i}"), "d", i, 0, 1, "x" * 20000, 1) for i in range(100)])

for fill in fill_vectors, fill_records:
    try:
        fill()
    except IndexStateError as error:
        print(error, flush=True)
    spare.unlink(missing_ok=True)
n_vectors, n_chunks = index.chunk_vectors.count(), index.count(Chunk)
index.close()
ballast.unlink()
with Index.open(sys.argv[1] + "/x.kraq") as index:
    print(n_vectors > 1000, n_vectors == index.chunk_vectors.count(), n_vectors % 500)
    print(n_chunks > 100, n_chunks == index.count(Chunk), n_chunks % 100)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system of its own")
def test_a_full_disk_stops_writes_with_a_clear_error_and_leaves_a_usable_index(tmp_path: Path) -> None:
    in_small_disk = 'mount -t tmpfs -o size=150m tmpfs "$0" && exec "$@"'
    head = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", in_small_disk, str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run([*head, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount a small file system")

    process = subprocess.run(
        [*head, sys.executable, "-c", HEAD + FULL_DISK, str(tmp_path)], capture_output=True, text=True
    )

    assert process.returncode == 0, process.stderr
    vectors, records, vectors_kept, records_kept = process.stdout.splitlines()
    assert "is full" in vectors
    assert "free some space and go on" in vectors
    assert "The disk is full: free some space and go on" in records
    assert vectors_kept == "True True 0"
    assert records_kept == "True True 0"
