"""Lists the small inputs on which strangers failed: the tests that hold each of their kinds, and each input itself.

The inputs lie in ../shared/cases, a folder each, and are no part of the project: without them their tests are skipped,
and those of the kinds, which have inputs of their own, are not. The inputs are indexed and asked in this process, some
ten seconds of the processor in all.
"""

import json
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from kraq_dspy import Scope, build_index
from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.eval import Testset, make_testset
from kraq_dspy.records import Document, Failure
from kraq_dspy.workspace import Workspace
from tests.conftest import WarmShell
from tests.whole_program import app

TESTS = Path(__file__).parent
CASES = TESTS.parents[1] / "shared" / "cases"
SHORT = "embedded/quoting/test_hundred.py"


@dataclass(frozen=True)
class Case:
    """A kind of input, and the tests that hold its right outcome: their file below tests/, "::", and their name."""

    kind: str
    held_by: tuple[str, ...]


HELD = {
    "01_xlsx_far_cell": Case(
        "a sheet with one far cell ends the process",
        (
            "asset/corpus/test_sheets.py::test_a_far_cell_is_one_cell",
            "asset/corpus/test_apart.py::test_a_file_that_ends_the_process_is_a_bad_row_and_the_next_is_read",
        ),
    ),
    "02_runs_paired_by_line": Case(
        "two runs are paired by the number of their line",
        (
            "eval/test_gate.py::test_a_question_on_top_of_the_file_moves_no_pair",
            "eval/test_gate.py::test_only_questions_of_both_runs_count",
        ),
    ),
    "03_false_premise_is_true": Case(
        "a false premise that the corpus tells",
        (
            "testset/test_choosing.py::test_a_passage_that_tells_of_both_names_in_one_sentence_says_how_they_are_related",
            "testset/test_changes.py::test_a_change_that_some_passage_says_is_none",
        ),
    ),
    "04_only_unanswerable_rows": Case(
        "a small corpus gives no fact though it can, and the command that is suggested fails",
        (
            "testset/test_making.py::test_one_sentence_gives_a_fact_and_the_kinds_that_are_missing_are_named",
            "testset/test_making.py::test_a_set_of_questions_without_an_answer_is_followed_by_a_command_that_runs",
        ),
    ),
    "05_twins_in_gold": Case(
        "near-equal documents are asked about again and again, and gold leaves one of them out",
        ("testset/test_making.py::test_a_text_that_stands_in_six_documents_is_asked_about_once_and_all_six_are_gold",),
    ),
    "06_equal_text_two_groups": Case(
        "a text that two groups own is kept for one of them",
        (
            "asset/corpus/test_labels.py::test_two_groups_with_one_text_each_keep_their_copy",
            "asset/corpus/test_labels.py::test_rows_without_ids_and_files_keep_a_copy_for_each_group",
        ),
    ),
    "07_labels_from_pandas": Case(
        "a list of labels as pandas writes it is taken for one label",
        ("asset/corpus/test_labels.py::test_labels_are_read_as_they_are_written",),
    ),
    "08_ordinals_with_a_dot": Case(
        "a sentence ends at an ordinal with a dot",
        (
            "asset/corpus/test_sentences.py::test_sentences_end_where_a_reader_ends_them",
            f"{SHORT}::test_no_value_is_false",
        ),
    ),
    "09_abbreviations": Case(
        "a sentence ends after an abbreviation",
        (
            "asset/corpus/test_sentences.py::test_abbreviations_ordinals_initials_quotes_and_addresses_end_no_sentence",
            f"{SHORT}::test_no_value_is_false",
        ),
    ),
    "10_table_column": Case(
        "the first number of a row answers for another column",
        (f"{SHORT}::test_no_value_is_false", f"{SHORT}::test_two_in_three_of_what_the_text_does_not_tell_are_declined"),
    ),
    "11_comparison_first_named": Case(
        "of two things that are compared, the one that the question names first",
        (f"{SHORT}::test_nine_in_ten_of_what_the_text_tells_are_quoted",),
    ),
    "12_two_facts_one_sentence": Case(
        "of two facts in a sentence, the first",
        (f"{SHORT}::test_no_value_is_false", f"{SHORT}::test_two_in_three_of_what_the_text_does_not_tell_are_declined"),
    ),
    "13_opposite_answers": Case(
        "the value of the opposite, or of another thing",
        (f"{SHORT}::test_two_in_three_of_what_the_text_does_not_tell_are_declined",),
    ),
    "14_magnitude_dropped": Case(
        "a short answer without its million and its unit", (f"{SHORT}::test_no_value_is_false",)
    ),
    "15_number_glued_to_unit": Case(
        "a value that is glued to its unit is passed over for another number",
        (f"{SHORT}::test_no_value_is_false",),
    ),
    "16_hidden_office_text": Case(
        "what an office program hides is indexed",
        (
            "asset/corpus/test_sheets.py::test_what_is_hidden_is_left_out_and_counted",
            "asset/corpus/test_word.py::test_what_nobody_sees_is_left_out_and_counted",
            "asset/corpus/test_slides.py::test_hidden_slides_and_shapes_and_struck_text_are_left_out_and_counted",
        ),
    ),
    "17_docx_parts_lost": Case(
        "an equation, a tick, the number of an item and a header are lost without a word",
        (
            "asset/corpus/test_word.py::test_an_equation_is_written_on_its_line",
            "asset/corpus/test_word.py::test_ticked_and_not_ticked_boxes_are_told_apart",
            "asset/corpus/test_word.py::test_items_have_the_numbers_that_word_gives_them",
            "asset/corpus/test_word.py::test_headers_and_footers_stand_once_without_the_numbers_of_pages",
        ),
    ),
    "18_xlsx_formula_and_merged": Case(
        "a formula without a kept value is lost, and a merged cell stands in its first row alone",
        (
            "asset/corpus/test_sheets.py::test_a_formula_without_a_kept_value_is_read_as_itself",
            "asset/corpus/test_sheets.py::test_a_merged_cell_stands_in_each_of_its_rows_and_names_each_of_its_columns",
            "asset/corpus/test_sheets.py::test_numbers_are_read_as_their_formats_show_them",
        ),
    ),
    "19_mail_and_rtf": Case(
        "an attachment, a forwarded mail, a charset that is not declared, and marks of RTF",
        (
            "asset/corpus/test_mail_and_rtf.py::test_an_attached_file_is_a_document_that_names_its_message",
            "asset/corpus/test_mail_and_rtf.py::test_a_forwarded_message_is_read_with_what_is_attached_to_it",
            "asset/corpus/test_mail_and_rtf.py::test_a_message_without_a_true_charset_is_read",
            "asset/corpus/test_mail_and_rtf.py::test_rich_text_is_read_as_text",
        ),
    ),
    "20_pptx_order_and_chart": Case(
        "boxes of a slide in the order in which they were made, and a chart's numbers lost",
        (
            "asset/corpus/test_slides.py::test_boxes_are_read_from_top_to_bottom_and_from_left_to_right",
            "asset/corpus/test_slides.py::test_a_chart_has_its_numbers_as_it_shows_them",
        ),
    ),
    "21_chat_request_shapes": Case(
        "valid requests of OpenAI's API are refused",
        ("apps/serve/test_chat_completions.py::test_whatever_openai_allows_in_a_request_is_answered",),
    ),
    "22_web_chat_tasks": Case(
        "tasks of web chats are answered from the documents",
        (
            "apps/serve/test_chat_tasks.py::test_what_is_wanted_of_a_conversation_has_its_form",
            "apps/serve/test_chat_tasks.py::test_a_question_stays_a_question",
        ),
    ),
    "23_follow_ups": Case(
        "thanks become a question, and follow-ups are not completed",
        (
            "language/test_social_turns.py::test_a_social_turn_has_its_kind",
            "language/test_follow_ups.py::test_a_question_that_points_stands_behind_the_last_one",
        ),
    ),
    "24_embedded_stream": Case(
        "a reply that comes in one piece gives a listener nothing",
        ("dspy_tools/test_embedded.py::test_a_listener_hears_the_whole_answer_in_one_piece",),
    ),
    "25_predictions_in_dspy_tools": Case(
        "a prediction fails in tools of DSPy",
        (
            "dspy_tools/test_embedded.py::test_the_majority_is_of_the_answers",
            "dspy_tools/test_embedded.py::test_a_prediction_is_json_with_passages_and_all",
            "dspy_tools/test_embedded.py::test_dspys_retrieve_reads_a_retriever_of_ours",
        ),
    ),
    "26_capitals_tr_el": Case(
        "a question in capitals finds nothing in Turkish and Greek",
        ("_internal/test_folding.py::test_a_question_in_capitals_is_answered",),
    ),
    "27_gate_message": Case(
        "the gate's error contradicts itself",
        ("eval/test_gate.py::test_a_metric_without_a_value_says_what_no_question_has",),
    ),
}


