"""Tests that results, answers and failures are kept by stage, item and fingerprint, and go when outdated."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kraq_dspy import Index
from kraq_dspy.asset.store.results import ResultStore
from kraq_dspy.records import Failure, Usage
from kraq_dspy.settings import Settings

ONE_CALL = Usage(calls=1, prompt_tokens=100, completion_tokens=10)


@pytest.fixture
def results(tmp_path: Path) -> Iterator[ResultStore]:
    with Index.create(tmp_path / "x.kraq", Settings(), encoder_name="e", encoder_dimension=2) as index:
        yield index.results


def remember(results: ResultStore, item: str, request: str, response: str = "{}", usage: Usage = ONE_CALL) -> None:
    results.remember("extract", item, request, response, model="m", usage=usage)


def save(results: ResultStore, item: str, output: object = 1, fingerprint: str = "f") -> None:
    results.save("extract", item, fingerprint, output, model="m")


def test_a_result_is_found_by_its_stage_item_and_fingerprint_alone(results: ResultStore) -> None:
    save(results, "c1", {"entities": ["Ada"], "score": 0.5})

    assert results.find("extract", "c1", "f") == {"entities": ["Ada"], "score": 0.5}
    assert results.find("extract", "c1", "other inputs") is None
    assert results.find("summarize", "c1", "f") is None
    assert results.find("extract", "c2", "f") is None


def test_a_result_of_new_inputs_takes_the_place_of_the_old_one(results: ResultStore) -> None:
    save(results, "c1", "old", "f1")
    save(results, "c1", "new", "f2")

    assert results.find("extract", "c1", "f1") is None
    assert results.find("extract", "c1", "f2") == "new"


def test_an_answer_is_recalled_until_its_item_is_finished(results: ResultStore) -> None:
    remember(results, "c1", "hash", '{"answer": "caf\udce9"}')
    remember(results, "c2", "hash", '{"answer": "other item"}')

    assert results.recall("extract", "c1", "hash") == '{"answer": "caf\udce9"}'
    assert results.recall("extract", "c1", "other request") is None
    save(results, "c1")
    assert results.recall("extract", "c1", "hash") is None
    assert results.recall("extract", "c2", "hash") == '{"answer": "other item"}'


def test_an_item_that_fails_again_counts_its_attempts_and_asks_again(results: ResultStore) -> None:
    remember(results, "c1", "hash")

    results.fail("extract", "c1", "not JSON")
    results.fail("extract", "c2", "timeout")
    results.fail("extract", "c1", "cut off")

    assert results.recall("extract", "c1", "hash") is None
    assert results.failures() == [Failure("extract", "c1", "cut off", 2), Failure("extract", "c2", "timeout", 1)]
    assert results.failures("summarize") == []


def test_success_ends_a_failure(results: ResultStore) -> None:
    results.fail("extract", "c1", "timeout")

    save(results, "c1")

    assert results.failures() == []


def test_the_ledger_counts_every_answer_once_also_those_of_failed_and_pruned_items(results: ResultStore) -> None:
    remember(results, "c1", "first")
    remember(results, "c1", "second")
    save(results, "c1")
    remember(results, "c2", "first")
    results.fail("extract", "c2", "not JSON")
    results.prune("extract", [])

    assert results.usage() == {("extract", "m"): Usage(calls=3, prompt_tokens=300, completion_tokens=30)}


def test_prompts_that_servers_had_kept_are_counted_apart(
    results: ResultStore,
) -> None:
    remember(results, "c1", "first")
    assert results.usage() == {("extract", "m"): ONE_CALL}
    kept = Usage(calls=1, prompt_tokens=80, completion_tokens=5, cached_tokens=64)

    for request in ("second", "third"):
        results.remember("extract", "c1", request, "{}", model="m", usage=kept)
    results.save("extract", "c1", "f", 1, model="m")

    assert results.usage() == {("extract", "m"): ONE_CALL + kept + kept}


def test_prune_keeps_the_named_items_and_the_other_stages(results: ResultStore) -> None:
    for item in ("c1", "c2"):
        save(results, item)
    remember(results, "c3", "hash")
    results.fail("extract", "c4", "timeout")
    results.fail("summarize", "c4", "timeout")

    results.prune("extract", ["c1"])

    assert results.find("extract", "c1", "f") == 1
    assert results.find("extract", "c2", "f") is None
    assert results.recall("extract", "c3", "hash") is None
    assert results.failures() == [Failure("summarize", "c4", "timeout")]


def test_what_one_prune_keeps_the_next_one_does_not(results: ResultStore) -> None:
    for item in ("c1", "c2"):
        save(results, item)

    results.prune("extract", ["c1", "c2"])
    results.prune("extract", ["c2"])

    assert results.items("extract") == {"c2"}


def test_outputs_are_those_of_the_items_that_have_one_whatever_made_them(results: ResultStore) -> None:
    save(results, "c1", "by an earlier prompt", "f1")
    save(results, "c3", ["a", "list"], "f2")

    assert results.outputs("extract", ["c1", "c2", "c3"]) == {"c1": "by an earlier prompt", "c3": ["a", "list"]}
    assert results.outputs("summarize", ["c1"]) == {}


def test_a_stage_is_settled_until_that_is_taken_back(results: ResultStore) -> None:
    assert results.settled("extract") == ""
    results.unsettle("extract")
    results.settle("extract", "by one model")
    results.settle("ask", "by one model")
    results.settle("extract", "by another")
    assert results.settled("extract") == "by another"
    results.unsettle("extract")
    assert (results.settled("extract"), results.settled("ask")) == ("", "by one model")


def test_sixteen_threads_may_save_and_find_at_once(results: ResultStore) -> None:
    start = threading.Barrier(16)

    def work(worker: int) -> list[object]:
        start.wait()
        recalled = []
        for i in range(20):
            item = f"{worker}-{i}"
            remember(results, item, "hash")
            save(results, item, worker)
            recalled.append(results.find("extract", item, "f"))
        return recalled

    with ThreadPoolExecutor(16) as pool:
        answers = list(pool.map(work, range(16)))

    assert answers == [[worker] * 20 for worker in range(16)]
    assert results.usage()["extract", "m"].calls == 320


def test_what_is_kept_with_a_flaw_and_its_failure_are_written_together(results: ResultStore) -> None:
    results.fail("extract", "c1", "no answer")
    results.save("extract", "c1", "f", [1], model="m", flaw="cut off")
    assert [(failure.item_id, failure.reason, failure.attempts) for failure in results.failures()] == [
        ("c1", "cut off", 1)
    ]
    assert results.find("extract", "c1", "f") == [1]
    results.save("extract", "c1", "f", [1, 2], model="m")
    assert results.failures() == []
