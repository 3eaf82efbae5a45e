"""Extracts entities, relationships and claims: names, the words between two names, the sentences about one."""

import re
from dataclasses import dataclass
from itertools import pairwise

from kraq_dspy.language.names import frequent_terms, has_capitals, is_name, kind_of, names_in, without_words
from kraq_dspy.language.text import clipped, sentences, words
from kraq_dspy.language.vocabulary import STOP

PRONOUN = re.compile(r"^(He|She|It|They|His|Her|Its|Their)\b")
FILE = re.compile(r"[\w.-]+\.(?:py|ts|c|h|cpp|java|go|rs|rb|sh|sql|txt|md|json|xml|csv|html?|pdf)")
FIRST_ENTITIES, FIRST_LINKS, FIRST_CLAIMS = 12, 14, 6
"""What the first reading gives; gleaning gives the rest."""


@dataclass(frozen=True, slots=True)
class Reading:
    """All that was found. `entities` maps a name to (type, description); `links` are (source, target, predicate,
    sentence) and `claims` (subject, object, sentence), in reading order; the object is "" unless the sentence is about
    two names alone."""

    entities: dict[str, tuple[str, str]]
    links: list[tuple[str, str, str, str]]
    claims: list[tuple[str, str, str]]


def first_reading(passage: str) -> dict[str, object]:
    """Output fields of ExtractElements."""
    reading = read(passage)
    names = list(reading.entities)[:FIRST_ENTITIES]
    links = [link for link in reading.links if link[0] in names and link[1] in names][:FIRST_LINKS]
    claims = [claim for claim in reading.claims if claim[0] in names][:FIRST_CLAIMS]
    return _fields(reading, names, links, claims)


def second_reading(passage: str, known_lines: str) -> dict[str, object]:
    """Output fields of FindMissedElements: what is not in `known_lines`, which are "name" or "name > target, ..."."""
    reading = read(passage)
    known: dict[str, str] = {}
    for line in known_lines.casefold().splitlines():
        name, _, targets = line.partition(" > ")
        known[name] = f"{known.get(name, '')}, {targets},"
    names = [name for name in reading.entities if name.casefold() not in known]
    links = [link for link in reading.links if f", {link[1].casefold()}," not in known.get(link[0].casefold(), "")]
    claims = [claim for claim in reading.claims if claim[0] in names]
    fields = _fields(reading, names, links, claims)
    remark = f"The first reading left out {', '.join(names[:3])}." if names else "Nothing of weight is missing."
    return {"missing": remark, **fields}


def names_and_links(passage: str) -> dict[str, object]:
    """Output fields of NameElements."""
    reading = read(passage)
    links = [
        {"source": source, "predicate": predicate, "target": target} for source, target, predicate, _ in reading.links
    ]
    return {"names": list(reading.entities), "relationships": links}


def read(passage: str) -> Reading:
    title, text = _title_and_text(passage)
    if not has_capitals(text or passage):
        return _by_frequency(title, text or passage)
    parts = sentences(text)
    known = frozenset(name for part in parts for name in names_in(part.split(" ", 1)[-1]) if " " not in name)
    bare = _bare(title)
    mentioned = [without_words(names_in(part, known | {bare}, bare), text) for part in parts]
    full = _full_names(title, parts, mentioned)
    topical = title in full.values()
    about: dict[str, str] = {title: ""} if topical or is_name(bare) else {}
    if not any(mentioned) and 0 < len(title.split()) <= 6:
        about = {title: ""}
    links: list[tuple[str, str, str, str]] = []
    claims: list[tuple[str, str, str]] = []
    focus = title if topical else ""
    for part, spans in zip(parts, mentioned, strict=True):
        names = list(dict.fromkeys(full[span] for span in spans))
        if focus and focus not in names and (topical or PRONOUN.match(part)):
            names.insert(0, focus)
        for name in names:
            if not about.get(name):
                about[name] = part
        links += _links(part, names, {full[span]: span for span in reversed(spans)})
        if names:
            focus = title if topical else names[0]
            claims.append((names[0], _other(names), clipped(part)))
    if title in about:
        about[title] = about[title] or next(iter(parts), "")
    entities = {name: (kind_of(_bare(name), part), clipped(part)) for name, part in about.items()}
    return Reading(entities, _once(links), claims)


def _other(names: list[str]) -> str:
    """The second of two names; where there are more, the sentence is about more than what links the first to one."""
    return names[1] if len(names) == 2 else ""


