"""Tests the server of benchmarks without a model: what it bounds and counts."""

import importlib
import json
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_requests_are_bounded_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    server = importlib.import_module("model_server")
    assert server.bounded({"model": "m"}, 512)["max_tokens"] == 512
    assert server.bounded({"max_completion_tokens": 50}, 512) == {"max_tokens": 50}
    assert server.bounded({"max_tokens": 4000}, 512) == {"max_tokens": 512}
    counted = server.Asked()
    reply = {"usage": {"prompt_tokens": 7, "completion_tokens": 3}, "choices": [{"finish_reason": "length"}]}
    body = {"response_format": {"type": "json_schema", "json_schema": {}}}
    counted.add(**server.counts_of(body, reply))
    counted.add(**server.counts_of({"response_format": {"type": "json_object"}}, reply))
    stats = counted.stats()
    assert (stats["calls"], stats["prompt_tokens"], stats["cut"], stats["with_schema"]) == (2, 14, 2, 1)
    counted.reset()
    assert counted.stats()["calls"] == 0


def test_a_stream_is_counted_also_where_its_reader_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    server = importlib.import_module("model_server")
    left, whole = server.StreamedReply(), server.StreamedReply()
    part = {"choices": [{"delta": {"content": "a"}, "finish_reason": None}]}
    lines = [{**part, "timings": {"prompt_n": 5, "cache_n": 2, "predicted_n": n}} for n in (1, 2)]
    for line in lines:
        left.push(b"data: " + json.dumps(line).encode() + b"\n")
        left.push(b"\n")
    whole.push(b"data: " + json.dumps({"choices": [{"finish_reason": "length"}]}).encode())
    whole.push(b"data: " + json.dumps({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}).encode())
    whole.push(b"data: [DONE]")

    assert left.as_reply()["usage"] == {"prompt_tokens": 7, "completion_tokens": 2}
    assert server.counts_of({}, whole.as_reply()) == {
        "calls": 1, "cut": 1, "with_schema": 0, "prompt_tokens": 9, "written_tokens": 4
    }  # fmt: skip
