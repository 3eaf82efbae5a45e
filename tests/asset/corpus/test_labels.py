"""Labels are read where they are declared; nearly so called ones are refused, and other mentions are told of."""

import gzip
import io
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.asset.corpus.labels_file import LabelsFile
from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.asset.label_names import MENTIONED, label_column, possible_names
from kraq_dspy.asset.scope import NOBODY, labels_of
from kraq_dspy.errors import ConfigError, CorpusError, KraqError
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


NEAR = [
    "ACL", "Acl", " acl ", "_acl", "acl:", "\uff41\uff43\uff4c", "'acl'", "\u0430\u0441l", "a\u00adcl", "acls", "ACLs",
    "acl_groups", "aclGroups", "read_acl", "docAcl", "acl.users", "acl2", "acl_injury", "access", "Access",
]  # fmt: skip


@pytest.mark.parametrize("name", NEAR)
def test_a_name_that_is_nearly_that_of_labels_stops(name: str) -> None:
    with pytest.raises(CorpusError, match="--acl-column"):
        label_column(["text", name])
    assert label_column(["text", name], name) == name


@pytest.mark.parametrize("name", ["oracle", "tacl", "miracle", "title", "accessories", "MIRACL"])
def test_other_names_with_these_letters_do_not_stop(name: str) -> None:
    assert label_column(["text", name, "acl"]) == "acl"
    assert label_column(["text", name]) == ""


def test_names_that_often_mean_labels_are_told() -> None:
    names = ["groups", "allowedUsers", "Permissions", "visible_to", "access_level", "year", "author", "tags"]
    assert possible_names(names) == names[:5]


FRONT_MATTER = {
    "a list with a comma in a label": ('---\nacl: ["CN=Board,OU=Oslo"]\n---\n', ("CN=Board,OU=Oslo",)),
    "a block list": ("---\nacl:\n  - board\n  - legal\n---\n", ("board", "legal")),
    "a colon in the title": ("---\ntitle: Safe: the code\nacl: board\n---\n", ("board",)),
    "in quotes": ('---\n"acl": "board"\n---\n', ("board",)),
    "a comment": ("---\nacl: board # and nobody else\n---\n", ("board",)),
    "the ends of Windows' lines": ("---\r\nacl: board\r\n---\r\n", ("board",)),
    "the ends of an old Mac's lines": ("---\racl: board\r---\r", ("board",)),
    "a byte-order mark": ("\ufeff---\nacl: board\n---\n", ("board",)),
    "an empty line before": ("\n\n---\nacl: board\n---\n", ("board",)),
    "dots at the end": ("---\nacl: board\n...\n", ("board",)),
    "TOML": ('+++\ntitle = "A"\nacl = ["board", "legal"]\n+++\n', ("board", "legal")),
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
    "capitals": "---\nACL: board\n---\n",
    "capitals in TOML": '+++\nACL = "board"\n+++\n',
    "almost the name": "---\nacls: [board]\n---\n",
    "almost the name in TOML": '+++\nacl_groups = ["board"]\n+++\n',
    "letters of another script": "---\n\u0430\u0441l: board\n---\n",
    "below another name": "---\naccess:\n  acl: [board]\n---\n",
    "a tab": "---\nacl:\n\t- board\n---\n",
    "an object": "---\nacl: {a: b}\n---\n",
    "a list in a list": "---\nacl: [[board]]\n---\n",
    "twice": "---\nacl: board\nacl: staff\n---\n",
    "twice in two cases": "---\nacl: board\nACL: staff\n---\n",
    "a list that has no end": "---\nacl: [board\n---\n",
    "an unknown alias": "---\nacl: *board\n---\n",
    "an equals sign": "---\nacl = board\n---\n",
    "several lines": "---\nacl: |\n  board\n  legal\n---\n",
    "a directory's name as words": "---\nacl: CN=Board,OU=Oslo\n---\n",
    "a table of TOML": '+++\n[acl]\ngroups = ["board"]\n+++\n',
    "broken TOML": "+++\nacl = board\n+++\n",
    "a zero-width space in the label": "---\nacl: bo\u200bard\n---\n",
    "a truth": "---\nacl: true\n---\n",
    "a wildcard": '---\nacl: "*"\n---\n',
}


