"""Filters by what the question says: sources and other metadata that it names, dates, entities, titles."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kraq_dspy.ports import Filters, Retriever
from kraq_dspy.programs.retrievers.adapted import as_retriever
from kraq_dspy.programs.retrievers.hits import RetrievalRequest, Retrieving, falling
from kraq_dspy.programs.shared.spec import RetrieverSpec, Space, option
from kraq_dspy.records import Chunk, Entity, Hit

DOCUMENT = "document_id"

_WORD = re.compile(r"\w+")
_LONGEST = 8  # words of a name
_MONTHS = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONTH = "(?P<month>" + "|".join(f"{month[:3]}(?:{month[3:]})?" for month in _MONTHS) + r"|sept)\.?"
_DATES = [
    re.compile(r"\b(?P<year>\d{4})-(?P<number>\d{2})(?:-(?P<day>\d{2}))?\b"),
    re.compile(rf"\b{_MONTH}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<year>\d{{4}})\b", re.I),
    re.compile(
        rf"\b(?:(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s+(?:of\s+)?)?{_MONTH},?\s+(?:of\s+)?(?P<year>\d{{4}})\b", re.I
    ),
    re.compile(r"\b(?P<year>1\d{3}|20\d{2})\b"),
]
_SIDE = re.compile(r"\b(before|until|till|by|since|from|after)\s+(?:the\s+year\s+)?$", re.I)
_ISO = re.compile(r"\d{4}(?:-\d{2}(?:-\d{2})?)?(?=$|[T ])")


@dataclass(frozen=True, slots=True)
class Condition:
    """What the question said, and the values of the metadata `key` that it may mean."""

    key: str
    phrase: str
    values: frozenset[Any]


class KnownMetadata:
    """What a question can name: metadata values, titles, and entities, which stand for the documents that mention them.

    An entity or title of more than `most_documents` documents says too little, and is left out. Texts of over eight
    words are no names. Values that are ISO dates ("2023-09-28T12:00", "2023-09"), and whole numbers from 1000 to 2999
    under a key with "year" or "date" in it, are dates.
    """

    def __init__(self, chunks: Iterable[Chunk], entities: Iterable[Entity] = (), *, most_documents: int = 50) -> None:
        self._named: dict[tuple[str, ...], dict[str, set[Any]]] = {}
        self._dates: dict[str, dict[Any, str]] = {}
        document_of: dict[str, str] = {}
        names: dict[tuple[str, ...], set[str]] = {}
        for chunk in chunks:
            document_of[chunk.id] = chunk.document_id
            names.setdefault(_words(chunk.title), set()).add(chunk.document_id)
            for key, value in chunk.metadata.items():
                if date := _date_of(key, value):
                    self._dates.setdefault(key, {})[value] = date
                elif isinstance(value, str):
                    self._add(_words(value), key, [value])
        for entity in entities:
            documents = {document_of[chunk_id] for chunk_id in entity.chunk_ids if chunk_id in document_of}
            for name in entity.names:
                names.setdefault(_words(name), set()).update(documents)
        for words, documents in names.items():
            if len(documents) <= most_documents:
                self._add(words, DOCUMENT, documents)

    def _add(self, words: tuple[str, ...], key: str, values: Iterable[Any]) -> None:
        if 0 < len(words) <= _LONGEST and (len(words) > 1 or len(words[0]) > 2):
            self._named.setdefault(words, {}).setdefault(key, set()).update(values)

    @property
    def date_keys(self) -> Collection[str]:
        return self._dates.keys()

    def conditions(self, question: str) -> list[Condition]:
        """Dates first, then names in the order of the question. The longest name wins; one word needs a capital."""
        return [*self._by_date(question), *self._by_name(question)]

    def _by_date(self, question: str) -> list[Condition]:
        conditions = []
        taken: list[tuple[int, int]] = []
        for pattern in _DATES:
            for place in pattern.finditer(question):
                if any(start < place.end() and place.start() < end for start, end in taken):
                    continue
                taken.append(place.span())
                date, before = _iso(place), question[: place.start()]
                for key, dates in sorted(self._dates.items()):
                    values = frozenset(value for value, known in dates.items() if _meets(known, date, before))
                    if values:
                        conditions.append(Condition(key, place[0], values))
        return conditions

    def _by_name(self, question: str) -> list[Condition]:
        places = list(_WORD.finditer(question))
        words = [place[0].casefold() for place in places]
        conditions = []
        start = 0
        while start < len(words):
            for length in range(min(_LONGEST, len(words) - start), 0, -1):
                named = self._named.get(tuple(words[start : start + length]))
                name = question[places[start].start() : places[start + length - 1].end()]
                if named and (length > 1 or (start > 0 and name[0].isupper())):
                    conditions += [Condition(key, name, frozenset(values)) for key, values in sorted(named.items())]
                    start += length - 1
                    break
            start += 1
        return conditions


@dataclass(frozen=True)
class MetadataFilterOptions:
    over: str = option("hybrid", "The retriever that is asked with the filters.")


class MetadataFilterRetriever(Retrieving):
    """Asks `retrieve` with filters that the question itself states; what it filtered by is in each hit's `why`.

    Values of one key are alternatives ("The Verge or TechCrunch"); conditions on several keys hold together. Where they
    leave nothing, those on documents (entities, titles) are given up first, then dates, then the rest, so that at worst
    it is `retrieve` alone. Where fewer than `k` pass, hits of `retrieve` without these filters fill up, with no higher
    score. The caller's `filters` hold throughout.

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
        for used in _ever_fewer(conditions, self.known.date_keys):
            narrowed = _narrowed(used, request.filters)
            if narrowed is None:
                continue
            hits = replace(request, filters=narrowed).send_to(self.retrieve)
            if hits:
                break
        else:
            used, hits = [], []
        reasons = ", ".join(f"{condition.key}: {condition.phrase}" for condition in used)
        hits = [replace(hit, why=f"{hit.why}, filtered by {reasons}") for hit in hits]
        if len(hits) < request.k:
            known = {*request.exclude, *(hit.chunk.id for hit in hits)}
            hits += replace(request, k=request.k - len(hits), exclude=known).send_to(self.retrieve)
        return falling(hits)


