"""Reads passages: what kind of thing the title names, and what each sentence says of whom."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kraq_dspy.embedded.answer import POINTS_BACK
from kraq_dspy.embedded.asking.templates import Definition, definition, is_person, without_asides
from kraq_dspy.embedded.names import PERSON, REFERENCE, is_name, kind_of, names_in, without_words
from kraq_dspy.embedded.value import BRACKETED
from kraq_dspy.language.text import parted, sentences
from kraq_dspy.language.told import language_of
from kraq_dspy.language.vocabulary import DOES, KIND_OF_NOUN, OPENERS, STOP
from kraq_dspy.language.word_forms import PAST

BE = r"(?:is|are|was|were)"
VERB = rf"(?:{BE}|has|have|had|can|may|must|will|{'|'.join(DOES)}|{PAST}|[a-z]{{2,}}ed)"
STATES = re.compile(
    rf"(?P<subject>[A-Z][^,;:—–\"“”?!\[\]]{{0,80}}?) (?P<phrase>(?:also |then |first |later )?{VERB} .+)"
)
BEGINS = re.compile(
    r"(?:However|Therefore|Thus|Moreover|Furthermore|In addition|Additionally|Also|Indeed|Overall)[, ] ?"
)
_CUT = re.compile(
    r"(?:[;:]|,(?!\d{3}\b)).*$"
    r"| (?:which|where|although|though|while|whereas|because|as well as|so that|since|but|despite|who)\b.*$"
    r"| and (?:also |now |today )?(?:is|are|was|were|has|have|had|can|may|must|will)\b.*$"
)
"""Where another clause begins; not the comma of 103,340."""
_ASIDE_WORD = re.compile(r"^(?:also|then|first|later) |(?<=^has )also |(?<=^had )also |(?<=^is )also |(?<=^was )also ")
_ONLY_A_NUMBER = re.compile(rf"{BE} [\d.,]+ (?:in|at|as|on)\b")
VAGUE = re.compile(
    r"\b(?:who|he|she|they|this|these|those|such|it|his|her|their|them|him|we|our|us|i|my|you|your|above|below|following"
    r"|former|latter|there)\b",
    re.IGNORECASE,
)
OF_SOMEBODY = re.compile(r"\b(?:he|she|his|her|him|born|died|Mr|Mrs|Ms|Dr|Sir)\b", re.IGNORECASE)
"""What is said of people alone."""
_SAID_NEXT = 200  # characters from a name on in which the text speaks of its bearer
_TWO_VERBS = re.compile(rf"[a-z]+ed (?:as|by|from)\b|[a-z]+ed\b.* {BE}\b")
_VERB_INSIDE = re.compile(rf"\b(?:{'|'.join(DOES)}|shows?|displays?|that|[a-z]{{2,}}ed)\b")
_LONGEST_SUBJECT = 7  # words
KIND_WORDS = 3
_LONGEST_KIND = 5  # words
_LONE_NOUN = re.compile(
    r"\bthe (?:same |other )?(?P<noun>[a-z]+)"
    r"(?=$|[,.]| (?:and|or|but|is|are|was|were|has|have|had|as|than|after|before|during|when|in \d+)\b)"
)
"""A noun of which nothing tells which one it is."""
_POINTING = frozenset(
    ("other", "others", "same", "territory", "area", "region", "latter", "event", "project", "period")
)
_ADJECTIVE = re.compile(r"(?:[a-z]{2,}ed|left|shot|set|lost) (?P<next>[a-z]+)")
"""A word that is a past and an adjective as well, and what follows it."""
PREPOSITIONS = frozenset(
    "in on at by of for from with to near into through under over and or the a an".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence in two parts: who or what it is about, and what it says of it."""

    subject: str
    phrase: str


def read_passage(passage: str) -> tuple[str, list[str], str, bool]:
    """Title, sentences, what kind of thing the title is said to be ("" unknown), and whether it is
    somebody."""
    title, body = parted(passage)
    if language_of(body) != "en":
        return "", [], "", False

    body = re.sub(r" (?=[,.;:?!’'](?:\s|$|s\b))", "", body)
    title = title if title and is_name(title) else ""
    bare = BRACKETED.sub("", title)
    parts = sentences(body)
    defined = first_definition(parts[:2], bare) if bare else None
    if defined is None or bare not in defined.name:
        return bare, parts, "", bool(bare) and is_somebody(bare, body)

    kind = plain_kind(defined.kind)
    return bare, parts, kind, is_person(kind, parts[0], bare)


def first_definition(parts: Sequence[str], title: str) -> Definition | None:
    titles = [title] if title else []
    for part in parts:
        defined = definition(part, titles)
        if defined is not None:
            return defined
    return None


def plain_kind(kind: str) -> str:
    """The last words of a kind that can follow "which": "English poet" of "famous and English poet born"."""
    words = re.split(r" (?:[a-z]+ed|born|made|built|held|set|written|known)\b", kind)[0].split()[-KIND_WORDS:]
    while words and (words[0].lower() in STOP or words[0].endswith("est") or not words[0][0].isalpha()):
        words = words[1:]
    is_plain = bool(words) and not words[-1][0].isupper() and not re.search(r"[\"“”()\d]", " ".join(words))
    return " ".join(words) if is_plain else ""


