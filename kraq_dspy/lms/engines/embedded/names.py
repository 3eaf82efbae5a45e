"""Names in text, and what kind of thing they name: capitals where a script has them, frequency and quotes elsewhere."""

import re
from collections import Counter

from kraq_dspy.lms.engines.embedded.text import UNSPACED, WORD
from kraq_dspy.lms.engines.embedded.vocabulary import FUNCTION_LETTERS, KIND_OF_NOUN, NO_NAMES, OPENERS, STOP

_CAPITAL = "A-ZÀ-ÖØ-ÞĀ-ŽΑ-ΩА-ЯЁ"
_PART = rf"(?:[{_CAPITAL}][\w’'\-.&]*\w|[{_CAPITAL}]\.?)"
_JOIN = rf"(?: (?:of the|of|for|de la|de|del|du|van|von|der|la|le|al|bin|ibn|&) (?=[{_CAPITAL}])| (?=[{_CAPITAL}0-9]))"
SPAN = re.compile(rf"(?:\b\d{{4}} )?\b{_PART}(?:{_JOIN}(?:{_PART}|\d{{1,4}}\b))*")
QUOTED = re.compile(r"[\"“«„]([^\"“”«»„\n]{2,60})[\"”»]|《([^》\n]{1,40})》|「([^」\n]{1,40})」|『([^』\n]{1,40})』")
ORGANISATION = re.compile(
    r"\b(Inc|Corp(oration)?|Co|Ltd|LLC|PLC|Company|Department|University|College|School|Institute|Court|Association|Center|"
    r"Centre|Committee|Agency|Group|Hospital|Council|Party|Press|Senate|Congress|Parliament|Foundation|Organi[sz]ation|"
    r"Board|Ministry|Bank|Union|League|Club|Records|Studios?|Pictures|Entertainment|Orchestra|Army|Navy|Police|Church|"
    r"Museum|Society|F\.?C\.?|United|Airlines|Motors|Times|News)\b"
)
PLACE = re.compile(
    r"\b(County|City|River|Lake|Mount|Mountains?|Island|Islands|Park|Bay|Valley|Street|Avenue|Road|Bridge|Airport|Station|"
    r"Castle|Palace|Square|Ocean|Sea|Province|Kingdom|Republic|States|Village|Township|Hall|Stadium|Arena|Beach)\b"
)
EVENT = re.compile(
    r"\b(War|Battle|Games|Cup|Olympics|Championships?|Festival|Election|Revolution|Crisis|Awards?|Prize|Treaty|Conference|"
    r"Tournament|Season|Bowl|Series)\b"
)
PERSON = re.compile(rf"[{_CAPITAL}][\w’'\-]+(?: [{_CAPITAL}]\.)?(?: [{_CAPITAL}][\w’'\-]+){{1,2}}")
WHERE = re.compile(r"\b(?:in|near|from|at) (?:the )?(?:[A-Z][\w ]+, )?$")
LONGER = re.compile(rf"\w| [{_CAPITAL}]")
DATE = re.compile(
    r"(?:\d{4} )?(?:January|February|March|April|May|June|July|August|September|October|November|December)(?: \d{1,4})?"
)
DEFINITION = re.compile(r"\b(?:is|was|are|were) (?:an?|the|one of the) ([^.,;()]{3,120})")


