"""Turns a statement that stands alone into the question whether it is so: "Is aspirin a drug?".

Few statements are turned: left out is what points to another sentence, tells how a study was made, has two verbs, or
is about a thing of which there are many. PubMedQA made questions of titles in this way (Jin et al. 2019, section 3.1).
"""

import re
from collections.abc import Iterable, Sequence, Set

from kraq_dspy.embedded.asking.headings import placed
from kraq_dspy.embedded.names import REFERENCE, is_name
from kraq_dspy.language.text import WORD, centralities, parted, sentences
from kraq_dspy.language.vocabulary import DOES, STATEMENTS

LENGTH = range(6, 23)  # words of a question
LONGEST_SUBJECT = 10  # words
MOST_READ = 400  # sentences

_ASIDE = re.compile(r"(?<!\s)\s*+(?:\([^()]*\)|\[[^\[\]]*\]|\bBIBREF\d+)")
_REPORTED = re.compile(
    r"^.*?\b(?:suggest|indicat|show|conclud|demonstrat|confirm|reveal|found|not|argu|recommend)(?:e|s|es|ed)?"
    r"(?: \w+ly)? that "
)
_BEGINS = re.compile(
    r"(?:However|Therefore|Thus|In conclusion|Moreover|Furthermore|In addition|Additionally|Also|Indeed|Hence|Overall"
    r"|In summary|Conclusions?|Consequently|In fact|Of course|But|And|So)[,:]? "
)
_STATES = re.compile(
    rf"(?P<subject>[^,;:—–\"“”?!\[\]]+?)(?: (?P<verb>is|are|was|were|can|may|must|should|will|has|have)(?: not|n[’']t)?"
    rf"(?: (?:also|thus|therefore|still|now|already|indeed|currently|only|often|usually|generally))?"
    rf"| (?:also |often |usually |generally )?(?P<does>{'|'.join(DOES)})) (?P<rest>.+)"
)
_CUT = re.compile(
    r",? (?:which|who|where|although|though|while|whereas|because|as well as|even though|according to|so that"
    r"|since|but|despite)\b.*$"
)
_FINITE = "is|are|was|were|has|have|had|can|may|will|do|does|did"
_IS_MEANT = re.compile(r"\b(?:one of the|the (?:only|same|first|last|few|one))\b")
"""What says nothing without the clause behind it: "one of the few places in Micronesia" where ..."""
_TWO_VERBS = re.compile(
    rf"\b(?:and|or)\b(?: [\w-]+){{0,5}} (?:{_FINITE})\b|,(?![^,]*\b(?:and|or) )|^[^,]*, (?:and|or) [^,]*$"
)
_PAST_STATE = re.compile(
    r"(?:\w+ly |more |less )*(?:an?|the|one|not|as|in|at|associated|related|correlated|caused|linked|founded"
    r"|established|born|created|directed|written|known|influenced|affected|increased|reduced|decreased|improved|higher|lower"
    r"|better|worse|similar|different|common|greater|smaller)\b"
)
_DONE = re.compile(
    r"(?:\w+ly )?(?:been|\w{2,}ed|\w{2,}wn|made|done|led|become|come|gone|had|won|lost|taken|set|put|built|kept|held"
    r"|brought|left|begun|run|spent|sent|seen|heard|told|felt|met|paid|sold|bought|found|fallen|risen|given|written)\b"
)
_OF_ANY_NUMBER = frozenset(("can", "may", "must", "should", "will", "do"))
_BEGINS_ASIDE = frozenset("of in for from by on with at to about between among like as during under over near".split())  # noqa: SIM905
_PLURALS = frozenset(
    "people men women children data media police teeth feet mice cattle bacteria criteria mitochondria "  # noqa: SIM905
    "phenomena genera fungi".split()
)
_YOU = {"may": "Can", "can": "Can", "must": "Must", "should": "Should"}
_POINTS = frozenset(STATEMENTS["points"].split())
_NO_SUBJECT = frozenset(STATEMENTS["no_subject"].split()) | _POINTS
_UNNAMED = "|".join(STATEMENTS["unnamed"].split())
_POINTS_ON = re.compile(
    rf"\b(?:{'|'.join(STATEMENTS['points_on'].split())}|(?:last|next|past) (?:week|month|year|season)|of late"
    rf"|\w+day (?:morning|night)|(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day|the (?:{_UNNAMED})s?(?! (?:of|for|to)\b))\b"
    r"|[\"“”()\[\]=<>±;:%—]|\d\.\d| [-–] ",
    re.IGNORECASE,
)
_BREAKS_OFF = frozenset(STATEMENTS["breaks_off"].split())


