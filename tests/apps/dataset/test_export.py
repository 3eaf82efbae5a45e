"""A data set is read by the tools that it is for: datasets itself, and `kraq finetune`'s reader."""

import csv
import json
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from kraq_dspy.apps.dataset.export import DatasetPlan, DatasetReport, export_dataset
from kraq_dspy.apps.dataset.rows import difficulty_of
from kraq_dspy.asset.store.catalogue import CATALOGUE, Catalogue
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import ConfigError, IndexStateError
from kraq_dspy.finetune.pairs import read_pairs
from tests.apps.dataset.made import COMMUNITIES, TEXTS, made
from tests.conftest import WarmShell

EVERYTHING = DatasetPlan(unanswered=True, pending=True, licence="CC BY-SA 4.0", shares=(0.4, 0.3, 0.3))


@pytest.fixture
def index_dir(tmp_path: Path) -> Path:
    return made(tmp_path / "waters.kraq")


def exported(index_dir: Path, out: Path, plan: DatasetPlan) -> DatasetReport:
    with Index.open(index_dir) as index:
        return export_dataset(index, out, plan)


def rows_in(out: Path) -> dict[str, list[dict[str, Any]]]:
    return {path.stem: pyarrow.parquet.read_table(path).to_pylist() for path in (out / "data").iterdir()}


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_rows_are_questions_with_approved_answers_and_their_evidence(index_dir: Path, tmp_path: Path) -> None:
    report = exported(index_dir, tmp_path / "out", DatasetPlan())
    rows = {row["question"]: row for some in rows_in(tmp_path / "out").values() for row in some}
    assert set(rows) == {"What about north?", "Who wrote a compiler?"}
    north, compiler = rows["What about north?"], rows["Who wrote a compiler?"]
    assert (north["answer"], north["level"], north["difficulty"], north["origin"]) == ("Two rivers.", 1, "easy", "kraq")
    assert (north["community_id"], north["document_ids"]) == ("north", ["elbe", "rhine"])
    assert [passage["text"] for passage in north["evidence"]] == [TEXTS["rhine"], TEXTS["elbe"]]
    assert (compiler["level"], compiler["origin"], compiler["document_ids"]) == (None, "person", ["grace"])
    assert [passage["id"] for passage in compiler["evidence"]] == ["c-grace"]
    assert sum(report.rows.values()) == 2
    assert report.left_out["without an answer"] == 3


def test_pending_answers_and_questions_without_one_are_taken_on_request(index_dir: Path, tmp_path: Path) -> None:
    exported(index_dir, tmp_path / "out", DatasetPlan(unanswered=True, pending=True, shares=(1.0, 0.0, 0.0)))
    answers = {row["question"]: row["answer"] for some in rows_in(tmp_path / "out").values() for row in some}
    assert answers["What about women?"] == "Two pioneers."
    assert answers["What about black?"] is None


def test_an_answer_whose_documents_have_changed_never_goes_in(index_dir: Path, tmp_path: Path) -> None:
    with closing(Catalogue(index_dir / CATALOGUE)) as catalogue:
        [north] = [entry for entry in catalogue.entries("approved") if entry.question == "What about north?"]
        catalogue.change(north.number, by="test", status="stale")
    exported(index_dir, tmp_path / "out", DatasetPlan(unanswered=True, pending=True, shares=(1.0, 0.0, 0.0)))
    answers = {row["question"]: row["answer"] for some in rows_in(tmp_path / "out").values() for row in some}
    assert answers["What about north?"] is None
    assert answers["What about women?"] == "Two pioneers."


def test_evidence_is_no_more_than_was_asked_for_and_in_reading_order(index_dir: Path, tmp_path: Path) -> None:
    exported(index_dir, tmp_path / "out", DatasetPlan(unanswered=True, passages=1, shares=(1.0, 0.0, 0.0)))
    evidence = {
        row["question"]: [passage["id"] for passage in row["evidence"]]
        for some in rows_in(tmp_path / "out").values()
        for row in some
    }
    assert {len(ids) for ids in evidence.values()} == {1}
    assert evidence["What about north?"] == ["c-rhine"]


def test_no_document_of_a_row_is_behind_a_row_of_another_split(index_dir: Path, tmp_path: Path) -> None:
    report = exported(index_dir, tmp_path / "out", EVERYTHING)
    rows = rows_in(tmp_path / "out")
    documents = {split: {id for row in some for id in row["document_ids"]} for split, some in rows.items()}
    passages = {split: {p["document_id"] for row in some for p in row["evidence"]} for split, some in rows.items()}
    assert len(rows) > 1
    for behind in (documents, passages):
        counted = Counter(id for some in behind.values() for id in some)
        assert set(counted.values()) == {1}
    kept = sum(report.rows.values())
    assert kept + report.left_out["over two splits"] == len(COMMUNITIES) + 1


