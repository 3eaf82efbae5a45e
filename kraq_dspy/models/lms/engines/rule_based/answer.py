"""Answers by pointing: the sentence nearest to the question, behind the words in it that the question asks for."""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from itertools import zip_longest

from kraq_dspy.language.names import kind_of, names_in
from kraq_dspy.language.other_languages import asked_in
from kraq_dspy.language.text import clipped, content_words, distinct, parted, sections, sentences, stem, words
from kraq_dspy.language.told import is_english, language_of, language_of_question
from kraq_dspy.language.vocabulary import MONTH, NO_NAMES, PEOPLE, STOP
from kraq_dspy.models.lms.engines.rule_based.exam.word_forms import base_of
from kraq_dspy.models.lms.engines.rule_based.yes_or_no import yes_or_no

UNKNOWN = "I do not know"
CLOSED = re.compile(
    r"^(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|may|might|must|should|am)(?:n[’']t)?\b",
    re.IGNORECASE,
)
EITHER = re.compile(
    r"(?i:^.*?\b(?:who|which|what|whose)\b).*?(?:[,:]\s|\s(?=(?:the )?[\"“]?[A-Z0-9]))(?P<a>[^,?]+?),? or (?P<b>[^?]+)"
)
DATE = re.compile(rf"\b(?:\d{{1,2}} )?{MONTH}(?: \d{{1,2}})?,? \d{{4}}\b|\b(?:1[0-9]|20)\d\d\b")
NUMBER = re.compile(
    r"\b(?:\d[\d,.]*\d|\d|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|million)\b"
)
YEAR = re.compile(r"\b(?:1[0-9]|20)\d\d\b")
BRACKETED = re.compile(r" \([^)]*\)$")
"""What tells two titles of one name apart."""
NAME_OF_FILE = re.compile(
    r"_|^(?:README|NEWS|CHANGES|CHANGELOG|LICENSE|COPYING|AUTHORS|INSTALL|CONTRIBUTING|TODO|INDEX)$", re.IGNORECASE
)
LATER = re.compile(r"\b(later|latest|younger|youngest|newer|more recent(ly)?|last|second)\b", re.IGNORECASE)
EARLIER = re.compile(r"\b(first|earlier|earliest|older|oldest|before)\b", re.IGNORECASE)
_COUNTED = re.compile(r"\bhow many (?:\w+ )?(\w+)|\b(population)\b|\bhow (?:much|old|long|tall|far|large|big)\b")
"""What asks for a number, and the things that are counted."""
POINTS_BACK = re.compile(r"(?:He|She|It|They|His|Her|Its|Their|This|These|The [a-z]+)\b")
"""How a sentence begins that is about what its passage's title names."""

WHEN_OR_WHERE = re.compile(
    r"(?:(?:and|but|so) )?(?:when|where) (?:was|were|is|are|did|does|do|has|have|had|will) (?:the )?(?P<rest>.+)",
    re.IGNORECASE,
)
THING_OF = re.compile(r"(?P<thing>[a-z-]+) (?:of|in|at) (?:the )?")
"""What stands before the name in "the bridge of Brandvik"."""
MAY_BE_SOMEBODY = re.compile(r"(?:er|or|ist|ian|man|ess|wife|husband|son|child|friend|king|queen|pope|head|star|band)$")
"""Words for who is somebody else than the name behind it says: "the author of Don Juan"."""
SAME_DEED = {
    "birth": "born", "birthplace": "born", "native": "born",
    "death": "die", "dead": "die", "kill": "die",
    "home": "live", "resident": "live", "reside": "live", "residence": "live",
    "marriage": "marry", "wedding": "marry", "foundation": "found", "opening": "open",
}  # fmt: skip
"""Words for what was done that other words say as well."""
SAYS_LITTLE = frozenset(("locat", "situat", "happen", "occur", "take", "plac", "come", "first"))
"""Words for what was done, folded, that a sentence which tells the place or the time may do without."""

MORE = 2
"""Words of the question that a second sentence must have and the first lacks."""
ENCODED = 6
"""How many of the nearest sentences the encoder sees: most of the time of an answer."""
TOLD = 12  # sentences of an account
KNOWN = 0.3  # share of a question's words, rare ones counted more, which passages in another language have to have
DEFINES = 1.0  # what a sentence is nearer that says what the thing is which a question in another language asks about

Similar = Callable[[str, Sequence[str]], Sequence[float]]
"""Similarities of a question to texts; the encoder's cosines, or zeros without one."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sentence, the title of its passage, and how near it is to the question."""

    text: str
    title: str
    passage: int
    score: float


