"""Reads messages with what is attached to them, and rich text."""

import base64
from email.message import EmailMessage
from pathlib import Path

import pytest

from kraq_dspy.asset.label_names import MENTIONED
from tests.asset.corpus.corpora import load_all, only_document, only_failure, write


def message(text: str, subject: str = "Berth 7") -> EmailMessage:
    mail = EmailMessage()
    mail["Subject"], mail["From"] = subject, "mira@example.org"
    mail.set_content(text)
    return mail


def test_an_attached_file_is_a_document_that_names_its_message(tmp_path: Path) -> None:
    mail = message("See the list.")
    mail.add_attachment(b"# Ships\n\nAlma pays 80.", maintype="text", subtype="markdown", filename="list.md")
    mail.add_attachment(b"\x89PNG", maintype="image", subtype="png", filename="logo.png")
    mail.add_attachment(b"\x00\x01\x02", maintype="application", subtype="octet-stream", filename="a.bin")
    documents, failures = load_all(write(tmp_path, "a.eml", bytes(mail)))
    assert failures == []
    assert [(each.title, each.text) for each in documents] == [
        ("Berth 7", "See the list."),
        ("Ships", "# Ships\n\nAlma pays 80."),
    ]
    assert documents[1].metadata["attached_to"] == "Berth 7"
    assert documents[0].left_out[0] == "attachment 'logo.png' (image/png), not read"
    assert documents[0].left_out[1].startswith("attachment 'a.bin', not read: ")


def mailbox(*mails: bytes) -> bytes:
    return b"".join(b"From mira@example.org Mon Jan  1 10:00:00 2024\n" + mail + b"\n" for mail in mails)


@pytest.mark.parametrize("name", ["all.mbox", "Inbox"])
def test_each_message_of_a_mailbox_is_a_document(tmp_path: Path, name: str) -> None:
    with_list = message("See the list.", "List")
    with_list.add_attachment(b"Alma pays 80.", maintype="text", subtype="plain", filename="list.txt")
    quoted = b"Subject: Quoted\n\nShe wrote:\n\nFrom here on it rains.\n\n>From Oslo it is far.\n"
    empty = b"Subject: Nothing\n\n\n"
    secret = b"Subject: Safe\nX-ACL: board\n\nThe code is 4411.\n"
    data = mailbox(bytes(message("The Alma is late.", "Delay")), bytes(with_list), quoted, empty, secret)
    documents, failures = load_all(write(tmp_path, name, data))
    assert [(each.title, each.text.strip()) for each in documents] == [
        ("Delay", "The Alma is late."),
        ("List", "See the list."),
        ("list", "Alma pays 80."),
        ("Quoted", "She wrote:\n\nFrom here on it rains.\n\nFrom Oslo it is far."),
        ("Safe", "The code is 4411."),
    ]
    assert [each.item_id for each in failures] == [f"{name}#4"]
    assert all(MENTIONED in each.left_out for each in documents)  # the file has "X-ACL: board"


def test_a_long_message_of_a_mailbox_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    long = b"Subject: Long\n\n" + b"It rains.\n" * 200
    file = write(tmp_path, "a.mbox", mailbox(long, bytes(message("It is dry."))))
    documents, failures = load_all(file, max_bytes=1000)
    assert [each.text.strip() for each in documents] == ["It is dry."]
    assert "max_bytes" in failures[0].reason


def test_a_file_that_is_no_mailbox_is_refused(tmp_path: Path) -> None:
    assert "no mailbox" in only_failure(write(tmp_path, "a.mbox", b"From Oslo it is far.\n")).reason


def test_each_row_of_an_attached_table_is_a_document(tmp_path: Path) -> None:
    mail = message("See the table.")
    mail.add_attachment("text\nAlma pays 80.\nBerta pays 60.\n", subtype="csv", filename="t.csv")
    documents, failures = load_all(write(tmp_path, "a.eml", bytes(mail)))
    assert failures == []
    assert [each.text for each in documents] == ["See the table.", "Alma pays 80.", "Berta pays 60."]
    assert len({each.id for each in documents}) == 3


def test_a_forwarded_message_is_read_with_what_is_attached_to_it(tmp_path: Path) -> None:
    inner = message("The Alma is late.", "Delay")
    inner.add_attachment("It rains.", filename="weather.txt")
    outer = message("See below.", "Fwd: Delay")
    outer.add_attachment(inner)
    documents, failures = load_all(write(tmp_path, "a.eml", bytes(outer)))
    assert failures == []
    assert [(each.title, each.text.strip(), each.metadata.get("attached_to")) for each in documents] == [
        ("Fwd: Delay", "See below.", None),
        ("Delay", "The Alma is late.", "Fwd: Delay"),
        ("weather", "It rains.", "Delay"),
    ]


def test_messages_in_messages_without_end_are_named(tmp_path: Path) -> None:
    mail = message("The end.")
    for number in range(9):
        outer = message(f"See {number}.")
        outer.add_attachment(mail)
        mail = outer
    documents, _ = load_all(write(tmp_path, "a.eml", bytes(mail)))
    assert len(documents) == 6
    assert any("not read" in line for line in documents[-1].left_out)


@pytest.mark.parametrize(
    ("kind", "encoding"),
    [
        ("text/plain", "utf-8"),
        ("text/plain; charset=us-ascii", "utf-8"),
        ("text/plain; charset=utf-8", "cp1252"),
        ("text/plain", "cp1252"),
        ("text/plain; charset=x", "utf-8"),
    ],
)
def test_a_message_without_a_true_charset_is_read(tmp_path: Path, kind: str, encoding: str) -> None:
    head = f"Subject: Die Fähre\nContent-Type: {kind}\nContent-Transfer-Encoding: 8bit\n\nDie Fähre kostet 80.\n"
    document = only_document(write(tmp_path, "a.eml", head.encode(encoding)))
    assert (document.title, document.text) == ("Die Fähre", "Die Fähre kostet 80.")


