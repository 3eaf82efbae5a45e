"""A Qdrant server keeps the points of each state apart, and of each collection."""

import pytest
from qdrant_client import QdrantClient

from kraq_dspy.asset.store.vectors import QdrantVectorStore
from kraq_dspy.errors import EncoderMismatchError, IndexStateError, UnknownRecordError
from kraq_dspy.records import content_id
from tests.asset.store.test_vectors import unit

CAT, DOG, BIRD, FISH = (content_id(name) for name in ("cat", "dog", "bird", "fish"))


def test_a_server_that_is_not_there_is_named_with_what_to_check() -> None:
    with pytest.raises(IndexStateError, match=r"Qdrant server.*url is its address"):
        QdrantVectorStore("http://127.0.0.1:9", "animals", 3)


def test_a_collection_of_another_dimension_is_refused() -> None:
    client = QdrantClient(":memory:")
    QdrantVectorStore(client, "animals", 3)

    with pytest.raises(EncoderMismatchError, match="animals holds 3-dimensional"):
        QdrantVectorStore(client, "animals", 4)


def test_each_state_of_a_collection_has_its_own_points_until_they_are_forgotten() -> None:
    client = QdrantClient(":memory:")

    def of(state: int) -> QdrantVectorStore:
        return QdrantVectorStore(client, "animals", 3, state=state)

    of(1).upsert([CAT, DOG], unit([1, 0, 0], [1, 0, 0]), ["the cat purrs", "the dog barks"])
    of(2).delete([CAT])
    of(2).upsert([BIRD, DOG], unit([1, 0, 0], [1, 0, 0]), ["the bird sings", "the dog barks"])
    of(2).upsert([FISH], unit([1, 0, 0]))
    of(2).delete([FISH])

    for state, expected in ((1, {CAT, DOG}), (2, {DOG, BIRD}), (3, {DOG, BIRD})):
        store = of(state)
        assert store.ids() == expected
        assert store.count() == 2
        assert {one for one, _ in store.search(unit([1, 0, 0]), 9)[0]} == expected
        assert {one for one, _ in store.search_text("cat dog bird", 9)} == expected
        assert store.vectors(sorted(expected)).shape == (2, 3)
        with pytest.raises(UnknownRecordError):
            store.vectors([FISH])
    of(2).forget()  # state 1 may still be read
    assert of(1).ids() == {CAT, DOG}
    of(3).forget()
    assert of(1).ids() == {DOG}
    of(3).upsert([CAT], unit([1, 0, 0]))
    assert (of(2).ids(), of(3).ids()) == ({DOG, BIRD}, {CAT, DOG, BIRD})


def test_collections_of_one_server_do_not_mix() -> None:
    client = QdrantClient(":memory:")
    cats, dogs = (QdrantVectorStore(client, name, 3) for name in ("cats", "dogs"))
    cats.upsert([CAT], unit([1, 0, 0]))

    assert (cats.ids(), dogs.ids()) == ({CAT}, set())
    cats.close()  # the client is ours: it stays open
    assert dogs.count() == 0
