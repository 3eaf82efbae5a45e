"""Extracts entities, relationships and claims: of English by its parse, else by capitals or by frequency."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kraq_dspy.embedded.names import frequent_terms, has_capitals, is_name, kind_of, names_in, without_words
from kraq_dspy.embedded.reading.reader import reader, title_and_text
from kraq_dspy.embedded.reading.vocabulary import names_a_part
from kraq_dspy.language.analysis import Analysis, Link as ParsedLink, Reading
from kraq_dspy.language.text import clipped, sentences, words
from kraq_dspy.language.vocabulary import STOP

PRONOUN = re.compile(r"^(He|She|It|They|His|Her|Its|Their)\b")
FIRST_ENTITIES, FIRST_LINKS, FIRST_CLAIMS = 12, 14, 6
"""What the first reading gives; gleaning gives the rest."""


Link = tuple[str, str, str, str]
"""Source, target, predicate, and the sentence that links them."""
Claim = tuple[str, str, str]
"""Subject, object, and the sentence that says something of them."""


def first_reading(passage: str) -> dict[str, object]:
    """Output fields of ExtractElements."""
    reading = read(passage)
    names = list(reading.entities)[:FIRST_ENTITIES]
    links = [link for link in reading.links if link[0] in names and link[1] in names][:FIRST_LINKS]
    claims = [claim for claim in reading.claims if claim[0] in names][:FIRST_CLAIMS]
    return _fields(reading, names, links, claims)


def second_reading(passage: str, known_lines: str) -> dict[str, object]:
    """Output fields of FindMissedElements: what is not in `known_lines`, which are "name" or
    "name > target, ..."."""
    reading = read(passage)
    known_targets = _known_targets(known_lines)

    names = [name for name in reading.entities if name.casefold() not in known_targets]
    links = []
    for link in reading.links:
        source, target = link[0].casefold(), link[1].casefold()
        if f", {target}," not in known_targets.get(source, ""):
            links.append(link)
    claims = [claim for claim in reading.claims if claim[0] in names]

    fields = _fields(reading, names, links, claims)
    remark = "Nothing of weight is missing."
    if names:
        remark = f"The first reading left out {', '.join(names[:3])}."
    return {"missing": remark, **fields}


def _known_targets(known_lines: str) -> dict[str, str]:
    """The names that are known, each with those that it is linked to: ", rome, oslo,"."""
    targets_of: dict[str, str] = {}
    for line in known_lines.casefold().splitlines():
        name, _, targets = line.partition(" > ")
        targets_of[name] = f"{targets_of.get(name, '')}, {targets},"
    return targets_of


def names_and_links(passage: str) -> dict[str, object]:
    """Output fields of NameElements."""
    reading = read(passage)
    links = [
        {"source": source, "predicate": predicate, "target": target} for source, target, predicate, _ in reading.links
    ]
    return {"names": list(reading.entities), "relationships": links}


def read(passage: str) -> Reading:
    """Find the names of a passage, what links them, and what is said of them."""
    analysis = reader().analysis(passage)
    if analysis is not None:
        return _by_parse(analysis)

    title, text = title_and_text(passage)
    if not has_capitals(text or passage):
        return _by_frequency(title, text or passage)

    texts = sentences(text)
    spans_by_sentence = _names_by_sentence(title, texts, text)
    parts = [_Part(part, spans) for part, spans in zip(texts, spans_by_sentence, strict=True)]
    return _by_names(title, parts, [])


@dataclass(frozen=True, slots=True)
class _Part:
    """A sentence, the names that it has as they are written there, and what a parser finds beside them."""

    text: str
    spans: Sequence[str]
    phrases: Sequence[str] = ()
    parsed: Sequence[ParsedLink] = ()


def _by_parse(analysis: Analysis) -> Reading:
    """What the parser found: names in full, phrases, and who does what to whom. A title that the text names is what
    "he" and "it" stand for."""
    parts = []
    for sentence in analysis.sentences:
        spans = [each.text for each in sentence.named if not each.is_phrase]
        phrases = [each.text for each in sentence.named if each.is_phrase]
        parts.append(_Part(sentence.text, spans, phrases, sentence.links))

    kinds = [(each.text, each.kind) for sentence in analysis.sentences for each in sentence.named]
    return _by_names(analysis.title, parts, kinds)


def _by_names(title: str, parts: Sequence[_Part], kinds: Sequence[tuple[str, str]]) -> Reading:
    """What the names of a text's sentences, and what a parser finds beside them, come to. `kinds` are the parser's, of
    names as they are written, in reading order: the last one of a name counts."""
    spans_by_part = [part.spans for part in parts]
    full_names = _full_names(title, [part.text for part in parts], spans_by_part)

    sentence_about: dict[str, str] = {}
    if title in full_names.values() or _names_something(title, spans_by_part):
        sentence_about[title] = ""

    links: list[Link] = []
    claims: list[Claim] = []
    for part, names in _with_names_meant(title, parts, full_names):
        for name in (*names, *part.phrases):
            sentence_about[name] = sentence_about.get(name) or part.text

        parsed = _parsed_links(part, full_names)
        links += parsed
        if names:
            first_span_of = {full_names[span]: span for span in reversed(part.spans)}
            links += _links(part.text, names, first_span_of)

        subjects = [*names, *(source for source, *_ in parsed), *part.phrases]
        claims.append((subjects[0], _other(names), clipped(part.text)))

    if sentence_about.get(title) == "":
        sentence_about[title] = next((part.text for part in parts), "")
    kind_of_full = {full_names.get(span, span): kind for span, kind in kinds}
    return Reading(_described(sentence_about, kind_of_full), _once(links), claims)


def _with_names_meant(
    title: str, parts: Sequence[_Part], full_names: Mapping[str, str]
) -> Iterator[tuple[_Part, list[str]]]:
    """Each sentence that has a name or a phrase, with the full names that it means: also what "he" stands for, which
    is the title if the text names it, and else what the sentence before begins with."""
    is_about_title = title in full_names.values()
    focus = title if is_about_title else ""
    for part in parts:
        names = list(dict.fromkeys(full_names[span] for span in part.spans))
        if is_about_title or PRONOUN.match(part.text):
            names = _with_focus(names, focus)
        if names and not is_about_title:
            focus = names[0]
        if names or part.phrases:
            yield part, names


def _parsed_links(part: _Part, full_names: Mapping[str, str]) -> list[Link]:
    """Who does what to whom in a sentence, each by the full name."""
    return [
        (
            full_names.get(link.source, link.source),
            full_names.get(link.target, link.target),
            link.predicate,
            clipped(part.text),
        )
        for link in part.parsed
    ]


def _kind(name: str, parsed: str, part: str) -> str:
    """What the parser says that a name is, unless the sentence says that it is a work, an event or a species."""
    stated = kind_of(_bare(name), part)
    return stated if parsed in ("", "concept") or stated in ("work", "event", "species") else parsed


def _with_focus(names: list[str], focus: str) -> list[str]:
    """The names, and before them what the sentences before were about, which "he" may stand for."""
    return [focus, *names] if focus and focus not in names else names


def _names_something(title: str, mentioned: Sequence[Sequence[str]]) -> bool:
    """Whether a title is an entity that the text does not name: a name, or all that there is; not that of a part."""
    if names_a_part(_bare(title)):
        return False
    stands_alone = not any(mentioned) and 0 < len(title.split()) <= 6
    return stands_alone or is_name(_bare(title))


def _names_by_sentence(title: str, parts: Sequence[str], text: str) -> list[list[str]]:
    """The names that each sentence has; what begins one is a name if it is one inside another."""
    known: set[str] = set()
    for part in parts:
        behind_first = part.split(" ", 1)[-1]
        known.update(name for name in names_in(behind_first) if " " not in name)

    bare = _bare(title)
    known.add(bare)
    return [without_words(names_in(part, frozenset(known), bare), text) for part in parts]


def _described(about: Mapping[str, str], kinds: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """The kind of each name, by a parser's kinds and the sentence about it, and that sentence cut short."""
    return {name: (_kind(name, kinds.get(name, ""), part), clipped(part)) for name, part in about.items()}


