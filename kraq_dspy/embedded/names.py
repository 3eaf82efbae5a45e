"""Finds names in text, and what kind of thing they name: by capitals in scripts that have them, else by frequency."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from kraq_dspy.language.text import UNPARTED, UNSPACED, WORD
from kraq_dspy.language.vocabulary import (
    COMMON,
    FUNCTION_LETTERS,
    FUNCTION_WORDS,
    KIND_OF_NOUN,
    LEADERS,
    MONTH,
    NO_NAMES,
    OPENERS,
    STOP,
)

_BLANK = "·"  # stands where a name was taken out of a sentence
_CAPITAL = "A-ZÀ-ÖØ-ÞĀ-ŽΑ-ΩА-ЯЁ"
_TITLE_OF_PERSON = r"(?:St|Mt|Dr|Mr|Mrs|Ms|Gen|Col|Lt|Sgt|Capt|Rev|Prof|Sen|Rep|Gov)\."
_PART = (
    rf"(?:{_TITLE_OF_PERSON}(?= [{_CAPITAL}])|(?:[{_CAPITAL}]\.){{1,4}}(?= [{_CAPITAL}])|[{_CAPITAL}][\w’'\-.&]*\w"
    rf"|[{_CAPITAL}]\.?)"
)
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
PERSON = re.compile(rf"[{_CAPITAL}][\w’'\-]{{1,60}}+(?: [{_CAPITAL}]\.)?(?: [{_CAPITAL}][\w’'\-]{{1,60}}){{1,2}}")
REFERENCE = re.compile(
    r"\b(?:BIB|TAB|FIG|SEC|EQ)REF\d*\b|\bINLINEFORM\d*\b|\b(?:Table|Figure|Fig|Section|Sections|Sec|Appendix|Eq|Equation|"
    r"Chapter|Step|Week|Day|Part|Page|Vol)\.? ?\d[\w.]*|\b[A-Z]\.\d+\b|https?://\S+|\bwww\.\S+|(?<!\w)[@#]\w+|"
    r"\[\d+(?:, ?\d+)*\]|\$[^$\n]{1,80}\$"
)
"""What points to another place in a text, or out of it; formulas too."""
COMPOUND = re.compile(
    r"[\w.]+[-‐–](?:[a-z]+(?:ed|ing)|made|led|born|based|style|like|wide|free|only|era|driven|to|in|of|on)"
)
"""What stands before a noun and is made of a name: AI-powered."""
SHOUTED = re.compile(r"\b[A-Z][A-Z’']+(?:[ ,;:!]+[A-Z][A-Z’'\-]+){2,}\b")
CONTRACTION = re.compile(r"(?:I|You|He|She|It|We|They|That|There|What|Who|Let|Here)[’'-]|I$|\w+n[’']t\b", re.IGNORECASE)
SHORT_INITIALS = re.compile(r"(?!U\.S|U\.K|U\.N|E\.U|D\.C|L\.A|N\.Y)[A-Z]\.[A-Z]\.?")
INITIALS = re.compile(r"(?:[A-Z]\.)+[A-Z]$")
WHERE = re.compile(r"\b(?:in|near|from|at) (?:the )?(?:[A-Z][\w ]+, )?$")
LONGER = re.compile(rf"\w| [{_CAPITAL}]")
DATE = re.compile(rf"(?:\d{{4}} )?{MONTH}(?: \d{{1,4}})?")
DEFINITION = re.compile(r"\b(?:is|was|are|were) (?:an?|the|one of the) ([^.,;()]{3,120})")


def names_in(sentence: str, known: frozenset[str] = frozenset(), topic: str = "") -> list[str]:
    """Names in order, without repeats. A single capitalised word that begins the sentence counts if
    it is `known`; `topic` counts wherever it stands, with small letters in it too."""
    for aside in (REFERENCE, SHOUTED):
        sentence = aside.sub(lambda match: _BLANK * len(match[0]), sentence)

    topics, sentence = _take_topic(sentence, topic)
    titles, sentence = _take_titles(sentence)
    names = _capitalised_names(sentence, known)

    in_order = sorted([*topics, *titles, *names])
    return list(dict.fromkeys(name for _, name in in_order if name))


def _take_topic(sentence: str, topic: str) -> tuple[list[tuple[int, str]], str]:
    """Find where the topic stands as whole words, and blank it out of the sentence there."""
    places: list[tuple[int, str]] = []
    start = sentence.find(topic) if topic else -1
    while start >= 0:
        end = start + len(topic)
        if not LONGER.match(sentence, end) and not sentence[start - 1 : start].isalnum():
            places.append((start, topic))
            sentence = _blanked(sentence, start, end)
        start = sentence.find(topic, end)
    return places, sentence


def _take_titles(sentence: str) -> tuple[list[tuple[int, str]], str]:
    """Find the titles that stand in quotes, and blank them out of the sentence."""
    places: list[tuple[int, str]] = []
    for match in QUOTED.finditer(sentence):
        title = next(filter(None, match.groups())).strip(" ,.;")
        if _BLANK not in title and _is_title(title):
            places.append((match.start(), title))
            sentence = _blanked(sentence, match.start(), match.end())
    return places, sentence


def _capitalised_names(sentence: str, known: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Yield the names that capitals tell, each with its place in the sentence."""
    for match in SPAN.finditer(sentence):
        name = _trimmed(match[0])
        if not name or name in NO_NAMES or DATE.fullmatch(name) or not _names_something(name):
            continue

        before, after = sentence[: match.start()], sentence[match.end() :]
        is_plain_word = " " not in name and not name.isupper() and name == match[0].rstrip(".")
        begins_sentence = not before.strip(" \"“'(«")
        if begins_sentence and is_plain_word and name not in known:
            continue  # its capital may be the sentence's

        repeats_initials = name.isupper() and before.endswith("(") and after.startswith(")")
        if not repeats_initials:
            yield match.start(), name


