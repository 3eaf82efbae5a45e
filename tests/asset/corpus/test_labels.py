"""Labels as people write them in each kind of file are read, or the file is refused by name. They never vanish."""

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.asset.label_names import is_label_name, label_column, possible_names
from kraq_dspy.asset.scope import NOBODY, labels_of
from kraq_dspy.errors import CorpusError, KraqError
from kraq_dspy.records import Document, Failure

OPEN = "The canteen opens at noon."
SAFE = "The code of the safe is 4411."


def load(folder: Path, **options: Any) -> tuple[dict[str, tuple[str, ...]], dict[str, str]]:
    """Labels by id, and reasons by name; beside a file that anybody may read, so that a corpus is left."""
    (folder / "zz-open.txt").write_text(OPEN, "utf-8")
    items = list(load_documents(folder, **options))
    labels = {each.id: each.labels for each in items if isinstance(each, Document) and each.id != "zz-open.txt"}
    return labels, {each.item_id: each.reason for each in items if isinstance(each, Failure)}


UNDERSTOOD = [
    ("staff", ("staff",)),
    (" staff , board ", ("board", "staff")),
    ("['board', 'legal']", ("board", "legal")),  # pandas
    ('["board", "legal"]', ("board", "legal")),
    ("('board', 'legal')", ("board", "legal")),
    ("{'board'}", ("board",)),
    ("['board',]", ("board",)),
    ('["CN=Board,OU=Oslo"]', ("CN=Board,OU=Oslo",)),
    ("['CN=Board,OU=Oslo']", ("CN=Board,OU=Oslo",)),
    (["CN=Board,OU=Oslo"], ("CN=Board,OU=Oslo",)),
    ("CN=Board", ("CN=Board",)),
    ("DOM\\board, DOM\\legal", ("DOM\\board", "DOM\\legal")),
    ("O'Neill's team", ("O'Neill's team",)),
    ("(North) team", ("(North) team",)),
    ("Bu\u0308ro", ("B\u00fcro",)),
    (42, ("42",)),
    (42.0, ("42",)),
    (float("nan"), (NOBODY,)),
    ("nan", (NOBODY,)),
    ("None", (NOBODY,)),
    (None, (NOBODY,)),
    ("[]", (NOBODY,)),
    ([None, "", "staff"], ("staff",)),
    ((each for each in ("b", "a")), ("a", "b")),
]


@pytest.mark.parametrize(("value", "labels"), UNDERSTOOD, ids=range(len(UNDERSTOOD)))
def test_labels_are_read_as_they_are_written(value: Any, labels: tuple[str, ...]) -> None:
    assert labels_of(value) == labels


@pytest.mark.parametrize(
    "value",
    [
        "CN=Board,OU=Oslo", "cn=a, cn=b", "Board\\, Oslo", "board;legal", "board|legal", "board\nlegal", "*",
        "['board' 'legal']", "[board, legal]", "{board,legal}", '{"board": true}', "['board', 'legal'", "'board'",
        '"board"', "array(['board'], dtype=object)", "true", "False", True, b"board", {"a": "b"}, [["board"]],
        [{"id": "board"}], "bo\u200bard", "board\u00a0north", ["*"], [True], 1.5, object(), "[" * 3000,
    ],
)  # fmt: skip
def test_labels_that_are_not_understood_are_refused(value: Any) -> None:
    """Never taken for others: numpy's list without commas is one word for Python."""
    with pytest.raises(CorpusError, match="The labels"):
        labels_of(value)


@pytest.mark.parametrize("name", ["acl", "ACL", "Acl", " acl ", "_acl", "acl:", "\uff41\uff43\uff4c", "'acl'"])
def test_the_name_of_labels_is_known_in_any_case(name: str) -> None:
    assert label_column(["text", name]) == name


@pytest.mark.parametrize("name", ["acls", "ACLs", "acl_groups", "aclGroups", "read_acl", "docAcl", "acl.users", "acl2"])
def test_a_name_that_is_almost_that_of_labels_stops(name: str) -> None:
    with pytest.raises(CorpusError, match="--acl-column"):
        label_column(["text", name])
    assert is_label_name(name)
    assert label_column(["text", name], name) == name


@pytest.mark.parametrize("name", ["acl_injury", "acl_id", "oracle", "tacl", "miracle", "title"])
def test_other_names_with_these_letters_do_not_stop(name: str) -> None:
    assert label_column(["text", name]) == ""
    assert not is_label_name(name)


