"""Reads again what real models said (`tests/recorded`, one file a signature): as well as then, or better."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError
from readable_replies import prompt_of

import kraq_dspy.signatures
from kraq_dspy import make_lm
from kraq_dspy.extend import Backoff, KraqAdapter
from kraq_dspy.models.lms.envelope import flaws_heard
from kraq_dspy.models.lms.logprobs import field_logprobs
from kraq_dspy.settings import RoleSettings
from kraq_dspy.signatures.pipeline import without_findings
from tests.models.lms.conftest import Reply, ScriptedServer

RECORDED = Path(__file__).resolve().parents[2] / "recorded"


def _rows() -> list[Any]:
    rows = []
    for file in sorted((*RECORDED.glob("*.jsonl"), *(RECORDED / "papers").glob("*.jsonl"))):
        for number, line in enumerate(file.read_text("utf-8").splitlines(), 1):
            row = json.loads(line)
            rows.append(pytest.param(file.stem, row, id=f"{file.stem}:{number}:{row['model']}:{row['form']}"))
    return rows


@pytest.mark.parametrize(("name", "row"), _rows())
def test_a_recorded_reply_is_read_as_it_was_then_or_better(name: str, row: dict[str, Any]) -> None:
    signature = getattr(kraq_dspy.signatures, name)
    try:
        values = KraqAdapter().parse(signature, row["reply"])
    except AdapterParseError:
        assert row["readable"] == "no"
        return

    assert set(values) == set(signature.output_fields)
    for field, count in row["items"].items():
        assert len(values[field]) >= count, field


def test_a_recorded_summary_without_findings_is_read() -> None:
    row = json.loads((RECORDED / "short" / "SummarizeCommunity.jsonl").read_text("utf-8"))
    values = KraqAdapter().parse(without_findings(), row["reply"])
    assert values.keys() == {"title", "summary"}
    assert "Jonas Berg is the keeper of the light" in values["summary"]


@pytest.mark.parametrize("line", (RECORDED / "torn" / "qwen2.5-coder-0.5b.jsonl").read_text("utf-8").splitlines())
def test_of_a_torn_list_of_a_real_model_the_complete_items_are_kept_and_it_is_told(
    line: str, scripted: ScriptedServer, reply: type[Reply], quick: Backoff
) -> None:
    row = json.loads(line)
    [[text, finish], *_] = row["replies"]
    scripted.replies = [reply(text, finish=finish)]
    role = RoleSettings("hosted_vllm/m", scripted.url, structured="json_schema", max_tokens=row["max_tokens"])
    signature = getattr(kraq_dspy.signatures, row["signature"])

    with dspy.context(lm=make_lm(role, backoff=quick), adapter=KraqAdapter()), flaws_heard() as flaws:
        values = dspy.Predict(signature)(**row["inputs"])

    assert len(scripted.requests) == 1
    assert {name: len(values[name]) for name in row["items"]} == row["items"]
    assert [flaw.why for flaw in flaws] == ["length"]


@pytest.mark.parametrize("name", ["DraftAnswer", "VerifyDraft"])
def test_the_log_probabilities_of_recorded_fields_are_told_apart(name: str) -> None:
    signature = getattr(kraq_dspy.signatures, name)
    n_fields = 0
    for line in (RECORDED / f"{name}.jsonl").read_text("utf-8").splitlines():
        reply = json.loads(line)["reply"]
        tokens = [{"token": letter, "logprob": -float(place)} for place, letter in enumerate(reply)]
        try:
            values = KraqAdapter().parse(signature, reply)
        except AdapterParseError:
            continue
        texts = {field: value for field, value in values.items() if isinstance(value, str) and value}
        by_field = field_logprobs(tokens, texts)
        n_fields += len(by_field)
        assert by_field.keys() == texts.keys(), reply
        for field, value in texts.items():
            assert "".join(reply[int(-place)] for place in by_field[field]) == value
    assert n_fields


def test_the_recorded_replies_stay_small_and_know_their_signatures() -> None:
    files = list(RECORDED.glob("*.jsonl"))

    assert files
    assert sum(file.stat().st_size for file in files) < 400_000
    assert [file.stem for file in files if not hasattr(kraq_dspy.signatures, file.stem)] == []


@pytest.mark.parametrize("name", kraq_dspy.signatures.NAMES)
def test_a_real_model_has_answered_the_present_prompt_of_every_signature(name: str) -> None:
    """If this fails: a new step, or one whose instructions or fields have changed, is put to a
    small model, and its replies are added to the file (tests/recorded/README.md)."""
    lines = (RECORDED / f"{name}.jsonl").read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    signature = getattr(kraq_dspy.signatures, name)
    answered = [row for row in rows if row.get("prompt") == prompt_of(signature)]

    assert any(row["readable"] != "no" for row in answered)
    assert all(row["inputs"].keys() == signature.input_fields.keys() for row in answered)


def test_a_prompt_is_another_one_when_its_words_or_its_fields_are() -> None:
    signature = kraq_dspy.signatures.AskFact
    others = [
        signature.with_instructions("Ask something."),
        signature.with_updated_fields("answer", desc="in one word"),
        signature.with_updated_fields("about", type_=str),
        signature.delete("about"),
        signature.append("place", dspy.InputField()),
    ]

    assert len({prompt_of(each) for each in (signature, *others)}) == 6
    assert prompt_of(signature.with_instructions(signature.instructions)) == prompt_of(signature)