def test_each_kind_is_held_by_tests_that_there_are() -> None:
    numbers = [name[:2] for name in HELD]
    assert numbers == [f"{number:02}" for number in range(1, 28)]
    assert all(case.held_by for case in HELD.values())

    missing = []
    for name in {name for case in HELD.values() for name in case.held_by}:
        file, _, function = name.partition("::")
        text = (TESTS / file).read_text("utf-8") if (TESTS / file).is_file() else ""
        if not re.search(rf"^(?:async )?def {function}\(", text, re.MULTILINE):
            missing.append(name)
    assert missing == []


def test_every_input_is_listed_and_tried() -> None:
    assert list(TRIED) == list(HELD)
    if not CASES.is_dir():
        pytest.skip("needs the inputs of ../shared/cases, which are not part of the project")
    assert sorted(path.name for path in CASES.iterdir() if path.is_dir()) == list(HELD)


@pytest.fixture
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the input's folder, without its README, which may be written to."""
    if not CASES.is_dir():
        pytest.skip("needs the inputs of ../shared/cases, which are not part of the project")
    copy = tmp_path / "case"
    shutil.copytree(CASES / request.param, copy, copy_function=shutil.copyfile, ignore=lambda *_: {"README"})
    for each in (copy, *copy.rglob("*")):
        each.chmod(0o755 if each.is_dir() else 0o644)
    return copy


