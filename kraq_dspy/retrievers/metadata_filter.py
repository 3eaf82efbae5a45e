"""Filters by what the question says: sources and other metadata that it names, dates, entities, titles."""

import calendar
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kraq_dspy.ports import Filters, Retriever
from kraq_dspy.records import Chunk, Entity, Hit
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.retrievers.hits import RetrievalRequest, Retrieving, falling
from kraq_dspy.spec import RetrieverSpec, option

DOCUMENT = "document_id"

_WORD = re.compile(r"\w+")
_LONGEST = 8  # words of a name
_DATE = re.compile(r"(?P<year>\d{4})(?:-(?P<month>\d{2}))?(?:-(?P<day>\d{2}))?(?=$|[T ])")


@dataclass(frozen=True, slots=True)
class Condition:
    """What the question said, and the values of the metadata `key` that it may mean."""

    key: str
    phrase: str
    values: frozenset[Any]


class KnownMetadata:
    """The metadata, titles and entities that a question can name, for `MetadataFilterRetriever`.

    Args:
        chunks: the passages, with titles and metadata.
        entities: entities. An entity in the question selects the documents that mention the entity.
        most_documents: the most documents that a title or an entity may select. kraq ignores a title or entity of
            more documents.

    A title or value of more than eight words is ignored. A question can name an ISO date ("2023-09-28T12:00") by
    year, by month ("2023-09", "September 2023") or by day ("28 September 2023", "September 28, 2023").

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> [(condition.key, condition.phrase) for condition in space.known_metadata.conditions("Where did Ada live?")]
    [('document_id', 'Ada')]
    """

    def __init__(self, chunks: Iterable[Chunk], entities: Iterable[Entity] = (), *, most_documents: int = 50) -> None:
        self._values_by_name: dict[tuple[str, ...], dict[str, set[Any]]] = {}  # of each metadata key

        document_of: dict[str, str] = {}
        documents_named: dict[tuple[str, ...], set[str]] = {}
        for chunk in chunks:
            document_of[chunk.id] = chunk.document_id
            documents_named.setdefault(_words(chunk.title), set()).add(chunk.document_id)
            for key, value in chunk.metadata.items():
                for words in _names_of(value):
                    self._add(words, key, [value])

        for entity in entities:
            documents = {document_of[chunk_id] for chunk_id in entity.chunk_ids if chunk_id in document_of}
            for name in entity.names:
                documents_named.setdefault(_words(name), set()).update(documents)

        for words, documents in documents_named.items():
            if len(documents) <= most_documents:
                self._add(words, DOCUMENT, documents)

    def _add(self, words: tuple[str, ...], key: str, values: Iterable[Any]) -> None:
        if 0 < len(words) <= _LONGEST and (len(words) > 1 or len(words[0]) > 2):
            self._values_by_name.setdefault(words, {}).setdefault(key, set()).update(values)

    def conditions(self, question: str) -> list[Condition]:
        """Find the conditions, in the order of the question. The longest name wins; a single word
        needs a capital, or is a number."""
        places = list(_WORD.finditer(question))
        words = [place[0].casefold() for place in places]

        conditions = []
        start = 0
        while start < len(words):
            for length in range(min(_LONGEST, len(words) - start), 0, -1):
                values_by_key = self._values_by_name.get(tuple(words[start : start + length]))
                if not values_by_key:
                    continue

                name = question[places[start].start() : places[start + length - 1].end()]
                if length > 1 or name.isdigit() or (start > 0 and name[0].isupper()):
                    for key, values in sorted(values_by_key.items()):
                        conditions.append(Condition(key, name, frozenset(values)))
                    start += length - 1
                    break
            start += 1
        return conditions


@dataclass(frozen=True)
class MetadataFilterOptions:
    over: str = option("hybrid", "Retriever that gets the filters.")


class MetadataFilterRetriever(Retrieving):
    """Retrieves with filters that the question itself states, such as a date or a source. `why` names the filters.

    Args:
        retrieve: the retriever that gets the filters.
        known: what a question can name (`space.known_metadata`).

    Values of one key are alternatives ("The Verge or TechCrunch"); conditions on several keys must all hold. If no
    passage meets all conditions, the retriever first drops the conditions on documents (entities, titles), then the
    others. If fewer than `k` passages meet the conditions, hits without conditions follow; their scores are not
    higher than the others. The `filters` of the caller always hold.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> filtered = MetadataFilterRetriever(space.retriever("dense"), space.known_metadata)
    >>> [hit.why for hit in filtered("Where did Ada live?", 1)]
    ['dense, filtered by document_id: Ada']
    """

    def __init__(self, retrieve: Retriever, known: KnownMetadata) -> None:
        self.retrieve = as_retriever(retrieve)
        self.known = known

    def find(self, request: RetrievalRequest) -> list[Hit]:
        conditions = self.known.conditions(request.question)
        hits = self._filtered(request, conditions)
        if not hits:
            hits = self._filtered(request, [condition for condition in conditions if condition.key != DOCUMENT])

        if len(hits) < request.k:
            exclude = {*request.exclude, *(hit.chunk.id for hit in hits)}
            unfiltered = replace(request, k=request.k - len(hits), exclude=exclude)
            hits += unfiltered.send_to(self.retrieve)
        return falling(hits)

    def _filtered(self, request: RetrievalRequest, conditions: Sequence[Condition]) -> list[Hit]:
        """The hits that the conditions let pass, each with what it was filtered by; none without conditions."""
        filters = _narrowed(conditions, request.filters)
        if not conditions or filters is None:
            return []

        reasons = ", ".join(f"{condition.key}: {condition.phrase}" for condition in conditions)
        hits = replace(request, filters=filters).send_to(self.retrieve)
        return [replace(hit, why=f"{hit.why}, filtered by {reasons}") for hit in hits]


def _narrowed(conditions: Sequence[Condition], filters: Filters | None) -> dict[str, Any] | None:
    """The caller's filters and the conditions together; None if they exclude each other."""
    narrowed: dict[str, Any] = dict(filters or {})
    values_by_key: dict[str, frozenset[Any]] = {}
    for condition in conditions:
        values_by_key[condition.key] = values_by_key.get(condition.key, frozenset()) | condition.values

    for key, values in values_by_key.items():
        if key in narrowed:
            required = narrowed[key]
            allowed = required if isinstance(required, (list, tuple, set, frozenset)) else [required]
            values = values.intersection(allowed)
        if not values:
            return None
        narrowed[key] = sorted(values)
    return narrowed


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.casefold() for word in _WORD.findall(text))


def _names_of(value: Any) -> list[tuple[str, ...]]:
    """Tell how a question may name the value of a document's metadata, in words."""
    if not isinstance(value, str):
        return []

    date = _DATE.match(value)
    if date is None or not 1 <= int(date["month"] or 1) <= 12:
        return [_words(value)]

    year, month, day = date.groups()
    names: list[tuple[str, ...]] = [(year,)]
    if month:
        name = calendar.month_name[int(month)].casefold()
        names += [(year, month), (name, year)]
        if day:
            names += [(year, month, day), (str(int(day)), name, year), (name, str(int(day)), year)]
    return names


METADATA_FILTER = RetrieverSpec(
    "metadata-filter",
    "Filtered by a date, a source or an entity that the question names.",
    lambda space, options: MetadataFilterRetriever(space.retriever(options.over), space.known_metadata),
    "MetadataFilterRetriever",
    MetadataFilterOptions,
)
