"""Turns records into the JSON of the API: communities, entities, documents, passages, and the graph around one."""

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from kraq_dspy._internal.display import shown_model
from kraq_dspy.apps.serve.atlas import Atlas, EntityBrief
from kraq_dspy.apps.serve.endpoints import BY_WORDS, KINDS, PageQuery, not_found
from kraq_dspy.asset.store.index import Index
from kraq_dspy.build.prepare.graph import IndexGraph
from kraq_dspy.build.prepare.preparations import required_commands
from kraq_dspy.errors import EvaluationError, UnknownRecordError
from kraq_dspy.eval.metrics.questions import choose_questions, coverage, coverage_curve, nearest_chunks
from kraq_dspy.programs.shared.spec import options_of
from kraq_dspy.records import Chunk, Claim, Community, Document, Entity, Question, Summary
from kraq_dspy.workspace.choices import DEFAULT_PROGRAM
from kraq_dspy.workspace.registry import PROGRAMS, RETRIEVERS

PAGE, MOST = 50, 200
NODES = 1000
"""A picture of more has no use."""

if TYPE_CHECKING:
    from kraq_dspy.apps.serve.served import ServedIndex

T = TypeVar("T")
Json = dict[str, Any]


def with_words(items: Iterable[T], q: str, text: Callable[[T], str]) -> list[T]:
    """Those whose `text`, in small letters, has every word of `q`."""
    words = q.casefold().split()
    return [each for each in items if all(word in text(each) for word in words)]


def page_of(items: Sequence[T], query: PageQuery, shown: Callable[[T], Json]) -> Json:
    """The part of a list that the query asks for, each item as `shown`, with how many there are in all."""
    some = items[query.offset : query.offset + query.limit]
    return {"total": len(items), "offset": query.offset, "items": list(map(shown, some))}


def question_json(question: Question) -> Json:
    return {
        "id": question.id,
        "text": question.text,
        "level": question.level,
        "community_id": question.community_id,
        "n_passages": len(question.chunk_ids),
        "n_documents": len(question.document_ids),
    }


def entity_brief(brief: EntityBrief) -> Json:
    return {
        "id": brief.id,
        "name": brief.name,
        "type": brief.type,
        "degree": brief.degree,
        "n_passages": brief.n_chunks,
    }


def passage_json(chunk: Chunk, atlas: Atlas) -> Json:
    """With where it names entities, in characters (Unicode code points)."""
    return {
        "id": chunk.id,
        "document_id": chunk.document_id,
        "title": chunk.title or atlas.titles.get(chunk.document_id, ""),
        "position": chunk.position,
        "text": chunk.text,
        "mentions": atlas.mentions(chunk),
    }


def passages_json(atlas: Atlas, chunk_ids: Sequence[str], offset: int, limit: int) -> Json:
    """Those that are still there: an index may change while it is read."""
    some = chunk_ids[offset : offset + limit]
    chunks = existing(atlas.index, some)
    return {"total": len(chunk_ids), "offset": offset, "items": [passage_json(chunk, atlas) for chunk in chunks]}


def existing(index: Index, chunk_ids: Sequence[str]) -> list[Chunk]:
    try:
        return index.get(Chunk, chunk_ids)
    except UnknownRecordError:  # changed since the ids were read
        present = set(index.ids(Chunk))
        return index.get(Chunk, [each for each in chunk_ids if each in present])


def community_json(atlas: Atlas, community_id: str, *, limit: int = 20) -> Json:
    """Everything about a community: what stands above and below it, its summary, entities and first passages."""
    community = record(atlas.index, "community", community_id)
    if community_id not in atlas.communities:
        raise not_found("community", community_id)
    summaries = _some(atlas.index, Summary, [community_id])
    return {
        **asdict(atlas.communities[community_id]),
        "path": list(map(asdict, atlas.path_to(community_id))),
        "children": list(map(asdict, atlas.children.get(community_id, []))),
        "summary": summary_json(summaries[0]) if summaries else None,
        "entities": [
            entity_brief(atlas.entities[each])
            for each in sorted(community.entity_ids, key=lambda each: -degree(atlas, each))
            if each in atlas.entities
        ][:MOST],
        "passages": passages_json(atlas, community.chunk_ids, 0, limit),
    }


