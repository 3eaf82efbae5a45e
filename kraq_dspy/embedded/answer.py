"""Answers by pointing: the sentence nearest to the question, behind the words in it that the question asks for."""

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, replace
from itertools import zip_longest

from kraq_dspy.embedded.asking.other_languages import asked_in
from kraq_dspy.embedded.evidence import POINTS_BACK, Evidence, alone, context_of
from kraq_dspy.embedded.names import names_in
from kraq_dspy.embedded.short_answers.comparison import (
    comparative_in,
    kinds_compared,
    says_measure,
    stated,
    two_named,
    wants_less,
)
from kraq_dspy.embedded.short_answers.described import Telling, described_in
from kraq_dspy.embedded.short_answers.german import AskedInGerman, is_told_in_german, read_german, short_in_german
from kraq_dspy.embedded.short_answers.meaning import is_in, keys_of, vocabulary_of
from kraq_dspy.embedded.short_answers.question import CLOSED, Asked, read
from kraq_dspy.embedded.short_answers.sense import sense_of
from kraq_dspy.embedded.short_answers.short import BRACKETED, only_value, short_answer_in, sizes_in
from kraq_dspy.embedded.short_answers.table import cell_in, with_rows_as_sentences
from kraq_dspy.embedded.short_answers.told import is_told
from kraq_dspy.embedded.when_or_where import telling_when_or_where
from kraq_dspy.embedded.yes_or_no import yes_or_no
from kraq_dspy.language.text import clipped, content_words, distinct, parted, sections, sentences
from kraq_dspy.language.told import is_english, language_of, language_of_question, plain_language

UNKNOWN = "I do not know"
THAN = re.compile(
    r"^(?:is|are|was|were|does|do|did) (?P<first>[^,?]+?) (?:(?:cost|weigh|take|last|go|run|rise|reach)s? )?"
    r"(?:much |far )?(?:more |less )?(?:\w+er|more|less|fewer|\w+) than (?P<second>[^,?\d]+)\?*$",
    re.IGNORECASE,
)
"""A question whether one thing is more so than another."""
LATER = re.compile(
    r"\b(later|latest|younger|youngest|newer|more recent(ly)?|most recent(ly)?|last|second)\b", re.IGNORECASE
)
EARLIER = re.compile(r"\b(first|earlier|earliest|older|oldest|before)\b", re.IGNORECASE)

MORE = 2
"""Words of the question that a second sentence must have and the first lacks."""
READ = 6
"""How many of the nearest sentences are read for a short answer."""
ENCODED = 6
"""How many of the nearest sentences the encoder sees: most of the time of an answer."""
TOLD = 12  # sentences of an account
EARLIER_ASKED = 0.5  # weight of a word that stands in an earlier question alone
ENTITLED = 2  # first sentences of a passage, which say what its title is
_OF_AGE = re.compile(r"\bage\b|\bliv(?:ed|es)\b")
"""What is asked for that no date tells."""
KNOWN = 0.3  # share of a question's words, rare ones counted more, which passages in another language have to have
DEFINES = 1.0  # what a sentence is nearer that says what the thing is which a question in another language asks about

Similar = Callable[[str, Sequence[str]], Sequence[float]]
"""Similarities of a question to texts; the encoder's cosines, or zeros without one."""
_WITHIN = re.compile(r"In “(?P<title>[^”]+)”, ")
"""How a question says which text is meant."""


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
    """Answer by the kind of the question: yes or no, one of two, or what a word asks for."""
    if question.isupper():
        question = question.lower()
    question, passages = _within_named_text(question, passages)
    evidence = telling_when_or_where(question, passages, nearest(question, passages, similar))
    if not evidence:
        return None

    language = _language(question, passages)
    question = last_question(question)
    readings = _Readings(
        read(question) if is_english(question, evidence[0].text) else None,
        read_german(question) if language == "de" else None,
    )
    if not _may_be_answered(readings, evidence, passages):
        return None
    reply = _pointed_at(question, passages, evidence, readings)
    return reply or _of_chain(readings.english, _chain(question, evidence, language))


@dataclass(frozen=True, slots=True)
class _Readings:
    """What a question asks for, as it is read in each language; None in one that it is not in."""

    english: Asked | None
    german: AskedInGerman | None


def _may_be_answered(readings: _Readings, evidence: Sequence[Evidence], passages: Sequence[str]) -> bool:
    """Whether the passages have the words without which nothing answers the question."""
    english, german = readings.english, readings.german
    if english is not None and not is_told(english, [(part.text, context_of(part)) for part in evidence], passages):
        return False
    return german is None or is_told_in_german(german, passages)


def _pointed_at(question: str, passages: Sequence[str], evidence: list[Evidence], readings: _Readings) -> Reply | None:
    """The verdict, the one of two, or the words that the question asks for; None if nothing is sure."""
    english, german = readings.english, readings.german
    reply = _verdict(question, passages, evidence) if english is not None else None
    reply = reply or _one_of_two(question, passages, evidence)
    if reply is None and english is not None:
        reply = _short_of_one(english, evidence) or _described(english, evidence)
    if reply is None and german is not None:
        reply = _short_in_german(german, evidence)
    return reply


