"""Bars of stages: what they count, and that a stage of the next index begins anew."""

import logging

import pytest

from kraq_dspy.apps.cli import progress as bars
from kraq_dspy.apps.cli.progress import Bars


def test_a_stage_that_was_finished_begins_anew_with_its_next_total(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bars, "LINE_EVERY", 0.0)
    with Bars() as shown:
        for total in (3, 2, None):
            shown.start("ask random", total)
            for _ in range(2):
                shown.advance("ask random")
            shown.finish("ask random")
    assert capsys.readouterr().err.splitlines() == [
        "ask random: 1 of 3",
        "ask random: 2 of 3",
        "ask random: 1 of 2",
        "ask random: 2 of 2",
        "ask random: 1",
        "ask random: 2",
    ]


def test_a_stage_that_is_started_twice_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO), Bars(quiet=True) as shown:
        for _ in range(2):
            shown.start("extract", 4)
            shown.advance("extract", 2)
        shown.finish("extract")
    assert [record.getMessage() for record in caplog.records] == ["extract begins", "extract is done: 4"]