def summary_json(summary: Summary) -> Json:
    return {
        "title": summary.title,
        "text": summary.text,
        "findings": list(map(asdict, summary.findings)),
    }


def entity_json(atlas: Atlas, entity_id: str, *, limit: int = 20) -> Json:
    entity = record(atlas.index, "entity", entity_id)
    communities = [atlas.communities[each] for each in atlas.communities_of.get(entity_id, ())]
    return {
        "id": entity.id,
        "name": entity.name,
        "type": entity.type,
        "description": entity.description,
        "names": list(entity.names),
        "degree": entity.degree,
        "n_passages": len(entity.chunk_ids),
        "claims": [claim.statement for claim in atlas.index.all(Claim, entity_id=entity_id)],
        "links": links_json(atlas, entity_id)[:MOST],
        "communities": list(map(asdict, communities)),
        "passages": passages_json(atlas, entity.chunk_ids, 0, limit),
    }


def links_json(atlas: Atlas, entity_id: str) -> list[Json]:
    """The strongest first. `to` is whether the link leads from this entity to the other."""
    shown = []
    for link in sorted(IndexGraph(atlas.index).links([entity_id]), key=lambda link: -link.weight):
        is_outgoing = link.source_id == entity_id
        other = link.target_id if is_outgoing else link.source_id
        if other in atlas.entities:
            shown.append(
                {
                    "to": is_outgoing,
                    "predicate": link.predicate,
                    "description": link.description,
                    "weight": link.weight,
                    "entity": entity_brief(atlas.entities[other]),
                }
            )
    return shown


def document_json(atlas: Atlas, document_id: str) -> Json:
    """The whole text, with its passages and mentions as spans of it, and the narrowest questions that lead to it."""
    document = record(atlas.index, "document", document_id)
    chunks = sorted(atlas.index.all(Chunk, document_id=document_id), key=lambda chunk: chunk.position)
    questions = [each for each in atlas.questions if document_id in each.document_ids]
    return {
        "id": document.id,
        "title": document.title,
        "metadata": dict(document.metadata),
        "text": document.text,
        "left_out": document.left_out,
        "passages": [
            {
                "id": each.id,
                "start": each.start,
                "end": each.end,
                "position": each.position,
                "mentions": shifted(atlas.mentions(each), each.start),
            }
            for each in chunks
        ],
        "questions": [question_json(each) for each in sorted(questions, key=lambda each: -each.level)[:PAGE]],
    }


def shifted(mentions: list[Json], by: int) -> list[Json]:
    """In characters of the document instead of the passage."""
    return [{**each, "start": each["start"] + by, "end": each["end"] + by} for each in mentions]


def community_graph(atlas: Atlas, community_id: str, *, limit: int = NODES) -> Json:
    """A community's entities with their links, and its best connected neighbours as far as there is room."""
    community = record(atlas.index, "community", community_id)
    inside = sorted(community.entity_ids, key=lambda each: -degree(atlas, each))[:limit]
    return graph_json(atlas, inside, limit=limit)


def entity_graph(atlas: Atlas, entity_id: str, *, limit: int = 150) -> Json:
    """An entity with its neighbours, and the links among them."""
    record(atlas.index, "entity", entity_id)
    return graph_json(atlas, [entity_id], limit=limit)


