"""Writes an index as a page of one file: the same page, with the data in it, for whoever has no server."""

import base64
import hashlib
import json
import re
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.files import replaced
from kraq_dspy.records import Chunk, Claim, Community, Document, Entity, Relationship, Summary
from kraq_dspy.serve.api import status_of
from kraq_dspy.serve.coverage import coverage_picture
from kraq_dspy.serve.served import ServedIndex

MOST = 5000
"""Communities: a browser reads the page as a whole before it shows anything."""

ENTRY = "main.js"


def write_page(served: ServedIndex, path: Path) -> int:
    """Returns its size in bytes. Raises ConfigError for an index that is too large for one file."""
    count = served.index.count(Community)
    if count > MOST:
        raise ConfigError(
            f"The index has {count:,} communities; a page of one file holds {MOST:,}. Serve it: kraq explore DIR"
        )
    text = page_of(data_of(served))
    with replaced(path) as draft:
        draft.write_text(text, "utf-8", errors="backslashreplace")
    return path.stat().st_size


def page_of(data: dict[str, Any]) -> str:
    """The page with its styles, its modules as one, and the data. It may run its own scripts and load nothing."""
    style, theme, script = _file("style.css"), _file("theme.js"), bundle()
    icon = f"data:image/svg+xml;base64,{base64.b64encode(_file('icon.svg').encode()).decode()}"
    policy = (
        f"default-src 'none'; script-src {_hash(theme)} {_hash(script)}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    page = _file("index.html")
    for tag, content in (
        ('<link rel="icon" href="page/icon.svg">', f'<link rel="icon" href="{icon}">'),
        ('<link rel="stylesheet" href="page/style.css">', f"<style>{style}</style>"),
        ('<script src="page/theme.js"></script>', f"<script>{theme}</script>"),
        ('<script type="module" src="page/main.js"></script>', ""),
        ("<head>\n", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{policy}">\n'),
        (
            "</body>",
            f'<script type="application/json" id="data">{_within_script(data)}</script>\n'
            f'<script type="module">{script}</script>\n</body>',
        ),
    ):
        if page.count(tag) != 1:
            raise AssertionError(f"index.html has {tag!r} {page.count(tag)} times; expected it once.")
        page = page.replace(tag, content)
    return page


@cache
def bundle() -> str:
    """All modules as one script: each a function that returns what it exports, after those that it imports."""
    ordered: list[str] = []

    def visit(name: str) -> None:
        if name not in ordered:
            for imported in re.findall(r'^import .*? from "\./([\w-]+\.js)";$', _file(name), re.MULTILINE):
                visit(imported)
            ordered.append(name)

    visit(ENTRY)
    return "\n".join(_as_function(name, _file(name)) for name in ordered)


def _as_function(name: str, module: str) -> str:
    exported = re.findall(r"^export (?:async )?(?:function|class|const|let) (\w+)", module, re.MULTILINE)
    body = re.sub(r"^export ", "", module, flags=re.MULTILINE)
    body = re.sub(
        r'^import (\{.*?\}) from "\./([\w-]+\.js)";$',
        lambda match: f"const {match[1]} = {_variable(match[2])};",
        body,
        flags=re.MULTILINE,
    )
    return f"const {_variable(name)} = (() => {{\n{body}\nreturn {{ {', '.join(exported)} }};\n}})();"


def _variable(name: str) -> str:
    return f"module_{re.sub(r'[^a-z]', '_', name.removesuffix('.js'))}"


def _file(name: str) -> str:
    return files("kraq_dspy.serve").joinpath("page", name).read_text("utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


def _within_script(data: dict[str, Any]) -> str:
    """JSON in which nothing can end the element that it stands in."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def data_of(served: ServedIndex) -> dict[str, Any]:
    """Everything the page shows, each thing once; records name each other by their places."""
    index, atlas = served.index, served.atlas
    documents = list(index.all(Document))
    chunks = sorted(index.all(Chunk), key=lambda chunk: (chunk.document_id, chunk.position))
    entities = _ordered(index.all(Entity), list(atlas.entities))
    communities = _ordered(index.all(Community), list(atlas.communities))
    summaries = {each.community_id: each for each in index.all(Summary)}
    document_at, chunk_at, entity_at, community_at = (
        {each.id: place for place, each in enumerate(records)} for records in (documents, chunks, entities, communities)
    )
    claims: dict[str, list[str]] = {}
    for claim in index.all(Claim):
        claims.setdefault(claim.entity_id, []).append(claim.statement)
    try:
        coverage = coverage_picture(served)
    except EvaluationError:
        coverage = None
    return {
        "status": {**status_of(served), "indexes": [served.name], "can_ask": False, "catalogue": None, "edit": False},
        "documents": [[each.id, each.title, each.text, dict(each.metadata)] for each in documents],
        "chunks": [
            [
                each.id, document_at[each.document_id], each.start, each.end, each.position,
                [[one["start"], one["end"], entity_at[one["entity_id"]]] for one in atlas.mentions(each)],
            ]
            for each in chunks
        ],
        "entities": [
            [
                each.id, each.name, each.type, each.degree, each.description, list(each.names),
                claims.get(each.id, []), [chunk_at[one] for one in each.chunk_ids if one in chunk_at],
            ]
            for each in entities
        ],
        "links": [
            [entity_at[each.source_id], entity_at[each.target_id], each.predicate, each.weight, each.description]
            for each in sorted(index.all(Relationship), key=lambda each: -each.weight)
            if each.source_id in entity_at and each.target_id in entity_at
        ],
        "communities": [
            [
                each.id, each.level, -1 if each.parent_id is None else community_at.get(each.parent_id, -1),
                [community_at[one.id] for one in atlas.children.get(each.id, [])],
                [entity_at[one] for one in each.entity_ids if one in entity_at],
                [chunk_at[one] for one in each.chunk_ids if one in chunk_at],
                atlas.communities[each.id].question,
                _summary(summaries.get(each.id)),
            ]
            for each in communities
        ],
        "questions": [
            [
                each.id, each.text, each.level, community_at.get(each.community_id or "", -1), len(each.chunk_ids),
                [document_at[one] for one in each.document_ids if one in document_at],
            ]
            for each in atlas.questions
        ],
        "coverage": coverage,
    }  # fmt: skip


def _ordered(records: Any, ids: list[str]) -> list[Any]:
    places = {each: place for place, each in enumerate(ids)}
    return sorted((each for each in records if each.id in places), key=lambda each: places[each.id])


def _summary(summary: Summary | None) -> list[Any] | None:
    if summary is None:
        return None
    return [summary.title, summary.text, [[each.summary, each.explanation] for each in summary.findings]]