@dataclass(frozen=True, slots=True)
class Reply:
    """What is answered in a word or a name, "" if nothing is sure, and the sentences that say so."""

    span: str
    support: tuple[str, ...]


def answer(question: str, passages: Sequence[str], similar: Similar) -> str:
    """The asked span and the sentence that supports it; "I do not know" when no word of the question is there.

    A second sentence comes along only if it goes on from a name that the first brings in, or where the question
    compares two things.
    """
    reply = _reply(question, passages, similar)
    if reply is None:
        return UNKNOWN

    text, span = " ".join(clipped(sentence, 60) for sentence in reply.support), reply.span
    if not span or text.lower().startswith(span.lower()):
        return text
    return f"{span[0].upper()}{span[1:].rstrip('.')}. {text}"


def short_answer(question: str, passages: Sequence[str], similar: Similar) -> tuple[str, str]:
    """(response, rationale) of a draft: the span alone if there is one, and the sentences that hold it."""
    reply = _reply(question, passages, similar)
    if reply is None:
        return UNKNOWN, "The passages share no word with the question."
    rationale = " ".join(clipped(sentence, 60) for sentence in reply.support)
    return reply.span or clipped(reply.support[0], 30), rationale


def _reply(question: str, passages: Sequence[str], similar: Similar) -> Reply | None:
    """Answer by the kind of the question: yes or no, one of two, or what a word asks for."""
    evidence = nearest(question, passages, similar)
    if not evidence:
        return None

    when_or_where = read_when_or_where(question)
    if when_or_where is not None:
        evidence = _telling_when_or_where(when_or_where, passages, evidence)
        if not evidence:
            return None

    first = evidence[0]
    if CLOSED.match(question) and is_english(question, first.text):
        verdict, supporting = yes_or_no(question, passages, f"{first.title}: {first.text}")
        return Reply(verdict, supporting or (_alone(first),))
    if either := EITHER.match(question):
        return _of_two(question, either["a"].strip(' "“”'), either["b"].strip(' "“”'), evidence)

    chain = _chain(question, evidence, _language(question, passages))
    of_same_passage = [[part] for part in evidence[1:] if part.passage == first.passage]
    for support in (chain, *of_same_passage):
        span = _span(question, support)
        if span:
            return Reply(span, tuple(map(_alone, support)))
    return Reply("", tuple(map(_alone, chain)))


@dataclass(frozen=True, slots=True)
class WhenOrWhere:
    """What a question asks the time or the place of: of whom or what, and the words for what was done, folded."""

    subject: str
    deed: frozenset[str]


def read_when_or_where(question: str) -> WhenOrWhere | None:
    """Read a question for the time or the place of one named thing; None for any other, which may take two steps.

    >>> read_when_or_where("Where was Rick Ross born?")
    WhenOrWhere(subject='Rick Ross', deed=frozenset({'born'}))
    >>> read_when_or_where("Where was the author of Don Juan born?") is None
    True
    """
    asks = WHEN_OR_WHERE.match(question)
    names = names_in(question)
    if asks is None or len(names) != 1:
        return None

    before, _, after = asks["rest"].partition(names[0])
    is_thing_of = THING_OF.fullmatch(before)
    if before and (is_thing_of is None or MAY_BE_SOMEBODY.search(is_thing_of["thing"])):
        return None

    said_of_subject = re.sub(r"^[’']s\b", "", after)
    return WhenOrWhere(names[0], frozenset(_folded(said_of_subject) - SAYS_LITTLE))


def _telling_when_or_where(asked: WhenOrWhere, passages: Sequence[str], evidence: Sequence[Evidence]) -> list[Evidence]:
    """Return the sentences, first those that tell what the question asks. These are about the
    subject, by name or as he, she or it in a passage that names it, and have a word for the
    action. Without any such there is no answer: the others tell something else."""
    words_of_subject = re.findall(r"\w+", asked.subject)
    last_word = re.compile(rf"\b{words_of_subject[-1]}\b", re.IGNORECASE)
    naming = {number for number, passage in enumerate(passages) if last_word.search(passage)}

    telling: list[Evidence] = []
    others: list[Evidence] = []
    for part in evidence:
        is_named = last_word.search(f"{part.title} {part.text}")
        is_pointed_at = part.passage in naming and POINTS_BACK.match(part.text)
        tells_deed = not asked.deed or not asked.deed.isdisjoint(_folded(part.text))
        tells = (is_named or is_pointed_at) and tells_deed
        (telling if tells else others).append(part)
    return [*telling, *others] if telling else []


