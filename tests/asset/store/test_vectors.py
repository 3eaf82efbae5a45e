"""Holds both vector stores to one contract, worked out by hand on axes, and tests what the local one adds."""

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from kraq_dspy._internal.turns import IN_TURN
from kraq_dspy.asset.store.vectors import LocalVectorStore, QdrantVectorStore
from kraq_dspy.errors import EncoderMismatchError, IndexStateError, UnknownRecordError
from kraq_dspy.ports import Vectors, VectorStore
from kraq_dspy.records import content_id
from kraq_dspy.testing import check_store

CAT, DOG, BIRD, FISH = (content_id(name) for name in ("cat", "dog", "bird", "fish"))
NAMES = {CAT: "cat", DOG: "dog", BIRD: "bird", FISH: "fish"}


@pytest.fixture(params=["local", "qdrant"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[VectorStore]:
    from qdrant_client import QdrantClient

    """Four animals on the axes (furry, loud, small)."""
    made: VectorStore = (
        LocalVectorStore(tmp_path / "animals", 3)
        if request.param == "local"
        else QdrantVectorStore(QdrantClient(":memory:"), "animals", 3)
    )
    made.upsert(
        [CAT, DOG, BIRD, FISH],
        unit([1, 0, 0], [1, 1, 0], [0, 1, 1], [0, 0, 1]),
        ["the cat purrs", "the dog barks and barks", "the bird sings while the cat sleeps", "the fish swims"],
        [
            {"document_id": "d1", "legs": 4, "weight": 4.5, "tame": True, "a.b": "x"},
            {"document_id": "d1", "legs": 4, "weight": 20.0, "tame": True, "a.b": "y"},
            {"document_id": "d2", "legs": 2, "weight": 1, "tame": False, "a.b": "x"},
            {"document_id": "d3", "legs": 0, "weight": 0.5, "tame": False, "a.b": "x"},
        ],
    )
    yield made
    made.close()


def unit(*rows: Sequence[float]) -> Vectors:
    matrix: Vectors = np.array(rows, dtype=np.float32)
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix


def names(hits: list[tuple[str, float]]) -> list[str]:
    return [NAMES[one] for one, _ in hits]


def test_each_row_finds_its_nearest_points_best_first_with_their_cosines(store: VectorStore) -> None:
    furry, small = store.search(unit([1, 0, 0], [0, 0, 1]), 2)

    assert names(furry) == ["cat", "dog"]
    assert [score for _, score in furry] == pytest.approx([1, 0.7071], abs=1e-4)
    assert names(small) == ["fish", "bird"]


@pytest.mark.parametrize("kind", ["local", "qdrant"])
def test_it_keeps_the_contract_that_others_can_run_on_theirs(kind: str, tmp_path: Path) -> None:
    from qdrant_client import QdrantClient

    store: VectorStore = (
        LocalVectorStore(tmp_path / "empty", 4)
        if kind == "local"
        else QdrantVectorStore(QdrantClient(":memory:"), "empty", 4)
    )
    check_store(store)
    store.close()


def test_excluded_points_are_not_found_and_the_next_best_take_their_place(store: VectorStore) -> None:
    (hits,) = store.search(unit([1, 0, 0]), 1, exclude={CAT, content_id("unknown")})

    assert names(hits) == ["dog"]
    assert names(store.search_text("cat", 5, exclude=[CAT])) == ["bird"]


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ({"document_id": "d1"}, {"cat", "dog"}),
        ({"document_id": ["d2", "d3", "d9"]}, {"bird", "fish"}),
        ({"legs": 4, "weight": 4.5}, {"cat"}),
        ({"weight": [1.0, 0.5]}, {"bird", "fish"}),
        ({"tame": True}, {"cat", "dog"}),
        ({"a.b": "x", "tame": True}, {"cat"}),
        ({"legs": "4"}, set()),
        ({"legs": []}, set()),
        ({"unknown": "x"}, set()),
        ({}, {"cat", "dog", "bird", "fish"}),
    ],
)
def test_filters_ask_for_a_value_or_one_of_a_list(
    store: VectorStore, filters: dict[str, object], expected: set[str]
) -> None:
    (hits,) = store.search(unit([1, 1, 1]), 10, filters=filters)

    assert set(names(hits)) == expected


def test_filters_hold_for_words_too(store: VectorStore) -> None:
    assert names(store.search_text("cat", 5, filters={"document_id": "d2"})) == ["bird"]


