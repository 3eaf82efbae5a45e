"""Checks whether an index is whole: every id leads somewhere, nothing is stale, nothing is missing; and mends it."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.graph.communities import communities_at
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.instructed import INSTRUCTED, any_instructed
from kraq_dspy.asset.store.manifest import MANIFEST, read_fields
from kraq_dspy.asset.store.own_files import holder
from kraq_dspy.asset.store.states import LOCK, has_draft
from kraq_dspy.asset.store.tables import TABLES
from kraq_dspy.errors import IndexStateError
from kraq_dspy.indexing.faq.sources import count_answers, flag_stale, opened_faq, overdue
from kraq_dspy.indexing.faq.withdrawing import orphaned_answers
from kraq_dspy.indexing.index.change import resume_index
from kraq_dspy.indexing.index.exchange import GRAPHRAG
from kraq_dspy.indexing.index.finishing import FINISHED, FOUND_ANEW
from kraq_dspy.indexing.index.forgetting import erase_traces, traces
from kraq_dspy.language.analysis import READ
from kraq_dspy.records import Chunk, Claim, Community, Document, Entity, Extraction, Question, Relationship, Summary

_SHOWN = 5
_UNREADABLE = "The database is damaged"


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it should be. `ids` are some of the records concerned, `count` is how many there are.

    `repair` says what mends it: "resume" (the build goes on and asks for what is missing), "flag" (answers are marked
    as stale), "precompute", "answers" (somebody takes them out of the FAQ cache), or "none".
    """

    what: str
    count: int
    ids: tuple[str, ...]
    repair: str = "resume"


@dataclass(frozen=True, slots=True)
class CheckReport:
    """`answers` are the FAQ cache's by status; None if there is no FAQ cache."""

    path: Path
    checked: dict[str, int]
    problems: tuple[Problem, ...]
    answers: dict[str, int] | None = None

    @property
    def whole(self) -> bool:
        return not self.problems


def check_index(path: str | Path) -> CheckReport:
    """Verify the index at `path`; nothing is changed. Every file is read in full, and every record compared.

    While another process writes, it is the last complete state that is checked. Raises IndexStateError for a folder
    that is no index, and where its manifest or its database cannot be opened.

    >>> check_index("ada.kraq").whole
    True
    """
    with Index.open(Path(path), damaged=True) as index:
        problems = [*_database(index), *_files(index)]
        if not any(problem.what.startswith(_UNREADABLE) for problem in problems):
            problems += [*_records(index), *_vectors(index), *_precomputed(index), *_summarised(index)]
            problems += _traces(index)

        if not index.manifest.complete:
            problems.insert(0, Problem("The build is not finished", 1, ()))
        elif has_draft(index.path) and holder(index.path / LOCK) is None:
            problems.insert(
                0, Problem("A change was begun and is not finished; until it is, readers do not see it", 1, ())
            )

        answers = None
        try:
            problems += _faq(index)
            answers = count_answers(index.path)
        except IndexStateError as error:
            problems.append(Problem(f"The FAQ cache cannot be read: {error}", 1, (), repair="none"))
        counts = {table.name: index.count(kind) for kind, table in TABLES.items()}
        return CheckReport(index.path, counts, tuple(problems), answers)


def repair_index(path: str | Path, **options: Any) -> CheckReport:
    """Mend what can be mended, and check again. `options` are those of `resume_index`.

    What the records can be made from again (graph, communities, vectors) is made again; models are asked for what no
    stored answer is left of. Communities that were found in the whole graph are found so again, and are what they were.
    Where changes were followed since, what a lost community held joins its neighbours. Raises IndexStateError for a
    database that cannot be read: that can only be restored or rebuilt.
    """
    problems = {problem.repair: problem for problem in check_index(path).problems}
    if "none" in problems:
        what = problems["none"].what
        raise IndexStateError(f"{what}. Restore {str(path)!r} from a copy, or index the corpus again.")

    if "flag" in problems:
        with Index.open(Path(path)) as index:
            flag_stale(index)

    if "resume" in problems:
        with Index.open(Path(path), write=True, damaged=True) as index:
            was_found_anew = bool(index.results.settled(FOUND_ANEW))
            index.update_manifest(complete=False)  # until all is made again, readers see what there was
            _drop_damaged(index)
            with suppress(IndexStateError, ValueError):  # of a file that is damaged, and is made again or named
                erase_traces(index)
            documents = set(index.ids(Document))  # what is without its document or chunk goes: the build would keep it
            index.delete(Chunk, {chunk.id for chunk in index.all(Chunk) if chunk.document_id not in documents})
            chunk_ids = index.ids(Chunk)
            index.delete(Extraction, set(index.ids(Extraction)).difference(chunk_ids))
            for stage in (READ, "extract"):
                index.results.prune(stage, chunk_ids)
            index.results.unsettle(FINISHED)
        resume_index(path, recluster=was_found_anew, **options)
    return check_index(path)