def loaded(folder: Path) -> tuple[dict[str, Document], list[Failure]]:
    """The documents of a folder by their ids, and its failures."""
    read = list(load_documents(folder))
    documents = {each.id: each for each in read if isinstance(each, Document)}
    return documents, [each for each in read if isinstance(each, Failure)]


def opened(folder: Path, corpus: str = "d") -> Workspace:
    build_index(folder / corpus, folder / "x.kraq")
    return Workspace.open(folder / "x.kraq")


def rows(folder: Path) -> Testset:
    with opened(folder) as space:
        return make_testset(space, 20)


def requests(folder: Path) -> Iterator[str]:
    """What a client of OpenAI's reads of each line of `requests.jsonl`."""
    pytest.importorskip("starlette", reason="needs the extra serve")
    from starlette.testclient import TestClient

    from kraq_dspy.apps.serve.app import make_app
    from kraq_dspy.apps.serve.serve_settings import ServeSettings
    from kraq_dspy.apps.serve.served import ServedIndex

    served = {"x": ServedIndex("x", opened(folder))}
    with TestClient(make_app(served, ServeSettings()), base_url="http://127.0.0.1") as client:
        for line in (folder / "requests.jsonl").read_text("utf-8").splitlines():
            response = client.post("/v1/chat/completions", json=json.loads(line))
            assert response.status_code == 200, response.text
            yield response.json()["choices"][0]["message"]["content"]
    served["x"].close()


def far_cell(folder: Path, kraq: WarmShell) -> None:
    documents, failures = loaded(folder)
    assert list(documents) == ["a.txt", "fares.xlsx"]
    assert not failures


def runs_by_line(folder: Path, kraq: WarmShell) -> None:
    build_index(folder / "corpus", folder / "x.kraq")
    for file, out, *gate in (("old.csv", "A"), ("new.csv", "B", "--fail-if-worse", "A")):
        ended = kraq("eval", "x.kraq", file, "--out", out, "-m", "substring_match", *gate, cwd=folder)
        assert ended.returncode == 0, ended.stderr
    assert "3 questions (1 only now)" in ended.stdout
    report = kraq("eval", "report", "A", "B", cwd=folder).stdout
    assert "3 pairs" in report
    assert "1 question is compared with none" in report


def true_premise(folder: Path, kraq: WarmShell) -> None:
    unanswerable = [row.question for row in rows(folder) if not row.is_answerable]
    assert not [question for question in unanswerable if "Ilse Marn" in question and "Orrin" in question]


