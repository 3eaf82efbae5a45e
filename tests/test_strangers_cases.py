"""Lists the small inputs on which strangers failed: how each kind came out, and the tests or the sentence that hold it.

The inputs lie in ../shared/cases, a folder each, and are no part of the project: the tests named here have inputs of
their own.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
CASES = TESTS.parents[1] / "shared" / "cases"
DECLINED = TESTS.parent / "docs" / "not-our-job.md"
TEXTS = "asset/corpus/test_strange_texts.py"
DOCUMENTS = "asset/corpus/test_documentation.py"
TYPED = "eval/test_typed_answers.py"


@dataclass(frozen=True)
class Case:
    """A kind of input. `held_by` are tests, as their file below tests/, "::", and their name, where it is mended; else
    `declined` is what docs/not-our-job.md says of it."""

    kind: str
    held_by: tuple[str, ...] = ()
    declined: str = ""


KINDS = {
    "01_long_table": Case(
        "a table longer than a passage",
        (f"{DOCUMENTS}::test_each_row_of_a_long_table_is_told_with_the_tables_columns",),
    ),
    "02_numbers_as_gold": Case(
        "gold answers that are numbers", (f"{TYPED}::test_numbers_and_days_that_pandas_keeps_are_gold",)
    ),
    "04_mail_charsets": Case(
        "charsets of mails",
        (
            f"{TEXTS}::test_a_mail_is_read_in_the_charset_that_it_means",
            f"{TEXTS}::test_a_mail_in_a_charset_that_is_false_or_unknown_is_named",
        ),
    ),
    "05_marks_behind_stops": Case(
        "a mark of reference behind a stop", (f"{TEXTS}::test_a_mark_of_reference_behind_a_stop_ends_the_sentence",)
    ),
    "06_code_fences": Case("fences of code", (f"{DOCUMENTS}::test_headings_are_those_of_commonmark_and_of_html",)),
    "07_colour_codes": Case("colour codes of a terminal", (f"{TEXTS}::test_what_only_a_terminal_obeys_is_left_out",)),
    "08_how_much": Case("an amount that is asked for", declined='"How much does it hold?"'),
    "09_sentence_ends": Case("stops of other scripts", (f"{TEXTS}::test_stops_of_other_scripts_end_sentences",)),
    "10_abbreviations": Case("abbreviations of other languages", declined="Abbreviations"),
    "11_subtitles": Case("subtitles", declined="Subtitles"),
    "12_definition_lists": Case("definition lists", (f"{DOCUMENTS}::test_terms_and_their_meanings_stand_on_one_line",)),
    "13_typed_answers_in_metrics": Case(
        "typed answers in metrics",
        (
            f"{TYPED}::test_a_typed_answer_is_matched_as_it_is_written",
            f"{TYPED}::test_another_typed_answer_is_wrong",
        ),
    ),
    "14_front_matter_colon": Case(
        "front matter that is no strict YAML", (f"{DOCUMENTS}::test_front_matter_that_is_no_strict_yaml_is_read",)
    ),
    "15_nul_bytes": Case("a NUL byte", (f"{TEXTS}::test_a_few_nuls_are_left_out_and_many_are_no_text",)),
    "16_mcp_null": Case(
        "null for an argument of MCP",
        (
            "apps/mcp/test_server.py::test_null_means_that_an_argument_was_left_out",
            "apps/mcp/test_server.py::test_null_for_an_argument_that_is_needed_is_an_error",
        ),
    ),
    "17_chat_reply": Case("the next speaker's reply", declined="Chats"),
    "18_metrics_other_scripts": Case(
        "digits, marks and capitals of other scripts",
        (
            f"{TYPED}::test_digits_marks_and_capitals_of_other_scripts_are_the_same",
            f"{TYPED}::test_marks_that_writers_do_not_leave_out_count",
        ),
    ),
    "19_dspy_passage_metrics": Case(
        "DSPy's metrics of evidence", (f"{TYPED}::test_metrics_of_evidence_of_dspy_find_the_passages",)
    ),
    "20_columns_zero": Case(
        "COLUMNS=0", ("apps/cli/test_columns.py::test_a_terminal_of_no_columns_is_taken_for_none",)
    ),
    "21_csv_space_before_quote": Case(
        "a space before a quote of csv", (f"{TEXTS}::test_a_space_before_a_quote_of_csv_is_none",)
    ),
    "22_misleading_messages": Case(
        "messages that mislead",
        (
            f"{TYPED}::test_a_file_whose_gold_stands_in_an_unknown_column_names_its_columns",
            f"{TEXTS}::test_a_table_without_rows_says_so",
        ),
    ),
    "23_title_of_a_page": Case(
        "a page without a title", (f"{DOCUMENTS}::test_a_page_is_called_by_its_title_or_its_only_first_heading",)
    ),
    "24_declared_encodings": Case(
        "declared encodings",
        (
            f"{TEXTS}::test_a_file_that_says_its_encoding_is_read_in_it",
            f"{TEXTS}::test_a_file_that_says_no_encoding_is_refused",
        ),
    ),
    "25_language_mixing": Case("a note in another language", declined="Questions in other languages than English"),
    "26_docs_dialects": Case(
        "dialects of documentation",
        (
            f"{DOCUMENTS}::test_marks_of_documentation_go_and_what_they_hold_stays",
            f"{DOCUMENTS}::test_mdx_has_its_front_matter_and_its_title",
            f"{DOCUMENTS}::test_restructured_text_is_read_by_its_titles_roles_directives_and_tables",
        ),
    ),
}
ELSEWHERE = ("03_typed_guess",)
"""Kinds whose tests are those of the embedded model."""


def test_each_mended_kind_is_held_by_tests_that_there_are() -> None:
    missing = []
    for name in {name for case in KINDS.values() for name in case.held_by}:
        file, _, function = name.partition("::")
        text = (TESTS / file).read_text("utf-8") if (TESTS / file).is_file() else ""
        if not re.search(rf"^(?:async )?def {function}\(", text, re.MULTILINE):
            missing.append(name)
    assert missing == []


def test_each_other_kind_is_declined_by_a_sentence() -> None:
    page = DECLINED.read_text("utf-8")
    assert [name for name, case in KINDS.items() if not case.held_by and f"**{case.declined}**" not in page] == []


def test_every_input_is_listed() -> None:
    if not CASES.is_dir():
        pytest.skip("needs the inputs of ../shared/cases, which are not part of the project")
    assert sorted(path.name for path in CASES.iterdir() if path.is_dir()) == sorted([*KINDS, *ELSEWHERE])
