"""`kraq` logs little without `--verbose`, and everything with it."""

import logging

import pytest

from kraq_dspy.apps.cli.logs import set_up_logs


@pytest.fixture(autouse=True)
def logs_as_they_were() -> object:
    level = logging.getLogger().level
    yield
    set_up_logs(verbose=False)
    logging.getLogger().setLevel(level)


def test_that_replies_were_cut_is_told_to_those_who_want_everything_and_not_in_the_middle_of_a_progress_bar() -> None:
    cut = logging.getLogger("dspy.clients.lm")
    set_up_logs(verbose=False)
    assert not cut.isEnabledFor(logging.WARNING)
    assert cut.isEnabledFor(logging.ERROR)
    set_up_logs(verbose=True)
    assert cut.isEnabledFor(logging.WARNING)


def test_that_one_of_several_servers_is_gone_is_told_to_everybody() -> None:
    set_up_logs(verbose=False)
    assert logging.getLogger("kraq_dspy.models.lms.transport").isEnabledFor(logging.WARNING)
    assert not logging.getLogger("kraq_dspy.models.lms.retry").isEnabledFor(logging.WARNING)