def test_names_that_often_mean_labels_are_told() -> None:
    names = ["groups", "allowedUsers", "Permissions", "visible_to", "access_level", "acl_id", "year", "author", "tags"]
    assert possible_names(names) == names[:6]


FRONT_MATTER = {
    "a list with a comma in a label": ('---\nacl: ["CN=Board,OU=Oslo"]\n---\n', ("CN=Board,OU=Oslo",)),
    "a block list": ("---\nacl:\n  - board\n  - legal\n---\n", ("board", "legal")),
    "capitals": ("---\nACL: board\n---\n", ("board",)),
    "one capital": ("---\ntitle: A\nAcl: [board]\n---\n", ("board",)),
    "in quotes": ('---\n"acl": "board"\n---\n', ("board",)),
    "a comment": ("---\nacl: board # and nobody else\n---\n", ("board",)),
    "the ends of Windows' lines": ("---\r\nacl: board\r\n---\r\n", ("board",)),
    "the ends of an old Mac's lines": ("---\racl: board\r---\r", ("board",)),
    "a byte-order mark": ("\ufeff---\nacl: board\n---\n", ("board",)),
    "an empty line before": ("\n\n---\nacl: board\n---\n", ("board",)),
    "dots at the end": ("---\nacl: board\n...\n", ("board",)),
    "TOML": ('+++\ntitle = "A"\nacl = ["board", "legal"]\n+++\n', ("board", "legal")),
    "TOML in capitals": ('+++\nACL = "board"\n+++\n', ("board",)),
    "TOML between dashes": ('---toml\nacl = ["board"]\n---\n', ("board",)),
    "JSON": ('{\n"title": "A",\n"acl": ["board"]\n}\n', ("board",)),
    "JSON between semicolons": (';;;\n{"acl": ["board"]}\n;;;\n', ("board",)),
    "JSON between dashes": ('---json\n{"acl": ["board"]}\n---\n', ("board",)),
    "a leading zero": ("---\nacl: 010\n---\n", ("010",)),
    "nobody": ("---\nacl: []\n---\n", (NOBODY,)),
    "nothing": ("---\nacl:\n---\n", (NOBODY,)),
    "null": ("---\nacl: null\n---\n", (NOBODY,)),
}


@pytest.mark.parametrize("what", FRONT_MATTER)
@pytest.mark.parametrize("name", ["a.md", "a.markdown", "a.mdx", "a.qmd", "a.md.gz"])
def test_labels_in_front_matter(what: str, name: str, tmp_path: Path) -> None:
    head, labels = FRONT_MATTER[what]
    data = (head + SAFE).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert load(tmp_path) == ({name: labels}, {})


REFUSED_HEADS = {
    "a tab": "---\nacl:\n\t- board\n---\n",
    "a tab before": "---\n\tacl: board\n---\n",
    "no end": "---\nacl: board\n\n",
    "no end, with a title": "---\ntitle: A\nacl: [board]\n# A\n\n",
    "no end of TOML": '+++\nacl = ["board"]\n\n',
    "no end of JSON": '{\n"acl": ["board"],\n\n',
    "nested": "---\naccess:\n  acl: [board]\n---\n",
    "nested in a list": "---\nrules:\n  - acl: board\n---\n",
    "merged": "---\nx: &a\n  acl: board\n<<: *a\n---\n",
    "an object": "---\nacl: {a: b}\n---\n",
    "a list in a list": "---\nacl: [[board]]\n---\n",
    "twice": "---\nacl: board\nacl: staff\n---\n",
    "twice in two cases": "---\nacl: board\nACL: staff\n---\n",
    "a list that has no end": "---\nacl: [board\n---\n",
    "an unknown alias": "---\nacl: *board\n---\n",
    "a sign that YAML keeps": "---\nacl: @board\n---\n",
    "no space behind the colon": "---\nacl:board\n---\n",
    "a space that does not break": "---\nacl:\u00a0board\n---\n",
    "an equals sign": "---\nacl = board\n---\n",
    "several lines": "---\nacl: |\n  board\n  legal\n---\n",
    "a directory's name as words": "---\nacl: CN=Board,OU=Oslo\n---\n",
    "almost the name": "---\nacls: [board]\n---\n",
    "almost the name in TOML": '+++\nacl_groups = ["board"]\n+++\n',
    "a table of TOML": '+++\n[acl]\ngroups = ["board"]\n+++\n',
    "broken TOML": "+++\nacl = board\n+++\n",
    "broken beside": "---\ntitle: a: b\nacl: board\n---\n",
    "groups in what is broken": "---\ntitle: a: b\nallowed_groups: [board]\n---\n",
    "groups nested": "---\npermissions:\n  read: [board]\n---\n",
    "a comment": "<!--\nacl: board\n-->\n\n",
    "MultiMarkdown": "Title: A\nACL: board\n\n",
    "a zero-width space in the label": "---\nacl: bo\u200bard\n---\n",
    "below a heading": "# Safe\n\n---\nacl: [board]\n---\n",
    "in a second block": "---\ntitle: A\n---\n---\nacl: [board]\n---\n",
    "rules of another length": "----\nacl: [board]\n----\n",
    "a colon of another script": "---\nacl： board\n---\n",
    "a truth": "---\nacl: true\n---\n",
    "a wildcard": '---\nacl: "*"\n---\n',
}


