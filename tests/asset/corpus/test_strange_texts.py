"""Texts as they come from terminals, mail programs and old systems are read as a person sees them."""

import time
from pathlib import Path

import pytest

from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.records import Document, Failure


def load(path: Path) -> tuple[list[str], list[str]]:
    """The texts, and the reasons of what failed."""
    (path.parent / "zz.txt").write_text("The canteen opens at noon.")
    items = [item for item in load_documents(path.parent) if not (isinstance(item, Document) and item.id == "zz.txt")]
    texts = [each.text for each in items if isinstance(each, Document)]
    return texts, [each.reason for each in items if isinstance(each, Failure)]


def mail(charset: str, body: bytes) -> bytes:
    return b"From: a@b.test\nSubject: Note\nContent-Type: text/plain; charset=" + charset.encode() + b"\n\n" + body


@pytest.mark.parametrize(
    ("charset", "codec", "text"),
    [
        ("iso-8859-8-i", "iso-8859-8", "\u05e9\u05dc\u05d5\u05dd"),
        ("iso-8859-8-e", "iso-8859-8", "\u05e9\u05dc\u05d5\u05dd"),
        ("windows-874", "cp874", "\u0e17\u0e48\u0e32"),
        ("cp-850", "cp850", "F\u00e4hre"),
        ("x-sjis", "cp932", "\u2460\u6e2f"),
        ("gb2312", "gb18030", "\u6e2f\u53e3\u9555"),
        ("ks_c_5601-1987", "cp949", "\ud56d\uad6c\ub620"),
        ("euc-kr", "cp949", "\ub620"),
        ("big5-hkscs", "big5hkscs", "\u6e2f\u53e3"),
        ("iso-8859-1", "cp1252", "\u201cHi\u201d"),
        ("UTF-8", "utf-8", "F\u00e4hre"),
    ],
)
def test_a_mail_is_read_in_the_charset_that_it_means(charset: str, codec: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "a.eml").write_bytes(mail(charset, text.encode(codec)))
    assert load(tmp_path / "a.eml") == ([text], [])


