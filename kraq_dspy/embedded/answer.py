"""Answers by quoting: the sentence nearest to the question, behind the one value that it has for it, if it has one."""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from itertools import zip_longest

from kraq_dspy.embedded.meaning import is_in, keys_of, vocabulary_of
from kraq_dspy.embedded.names import names_in
from kraq_dspy.embedded.table import with_rows_as_sentences
from kraq_dspy.embedded.told import telling
from kraq_dspy.embedded.value import BRACKETED, CLOSED, DATED, NOT, YEAR, value_in, verdict_in
from kraq_dspy.language.text import clipped, content_words, distinct, parted, sections, sentences
from kraq_dspy.language.told import is_english, language_of, language_of_question, plain_language
from kraq_dspy.language.vocabulary import NO_NAMES

UNKNOWN = "I do not know"
POINTS_BACK = re.compile(r"(?:He|She|It|They|His|Her|Its|Their|This|These|The [a-z]+)\b")
"""How a sentence begins that is about what its passage's title names."""
_NAME_OF_FILE = re.compile(
    r"_|^(?:README|NEWS|CHANGES|CHANGELOG|LICENSE|COPYING|AUTHORS|INSTALL|CONTRIBUTING|TODO|INDEX)$", re.IGNORECASE
)
_EITHER = re.compile(r"(?:[,:] |(?<=[a-z] )(?=[A-Z0-9\"“]))(?P<first>[^,:?]{1,60}?),? or (?P<second>[^,?]{1,60})\?*$")
"""A question for one of two that it names behind a comma or by a capital: "Which is older, the Oren or the Sila?"."""
_WHICH = re.compile(r"[^,:?]{0,40}\b(?:who|which|what|whose)\b", re.IGNORECASE)
_MORE = re.compile(r"\b(?:more|most|less|least|fewer|\w{2,}(?:er|est))\b(?! or)")
"""What compares by something that no plain rule reads."""
_BOTH = re.compile(r"\b(?:both|same|also|each|and)\b", re.IGNORECASE)
_NATION = re.compile(r"\b(?:nationality|country)\b", re.IGNORECASE)
_LATER = re.compile(
    r"\b(?:later|latest|younger|youngest|newer|(?:more|most) recent(?:ly)?|last|second)\b", re.IGNORECASE
)
_EARLIER = re.compile(r"\b(?:first|earlier|earliest|older|oldest|before)\b", re.IGNORECASE)
_HIGHER = re.compile(r"\b(?:higher|taller|longer|deeper)\b", re.IGNORECASE)
_LOWER = re.compile(r"\b(?:lower|shorter)\b", re.IGNORECASE)
_LENGTH = re.compile(r"(?<![\d,.])(\d[\d,.]*) ?(?:m|km|met(?:re|er)s?)\b")

MORE = 2
"""Words of the question that a second sentence must have and the first lacks."""
READ = 6
"""How many of the nearest sentences are read for a value."""
ENCODED = 6
"""How many of the nearest sentences the encoder sees: most of the time of an answer."""
TOLD = 12  # sentences of an account
EARLIER_ASKED = 0.5  # weight of a word that stands in an earlier question alone
KNOWN = 0.3  # share of a question's words, rare ones counted more, which passages in another language have to have