def _other(names: list[str]) -> str:
    """The second of two names; if there are more, the sentence is about more than what links the first to one."""
    return names[1] if len(names) == 2 else ""


def _bare(name: str) -> str:
    """Strip a title of what tells namesakes apart: the text about "Ed Wood (film)" or "Woodson,
    Arkansas" leaves it out."""
    return re.sub(r"(?<!\s)\s*+\([^()]*\)$|, .*$", "", name)


def _full_names(title: str, parts: Sequence[str], mentioned: Sequence[Sequence[str]]) -> dict[str, str]:
    """Every span by the name that it stands for: the title for its own words, the full name for a
    surname.

    What begins the first sentence is the title written in full when they share a word.
    """
    spans = list(dict.fromkeys(span for names in mentioned for span in names))
    full = {span: _full_name(span, spans, title) for span in spans}

    bare = _bare(title)
    if bare and mentioned and mentioned[0] and title not in full.values():
        first = mentioned[0][0]
        shares_word = not set(words(first)).isdisjoint(words(bare))
        if shares_word and parts[0].startswith((first, f"The {first}")):
            full[first] = title
    return full


def _full_name(span: str, spans: Sequence[str], title: str) -> str:
    """Return the title if the span is its bare name, or its last name. Otherwise return the one
    full name that contains the span, or the span itself."""
    bare = _bare(title)
    if title and span.casefold() == bare.casefold():
        return title
    if " " in span:
        return span

    name = _only_owner(span, [bare, *spans] if is_name(bare) else spans) or span
    return title if title and name == bare else name


