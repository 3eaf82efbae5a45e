"""Two other ways of writing a test set give rows that the benchmark can score, go on where they stopped, and are
counted."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from testset_ranking import note_usage, written_sets
from testset_rivals import RAGAS_SHARES, claim_in, write_autoq, write_ragas

from kraq_dspy.records import Usage
from kraq_dspy.workspace import Workspace
from tests.mills import MILLS, index_of_mills

pytestmark = pytest.mark.slow


class Writer(dspy.BaseLM):
    """Fills in every field that the two ways ask for, from the names of the mills in the prompt."""

    def __init__(self) -> None:
        super().__init__("writer", cache=False)
        self.prompts: list[str] = []

    async def aforward(self, prompt: str | None = None, messages: Any = None, **options: Any) -> Any:
        shown = str(messages[-1]["content"])
        self.prompts.append(shown)
        mills = [place for place in MILLS if f"{place} Mill" in shown]
        fields = {
            "role": "miller",
            "interest": "Old mills.",
            "names": [*mills, "Orr"],
            "themes": ["mills", "rivers"],
            "chosen": [f"{mills[0]}" if mills else "orr"],
            "combination": ["mills", "rivers"],
            "query": f"When was {' and '.join(mills)} Mill built?",
            "answer": "In the nineteenth century.",
            "background": f"{len(mills)} mills on the Orr.",
            "questions": [f"Who built {mill} Mill?" for mill in mills[:2]],
            "expanded": f"Who built the {mills[0] if mills else 'old'} Mill on the Orr?",
            "categories": ["Mills"],
            "claims": ["1, 99: Nora built it.", "Somebody did."],
            "about_the_whole": ["What do mills have in common?"],
        }
        written = "".join(f"[[ ## {name} ## ]]\n{_as_text(value)}\n\n" for name, value in fields.items())

        from litellm import ModelResponse  # seconds, so not where tests are collected

        message = {"message": {"content": f"{written}[[ ## completed ## ]]"}, "finish_reason": "stop"}
        return ModelResponse(choices=[message], model="writer")


def _as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_of_mills(tmp_path_factory.mktemp("index"))


def test_ragas_asks_of_one_passage_and_of_related_ones_and_these_are_gold(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "ragas.jsonl"
    with Workspace.open(folder, lm=Writer()) as space:
        rows = write_ragas(space, file, 4)

    kinds = [row["type"] for row in rows]
    assert set(kinds) == set(RAGAS_SHARES)
    assert kinds.count("single_hop") == 2
    for row in rows:
        assert all(f"{document.title()}" in row["question"] for document in row["supporting_ids"])
        assert (len(row["supporting_ids"]) > 1) is (row["type"] != "single_hop")
    assert [json.loads(line) for line in file.read_text("utf-8").splitlines()] == rows
    assert written_sets(tmp_path)["ragas"] == [(row["question"], frozenset(row["supporting_ids"])) for row in rows]


def test_gold_of_autoq_are_the_texts_that_claims_name_and_questions_about_the_whole_have_none(
    folder: Path, tmp_path: Path
) -> None:
    file = tmp_path / "autoq.jsonl"
    with Workspace.open(folder, lm=Writer()) as space:
        rows = write_autoq(space, file, 4)

    local = [row for row in rows if row["type"] == "data_local"]
    whole = [row for row in rows if row["type"] == "data_global"]
    assert local
    assert all(len(row["supporting_ids"]) == 1 and row["answers"] == ["Nora built it."] for row in local)
    assert all(set(row["supporting_ids"]) < set(row["made_from"]) for row in local)
    assert [row["question"] for row in whole] == ["What do mills have in common?"]
    assert len(written_sets(tmp_path)["autoq"]) == len(local)


@pytest.mark.parametrize("write", [write_ragas, write_autoq])
def test_what_was_answered_is_not_asked_again_and_gives_the_same_rows(write: Any, folder: Path, tmp_path: Path) -> None:
    writer = Writer()
    with Workspace.open(folder, lm=writer) as space:
        rows = write(space, tmp_path / "rows.jsonl", 3)
    n_asked = len(writer.prompts)
    with Workspace.open(folder, lm=writer) as space:
        again = write(space, tmp_path / "rows.jsonl", 3)

    assert n_asked > 0
    assert len(writer.prompts) == n_asked
    assert again == rows


@pytest.mark.parametrize(
    ("written", "claim"),
    [
        ("1: The mill stands.", ([1], "The mill stands.")),
        ("[2, 5] The mill stands.", ([2, 5], "The mill stands.")),
        ("Texts 1 and 3: The mill stands.", ([1, 3], "The mill stands.")),
        ("1872 was a dry year.", ([], "1872 was a dry year.")),
    ],
)
def test_a_claim_is_read_with_the_numbers_before_it(written: str, claim: tuple[list[int], str]) -> None:
    assert claim_in(written) == claim


def test_calls_and_tokens_of_an_interrupted_run_are_added_to_those_of_the_next(tmp_path: Path) -> None:
    file = tmp_path / "ragas.usage.json"
    for rows in (0, 5):
        figures = {"rows": rows, "seconds": 2.0, "model": "writer"}
        note_usage(file, figures, {("ask", "writer"): Usage(3, 100, 10), ("terms", "writer"): Usage(1, 5, 1)})

    noted = json.loads(file.read_text("utf-8"))
    assert {name: noted[name] for name in ("rows", "calls", "prompt_tokens", "completion_tokens", "seconds")} == {
        "rows": 5,
        "calls": 8,
        "prompt_tokens": 210,
        "completion_tokens": 22,
        "seconds": 4.0,
    }
    assert noted["stages"]["ask"] == {"calls": 6, "prompt_tokens": 200, "completion_tokens": 20}