def _one_of_two(question: str, passages: Sequence[str], evidence: list[Evidence]) -> Reply | None:
    """What is said of two things that the question names, by their own passages where no sentence compares them."""
    names = two_named(question)
    if not names:
        return None
    reply = _of_two(question, *names, evidence)
    by_titles = None if _is_stated(question, names, evidence) else _by_titles(question, names, passages)
    return by_titles or reply


def _verdict(question: str, passages: Sequence[str], evidence: list[Evidence]) -> Reply | None:
    """A yes or a no; None if the question wants another answer."""
    if compared := THAN.match(question):
        return _whether_more(question, compared["first"], compared["second"], evidence)
    if CLOSED.match(question):
        first = evidence[0]
        verdict, supporting = yes_or_no(question, passages, f"{first.title}: {first.text}")
        return Reply(verdict, supporting or (alone(first),))
    return None


def _short_of_one(asked: Asked, evidence: Sequence[Evidence]) -> Reply | None:
    """The short answer of the nearest sentence that has one."""
    for part in evidence[:READ]:
        if span := short_answer_in(asked, part.text, context_of(part), part.title) or _cell(asked, part):
            return Reply(span, (alone(part),))
    return None


def _cell(asked: Asked, part: Evidence) -> str:
    """The cell of a table's row that a question for a value asks for by row and column."""
    if not asked.kinds or asked.limits:
        return ""
    return cell_in(part.text, [word.lower() for word in re.findall(r"\w+", asked.question)])


def _short_in_german(asked: AskedInGerman, evidence: Sequence[Evidence]) -> Reply | None:
    """The short answer of the nearest German sentence that has one."""
    for part in evidence[:READ]:
        if span := short_in_german(asked, part.text, context_of(part)):
            return Reply(span, (alone(part),))
    return None


def _described(asked: Asked, evidence: Sequence[Evidence]) -> Reply | None:
    """The thing that is all that the question says of it."""
    described = described_in(asked, [Telling(part.text, part.title, part.above) for part in evidence])
    if described is None:
        return None
    name, place = described
    return Reply(name, (alone(evidence[place]),))


def _of_chain(asked: Asked | None, chain: Sequence[Evidence]) -> Reply:
    """The sentences of a chain, behind the short answer of an English question of two steps."""
    span = _short_of_chain(asked, chain) if asked is not None and not asked.is_plain else ""
    return Reply(span, tuple(map(alone, chain)))


def _short_of_chain(asked: Asked, chain: Sequence[Evidence]) -> str:
    """The short answer to a question of two steps: of the sentence that has the words which the other lacks, or the
    only value of its kind in both.

    One word may stand in neither: a novel "by" somebody is that author's.
    """
    pairs = [(chain[1], chain[0]), (chain[0], chain[1])] if len(chain) == 2 else []
    for part, other in pairs:
        keys_of_other = sense_of(other.text) | sense_of(other.title)
        own = sense_of(part.text) | sense_of(part.title)
        nowhere = [word for word in asked.words if not is_in(word.keys, keys_of_other | own)]
        if len(nowhere) > 1:
            break
        left = tuple(word for word in asked.words if not is_in(word.keys, keys_of_other) and word not in nowhere)
        names = tuple(name for name in asked.names if name not in f"{other.title} {other.text}")
        if left and len(left) < len(asked.words):
            rest = replace(asked, words=left, names=names)
            span = short_answer_in(rest, part.text, context_of(part), part.title)
            if span:
                return span
    return only_value(asked, [(part.text, part.title) for part in chain])


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
        defines = _defines(sentence.text, question, language)
        nearness = sentence.score / highest + cosine + DEFINES * defines
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


def _defines(sentence: str, question: str, language: str) -> bool:
    """Whether a sentence in another language than English says what the thing is that the question asks about.

    >>> _defines("dpkg ist ein Programm für Pakete.", "Was ist dpkg?", "de")
    True
    """
    if language == "en":
        return False
    begun_large = sentence[:1].upper() + sentence[1:]  # names of programs begin small
    return asked_in(language, [], [begun_large]).casefold() == question.strip().casefold()


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


def _of_two(question: str, first: str, second: str, evidence: list[Evidence]) -> Reply:
    """Choose from two named things: by a sentence that compares them, by a value that is told of each, or, where
    nothing is compared, by the words that are told of one alone. Where none of these decides, return the nearest
    sentences about both."""
    about_first = _telling_of(first, evidence)
    about_second = _telling_of(second, evidence)
    comparative = comparative_in(question)
    if comparative or LATER.search(question) or EARLIER.search(question):
        return _compared(question, comparative, (first, second), (about_first, about_second), evidence)

    names = {*content_words(first), *content_words(second)}
    beyond_names = set(content_words(question)) - names
    n_first, n_second = _most_shared(beyond_names, about_first), _most_shared(beyond_names, about_second)
    if n_first == n_second or not beyond_names:
        return Reply(
            "",
            tuple(dict.fromkeys(alone(part) for part in (*about_first[:1], *about_second[:1])))
            or (alone(evidence[0]),),
        )
    chosen, about = (first, about_first) if n_first > n_second else (second, about_second)
    return Reply(chosen, (alone(about[0]),))


