"""An index of an earlier schema version is upgraded on a copy; whatever happens, one whole index is there."""

import errno
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kraq_dspy.asset.store import upgrade as upgrades
from kraq_dspy.asset.store.manifest import MANIFEST, write_fields
from kraq_dspy.asset.store.own_files import FileLock
from kraq_dspy.asset.store.states import VIEWS
from kraq_dspy.asset.store.upgrade import Upgrade, upgrade
from kraq_dspy.errors import IndexLockedError, IndexStateError
from kraq_dspy.indexing.index.check import check_index, faults_of
from kraq_dspy.records import Document
from kraq_dspy.workspace import Workspace
from tests.asset.store.schemas.make import EMBEDDER, HERE
from tests.conftest import WarmShell


def manifests_of(index: Path) -> list[Path]:
    return [index / MANIFEST, *index.glob(f"states/*/{MANIFEST}")]


def edit(index: Path, version: int, change: Callable[[dict[str, object]], object]) -> None:
    for path in manifests_of(index):
        fields = json.loads(path.read_text("utf-8"))
        fields.pop("sum", None)
        change(fields)
        write_fields(path.parent, {**fields, "schema_version": version})


def from_5_to_6(index: Path) -> None:
    edit(index, 6, lambda fields: fields.update(schemas=fields.pop("modes")))


def files_of(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != "lock")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def names_beside(index: Path) -> set[str]:
    return {path.name for path in index.parent.iterdir()}


def run(index: Path) -> Upgrade:
    return upgrade(index, faults_of=faults_of)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """An index of a version 5 that never was: one field of its manifest has another name."""
    shutil.unpack_archive(HERE / "schema-6.zip", tmp_path)
    index = tmp_path / "poets.kraq"
    edit(index, 5, lambda fields: fields.update(modes=fields.pop("schemas")))
    return index


@pytest.fixture
def step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(upgrades.STEPS, 5, from_5_to_6)


@pytest.mark.usefixtures("step")
def test_an_old_index_is_upgraded_asked_and_kept_as_it_was(old: Path) -> None:
    before = files_of(old)
    with pytest.raises(IndexStateError, match=r"schema version 5 .*reads 6 and 7.*kraq upgrade "):
        check_index(old)

    done = run(old)

    kept = old.with_name("poets.kraq.before")
    assert done == Upgrade(old, 5, 6, kept)
    assert files_of(kept) == before
    assert names_beside(old) == {"poets.kraq", "poets.kraq.before"}
    assert not (old / ".upgrading").exists()
    assert check_index(old).problems == ()
    with Workspace.open(old, embedder=EMBEDDER) as space:
        assert {each.title for each in space.index.all(Document)} == {"Ada Lovelace", "Lord Byron"}
    assert run(old) == Upgrade(old, 6, 6)


def test_steps_run_one_after_the_other(old: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit(old, 3, lambda fields: None)
    monkeypatch.setitem(upgrades.STEPS, 5, from_5_to_6)
    monkeypatch.setitem(upgrades.STEPS, 3, lambda index: edit(index, 5, lambda fields: fields))
    assert (run(old).former, check_index(old).whole) == (3, True)


def breaks_off(index: Path) -> None:
    (index / MANIFEST).unlink()
    raise KeyError("modes")


def stands_still(index: Path) -> None:
    pass


def empties_the_database(index: Path) -> None:
    from_5_to_6(index)
    next(index.glob("states/*/index.db")).write_bytes(b"")


def fills_the_disk(index: Path) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (breaks_off, "step from schema version 5 failed.*modes.*is as it was"),
        (stands_still, "left the index at version 5"),
        (empties_the_database, "is not whole|damaged"),
        (fills_the_disk, "No space left on device.*is as it was"),
    ],
)
def test_after_a_failure_the_old_index_is_untouched_and_the_next_run_works(
    old: Path, monkeypatch: pytest.MonkeyPatch, broken: upgrades.Step, words: str
) -> None:
    before = files_of(old)
    monkeypatch.setitem(upgrades.STEPS, 5, broken)
    with pytest.raises(IndexStateError, match=words):
        run(old)
    assert files_of(old) == before
    assert names_beside(old) == {"poets.kraq"}

    monkeypatch.setitem(upgrades.STEPS, 5, from_5_to_6)
    assert run(old).present == 6
    assert check_index(old).whole


@pytest.mark.usefixtures("step")
def test_a_copy_with_faults_does_not_take_the_place_of_the_index(old: Path) -> None:
    before = files_of(old)
    with pytest.raises(IndexStateError, match=r"not whole: 2 passages are lost\. .*is as it was"):
        upgrade(old, faults_of=lambda copy: ["2 passages are lost"])
    assert files_of(old) == before
    assert names_beside(old) == {"poets.kraq"}


