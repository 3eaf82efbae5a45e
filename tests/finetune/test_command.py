"""Runs `kraq finetune` as a shell user does: it leaves a folder with adapter and losses, or a clear error."""

import gzip
import json
import sys
from pathlib import Path

import pytest

from kraq_dspy.apps.cli import main
from kraq_dspy.eval.questions import fingerprint_of, learned_by
from kraq_dspy.finetune import Pair
from kraq_dspy.models.lms.local_models import weights_hash


def kraq(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["kraq", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, " ".join(printed.err.split())


def test_a_training_leaves_an_adapter_and_the_losses(
    base: str, pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "pairs.jsonl", tmp_path / "generator"
    file.write_text("".join(json.dumps(pair.row()) + "\n" for pair in pairs))
    words = ("finetune", "generator", "--pairs", str(file), "--base", base, "--out", str(out))
    code, printed, _ = kraq(monkeypatch, capsys, *words, "--epochs", "1", "--json")
    facts = json.loads(printed)
    assert code == 0
    assert facts["weights_hash"] == weights_hash(out)
    assert (facts["settings"]["r"], facts["data"]["trained_on"], facts["data"]["held_out"]) == (64, 22, 2)
    assert facts == {"folder": str(out), **json.loads((out / "training.json").read_text())}
    assert not (out / "checkpoints").exists()
    learned = learned_by([f"transformers/{base}#{out}"])
    assert {fingerprint_of(pair.outputs["question"]) for pair in pairs} == learned  # which `kraq eval` leaves out


def test_the_asker_learns_from_people_s_pairs_that_its_checks_let_pass(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "pairs.jsonl.gz", tmp_path / "asker"
    rows = [
        {"statement": f"{who} mended the {what} in 1911.", "answer": who, "question": f"Who mended the {what} in 1911?"}
        for who in ("Nora", "Orla")
        for what in ("lamp", "gate", "pier")
    ]
    more = [{**rows[0], "question": "Who painted the lamp in 1911?"}, {**rows[0], "question": "Who mended it in 1911?"}]
    lines = [json.dumps({**row, "source": "wiki"}) for row in (*rows, *more)]
    lines.append(json.dumps({**rows[0], "question": "Who mended the lamp?", "source": "forum"}))
    file.write_bytes(gzip.compress("\n".join(lines).encode()))

    words = ("finetune", "asker", "--pairs", str(file), "--base", base, "--out", str(out))
    code, printed, _ = kraq(monkeypatch, capsys, *words, "--epochs", "1", "--source", "wiki")
    facts = json.loads((out / "training.json").read_text())
    assert code == 0
    assert (facts["step"], facts["data"]["trained_on"] + facts["data"]["held_out"]) == ("asker", len(rows))
    assert set(learned_by([f"transformers/{base}#{out}"])) == {fingerprint_of(row["question"]) for row in rows}
    told = " ".join(printed.split())
    for counted in ("learned from 6", "is of another data set 1", "says what the statement does not 1"):
        assert counted in told
    assert f'[roles.asker] model = "transformers/{base}"' in told


def test_wrong_files_and_settings_end_with_a_sentence(
    base: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.jsonl").write_text("")
    words = ("finetune", "generator", "--base", base, "--out", str(tmp_path / "out"), "--pairs")
    code, _, message = kraq(monkeypatch, capsys, *words, str(tmp_path / "empty.jsonl"))
    assert (code, "holds no pairs. Make some with `kraq finetune pairs" in message) == (1, True)
    code, _, message = kraq(monkeypatch, capsys, *words, str(tmp_path / "empty.jsonl"), "--quantize", "8bit")
    assert (code, "it must be one of auto, nf4, none" in message) == (2, True)
    code, _, message = kraq(monkeypatch, capsys, "finetune", "pairs", "--out", str(tmp_path / "p.jsonl"))
    assert (code, "Missing: --dataset" in message) == (2, True)