def _whether_more(question: str, first: str, second: str, evidence: list[Evidence]) -> Reply:
    """Say whether the first of two is more so than the second, or neither where nothing plainly says it."""
    accounts = (_telling_of(first, evidence), _telling_of(second, evidence))
    reply = _compared(question, comparative_in(question), (first, second), accounts, evidence)
    verdicts = {first: "yes", second: "no"}
    return Reply(verdicts.get(reply.span, ""), reply.support)


def _compared(
    question: str,
    comparative: str,
    names: tuple[str, str],
    accounts: tuple[list[Evidence], list[Evidence]],
    evidence: Sequence[Evidence],
) -> Reply:
    """Choose the one of which a sentence says that it is more so, or whose date or measure is."""
    if comparative:
        for part in evidence:
            if more := stated(comparative, *names, part.text):
                return Reply(more, (alone(part),))

    comparative = comparative or _order_in(question)
    if not comparative:
        return Reply("", (alone(evidence[0]),))
    reply = _more_by_value(question, comparative, names, accounts)
    if reply is not None:
        return reply
    both = tuple(dict.fromkeys(alone(part) for account in accounts for part in account[:1]))
    return Reply("", both or (alone(evidence[0]),))


def _order_in(question: str) -> str:
    """ "later" or "earlier" for a question that orders two things in time, "" for another."""
    if EARLIER.search(question):
        return "earlier"
    return "later" if LATER.search(question) else ""


def _is_stated(question: str, names: tuple[str, str], evidence: Sequence[Evidence]) -> bool:
    """Whether a sentence compares the two."""
    comparative = comparative_in(question)
    return bool(comparative) and any(stated(comparative, *names, part.text) for part in evidence)


def _by_titles(question: str, names: tuple[str, str], passages: Sequence[str]) -> Reply | None:
    """The one whose value is larger, or smaller, by what the passages say that have the names for titles: such a
    sentence may share fewer words with the question than others. None if it is not told of both."""
    comparative = comparative_in(question) or _order_in(question)
    first, second = (_entitled(name, comparative, passages) for name in names)
    if not comparative or not first or not second or _OF_AGE.search(question):
        return None
    return _more_by_value(question, comparative, names, (first, second))


def _entitled(name: str, comparative: str, passages: Sequence[str]) -> list[Evidence]:
    """The first sentences of each passage whose title is the name; a measure has to be of what is compared."""
    folded_name = _bare_words(name)
    first_sentences = []
    for number, passage in enumerate(passages):
        title, body = parted(passage)
        own = sentences(body)[:ENTITLED] if title and _bare_words(BRACKETED.sub("", title)) == folded_name else []
        first_sentences += [Evidence(text, title, number, 0.0) for text in own if says_measure(comparative, text)]
    return first_sentences


def _bare_words(name: str) -> list[str]:
    return [word for word in re.findall(r"\w+", name.casefold()) if word not in ("the", "a", "an")]


def _more_by_value(
    question: str, comparative: str, names: tuple[str, str], accounts: tuple[list[Evidence], list[Evidence]]
) -> Reply | None:
    """The one whose value is larger, or smaller, of the first kind that is told of both; None if none is or they are
    equal."""
    for kind in kinds_compared(comparative):
        measured = _measured(kind, names[0], question, accounts[0])
        other_measured = _measured(kind, names[1], question, accounts[1])
        if measured is None or other_measured is None:
            continue

        (size, part), (other_size, other_part) = measured, other_measured
        if size == other_size:
            return None
        is_first = (size < other_size) == wants_less(comparative, kind)
        support = tuple(dict.fromkeys((alone(part), alone(other_part))))
        return Reply(names[0] if is_first else names[1], support)
    return None


def _measured(kind: str, name: str, question: str, account: Sequence[Evidence]) -> tuple[float, Evidence] | None:
    """The size of the only value of a kind that is told of a name; of dates the earliest year."""
    for part in account:
        sizes = sizes_in(kind, name, question, part.text)
        if kind == "date" and sizes:
            return min(sizes), part
        if len(sizes) == 1:
            return sizes[0], part
    return None


def _telling_of(name: str, evidence: Sequence[Evidence]) -> list[Evidence]:
    """The sentences that have the most words of the name, themselves or in their title."""
    words_of_name = set(content_words(name))
    shared = [len(words_of_name & set(content_words(f"{part.title} {part.text}"))) for part in evidence]
    most = max(shared, default=0)
    return [part for part, count in zip(evidence, shared, strict=True) if count == most > 0]


def _most_shared(words: Set[str], parts: Sequence[Evidence]) -> int:
    """How many of the words, or of others that mean the same, the sentence has that has the most of them."""
    return max((sum(is_in(keys_of(word), vocabulary_of(part.text)) for word in words) for part in parts), default=0)


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
