"""Ragas and BEIR themselves read what is written for them. Skipped where they are not installed, which is the rule:

pip install --no-deps beir                                     # its loader needs tqdm alone
pip install ragas 'langchain-community<0.4'                    # 0.4.3 imports what the newest one lacks
"""

import logging
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.apps.dataset.export import DatasetPlan, export_dataset
from kraq_dspy.asset.store.index import Index
from kraq_dspy.records import Chunk
from tests.apps.dataset.made import COMMUNITIES, TEXTS, made

pytestmark = pytest.mark.slow


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    plan = DatasetPlan(("ragas", "beir"), pending=True, unanswered=True, shares=(0.4, 0.3, 0.3))
    with Index.open(made(tmp_path / "waters.kraq"), write=True) as index:
        odd = Chunk("c-odd", "ada", 1, 0, 10, 'A "quoted"\ttab\nand a line, Zürich \ud83d', 9, "Odd")
        index.add([odd])
        export_dataset(index, tmp_path / "set", plan)
    return tmp_path / "set"


def test_beirs_loader_reads_every_split_with_passages_questions_and_judgements(exported: Path) -> None:
    loading: Any = pytest.importorskip("beir.datasets.data_loader")
    logging.getLogger("beir").setLevel(logging.WARNING)
    questions: set[str] = set()
    for qrels in (exported / "beir" / "qrels").iterdir():
        corpus, queries, judged = loading.GenericDataLoader(data_folder=str(exported / "beir")).load(split=qrels.stem)
        assert corpus["c-ada"] == {"text": TEXTS["ada"], "title": "Ada"}
        assert corpus["c-odd"]["text"] == 'A "quoted"\ttab\nand a line, Zürich ?'
        assert set(queries) == set(judged)
        assert {passage for passages in judged.values() for passage in passages} <= set(corpus)
        assert {score for passages in judged.values() for score in passages.values()} == {1}
        questions |= set(queries.values())
    assert questions >= {"What about north?", "Who wrote a compiler?"}
    assert questions <= {"Who wrote a compiler?", *(f"What about {name}?" for name in COMMUNITIES)}


def test_ragas_reads_its_samples(exported: Path) -> None:
    ragas: Any = pytest.importorskip("ragas")
    samples = [sample for path in (exported / "ragas").iterdir() for sample in ragas.EvaluationDataset.from_jsonl(path)]
    assert {type(sample).__name__ for sample in samples} == {"SingleTurnSample"}
    north = next(sample for sample in samples if sample.user_input == "What about north?")
    assert north.reference == "Two rivers."
    assert north.reference_contexts == [f"Rhine\n{TEXTS['rhine']}", f"Elbe\n{TEXTS['elbe']}"]
    assert north.response is None
