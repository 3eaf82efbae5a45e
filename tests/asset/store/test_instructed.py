"""Tests that instructed embeddings are found by question and passage, and kept apart by their keys."""

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kraq_dspy.asset.store.instructed import InstructedRow, InstructedStore
from kraq_dspy.errors import EncoderMismatchError, IndexStateError
from kraq_dspy.ports import Vectors
from kraq_dspy.records import content_id

Q, OTHER = content_id("question"), content_id("other question")
CHUNKS = tuple(content_id("chunk", str(i)) for i in range(8))


def unit_rows(n: int, dimension: int = 4, seed: int = 0) -> Vectors:
    rows = np.random.default_rng(seed).normal(size=(n, dimension)).astype(np.float32)
    normalised: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return normalised


def make(path: Path, **options: Any) -> InstructedStore:
    return InstructedStore.create(path, **{"encoder_name": "pair:x", "dimension": 4, **options})


def test_vectors_come_back_in_the_order_asked_for_with_what_was_not_found(tmp_path: Path) -> None:
    vectors = unit_rows(3)
    store = make(tmp_path / "instructed.db")
    store.add([InstructedRow(Q, CHUNKS[:3], vectors)])
    found_vectors, is_stored = store.lookup(Q, [CHUNKS[2], CHUNKS[5], CHUNKS[0]])
    assert is_stored.tolist() == [True, False, True]
    np.testing.assert_allclose(found_vectors[[0, 2]], vectors[[2, 0]], atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(found_vectors, axis=1), [1, 0, 1], rtol=1e-6)
    assert found_vectors.dtype == np.float32


def test_of_a_question_that_is_not_there_nothing_is_found(tmp_path: Path) -> None:
    store = make(tmp_path / "instructed.db")
    vectors, is_stored = store.lookup(Q, CHUNKS[:2])
    assert not is_stored.any()
    assert vectors.shape == (2, 4)
    assert Q not in store.owners()
    assert store.lookup(Q, [])[0].shape == (0, 4)


def test_a_question_that_is_there_is_replaced(tmp_path: Path) -> None:
    store = make(tmp_path / "instructed.db")
    store.add([InstructedRow(Q, CHUNKS[:2], unit_rows(2)), InstructedRow(OTHER, CHUNKS[:1], unit_rows(1))])
    store.add([InstructedRow(Q, CHUNKS[2:5], unit_rows(3))])
    assert store.holds(Q, CHUNKS).tolist() == [False, False, True, True, True, False, False, False]
    assert len(store.owners()) == 2


def test_ids_of_other_systems_are_kept_apart_too(tmp_path: Path) -> None:
    store = make(tmp_path / "instructed.db")
    store.add([InstructedRow("q-1", ("chunk 1", "chunk 2"), unit_rows(2))])
    assert store.holds("q-1", ["chunk 2", "chunk 3"]).tolist() == [True, False]
    assert store.whole("q-1") is not None
    assert store.whole("q-2") is None


def test_a_key_that_spans_two_others_is_not_found(tmp_path: Path) -> None:
    first, second = "00" * 15 + "01", "02" * 15 + "03"
    between = first[16:] + second[:16]
    store = make(tmp_path / "instructed.db")
    store.add([InstructedRow(Q, (first, second), unit_rows(2))])
    assert store.holds(Q, [between, second]).tolist() == [False, True]


def test_questions_that_are_gone_are_pruned(tmp_path: Path) -> None:
    store = make(tmp_path / "instructed.db")
    store.add([InstructedRow(Q, CHUNKS[:2], unit_rows(2)), InstructedRow(OTHER, CHUNKS[:1], unit_rows(1))])
    assert store.prune([OTHER, content_id("new")]) == 1
    assert Q not in store.owners()
    assert OTHER in store.owners()


def test_rows_of_the_wrong_shape_are_refused_and_nothing_of_their_batch_is_written(tmp_path: Path) -> None:
    store = make(tmp_path / "instructed.db")
    with pytest.raises(ValueError, match=r"\(2, 4\); expected \(3, 4\)"):
        store.add([InstructedRow(OTHER, CHUNKS[:1], unit_rows(1)), InstructedRow(Q, CHUNKS[:3], unit_rows(2))])
    assert len(store.owners()) == 0