def _blanked(sentence: str, start: int, end: int) -> str:
    return sentence[:start] + _BLANK * (end - start) + sentence[end:]


def is_name(title: str) -> bool:
    """Whether a title is a name rather than a headline: short, its longer words with capitals, no clause."""
    parts = title.split()
    longer = [part for part in parts if len(part) > 3 and part[0].isalpha()] or parts
    return 0 < len(parts) <= 6 and all(part[0].isupper() for part in longer) and not re.search(r"[?!:]| - ", title)


def without_words(names: Iterable[str], text: str) -> list[str]:
    """Return those that are no common word of the text: "Rank" names nothing if "rank" is a word
    like others."""
    small = _small_words(text)
    return [name for name in names if name and (" " in name or not name.istitle() or name.lower() not in small)]


@lru_cache(maxsize=4)
def _small_words(text: str) -> frozenset[str]:
    return frozenset(word for word in WORD.findall(text) if word.islower())


def has_capitals(text: str) -> bool:
    """Whether capitals can tell names: the script has two cases, and the text uses them."""
    letters = "".join(filter(str.isalpha, text[:2000]))
    small, large = sum(map(str.islower, letters)), sum(map(str.isupper, letters))
    return small > 0 and small + large > 0.5 * len(letters)


def frequent_terms(text: str, limit: int = 12) -> list[str]:
    """Find the terms of scripts without capitals: quoted titles, then what is said at least twice,
    longest stretches first.

    Stretches of letters in Chinese and Japanese, of up to three words where words are apart; nothing
    in Thai and other scripts that part no words and tell no names.
    """
    quoted = [next(filter(None, groups)).strip() for groups in QUOTED.findall(text)]

    counts: Counter[str] = Counter()
    for sentence in re.split(r"[\n.!?;:,،؛؟।]+", text):
        words = WORD.findall(sentence)
        counts.update(_stretches_of_letters(words))
        counts.update(_terms_of_words(words))

    repeated = {}
    for term, count in counts.items():
        if count > 1 and FUNCTION_LETTERS.isdisjoint({term[0], term[-1]}):
            repeated[term] = count

    whole = [term for term in repeated if not _is_part_of_another(term, repeated)]
    whole.sort(key=lambda term: (-repeated[term] * len(term), text.find(term)))
    return list(dict.fromkeys([*quoted, *whole]))[:limit]


def _stretches_of_letters(words: Sequence[str]) -> Iterator[str]:
    """Yield the stretches of two to six letters, of scripts that put no spaces between words."""
    for run in filter(UNSPACED.search, words):
        if UNPARTED.search(run):
            continue
        for size in range(2, 7):
            for start in range(len(run) - size + 1):
                yield run[start : start + size]


def _terms_of_words(words: Sequence[str]) -> Iterator[str]:
    """Yield what one to three words that stand together may name."""
    for size in range(1, 4):
        for start in range(len(words) - size + 1):
            term = _term(words[start : start + size])
            if term:
                yield term


def _is_part_of_another(term: str, counts: Mapping[str, int]) -> bool:
    """Whether a longer term that is said at least as often has this one inside."""
    return any(term != other and term in other and counts[other] >= counts[term] for other in counts)


def _term(row: Sequence[str]) -> str:
    """Words that may name something together; "" for those that begin or end with a word that names nothing."""
    if any(UNSPACED.search(word) or word.isdigit() for word in row):
        return ""
    edges = {row[0].lower(), row[-1].lower()}
    shortest = 4 if row[0].isascii() else 3
    return " ".join(row) if edges.isdisjoint(STOP | FUNCTION_WORDS) and len(" ".join(row)) >= shortest else ""


def kind_of(name: str, context: str = "") -> str:
    """person, organisation, place, event, work, species or concept; `context` is a sentence about it.

    >>> kind_of("Ada Byron"), kind_of("", "Nothing is left of a name of brackets alone.")
    ('person', 'concept')
    """
    if not name:
        return "concept"
    before, is_there, about = context.partition(name)
    stated = _defined_kind(about) or _kind_by_form(name) or _kind_by_place(before if is_there else "")
    return stated or ("person" if PERSON.fullmatch(name) else "concept")


