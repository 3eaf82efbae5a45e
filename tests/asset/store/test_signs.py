"""Very many points: what the first look at their signs may change, and what it may not."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.vectors import LocalVectorStore, packed, signs
from kraq_dspy.asset.store.vectors.packed import Packed
from kraq_dspy.errors import IndexStateError
from kraq_dspy.ports import Vectors
from kraq_dspy.records import content_id
from kraq_dspy.settings import Settings, StoreSettings
from tests.asset.store.indexes import make

N_POINTS, DIMENSION = 4000, 48
Hits = list[tuple[str, float]]


@pytest.fixture(autouse=True)
def _many_are_a_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "MANY", 1000)
    monkeypatch.setattr(signs, "KEPT", 200)
    monkeypatch.setattr(signs, "_EACH", 4)


def clustered(n_points: int, seed: int = 0) -> tuple[list[str], Vectors]:
    """Points around 100 centers, as passages lie around topics; none at the origin of the space."""
    chance = np.random.default_rng(seed)
    centers = np.random.default_rng(99).normal(size=(100, DIMENSION)) + 0.5
    rows = centers[chance.integers(100, size=n_points)] + 0.6 * chance.normal(size=(n_points, DIMENSION))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return [content_id(f"{seed}-{number}") for number in range(n_points)], rows.astype(np.float32)


@pytest.fixture(scope="module")
def points() -> tuple[list[str], Vectors]:
    return clustered(N_POINTS)


@pytest.fixture
def path(tmp_path: Path, points: tuple[list[str], Vectors]) -> Path:
    ids, rows = points
    with closing(LocalVectorStore(tmp_path / "many", DIMENSION)) as store:
        store.upsert(ids, rows, payloads=[{"most": i % 4 > 0, "few": i % 40 == 0} for i in range(len(ids))])
        store.seal()
    return tmp_path / "many"


@pytest.fixture
def store(path: Path) -> Iterator[LocalVectorStore]:
    with closing(LocalVectorStore(path, DIMENSION)) as opened:
        yield opened


@pytest.fixture
def exact(path: Path) -> Iterator[LocalVectorStore]:
    with closing(LocalVectorStore(path, DIMENSION, exact=True)) as opened:
        yield opened


def recall(hits: list[Hits], best: list[Hits]) -> float:
    pairs = zip(hits, best, strict=True)
    return float(np.mean([len(dict(some).keys() & dict(all_).keys()) / len(all_) for some, all_ in pairs]))


def queries(n_queries: int = 50) -> Vectors:
    return clustered(n_queries, seed=1)[1]


def test_nearly_all_hits_are_those_of_the_exact_search_and_have_their_cosines(
    store: LocalVectorStore, exact: LocalVectorStore
) -> None:
    hits, best = store.search(queries(), 10), exact.search(queries(), 10)

    assert recall(hits, best) >= 0.99
    cosines = dict(best[0])
    assert all(cosines.get(one, cosine) == cosine for one, cosine in hits[0])
    assert hits == store.search(queries(), 10)


@pytest.mark.parametrize(("filters", "least"), [({"most": True}, 0.99), ({"few": True}, 1.0)])
def test_filters_and_exclusion_hold_and_where_few_are_allowed_all_of_them_are_compared(
    store: LocalVectorStore, exact: LocalVectorStore, filters: dict[str, bool], least: float
) -> None:
    excluded = [one for hits in exact.search(queries(5), 3, filters=filters) for one, _ in hits]

    hits, best = (each.search(queries(), 10, exclude=excluded, filters=filters) for each in (store, exact))

    assert recall(hits, best) >= least
    allowed = {one for one, _ in exact.search(queries(1), N_POINTS, filters=filters)[0]} - set(excluded)
    assert all(one in allowed for each in hits for one, _ in each)
    assert all(len(each) == 10 for each in hits)


def test_points_that_come_and_go_in_steps_make_the_same_file_as_at_once(
    tmp_path: Path, points: tuple[list[str], Vectors]
) -> None:
    ids, rows = points
    with (
        closing(LocalVectorStore(tmp_path / "steps", DIMENSION)) as steps,
        closing(LocalVectorStore(tmp_path / "once", DIMENSION)) as once,
    ):
        for start in range(0, len(ids), 1000):
            steps.upsert(ids[start : start + 1000], rows[start : start + 1000])
            steps.seal()
        nearest = steps.search(rows[:1], 1)[0][0][0]
        steps.delete(ids[:1500])
        once.upsert(ids[1500:], rows[1500:])
        once.seal()

        hits = steps.search(rows[:20], 10)

        assert nearest == ids[0]
        assert not {one for each in hits for one, _ in each} & set(ids[:1500])
        assert recall(hits, once.search(rows[:20], 10)) == 1
    assert (tmp_path / "steps").read_bytes() == (tmp_path / "once").read_bytes()


def test_a_file_of_an_older_version_is_searched_exactly_until_it_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: tuple[list[str], Vectors]
) -> None:
    ids, rows = points
    with monkeypatch.context() as before, closing(LocalVectorStore(tmp_path / "old", DIMENSION)) as old:
        before.setattr(packed, "MANY", 10 * N_POINTS)
        old.upsert(ids, rows)
        old.seal()

    with closing(LocalVectorStore(tmp_path / "old", DIMENSION)) as opened:
        [hits] = opened.search(queries(1), 10)
        best = np.argsort(-(rows @ queries(1)[0]))[:10]
        assert [one for one, _ in hits] == [ids[place] for place in best]
        assert Packed.open(tmp_path / "old", DIMENSION).signs is None
        opened.upsert([content_id("new")], queries(1))
        opened.seal()
        assert Packed.open(tmp_path / "old", DIMENSION).signs is not None
        assert opened.search(queries(1), 1)[0][0][0] == content_id("new")


def test_equal_vectors_come_in_the_order_of_their_ids_however_many_they_are(tmp_path: Path) -> None:
    ids = sorted(content_id(str(number)) for number in range(3000))
    with closing(LocalVectorStore(tmp_path / "equal", 3)) as store:
        store.upsert(ids, np.tile(np.array([0.6, 0, 0.8], np.float32), (3000, 1)))

        [hits] = store.search(np.array([[0, 0, 1]], np.float32), 7)

    assert [one for one, _ in hits] == ids[:7]


def test_points_are_found_also_where_the_first_ones_are_all_forbidden(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = Packed.open(path, DIMENSION)
    monkeypatch.setattr(signs, "_SAMPLE", 64)
    mask = np.arange(len(opened)) >= 64

    [(rows, _)] = opened.nearest(np.array(opened.dense[100:101]), 5, mask)

    assert rows[0] == 100
    assert rows.min() >= 64
    assert len(rows) == 5


def test_whoever_asks_for_very_many_gets_all_compared(store: LocalVectorStore, exact: LocalVectorStore) -> None:
    assert store.search(queries(3), 1000) == exact.search(queries(3), 1000)


def test_a_file_that_ends_within_the_signs_is_damaged(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 4096)

    with pytest.raises(IndexStateError, match="cut off"):
        LocalVectorStore(path, DIMENSION)


def test_an_index_is_searched_as_its_settings_say_until_somebody_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, points: tuple[list[str], Vectors]
) -> None:
    monkeypatch.setattr(signs.Signs, "nearby", lambda *_: np.array([7]))
    with Index.create(
        tmp_path / "exact.kraq",
        Settings(store=StoreSettings(exact=True)),
        encoder_name="keywords",
        encoder_dimension=DIMENSION,
    ) as exact:
        exact.chunk_vectors.upsert(*points)
        assert len(exact.chunk_vectors.search(queries(1), 5)[0]) == 5
    with make(tmp_path / "quick.kraq", DIMENSION) as index:
        index.chunk_vectors.upsert(*points)
        assert len(index.chunk_vectors.search(queries(1), 5)[0]) == 1
        index.exact = True
        index.question_vectors.upsert(*points)
        assert len(index.question_vectors.search(queries(1), 5)[0]) == 5


@pytest.mark.parametrize(("scattered", "useful"), [(False, True), (True, False)])
def test_points_that_signs_cannot_tell_apart_are_all_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scattered: bool, useful: bool
) -> None:
    monkeypatch.setattr(signs, "KEPT", 40)
    chance = np.random.default_rng(0)
    ids, _ = clustered(N_POINTS)
    rows = chance.standard_normal((N_POINTS, 256))
    if not scattered:
        rows = chance.standard_normal((200, 256))[chance.integers(200, size=N_POINTS)] + 0.3 * rows
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    with closing(LocalVectorStore(tmp_path / "many", 256)) as store:
        store.upsert(ids, rows.astype(np.float32))
        store.seal()
    assert (Packed.open(tmp_path / "many", 256).signs is not None) == useful
    with closing(LocalVectorStore(tmp_path / "many", 256)) as store:
        hits = store.search(rows[:20].astype(np.float32), 10)
    with closing(LocalVectorStore(tmp_path / "many", 256, exact=True)) as store:
        best = store.search(rows[:20].astype(np.float32), 10)
    assert recall(hits, best) == 1.0 if scattered else recall(hits, best) > 0.9