def test_datasets_loads_the_folder_with_its_splits(
    index_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    datasets = pytest.importorskip("datasets", reason="needs the extra eval")
    report = exported(index_dir, tmp_path / "out", EVERYTHING)
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert {split: len(some) for split, some in loaded.items()} == report.rows
    row = next(row for some in loaded.values() for row in some if row["question"] == "What about north?")
    assert row["evidence"][0] == {
        "id": "c-rhine", "document_id": "rhine", "title": "Rhine", "text": TEXTS["rhine"],
    }  # fmt: skip


def test_the_card_says_what_is_in_it_how_it_was_made_and_its_licence(index_dir: Path, tmp_path: Path) -> None:
    report = exported(index_dir, tmp_path / "out", EVERYTHING)
    card = (tmp_path / "out" / "README.md").read_text("utf-8")
    assert 'license: "CC BY-SA 4.0"' in card.split("---")[1]
    for split, count in report.rows.items():
        assert f"path: data/{split}.parquet" in card
        assert f"| {split} | {count} |" in card
    assert f"Questions by origin: kraq {sum(report.rows.values()) - 1}, person 1." in card


def test_the_forms_of_ragas_and_beir_have_their_columns(index_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exported(index_dir, out, DatasetPlan(forms=("ragas", "beir"), unanswered=True))
    samples = [sample for path in (out / "ragas").iterdir() for sample in lines(path)]
    north = next(sample for sample in samples if sample["user_input"] == "What about north?")
    assert north["reference"] == "Two rivers."
    assert north["reference_contexts"] == [f"Rhine\n{TEXTS['rhine']}", f"Elbe\n{TEXTS['elbe']}"]
    assert all(sample["reference"] for sample in samples)
    corpus = {row["_id"]: row for row in lines(out / "beir" / "corpus.jsonl")}
    queries = {row["_id"]: row for row in lines(out / "beir" / "queries.jsonl")}
    assert corpus["c-ada"] == {"_id": "c-ada", "title": "Ada", "text": TEXTS["ada"]}
    judged = []
    for path in (out / "beir" / "qrels").iterdir():
        assert path.name in ("train.tsv", "dev.tsv", "test.tsv")
        with path.open(encoding="utf-8", newline="") as file:
            judged += list(csv.DictReader(file, delimiter="\t"))
    assert {row["query-id"] for row in judged} == set(queries)
    assert {row["corpus-id"] for row in judged} <= set(corpus)
    assert {row["score"] for row in judged} == {"1"}
    assert not (out / "data").exists()


def test_a_form_without_rows_still_has_its_card(index_dir: Path, tmp_path: Path) -> None:
    with closing(Catalogue(index_dir / CATALOGUE)) as catalogue:
        for entry in catalogue.entries("approved"):
            catalogue.change(entry.number, by="test", status="stale")
    report = exported(index_dir, tmp_path / "out", DatasetPlan(forms=("ragas",), unanswered=True))
    assert report.files == (tmp_path / "out" / "README.md",)


def test_pairs_of_summary_and_question_are_what_finetune_reads(index_dir: Path, tmp_path: Path) -> None:
    exported(index_dir, tmp_path / "out", DatasetPlan(forms=("finetune",), unanswered=True))
    pairs = [pair for path in (tmp_path / "out" / "finetune").iterdir() for pair in read_pairs(path)]
    assert {"summary": "Waters and works: north."} in [pair.inputs for pair in pairs]
    assert {pair.outputs["question"] for pair in pairs} <= {f"What about {name}?" for name in COMMUNITIES}
    assert {pair.source for pair in pairs} == {"waters.kraq"}


def test_an_earlier_export_leaves_nothing_behind(index_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exported(index_dir, out, EVERYTHING)
    assert len(rows_in(out)) > 1
    exported(index_dir, out, DatasetPlan(shares=(1.0, 0.0, 0.0)))
    assert set(rows_in(out)) == {"train"}


def test_difficulty_follows_the_level() -> None:
    assert [difficulty_of(level, 2) for level in (0, 1, 2)] == ["hard", "medium", "easy"]
    assert difficulty_of(0, 0) == "medium"


def test_what_cannot_be_made_is_said_with_the_way_out(index_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there are: hf, ragas, beir, finetune"):
        exported(index_dir, tmp_path / "out", DatasetPlan(forms=("csv",)))
    with pytest.raises(ConfigError, match="did you mean 'beir'"):
        exported(index_dir, tmp_path / "out", DatasetPlan(forms=("bier",)))
    (index_dir / "catalogue.db").unlink()
    with pytest.raises(
        IndexStateError, match=r"4 without an answer.*kraq catalogue seed.*\(--pending\).*\(--unanswered\)"
    ):
        exported(index_dir, tmp_path / "out", DatasetPlan())
    assert not (tmp_path / "out").exists()


def test_by_command_options_of_a_data_set_go_with_it_alone(kraq: WarmShell, index_dir: Path, tmp_path: Path) -> None:
    done = kraq(
        "export", index_dir, "-o", tmp_path / "out", "-f", "dataset", "--unanswered", "--form", "beir", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert "without an answer" not in json.loads(done.stdout)["left_out"]
    assert (tmp_path / "out" / "beir" / "corpus.jsonl").exists()
    refused = kraq("export", index_dir, "-o", tmp_path / "tables", "--unanswered")
    assert refused.returncode == 2
    assert "--format dataset" in refused.stderr
    wrong = kraq("export", index_dir, "-o", tmp_path / "out", "-f", "dataset", "--shares", "1,2")
    assert wrong.returncode == 2
    assert "three numbers" in wrong.stderr