@pytest.mark.parametrize("charset", ["iso-8859-1", "windows-1252", "us-ascii"])
def test_a_message_that_says_a_false_charset_is_read(charset: str, tmp_path: Path) -> None:
    head = f"Subject: A\nContent-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n"
    assert only_document(write(tmp_path, "a.eml", head + "Die Fähre kostet 80.")).text == "Die Fähre kostet 80."
    (tmp_path / "a.eml").write_bytes(head.encode() + "Die Fähre kostet 80.".encode("latin-1"))
    assert only_document(tmp_path).text == "Die Fähre kostet 80."


@pytest.mark.parametrize(
    ("charset", "codec", "text"),
    [("gb2312", "gbk", "镕港"), ("x-sjis", "cp932", "港の船①"), ("windows-874", "cp874", "ท่าเรือ")],
)
def test_headers_are_read_in_encodings_by_the_names_that_mails_use(
    charset: str, codec: str, text: str, tmp_path: Path
) -> None:
    word = f"=?{charset}?B?{base64.b64encode(text.encode(codec)).decode()}?="
    head = f"From: {word} <a@b.test>\nSubject: Re: {word}\n\nIt sails.\n"
    document = only_document(write(tmp_path, "a.eml", head))
    assert (document.title, document.metadata["from"]) == (f"Re: {text}", f"{text} <a@b.test>")


def test_a_word_of_a_header_in_an_unknown_encoding_stays(tmp_path: Path) -> None:
    assert only_document(write(tmp_path, "a.eml", "Subject: =?x-y?B?8Q==?=\n\nIt sails.\n")).title == "=?x-y?B?8Q==?="


def test_a_forwarded_message_that_was_encoded_is_read(tmp_path: Path) -> None:
    inner = base64.encodebytes(b"Subject: Fares\n\nAlma pays 80.").decode()
    parts = f"--b\n\nSee.\n--b\nContent-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n{inner}--b--\n"
    message = f"Subject: A\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=b\n\n{parts}"
    documents, failures = load_all(write(tmp_path, "a.eml", message))
    assert [(each.title, each.text) for each in documents] == [("A", "See."), ("Fares", "Alma pays 80.")]
    assert failures == []


def test_an_empty_text_beside_a_page_is_not_the_body(tmp_path: Path) -> None:
    parts = "--b\n\n \n--b\nContent-Type: text/html\n\n<p>Alma pays 80.</p>\n--b--\n"
    message = f"Subject: A\nMIME-Version: 1.0\nContent-Type: multipart/alternative; boundary=b\n\n{parts}"
    assert only_document(write(tmp_path, "a.eml", message)).text == "Alma pays 80."


def test_parts_in_parts_without_end_cost_their_file_alone(tmp_path: Path) -> None:
    nested = "".join(f"--b{n}\nContent-Type: multipart/mixed; boundary=b{n + 1}\n\n" for n in range(1500))
    head = "Subject: A\nContent-Type: multipart/mixed; boundary=b0\n\n"
    write(tmp_path, "a.eml", f"{head}{nested}--b1500\n\nhello\n")
    write(tmp_path, "b.txt", "The Alma sails at nine.")
    documents, failures = load_all(tmp_path)
    assert [each.id for each in documents] == ["b.txt"]
    assert [(each.item_id, "parts within parts" in each.reason) for each in failures] == [("a.eml", True)]


def test_the_other_form_of_the_same_body_is_no_attachment(tmp_path: Path) -> None:
    mail = message("It sails at six.")
    mail.add_alternative("<p>It sails at six.</p>", subtype="html")
    document = only_document(write(tmp_path, "a.eml", bytes(mail)))
    assert (document.text, document.left_out) == ("It sails at six.", ())


def rtf(body: str) -> bytes:
    fonts = r"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0 Arial;}}{\info{\title x}}"
    return (fonts + body + "}").encode("latin-1")


def test_rich_text_is_read_as_text(tmp_path: Path) -> None:
    body = r"\f0\fs24 Die F\'e4hre \b leaves\b0  at nine.\par It costs \u8364? 80.\par"
    assert only_document(write(tmp_path, "note.rtf", rtf(body))).text == "Die Fähre leaves at nine.\nIt costs € 80."


@pytest.mark.parametrize("name", ["note.doc", "note"])
def test_rich_text_of_another_name_is_rich_text(tmp_path: Path, name: str) -> None:
    assert only_document(write(tmp_path, name, rtf(r"It costs 80.\par"))).text == "It costs 80."


def test_notes_headers_and_footers_of_rich_text_are_left_out(tmp_path: Path) -> None:
    marks = (
        r"{\rtf1\ansi{\header The list of the board}{\footer Page \chpgn}{\footerf Valid from 2024}"
        r"The ferry costs 80{\footnote Children pay 40.} crowns.}"
    )
    assert only_document(write(tmp_path, "a.rtf", marks)).text == "The ferry costs 80 crowns."


def test_a_table_of_rich_text_keeps_its_cells(tmp_path: Path) -> None:
    rows = (
        rf"\trowd\cellx1000\cellx2000\intbl {ship}\cell {fare}\cell\row"
        for ship, fare in [("Ship", "Fare"), ("Alma", "80")]
    )
    body = "".join(rows)
    assert only_document(write(tmp_path, "note.rtf", rtf(body))).text == "Ship\tFare\nAlma\t80"


def test_rich_text_that_is_none_says_so(tmp_path: Path) -> None:
    assert "rtf" in only_failure(write(tmp_path, "note.rtf", "It costs 80.")).reason