def _folded(text: str) -> set[str]:
    """The content words of a text, so that "died", "dies" and "death" are one, as are "born" and "birthplace"."""
    folded = set()
    for word in words(text):
        if word not in STOP:
            base = base_of(word) or word
            folded.add(stem(SAME_DEED.get(base, base)))
    return folded


def _alone(part: Evidence) -> str:
    """The sentence so that it can stand alone: behind the title of its passage where it says "he" or "it" for that."""
    hides = POINTS_BACK.match(part.text) and is_subject(part.title) and BRACKETED.sub("", part.title) not in part.text
    return f"{part.title}: {part.text}" if hides else part.text


def is_subject(title: str) -> bool:
    """Whether a title may name what its text is about. A text without a title has its file's name.
    That says nothing about it if it is in lower case, has marks of a file's name, or is common in
    any project.

    >>> [is_subject(title) for title in ("Don Juan", "1920 (film)", "notes-2024", "utf16", "Plan_B", "README")]
    [True, True, False, False, False, False]
    """
    title = BRACKETED.sub("", title)
    is_small = any(letter.islower() for letter in title) and not any(letter.isupper() for letter in title)
    return bool(title) and not is_small and not NAME_OF_FILE.search(title)


def nearest(question: str, passages: Sequence[str], similar: Similar, count: int = 12) -> list[Evidence]:
    """Return up to `count` sentences, nearest first: rare shared words, the words of the title, and
    the encoder's opinion."""
    language = _language(question, passages)
    question_words = set(content_words(question, language))
    parts = _told(passages)
    sharing = _sharing_words(question_words, parts, count, language)
    if not sharing:
        return []
    if language != "en" and _share_known(question_words, parts, language) < KNOWN:
        return []

    encoded_texts = []
    for sentence in sharing[:ENCODED]:
        encoded_texts.append(f"{sentence.title}: {sentence.text}" if sentence.title else sentence.text)
    cosines = [float(cosine) for cosine in similar(question, encoded_texts)]
    cosines += [min(cosines)] * (len(sharing) - len(cosines))

    highest = sharing[0].score
    rated = []
    for sentence, cosine in zip(sharing, cosines, strict=True):
        defines = _defines(sentence.text, question, language)
        nearness = sentence.score / highest + cosine + DEFINES * defines
        rated.append(Evidence(sentence.text, sentence.title, sentence.passage, nearness))

    rated.sort(key=lambda sentence: -sentence.score)
    return rated


def _language(question: str, passages: Sequence[str]) -> str:
    """The language whose small words say nothing; that of the question, unless the passages are in English."""
    text = " ".join(passages[:2])
    return "en" if language_of(text) == "en" else language_of_question(question, text)


@dataclass(frozen=True, slots=True)
class _Told:
    """A sentence, and what stands above it: the title of its passage, whose number this is, and the heading or the
    question that it follows."""

    text: str
    title: str
    passage: int
    heading: str


def _told(passages: Sequence[str]) -> list[_Told]:
    """The sentences of the passages. A heading is none, and a question is none, since they would answer a question with
    the same words; if there is nothing else, they are."""
    statements: list[_Told] = []
    for number, passage in enumerate(passages):
        title, body = parted(passage)
        for heading, own in sections(body):
            statements += [_Told(text, title, number, heading) for text in _with_what_they_announce(own)]

    answers = [part for part in statements if not part.text.endswith("?")]
    if answers or statements:
        return answers or statements

    for number, passage in enumerate(passages):
        statements += [_Told(text, "", number, "") for text in sentences(passage)]
    return statements


def _with_what_they_announce(texts: Sequence[str]) -> list[str]:
    """The sentences, with what follows behind those that end with a colon.

    >>> _with_what_they_announce(["Debian is:", "a system of free software.", "It is old."])
    ['Debian is: a system of free software.', 'a system of free software.', 'It is old.']
    """
    whole = []
    for text, following in zip_longest(texts, texts[1:], fillvalue=""):
        announces = text.endswith(":") and following
        whole.append(f"{text} {following}" if announces else text)
    return whole


def _defines(sentence: str, question: str, language: str) -> bool:
    """Whether a sentence in another language than English says what the thing is that the question asks about.

    >>> _defines("dpkg ist ein Programm für Pakete.", "Was ist dpkg?", "de")
    True
    """
    if language == "en":
        return False
    begun_large = sentence[:1].upper() + sentence[1:]  # names of programs begin small
    return asked_in(language, [], [begun_large]).casefold() == question.strip().casefold()


