"""The examples in docstrings give what they say, in a folder with a small index and a file of triples."""

import doctest
import importlib
import json
import shutil
from pathlib import Path

import pytest

from kraq_dspy import Document, Workspace, build_index
from kraq_dspy.indexing.prepare.preparations import PREPARATIONS
from kraq_dspy.ports import SilentProgress

MODULES = (
    "kraq_dspy._internal.both_ways",
    "kraq_dspy._internal.clock",
    "kraq_dspy._internal.lazy",
    "kraq_dspy._internal.options",
    "kraq_dspy._internal.step",
    "kraq_dspy.apps.dataset",
    "kraq_dspy.apps.dspy_tools",
    "kraq_dspy.asset.corpus.load",
    "kraq_dspy.asset.corpus.normalise",
    "kraq_dspy.asset.graph.names",
    "kraq_dspy.asset.graph.networkx_view",
    "kraq_dspy.asset.graph.passage_graph",
    "kraq_dspy.asset.store.catalogue",
    "kraq_dspy.asset.store.index",
    "kraq_dspy.asset.store.vectors.points",
    "kraq_dspy.indexing.index.build",
    "kraq_dspy.indexing.index.change",
    "kraq_dspy.indexing.index.estimate",
    "kraq_dspy.indexing.index.exchange",
    "kraq_dspy.eval.datasets.dataset",
    "kraq_dspy.eval.diversity",
    "kraq_dspy.eval.evaluation",
    "kraq_dspy.eval.judges",
    "kraq_dspy.eval.latency",
    "kraq_dspy.eval.metrics.answers",
    "kraq_dspy.eval.metrics.for_dspy",
    "kraq_dspy.eval.metrics.retrieval",
    "kraq_dspy.eval.question_log",
    "kraq_dspy.eval.raters_sheet",
    "kraq_dspy.eval.questions",
    "kraq_dspy.eval.statistics",
    "kraq_dspy.eval.summary",
    "kraq_dspy.finetune.pairs",
    "kraq_dspy.finetune.provider",
    "kraq_dspy.finetune.train_settings",
    "kraq_dspy.models.embedders",
    "kraq_dspy.models.embedders.sentence",
    "kraq_dspy.language.text",
    "kraq_dspy.models.lms.meter",
    "kraq_dspy.models.lms.prompt_scorer",
    "kraq_dspy.models.lms.repair",
    "kraq_dspy.models.lms.retry",
    "kraq_dspy.models.lms.roles",
    "kraq_dspy.models.lms.vllm_server",
    "kraq_dspy.optimize.compile_run",
    "kraq_dspy.optimize.compiling",
    "kraq_dspy.optimize.domain",
    "kraq_dspy.optimize.optimizers",
    "kraq_dspy.optimize.row_values",
    "kraq_dspy.optimize.rows",
    "kraq_dspy.optimize.step_metrics",
    "kraq_dspy.optimize.steps",
    "kraq_dspy.optimize.targets",
    "kraq_dspy.ports",
    "kraq_dspy.programs.combined",
    "kraq_dspy.programs.graph.graph_global_search",
    "kraq_dspy.programs.graph.graph_local_search",
    "kraq_dspy.programs.k2rag.program",
    "kraq_dspy.programs.k2rag.shorten",
    "kraq_dspy.programs.kraq.describe",
    "kraq_dspy.programs.kraq.element_list",
    "kraq_dspy.programs.kraq.extract_graph",
    "kraq_dspy.programs.kraq.pipeline",
    "kraq_dspy.programs.kraq.question_text",
    "kraq_dspy.programs.qa_rag",
    "kraq_dspy.programs.qa_search.critics",
    "kraq_dspy.programs.qa_search.program",
    "kraq_dspy.retrievers.adapted",
    "kraq_dspy.retrievers.adaptive",
    "kraq_dspy.retrievers.combined",
    "kraq_dspy.retrievers.dmqr",
    "kraq_dspy.retrievers.hits",
    "kraq_dspy.retrievers.in_memory",
    "kraq_dspy.retrievers.metadata_filter",
    "kraq_dspy.retrievers.pagerank",
    "kraq_dspy.retrievers.rag_fusion",
    "kraq_dspy.retrievers.raptor",
    "kraq_dspy.retrievers.reports",
    "kraq_dspy.retrievers.rerank",
    "kraq_dspy.retrievers.rewritten",
    "kraq_dspy.retrievers.sentence_window",
    "kraq_dspy.retrievers.words_and_meaning",
    "kraq_dspy.state",
    "kraq_dspy.programs.speculative.efficient_speculative_rag",
    "kraq_dspy.programs.speculative.scoring",
    "kraq_dspy.programs.speculative.speculative_rag",
    "kraq_dspy.programs.traditional",
    "kraq_dspy.records",
    "kraq_dspy.settings",
    "kraq_dspy.steps.direct",
    "kraq_dspy.testing",
    "kraq_dspy.workspace.workspace",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    documents = [Document("london", "London", "London is in England."), Document("ada", "Ada", "Ada lived in London.")]
    path = tmp_path_factory.mktemp("examples") / "ada.kraq"
    build_index(documents, path)
    with Workspace.open(path, write=True) as space:
        for name in ("instructed", "raptor"):
            PREPARATIONS[name].make(space, PREPARATIONS[name].options(), SilentProgress())
    return path


@pytest.mark.parametrize("module", MODULES)
def test_the_examples_of_a_module_are_right(
    module: str, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(built, "ada.kraq")
    row = {"id": "p", "text": "Ada met Charles.", "triples": [["Ada", "met", "Charles"]]}
    Path("triples.jsonl").write_text(json.dumps(row) + "\n", "utf-8")
    result = doctest.testmod(importlib.import_module(module))
    assert result.attempted
    assert not result.failed