def graph_json(atlas: Atlas, inside: Sequence[str], *, limit: int) -> Json:
    """`inside` and what is next to it, at most `limit` nodes; every link among them, strongest first."""
    core, graph = set(inside), IndexGraph(atlas.index)
    links = {link.id: link for link in graph.links(inside)}
    around: dict[str, float] = {}
    for link in links.values():
        for end in {link.source_id, link.target_id} - core:
            around[end] = around.get(end, 0.0) + link.weight
    outside = sorted(around, key=lambda each: (-around[each], -degree(atlas, each), each))
    nodes = [each for each in [*inside, *outside[: limit - len(inside)]] if each in atlas.entities]
    if len(inside) == 1:  # the links among the neighbours of one entity show how they hang together
        links |= {link.id: link for link in graph.links(nodes[1:60])}
    shown = set(nodes)
    edges = [link for link in links.values() if {link.source_id, link.target_id} <= shown]
    edges.sort(key=lambda link: -link.weight)
    return {
        "nodes": [{**entity_brief(atlas.entities[each]), "inside": each in core} for each in nodes],
        "edges": [
            {"source": link.source_id, "target": link.target_id, "predicate": link.predicate, "weight": link.weight}
            for link in edges[: 4 * NODES]
        ],
        "n_left_out": max(0, len(outside) + len(inside) - len(nodes)),
    }


def degree(atlas: Atlas, entity_id: str) -> int:
    brief = atlas.entities.get(entity_id)
    return brief.degree if brief else 0


RECORDS: dict[str, Any] = {"community": Community, "entity": Entity, "document": Document}


def record(index: Index, what: str, record_id: str) -> Any:
    """Raises RequestError for an id that is not there."""
    try:
        return index.get(RECORDS[what], [record_id])[0]
    except UnknownRecordError:
        raise not_found(what, record_id) from None


def _some(index: Index, kind: Any, ids: Collection[str]) -> list[Any]:
    try:
        return index.get(kind, list(ids))
    except UnknownRecordError:
        return []


def status_json(served: "ServedIndex") -> Json:
    """What the index is, what it holds, and what can be asked; no setting, address or folder."""
    manifest, atlas = served.index.manifest, served.atlas
    models = {role: shown_model(name) for role, name in manifest.models.items()}
    catalogue = served.catalogue
    return {
        "index": served.name,
        "version": version("kraq-dspy"),
        "complete": manifest.complete,
        "updated_at": manifest.updated_at,
        "encoder": shown_model(manifest.encoder_name),
        "models": sorted(set(models.values())),
        "counts": {name: count for name, count in served.index.counts().items() if name != "failures"},
        "levels": atlas.levels,
        "edit": served.edit,
        "catalogue": catalogue.counts() if catalogue else None,
        "default_program": DEFAULT_PROGRAM,
        "default_retriever": served.space.default_retriever,
        "programs": [
            {
                "name": spec.name,
                "help": spec.help,
                "takes_retriever": spec.takes != "nothing",
                "prepared_by": required_commands(spec.prepared),
                "options": {
                    option.name: {"default": _plain_default(option.default), "help": option.help}
                    for option in options_of(spec.options).values()
                },
            }
            for spec in iter(PROGRAMS)
        ],
        "retrievers": [{"name": spec.name, "help": spec.help} for spec in iter(RETRIEVERS)],
    }


def _plain_default(value: Any) -> Any:
    return value if isinstance(value, str | int | float | bool) else None


