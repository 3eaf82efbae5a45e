"""Summarises by sentences that share the most with all the others, each fact once."""

import re
from collections import Counter
from collections.abc import Sequence

from kraq_dspy.embedded.names import names_in
from kraq_dspy.language.text import centralities, clipped, distinct, parted, sentences

LINK = re.compile(
    r"^(?P<source>[^|\n]+) \| (?P<predicate>[^|\n]+) \| (?P<target>[^|:\n]+?)(?:: (?P<description>.+))?$", re.DOTALL
)
STATES = re.compile(r"[^.]{0,60}\b(?:is|was|are|were)\b")
MEMBER = re.compile(r"^(?P<name>[^|:\n]{1,80}?)(?: \((?P<kind>[^()]+)\))?(?:: (?P<description>.+))?$", re.DOTALL)


SENTENCES = 8  # of a summary of passages
READ = 100  # descriptions: thousands may be of a well-known name
TITLE_NAMES = 3  # the members linked most often inside the community


def merged_description(name: str, descriptions: list[str]) -> str:
    """Return up to five sentences of the first descriptions: one that defines the name first, then
    each that says something new."""
    parts = distinct(part for text in descriptions[:READ] for part in sentences(text))
    defining = next((part for part in parts if _defines(part, name)), "")
    return " ".join(sorted(parts, key=lambda part: part != defining)[:5])


def community_summary(elements: list[str]) -> dict[str, object]:
    """Output fields of SummarizeCommunity. Elements are "name (type): description" or
    "a | predicate | b: description", most important first."""
    linked: Counter[str] = Counter()
    all_facts: list[str] = []
    links: list[tuple[str, str]] = []
    for element in elements:
        description = element
        if link := LINK.match(element):
            source, target = link["source"].strip(), link["target"].strip()
            description = link["description"] or ""
            linked.update([source, target])
            links.append((f"{source} {link['predicate'].strip()} {target}", description))
        elif member := MEMBER.match(element):
            description = member["description"] or ""
            linked[member["name"].strip()] += 0
        all_facts += sentences(description)

    facts = distinct(all_facts)
    ranked = linked or Counter(name for fact in facts for name in names_in(fact))
    top = _central_names([name for name, _ in ranked.most_common()])
    summary = " ".join(central(facts, 5, leading=top[0] if top else ""))
    return {
        "title": _listed(top),
        "summary": summary or _listed(top),
        "findings": _findings(links, facts),
    }


def _findings(links: Sequence[tuple[str, str]], facts: Sequence[str]) -> list[dict[str, str]]:
    """The first links that are described, or else the first facts, each explanation once."""
    described = [(headline, text) for headline, text in links if text][:5]
    findings = [{"summary": headline, "explanation": clipped(text)} for headline, text in described]
    if not findings:
        findings = [{"summary": clipped(fact, 12), "explanation": fact} for fact in facts[:5]]

    by_explanation = {finding["explanation"]: finding for finding in reversed(findings)}
    return list(reversed(by_explanation.values()))


def central(parts: list[str], count: int, leading: str = "") -> list[str]:
    """The `count` sentences whose words are said most often by others; first one that is about `leading`."""
    score = centralities(parts)
    first = max(
        (i for i, part in enumerate(parts) if leading and leading in part),
        key=lambda i: (_defines(parts[i], leading), score[i], -i),
        default=None,
    )
    ranked = sorted((i for i in range(len(parts)) if i != first), key=lambda i: (-score[i], i))
    chosen = sorted(ranked[: count - (first is not None)])
    return [parts[i] for i in ([first] if first is not None else []) + chosen]


def _defines(part: str, name: str) -> bool:
    part = part.removeprefix("The ")
    return part.startswith(name) and bool(STATES.match(part, len(name)))


def _central_names(ranked: list[str]) -> list[str]:
    """The first few, none of which is a part of another."""
    chosen: list[str] = []
    for name in ranked:
        if not any(name in other or other in name for other in chosen):
            chosen.append(name)
    return chosen[:TITLE_NAMES]


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def passages_summary(passages: list[str]) -> str:
    """Summarise passages in at most eight sentences, titles in front of those that do not have
    them; the first words if there are none."""
    parts: list[str] = []
    for passage in passages:
        title, body = parted(passage)
        parts += [f"{title}: {part}" if title and title not in part else part for part in sentences(body)]
    parts = distinct(parts)
    return " ".join(clipped(part, 60) for part in central(parts, SENTENCES)) or clipped(" ".join(passages))


def shortened(text: str, words: int) -> str:
    """The sentences that share most with the others, as many as fit, in reading order; the first one cut short if
    none fits."""
    parts = distinct(sentences(text))
    left = words
    chosen: set[str] = set()
    scores = dict(zip(parts, centralities(parts), strict=True))
    for part in sorted(parts, key=lambda part: -scores[part]):
        length = len(part.split())
        if length <= left:
            chosen.add(part)
            left -= length
    return " ".join(part for part in parts if part in chosen) or clipped(parts[0] if parts else text, words)
