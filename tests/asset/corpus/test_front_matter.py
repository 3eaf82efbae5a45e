"""Front matter of Markdown files."""

from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.asset.corpus.formats.front_matter import split_front_matter
from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.records import Document

PAGE = """---
title: "Who asks"
date: 2026-11-21
draft: true
weight: 7
zip: 00501
tags: [questions, graphs]
authors:
  - Ada
  - Charles
summary: ""
nested:
  deeper: 1
# a comment
---

# A heading

Ada asks.
"""


def test_fields_become_metadata_and_the_text_begins_after_them(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(PAGE, "utf-8")
    [document] = load_documents(tmp_path)
    assert isinstance(document, Document)
    assert document.title == "Who asks"
    assert document.text == "# A heading\n\nAda asks.\n"
    assert document.metadata == {
        "date": "2026-11-21",
        "draft": True,
        "weight": 7,
        "zip": "00501",
        "tags": "questions, graphs",
        "authors": "Ada, Charles",
        "summary": "",
    }


@pytest.mark.parametrize(
    "text",
    [
        "No front matter.\n",
        "---\n\nA rule, then text.\n\n---\n",
        "---\ntitle: never ends\n\nText.\n",
        "---\nA line that is no field\ntitle: x\n---\nText.\n",
        "",
    ],
)
def test_a_text_that_only_begins_with_dashes_stays_whole(text: str) -> None:
    empty: dict[str, Any] = {}
    assert split_front_matter(text) == (empty, text)


def test_dots_end_it_too() -> None:
    assert split_front_matter("---\nlang: en\n...\nText.") == ({"lang": "en"}, "Text.")