def search(
    served: "ServedIndex", text: str, *, limit: int = 8, kinds: tuple[str, ...] = KINDS, retriever: str = BY_WORDS
) -> dict[str, Any]:
    """What each kind has for the text, best first; nothing for a text without words.

    `retriever` finds the passages. With another one than by words, questions are found by meaning as well.
    """
    answer: dict[str, Any] = {"query": text, **{kind: [] for kind in kinds}}
    words = re.findall(r"\w+", text.casefold())
    if not words:
        return answer
    atlas = served.atlas
    if "questions" in kinds:
        matches = _by_words(words, [(question.text.casefold(), question) for question in atlas.questions], limit)
        if retriever != BY_WORDS and atlas.questions:
            near = [hit.question for hit in served.space.questions()(text, limit)]
            matches = list({question.id: question for question in [*matches[: limit // 2], *near]}.values())[:limit]
        answer["questions"] = [question_json(question) for question in matches]
    if "entities" in kinds:
        names = [(entity.folded, entity) for entity in atlas.entities.values()]
        answer["entities"] = [entity_brief(entity) for entity in _by_words(words, names, limit)]
    if "passages" in kinds:
        hits = served.retriever(retriever)(text, limit)
        if not hits and retriever == BY_WORDS and len(words) > 1:  # the last word is still being typed
            hits = served.retriever(retriever)(" ".join(words[:-1]), limit)
        answer["passages"] = [
            {**passage_json(hit.chunk, atlas), "score": hit.score, "why": hit.why, "query": hit.query} for hit in hits
        ]
    return answer


def _by_words(words: list[str], texts: list[tuple[str, Any]], limit: int) -> list[Any]:
    """Those with all the words, the last one as a beginning; first those that begin so, then in their order."""
    *whole, last = words
    pattern = re.compile("".join(rf"(?=.*\b{re.escape(word)}\b)" for word in whole) + rf".*\b{re.escape(last)}", re.S)
    ranked: list[tuple[bool, Any]] = []
    for folded, thing in texts:
        if last in folded and pattern.match(folded):
            ranked.append((not folded.startswith(words[0]), thing))
            if len(ranked) >= 50 * limit:
                break
    ranked.sort(key=lambda pair: pair[0])
    return [thing for _, thing in ranked[:limit]]


NEAREST = 5
POINTS, CHOSEN, DOCUMENTS = 60, 20, 3000


def coverage_picture(served: "ServedIndex") -> dict[str, Any]:
    """A passage is covered by a question when it is among the five nearest to it; duplicates do not count.

    `curves` are (questions, share) of the first questions, broadest first and chosen greedily; `chosen` are the first
    of the latter. `documents` have for each passage, in reading order, how many questions cover it. Raises
    EvaluationError without questions or passages.
    """
    index, questions = served.index, served.atlas.questions
    chunk_ids = list(order := index.reading_order())
    if not questions or not chunk_ids:
        raise EvaluationError("There are no questions or no passages.")
    vectors = index.question_vectors.vectors([question.id for question in questions])
    nearest = nearest_chunks(vectors, index.chunk_vectors.vectors(chunk_ids), NEAREST)
    counts = np.bincount(nearest.ravel(), minlength=len(chunk_ids))
    levels = np.array([question.level for question in questions])
    best = choose_questions(nearest, len(chunk_ids), min(len(questions), 1000))
    by_document: defaultdict[str, list[int]] = defaultdict(list)
    for chunk_id, count in zip(chunk_ids, counts.tolist(), strict=True):
        by_document[order[chunk_id]].append(count)
    return {
        "k": nearest.shape[1],
        "n_questions": len(questions),
        "n_passages": len(chunk_ids),
        "n_documents": len(by_document),
        "share": coverage(nearest, len(chunk_ids)),
        "levels": [
            {"level": int(level), "share": coverage(nearest[levels == level], len(chunk_ids))}
            for level in np.unique(levels)
        ],
        "curves": {
            "broadest first": _sampled(coverage_curve(nearest, len(chunk_ids)).tolist()),
            "chosen greedily": _sampled(list(best.coverage)),
        },
        "chosen": [question_json(questions[place]) for place in best.positions[:CHOSEN]],
        "documents": [
            {"id": each, "title": served.atlas.titles.get(each, each), "counts": of}
            for each, of in list(by_document.items())[:DOCUMENTS]
        ],
    }


def _sampled(curve: list[float]) -> list[tuple[int, float]]:
    places = sorted({int(place) for place in np.linspace(1, len(curve), min(POINTS, len(curve)))})
    return [(place, curve[place - 1]) for place in places]
