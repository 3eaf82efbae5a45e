"""`--log-json`, and what logs never hold."""

import json
import logging
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kraq_dspy.apps.cli.logs import JsonFormatter, set_up_logs
from tests.whole_program import app


@pytest.fixture(autouse=True)
def logs_as_they_were() -> object:
    level = logging.getLogger().level
    yield
    set_up_logs(verbose=False, as_json=False)
    logging.getLogger().setLevel(level)


def test_standard_error_is_one_json_object_a_line_with_the_stages_and_standard_output_as_ever(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Ada Lovelace wrote to Charles Babbage.\nCharles Babbage lived in London.")
    (tmp_path / "b.bin").write_bytes(b"\0\1\2")
    words = ["--log-json", "index", str(tmp_path), "--out", str(tmp_path / "x.kraq"), "--json"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0
    logged = [json.loads(line) for line in result.stderr.splitlines()]
    assert {"time", "level", "logger", "message"} <= set.intersection(*(set(entry) for entry in logged))
    done = {entry["stage"]: entry["done"] for entry in logged if "done" in entry}
    assert done["extract"] == 1
    assert {"load", "embed", "summarize", "ask"} <= done.keys()
    assert json.loads(result.stdout)["counts"]["documents"] == 1


def test_an_entry_holds_what_the_call_said_beside_its_message_and_the_error() -> None:
    record = logging.LogRecord("kraq_dspy.x", logging.WARNING, __file__, 1, "%s failed", ("c1",), None)
    record.stage = "extract"
    try:
        raise ValueError("why\nand how")
    except ValueError as error:
        record.exc_info = (ValueError, error, error.__traceback__)
    line = JsonFormatter().format(record)
    entry = json.loads(line)
    assert "\n" not in line
    assert (entry["level"], entry["message"], entry["stage"]) == ("warning", "c1 failed", "extract")
    assert entry["error"].endswith("ValueError: why\nand how")


def test_without_it_standard_error_is_for_people(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["-v", "status", str(tmp_path / "nowhere")])
    assert result.exit_code != 0
    assert "{" not in result.stderr


def test_that_replies_were_cut_is_told_to_those_who_want_everything_and_not_in_the_middle_of_a_progress_bar() -> None:
    cut = logging.getLogger("dspy.clients.lm")
    set_up_logs(verbose=False, as_json=False)
    assert not cut.isEnabledFor(logging.WARNING)
    assert cut.isEnabledFor(logging.ERROR)
    set_up_logs(verbose=True, as_json=False)
    assert cut.isEnabledFor(logging.WARNING)


def test_that_one_of_several_servers_is_gone_is_told_to_everybody() -> None:
    set_up_logs(verbose=False, as_json=False)
    assert logging.getLogger("kraq_dspy.models.lms.transport").isEnabledFor(logging.WARNING)
    assert not logging.getLogger("kraq_dspy.models.lms.retry").isEnabledFor(logging.WARNING)
