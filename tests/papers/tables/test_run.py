"""Runs every table of the project small, and tests what is kept, resumed and failed."""

import dataclasses
import json
from collections import Counter
from pathlib import Path

import pytest

from kraq_dspy.errors import ConfigError, EvaluationError, ModelError
from kraq_dspy.eval import Dataset, Example
from kraq_dspy.eval.rows import ResultRow, RowWriter, RunHeader, forget_failed, read_rows, read_run
from kraq_dspy.indexing.index.in_place import AskedInPlace
from kraq_dspy.papers.tables import run
from kraq_dspy.papers.tables.table import EvalTable, System
from kraq_dspy.ports import SilentProgress
from kraq_dspy.records import Document
from tests.eval.saving import save
from tests.papers.tables.conftest import Scripted, Toy

CONCISE = "[[ ## answer ## ]]\nyes\n\n[[ ## completed ## ]]"


def answers_table(*, metrics: tuple[str, ...] = ("exact_match", "recall"), k: int = 4) -> EvalTable:
    systems = (
        System("traditional", "traditional", {"k": k}),
        System("combined", "combined", {"k": k, "n": 2, "alpha": 0.5}),
    )
    return EvalTable("small", "Two programs", "answers", "traditional", systems, metrics=metrics)


def test_a_table_of_retrievers_has_a_row_for_each_question_and_system(toy: Toy, lighthouses: Path) -> None:
    table = toy.table("retrievers")
    header, rows = read_run(toy.run(table, data=lighthouses, tokens=None))
    expected = [system.name for system in table.systems_for(lighthouses.name)]
    assert Counter(row.system for row in rows) == dict.fromkeys(expected, header.extra["asked"])
    assert [row.failure for row in rows if row.failure] == []
    assert all(
        metric in row.metrics or metric in row.extra.get("undefined", ()) for row in rows for metric in table.metrics
    )


def test_what_a_table_looks_up_is_made_first(toy: Toy, lighthouses: Path) -> None:
    table = toy.table("qa_rag", metrics=("token_f1", "accepted"), references="gold", baseline="v over dense")
    by_name = {system.name: system for system in table.systems}
    local = System("graph", "graph-local", {"k": 4})
    search = System("search", "qa-search", {"over": "qa-rag", "variant": "type2", "k": 10})  # an empty FAQ cache
    systems = (by_name["v over dense"], by_name["type2 over dense"], by_name["type1 over raptor"], local, search)
    looking_up = dataclasses.replace(table, systems=systems)
    _, rows = read_run(toy.run(looking_up, data=lighthouses, tokens=None, limit=1))
    assert [row.failure for row in rows if row.failure] == []
    calls = {row.system: row.extra["usage"]["calls"] for row in rows}
    assert calls.pop("type1 over raptor") >= 2  # summaries' own pairs are made when they are found
    assert calls == {"v over dense": 1, "type2 over dense": 3, "graph": 1, "search": 3}
    assert {row.system for row in rows if "accepted" in row.metrics} == {"type2 over dense", "search"}


