"""Vector stores that follow their texts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kraq_dspy.asset.store.sync import BATCH, Point, sync_vectors
from kraq_dspy.asset.store.vectors import LocalVectorStore
from kraq_dspy.errors import UnembeddableError
from kraq_dspy.ports import SilentProgress, Vectors
from kraq_dspy.records import content_id


def test_what_is_missing_is_embedded_and_what_is_gone_is_dropped(tmp_path: Path) -> None:
    embedded: list[str] = []

    def encode(texts: Sequence[str]) -> Vectors:
        embedded.extend(texts)
        return np.ones((len(texts), 1), np.float32)

    def point(text: str) -> Point:
        return Point(content_id(text), text, {"letter": text})

    store = LocalVectorStore(tmp_path / "letters", 1)
    for letters, made in (("ab", ["a", "b"]), ("bc", ["c"]), ("bc", [])):
        embedded.clear()
        points = [point(letter) for letter in letters]
        assert sync_vectors(store, [p.id for p in points], points, encode, "embed", SilentProgress()) == len(made)
        assert embedded == made
        assert store.ids() == {p.id for p in points}
    assert store.search(np.ones((1, 1), np.float32), 5, filters={"letter": "c"})[0][0][0] == content_id("c")
    store.close()


def test_what_is_stopped_ends_with_its_batch_and_the_next_run_goes_on(tmp_path: Path) -> None:
    batches: list[int] = []

    def encode(texts: Sequence[str]) -> Vectors:
        batches.append(len(texts))
        return np.ones((len(texts), 1), np.float32)

    points = [Point(content_id(str(number)), str(number)) for number in range(BATCH + 5)]
    ids = [point.id for point in points]
    store = LocalVectorStore(tmp_path / "numbers", 1)
    sync_vectors(store, ids, points, encode, "embed", SilentProgress(), is_stopped=lambda: len(batches) == 1)
    assert (batches, len(store.ids())) == ([BATCH], BATCH)

    assert sync_vectors(store, ids, points, encode, "embed", SilentProgress()) == 5
    assert (batches, store.ids()) == ([BATCH, 5], set(ids))
    store.close()


def test_points_with_the_same_text_share_one_embedding_and_one_reason(tmp_path: Path) -> None:
    embedded: list[str] = []

    def encode(texts: Sequence[str]) -> Vectors:
        embedded.extend(texts)
        vectors = np.array([[float(text != "bad")] for text in texts], np.float32)
        reasons = {place: "too long" for place, text in enumerate(texts) if text == "bad"}
        if reasons:
            raise UnembeddableError("1 text", vectors, reasons)
        return vectors

    texts = [*["same", "bad"] * BATCH, "other"]
    points = [Point(content_id(str(place)), text) for place, text in enumerate(texts)]
    told: list[tuple[str, str]] = []
    store = LocalVectorStore(tmp_path / "texts", 1)
    sync_vectors(
        store, [p.id for p in points], points, encode, "embed", SilentProgress(), left_out=lambda *of: told.append(of)
    )

    assert embedded == ["same", "bad", "other"]
    assert store.vectors([point.id for point in points])[:, 0].tolist() == [float(text != "bad") for text in texts]
    assert told == [(point.id, "too long") for point in points if point.text == "bad"]
    store.close()