def test_words_find_only_points_that_have_one_of_them_and_the_shorter_text_first(store: VectorStore) -> None:
    assert names(store.search_text("cats", 5)) == ["cat", "bird"]  # stemmed
    assert names(store.search_text("barking", 5)) == ["dog"]
    assert store.search_text("submarine", 5) == []
    assert store.search_text("the", 5) == []  # a stop word
    assert store.search_text("", 5) == []


def test_words_are_found_in_scripts_without_spaces_and_without_their_accents(store: VectorStore) -> None:
    tokyo, zurich = content_id("tokyo"), content_id("zurich")
    store.upsert([tokyo, zurich], unit([1, 0, 0], [1, 0, 0]), ["東京は日本の首都です。", "Zürich lies on a lake"])

    assert [one for one, _ in store.search_text("日本の首都", 5)] == [tokyo]
    assert [one for one, _ in store.search_text("zurich", 5)] == [zurich]


def test_a_rare_word_outweighs_a_common_one(store: VectorStore) -> None:
    assert names(store.search_text("cat swims", 5))[0] == "fish"


def test_ties_come_in_the_order_of_the_ids_and_are_cut_there_too_but_by_a_server(store: VectorStore) -> None:
    twins = sorted(content_id(str(i)) for i in range(100))
    store.upsert(twins[::-1], unit(*[[1, 0, 1]] * 100), ["quokka"] * 100)

    (hits,) = store.search(unit([1, 0, 1]), 7)

    for found in ([one for one, _ in hits], [one for one, _ in store.search_text("quokka", 7)]):
        assert len(found) == 7
        assert found == (twins[:7] if isinstance(store, LocalVectorStore) else sorted(set(found) & set(twins)))


def test_points_are_merged_into_a_file_of_many_blocks_wherever_they_fall(tmp_path: Path) -> None:
    chance = np.random.default_rng(0)
    ids = sorted(content_id(str(number)) for number in range(10_000))
    vectors = unit(*chance.standard_normal((10_000, 3)))
    last = ids.pop()
    with closing(LocalVectorStore(tmp_path / "many", 3)) as store:
        store.upsert(ids, vectors[:-1], ["word"] * len(ids))
        assert store.search(vectors[:1], 1)[0][0][0] == ids[0]
        store.upsert([last, ids[5]], vectors[-1:].repeat(2, axis=0), ["word"] * 2)

        found_ids = [hit[0] for hit in store.search(vectors[-1:], 2)[0]]

        assert found_ids == [ids[5], last]
        np.testing.assert_allclose(store.vectors([ids[4], ids[6], last]), vectors[[4, 6, -1]], atol=2e-3)


def test_a_point_that_is_written_again_is_replaced(store: VectorStore) -> None:
    store.upsert([CAT], unit([0, 0, 1]), ["a robot"], [{"document_id": "d9"}])

    assert store.count() == 4
    assert names(store.search(unit([0, 0, 1]), 5, filters={"document_id": "d9"})[0]) == ["cat"]
    assert names(store.search_text("purrs", 5)) == []
    assert names(store.search_text("robot", 5)) == ["cat"]


def test_deleted_points_are_gone_and_deleting_twice_does_nothing(store: VectorStore) -> None:
    store.delete([CAT, content_id("unknown")])
    store.delete([CAT])
    store.delete([])

    assert store.ids() == {DOG, BIRD, FISH}
    assert store.count() == 3
    assert names(store.search_text("cat", 5)) == ["bird"]


def test_vectors_come_back_in_the_order_of_the_ids(store: VectorStore) -> None:
    rows = store.vectors([FISH, DOG, FISH])

    np.testing.assert_allclose(rows, unit([0, 0, 1], [1, 1, 0], [0, 0, 1]), atol=1e-6)
    assert rows.dtype == np.float32
    assert store.vectors([]).shape == (0, 3)
    with pytest.raises(UnknownRecordError, match=content_id("unknown")):
        store.vectors([CAT, content_id("unknown")])


def test_text_and_payload_that_utf8_cannot_write_are_stored(store: VectorStore) -> None:
    new = content_id("new")
    store.upsert([new], unit([1, 0, 0]), ["walrus caf\udce9"], [{"document_id": "caf\udce9.txt"}])

    assert [one for one, _ in store.search_text("walrus", 5)] == [new]
    assert [one for one, _ in store.search(unit([1, 0, 0]), 5, filters={"document_id": "caf\udce9.txt"})[0]] == [new]