def _database(index: Index) -> Iterator[Problem]:
    faults = index.damage()
    if faults:
        yield Problem(f"{_UNREADABLE}: {faults[0]}", len(faults), (), repair="none")
        return
    for kind, table in TABLES.items():
        damaged = index.damaged_records(kind)
        if damaged:
            what = f"{_UNREADABLE} in part: {table.name} that are not what was written"
            is_lost = kind is Document and not Path(index.manifest.origin.get("path", "-")).exists()
            yield from _problem(what, damaged, "none" if is_lost else "resume")


def _files(index: Index) -> Iterator[Problem]:
    try:
        read_fields(index.home)
    except IndexStateError as error:
        yield Problem(str(error), 1, ())
    for name, fault in index.damaged_files().items():
        yield Problem(f"The file {name} is damaged: {fault}", 1, ())


def _records(index: Index) -> Iterator[Problem]:
    yield from _references(index)

    failed = {(failure.stage, failure.item_id) for failure in index.results.failures()}
    chunk_ids, extracted = set(index.ids(Chunk)), set(index.ids(Extraction))
    if extracted:  # one that was put together elsewhere may have none
        missing = [id for id in chunk_ids - extracted if ("extract", id) not in failed]
        yield from _problem("chunks that nothing was extracted from", missing)
    yield from _problem("extractions of chunks that are not there", extracted - chunk_ids)

    communities = list(index.all(Community))
    yield from _partition(index, communities)
    yield from _summaries_and_questions(index, communities, failed)


def _references(index: Index) -> Iterator[Problem]:
    """Records that name others which are not there."""
    documents, chunks, entities = (set(index.ids(kind)) for kind in (Document, Chunk, Entity))
    nodes = entities | set(index.ids(Community))
    named: list[tuple[str, Any, Callable[[Any], Iterable[str]], Collection[str]]] = [
        ("chunks of documents", Chunk, lambda chunk: (chunk.document_id,), documents),
        ("entities of chunks", Entity, lambda entity: entity.chunk_ids, chunks),
        ("relationships with an end", Relationship, lambda link: (link.source_id, link.target_id), entities),
        ("claims about entities", Claim, lambda claim: filter(None, (claim.entity_id, claim.object_id)), entities),
        ("communities of entities or parts", Community, lambda each: (*each.entity_ids, *each.child_ids), nodes),
        ("questions on chunks", Question, lambda question: (*question.chunk_ids, *question.evidence), chunks),
    ]  # fmt: skip

    for what, kind, names_in, known in named:
        lost = []
        for record in index.all(kind):
            if any(id not in known for id in names_in(record)):
                lost.append(record.id)

        verb = "is" if what.endswith("an end") else "are"
        yield from _problem(f"{what} that {verb} not there", lost)


def _partition(index: Index, communities: Sequence[Community]) -> Iterator[Problem]:
    """Entities that are not in one community of the broadest level each."""
    counts = Counter[str]()
    for community in communities_at(communities, 0):
        counts.update(community.entity_ids)
    if not communities:
        return

    if not _is_import(index):  # GraphRAG's levels are no partition
        alone = set(index.ids(Entity)) - counts.keys()
        yield from _problem("entities that are in no community", alone)
    several = [id for id, count in counts.items() if count > 1]
    yield from _problem("entities that are in two communities", several)


