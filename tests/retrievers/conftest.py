"""Shares the library of six passages with the tests of the programs."""

from tests.programs.conftest import library  # noqa: F401