@pytest.mark.parametrize(
    ("use", "error", "message"),
    [
        (lambda store: store.search(unit([1, 0]), 5), EncoderMismatchError, "holds 3-dimensional.*2-dimensional"),
        (lambda store: store.upsert([CAT], unit([1, 0])), EncoderMismatchError, "holds 3-dimensional"),
        (lambda store: store.upsert([CAT, DOG], unit([1, 0, 0])), ValueError, "2 ids but 1 vector"),
        (lambda store: store.search(np.array([1, 0, 0], np.float32), 5), ValueError, r"expected \[n, 3\]"),
        (lambda store: store.search(np.array([[1, np.nan, 0]], np.float32), 5), ValueError, "not finite"),
        (lambda store: store.search(unit([1, 0, 0]), 0), ValueError, "k is 0"),
        (lambda store: store.search_text("cat", 0), ValueError, "k is 0"),
    ],
)
def test_what_cannot_be_done_is_refused_with_a_reason(
    store: VectorStore, use: Callable[[VectorStore], object], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        use(store)


def test_sixteen_threads_search_while_one_writes(store: VectorStore) -> None:
    start, done = threading.Barrier(17), threading.Event()

    def search() -> set[str]:
        start.wait()
        best: set[str] = set()
        while not (best and done.is_set()):
            best.update(names(store.search(unit([1, 0, 0]), 1, filters={"document_id": "d1"})[0]))
        return best

    with ThreadPoolExecutor(16) as pool:
        searches = [pool.submit(search) for _ in range(16)]
        start.wait()
        for batch in range(5):
            store.upsert([content_id(f"{batch}-{i}") for i in range(40)], unit(*[[0, 1, 0]] * 40))
        done.set()
        results = [search.result() for search in searches]

    assert results == [{"cat"}] * 16
    assert store.count() == 204


# The local one alone


def test_a_local_store_keeps_its_points_when_it_is_closed_and_opened(tmp_path: Path) -> None:
    first = LocalVectorStore(tmp_path / "animals", 3)
    first.upsert([CAT], unit([1, 0, 0]), ["the cat purrs"], [{"document_id": "d1"}])
    first.close()
    first.close()

    second = LocalVectorStore(tmp_path / "animals", 3)

    assert second.ids() == {CAT}
    assert names(second.search(unit([1, 0, 0]), 5, filters={"document_id": "d1"})[0]) == ["cat"]
    assert names(second.search_text("purr", 5)) == ["cat"]
    second.close()


def test_what_is_written_between_searches_is_found_by_the_next_one(tmp_path: Path) -> None:
    rows = unit(*np.random.default_rng(0).normal(size=(300, 8)).tolist())
    ids = [content_id(str(i)) for i in range(300)]
    store, at_once = LocalVectorStore(tmp_path / "steps", 8), LocalVectorStore(tmp_path / "once", 8)
    texts, payloads = [f"word{i % 7} other" for i in range(300)], [{"n": i % 3} for i in range(300)]
    for start in range(0, 300, 50):
        some = slice(start, start + 50)
        store.upsert(ids[some], rows[some], texts[some], payloads[some])
        store.delete(ids[start : start + 10])
        assert names_of(store.search(rows[start + 20][None], 1)[0]) == [ids[start + 20]]
    staying = [i for i in range(300) if i % 50 >= 10]
    at_once.upsert(
        [ids[i] for i in staying], rows[staying], [texts[i] for i in staying], [payloads[i] for i in staying]
    )

    assert store.ids() == at_once.ids()
    assert store.search(rows, 10, filters={"n": [0, 2]}) == at_once.search(rows, 10, filters={"n": [0, 2]})
    assert store.search_text("word3", 99) == at_once.search_text("word3", 99)
    assert len(store.search_text("word3", 99)) == len([i for i in staying if i % 7 == 3])
    assert (tmp_path / "steps").read_bytes() == (tmp_path / "once").read_bytes()


def names_of(hits: list[tuple[str, float]]) -> list[str]:
    return [one for one, _ in hits]


def test_a_store_that_was_opened_keeps_what_it_saw_while_another_writes_to_the_same_file(tmp_path: Path) -> None:
    writer = LocalVectorStore(tmp_path / "animals", 3)
    writer.upsert([CAT], unit([1, 0, 0]))
    writer.seal()
    reader = LocalVectorStore(tmp_path / "animals", 3, apart=lambda: tmp_path / "apart")

    writer.upsert([DOG], unit([1, 0, 0]))
    writer.delete([CAT])
    writer.seal()

    assert names(reader.search(unit([1, 0, 0]), 5)[0]) == ["cat"]
    assert reader.ids() == {CAT}
    later = LocalVectorStore(tmp_path / "animals", 3, apart=lambda: tmp_path / "apart")
    assert names(later.search(unit([1, 0, 0]), 5)[0]) == ["dog"]


def test_a_reader_sees_what_a_writer_has_not_sealed_and_writes_nowhere_but_apart(tmp_path: Path) -> None:
    writer = LocalVectorStore(tmp_path / "index" / "animals", 3)
    writer.upsert([CAT], unit([1, 0, 0]))
    kept: list[Path] = []
    reader = LocalVectorStore(tmp_path / "index" / "animals", 3, apart=lambda: tmp_path / "apart", keep=kept.append)

    assert reader.ids() == {CAT}
    reader.upsert([DOG], unit([0, 1, 0]))
    assert names(reader.search(unit([0, 1, 0]), 1)[0]) == ["dog"]
    assert kept == [tmp_path / "apart" / "animals"]
    assert writer.ids() == {CAT}
    assert not (tmp_path / "index" / "animals").exists()


@pytest.mark.parametrize("content", [b"", b"noise" * 2000, b"kraqvec1" + bytes(5000)])
def test_a_damaged_file_is_named_with_what_mends_it(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "animals").write_bytes(content)

    with pytest.raises(IndexStateError, match=r"animals' are damaged: .*kraq check DIR --repair"):
        LocalVectorStore(tmp_path / "animals", 3)


def test_a_file_that_was_cut_off_is_damaged(tmp_path: Path) -> None:
    store = LocalVectorStore(tmp_path / "animals", 3)
    store.upsert([content_id(str(i)) for i in range(2000)], unit(*[[1, 0, 0]] * 2000))
    store.seal()
    with (tmp_path / "animals").open("r+b") as file:
        file.truncate(30_000)

    with pytest.raises(IndexStateError, match="cut off"):
        LocalVectorStore(tmp_path / "animals", 3)


def test_a_closed_store_says_so(tmp_path: Path) -> None:
    store = LocalVectorStore(tmp_path / "animals", 3)
    store.close()

    with pytest.raises(IndexStateError, match="were closed"):
        store.search(unit([1, 0, 0]), 1)


def test_an_id_that_is_no_content_id_is_refused(tmp_path: Path) -> None:
    store = LocalVectorStore(tmp_path / "animals", 3)

    for wrong in ("cat", "ab"):
        with pytest.raises(ValueError, match=r"ab|hex"):
            store.upsert([wrong], unit([1, 0, 0]))
    assert store.count() == 0


def test_few_or_many_allowed_points_give_the_same_cosines(tmp_path: Path) -> None:
    rows = unit(*np.random.default_rng(1).normal(size=(500, 8)).tolist())
    ids = [content_id(str(i)) for i in range(500)]
    store = LocalVectorStore(tmp_path / "numbers", 8)
    store.upsert(ids, rows, payloads=[{"few": i < 20, "many": i < 400} for i in range(500)])

    everything = dict(store.search(rows[:1], 500)[0])
    for name, n_points in (("few", 20), ("many", 400)):
        [hits] = store.search(rows[:1], 500, filters={name: True})
        assert {one for one, _ in hits} == set(ids[:n_points])
        assert all(everything[one] == cosine for one, cosine in hits)


@pytest.mark.parametrize(
    "search",
    [
        lambda store: store.search(unit([1, 0, 0]), 1),
        lambda store: store.search_text("cat", 1),
        lambda store: store.vectors([CAT]),
    ],
)
def test_a_local_search_waits_until_few_threads_compute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, search: Callable[[LocalVectorStore], object]
) -> None:
    store = LocalVectorStore(tmp_path / "animals", 3)
    store.upsert([CAT], unit([1, 0, 0]), ["the cat purrs"])
    monkeypatch.setattr(IN_TURN, "_places", threading.Semaphore(0))  # others compute
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(search, store)
        with pytest.raises(TimeoutError):
            waiting.result(0.2)
        IN_TURN._places.release()
        assert waiting.result(60) is not None
