"""Tests the comparison with peers without any of them: the choice of texts, the counting, the tables."""

import gzip
import importlib
import json
import os
import signal
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import networkx
import pytest
from stand_in import stand_in

pytestmark = pytest.mark.slow

Modules = Callable[[str], ModuleType]
BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@pytest.fixture
def peers(monkeypatch: pytest.MonkeyPatch) -> Modules:
    """`peers("table")` is the module `benchmarks/peers/table.py`."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return lambda name: importlib.import_module(f"peers.{name}")


def figures(wall_s: float, calls: int = 100, communities: tuple[int, ...] = (3, 2)) -> dict[str, Any]:
    counts = {"chunks": 10, "entities": 20, "relationships": 30, "communities": list(communities), "failures": 0}
    taken = {"wall_s": wall_s, "cpu_s": wall_s / 2, "peak_mb": 100.0, "calls": calls, "prompt_tokens": 5_000}
    return {**taken, "most_in_flight": 25, "counts": counts}


def cells(table: str) -> dict[str, list[str]]:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {row[0]: row[1:] for row in rows}


def test_articles_are_put_together_in_order_and_the_last_may_be_shorter(peers: Modules) -> None:
    corpus = peers("corpus")
    pieces = [corpus.Piece(text, ("f",)) for text in "abcde"]
    assert corpus.as_articles(pieces, 2) == ["a\n\nb", "c\n\nd", "e"]


def test_a_tenth_of_a_corpus_is_its_first_whole_pages(peers: Modules, tmp_path: Path) -> None:
    folder = tmp_path / "web"
    folder.mkdir()
    with gzip.open(folder / "corpus.jsonl.gz", "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps({"text": letter * 10}) + "\n" for letter in "abcdefghij")
    assert peers("corpus").read_pages(tmp_path, "web", 0.25) == ["a" * 10, "b" * 10]


def test_a_question_is_asked_only_if_all_of_its_facts_are_there(peers: Modules) -> None:
    rows = [{"id": name, "supporting_ids": ids} for name, ids in (("both", "xy"), ("half", "xz"), ("none", ""))]
    assert [row["id"] for row in peers("corpus").answerable(rows, {"x", "y"})] == ["both"]


def test_a_fact_is_held_by_a_text_that_has_half_of_its_runs_of_five_words(peers: Modules) -> None:
    holds = peers("retrieval").holds
    fact = "one two three four five six seven eight"  # four runs of five words
    assert holds("Zero, one two three four five six.", fact)  # two of them
    assert not holds("One two three four five, and six seven eight.", fact)  # one
    assert holds("It was Paris France.", "Paris, France")
    assert not holds("France, not Paris", "Paris, France")


def test_recall_counts_facts_within_the_first_tokens_alone(peers: Modules) -> None:
    recall = peers("retrieval").recall_within
    first, second = "the cat sat on the mat today", "a dog ran over a hill yesterday"
    assert recall([first, second], [first, second], None) == 1.0
    assert recall([first, second], [first, second], 7) == 0.5
    assert recall([second, first], [first], 7) == 0.0
    assert recall([], [first], None) == 0.0


def test_every_question_is_measured_and_one_not_asked_is_an_error(peers: Modules) -> None:
    questions = [peers("corpus").Asked(name, name, (fact,)) for name, fact in (("q1", "cats sat"), ("q2", "dogs ran"))]
    rows = [{"question": name, "passages": ["the cats sat down"], "seconds": 0.25} for name in ("q1", "q2")]
    row = peers("retrieval").measure(rows, questions)
    assert row["recall"][None] == [1.0, 0.0]
    assert row["ms"] == 250
    assert row["tokens"] == 4
    with pytest.raises(KeyError):
        peers("retrieval").measure(rows[:1], questions)


def test_the_table_has_medians_ratios_to_ours_and_the_limit_that_the_model_sets(peers: Modules) -> None:
    measured = {"kraq": [figures(2.0), figures(1.0), figures(6.0)], "other": [figures(8.0, 200, ())]}
    titles = {"kraq": "kraq index", "other": "Other"}
    table = peers("table").indexing_table(measured, titles, corpus_tokens=1_000, latency_s=0.2, in_flight=25)
    rows = cells(table)
    assert rows["kraq index"][0] == "2.0 (1.0 x)"
    assert rows["Other"][:2] == ["8.0 (4.0 x)", "4.0 (4.0 x)"]
    assert rows["Other"][4] == "0.005 M (5.0 x corpus)"
    assert [row[6] for row in (rows["kraq index"], rows["Other"])] == ["2.5", "5.0"]  # 100 calls: .8 s, 200: 1.6 s
    assert [row[7] for row in (rows["kraq index"], rows["Other"])] == ["yes (3 + 2)", "no"]


def test_without_our_own_figures_the_table_has_no_ratios(peers: Modules) -> None:
    table = peers("table").indexing_table(
        {"other": [figures(8.0)]}, {"other": "Other"}, corpus_tokens=1_000, latency_s=0.2, in_flight=25
    )
    assert cells(table)["Other"][0] == "8.0"


def test_communities_of_one_level_are_no_hierarchy(peers: Modules) -> None:
    assert [peers("table").has_hierarchy(levels) for levels in ([], [7], [7, 3])] == [False, False, True]


def test_retrieval_is_compared_with_the_best_at_one_budget(peers: Modules) -> None:
    common = {"tokens": 1_234.0, "calls": 1.0, "ms": 7.0}
    good = {"title": "good", "recall": {1_000: [1.0, 1.0, 1.0], None: [1.0, 1.0, 1.0]}, **common}
    bad = {"title": "bad", "recall": {1_000: [0.5, 0.5, 0.5], None: [1.0, 1.0, 1.0]}, **common}
    rows = cells(peers("table").retrieval_table([bad, good], 1_000))
    assert rows[""][:3] == ["1,000", "all", "at 1,000, to the best"]
    assert rows["good"] == ["1.000", "1.000", "", "1,234", "1", "7"]
    assert rows["bad"] == [".500", "1.000", "-.500 [-.500, -.500]", "1,234", "1", "7"]


def test_what_children_take_counts_too(peers: Modules, tmp_path: Path) -> None:
    burn = "import time; t = time.process_time()\nwhile time.process_time() - t < .3: pass"
    parent = f"import subprocess, sys; print('hello'); subprocess.run([sys.executable, '-c', {burn!r}]); sys.exit(3)"
    taken = peers("process").run_measured([sys.executable, "-c", parent], os.environ, tmp_path / "log")
    assert taken.exit_code == 3
    assert taken.cpu_s >= 0.3
    assert taken.wall_s >= 0.3
    assert 1 < taken.peak_mb < 1_000
    assert (tmp_path / "log").read_text("utf-8") == "hello\n"


def test_what_takes_too_long_is_stopped_with_its_children(peers: Modules, tmp_path: Path) -> None:
    parent = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])"
    taken = peers("process").run_measured([sys.executable, "-c", parent], os.environ, tmp_path / "log", limit_s=1.0)
    assert taken.exit_code == -signal.SIGKILL
    assert taken.wall_s < 30


def test_every_system_has_its_script_and_every_peer_its_pinned_versions(peers: Modules) -> None:
    folder = BENCHMARKS / "peers"
    for system in peers("systems").ALL:
        assert (folder / "inside" / system.script).exists()
        if system.peer:
            lines = (folder / "requirements" / f"{system.peer}.txt").read_text("utf-8").splitlines()
            assert all("==" in line for line in lines)
            assert not [line for line in lines if line.startswith(("torch=", "nvidia"))]


def test_what_was_measured_is_not_measured_again(peers: Modules, tmp_path: Path) -> None:
    bench = peers("run").Bench(tmp_path, tmp_path / "articles.jsonl")
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "kraq-0.json").write_text(json.dumps(figures(1.0)), "utf-8")
    assert bench.index(peers("systems").BY_NAME["kraq"], server=None, number=0)["wall_s"] == 1.0


def test_our_own_row_is_made_by_the_command_that_makes_the_others(peers: Modules, tmp_path: Path) -> None:
    articles = tmp_path / "articles.jsonl"
    rows = [{"id": name, "text": f"{name} met Ada Lovelace in London. {name} lived in Paris."} for name in ("Bo", "Cy")]
    articles.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    with stand_in() as server:
        made = peers("run").Bench(tmp_path, articles).index(peers("systems").BY_NAME["kraq"], server, 0)
    assert made["counts"]["chunks"] == 2
    assert made["counts"]["failures"] == 0
    assert made["calls"] > 2
    assert made["cpu_s"] > 0


def test_our_graph_is_written_for_who_looks_at_graphs(peers: Modules, tmp_path: Path) -> None:
    articles = tmp_path / "articles.jsonl"
    articles.write_text(json.dumps({"id": "a", "text": "Ada Lovelace met Bo Cox in London."}) + "\n", "utf-8")
    bench, system = peers("run").Bench(tmp_path, articles), peers("systems").BY_NAME["kraq"]
    with stand_in() as server:
        bench.index(system, server, 0)
    folder = tmp_path / "indexes" / "kraq"
    bench.run(system, "graph", folder / "job.json", folder / "graph.log")
    graph = json.loads((folder / "graph.json").read_text("utf-8"))
    assert {"Ada Lovelace", "Bo Cox", "London"} <= set(graph["names"])
    assert any({one, other} == {"Ada Lovelace", "Bo Cox"} for one, _, other in graph["links"])
    assert all({one, other} <= {*graph["names"], ""} for one, _, other in graph["links"])


def test_what_a_peers_graph_says_of_names_and_links_is_written_without_quotes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS / "peers" / "inside"))
    graph = networkx.Graph()
    graph.add_node('"Ada"', description="A countess.")
    graph.add_edge('"Ada"', '"Bo"', description="They met.")
    importlib.import_module("job").write_described_graph({"folder": str(tmp_path)}, graph)
    written = json.loads((tmp_path / "graph.json").read_text("utf-8"))
    assert written["names"] == ["Ada", "Bo"]
    assert written["links"] == [["Ada", "They met.", "Bo"], ["Ada", "A countess.", ""], ["Bo", "", ""]]


def test_minilm_is_served_as_openai_does(peers: Modules) -> None:
    with peers("process").served(BENCHMARKS / "peers" / "encoder_server.py") as url:
        body = json.dumps({"model": "any", "input": ["a cat", "a dog"]}).encode()
        with urllib.request.urlopen(f"{url}/embeddings", data=body, timeout=60) as reply:
            rows = json.loads(reply.read())["data"]
    assert [row["index"] for row in rows] == [0, 1]
    assert [len(row["embedding"]) for row in rows] == [384, 384]