def test_a_store_is_found_again_and_another_encoder_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "instructed.db"
    store = make(path)
    store.add([InstructedRow(Q, CHUNKS[:2], unit_rows(2))])
    store.close()
    reader = InstructedStore.open(path, encoder_name="pair:x")
    assert reader.lookup(Q, CHUNKS[:2])[1].all()
    reader.close()
    with pytest.raises(EncoderMismatchError, match=r"'pair:x', and this encoder is 'inbedder:y'.*kraq precompute"):
        make(path, encoder_name="inbedder:y")


def test_a_passage_has_its_own_row_which_goes_with_it(tmp_path: Path) -> None:
    store, sentences = make(tmp_path / "instructed.db"), unit_rows(3)
    store.add([InstructedRow(CHUNKS[0], CHUNKS[5:8], sentences), InstructedRow(CHUNKS[1], CHUNKS[5:6], sentences[:1])])
    whole = store.whole(CHUNKS[0])
    assert whole is not None
    np.testing.assert_allclose(whole, sentences, atol=1e-3)
    store.forget([CHUNKS[0]])
    assert store.whole(CHUNKS[0]) is None
    assert store.owners() == {CHUNKS[1]}


def test_nothing_pre_computed_is_an_error_that_names_the_command(tmp_path: Path) -> None:
    path = tmp_path / "corpus.kraq" / "instructed.db"
    path.parent.mkdir()
    with pytest.raises(IndexStateError, match=r"kraq precompute .*corpus\.kraq"):
        InstructedStore.open(path, encoder_name="pair:x")
    make(path).close()
    with pytest.raises(IndexStateError, match=r"is empty.*kraq precompute"):
        InstructedStore.open(path, encoder_name="pair:x")


def test_a_file_that_is_no_store_is_an_error_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "instructed.db"
    path.write_bytes(b"not a database " * 100)
    with pytest.raises(IndexStateError, match="damaged"):
        InstructedStore.open(path, encoder_name="pair:x")


def test_threads_read_while_rows_are_written(tmp_path: Path) -> None:
    store = make(tmp_path / "instructed.db", dimension=64)
    vectors = unit_rows(8, 64)
    store.add([InstructedRow(Q, CHUNKS, vectors)])
    wrong: list[str] = []
    ended = threading.Event()

    def read() -> None:
        while not ended.is_set():
            found_vectors, is_stored = store.lookup(Q, CHUNKS[::-1])
            if not is_stored.all() or np.abs(found_vectors - vectors[::-1]).max() > 1e-3:
                wrong.append("torn")

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for i in range(60):
        turned = np.roll(np.arange(8), i)
        replaced = InstructedRow(Q, tuple(CHUNKS[j] for j in turned), vectors[turned])
        store.add([InstructedRow(content_id(str(i)), CHUNKS, vectors), replaced])
    ended.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert len(store.owners()) == 61


WRITER = """
    import sys
    from pathlib import Path
    import numpy as np
    from kraq_dspy.records import content_id
    from kraq_dspy.asset.store.instructed import InstructedRow, InstructedStore

    store = InstructedStore.create(Path(sys.argv[1]), encoder_name="pair:x", dimension=256)
    rows = np.eye(256, dtype=np.float32)[:100]
    for batch in range(10_000):
        questions = [content_id(str(batch), str(i)) for i in range(4)]
        store.add([InstructedRow(q, tuple(content_id(str(j)) for j in range(100)), rows) for q in questions])
        print(batch, flush=True)
"""


def test_a_killed_writer_leaves_whole_batches_and_a_sound_file(tmp_path: Path) -> None:
    path = tmp_path / "instructed.db"
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(WRITER), str(path)], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    reported = 0
    for line in writer.stdout:
        reported = int(line) + 1
        if reported == 25:
            os.kill(writer.pid, signal.SIGKILL)
            break
    reported += sum(1 for _ in writer.stdout)
    writer.wait()
    writer.stdout.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    store = make(path, dimension=256)
    assert len(store.owners()) % 4 == 0
    assert len(store.owners()) >= 4 * reported
    chunks = [content_id(str(j)) for j in range(100)]
    for batch in range(reported):
        vectors, is_stored = store.lookup(content_id(str(batch), "3"), chunks)
        assert is_stored.all()
        assert vectors.argmax(1).tolist() == list(range(100))
    store.add([InstructedRow(Q, tuple(chunks), np.eye(256, dtype=np.float32)[:100])])
    assert Q in store.owners()
