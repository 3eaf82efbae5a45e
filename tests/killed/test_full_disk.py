"""Runs a whole build on a disk that fills up and in folders that cannot be written: a clear error, a usable index."""

import itertools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kraq_dspy import build_index
from kraq_dspy.records import Document
from tests.conftest import WarmShell

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "hotpotqa-mini" / "corpus.jsonl"

FULL = """
import itertools, json, sys, threading, time
from pathlib import Path
from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.errors import IndexStateError
from kraq_dspy.records import Chunk, Document, Question
from kraq_dspy.asset.store.index import Index

folder, example = Path(sys.argv[1]), Path(sys.argv[2])
rows = [json.loads(line) for line in itertools.islice(example.open(encoding="utf-8"), 60)]
documents = [Document(row["id"], row["title"], row["text"]) for row in rows]
build_index(documents, folder.parent / "whole.kraq")
build_index(documents[:5], folder / "x.kraq")
ballast = folder / "ballast"
block = bytes(1 << 20)
with open(ballast, "wb") as file:
    try:
        while True:
            file.write(block)
            file.flush()
    except OSError:
        pass
with open(ballast, "r+b") as file:
    file.truncate(max(0, ballast.stat().st_size - int(sys.argv[3])))
try:
    build_index(documents, folder / "x.kraq")
    print("no error")
except IndexStateError as error:
    print(" ".join(str(error).split()))
with Index.open(folder / "x.kraq") as index:
    print(index.count(Chunk) >= 5, all(chunk.text for chunk in index.all(Chunk)))  # readable, full as the disk is
ballast.unlink()
with Index.open(folder / "x.kraq") as index:
    print(len(index.chunk_vectors.ids()) >= 5)
build_index(documents, folder / "x.kraq")
with Index.open(folder / "x.kraq") as mended, Index.open(folder.parent / "whole.kraq") as whole:
    same = [sorted(map(repr, mended.all(kind))) == sorted(map(repr, whole.all(kind))) for kind in (Chunk, Question)]
    print(all(same), mended.manifest.complete)
"""


def on_a_disk_of(disk: Path, size: str) -> list[str]:
    """The beginning of a command line whose program has a file system of that size at `disk`."""
    disk.mkdir()
    in_small_disk = f'mount -t tmpfs -o size={size} tmpfs "$0" && exec "$@"'
    head = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", in_small_disk, str(disk)]
    if shutil.which("unshare") is None or subprocess.run([*head, "true"], capture_output=True).returncode != 0:
        pytest.skip("needs the right to mount a small file system")
    return head


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system of its own")
@pytest.mark.parametrize("free_bytes", [200_000, 1_500_000])
def test_a_build_on_a_full_disk_says_so_and_goes_on_once_there_is_space(tmp_path: Path, free_bytes: int) -> None:
    disk = tmp_path / "disk"
    head = on_a_disk_of(disk, "160m")
    process = subprocess.run(
        [*head, sys.executable, "-c", FULL, str(disk), str(EXAMPLE), str(free_bytes)], capture_output=True, text=True
    )
    assert process.returncode == 0, process.stderr[-2000:]
    error, *after = process.stdout.splitlines()
    print(error)
    assert "full" in error
    assert "space" in error
    assert after == ["True True", "True", "True True"]


WRITE = """
import errno, subprocess, sys
from pathlib import Path

disk, index, free_bytes = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
ballast = disk / "ballast"
try:
    with open(ballast, "wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 20))
except OSError as error:
    assert error.errno == errno.ENOSPC
with open(ballast, "r+b") as file:
    file.truncate(ballast.stat().st_size - free_bytes)
commands = [["export", index, "--out", "tables"], ["export", index, "--format", "jsonl", "--out", "lines"]]
commands += [["export", index, "--format", "graphml", "--out", "graph.graphml"]]
commands += [["export", index, "--format", "dataset", "--unanswered", "--out", "set.jsonl"]]
for words in commands:
    process = subprocess.run([sys.executable, "-m", "kraq_dspy", *words], cwd=disk, capture_output=True, text=True)
    left = [str(path) for path in disk.rglob("*.new")]
    print(words[0], words[-1], process.returncode, left, repr(process.stdout), " ".join(process.stderr.split()))
    subprocess.run(["rm", "-rf", words[-1]], cwd=disk, check=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system of its own")
@pytest.mark.parametrize("free_bytes", [0, 8192])
def test_what_is_written_out_on_a_full_disk_ends_in_one_message(tmp_path: Path, free_bytes: int) -> None:
    head = on_a_disk_of(tmp_path / "disk", "16m")
    rows = [json.loads(line) for line in itertools.islice(EXAMPLE.open(encoding="utf-8"), 20)]
    build_index([Document(row["id"], row["title"], row["text"]) for row in rows], tmp_path / "x.kraq")
    words = [sys.executable, "-c", WRITE, str(tmp_path / "disk"), str(tmp_path / "x.kraq"), str(free_bytes)]
    process = subprocess.run([*head, *words], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr[-2000:]
    expected = "1 [] '' Error: The disk is full. Free some space, or write elsewhere, and run it again."
    lines = process.stdout.splitlines()
    assert len(lines) == 4
    assert [line for line in lines if not line.endswith(expected)] == []


# Root may write anywhere: without these rights (CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH) it meets modes as others do.
WITHOUT_RIGHTS = """
import ctypes, os, sys
from kraq_dspy.apps.cli import main

if os.geteuid() == 0:
    libc = ctypes.CDLL(None, use_errno=True)
    this_thread = (ctypes.c_uint32 * 2)(0x20080522, 0)  # _LINUX_CAPABILITY_VERSION_3
    rights = (ctypes.c_uint32 * 6)()  # those that hold come first
    assert libc.capget(this_thread, rights) == 0, os.strerror(ctypes.get_errno())
    rights[0] &= ~0b110
    assert libc.capset(this_thread, rights) == 0, os.strerror(ctypes.get_errno())
sys.argv = ["kraq", *sys.argv[1:]]
main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs the modes and the rights of Linux")
def test_kraq_index_into_a_folder_that_cannot_be_written_names_it(tmp_path: Path, kraq: WarmShell) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    (folder / "corpus.txt").write_text("Ada Lovelace met Charles Babbage.")
    words: list[str | Path] = ["index", folder / "corpus.txt", "--out", folder / "x.kraq", "--json"]
    folder.chmod(0o555)
    try:
        process = kraq.python(WITHOUT_RIGHTS, *words)
        output, errors = process.communicate()
    finally:
        folder.chmod(0o755)
    assert process.returncode == 1, errors
    assert output == ""
    assert "Permission denied" in errors
    assert "Traceback" not in errors
    assert str(folder) in errors.replace("\n", "")
