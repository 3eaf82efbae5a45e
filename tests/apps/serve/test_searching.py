"""Tests that no address alone has a model asked, and that searches take their place among the questions."""

import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import DummyLM
from starlette.testclient import TestClient

from kraq_dspy.apps.serve.app import make_app
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.apps.serve.served import asks_a_model
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.registry import RETRIEVERS
from tests.apps.serve.conftest import EMBEDDER, open_all


class CountingLM(DummyLM):
    """Answers anything, and counts how often it is asked."""

    def __init__(self) -> None:
        super().__init__([{"query": "byron", "questions": '["byron"]', "queries": '["byron"]'}] * 500)
        self.asked = 0

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        self.asked += 1
        return super().forward(*args, **kwargs)

    async def aforward(self, *args: Any, **kwargs: Any) -> Any:
        self.asked += 1
        return await super().aforward(*args, **kwargs)


def test_which_retrievers_ask_a_model_is_known(poets: Path) -> None:
    with Workspace.open(poets, embedder=EMBEDDER) as space:
        asking = {name for name in ("qr", "qr-fusion") if name in RETRIEVERS}
        assert asking
        for name in asking:
            assert asks_a_model(space.retriever(name))
        for name in ("bm25", "dense", "hybrid", "combined", "adaptive"):
            assert not asks_a_model(space.retriever(name))
        assert asks_a_model(space.retriever("reranked", over="qr-fusion"))
        assert not asks_a_model(space.retriever("reranked", over="dense"))


def test_an_address_has_no_model_asked_and_says_what_to_do(poets: Path) -> None:
    lm = CountingLM()
    with open_all(poets, models={"default": lm}) as indexes, TestClient(make_app(indexes, ServeSettings())) as client:
        client.base_url = "http://localhost"  # type: ignore[assignment]
        for _ in range(3):
            refused = client.get("/api/search?q=byron&retriever=qr-fusion")
            assert refused.status_code == 405
            assert refused.headers["allow"] == "POST"
            assert "POST /api/search" in refused.json()["error"]["message"]
        assert lm.asked == 0
        found = client.post("/api/search", json={"q": "byron", "retriever": "qr-fusion", "kinds": "passages"})
        assert found.status_code == 200
        assert found.json()["passages"]
        assert lm.asked > 0


def test_a_search_by_meaning_takes_a_place_and_one_too_many_is_refused(
    poets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    going, here = threading.Event(), threading.Event()

    def slow(*args: Any, **kwargs: Any) -> dict[str, Any]:
        if kwargs["retriever"] == "dense":
            here.set()
            going.wait(60)
        return {"passages": []}

    monkeypatch.setattr("kraq_dspy.apps.serve.api.search", slow)
    settings = ServeSettings(workers=1, queue=0)
    with (
        open_all(poets) as indexes,
        TestClient(make_app(indexes, settings), base_url="http://localhost") as client,
        ThreadPoolExecutor(1) as pool,
    ):
        first = pool.submit(client.get, "/api/search?q=byron&retriever=dense")
        assert here.wait(60)
        busy = client.get("/api/search?q=byron&retriever=dense")
        assert (busy.status_code, busy.json()["error"]["code"]) == (503, "busy")
        assert client.get("/api/search?q=byron").status_code == 200  # by words, while one types
        going.set()
        assert first.result().status_code == 200
