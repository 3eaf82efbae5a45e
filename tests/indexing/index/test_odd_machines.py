"""Builds on odd machines: a clock that is set back, a network folder whose file system knows no locks."""

import errno
import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from kraq_dspy import Index, add_documents, remove_documents
from kraq_dspy.asset.store.faq import FAQ, NewEntry
from kraq_dspy.asset.store.manifest import MANIFEST
from kraq_dspy.asset.store.own_files import holder
from kraq_dspy.errors import IndexStateError
from kraq_dspy.extend import FaqCache
from kraq_dspy.indexing.index.check import check_index
from kraq_dspy.records import Document
from kraq_dspy.settings import CommunitySettings, Settings
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.newest_state import NewestState
from tests.conftest import KeywordEmbedder
from tests.kept import kept_index

NOTES = [
    Document("ada", "Ada", "Ada Lovelace met Charles Babbage in London."),
    Document("byron", "Byron", "Lord Byron wrote to Percy Shelley in Geneva."),
]
NEW = Document("turing", "Turing", "Alan Turing taught Gordon Welchman in Oxford.")


@pytest.fixture(scope="module")
def embedder(keyword_embedder: type[KeywordEmbedder]) -> KeywordEmbedder:
    return keyword_embedder("ada", "byron", "turing")


@pytest.fixture
def built(tmp_path: Path, embedder: KeywordEmbedder) -> Path:
    settings = Settings(communities=CommunitySettings(max_size=4))
    return kept_index(NOTES, tmp_path / "i.kraq", settings=settings, embedder=embedder)


ONE_AFTER_THE_OTHER = """
import json, sys
from kraq_dspy.apps.cli import main

for words in json.loads(sys.argv[1]):
    sys.argv = ["kraq", *words]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    print("\\f", end="", flush=True)
"""


def documents(index: Index) -> set[str]:
    return set(index.ids(Document))


def test_after_the_clock_was_set_back_readers_see_the_last_change(
    built: Path, embedder: KeywordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Workspace.open(built, embedder=embedder) as space:
        followed = NewestState(space)
        assert documents(followed.space.index) == {"ada", "byron"}
        monkeypatch.setattr("kraq_dspy.asset.store.manifest.now", lambda: "1999-12-31T23:59:59.000000+00:00")
        add_documents(built, [NEW], embedder=embedder)
        os.utime(built / MANIFEST, (946684799, 946684799))
        assert documents(followed.space.index) == {"ada", "byron", "turing"}
        remove_documents(built, ["ada"], embedder=embedder)
        os.utime(built / MANIFEST, (946684798, 946684798))
        assert documents(followed.space.index) == {"byron", "turing"}
        followed.close()
    assert check_index(built).whole


def refuse(number: int) -> Callable[..., None]:
    def lock(file: int, shared: bool) -> None:
        raise OSError(number, os.strerror(number))

    return lock


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP])
def test_where_a_file_system_knows_no_locks_an_index_is_read_and_a_change_says_why_not(
    built: Path, embedder: KeywordEmbedder, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    monkeypatch.setattr("kraq_dspy._internal.files._lock", refuse(number))
    with pytest.raises(IndexStateError, match=r"knows no locks.*change it on a local disk"):
        add_documents(built, [NEW], embedder=embedder)
    assert holder(built / "lock") is None
    with Index.open(built) as index:
        assert documents(index) == {"ada", "byron"}
    assert check_index(built).whole


@pytest.mark.skipif(sys.platform != "linux", reason="ulimit as Linux has it")
@pytest.mark.parametrize("spare", range(8))
def test_a_process_that_may_open_no_more_files_is_not_told_of_damage(built: Path, spare: int) -> None:
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    reason = ""
    taken: list[int] = []
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))) + 10, limits[1]))
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        for _ in range(spare):
            os.close(taken.pop())
        with Index.open(built) as index:
            index.count(Document)
            index.chunk_vectors.ids()
    except (IndexStateError, OSError) as error:
        reason = str(error)
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert not reason or ("Too many open files" in reason and " is damaged" not in reason)
    assert reason or spare > 2


def test_an_index_with_a_faq_is_asked_on_a_medium_that_cannot_be_written(tmp_path: Path) -> None:
    index = tmp_path / "i.kraq"
    kept_index(NOTES, index)
    with FaqCache(index / FAQ) as faq:
        faq.add(NewEntry("Who wrote it?", "Ada."), by="ann")
    mount = f'mount --bind "{index}" "{index}" && mount -o remount,ro,bind "{index}" && exec "$0" "$@"'
    isolated = ["unshare", "-rm", "sh", "-c", mount]
    if shutil.which("unshare") is None or subprocess.run([*isolated, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody mount a folder read-only")
    asked = [["Who wrote it?"], ["Who met Charles Babbage?"], ["Who wrote it?", "-p", "qa-search"]]
    commands = json.dumps([["ask", str(index), *words] for words in asked])

    command = [*isolated, sys.executable, "-c", ONE_AFTER_THE_OTHER, commands]
    done = subprocess.run(command, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    *answers, _ = done.stdout.split("\f")
    assert len(answers) == len(asked)
    assert all("Ada" in answer for answer in answers)