Similar = Callable[[str, Sequence[str]], Sequence[float]]
"""Similarities of a question to texts; the encoder's cosines, or zeros without one."""
_WITHIN = re.compile(r"In “(?P<title>[^”]+)”, ")
"""How a question says which text is meant."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """A sentence, the title of its passage, and how near it is to the question.

    `above` is what it goes on from: its heading, and the sentence before one that begins with "it" or "the".
    """

    text: str
    title: str
    passage: int
    score: float
    above: str = ""


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


def _within_named_text(question: str, passages: Sequence[str]) -> tuple[str, Sequence[str]]:
    """The question without the title that says where to read, and the passages that have this title, if there are."""
    within = _WITHIN.match(question)
    if within is None:
        return question, passages

    title, asked = within["title"].casefold(), question[within.end() :]
    titled = [passage for passage in passages if parted(passage)[0].strip().casefold() == title]
    return asked[:1].upper() + asked[1:], titled or passages


def _reply(question: str, passages: Sequence[str], similar: Similar) -> Reply | None:
    """Quote the nearest sentence that has a value, or else the nearest one and what goes on from it."""
    if question.isupper():
        question = question.lower()
    question, passages = _within_named_text(question, passages)
    evidence = nearest(question, passages, similar)
    if not evidence:
        return None

    language = _language(question, passages)
    question = last_question(question)
    if is_english(question, evidence[0].text):
        compared = _one_of_two(question, evidence, passages) or _of_both(question, passages)
        if compared is not None:
            return compared
        told = telling(question, [(part.text, _context_of(part)) for part in evidence], passages)
        if told is None:
            return None
        evidence = [*(evidence[place] for place in told), *(part for n, part in enumerate(evidence) if n not in told)]
        reply = _with_value(question, evidence)
        if reply is not None:
            return reply
    return Reply("", tuple(map(_alone, _chain(question, evidence, language))))


def _with_value(question: str, evidence: list[Evidence]) -> Reply | None:
    """The nearest sentence that has one value for the question, or plainly says yes or no to it; or the one that goes
    on from the nearest, if both together say what the question does. None if none does."""
    if CLOSED.match(question):
        verdict = verdict_in(question, evidence[0].text, evidence[0].title)
        return Reply(verdict, (_alone(evidence[0]),)) if verdict else None
    for part in evidence[:READ]:
        if span := value_in(question, part.text, part.title):
            return Reply(span, (_alone(part),))

    first, *others = _chain(question, evidence, "en")
    for second in others:
        told = f"{second.title}\n{first.title} {first.text}"
        if BRACKETED.sub("", second.title) in first.text and (span := value_in(question, second.text, told, DATED)):
            return Reply(span, (_alone(first), _alone(second)))
    return None


def _one_of_two(question: str, evidence: Sequence[Evidence], passages: Sequence[str]) -> Reply | None:
    """The one of two named things that is earlier, later or higher, or of which alone most words of the question are
    told; no value where neither decides, and None if the question names no two."""
    either = _EITHER.search(question) if _WHICH.match(question) else None
    if either is None:
        return None
    names = [name.strip(' "“”') for name in either.group("first", "second")]
    accounts = [_told_of(name, passages) or _telling_of(name, evidence) for name in names]
    shown = tuple(dict.fromkeys(account[0] for account in accounts if account)) or (_alone(evidence[0]),)

    for pattern, is_less, is_more in ((YEAR, _EARLIER, _LATER), (_LENGTH, _LOWER, _HIGHER)):
        wants_more = is_more.search(question) is not None
        if wants_more != (is_less.search(question) is not None):
            amounts = [_first_amount(pattern, account) for account in accounts]
            return Reply(_by_amount(names, amounts, wants_more=wants_more), shown)

    if _MORE.search(question):
        return Reply("", shown)
    beyond_names = set(content_words(question)) - {word for name in names for word in content_words(name)}
    counts = [_most_shared(beyond_names, account) for account in accounts]
    if counts[0] == counts[1]:
        return Reply("", shown)
    place = int(counts[1] > counts[0])
    return Reply(names[place], shown[place:][:1])


def _of_both(question: str, passages: Sequence[str]) -> Reply | None:
    """Whether both of two named things have most of what the question says, or one nationality; None for a question of
    another form, and where a passage of either is missing."""
    names = names_in(f"· {question.partition(' ')[2]}")[:2] if CLOSED.match(question) else []
    accounts = [_told_of(name, passages)[:2] for name in names]
    if len(accounts) < 2 or not all(accounts) or not _BOTH.search(question):
        return None

    first, second = (" ".join(account) for account in accounts)
    shown = tuple(dict.fromkeys(account[0] for account in accounts))
    if _NATION.search(question):
        shared = NO_NAMES & set(re.findall(r"\w+", first)) & set(re.findall(r"\w+", second))
        return Reply("yes" if shared else "no", shown)
    if NOT.search(f"{question} {first} {second}"):
        return Reply("", shown)

    asked = set(content_words(question)) - {word for name in names for word in content_words(name)}
    counts = [_most_shared(asked, [account]) for account in (first, second)]
    return Reply("yes" if min(counts) * 2 > len(asked) else "no", shown)


def _told_of(name: str, passages: Sequence[str]) -> list[str]:
    """The sentences of the passage that has the name for its title."""
    titled = (passage for passage in passages if _bare(parted(passage)[0]) == _bare(name))
    return next((sentences(parted(passage)[1]) for passage in titled), [])


def _bare(title: str) -> str:
    """The words of a title in small letters, without what tells it from others."""
    return " ".join(re.findall(r"\w+", BRACKETED.sub("", title.strip()).casefold())).removeprefix("the ")


def _by_amount(names: Sequence[str], amounts: Sequence[float], *, wants_more: bool) -> str:
    """The name with the larger or the smaller amount; "" where they do not differ, or one has none."""
    if not all(amounts) or amounts[0] == amounts[1]:
        return ""
    return names[int((amounts[0] < amounts[1]) == wants_more)]


def _first_amount(pattern: re.Pattern[str], account: Sequence[str]) -> float:
    """The least amount of the nearest sentence that has one; 0 if none has."""
    amounts = (pattern.findall(text) for text in account)
    return next((min(float(each.replace(",", "")) for each in found) for found in amounts if found), 0.0)


def _context_of(part: Evidence) -> str:
    """What stands above a sentence: the title of its passage, and what it goes on from."""
    return f"{part.title}\n{part.above}"


def _alone(part: Evidence) -> str:
    """The sentence so that it can stand alone: behind the title of its passage where it says "he" or "it" for that."""
    hides = POINTS_BACK.match(part.text) and is_subject(part.title) and BRACKETED.sub("", part.title) not in part.text
    return f"{part.title}: {part.text}" if hides else part.text


def is_subject(title: str) -> bool:
    """Whether a title may name what its text is about: no name of a file, which a text without a title has.

    >>> [is_subject(title) for title in ("Don Juan", "1920 (film)", "notes-2024", "Plan_B", "README")]
    [True, True, False, False, False]
    """
    title = BRACKETED.sub("", title)
    is_small = any(letter.islower() for letter in title) and not any(letter.isupper() for letter in title)
    return bool(title) and not is_small and not _NAME_OF_FILE.search(title)


def nearest(question: str, passages: Sequence[str], similar: Similar, count: int = 12) -> list[Evidence]:
    """Return up to `count` sentences, nearest first: rare shared words, the words of the title, and
    the encoder's opinion."""
    language = _language(question, passages)
    question_words = set(content_words(question, language))
    parts = _told(passages)
    last_words = set(content_words(last_question(question), language))
    sharing = _sharing_words(question_words, last_words, parts, count, language)
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
        nearness = sentence.score / highest + cosine
        rated.append(replace(sentence, score=nearness))

    rated.sort(key=lambda sentence: -sentence.score)
    return rated