def _ever_fewer(conditions: Sequence[Condition], dates: Collection[str]) -> Iterator[list[Condition]]:
    """All of them, then without those on documents, then without those on dates as well; none that is empty."""
    tried: list[Condition] | None = None
    for left_out in (set(), {DOCUMENT}, {DOCUMENT, *dates}):
        some = [condition for condition in conditions if condition.key not in left_out]
        if some and some != tried:
            yield some
        tried = some


def _narrowed(conditions: Sequence[Condition], filters: Filters | None) -> dict[str, Any] | None:
    """The caller's filters and the conditions together; None where they exclude each other."""
    narrowed: dict[str, Any] = dict(filters or {})
    values: dict[str, frozenset[Any]] = {}
    for condition in conditions:
        values[condition.key] = values.get(condition.key, frozenset()) | condition.values
    for key, some in values.items():
        if key in narrowed:
            required = narrowed[key]
            allowed = required if isinstance(required, (list, tuple, set, frozenset)) else [required]
            some = some.intersection(allowed)
        if not some:
            return None
        narrowed[key] = sorted(some)
    return narrowed


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.casefold() for word in _WORD.findall(text))


def _date_of(key: str, value: Any) -> str | None:
    if isinstance(value, str):
        iso = _ISO.match(value)
        return iso[0] if iso else None
    is_year = isinstance(value, int) and not isinstance(value, bool) and 1000 <= value < 3000
    return str(value) if is_year and re.search("year|date", key, re.I) else None


def _iso(place: re.Match[str]) -> str:
    """A date as far as it is said: 2023, 2023-10 or 2023-10-26."""
    parts = place.groupdict()
    month = parts.get("number")
    if parts.get("month"):
        named = parts["month"][:3].casefold()
        month = f"{next(n for n, name in enumerate(_MONTHS, start=1) if name.startswith(named)):02d}"
    day = parts.get("day")
    return "-".join([parts["year"], *([month] if month else []), *([f"{int(day):02d}"] if month and day else [])])


def _meets(known: str, required: str, before: str) -> bool:
    """Whether a known date is the one asked for, as far as both say, or on the right side of it."""
    shared = min(len(known), len(required))
    known, required = known[:shared], required[:shared]
    side = _SIDE.search(before)
    match side[1].casefold() if side else "":
        case "before":
            return known < required
        case "until" | "till" | "by":
            return known <= required
        case "since" | "from":
            return known >= required
        case "after":
            return known > required
    return known == required


def make_metadata_filter(space: Space, options: MetadataFilterOptions) -> MetadataFilterRetriever:
    return MetadataFilterRetriever(space.retriever(options.over), space.known_metadata)


METADATA_FILTER = RetrieverSpec(
    "metadata-filter",
    "Filtered by a date, a source or an entity that the question names.",
    make_metadata_filter,
    "MetadataFilterRetriever",
    MetadataFilterOptions,
)