def is_plain_kind(kind: str) -> bool:
    """Whether a question may begin with "Which" and this: few words that end in a noun, and no name at their end.

    >>> is_plain_kind("live album"), is_plain_kind("member of the band"), is_plain_kind("cyclist currently playing")
    (True, False, False)
    """
    words = kind.split()
    ends_small = bool(words) and words[-1].isalpha() and words[-1].islower() and not words[-1].endswith("ly")
    is_short = len(words) <= _LONGEST_KIND and not re.search(r"[\"“”()]|\b(?:of|to|that|more|most)\b|\b\w+ing$", kind)
    return ends_small and is_short and words[-1] not in STOP


def points_back(phrase: str) -> bool:
    """Whether something is called "the film" that only the sentences before name.

    >>> points_back("directed the film"), points_back("directed the film of 1994"), points_back("cleans the screen")
    (True, False, False)
    """
    return any(_is_named_before(match["noun"]) for match in _LONE_NOUN.finditer(phrase))


def _is_named_before(noun: str) -> bool:
    return noun in _POINTING or noun in KIND_OF_NOUN


def is_somebody(name: str, text: str) -> bool:
    """Whether a full name is a person's, or a last name is that of a person whom the text names in full.

    Two words with capitals may be a heading as well: where the text writes the last one small, too, it has to speak of
    somebody.

    >>> is_somebody("Ada Lovelace", "Ada Lovelace met Charles Babbage.")
    True
    >>> is_somebody("Settings", "Index Settings hold the settings.")
    False
    """
    is_full = PERSON.fullmatch(name) is not None
    full = name if is_full else _full_name(name, text)
    if not full or kind_of(full, text) != "person":
        return False

    last_name_is_a_name = bool(without_words([full.split()[-1]], text))
    said_next = text[text.find(full) :][:_SAID_NEXT]
    return last_name_is_a_name or OF_SOMEBODY.search(said_next) is not None


def _full_name(last: str, text: str) -> str:
    """Return the first name of two or three words in the text that ends in this one; "" for none."""
    names: list[str] = PERSON.findall(text)
    for full in names:
        if full.endswith(f" {last}") and full.split()[0] not in OPENERS:
            return full
    return ""


def statement_in(sentence: str, title: str, *, points_to_title: bool) -> Statement | None:
    """Read a statement; None for a sentence that has no subject which says what it is, or that
    points to others.

    With `points_to_title`, he, she and it are what the title names.
    """
    plain = without_asides(BEGINS.sub("", sentence, count=1)).strip().rstrip(".")
    stated = STATES.fullmatch(plain)
    if stated is None or REFERENCE.search(plain) or plain.endswith(("?", "!", ":")):
        return None

    subject = stated["subject"].strip()
    if title:
        subject = _subject_by_title(subject, title, points_to_title=points_to_title)
    if not subject or (subject != title and not says_what_it_is(subject)):
        return None
    phrase = _ASIDE_WORD.sub("", _CUT.sub("", stated["phrase"]).strip())
    return Statement(subject, phrase) if _is_whole(phrase) else None


def _subject_by_title(subject: str, title: str, *, points_to_title: bool) -> str:
    """The title where the subject stands for it, "" if it points to something else."""
    if len(subject.split()) == 1 and POINTS_BACK.match(f"{subject} "):
        return title if points_to_title and subject in ("He", "She", "It") else ""
    return title if subject in (f"The {title}", f"the {title}") else subject


def _is_whole(phrase: str) -> bool:
    """Whether what is said of a subject neither points to another sentence nor breaks off."""
    if not phrase or _ONLY_A_NUMBER.match(phrase) or '"' in phrase or VAGUE.search(phrase) or _TWO_VERBS.match(phrase):
        return False
    if (led := _ADJECTIVE.match(phrase)) and led["next"] not in PREPOSITIONS | STOP and not led["next"].endswith("ly"):
        return False  # "Displays detailed information"
    last = phrase.split()[-1].lower()
    return len(last) > 1 and last not in PREPOSITIONS | STOP


def says_what_it_is(subject: str) -> bool:
    words = subject.split()
    first = words[0].lower() if words else ""
    if not words or len(words) > _LONGEST_SUBJECT or VAGUE.search(subject) or _VERB_INSIDE.search(subject):
        return False
    if re.match(r"(?:[A-Z][a-z]+ed|Due|According|Depending|Rather|Prior|Use)\b", subject) or "_" in subject:
        return False
    if words[-1].lower() in PREPOSITIONS | STOP or re.search(r" [-–]|[-–] ?$", subject):
        return False
    if first in STOP - {"the", "a", "an"} or first in ("the", "a", "an", "another", "some", "most", "many"):
        return first == "the" and bool(names_in(f"· {subject[4:]}"))
    return len(words) > 1 or bool(names_in(f"· {subject}"))