def _sharing_words(question_words: Set[str], parts: Sequence[_Told], count: int, language: str) -> list[Evidence]:
    """The sentences that share most with the question: a word weighs more the fewer have it, and a
    little less where only the title or the heading has it."""
    words_in_text = [set(content_words(part.text, language)) for part in parts]
    words_above = [set(content_words(f"{part.title} {part.heading}", language)) for part in parts]
    all_words = [in_text | above for in_text, above in zip(words_in_text, words_above, strict=True)]
    weights = _weights(question_words, all_words)

    sharing = []
    for part, in_text, in_all in zip(parts, words_in_text, all_words, strict=True):
        score = 0.0
        for word in question_words & in_all:
            weight = weights.get(word, 0.0)
            score += weight if word in in_text else 0.8 * weight
        if score:
            sharing.append(Evidence(part.text, part.title, part.passage, score))

    sharing.sort(key=lambda sentence: -sentence.score)
    return sharing[:count]


def _weights(question_words: Set[str], bags: Sequence[Set[str]]) -> dict[str, float]:
    """What each word of the question weighs, by the words of each sentence: more, the fewer have it."""
    sentences_with: Counter[str] = Counter()
    for bag in bags:
        sentences_with.update(bag & question_words)
    return {word: math.log(1 + len(bags) / count) for word, count in sentences_with.items()}


def _share_known(question_words: Set[str], parts: Sequence[_Told], language: str) -> float:
    """How much of the question, by weight, the sentences have at all.

    A word that they lack weighs as much as a word that stands in one of them.
    """
    words_of_parts = [set(content_words(f"{part.title} {part.heading} {part.text}", language)) for part in parts]
    weights = _weights(question_words, words_of_parts)

    known = sum(weights.values())
    lacking = (len(question_words) - len(weights)) * math.log(1 + len(parts))
    return known / (known + lacking)


def _chain(question: str, evidence: list[Evidence], language: str) -> list[Evidence]:
    """Return the nearest sentence and one that continues it. The second is about a name that the
    first introduces, or it adds a name or two words of the question."""
    first = evidence[0]
    question_words = set(content_words(question, language))
    words_not_in_first = question_words - set(content_words(f"{first.title} {first.text}", language))
    fresh = [name for name in names_in(first.text) if name not in question]
    unnamed = [name for name in names_in(question) if name not in f"{first.title} {first.text}"]

    def goes_on(part: Evidence) -> bool:
        title = BRACKETED.sub("", part.title)
        return bool(title) and any(
            name == title or (" " in name and title.startswith(name)) or (" " in title and title in name)
            for name in fresh
        )

    def new_words(part: Evidence) -> int:
        return len(words_not_in_first & set(content_words(f"{part.title} {part.text}", language)))

    def tells_more(part: Evidence) -> bool:
        return new_words(part) >= MORE or (new_words(part) > 0 and any(name in part.text for name in unnamed))

    def gain(part: Evidence) -> float:
        near = part.score + new_words(part) / (len(words_not_in_first) or 1) - 0.3 * (part.passage == first.passage)
        return near + 0.5 * goes_on(part)

    others = [part for part in evidence[1:] if goes_on(part) or tells_more(part)]
    return [first, *sorted(others, key=lambda part: -gain(part))[:1]]


def _span(question: str, support: list[Evidence]) -> str:
    """A date, a number, a person or a place of the sentences, whichever the question asks for; ""
    for anything else."""
    lowered = question.lower()
    text = " ".join(part.text for part in support)

    asks_year = re.search(r"\b(what|which) year\b", lowered)
    asks_date = re.search(r"\b(what|which) (date|day|month)\b", lowered)
    if asks_year or asks_date or _asks(question, "when"):
        dates = YEAR.findall(text) if asks_year else DATE.findall(text)
        return next((date for date in dates if date not in question), "")

    counted = _COUNTED.search(lowered)
    if counted:
        things = counted[1] or counted[2] or ""
        return _number(question, things, [part.text for part in support])

    if _asks(question, "who(?:m|se)?"):
        return _named(question, "person", support)
    if _asks(question, "where"):
        return _named(question, "place", support)
    return ""


