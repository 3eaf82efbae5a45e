"""Builds on a real Ray cluster: two processors of this machine, or two nodes that it plays."""

import asyncio
import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import dspy
import pytest
from stand_in import stand_in

from kraq_dspy import Index, Limits, build_index, make_lm
from kraq_dspy.errors import BudgetExceededError, ConfigError, MissingExtraError, ModelError
from kraq_dspy.extend import LanguageModels, Meter
from kraq_dspy.ports import SilentProgress
from kraq_dspy.programs import AskQuestion, ExtractGraph
from kraq_dspy.records import Document
from kraq_dspy.settings import CommunitySettings, EncoderSettings, RoleSettings, RunSettings, Settings
from kraq_dspy.steps.direct import Done, Item
from tests.conftest import KeywordEmbedder
from tests.indexing.small import contents

PASSAGES = {
    "Ada Lovelace": "Ada Lovelace wrote notes on the Analytical Engine. Ada Lovelace was a daughter of Lord Byron.",
    "Charles Babbage": "Charles Babbage invented the Difference Engine. Charles Babbage met Ada Lovelace in London.",
    "Lord Byron": "Lord Byron wrote Don Juan. Lord Byron was a friend of Percy Shelley.",
    "Alan Turing": "Alan Turing worked at Bletchley Park. Alan Turing designed the Bombe with Gordon Welchman.",
}
DOCUMENTS = [Document(title, title, text) for title, text in PASSAGES.items()]
ON_RAY = RunSettings(runner="ray")


def settings(**changes: Any) -> Settings:
    small = Settings(communities=CommunitySettings(max_depth=1))
    return dataclasses.replace(small, **changes)


def served(url: str, **changes: Any) -> dict[str, RoleSettings]:
    role = RoleSettings(model="hosted_vllm/stand-in", api_base=url, retries=0, timeout_s=20)
    return {"default": dataclasses.replace(role, **changes)}


def items(count: int) -> list[Item]:
    return [Item(str(n), {"summary": f"Poet {n}\nPoet {n} wrote Ode {n} in London."}) for n in range(count)]


@pytest.fixture(scope="module")
def embedder(keyword_embedder: type[KeywordEmbedder]) -> KeywordEmbedder:
    return keyword_embedder("ada", "babbage", "byron", "shelley", "turing", "bletchley", "engine", "wrote")


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    """Ray on two processors of this machine, for the module."""
    module = pytest.importorskip("ray", reason="needs the extra ray")
    pytest.importorskip("ray.data", reason="needs the extra ray")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    module.init(address="local", num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield module
    module.shutdown()


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    with Index.create(tmp_path / "i.kraq", Settings(), encoder_name="none", encoder_dimension=2) as made:
        yield made


def asked(
    index: Index, roles: dict[str, RoleSettings], count: int, *, concurrency: int = 8, meter: Meter | None = None
) -> list[Done]:
    """What a Ray run of the stage "ask" yields."""
    from kraq_dspy.steps.ray import RaySteps

    models = LanguageModels(Settings(roles=roles), meter=meter)
    steps = RaySteps(index.results, models, SilentProgress(), concurrency)

    async def run() -> list[Done]:
        return [done async for done in steps.map("ask", "generator", AskQuestion(), items(count), total=count)]

    return sorted(asyncio.run(run()), key=lambda done: int(done.id))


def test_a_build_on_a_cluster_writes_the_records_of_a_local_one_and_a_second_asks_nothing(
    ray: ModuleType, tmp_path: Path, embedder: KeywordEmbedder
) -> None:
    local = build_index(DOCUMENTS, tmp_path / "local.kraq", settings=settings(), embedder=embedder)
    first = build_index(DOCUMENTS, tmp_path / "ray.kraq", settings=settings(run=ON_RAY), embedder=embedder)
    assert contents(tmp_path / "ray.kraq") == contents(tmp_path / "local.kraq")
    assert first.counts["questions"] > 0
    assert first.usage == local.usage
    second = build_index(DOCUMENTS, tmp_path / "ray.kraq", settings=settings(run=ON_RAY), embedder=embedder)
    assert second.usage == {}
    assert ray.is_initialized()  # a cluster that was joined is left alone


def test_items_that_fail_are_listed_with_their_reason_and_done_in_the_next_run(ray: ModuleType, index: Index) -> None:
    with stand_in(rate_500=0.4, seed=1) as server:
        first = asked(index, served(server.url), 40)
        failed = index.results.failures("ask")
        assert 0 < len(failed) < 40
        assert {done.id for done in first} | {failure.item_id for failure in failed} == {str(n) for n in range(40)}
        assert all("500" in failure.reason for failure in failed)
        server.configure(rate_500=0)
        server.reset()
        second = asked(index, served(server.url), 40)
        assert server.stats()["requests"] == len(failed)
    assert [done.id for done in second] == [str(n) for n in range(40)]
    assert index.results.failures("ask") == []


def test_what_actors_paid_is_in_the_ledger_and_in_the_meter(ray: ModuleType, index: Index) -> None:
    meter = Meter()
    with stand_in() as server:
        asked(index, served(server.url), 20, meter=meter)
        stats = server.stats()
    assert stats["requests"] == 20
    spent = index.results.usage()["ask", "hosted_vllm/stand-in"]
    assert spent.calls == 20
    assert spent.prompt_tokens > 0
    assert meter.usage() == {("ask", "hosted_vllm/stand-in"): spent}


def test_a_limit_ends_the_run_soon_and_what_came_is_kept(ray: ModuleType, index: Index) -> None:
    with stand_in(latency_ms=20) as server:
        with pytest.raises(BudgetExceededError, match="max_calls = 20"):
            asked(index, served(server.url), 400, meter=Meter(Limits(max_calls=20)))
        time.sleep(2)
        requests = server.stats()["requests"]
        time.sleep(1)
        assert server.stats()["requests"] == requests  # nobody goes on asking
    assert 20 <= index.results.usage()["ask", "hosted_vllm/stand-in"].calls <= requests < 200


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"api_base": "http://127.0.0.1:9/v1"}, r"127\.0\.0\.1:9"),
        ({"api_key_env": "KRAQ_TEST_ABSENT"}, "KRAQ_TEST_ABSENT, which is not set"),
    ],
)
def test_a_model_that_no_actor_can_use_ends_the_run_with_one_message(
    ray: ModuleType, index: Index, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ModelError, match=message):
        asked(index, served("http://127.0.0.1:9/v1", **changes), 60)
    assert list(index.results.usage()) == []