@pytest.mark.usefixtures("step")
def test_views_of_the_old_index_are_not_taken_over(old: Path) -> None:
    view = old / VIEWS / "5-of-some-documents"
    view.mkdir(parents=True)
    (view / MANIFEST).write_text("{}")

    kept = run(old).kept

    assert kept is not None
    assert (kept / VIEWS / view.name / MANIFEST).exists()
    assert not (old / VIEWS).exists()


@pytest.mark.usefixtures("step")
def test_what_a_killed_run_left_half_copied_is_replaced(old: Path) -> None:
    copy = old.with_name("poets.kraq.upgrading")
    copy.mkdir()
    (copy / ".upgrading").write_text("copying")
    (copy / "torn").write_text("half a fi")
    run(old)
    assert names_beside(old) == {"poets.kraq", "poets.kraq.before"}
    assert not (old / "torn").exists()


@pytest.mark.usefixtures("step")
@pytest.mark.parametrize("renames", [0, 1, 2])
def test_an_interruption_at_the_renames_is_finished_by_the_next_run(
    old: Path, monkeypatch: pytest.MonkeyPatch, renames: int
) -> None:
    """As Ctrl-C would end it, after none, one, or both of the renames."""
    real = Path.rename
    done: list[Path] = []

    def rename(path: Path, target: Path) -> Path:
        if path.name.startswith("poets.kraq"):
            if len(done) == renames:
                raise KeyboardInterrupt
            done.append(path)
        return real(path, target)

    def unmark(root: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", rename)
        patched.setattr(upgrades, "_unmark", unmark)
        with pytest.raises(KeyboardInterrupt):
            run(old)
    if renames == 1:
        with pytest.raises(IndexStateError, match=r"interrupted. Finish it: kraq upgrade .*poets\.kraq"):
            check_index(old)

    run(old)
    assert check_index(old).whole
    assert names_beside(old) == {"poets.kraq", "poets.kraq.before"}
    assert not (old / ".upgrading").exists()


@pytest.mark.usefixtures("step")
def test_an_index_that_is_being_changed_is_refused(old: Path) -> None:
    lock = FileLock(old / "lock")
    lock.acquire()
    with pytest.raises(IndexLockedError, match="is being changed by this process"):
        run(old)
    lock.release()
    assert names_beside(old) == {"poets.kraq"}


@pytest.mark.usefixtures("step")
@pytest.mark.parametrize("word", ["before", "upgrading"])
def test_a_folder_of_the_users_is_never_overwritten(old: Path, word: str) -> None:
    theirs = old.with_name(f"poets.kraq.{word}")
    theirs.mkdir()
    (theirs / "thesis").write_text("years of work")
    with pytest.raises(IndexStateError, match=r"is in the way.*Move or delete it"):
        run(old)
    assert (theirs / "thesis").read_text() == "years of work"


@pytest.mark.usefixtures("step")
@pytest.mark.parametrize("where", ["before the copy", "while it is made"])
def test_a_full_disk_is_said_in_words(old: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = files_of(old)
    with monkeypatch.context() as patched:
        if where == "before the copy":
            patched.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(10, 9, 1))
        else:
            patched.setattr(shutil, "copy2", full)
        with pytest.raises(IndexStateError, match=r"needs .* MB for a copy|The disk .* is full"):
            run(old)
    assert files_of(old) == before
    assert names_beside(old) == {"poets.kraq"}
    assert run(old).present == 6


def test_a_version_without_a_step_is_to_be_indexed_again(kraq: WarmShell, old: Path) -> None:
    refused = kraq("upgrade", old)
    said = " ".join(refused.stderr.split())
    assert refused.returncode == 1
    assert "schema version 5, this library reads 6 and 7" in said
    assert "Index its corpus again: kraq index CORPUS --out" in said
    assert names_beside(old) == {"poets.kraq"}


def test_a_newer_version_needs_a_newer_library(kraq: WarmShell, old: Path) -> None:
    edit(old, 99, lambda fields: None)
    refused = kraq("upgrade", old)
    assert refused.returncode == 1
    assert "pip install -U kraq-dspy" in " ".join(refused.stderr.split())


@pytest.mark.parametrize("version", [6, 7])
def test_a_present_index_needs_nothing(kraq: WarmShell, tmp_path: Path, version: int) -> None:
    shutil.unpack_archive(HERE / f"schema-{version}.zip", tmp_path)
    index = tmp_path / "poets.kraq"
    before = files_of(index)
    done = kraq("upgrade", index)
    assert (done.returncode, "there is nothing to do" in " ".join(done.stdout.split())) == (0, True), done.stderr
    as_json = json.loads(kraq("upgrade", index, "--json").stdout)
    assert (as_json["former"], as_json["present"], as_json["kept"]) == (version, version, None)
    assert files_of(index) == before