def _named(question: str, kind: str, support: Sequence[Evidence]) -> str:
    """The first person or place that the sentences name and the question does not; "" for none."""
    lowered = question.lower()
    text = " ".join(part.text for part in support)
    for name in _names_of(support):
        if name.lower() in lowered or not NO_NAMES.isdisjoint(re.split(r"[\s-]", name)):
            continue
        first, _, others = name.partition(" ")
        bare = others if first.lower() in PEOPLE else name
        if kind_of(bare, text) == kind and (kind == "place" or " " in name):
            return name
    return ""


def _names_of(support: Sequence[Evidence]) -> dict[str, None]:
    """The titles and the names of the sentences, in order, without what tells namesakes apart."""
    names: dict[str, None] = {}
    for part in support:
        titles = [part.title] if part.title else []
        for name in (*titles, *names_in(part.text)):
            names[BRACKETED.sub("", name)] = None
    return names


def _number(question: str, things: str, texts: Sequence[str]) -> str:
    """A number that is no year: of the things that are counted, if they are named, in the same sentence."""
    for text in texts:
        for match in NUMBER.finditer(text):
            after = content_words(" ".join(text[match.end() :].split()[:4]))
            named = "population" in text.lower() if things == "population" else stem(things) in after
            fits = named or not things
            if fits and not YEAR.fullmatch(match[0]) and match[0] not in question:
                return match[0]
    return ""


def _asks(question: str, word: str) -> bool:
    """Whether the question word leads the question or a part of it, rather than a clause about something in it."""
    return bool(re.search(rf"(?:^|[,;:] (?:but |and |so )?|^[a-z]+ ){word}\b", question.strip(), re.IGNORECASE))


def _of_two(question: str, first: str, second: str, evidence: list[Evidence]) -> Reply:
    """Choose from two named things the one with the date or number that fits the comparison,
    otherwise the one nearer to the question. Without dates and numbers, return the nearest
    sentence."""
    about_first = _telling_of(first, evidence)
    about_second = _telling_of(second, evidence)
    dated_first = _with_year(about_first)
    dated_second = _with_year(about_second)

    asks_later, asks_earlier = LATER.search(question), EARLIER.search(question)
    if dated_first and dated_second and (asks_later or asks_earlier):
        first_is_later = _first_year(dated_first) > _first_year(dated_second)
        wants_later = bool(asks_later) and not asks_earlier
        chosen = first if first_is_later == wants_later else second
        return Reply(chosen, (_alone(dated_first[0]), _alone(dated_second[0])))

    names = {*content_words(first), *content_words(second)}
    beyond_names = set(content_words(question)) - names
    if _most_shared(beyond_names, about_first) >= _most_shared(beyond_names, about_second):
        chosen, about = first, about_first
    else:
        chosen, about = second, about_second

    if not about:
        return Reply("", (_alone(evidence[0]),))
    return Reply(chosen, (_alone(about[0]),))


def _telling_of(name: str, evidence: Sequence[Evidence]) -> list[Evidence]:
    """The sentences that have the most words of the name, themselves or in their title."""
    words_of_name = set(content_words(name))
    shared = [len(words_of_name & set(content_words(f"{part.title} {part.text}"))) for part in evidence]
    most = max(shared, default=0)
    return [part for part, count in zip(evidence, shared, strict=True) if count == most > 0]


def _with_year(parts: Sequence[Evidence]) -> list[Evidence]:
    return [part for part in parts if YEAR.search(part.text)]


def _first_year(parts: Sequence[Evidence]) -> int:
    return min(int(year) for part in parts for year in YEAR.findall(part.text))


def _most_shared(words: Set[str], parts: Sequence[Evidence]) -> int:
    """How many of the words the sentence has that has the most of them."""
    return max((len(words & set(content_words(part.text))) for part in parts), default=0)


def rated_points(question: str, reports: list[str], similar: Similar) -> list[dict[str, object]]:
    """Return up to five sentences of the reports; a sentence without a word of the question is
    none. Titles that only list names (our own) are left out."""
    evidence = nearest(question, reports, similar, count=5)
    return [
        {
            "point": part.text if not part.title or "; " in part.title else f"{part.title}: {part.text}",
            "importance": max(1, min(100, round(50 * part.score))),
        }
        for part in evidence
    ]


def account(question: str, texts: list[str], similar: Similar) -> str:
    """The sentences nearest to the question, nearest first, with their titles; "" if no word of it occurs. Titles
    that only list names (our own) are left out."""
    lines = []
    for part in nearest(question, texts, similar, count=TOLD):
        known = not part.title or "; " in part.title or part.title in part.text
        lines.append(part.text if known else f"{part.title}: {part.text}")
    return "\n".join(distinct(lines))