def test_a_program_travels_with_its_instructions_its_demonstrations_and_its_own_model() -> None:
    pytest.importorskip("ray", reason="needs the extra ray")
    import pyarrow as pa
    from ray import cloudpickle

    from kraq_dspy.steps.ray import Actor

    program = ExtractGraph(gleanings=0)
    program.extract.signature = program.extract.signature.with_instructions("Find ships only.")
    program.extract.demos = [dspy.Example(passage="p", entities=[], relationships=[], claims=[])]
    with stand_in() as server:
        own = RoleSettings(model="hosted_vllm/own", api_base=server.url, structured="json_schema")
        program.extract.lm = make_lm(own)
        sent = cloudpickle.dumps(Actor.arguments("extract", RoleSettings(), program))
        actor = Actor(*(*cloudpickle.loads(sent), 4))
        item = ["a", "f", {"passage": "Ada Lovelace met Charles Babbage."}]
        block = pa.table({"item": [json.dumps(item)]})

        async def rows() -> list[Any]:
            return [json.loads(row) async for table in actor(block) for row in table["outcome"].to_pylist()]

        (row,) = asyncio.run(rows())
        assert server.stats()["models"] == {"own": 1}
    assert "reason" not in row
    assert row["fingerprint"] == "f"
    assert set(row["output"]) == {"entities", "relationships", "claims", "ungrounded"}
    assert [answer["model"] for answer in row["answers"]] == ["hosted_vllm/own"]
    arrived: Any = actor.program
    assert arrived.gleanings == 0
    assert arrived.extract.signature.instructions == "Find ships only."
    assert [demo["passage"] for demo in arrived.extract.demos] == ["p"]
    assert program.extract.lm is not None  # the driver's own copy is as it was