def _title_and_text(passage: str) -> tuple[str, str]:
    """A short first line without a full stop is a title; what names nothing (a number, a file) is left out."""
    first, _, rest = passage.strip().partition("\n")
    first = first.strip().lstrip("# ").strip()
    if (
        rest.strip()
        and 0 < len(first) <= 100
        and len(first.split()) <= 14
        and not first.endswith((".", "。", ":", "?"))
    ):
        return first if re.search(r"[^\W\d_]{2}", first) and not FILE.fullmatch(first) else "", rest.strip()
    return "", passage.strip()


def _bare(name: str) -> str:
    """Strip a title of what tells namesakes apart: the text about "Ed Wood (film)" or "Woodson,
    Arkansas" leaves it out."""
    return re.sub(r"\s*\([^)]*\)$|, .*$", "", name)


def _full_names(title: str, parts: list[str], mentioned: list[list[str]]) -> dict[str, str]:
    """Every span by the name that it stands for: the title for its own words, the full name for a surname.

    What begins the first sentence is the title written in full when they share a word.
    """
    spans = list(dict.fromkeys(span for names in mentioned for span in names))
    full = {span: span for span in spans}
    bare = _bare(title)
    for span in spans:
        if title and span.casefold() == bare.casefold():
            full[span] = title
        elif " " not in span:
            candidates = [bare, *spans] if is_name(bare) else spans
            owners = {name for name in candidates if " " in name and span in (name.split()[0], name.split()[-1])}
            if len(owners) == 1:
                owner = owners.pop()
                full[span] = title if title and owner == bare else owner
    if bare and mentioned and mentioned[0] and title not in full.values():
        first = mentioned[0][0]
        if parts[0].startswith((first, f"The {first}")) and set(words(first)) & set(words(bare)):
            full[first] = title
    return full


def _links(part: str, names: list[str], written: dict[str, str]) -> list[tuple[str, str, str, str]]:
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
    """The last few words before the target, without names, numbers and brackets; empty where the order is another."""
    start = part.find(source) + len(source) if source and source in part else 0
    end = part.find(target, start)
    if end < 0:
        return ""
    middle = re.sub(r"\([^)]*\)|[\"“”]", " ", part[start:end])
    middle = re.split(r"[;:,]", middle.rstrip(" ,;:("))[-1]
    kept = [word for word in re.findall(r"[\w’'-]+", middle) if word.islower()]
    while kept and kept[-1] in ("the", "a", "an", "his", "her", "its", "their", "and"):
        kept.pop()
    while kept and kept[0] in ("and", "or", "but", "who", "which", "that", "where", "he", "she", "it", "they"):
        kept.pop(0)
    kept = kept[-5:]
    return (
        " ".join(kept)
        if any(word not in STOP or word in ("is", "was", "in", "of", "by", "with") for word in kept)
        else ""
    )


def _by_frequency(title: str, text: str) -> Reading:
    """Read a text without capitals: terms that are quoted or repeated, linked when a sentence has
    both."""
    terms = list(dict.fromkeys([*([title] if title else []), *frequent_terms(text)]))
    about: dict[str, str] = {}
    links: list[tuple[str, str, str, str]] = []
    claims: list[tuple[str, str, str]] = []
    for part in sentences(text):
        here = sorted((term for term in terms if term in part), key=part.find)
        for term in here:
            about.setdefault(term, part)
        for source, target in pairwise(here):
            middle = part[part.find(source) + len(source) : part.find(target)]
            links.append((source, target, middle.strip(" ，,、")[:12] or "—", clipped(part)))
        if here:
            claims.append((here[0], _other(here), clipped(part)))
    if title and title not in about:
        about = {title: (sentences(text) or [""])[0], **about}
    return Reading({t: (kind_of(t, p), clipped(p)) for t, p in about.items()}, _once(links), claims)


def _once(links: list[tuple[str, str, str, str]]) -> list[tuple[str, str, str, str]]:
    kept: dict[frozenset[str], tuple[str, str, str, str]] = {}
    for link in links:
        if link[0] != link[1]:
            kept.setdefault(frozenset(link[:2]), link)
    return list(kept.values())


def _fields(
    reading: Reading, names: list[str], links: list[tuple[str, str, str, str]], claims: list[tuple[str, str, str]]
) -> dict[str, object]:
    described = [(name, *reading.entities[name]) for name in names]
    return {
        "entities": [{"name": name, "type": kind, "description": sentence} for name, kind, sentence in described],
        "relationships": [
            {"source": source, "target": target, "predicate": predicate, "description": sentence}
            for source, target, predicate, sentence in links
        ],
        "claims": [{"subject": subject, "statement": sentence, "object": other} for subject, other, sentence in claims],
    }
