"""A clock that is set back, and a folder of a network whose file system knows no locks."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.manifest import MANIFEST
from kraq_dspy.asset.store.own_files import holder
from kraq_dspy.errors import IndexStateError
from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.indexing.index.change import add_documents, remove_documents
from kraq_dspy.indexing.index.check import check_index
from kraq_dspy.records import Document
from kraq_dspy.settings import CommunitySettings, Settings
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.newest_state import NewestState
from tests.conftest import KeywordEmbedder

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
    return build_index(NOTES, tmp_path / "i.kraq", settings=settings, embedder=embedder).path


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