def test_an_address_without_a_cluster_ends_the_run_with_one_message(
    tmp_path: Path, embedder: KeywordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = pytest.importorskip("ray", reason="needs the extra ray")
    monkeypatch.setattr(module, "is_initialized", lambda: False)  # as in a process that has not joined one yet
    nowhere = RunSettings(runner="ray", ray_address="127.0.0.1:9")
    with pytest.raises(ConfigError, match=r"no Ray cluster at 127\.0\.0\.1:9"):
        build_index(DOCUMENTS, tmp_path / "i.kraq", settings=settings(run=nowhere), embedder=embedder)


def test_without_the_package_nothing_is_written_and_the_extra_is_named(
    tmp_path: Path, embedder: KeywordEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.setitem(sys.modules, "ray.data", None)
    with pytest.raises(MissingExtraError, match=r"kraq-dspy\[ray\]"):
        build_index(DOCUMENTS, tmp_path / "i.kraq", settings=settings(run=ON_RAY), embedder=embedder)
    assert list(tmp_path.iterdir()) == []


DRIVE = """
import json, sys
from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.settings import settings_from_dict
from kraq_dspy.records import Document
documents = [Document(str(n), "", f"Poet {n} met Ada Lovelace in London.") for n in range(160)]
build_index(documents, sys.argv[1], settings=settings_from_dict(json.loads(sys.argv[2])))
"""


@pytest.mark.slow
def test_a_driver_that_was_killed_pays_again_for_what_was_in_flight_and_no_more(
    ray: ModuleType, tmp_path: Path
) -> None:
    concurrency = 8
    with stand_in(latency_ms=200) as server:
        chosen = Settings(
            encoder=EncoderSettings(name="stand-in", api_base=server.url),
            roles=served(server.url),
        )
        build_index(
            [Document(str(n), "", f"Poet {n} met Ada Lovelace in London.") for n in range(160)],
            tmp_path / "whole.kraq",
            settings=dataclasses.replace(chosen, run=RunSettings(concurrency=32)),
        )
        once = server.stats()
        server.reset()
        run = RunSettings(concurrency=concurrency, runner="ray", ray_address="local")
        asked_for = json.dumps(dataclasses.replace(chosen, run=run).to_dict())
        command = [sys.executable, "-c", DRIVE, str(tmp_path / "i.kraq"), asked_for]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 120
        while server.stats()["requests"] < 150 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        subprocess.run(command, check=True, capture_output=True)
        repeated = server.stats()["repeated_requests"] - once["repeated_requests"]
    # A block in hand is paid again: at most twice `concurrency` items, two calls each (with a gleaning), and a block
    # that was done but not yet kept.
    assert repeated <= 2 * (2 * concurrency + 8)
    assert contents(tmp_path / "i.kraq") == contents(tmp_path / "whole.kraq")


@pytest.mark.slow
def test_an_interrupted_driver_ends_and_what_was_done_is_kept(ray: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "documents.jsonl").write_text(
        "".join(json.dumps({"id": str(n), "text": f"Poet {n} met Ada Lovelace."}) + "\n" for n in range(300))
    )
    (tmp_path / "kraq.toml").write_text('[run]\nray_address = "local"\nconcurrency = 8\n')
    with stand_in(latency_ms=300) as server:
        words = ["index", "documents.jsonl", "--out", "i.kraq", "--runner", "ray"]
        words += ["--lm", "hosted_vllm/stand-in", "--api-base", server.url]
        command = [sys.executable, "-m", "kraq_dspy", *words]
        process = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 120
        while server.stats()["requests"] < 100 and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGINT)
        _, output = process.communicate(timeout=60)
        assert process.returncode == 130
        assert "Interrupted" in output
    with Index.open(tmp_path / "i.kraq") as index:
        assert sum(usage.calls for usage in index.results.usage().values()) >= 100 - 2 * (2 * 8 + 8)


NODES = """
import asyncio, sys
from pathlib import Path
import ray
from ray.cluster_utils import Cluster
from kraq_dspy.settings import RoleSettings, Settings
from kraq_dspy.extend import LanguageModels
from kraq_dspy.ports import SilentProgress
from kraq_dspy.programs.kraq.describe import AskQuestion
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.ray import RaySteps
from kraq_dspy.asset.store.index import Index

cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
ray.init(address=cluster.address, log_to_driver=False)  # before the second node: a driver dies with its own node
other = cluster.add_node(num_cpus=1)
settings = Settings(roles={"default": RoleSettings(model="hosted_vllm/stand-in", api_base=sys.argv[2])})
items = [Item(str(n), {"summary": f"Poet {n}"}) for n in range(200)]
with Index.create(Path(sys.argv[1]), settings, encoder_name="none", encoder_dimension=2) as index:
    steps = RaySteps(index.results, LanguageModels(settings), SilentProgress(), 32)

    async def run():
        done = set()
        async for one in steps.map("ask", "generator", AskQuestion(), items, total=len(items)):
            done.add(one.id)
            if len(done) == 40:
                cluster.remove_node(other, allow_graceful=False)
        return done

    print(len(asyncio.run(run())), len(index.results.failures()))
ray.shutdown()
cluster.shutdown()
"""


@pytest.mark.slow
def test_a_node_that_dies_costs_no_item(ray: ModuleType, tmp_path: Path) -> None:
    with stand_in(latency_ms=200) as server:
        command = [sys.executable, "-c", NODES, str(tmp_path / "i.kraq"), server.url]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split()[-2:] == ["200", "0"]
