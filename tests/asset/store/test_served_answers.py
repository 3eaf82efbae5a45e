"""An FAQ cache serves approved entries, as they are now, found exactly or by meaning."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kraq_dspy.asset.store.faq import NewEntry
from kraq_dspy.asset.store.served_answers import ServedAnswers
from kraq_dspy.asset.store.vectors import LocalVectorStore
from kraq_dspy.extend import FaqCache
from kraq_dspy.ports import Vectors
from kraq_dspy.records import FaqEntry
from tests.conftest import KeywordEmbedder


class Counting:
    """An embedder that counts the texts it was given to store."""

    def __init__(self, embedder: KeywordEmbedder) -> None:
        self.name, self.dimension, self._embedder, self.passages = embedder.name, embedder.dimension, embedder, 0

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        return self._embedder.encode_queries(texts)

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        self.passages += len(texts)
        return self._embedder.encode_passages(texts)


@pytest.fixture
def embedder(keyword_embedder: type[KeywordEmbedder]) -> Counting:
    return Counting(keyword_embedder("card", "loan", "fee"))


@pytest.fixture
def served(tmp_path: Path, embedder: Counting) -> Iterator[ServedAnswers]:
    faq = FaqCache(tmp_path / "faq.db")
    faq.add_all([NewEntry(f"What is a {word}?", "A thing.") for word in ("card", "loan", "fee")], by="test")
    faq.add(NewEntry("What is a rate?"), by="test")  # pending: it has no answer
    store = LocalVectorStore(tmp_path / "vectors", embedder.dimension)
    yield ServedAnswers(faq, store, embedder)
    store.close()
    faq.close()


def numbers(entries: Iterable[FaqEntry]) -> list[int]:
    return [entry.number for entry in entries]


def test_approved_entries_are_found_by_meaning_or_word_for_word(served: ServedAnswers) -> None:
    assert numbers(served.entries()) == [1, 2, 3]
    assert numbers(served.nearest("my loan", 1)) == [2]
    assert numbers(served.nearest("loan", 10))[0] == 2
    assert served.exact("WHAT IS A FEE") == served.faq.get(3)
    assert served.exact("What is a rate?") is None


def test_only_what_changed_is_embedded_again_also_by_the_next_process(
    served: ServedAnswers, embedder: Counting, tmp_path: Path
) -> None:
    served.nearest("card", 1)
    assert embedder.passages == 3
    served.faq.change(1, by="test", answer="Plastic.")  # another answer, the same question
    assert served.nearest("card", 1)[0].answer == "Plastic."
    served.faq.add(NewEntry("Is a fee due?", "No."), by="test")
    served.faq.remove(2, by="test")
    assert 2 not in numbers(served.nearest("loan", 10))
    assert embedder.passages == 4
    later = ServedAnswers(FaqCache(tmp_path / "faq.db"), served._store, embedder)
    assert set(numbers(later.nearest("fee", 2))) == {3, 5}
    assert embedder.passages == 4


def test_a_failure_that_is_collected_again_is_no_change(served: ServedAnswers) -> None:
    served.collect("Who knows?", "I do not know", [])
    before = served.faq.changed_since(-1)[0]
    served.collect("Who knows?", "I do not know", [])
    assert served.faq.changed_since(-1)[0] == before
    assert served.faq.changed_since(before) == (before, {})
    assert served.exact("Who knows?") is None


def test_many_threads_ask_while_entries_come_and_go(served: ServedAnswers) -> None:
    def change(turn: int) -> None:
        number = served.faq.add(NewEntry(f"Is card {turn} here?", "Yes."), by="test").number
        served.faq.remove(number, by="test")

    def ask(turn: int) -> list[int]:
        return numbers(served.nearest("loan", 1))

    with ThreadPoolExecutor(8) as pool:
        futures = [pool.submit(ask, turn) for turn in range(60)]
        changed = [pool.submit(change, turn) for turn in range(20)]
        assert all(task.result() == [2] for task in futures)
        assert [task.result() for task in changed] == [None] * 20
    assert numbers(served.entries()) == [1, 2, 3]