@pytest.mark.parametrize("what", REFUSED_HEADS)
def test_front_matter_whose_labels_cannot_be_read_refuses_the_file(what: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(REFUSED_HEADS[what] + SAFE, "utf-8")
    labels, reasons = load(tmp_path)
    assert labels == {}
    assert list(reasons) == ["a.md"]


@pytest.mark.parametrize("what", REFUSED_HEADS)
def test_where_labels_have_another_name_nobody_reads_without_it(what: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(REFUSED_HEADS[what] + SAFE, "utf-8")
    labels, _ = load(tmp_path, acl_column="groups")
    assert set(labels.values()) <= {(NOBODY,)}


@pytest.mark.parametrize(
    "text",
    [
        "# ACLs\n\nAn ACL: a list of who may read.\n",
        "---\n\nA rule.\n\n---\n\nThe acl: what it is.\n",
        "# Words\n\n---\n\nACL: access control list.\n\n---\n",
        "-----\n\nA rule.\n\nacl: a word.\n",
        "---\nAnna: Well?\nBen: The miracle: it works.\n---\nThey go.",
        "---\ntitle: a: b\n---\nText.",
        "Text.\n\nacl: is a word.\n",
        "```yaml\nacl: public-read\n```\n\nText.",
        "Note: this is a text, and\nnothing else.\nacl: no",
    ],
)
def test_a_text_that_speaks_of_labels_is_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(text, "utf-8")
    assert load(tmp_path) == ({"a.md": ()}, {})


def test_an_empty_line_at_the_beginning_says_that_a_line_names_no_labels(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("ACL: access control list.\n", "utf-8")
    assert load(tmp_path)[0] == {}
    (tmp_path / "a.md").write_text("\n# Words\n\nACL: access control list.\n", "utf-8")
    assert load(tmp_path) == ({"a.md": ()}, {})


TABLES = {
    "ACL.csv": ('text,ACL\n"{}",board\n', ("board",)),
    "spaces.csv": ('text, acl \n"{}",board\n', ("board",)),
    "pandas.csv": ("text,acl\n\"{}\",\"['board', 'legal']\"\n", ("board", "legal")),
    "json.csv": ('text,acl\n"{}","[""CN=Board,OU=Oslo""]"\n', ("CN=Board,OU=Oslo",)),
    "semicolons.csv": ('text;Acl\n"{}";board\n', ("board",)),
    "missing.csv": ('text,acl\n"{}"\n', (NOBODY,)),
    "tabs.tsv": ("text\tACL\n{}\tboard\n", ("board",)),
    "a.jsonl": ('{{"text": "{}", "ACL": "board, legal"}}\n', ("board", "legal")),
    "null.jsonl": ('{{"text": "{}", "acl": null}}\n', (NOBODY,)),
    "number.jsonl": ('{{"text": "{}", "acl": 7}}\n', ("7",)),
    "space.json": ('[{{"text": "{}", " acl": ["board"]}}]', ("board",)),
}


@pytest.mark.parametrize("name", TABLES)
def test_labels_in_tables(name: str, tmp_path: Path) -> None:
    content, labels = TABLES[name]
    (tmp_path / name).write_text(content.format(SAFE), "utf-8")
    found, reasons = load(tmp_path)
    assert (list(found.values()), reasons) == ([labels], {})


REFUSED_TABLES = {
    "directory.csv": 'text,acl\n"{}","CN=Board,OU=Oslo"\n',
    "numpy.csv": "text,acl\n\"{}\",\"['board' 'legal']\"\n",
    "postgres.csv": 'text,acl\n"{}","{{board,legal}}"\n',
    "semicolon.csv": 'text,acl\n"{}",board;legal\n',
    "lines.csv": 'text,acl\n"{}","board\nlegal"\n',
    "twice.csv": 'text,acl,acl\n"{}",board,staff\n',
    "cases.csv": 'text,acl,ACL\n"{}",board,staff\n',
    "near.csv": 'text,acl_groups\n"{}",board\n',
    "metadata.csv": "text,metadata\n\"{}\",\"{{'acl': ['board']}}\"\n",
    "truth.jsonl": '{{"text": "{}", "acl": true}}\n',
    "object.jsonl": '{{"text": "{}", "acl": {{"groups": ["board"]}}}}\n',
    "nested.jsonl": '{{"text": "{}", "metadata": {{"acl": ["board"]}}}}\n',
    "deep.jsonl": '{{"text": "{}", "a": [{{"b": {{"ACL": "board"}}}}]}}\n',
    "in_text.jsonl": '{{"text": "{}", "metadata": "{{\\"acl\\": [\\"board\\"]}}"}}\n',
    "lists.jsonl": '{{"text": "{}", "acl": [["board"]]}}\n',
    "objects.jsonl": '{{"text": "{}", "acl": [{{"name": "board"}}]}}\n',
    "twice.jsonl": '{{"text": "{}", "acl": ["board"], "acl": ["staff"]}}\n',
    "near.json": '{{"text": "{}", "readAcl": ["board"]}}',
}


@pytest.mark.parametrize("name", REFUSED_TABLES)
def test_tables_whose_labels_cannot_be_read_are_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(REFUSED_TABLES[name].format(SAFE), "utf-8")
    labels, reasons = load(tmp_path)
    assert labels == {}
    assert [reason.partition("#")[0] for reason in reasons] == [name]


def test_labels_in_parquet(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    columns = {
        "list": pa.array([["CN=Board,OU=Oslo"], None]),
        "large": pa.array([["board"], []], pa.large_list(pa.string())),
        "dictionary": pa.array(["board", None]).dictionary_encode(),
        "bytes": pa.array([b"board", None]),
        "number": pa.array([7.0, None]),
    }
    for name, column in columns.items():
        pq.write_table(
            pa.table({"text": [f"{SAFE} {name}", f"{OPEN} {name}"], "ACL": column}), tmp_path / f"{name}.parquet"
        )
    labels, reasons = load(tmp_path)
    assert reasons == {}
    assert set(labels.values()) == {("CN=Board,OU=Oslo",), ("board",), ("7",), (NOBODY,)}
    pq.write_table(pa.table({"text": [SAFE], "acl": pa.array([{"g": "board"}])}), tmp_path / "struct.parquet")
    assert list(load(tmp_path)[1]) == ["struct.parquet#1"]


def _zip(parts: dict[str, str]) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return data.getvalue()


PROPERTY = '<Properties><property fmtid="{D5}" pid="2" name="ACL"><vt:lpwstr>board</vt:lpwstr></property></Properties>'
ELSEWHERE: dict[str, str | bytes] = {
    "a.docx": _zip({"docProps/custom.xml": PROPERTY, "word/document.xml": "<w/>"}),
    "a.pptx": _zip({"docProps/custom.xml": PROPERTY}),
    "a.ods": _zip({"meta.xml": '<meta:user-defined meta:name="acl">board</meta:user-defined>'}),
    "a.epub": _zip({"book.opf": '<meta name="acl" content="board"/>'}),
    "a.html": f'<html><head><meta content="board" name="ACL"></head><body><p>{SAFE}</p></body></html>',
    "a.eml": f"From: a@b.c\nX-ACL: board\nSubject: A\n\n{SAFE}\n",
    "a.ipynb": json.dumps({"metadata": {"acl": ["board"]}, "cells": [{"cell_type": "markdown", "source": SAFE}]}),
    "cell.ipynb": json.dumps({"cells": [{"cell_type": "raw", "source": ["---\n", "acl: [board]\n", "---"]}]}),
    "a.pdf": b"%PDF-1.4\n1 0 obj <</Title (A) /ACL (board)>> endobj",
    "a.rst": f"Safe\n====\n\n:acl: board\n\n{SAFE}\n",
    "a.adoc": f"= Safe\n:acl: board\n\n{SAFE}\n",
    "a.org": f"#+TITLE: Safe\n#+ACL: board\n\n{SAFE}\n",
    "a.txt": f"---\nacl: board\n{SAFE}\n",
}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_labels_in_a_place_from_which_none_are_read_refuse_the_file(name: str, tmp_path: Path) -> None:
    content = ELSEWHERE[name]
    (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    labels, reasons = load(tmp_path)
    assert labels == {}
    assert list(reasons) == [name]
    assert "labels" in reasons[name] or "who may read" in reasons[name]


def test_a_sheet_with_a_column_of_labels_is_refused(tmp_path: Path) -> None:
    xlsxwriter = pytest.importorskip("xlsxwriter")
    pytest.importorskip("python_calamine")
    with xlsxwriter.Workbook(tmp_path / "a.xlsx") as book:
        sheet = book.add_worksheet()
        for number, row in enumerate((["text", "ACL"], [SAFE, "board"], [OPEN, "staff"])):
            sheet.write_row(number, 0, row)
    labels, reasons = load(tmp_path)
    assert labels == {}
    assert "Save the sheet as csv" in reasons["a.xlsx"]


@pytest.mark.parametrize("name", ["a.txt", "README", "a.rst"])
def test_front_matter_of_other_texts_keeps_its_labels(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(f"---\nacl: [board]\n---\n{SAFE}\n", "utf-8")
    assert load(tmp_path) == ({name: ("board",)}, {})


def test_two_groups_with_one_text_each_keep_their_copy(tmp_path: Path) -> None:
    rows = [
        {"id": "a", "text": SAFE, "acl": ["board"]},
        {"id": "b", "text": SAFE, "acl": ["staff"]},
        {"id": "c", "text": SAFE, "acl": ["staff"]},
        {"id": "a", "text": SAFE, "acl": ["sales"]},
    ]
    (tmp_path / "d.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    labels, reasons = load(tmp_path)
    assert labels == {"a": ("board",), "b": ("staff",)}
    assert "the same as that of the earlier document 'b'" in reasons["d.jsonl#3"]
    assert "all their labels in one row" in reasons["d.jsonl#4"]


def test_rows_without_ids_and_files_keep_a_copy_for_each_group(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(f"text,acl\n{SAFE},board\n{SAFE},staff\n", "utf-8")
    for group in ("legal", "sales"):
        (tmp_path / f"{group}.md").write_text(f"---\nacl: {group}\n---\n{SAFE}", "utf-8")
    labels, reasons = load(tmp_path)
    assert sorted(labels.values()) == [("board",), ("legal",), ("sales",), ("staff",)]
    assert reasons == {}


def test_a_function_gives_labels_before_repeated_texts_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(f"id,text,acl_groups\n1,{SAFE},board\n2,{SAFE},staff\n", "utf-8")
    labels, reasons = load(tmp_path, labels=lambda document: [document.metadata.get("acl_groups", "all")])
    assert labels == {"1": ("board",), "2": ("staff",)}
    assert reasons == {}


def test_a_column_of_labels_that_no_row_has_is_refused(tmp_path: Path) -> None:
    (tmp_path / "d.csv").write_text(f"text,Groups\n{SAFE},board\n", "utf-8")
    with pytest.raises(KraqError, match="no column 'groups'"):
        list(load_documents(tmp_path, acl_column="groups"))


OTHER_FORMS = {
    "link.md": "[//]: # (acl: board)\n\nSAFE",
    "link_below.md": '# Safe\n\nSAFE\n\n[//]: # "acl: board"\n',
    "comment_link.md": "[comment]: <> (acl: board)\nSAFE",
    "two_colons.md": "acl:: board\n\nSAFE",
    "brackets.md": "SAFE\n\n[acl:: board, legal]\n",
    "bold.md": "# Safe\n\n**ACL:** board  \n**Owner:** Anna\n\nSAFE",
    "bold_name.md": "**ACL**: board\n\nSAFE",
    "items.md": "- ACL: board\n- Owner: Anna\n\nSAFE",
    "quote.md": "> acl: board\n\nSAFE",
    "row.md": "| ACL | board |\n|---|---|\n\nSAFE",
    "comment.md": "# Safe\n\nSAFE\n\n<!-- acl: board -->\n",
    "mdx.mdx": "{/* acl: board */}\n\n# Safe\n\nSAFE",
    "behind_fields.md": "---\ntitle: Safe\n---\n<!-- acl: board -->\nSAFE",
    "first.txt": "ACL: board\nSAFE",
    "fields.txt": "Title: Safe\nACL: board\n\nSAFE",
    "hash.txt": "# acl: board\nSAFE",
    "hidden.txt": "a\u00adcl: board\n\nSAFE",
    "cyrillic.txt": "\u0430\u0441l: board\n\nSAFE",
    "field.rst": ".. acl:: board\n\nSAFE",
    "key.yaml": "acl: board\ntext: SAFE\n",
    "list.yml": "text: SAFE\nacl:\n  - board\n",
    "comment.yaml": "# acl: board\ntext: SAFE\n",
    "key.toml": 'text = "SAFE"\nacl = ["board"]\n',
    "key.ini": "; acl: board\n[safe]\ntext=SAFE\n",
    "attribute.xml": '<doc acl="board"><p>SAFE</p></doc>',
    "element.xml": "<?xml version='1.0'?>\n<doc><acl><group>board</group></acl><p>SAFE</p></doc>",
    "comment.xml": "<doc><!-- acl: board --><p>SAFE</p></doc>",
    "comment.tex": "% acl: board\n\\documentclass{article}\nSAFE",
    "comment.py": "# acl: board\nprint('SAFE')\n",
    "docstring.py": '"""Safe.\n\nacl: board\n"""\nprint("SAFE")\n',
    "comment.c": "/*\n * acl: board\n */\n// SAFE\n",
    "comment.sql": "-- acl: board\nselect 'SAFE'\n",
    "comment.html": "<html><body><!-- acl: board --><p>SAFE</p></body></html>",
    "data.html": '<html><body data-acl="board"><p>SAFE</p></body></html>',
    "header.html": '<html><head><meta http-equiv="acl" content="board"></head><body><p>SAFE</p></body></html>',
    "property.rtf": "{\\rtf1{\\*\\userprops{\\propname ACL}\\proptype30{\\staticval board}}SAFE}",
}


@pytest.mark.parametrize("name", OTHER_FORMS)
def test_a_line_that_declares_labels_in_another_form_refuses_the_file(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(OTHER_FORMS[name].replace("SAFE", SAFE), "utf-8")
    labels, reasons = load(tmp_path)
    assert (labels, list(reasons)) == ({}, [name])
    assert "who may read" in reasons[name]
    assert load(tmp_path, labels=lambda document: ["staff"])[1] == {}


def test_look_alikes_of_other_scripts_are_the_name(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"---\n\u0430\u0441l: board\n---\n{SAFE}", "utf-8")
    assert load(tmp_path) == ({"a.md": ("board",)}, {})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prose.md", "Access control lists are lists of who may read. An ACL: a list.\n"),
        ("list.md", "# Words\n\n**ACL:** access control list\n"),
        ("items.md", "# Words\n\n- ACL: Anterior cruciate ligament\n- PC: computer\n"),
        ("knee.txt", "ACL: intact\nPCL: torn\n\nThe left side.\n"),
        ("conference.md", "**ACL 2023:** three papers\n"),
        ("year.txt", "ACL: 2023 in Toronto\n"),
        ("options.md", "# Options\n\n- `acl`: string\n- `id`: integer\n"),
        ("fenced.md", "Text.\n\n```yaml\nacl: board\n```\n"),
        ("table.md", "| Term | Meaning |\n|---|---|\n| ACL | access control list |\n"),
        ("later.txt", "Chapter one.\n\nHe said that the ACL: board met.\n"),
        ("code.py", "import acl\n\nacl: str = 'x'\n# acl: board\n"),
        ("parameter.py", '"""Sets rights.\n\n:param acl: the list\n"""\n'),
        ("bucket.yaml", "acl: public-read\nbucket: photos\n"),
        ("nested.yaml", "resource:\n  acl: private\n"),
        ("switch.yaml", "acl:\n  enabled: true\n"),
        ("squid.conf", "acl localnet src 10.0.0.0/8\n"),
        ("bucket.tf", 'resource "bucket" "a" {\n  acl = "private"\n}\n'),
        ("acronym.tex", "\\acl{gpu} is a unit.\n"),
        ("rights.sh", "setfacl -m u:ann:rw file\n"),
        ("page.html", "<html><body><p>An ACL is a list of who may read.</p></body></html>"),
    ],
)
def test_prose_and_code_that_speak_of_such_lists_are_read(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    assert load(tmp_path) == ({name: ()}, {})