def facts_first(folder: Path, kraq: WarmShell) -> None:
    opened(folder).close()
    ended = kraq("testset", "make", "x.kraq", "--out", "t.jsonl", "-n", "20", cwd=folder)
    assert "1 fact" in ended.stdout
    [suggested] = [line for line in ended.stdout.splitlines() if line.startswith("Try: kraq ")]
    assert kraq(*suggested.removeprefix("Try: kraq ").split(), "--out", "run", cwd=folder).returncode == 0


def twins(folder: Path, kraq: WarmShell) -> None:
    facts = [row for row in rows(folder) if row.type == "fact"]
    assert facts
    assert len({row.answers for row in facts}) == len(facts)
    assert all(len(row.supporting_ids) == 6 for row in facts)


def two_groups(folder: Path, kraq: WarmShell) -> None:
    with opened(folder, "d.jsonl") as space, space.scoped(Scope(["staff"])) as staff:
        asked = staff.ask("What is the code of the safe at Lurr?", refuse=True)
        assert "4411" in asked.answer
        assert {hit.chunk.document_id for hit in asked.hits} <= {"b", "c"}


def labels_of_pandas(folder: Path, kraq: WarmShell) -> None:
    with opened(folder, "p.csv") as space:
        for label, is_told in (("board", True), ("legal", True), ("staff", False)):
            with space.scoped(Scope([label])) as scoped:
                answer = scoped.ask("What is the code of the safe at Lurr?", refuse=True).answer
                assert ("4411" in answer) == is_told


def hidden_office_text(folder: Path, kraq: WarmShell) -> None:
    documents, _ = loaded(folder)
    text = " ".join(document.text for document in documents.values())
    assert not re.search(r"\b(?:1[123]|99|45)\b|Cleo|Old", text)
    assert all(document.left_out for document in documents.values())


def docx_parts(folder: Path, kraq: WarmShell) -> None:
    documents, _ = loaded(folder)
    assert documents["math.docx"].text == "The area is a b^2 here."
    assert documents["ticks.docx"].text == "[x] Approved\n[ ] Rejected"
    assert re.findall(r"^\d\.", documents["start4.docx"].text, re.MULTILINE) == ["4.", "5.", "6."]


def formulas_and_merged(folder: Path, kraq: WarmShell) -> None:
    documents, _ = loaded(folder)
    assert "Sum: =B2*C2" in documents["formula.xlsx"].text
    assert "Port: Tarnvik; Ship: Berta; Cars: 0" in documents["merged.xlsx"].text


def mail_and_rtf(folder: Path, kraq: WarmShell) -> None:
    documents, _ = loaded(folder)
    texts = [document.text for document in documents.values()]
    assert "Alma pays 80." in texts
    assert documents["nocharset.eml"].text == "Die Fähre kostet 80."
    assert documents["note.rtf"].text == "The ferry leaves at nine.\nIt costs 80 crowns."


def order_of_boxes(folder: Path, kraq: WarmShell) -> None:
    documents, _ = loaded(folder)
    lines = documents["deck.pptx"].text.splitlines()
    assert [line.split()[0] for line in lines if "pay" in line] == ["Adults", "Seniors", "Children"]


def request_shapes(folder: Path, kraq: WarmShell) -> None:
    replies = list(requests(folder))
    assert len(replies) == 3
    assert all("Ida" in reply for reply in replies)


def web_chat_tasks(folder: Path, kraq: WarmShell) -> None:
    queries, title = requests(folder)
    assert json.loads(queries) == {"queries": []}
    assert title == "Who keeps the light?"


def follow_ups(folder: Path, kraq: WarmShell) -> None:
    opened(folder).close()
    talks = (folder / "talk.txt").read_text("utf-8").strip().split("\n\n")
    typed = "\n/new\n".join(talks)
    said = " ".join(CliRunner().invoke(app, ["ask", str(folder / "x.kraq")], input=f"{typed}\n").stdout.split())
    assert "You are welcome." in said
    assert said.count("asked as: Who is the coach of the Foxes?") == 2


def embedded_stream(folder: Path, kraq: WarmShell) -> None:
    output, errors = kraq.python((folder / "run.py").read_text("utf-8"), cwd=folder).communicate()
    assert "StreamResponse" in output, errors


def dspy_tools(folder: Path, kraq: WarmShell) -> None:
    output, errors = kraq.python((folder / "run.py").read_text("utf-8"), cwd=folder).communicate()
    assert "Ida" in output, errors