def asked_whether(parts: Sequence[str], passages: Sequence[str], subject: str = "") -> str:
    """Whether the most central of the sentences that stand alone is so, those of the present first;
    "" without one.

    `parts` are sentences that go before those of the passages, whose first lines may be titles. What
    a reader may do is asked with the name of the document, or the `subject` of the whole corpus where
    headings are no names.
    """
    title_of = _titles_by_sentence(parts, passages)
    every = list(title_of)[:MOST_READ]
    names = _always_capital(every, dict.fromkeys(title_of.values()))

    questions = {}
    for sentence in every:
        question = whether(sentence, names)
        if question:
            questions[sentence] = question
    if not questions:
        return ""

    centrality = dict(zip(every, centralities(every), strict=True))
    best = max(questions, key=lambda each: (not _is_past(questions[each]), centrality[each]))
    question, title = questions[best], title_of[best]
    if " I " not in question or (title and title in question):
        return question
    return f"{question[:-1]}, according to {title}?" if is_name(title) else placed(question, subject)


def _titles_by_sentence(parts: Sequence[str], passages: Sequence[str]) -> dict[str, str]:
    """The sentences in reading order, each with the title of the first passage that has it."""
    title_of = dict.fromkeys(parts, "")
    for title, body in map(parted, passages):
        for sentence in sentences(body):
            title_of.setdefault(sentence, title)
    return title_of


def _always_capital(every: Sequence[str], titles: Iterable[str]) -> set[str]:
    """The words that have a capital inside of a sentence or in a title, and nowhere a small letter."""
    small: set[str] = set()
    capitals: set[str] = set()
    for sentence in every:
        words = WORD.findall(sentence)
        small.update(word for word in words if word.islower())
        capitals.update(word for word in words[1:] if word[:1].isupper())
    for title in titles:
        capitals.update(word for word in WORD.findall(title) if word[:1].isupper())
    return {word for word in capitals if word.lower() not in small}


def _is_past(question: str) -> bool:
    return question.startswith(("Was ", "Were "))


def whether(sentence: str, names: Set[str] = frozenset()) -> str:
    """The question whether it is as the sentence says; "" for a sentence that does not stand alone.

    `names` are words that keep their capital at the beginning of a sentence.

    >>> whether("We conclude that prednisone is superior to dexamethasone in mild asthma.")
    'Is prednisone superior to dexamethasone in mild asthma?'
    >>> whether("You may not sell copies of your game.")
    'Can I sell copies of my game?'
    """
    plain = _ASIDE.sub("", sentence).strip()
    if not plain.endswith(".") or REFERENCE.search(plain):
        return ""
    bare = _BEGINS.sub("", _REPORTED.sub("", plain.removesuffix(".")), count=1)
    stated = _STATES.fullmatch(bare)
    if stated is None:
        return ""

    subject, rest = stated["subject"].split(), _CUT.sub("", stated["rest"])
    needs_what_was_cut = rest != stated["rest"] and _IS_MEANT.search(rest)
    if needs_what_was_cut or _points_elsewhere(subject, rest) or _is_broken_off(rest):
        return ""
    question = _turned_round(subject, stated["verb"], stated["does"], rest, names)
    return question if len(question.split()) in LENGTH else ""


