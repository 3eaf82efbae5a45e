"""Tests the list of the checks that keep a scope: each stands in the package once, and can be taken out."""

import ast

import pytest
from mutations import ROOT
from scope_checks import CHECKS, Check

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.what)
def test_each_check_stands_in_its_file_once_and_the_file_is_a_program_without_it(check: Check) -> None:
    source = (ROOT / "kraq_dspy" / check.file).read_text("utf-8")
    without = check.taken_out_of(source)
    assert without != source
    ast.parse(without)
    assert [test for test in check.tests if not (ROOT / "tests" / test.partition("::")[0]).exists()] == []


def test_each_check_has_a_name_of_its_own() -> None:
    assert len({check.what for check in CHECKS}) == len(CHECKS)


def test_what_does_not_stand_there_is_told() -> None:
    with pytest.raises(ValueError, match="0 times; expected once"):
        Check("nothing", "asset/scope.py", "no such line", "", ()).taken_out_of("a = 1\n")