def _only_owner(word: str, names: Sequence[str]) -> str:
    """The one name of several words that begins or ends with this one; "" for none or more."""
    owners = set()
    for name in names:
        own_words = name.split()
        if " " in name and word in (own_words[0], own_words[-1]):
            owners.add(name)
    return owners.pop() if len(owners) == 1 else ""


def _links(part: str, names: list[str], written: dict[str, str]) -> list[Link]:
    """The first name with each other, and each with the next, told by the words between them."""
    links, last = [], "is mentioned with"
    pairs = [(names[0], other) for other in names[1:6]] + list(pairwise(names[1:6]))
    for source, target in pairs:
        predicate = _between(part, written.get(source, ""), written.get(target, target))
        if source == names[0]:  # of "with Ann, Bob and Eve", the first says for all how
            last = predicate = predicate or last
        if predicate:
            links.append((source, target, predicate, clipped(part)))
    return links


def _between(part: str, source: str, target: str) -> str:
    """The last few words before the target, without names, numbers and brackets; empty if the order is another."""
    start = part.find(source) + len(source) if source and source in part else 0
    end = part.find(target, start)
    if end < 0:
        return ""

    middle = re.sub(r"\([^()]*\)|[\"“”]", " ", part[start:end])
    middle = re.split(r"[;:,]", middle.rstrip(" ,;:("))[-1]
    words = [word for word in re.findall(r"[\w’'-]+", middle) if word.islower()]
    while words and words[-1] in ("the", "a", "an", "his", "her", "its", "their", "and"):
        words.pop()
    while words and words[0] in ("and", "or", "but", "who", "which", "that", "where", "he", "she", "it", "they"):
        words.pop(0)
    words = words[-5:]
    return (
        " ".join(words)
        if any(word not in STOP or word in ("is", "was", "in", "of", "by", "with") for word in words)
        else ""
    )


def _by_frequency(title: str, text: str) -> Reading:
    """Read a text without capitals: terms that are quoted or repeated, linked when a sentence has
    both."""
    titles = [title] if title else []
    terms = list(dict.fromkeys([*titles, *frequent_terms(text)]))

    about: dict[str, str] = {}
    links: list[Link] = []
    claims: list[Claim] = []
    for part in sentences(text):
        in_part = sorted((term for term in terms if term in part), key=part.find)
        for term in in_part:
            about.setdefault(term, part)
        for source, target in pairwise(in_part):
            between = part[part.find(source) + len(source) : part.find(target)]
            predicate = between.strip(" ，,、")[:12] or "—"
            links.append((source, target, predicate, clipped(part)))
        if in_part:
            claims.append((in_part[0], _other(in_part), clipped(part)))

    if title and title not in about:
        first_sentence = next(iter(sentences(text)), "")
        about = {title: first_sentence, **about}
    entities = {term: (kind_of(term, part), clipped(part)) for term, part in about.items()}
    return Reading(entities, _once(links), claims)


def _once(links: list[Link]) -> list[Link]:
    first_links: dict[frozenset[str], Link] = {}
    for link in links:
        if link[0] != link[1]:
            first_links.setdefault(frozenset(link[:2]), link)
    return list(first_links.values())


def _fields(reading: Reading, names: list[str], links: list[Link], claims: list[Claim]) -> dict[str, object]:
    described = [(name, *reading.entities[name]) for name in names]
    return {
        "entities": [{"name": name, "type": kind, "description": sentence} for name, kind, sentence in described],
        "relationships": [
            {"source": source, "target": target, "predicate": predicate, "description": sentence}
            for source, target, predicate, sentence in links
        ],
        "claims": [{"subject": subject, "statement": sentence, "object": other} for subject, other, sentence in claims],
    }