@pytest.mark.parametrize(
    ("charset", "body"), [("x-martian", b"\xfa\xfb\xfc"), ("gb2312", b"\xff\xff"), ("utf-16", b"\xff")]
)
def test_a_mail_in_a_charset_that_is_false_or_unknown_is_named(charset: str, body: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.eml").write_bytes(mail(charset, body))
    texts, (reason,) = load(tmp_path / "a.eml")
    assert texts == []
    assert charset in reason


def test_a_mail_in_such_a_charset_costs_only_itself_in_a_mailbox(tmp_path: Path) -> None:
    begin = b"From a@b.test Mon Jan 01 10:00:00 2024\n"
    bad, good = mail("x-martian", b"\xfa\xfb\xfc"), mail("utf-8", b"It sails.")
    (tmp_path / "a.mbox").write_bytes(begin + bad + b"\n\n" + begin + good + b"\n")
    texts, reasons = load(tmp_path / "a.mbox")
    assert texts == ["It sails."]
    assert len(reasons) == 1


@pytest.mark.parametrize("suffix", ["eml", "mbox"])
@pytest.mark.parametrize(
    "header",
    [
        b"From: " + b"=?utf-8?q?a?= " * 10_000, b"Subject: " + b"=?utf-8?q?a?= " * 10_000,
        b"Content-Type: text/plain; " + b"a=b; " * 10_000,
    ],
    ids=["from", "subject", "parameters"],
)  # fmt: skip
def test_a_header_without_end_costs_no_time(header: bytes, suffix: str, tmp_path: Path) -> None:
    begin = b"From a@b.test Mon Jan 01 10:00:00 2024\n" if suffix == "mbox" else b""
    (tmp_path / f"a.{suffix}").write_bytes(begin + header + b"\nTo: c@d.test\n\nIt sails.\n")
    started = time.process_time()
    texts, _ = load(tmp_path / f"a.{suffix}")
    assert texts == ["It sails."]
    assert time.process_time() - started < 5


@pytest.mark.parametrize(
    ("written", "seen"),
    [
        ("The \x1b[31mgate\x1b[0m is \x1b[1;38;5;4mblue\x1b[m.", "The gate is blue."),
        ("\x1b]0;title\x07It \x1b]8;;http://a.test\x1b\\sails\x1b]8;;\x1b\\.", "It sails."),
        ("N\x08NA\x08A _\x08s\x08\x08", "NA "),
        ("\x1b(BN\x08NA\x08AM\x08ME _\x08x", "NAME x"),
        ("The caf\u00e9 \x1b[32mopens\x1b[0m.", "The caf\u00e9 opens."),
        ("A tab\tand [31m stay.", "A tab\tand [31m stay."),
    ],
)
def test_what_only_a_terminal_obeys_is_left_out(written: str, seen: str) -> None:
    assert normalised(written) == seen == normalised(seen)


def test_a_few_nuls_are_left_out_and_many_are_no_text(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"The pump\x00 failed. " + b"It is green. " * 100)
    (tmp_path / "b.csv").write_bytes(b"text\nThe ship\x00 was sold\n")
    (tmp_path / "c.txt").write_bytes(bytes(range(7)) * 50)
    (tmp_path / "d.txt").write_bytes("It sails.".encode("utf-16-le"))
    texts, reasons = load(tmp_path / "a.txt")
    assert [text[:16] for text in texts] == ["The pump failed.", "The ship was sol"]
    assert [reason[:21] for reason in reasons] == ["The content is binary"] * 2


@pytest.mark.parametrize(
    ("name", "head"),
    [
        ("a.xml", "<?xml version='1.0' encoding='iso-8859-1'?>\n"), ("a.py", "# -*- coding: latin-1 -*-\n"),
        ("a.css", '@charset "iso-8859-1";\n'), ("a.tex", "\\usepackage[latin1]{inputenc}\n"),
        ("a.txt", "# vim: set fileencoding=latin1 :\n"),
    ],
)  # fmt: skip
def test_a_file_that_says_its_encoding_is_read_in_it(name: str, head: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(f"{head}F\u00e4hre".encode("latin-1"))
    (text,), reasons = load(tmp_path / name)
    assert text.endswith("F\u00e4hre")
    assert reasons == []


def test_a_file_that_says_no_encoding_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes("# the coding of letters\n# F\u00e4hre".encode("latin-1"))
    texts, (reason,) = load(tmp_path / "a.py")
    assert texts == []
    assert "not UTF-8" in reason


def test_a_space_before_a_quote_of_csv_is_none(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id, text\n1, "The ship, Alma, was sold"\n2, plain "quoted" words\n3,"no space"\n')
    assert load(tmp_path / "a.csv") == (["The ship, Alma, was sold", 'plain "quoted" words', "no space"], [])


@pytest.mark.parametrize(
    ("name", "table", "texts"),
    [
        ("a.csv", '"id", "text"\n1, "Two, three"\n', ["Two, three"]),
        ("b.csv", 'id;text\n1; "Two; three"\n2;"four"\n', ["Two; three", "four"]),
        ("c.tsv", 'id\ttext\n1\t "Two\tthree"\n', ["Two\tthree"]),
    ],
)
def test_a_space_before_a_quote_is_none_in_tables_of_other_marks(
    name: str, table: str, texts: list[str], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(table)
    assert load(tmp_path / name) == (texts, [])


def test_a_table_without_rows_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,text\n")
    assert load(tmp_path / "a.csv") == ([], ["The table has no rows."])


@pytest.mark.parametrize("mark", ["[1]", "[2][3]", "[note 1]", "[citation needed]", "\u00b2", "(1)", '"[4]'])
def test_a_mark_of_reference_behind_a_stop_ends_the_sentence(mark: str) -> None:
    text = f"It was built in 1962.{mark} It was sold in 1975."
    assert [text[start:end] for start, end in sentence_spans(text)] == [
        f"It was built in 1962.{mark}",
        "It was sold in 1975.",
    ]


@pytest.mark.parametrize("text", ["It costs 4.[5] pounds of it.", "See fig.(3) of the book.", "The U.S.[2] Army came."])
def test_a_mark_within_a_sentence_ends_none(text: str) -> None:
    assert len(sentence_spans(text)) == 1


@pytest.mark.parametrize(
    "stop", ["\u06d4", "\u1362", "\u104b", "\u17d4", "\u0589", "\u0f0d", "\u0965", "\u203c", "\u2049", "\u3002"]
)
def test_stops_of_other_scripts_end_sentences(stop: str) -> None:
    text = f"\u0915\u0916 {stop} \u0917\u0918{stop}"
    assert len(sentence_spans(text)) == 2