def _turned_round(subject: list[str], verb: str | None, does: str | None, rest: str, names: Set[str]) -> str:
    """The statement as a question; "" where its subject or its verb does not allow that."""
    if subject in (["You"], ["you"]) and verb in _YOU:
        return re.sub(r"\byour\b", "my", f"{_YOU[verb]} I {rest}?")

    tells_of_study = verb in ("was", "were") and not _PAST_STATE.match(rest)
    if tells_of_study or not _agree(subject, verb or "do", names):
        return ""
    if not _says_what_it_is(subject, names):
        return ""
    return _turned(_begun(subject, names), verb, does, rest)


def _points_elsewhere(subject: Sequence[str], rest: str) -> bool:
    """Whether a reader needs another sentence to understand this one, or it has a second verb."""
    behind_first = " ".join([*subject[1:], rest])
    return bool(_POINTS_ON.search(behind_first) or _TWO_VERBS.search(rest))


def _is_broken_off(rest: str) -> bool:
    words = rest.split()
    return len(words) < 2 or words[-1].lower() in _BREAKS_OFF


def _agree(subject: Sequence[str], verb: str, names: Set[str]) -> bool:
    """Whether one thing "is" and several "are"; where they do not agree, the sentence was taken apart wrongly."""
    if verb in _OF_ANY_NUMBER or "and" in subject:
        return True
    place = next((place for place, word in enumerate(subject) if place and word.lower() in _BEGINS_ASIDE), len(subject))
    head = subject[place - 1]
    is_plural = head.lower() in _PLURALS or (head.endswith("s") and not head.endswith(("ss", "us", "is", "'s", "’s")))
    is_name = head in names or (place > 1 and head[:1].isupper())
    return is_name or is_plural == (verb in ("are", "were", "have"))


def _turned(subject: str, verb: str | None, does: str | None, rest: str) -> str:
    if does is not None:
        return f"Does {subject} {DOES[does]} {rest}?"
    if verb == "has" and re.search(r" and \w+s ", rest):
        return ""  # "has an offer and runs another"
    if verb in ("has", "have") and not _DONE.match(rest):
        return f"{'Does' if verb == 'has' else 'Do'} {subject} have {rest}?"
    return f"{'Can' if verb == 'may' else (verb or '').capitalize()} {subject} {rest}?"


def _begun(subject: Sequence[str], names: Set[str]) -> str:
    """The subject as it stands inside of a sentence."""
    first, *others = subject
    keeps = first in names or re.search(r".[A-Z0-9]", first) or (others and others[0][:1].isupper() and len(first) > 1)
    is_article = first in ("The", "A", "An")
    return " ".join([first if keeps and not is_article else f"{first[:1].lower()}{first[1:]}", *others])


def _says_what_it_is(subject: Sequence[str], names: Set[str]) -> bool:
    """Whether a subject tells a reader who sees nothing else what it stands for."""
    first, *others = [word.lower() for word in subject]
    if _is_no_subject(subject):
        return False
    if first == "the" and len(subject) == 2:
        return False  # "the Document" of a contract

    if subject[0] in names or any(word[:1].isupper() for word in subject[1:]):
        return True
    if first in ("the", "a", "an"):
        is_unnamed = re.match(rf"(?:\w+ )?(?:{_UNNAMED})s?\b", " ".join(others[:2]))
        return not is_unnamed and not {"of", "for"}.isdisjoint(others)
    return len(subject) > 1 or not re.fullmatch(rf"(?:{_UNNAMED})s?", first)


def _is_no_subject(subject: Sequence[str]) -> bool:
    """Whether it is long, points to another sentence, counts things, or has a verb inside."""
    first, *others = [word.lower() for word in subject]
    if len(subject) > LONGEST_SUBJECT or first in _NO_SUBJECT or not _POINTS.isdisjoint(others):
        return True
    is_count = re.match(r"\w+teen\b|\w+ty\b", first) is not None
    return not first[0].isalpha() or is_count or any(map(_is_participle, subject[1:]))


def _is_participle(word: str) -> bool:
    return re.fullmatch(r"[a-z]{2,}ed", word) is not None