def gate_message(folder: Path, kraq: WarmShell) -> None:
    opened(folder).close()
    words = ("eval", "x.kraq", "q.jsonl", "--retrieval-only", "--out", "r", "--fail-under", "recall@10=.9")
    ended = kraq(*words, cwd=folder)
    assert ended.returncode == 1
    assert "no question of the run names a document" in ended.stderr


UNKNOWN = "^I do not know$"
ANSWERS = {
    "08_ordinals_with_a_dot": {"Wann wurde der Fährbetrieb eingestellt?": r"5\. Mai 1934"},
    "09_abbreviations": {
        "What does Lurr Bros. sell?": "sells tea",
        "When did Marn & Co. Ltd. move to Benna?": r"Marn & Co\. Ltd\. moved to Benna in Oct\. 1902\.$",
    },
    "10_table_column": {"How much is a large canoe?": "^40 crowns", "How much is a medium kayak?": UNKNOWN},
    "11_comparison_first_named": {
        "Which river is longer, the Oren or the Sila?": "^The Sila",
        "Is the Oren longer than the Sila?": r"^No\b",
    },
    "12_two_facts_one_sentence": {
        "Who is the coach of the Ravens?": r"^Sam Eide\.",
        "Who is the coach of the Otters?": UNKNOWN,
        "How many employees did Norvik Tools have in 2021?": r"^55\.",
        "In which year did Norvik Tools have 55 employees?": r"^2021\.",
    },
    "13_opposite_answers": {
        "When does the spring term end?": "^(?!9 January)",
        "When does the winter term begin?": "^(?!18 August)",
        "Who is the husband of Ada Brandt?": "^(?!Leo Santoro)",
        "When is the laser switched on?": "^(?!17:00)",
    },
    "14_magnitude_dropped": {"How much did the tunnel cost?": r"^1\.2 million crowns\."},
    "15_number_glued_to_unit": {
        "How long is the cable of the kettle?": r"^1m 20cm\.",
        "How much power does the oven use?": r"^3\.5kW\.",
    },
    "26_capitals_tr_el": {"KANTİN NE ZAMAN AÇILIR?": "öğlen", "ΠΟΤΕ ΑΝΟΙΓΕΙ Η ΚΑΝΤΙΝΑ;": "το μεσημέρι"},
}
"""Questions of a case, and a pattern of its right answer."""


def asked(case: str) -> Callable[[Path, WarmShell], None]:
    """The check of a case by its questions."""

    def check(folder: Path, kraq: WarmShell) -> None:
        with opened(folder) as space:
            answers = {question: space.ask(question, refuse=True).answer for question in ANSWERS[case]}
        wrong = {
            question: answers[question]
            for question in answers
            if not re.search(ANSWERS[case][question], answers[question])
        }
        assert wrong == {}

    return check


TRIED: dict[str, Callable[[Path, WarmShell], None]] = {
    "01_xlsx_far_cell": far_cell,
    "02_runs_paired_by_line": runs_by_line,
    "03_false_premise_is_true": true_premise,
    "04_only_unanswerable_rows": facts_first,
    "05_twins_in_gold": twins,
    "06_equal_text_two_groups": two_groups,
    "07_labels_from_pandas": labels_of_pandas,
    **{case: asked(case) for case in ANSWERS if case < "16"},
    "16_hidden_office_text": hidden_office_text,
    "17_docx_parts_lost": docx_parts,
    "18_xlsx_formula_and_merged": formulas_and_merged,
    "19_mail_and_rtf": mail_and_rtf,
    "20_pptx_order_and_chart": order_of_boxes,
    "21_chat_request_shapes": request_shapes,
    "22_web_chat_tasks": web_chat_tasks,
    "23_follow_ups": follow_ups,
    "24_embedded_stream": embedded_stream,
    "25_predictions_in_dspy_tools": dspy_tools,
    "26_capitals_tr_el": asked("26_capitals_tr_el"),
    "27_gate_message": gate_message,
}
"""The check of each input, given its folder."""


@pytest.mark.parametrize(("folder", "case"), [(case, case) for case in TRIED], indirect=["folder"], ids=list(TRIED))
def test_each_input_comes_out_right(folder: Path, case: str, kraq: WarmShell) -> None:
    TRIED[case](folder, kraq)