class Counted(SilentProgress):
    """What was begun and what was done, by stage."""

    def __init__(self) -> None:
        self.totals: dict[str, int | None] = {}
        self.done: Counter[str] = Counter()

    def start(self, stage: str, total: int | None) -> None:
        self.totals.setdefault(stage, total)

    def advance(self, stage: str, done: int = 1, *, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        self.done[stage] += done


def test_the_progress_of_a_system_is_its_own_though_what_it_looks_up_has_its_name(toy: Toy, lighthouses: Path) -> None:
    table, progress = answers_table(metrics=("recall",)), Counted()
    k2rag = dataclasses.replace(table, systems=(System("k2rag", "k2rag", {"k": 2}),), baseline="k2rag")
    toy.run(k2rag, data=lighthouses, tokens=None, progress=progress)
    assert progress.done["k2rag"] == progress.totals["k2rag"] == 3  # passages
    assert progress.done["ask k2rag"] == progress.totals["ask k2rag"] == 2


@pytest.fixture(scope="module")
def answered(toy: Toy) -> Path:
    return toy.run(answers_table())


def test_the_header_says_what_made_the_rows(answered: Path) -> None:
    header, _ = read_run(answered)
    assert header.dataset == "hotpotqa-mini"
    assert header.models["answerer"] == "embedded"
    assert header.models["encoder"].startswith("all-MiniLM-L6-v2")
    assert header.seeds == {"seed": 0}
    assert header.settings["chunks"]["tokens"] == 300
    assert len(header.index_fingerprint) == 32
    assert header.library_version
    assert header.extra["table"]["systems"]["combined"] == {
        "use": "combined", "k": 4, "n": 2, "alpha": 0.5,
        "about": {
            "program": "combined", "retriever": "adaptive", "model": "embedded", "passages": "4",
            "encoder": header.models["encoder"],
        },
    }  # fmt: skip


def test_a_run_that_was_interrupted_asks_only_what_is_missing(toy: Toy, tmp_path: Path, scripted: Scripted) -> None:
    lm, models = scripted(lambda prompt: CONCISE)
    folder = toy.run(answers_table(), out=tmp_path, models=models)
    first = len(lm.prompts)
    rows = (folder / "rows.jsonl").read_text("utf-8").splitlines(keepends=True)
    assert first == len(rows)
    (folder / "rows.jsonl").write_text("".join(rows[:-1]) + rows[-1][:20], "utf-8")  # killed while writing the last one
    toy.run(answers_table(), out=tmp_path, models=models)
    assert len(lm.prompts) == first + 1
    _, again = read_run(folder)
    assert len({(row.system, row.question_id) for row in again}) == len(again) == len(rows)


def test_another_table_in_the_same_folder_is_refused(toy: Toy, tmp_path: Path, scripted: Scripted) -> None:
    _, models = scripted(lambda prompt: CONCISE)
    toy.run(answers_table(), out=tmp_path, models=models, limit=1)
    with pytest.raises(EvaluationError, match="made otherwise: k 4, now 3"):
        toy.run(answers_table(k=3), out=tmp_path, models=models, limit=1)


def test_a_larger_limit_asks_what_is_missing_and_a_smaller_one_is_refused(
    toy: Toy, tmp_path: Path, scripted: Scripted
) -> None:
    lm, models = scripted(lambda prompt: CONCISE)
    folder = toy.run(answers_table(), out=tmp_path, models=models, limit=1)
    first, (before, _) = len(lm.prompts), read_run(folder)
    toy.run(answers_table(), out=tmp_path, models=models, limit=2)
    after, rows = read_run(folder)
    assert len(lm.prompts) == 2 * first
    assert (before.extra["asked"], after.extra["asked"], len(rows)) == (1, 2, 4)
    assert after.extra["not_asked"] == before.extra["not_asked"] - 1
    with pytest.raises(EvaluationError, match="asked 2, now 1"):
        toy.run(answers_table(), out=tmp_path, models=models, limit=1)


def test_other_data_is_not_taken_for_a_larger_limit(toy: Toy, tmp_path: Path, scripted: Scripted) -> None:
    _, models = scripted(lambda prompt: CONCISE)
    folder = toy.run(answers_table(), out=tmp_path, models=models, limit=1)
    header = json.loads((folder / "run.json").read_text("utf-8"))
    header["extra"]["data"] = "another corpus"
    (folder / "run.json").write_text(json.dumps(header), "utf-8")
    with pytest.raises(EvaluationError, match="data"):
        toy.run(answers_table(), out=tmp_path, models=models, limit=2)


def test_a_question_that_fails_is_a_row_with_its_reason_and_is_tried_again_on_request(
    toy: Toy, tmp_path: Path, scripted: Scripted
) -> None:
    def stumbling(prompt: str) -> str:
        if "Tysons Galleria is located" in prompt:
            raise ValueError("the model stumbled")
        return CONCISE

    _, models = scripted(stumbling)
    folder = toy.run(answers_table(), out=tmp_path, models=models)
    header, rows = read_run(folder)
    count = header.extra["asked"]
    failed = [row for row in rows if row.failure is not None]
    assert len(rows) == 2 * count
    assert len(failed) == 2
    assert all("the model stumbled" in (row.failure or "") and not row.metrics for row in failed)
    _, steady = scripted(lambda prompt: CONCISE)
    toy.run(answers_table(), out=tmp_path, models=steady, retry_failed=True)
    _, rows = read_run(folder)
    assert [row.failure for row in rows] == [None] * (2 * count)


def test_a_system_that_only_fails_ends_the_run_and_keeps_its_rows(toy: Toy, tmp_path: Path, scripted: Scripted) -> None:
    def broken(prompt: str) -> str:
        raise ValueError("no such model")

    _, models = scripted(broken)
    data = tmp_path / "many"
    documents = tuple(Document(name, name, f"{name} lives in Oslo with Ada Lovelace.") for name in ("Kim", "Bo"))
    examples = tuple(Example(str(number), f"Where does Kim live ({number})?", ("Oslo",)) for number in range(30))
    save(Dataset("many", documents, examples), data)
    with pytest.raises(ModelError, match="no such model"):
        toy.run(answers_table(), out=tmp_path, data=data, models=models, tokens=None)
    _, rows = read_run(tmp_path / "many")
    assert 25 <= len(rows) <= 30
    assert {row.system for row in rows} == {"traditional"}


def test_a_judge_that_says_maybe_is_a_failed_metric_not_a_lower_mean(toy: Toy, scripted: Scripted) -> None:
    def reply(prompt: str) -> str:
        return "[[ ## correct ## ]]\nmaybe\n\n[[ ## completed ## ]]" if "reference_answers" in prompt else CONCISE

    _, models = scripted(reply)
    _, rows = read_run(toy.run(answers_table(metrics=("exact_match", "judge")), models=models))
    assert all("maybe" in row.failed_metrics["judge"] and "judge" not in row.metrics for row in rows)
    assert all("exact_match" in row.metrics for row in rows)


def test_calls_and_tokens_of_each_question_are_counted(answered: Path) -> None:
    _, rows = read_run(answered)
    assert all(row.extra["usage"]["calls"] == 1 for row in rows)
    assert all(row.extra["usage"]["prompt_tokens"] > 100 for row in rows)


def test_time_is_kept_by_stage(answered: Path) -> None:
    _, rows = read_run(answered)
    assert all(set(row.timings) == {"retrieve", "answer", "total"} for row in rows)


@pytest.mark.parametrize(
    ("system", "says"),
    [
        (System("x", "magic"), "there are: traditional"),
        (System("x", "combined", {"beta": 1}), "beta"),
        (System("x", "traditional", {"questions": "random"}), "no option 'questions'"),
    ],
)
def test_a_system_that_cannot_be_made_ends_the_run(toy: Toy, system: System, says: str) -> None:
    table = EvalTable("bad", "Bad", "answers", "x", (system,), metrics=("exact_match",))
    with pytest.raises(ConfigError, match=says):
        toy.run(table)


def test_a_metric_that_is_not_known_is_refused(toy: Toy) -> None:
    with pytest.raises(ConfigError, match=r"there are: token_f1, .* accepted; most rankings take @k"):
        toy.run(answers_table(metrics=("exactness",)))


def test_a_metric_that_is_not_known_is_refused_before_anything_is_indexed(tmp_path: Path) -> None:
    toy = Toy(tmp_path)
    questions = toy.table("questions", metrics=("relevance", "relevnce@0.70"))
    for table in (answers_table(metrics=("exactness",)), questions):
        with pytest.raises(ConfigError, match="There is no metric"):
            toy.run(table)
    assert not list(tmp_path.rglob("*.kraq"))


def test_rows_are_json_lines_that_anyone_can_read(answered: Path) -> None:
    first = json.loads((answered / "rows.jsonl").read_text("utf-8").splitlines()[0])
    assert {"question_id", "system", "answer", "metrics", "failure", "timings", "hit_ids", "extra"} <= set(first)
    assert {"question", "gold"} <= set(first["extra"])


def test_a_line_separator_in_an_answer_is_no_end_of_a_row_when_failed_ones_are_dropped(tmp_path: Path) -> None:
    writer = RowWriter(tmp_path, RunHeader("n", "d", {}, {}, {}))
    for row in (ResultRow("q1", answer="one\u2028two"), ResultRow("q2", failure="no answer"), ResultRow("q3")):
        writer.write(row)
    assert forget_failed(tmp_path) == 1
    assert [row.question_id for row in read_rows(tmp_path / "rows.jsonl")] == ["q1", "q3"]


def test_a_table_over_templates_in_place_of_the_generator_says_so_or_is_refused(
    toy: Toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_place = AskedInPlace("small", 4, 3, (("is no question", 3),))
    monkeypatch.setattr(run, "asked_in_place", lambda index, instructions: in_place)
    header, _ = read_run(toy.run(answers_table(metrics=("recall",)), limit=1))
    assert str(in_place) in header.extra["notes"]
    with pytest.raises(EvaluationError, match=r"3 of 4 communities in place of small.*--strict-generator"):
        toy.run(answers_table(metrics=("recall",)), limit=1, strict_generator=True, out=tmp_path / "strict")
    assert not (tmp_path / "strict").exists()