def _language(question: str, passages: Sequence[str]) -> str:
    """The language whose small words say nothing; that of the question, unless the passages are in English."""
    text = " ".join(passages[:2])
    if plain := plain_language(question, text):
        return plain
    return "en" if language_of(text) == "en" else language_of_question(question, text)


@dataclass(frozen=True, slots=True)
class _Told:
    """A sentence, and what stands above it: the title of its passage, whose number this is, and the heading or the
    question that it follows."""

    text: str
    title: str
    passage: int
    heading: str
    before: str = ""


def _told(passages: Sequence[str]) -> list[_Told]:
    """The sentences of the passages. A heading is none, and a question is none, since they would answer a question with
    the same words; if there is nothing else, they are."""
    statements: list[_Told] = []
    for number, passage in enumerate(passages):
        title, body = parted(passage)
        before = ""
        for heading, own in sections(with_rows_as_sentences(body)):
            for text in _with_what_they_announce(own):
                statements.append(_Told(text, title, number, heading, before))
                before = text if not POINTS_BACK.match(text) else f"{before} {text}"

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


def last_question(question: str) -> str:
    """The last of several questions: a follow-up stands behind the question that it points to.

    >>> last_question("Who built the Tarn mill? And the Lind mill?")
    'And the Lind mill?'
    """
    return re.split(r"(?<=\?) (?=\S)", question.strip())[-1]


def _sharing_words(
    question_words: Set[str], last_words: Set[str], parts: Sequence[_Told], count: int, language: str
) -> list[Evidence]:
    """The sentences that share most with the question: a word weighs more the fewer have it, a little less where only
    the title or the heading has it, and half where only an earlier question has it."""
    words_in_text = [set(content_words(part.text, language)) for part in parts]
    words_above = [set(content_words(f"{part.title} {part.heading}", language)) for part in parts]
    all_words = [in_text | above for in_text, above in zip(words_in_text, words_above, strict=True)]
    weights = _weights(question_words, all_words)
    for word in weights.keys() - last_words:
        weights[word] *= EARLIER_ASKED

    sharing = []
    for part, in_text, in_all in zip(parts, words_in_text, all_words, strict=True):
        shared = question_words & in_all
        score = math.fsum(weights[word] if word in in_text else 0.8 * weights[word] for word in shared)
        if score:
            above = f"{part.heading}\n{part.before}" if POINTS_BACK.match(part.text) else part.heading
            sharing.append(Evidence(part.text, part.title, part.passage, score, above))

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

    known = math.fsum(weights.values())
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


def _telling_of(name: str, evidence: Sequence[Evidence]) -> list[str]:
    """The sentences that have the most words of the name, themselves or in their title."""
    words_of_name = set(content_words(name))
    shared = [len(words_of_name & set(content_words(f"{part.title} {part.text}"))) for part in evidence]
    most = max(shared, default=0)
    return [_alone(part) for part, count in zip(evidence, shared, strict=True) if count == most > 0]


def _most_shared(words: Set[str], parts: Sequence[str]) -> int:
    """How many of the words, or of others that mean the same, the sentence has that has the most of them."""
    return max((sum(is_in(keys_of(word), vocabulary_of(part)) for word in words) for part in parts), default=0)


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
