"""Writes the graph as GraphML, node by node: Gephi, yEd, Cytoscape and networkx read it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape, quoteattr

from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.graph.elements import statements_of
from kraq_dspy.records import Claim, Community, Entity, Relationship

_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_SEPARATOR = " | "  # between the values of a list

_NODE = {"name": "string", "type": "string", "description": "string", "names": "string", "degree": "long"}
_EDGE = {"predicate": "string", "description": "string", "weight": "double"}


def write_graphml(
    path: Path,
    entities: Iterable[Entity],
    relationships: Iterable[Relationship],
    communities: Iterable[Community] = (),
    claims: Iterable[Claim] = (),
) -> Path:
    """The file `path`, written as the records come; it appears, or is replaced, when all are.

    Nodes are entities, edges relationships, both with their ids. Lists are joined by " | ". A node has the id of its
    deepest community as `community`, and the path to it, broadest first, as `communities`; `claims` are the statements
    about it, those of an edge what is said of its two ends. Characters that XML does not have are dropped.
    """
    paths = _community_paths(communities)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced(path) as draft, draft.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(_lines(entities, relationships, paths, statements_of(claims)))
    return path


def _lines(
    entities: Iterable[Entity],
    relationships: Iterable[Relationship],
    paths: dict[str, list[str]],
    statements: Mapping[str | frozenset[str], Sequence[str]],
) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n'
    node_keys = {**_NODE, "chunks": "string", "community": "string", "communities": "string", "claims": "string"}
    for target, keys in (("node", node_keys), ("edge", {**_EDGE, "chunks": "string", "claims": "string"})):
        for name, kind in keys.items():
            yield f'<key id="{target}_{name}" for="{target}" attr.name="{name}" attr.type="{kind}"/>\n'
    yield '<graph edgedefault="directed">\n'
    for entity in entities:
        chain = paths.get(entity.id, [])
        yield f"<node id={quoteattr(_clean(entity.id))}>"
        yield from (_data(f"node_{name}", _text(getattr(entity, name))) for name in _NODE)
        yield _data("node_chunks", _text(entity.chunk_ids))
        yield _data("node_community", chain[-1] if chain else "")
        yield _data("node_communities", _text(chain))
        yield _data("node_claims", _text(list(statements.get(entity.id, ()))))
        yield "</node>\n"
    for link in relationships:
        ends = f"source={quoteattr(_clean(link.source_id))} target={quoteattr(_clean(link.target_id))}"
        yield f"<edge id={quoteattr(_clean(link.id))} {ends}>"
        yield from (_data(f"edge_{name}", _text(getattr(link, name))) for name in _EDGE)
        yield _data("edge_chunks", _text(link.chunk_ids))
        yield _data("edge_claims", _text(list(statements.get(frozenset((link.source_id, link.target_id)), ()))))
        yield "</edge>\n"
    yield "</graph>\n</graphml>\n"


def _community_paths(communities: Iterable[Community]) -> dict[str, list[str]]:
    """By entity id, the ids of its communities, broadest first."""
    paths: dict[str, list[str]] = {}
    for community in sorted(communities, key=lambda community: community.level):
        for entity_id in community.entity_ids:
            paths.setdefault(entity_id, []).append(community.id)
    return paths


def _data(key: str, text: str) -> str:
    return f'<data key="{key}">{escape(_clean(text))}</data>' if text else ""


def _text(value: object) -> str:
    return _SEPARATOR.join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _clean(text: str) -> str:
    return _NOT_XML.sub("", text)
