"""Writes an index as a page of one file: the same page, with the data in it, for whoever has no server."""

import base64
import json
from importlib.resources import files
from pathlib import Path
from secrets import token_urlsafe
from typing import Any

from kraq_dspy._internal.files import replaced
from kraq_dspy.apps.serve.listing import coverage_picture, status_json
from kraq_dspy.apps.serve.served import ServedIndex
from kraq_dspy.errors import ConfigError, EvaluationError, counted
from kraq_dspy.records import Chunk, Claim, Community, Document, Entity, Relationship, Summary

MOST = 5000
"""Communities: a browser reads the page as a whole before it shows anything."""


def write_page(served: ServedIndex, path: Path) -> int:
    """Returns its size in bytes. Raises ConfigError for an index that is too large for one file."""
    count = served.index.count(Community)
    if count > MOST:
        raise ConfigError(
            f"The index has {counted(count, 'community')}; a page of one file holds {MOST:,}. Serve it: "
            "kraq explore DIR"
        )
    text = page_of(data_of(served))
    with replaced(path) as draft:
        draft.write_text(text, "utf-8", errors="backslashreplace")
    return path.stat().st_size


def page_of(data: dict[str, Any]) -> str:
    """The page with its styles, its modules and the data.

    Modules stay as they are, each behind a `data:` address that an import map names. They and nothing else run, since
    a script needs the page's nonce, which nobody knew who wrote the texts of the index.
    """
    nonce = token_urlsafe()
    modules = {f"kraq/{name}": _address("text/javascript", _module(name)) for name in _modules()}
    policy = (
        f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )
    page = _file("index.html")
    for tag, content in (
        ('href="page/icon.svg"', f'href="{_address("image/svg+xml", _file("icon.svg"))}"'),
        (
            '<link rel="stylesheet" href="page/style.css">',
            f'<style nonce="{nonce}">{_file("style.css")}</style>',
        ),
        ('<script src="page/theme.js"></script>', f'<script nonce="{nonce}">{_file("theme.js")}</script>'),
        ('<script type="module" src="page/main.js"></script>', ""),
        ("<head>\n", f'<head>\n<meta http-equiv="Content-Security-Policy" content="{policy}">\n'),
        (
            "</body>",
            f'<script type="application/json" id="data">{_within_script(data)}</script>\n'
            f'<script type="importmap" nonce="{nonce}">{json.dumps({"imports": modules})}</script>\n'
            f'<script type="module" nonce="{nonce}">import "kraq/main.js";</script>\n</body>',
        ),
    ):
        if page.count(tag) != 1:
            raise AssertionError(f"index.html has {tag!r} {page.count(tag)} times; expected it once.")
        page = page.replace(tag, content)
    return page


def _modules() -> list[str]:
    names = (file.name for file in files("kraq_dspy.apps.serve").joinpath("page").iterdir())
    return sorted(name for name in names if name.endswith(".js") and name not in ("theme.js", "api.js"))


def _module(name: str) -> str:
    """Its imports by the names of the import map: an address relative to `data:` leads nowhere."""
    return _file(name).replace('from "./', 'from "kraq/')


def _address(kind: str, content: str) -> str:
    return f"data:{kind};base64,{base64.b64encode(content.encode()).decode()}"


def _file(name: str) -> str:
    return files("kraq_dspy.apps.serve").joinpath("page", name).read_text("utf-8")


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
        "status": {**status_json(served), "indexes": [served.name], "can_ask": False, "catalogue": None, "edit": False},
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
        "starters": [each.to_dict() for each in served.space.starters()],
        "coverage": coverage,
    }  # fmt: skip


def _ordered(records: Any, ids: list[str]) -> list[Any]:
    places = {each: place for place, each in enumerate(ids)}
    return sorted((each for each in records if each.id in places), key=lambda each: places[each.id])


def _summary(summary: Summary | None) -> list[Any] | None:
    if summary is None:
        return None
    return [summary.title, summary.text, [[each.summary, each.explanation] for each in summary.findings]]