def _summaries_and_questions(
    index: Index, communities: Sequence[Community], failed: Set[tuple[str, str]]
) -> Iterator[Problem]:
    community_ids = {community.id for community in communities}
    summaries = {summary.community_id for summary in index.all(Summary)}
    yield from _problem("summaries of communities that are not there", summaries - community_ids)

    least = index.manifest.settings.summaries.min_entities
    worth_one = {each.id for each in communities if each.is_worth_a_summary(least)}
    lacking = [id for id in worth_one - summaries if ("summarize", id) not in failed]
    if not _is_import(index):  # not each community has a report there
        yield from _problem("communities without a summary", lacking)

    with_question = {each.community_id for each in index.all(Question) if each.source == "kraq"}
    yield from _problem("questions of communities that are not there", with_question - community_ids - {None})
    unasked = [id for id in summaries - with_question if ("ask", id) not in failed]
    yield from _problem("summaries without a question", unasked)


def _is_import(index: Index) -> bool:
    return index.manifest.origin.get("kind") == GRAPHRAG


def _vectors(index: Index) -> Iterator[Problem]:
    for name, kind in (("chunks", Chunk), ("questions", Question)):
        what = "passages" if kind is Chunk else "questions"
        try:
            have, record_ids = index.vectors_named(name).ids(), set(index.ids(kind))
        except IndexStateError as error:
            yield Problem(f"The vectors of {what} cannot be read: {error}", 1, ())
            continue
        yield from _problem(f"{what} without a vector", record_ids - have)
        yield from _problem(f"vectors of {what} that are not there", have - record_ids)


def _precomputed(index: Index) -> Iterator[Problem]:
    path = index.path / INSTRUCTED
    if not path.exists():
        return

    try:
        with any_instructed(path) as store:
            faults, stored = store.damage(), store.owners()
            of_sentences = store.encoder_name.startswith("sentences:")
    except IndexStateError as error:
        faults, stored, of_sentences = [str(error)], set(), False

    if faults:
        yield Problem(f"{INSTRUCTED} is damaged: {faults[0]}. Delete it", len(faults), (), repair="precompute")
    elif of_sentences or stored:
        what = "passages" if of_sentences else "questions"
        ids = set(index.ids(Chunk)) if of_sentences else {question.id for question in index.questions(source="kraq")}
        yield from _problem(f"{what} that nothing was precomputed for", ids - stored, repair="precompute")
        gone = stored - set(index.ids(Chunk if of_sentences else Question))
        yield from _problem(f"precomputed embeddings of {what} that are gone", gone, repair="precompute")


def _summarised(index: Index) -> Iterator[Problem]:
    """Damage of the index that k2rag keeps of the summarised corpus."""
    for manifest in index.path.glob(f"*.kraq/{MANIFEST}"):
        try:
            with Index.open(manifest.parent, damaged=True) as inner:
                problems = [*_database(inner), *_files(inner)]
        except IndexStateError as error:
            problems = [Problem(str(error), 1, ())]
        for problem in problems:
            what = f"In {manifest.parent.name}: {problem.what}. Delete it"
            yield Problem(what, problem.count, problem.ids, repair="precompute")


def _traces(index: Index) -> Iterator[Problem]:
    """Yield what is left of documents that were removed."""
    try:
        for what, ids in traces(index):
            yield from _problem(f"Traces of removed text: {what}", ids)
    except (IndexStateError, ValueError, KeyError, TypeError) as error:
        yield Problem(f"Traces of removed text cannot be looked for: {error}", 1, ())


def _faq(index: Index) -> Iterator[Problem]:
    with opened_faq(index.path) as faq:
        for fault in faq.damage() if faq else ():
            yield Problem(f"The FAQ cache is damaged: {fault}", 1, (), repair="none")
            return
    late = [str(number) for number in overdue(index)]
    yield from _problem("prepared answers whose documents changed or are gone, and that are still given", late, "flag")
    what = "Traces of removed text: prepared answers whose every document is gone (kraq faq remove)"
    yield from _problem(what, orphaned_answers(index), "answers")


def _drop_damaged(index: Index) -> None:
    """Damaged records go, for the build to make them again; chunks are cut out of their documents at once."""
    for kind in TABLES:
        damaged = index.damaged_records(kind)
        index.delete(kind, damaged)
        if kind is Chunk and damaged:
            settings, ids = index.manifest.settings.chunks, set(damaged)
            chunks = (chunk for document in index.all(Document) for chunk in chunk_document(document, settings))
            index.add([chunk for chunk in chunks if chunk.id in ids])


def _problem(what: str, ids: Collection[str | None], repair: str = "resume") -> Iterator[Problem]:
    if ids:
        yield Problem(what, len(ids), tuple(sorted(map(str, ids))[:_SHOWN]), repair)