def _defined_kind(about: str) -> str:
    """What the words behind a name say that it is ("is a small town in"); "" if they do not."""
    stated = DEFINITION.search(about[:220])
    if stated is None or stated.start() >= 120:
        return ""
    nouns = re.split(r"\b(?:of|in|for|by|from|who|that|which|directed|written|based)\b", stated[1])[0].split()
    kinds = (KIND_OF_NOUN.get(word.lower().rstrip("s")) or KIND_OF_NOUN.get(word.lower()) for word in reversed(nouns))
    return next(filter(None, kinds), "")


def _kind_by_form(name: str) -> str:
    """What the words of a name say, most of all what it ends in; "" if they say nothing."""
    for part in (name.rsplit(" ", 1)[-1], name):
        for pattern, kind in ((EVENT, "event"), (PLACE, "place"), (ORGANISATION, "organisation")):
            if pattern.search(part):
                return kind
    return ""


def _kind_by_place(before: str) -> str:
    """What the words before a name say; "" if they say nothing."""
    if before.endswith(('"', "“", "«", "《", "「")):
        return "work"
    return "place" if WHERE.search(before[-80:]) else ""


def _is_title(quoted: str) -> bool:
    """Whether what stands in quotes is a title rather than something that was said: its longer words have capitals."""
    if UNSPACED.match(quoted):
        return True

    parts = quoted.split()
    longer = [part for part in parts if len(part) > 3 and part[0].isalpha()] or parts
    return (
        len(parts) <= 8
        and ", " not in quoted
        and quoted[:1].isupper()
        and all(part[0].isupper() for part in longer)
        and not CONTRACTION.match(quoted)
        and not quoted.endswith(("!", "?", "…"))
        and (len(parts) == 1 or not quoted.isupper())
    )


def _names_something(name: str) -> bool:
    """No common word, contraction, number or shouted word that has a capital for another reason
    than being a name."""
    if _has_no_letters_of_a_name(name) or _has_many_codes(name):
        return False

    words = [part.strip(".,-’'").lower() for part in name.split()]
    if len(words) == 1 and (COMPOUND.fullmatch(name) or (len(name) == 2 and name[1].islower())):
        return False
    if all(_is_common(word, alone=len(words) == 1) for word in words):
        return False

    if name.isupper() and not any(letter.isdigit() for letter in name):
        return _is_acronym(name, words)
    return True


def _has_no_letters_of_a_name(name: str) -> bool:
    letters = sum(letter.isalpha() for letter in name)
    return letters < 2 or "_" in name or CONTRACTION.match(name) is not None


def _has_many_codes(name: str) -> bool:
    """Whether more than two of its words are capitals or digits alone, or it is two initials."""
    codes = 0
    for part in name.split():
        if part.isdigit() or (part.isupper() and part[-1] != "."):
            codes += 1
    return codes > 2 or SHORT_INITIALS.fullmatch(name) is not None


def _is_common(word: str, *, alone: bool) -> bool:
    common = COMMON if alone else LEADERS
    return word in common or word in STOP or word.isdigit()


def _is_acronym(name: str, words: Sequence[str]) -> bool:
    """Whether capitals throughout are those of a name, rather than of words that are shouted."""
    if len(words) > 1:
        return not any(word in STOP or word in COMMON for word in words)
    return len(name) <= 6 or "." in name or "&" in name


def _trimmed(span: str) -> str:
    """Trim a name of a possessive, of words that are capital only because they begin the sentence,
    and of what follows where one sentence ran into the next."""
    parts = span.split(" ")
    while parts and _leads_up(parts[0]):
        parts.pop(0)

    for place, part in enumerate(parts):
        if place and part in OPENERS:  # of the next sentence
            parts = parts[:place]
            break
    while parts and parts[-1].islower():
        parts.pop()

    parts = _without_doubled(parts)
    if len(parts) == 2 and parts[0].isdigit() and parts[1] in NO_NAMES:
        return ""  # "1994 American"
    name = re.sub(r"(['’]s( \d+)?|['’])$", "", " ".join(parts[:8])).strip(" .-,")
    return f"{name}." if INITIALS.fullmatch(name) else name


def _leads_up(part: str) -> bool:
    """Whether the word has its capital from the sentence that it begins, or joins two names."""
    return part.rstrip(".") in OPENERS or part in ("of", "for", "de") or part.lower() in LEADERS


def _without_doubled(parts: Sequence[str]) -> list[str]:
    """Drop words that repeat the word before them, but for short ones."""
    single = []
    for place, part in enumerate(parts):
        is_doubled = place > 0 and part == parts[place - 1]
        if len(part) < 3 or not is_doubled:
            single.append(part)
    return single