@pytest.mark.parametrize("what", REFUSED_HEADS)
def test_front_matter_whose_labels_cannot_be_read_refuses_the_file(what: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(REFUSED_HEADS[what] + SAFE, "utf-8")
    labels, reasons = load(tmp_path)
    assert labels == {}
    assert list(reasons) == ["a.md"]
    assert "who may read" in reasons["a.md"]


@pytest.mark.parametrize("what", REFUSED_HEADS)
def test_where_labels_have_another_name_nobody_reads_without_it(what: str, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(REFUSED_HEADS[what] + SAFE, "utf-8")
    labels, _ = load(tmp_path, acl_column="groups")
    assert set(labels.values()) <= {(NOBODY,)}


TABLES = {
    "a.csv": ('text,acl\n"{}",board\n', ("board",)),
    "spaces.csv": ('text, acl \n"{}",board\n', ("board",)),
    "pandas.csv": ("text,acl\n\"{}\",\"['board', 'legal']\"\n", ("board", "legal")),
    "json.csv": ('text,acl\n"{}","[""CN=Board,OU=Oslo""]"\n', ("CN=Board,OU=Oslo",)),
    "semicolons.csv": ('text;acl\n"{}";board\n', ("board",)),
    "missing.csv": ('text,acl\n"{}"\n', (NOBODY,)),
    "tabs.tsv": ("text\tacl\n{}\tboard\n", ("board",)),
    "a.jsonl": ('{{"text": "{}", "acl": "board, legal"}}\n', ("board", "legal")),
    "null.jsonl": ('{{"text": "{}", "acl": null}}\n', (NOBODY,)),
    "number.jsonl": ('{{"text": "{}", "acl": 7}}\n', ("7",)),
    "list.json": ('[{{"text": "{}", "acl": ["board"]}}]', ("board",)),
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
    "capitals.csv": 'text,ACL\n"{}",board\n',
    "access.csv": 'text,access\n"{}",board\n',
    "near.csv": 'text,acl_groups\n"{}",board\n',
    "truth.jsonl": '{{"text": "{}", "acl": true}}\n',
    "object.jsonl": '{{"text": "{}", "acl": {{"groups": ["board"]}}}}\n',
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
            pa.table({"text": [f"{SAFE} {name}", f"{OPEN} {name}"], "acl": column}), tmp_path / f"{name}.parquet"
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
    "nested.jsonl": '{"text": "SAFE", "metadata": {"acl": ["board"]}}\n',
    "in_text.csv": "text,metadata\n\"SAFE\",\"{'acl': ['board']}\"\n",
    "no_end.md": "---\nacl: board\n\nSAFE",
    "nested.md": "---\nrules:\n  - acl: board\n---\nSAFE",
    "multimarkdown.md": "Title: A\nACL: board\n\nSAFE",
    "below.md": "# Safe\n\n---\nacl: [board]\n---\nSAFE",
    "long_rules.md": "----\nacl: [board]\n----\nSAFE",
    "wide_colon.md": "---\nacl： board\n---\nSAFE",
}


def _with_safe(content: str | bytes) -> bytes:
    return content if isinstance(content, bytes) else content.replace("SAFE", SAFE).encode()


def mentioned(folder: Path, **options: Any) -> dict[str, bool]:
    """By source: whether its documents tell that they mention labels which are not read."""
    items = load_documents(folder, **options)
    return {each.source: MENTIONED in each.left_out for each in items if isinstance(each, Document)}


@pytest.mark.parametrize("name", ELSEWHERE)
def test_a_mention_of_labels_where_none_are_read_is_told(name: str, tmp_path: Path) -> None:
    (tmp_path / "zz-open.txt").write_text(OPEN, "utf-8")
    (tmp_path / name).write_bytes(_with_safe(ELSEWHERE[name]))
    found = mentioned(tmp_path)
    assert found.pop("zz-open.txt") is False
    assert found in ({name: True}, {})  # {}: the file is refused


@pytest.mark.parametrize("name", ELSEWHERE)
def test_required_labels_refuse_each_document_without_any(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(_with_safe(ELSEWHERE[name]))
    (tmp_path / "zz.md").write_text(f"---\nacl: staff\n---\n{OPEN}", "utf-8")
    items = list(load_documents(tmp_path, require_labels=True))
    assert [each.id for each in items if isinstance(each, Document)] == ["zz.md"]
    assert [each.item_id.partition("#")[0] for each in items if isinstance(each, Failure)] == [name]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prose.md", "Access control lists are lists of who may read. An ACL is a list.\n"),
        ("later.txt", "Chapter one.\n\nHe said that the ACL met in Oslo.\n"),
        ("miracle.md", "- miracle: it works\n- oracle = db\n"),
        ("page.html", "<html><body><p>An ACL is a list of who may read.</p></body></html>"),
        ("rights.sh", "setfacl -m u:ann:rw file\n"),
    ],
)
def test_prose_that_speaks_of_such_lists_is_read_without_a_word(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    assert mentioned(tmp_path) == {name: False}


def test_a_file_of_labels_names_files_folders_and_ids(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    (folder / "board" / "minutes").mkdir(parents=True)
    (folder / "board" / "plan.md").write_text(f"{SAFE} One.", "utf-8")
    (folder / "board" / "minutes" / "may.txt").write_text(f"{SAFE} Two.", "utf-8")
    (folder / "rows.csv").write_text(f"id,text\nr1,{SAFE} Three.\nr2,{SAFE} Four.\n", "utf-8")
    (folder / "own.md").write_text(f"---\nacl: sales\n---\n{SAFE} Five.", "utf-8")
    (folder / "rest.txt").write_text(OPEN, "utf-8")
    table = folder / "labels.csv"
    table.write_text('path,labels\nboard/,board\nboard/plan.md,"board, legal"\nr1, staff\n', "utf-8")
    items = list(load_documents(folder, labels=LabelsFile(table)))
    assert all(isinstance(item, Document) for item in items)
    assert {each.id: each.labels for each in items if isinstance(each, Document)} == {
        "board/plan.md": ("board", "legal"),
        "board/minutes/may.txt": ("board",),
        "r1": ("staff",),
        "r2": (NOBODY,),
        "own.md": ("sales",),
        "rest.txt": (NOBODY,),
    }


@pytest.mark.parametrize(
    "table",
    [
        "", "board\n", "path\na.md\n", "path,acl\na.md,board\n", "path,labels\n,board\n",
        "path,labels\na.md,board;legal\n", "path,labels\na.md,board,legal\n", 'path,labels\na.md,"board\n',
        "path,labels\na.md,board\na.md,staff\n",
    ],
)  # fmt: skip
def test_a_file_of_labels_that_is_not_understood_is_refused(table: str, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text(table, "utf-8")
    with pytest.raises(ConfigError, match="file of labels"):
        LabelsFile(tmp_path / "labels.csv")
    with pytest.raises(ConfigError, match="cannot be read"):
        LabelsFile(tmp_path / "absent.csv")
