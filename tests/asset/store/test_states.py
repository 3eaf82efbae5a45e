"""States that nobody reads any more, given back by several at once."""

import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kraq_dspy import Index
from kraq_dspy._internal.files import try_lock
from kraq_dspy.asset.store import manifest as manifests, states
from tests.asset.store.indexes import make


def old_states(root: Path, n: int) -> Path:
    """An index with `n` former states that nobody holds; whoever removed every third was killed half-way."""
    with make(root) as index:
        index.update_manifest(complete=True)
    current = root / "states" / "1"
    for number in range(2, n + 2):
        shutil.copytree(current, root / "states" / str(number))
        if number % 3 == 0:
            (root / "states" / str(number - 1) / manifests.MANIFEST).unlink()
    manifest = manifests.read_fields(current)
    manifests.write_fields(root, {**manifest, "state": str(n + 1)})
    return root


def test_many_readers_that_leave_at_once_give_back_what_nobody_reads(tmp_path: Path) -> None:
    root = old_states(tmp_path / "x.kraq", 150)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # between any two steps of one, another one has its turn
    try:
        with ThreadPoolExecutor(8) as pool:
            for leaving in [pool.submit(states.give_back, root) for _ in range(8)]:
                leaving.result()
    finally:
        sys.setswitchinterval(interval)
    states.give_back(root)  # what one kept from another's hands
    assert [path.name for path in (root / "states").iterdir()] == ["151"]


def test_a_draft_of_a_former_state_is_not_gone_on_with(tmp_path: Path) -> None:
    root = old_states(tmp_path / "x.kraq", 1)
    former = shutil.copytree(root / "states" / "1", root / "draft")
    (former / "left").touch()
    with Index.open(root, write=True) as index:
        assert not (index.home / "left").exists()


def test_a_state_that_is_read_stays(tmp_path: Path) -> None:
    root = old_states(tmp_path / "x.kraq", 4)
    held = (root / "states" / "3" / manifests.MANIFEST).open("rb")
    try_lock(held.fileno(), shared=True)
    states.give_back(root)
    assert sorted(path.name for path in (root / "states").iterdir()) == ["3", "5"]
    held.close()
    states.give_back(root)
    assert [path.name for path in (root / "states").iterdir()] == ["5"]