def names_in(sentence: str, known: frozenset[str] = frozenset(), topic: str = "") -> list[str]:
    """Names in order, without repeats. A single capitalised word that begins the sentence counts if it is `known`;
    `topic` counts wherever it stands, with small letters in it too."""
    places: list[tuple[int, str]] = []
    start = sentence.find(topic) if topic else -1
    while start >= 0:
        end = start + len(topic)
        if not LONGER.match(sentence, end) and not sentence[start - 1 : start].isalnum():
            places.append((start, topic))
            sentence = sentence[:start] + "·" * len(topic) + sentence[end:]
        start = sentence.find(topic, end)
    for match in QUOTED.finditer(sentence):
        title = next(filter(None, match.groups())).strip(" ,.;")
        if len(title.split()) <= 8 and ", " not in title and (title[:1].isupper() or UNSPACED.match(title)):
            places.append((match.start(), title))
            sentence = sentence[: match.start()] + "·" * len(match[0]) + sentence[match.end() :]
    for match in SPAN.finditer(sentence):
        name = _trimmed(match[0])
        if not name or name in NO_NAMES or len(name) < 2 or DATE.fullmatch(name):
            continue
        begins = not sentence[: match.start()].strip(" \"“'(«")
        if begins and " " not in name and name not in known and not name.isupper() and name == match[0].rstrip("."):
            continue
        if name.isupper() and sentence[: match.start()].endswith("(") and sentence[match.end() :].startswith(")"):
            continue  # the initials of what was just named
        places.append((match.start(), name))
    return list(dict.fromkeys(name for _, name in sorted(places)))


def has_capitals(text: str) -> bool:
    """Whether capitals can tell names: the script has two cases, and the text uses them."""
    letters = [letter for letter in text[:2000] if letter.isalpha()]
    cased = sum(letter.isupper() or letter.islower() for letter in letters)
    return bool(letters) and cased > 0.5 * len(letters) and any(letter.islower() for letter in letters)


def frequent_terms(text: str, limit: int = 12) -> list[str]:
    """For scripts without capitals: quoted titles, then what is said at least twice, longest stretches first."""
    quoted = [next(filter(None, groups)).strip() for groups in QUOTED.findall(text)]
    counts: Counter[str] = Counter()
    for run in WORD.findall(text):
        if UNSPACED.search(run):
            for size in range(2, 7):
                counts.update(run[i : i + size] for i in range(len(run) - size + 1))
        elif len(run) > 3 and run.lower() not in STOP:
            counts[run] += 1
    often = {term: n for term, n in counts.items() if n > 1 and not FUNCTION_LETTERS & {term[0], term[-1]}}
    whole = [t for t in often if not any(t != other and t in other and often[other] >= often[t] for other in often)]
    whole.sort(key=lambda term: (-often[term] * len(term), text.find(term)))
    return list(dict.fromkeys([*quoted, *whole]))[:limit]


def kind_of(name: str, context: str = "") -> str:
    """person, organisation, place, event, work, species or concept; `context` is a sentence about it."""
    about = context[context.find(name) + len(name) :] if name in context else ""
    stated = DEFINITION.search(about[:220])
    if stated and stated.start() < 120:
        for word in reversed(
            re.split(r"\b(?:of|in|for|by|from|who|that|which|directed|written|based)\b", stated[1])[0].split()
        ):
            kind = KIND_OF_NOUN.get(word.lower().rstrip("s")) or KIND_OF_NOUN.get(word.lower())
            if kind:
                return kind
    for part in (name.rsplit(" ", 1)[-1], name):  # what a name ends in says most
        for pattern, kind in ((EVENT, "event"), (PLACE, "place"), (ORGANISATION, "organisation")):
            if pattern.search(part):
                return kind
    before = context.partition(name)[0] if name in context else ""
    if before.endswith(('"', "“", "«", "《", "「")):
        return "work"
    if WHERE.search(before[-80:]):
        return "place"
    if PERSON.fullmatch(name):
        return "person"
    return "concept"


def _trimmed(span: str) -> str:
    """Without words that are capital only because they begin the sentence, and without a possessive."""
    parts = span.split(" ")
    while parts and (parts[0] in OPENERS or parts[0] in ("of", "for", "de")):
        parts.pop(0)
    while parts and parts[-1].islower():
        parts.pop()
    if len(parts) == 2 and parts[0].isdigit() and parts[1] in NO_NAMES:
        return ""  # "1994 American"
    return re.sub(r"(['’]s|['’])$", "", " ".join(parts[:8])).strip(" .-,")
