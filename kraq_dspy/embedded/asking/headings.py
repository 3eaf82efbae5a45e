"""Turns a heading into the question that its section answers: "Connecting an Antenna" is what one asks how to do."""

import html
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from kraq_dspy.embedded.names import is_name
from kraq_dspy.language.text import HEADING, WORD, content_words, parted, stands_in_menus
from kraq_dspy.language.vocabulary import GENERIC_HEADINGS, PROCEDURES, STOP

LONGEST = 120  # characters of a heading
LONGEST_LINE = 2000  # characters of a heading with its mark-up
LONGEST_TOPIC = 5  # words of a heading that names a topic; longer ones are headlines
QUOTES = ("“”", "‘’", '""', "''")
DETERMINERS = frozenset(["the", "a", "an", "your", "my", "our", "other", "more", "all"])
_CASE_WORDS = 9  # of a heading that begins with "If"; what is longer is a comment of code
BETWEEN = 4  # words at most between a verb and what is done it to
SMALL = 0.2  # times that a text writes a word small, for each time as a name, from which the word is none
SHARED = 0.5  # share of the passages that must speak of what all of them are about

_HOW_TO = re.compile(r"how (?:to|do i|do you|can i|can you) (?P<what>.+)", re.IGNORECASE)
_EXPLAINS = re.compile(
    r"(?i:who|what|which|where|when|why|how) (?!(?:is|are|was|were|do|does|did|can|could|will|not|about)\b)[a-z][^:?!]*"
)
_ASKS = re.compile(
    r"(?:who|whose|what|which|where|when|why|how|is|are|was|were|do|does|did|can|could|will|would|should|has|have)\b",
    re.IGNORECASE,
)
_BEFORE = re.compile(r"(?:read |things to know |notes? )?(?P<when>before|after) (?P<what>\w+ing .+)", re.IGNORECASE)
_IF = re.compile(r"if (?P<what>.+)", re.IGNORECASE)
_CODE = re.compile(r"[$={}<>;]|--\w")
_TROUBLE = re.compile(
    r"(?!.*[:,])(?:\S+ .*\b(?:(?:is|are|do|does|can|will) not|no longer|(?:ca|wo|is|are|do|does)n[’']t)\b|"
    r"there (?:is|are) (?:a |an )?(?:problem|issue|error)s?\b).*|i have (?:trouble|problems) .+",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"(?P<verb>\w+) (?P<what>(?:the|a|an|your|my|to|up|in|with|from|on|all|new)\b.*)", re.IGNORECASE
)
_NOUNS_TOO = frozenset(
    "report review plan change record release design order update display process program filter format handle help "  # noqa: SIM905
    "label log mount name park pass print prune search share show sign sort visit watch test track transfer".split()
)
"""Verbs that are nouns, too: "Report on key activities" tells nobody to report."""
_GERUND_NOUNS = frozenset(
    "building closing cooking opening operating parking planning printing processing rating recording scheduling "  # noqa: SIM905
    "testing washing".split()
)
"""Forms in "ing" that the parser takes for a noun before most other nouns: "Parking policy" tells nobody to park."""
_AFTER_NOUN = re.compile(r"(?:on|in|with|from|to|of|for)\b", re.IGNORECASE)
_AND_ING = re.compile(r"(?<=\band )\w+ing\b")
_ABOUT = re.compile(r"^(?:about|learning about|learn about|all about) (?=\S)", re.IGNORECASE)
_HEADLINE = re.compile(r"[,:|?!;]| [-–—] |\b(?:is|are|was|were|has|have)\b")
_OF_DOING = re.compile(r"(?:How (?:do|can|to)|Can|What (?:can|should) I do) ", re.IGNORECASE)
_NUMBER = re.compile(
    r"^(?:第 ?\d+ ?章[.:]? ?|(?:chapter|section|part|step|appendix|kapitel|abschnitt|anhang|capítulo|sección|apéndice"
    r"|chapitre|annexe|capitolo|hoofdstuk|глава|раздел|приложение|rozdział) (?:\d+|[ivx]+|[a-z])\b[.):]?|"
    r"\d+(?:\.\d+)+[.):]?|(?:\d+|[IVX]+)[.):]) +",
    re.IGNORECASE,
)
_MARKUP = re.compile(r"[*_`#]+|\[([^\[\]]*)\]\([^()]*\)|(?<!\s)\s*\{#[^{}]*\}")
_LOOSE_WORDS = (" a", " an", " and", " or", " the")
_LOOSE_MARKS = " /&,.:;–—-"
"""What a heading ends in that goes on in the next line."""
_NO_HEADING = re.compile(r"\S*[._/\\]\S*|\[.*\]|[\W\d_]*|(?:PMID|ISBN|ID)?\s*\d+.*|.*https?://.*", re.IGNORECASE)
"""Names of files and settings, numbers and addresses."""
_WORK = re.compile(r"\((?:[\w-]+ )*(?:film|novel|book|album|song|band|series|game|play|magazine|EP)\)$")
_SAYS_WHAT = re.compile(r"[\"”]?(?: \([^)]*\))?,? (?:is|was|are|were) (?:an?|the)\b")
_PLACED = re.compile(r"\b(?P<word>on|in|with) (?P<article>the |your )?(?P<name>[A-Z][\w+-]*)(?= ?[.,;:)]| [a-z]+\b|$)")
_DOUBLED = re.compile(r"[^aeiou]*u?[aeiou][^aeiouwxy]|reset|submit")
"""Verbs that double their last letter before "ing": those of one syllable, as set and run."""
_INSIDE = r"(?<=[\w,)] )[^\W\d_][\w'’-]*"
"""A word inside a sentence, which has a capital only for being a name."""
_SHORTENED = frozenset(f"{verb}n{mark}t" for verb in ("ca", "wo", "is", "are", "do", "does") for mark in "'’")


UNTITLED = "Untitled"
"""The stand-in for a title that no question can name, so that no line of the text is taken for
one."""
_LETTERS_OF_A_LABEL = 2  # of a file's name that may stand for anything


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading, and the title of its document if that is another; "" else."""

    text: str
    title: str = ""


def headings_of(passage: str) -> list[Heading]:
    """The headings in a passage's Markdown, or its title if it has none; names of files and numbers are none."""
    first, body = parted(passage)
    title = _plain(first)
    in_text = [_plain(line) for line in HEADING.findall(body)]
    headings = [Heading(text, title if title != text else "") for text in in_text if text]
    return headings or ([Heading(title)] if title else [])


def headings_by_weight(passages: Sequence[str], about: str) -> list[Heading]:
    """The passages' headings, first those whose words the other headings and `about` say most."""
    headings = list(dict.fromkeys(heading for passage in passages for heading in headings_of(passage)))
    in_headings = Counter(word for heading in headings for word in set(content_words(heading.text)))
    in_text = Counter(content_words(about))

    def weight(heading: Heading) -> float:
        bag = set(content_words(heading.text))
        return sum(in_headings[word] - 1 + min(3, in_text[word]) for word in bag) / (2 + len(bag))

    return sorted(headings, key=weight, reverse=True)


def asked_title(title: str, document_id: str, text: str) -> str:
    """Return the title of a document if a question can name it, otherwise `UNTITLED`. A file's name
    serves if the text contains it, and it is longer than a letter or two.

    >>> asked_title("orchids", "notes/orchids.txt", "Orchids grow on trees.")
    'orchids'
    >>> asked_title("b", "b.md", "Plan b failed.")
    'Untitled'
    """
    stem = re.split(r"[/\\]", document_id)[-1].rpartition(".")[0]
    if not title or title != stem:
        return title
    words = [word.casefold() for word in WORD.findall(title.replace("_", " "))]
    in_text = [word.casefold() for word in WORD.findall(text)]
    is_label = title.isascii() and len(title) <= _LETTERS_OF_A_LABEL
    is_said = bool(words) and f" {' '.join(words)} " in f" {' '.join(in_text)} "
    return title if is_said and not is_label else UNTITLED


def announced_question(heading: Heading, passages: Sequence[str], subject: str = "") -> str:
    """Return what a reader asks who looks for this section; "" for a heading that is a name, a
    topic or a headline.

    `subject` is what the passages are about, put behind a question that does not say it.

    >>> announced_question(Heading("Connecting an Antenna"), ["Connect an antenna to your TV."])
    'How do I connect an antenna?'
    """
    text = heading.text
    if _is_called(text, passages):
        return ""
    if text.endswith("?"):
        return text if _ASKS.match(text) else ""

    is_shouted = text.isupper()
    text = _lowered(text, passages)
    question = _announced_steps(text, passages, subject) or _announced_case(text, passages, subject)
    if not question and not is_shouted:
        question = _announced_order(text, subject)
    return question


def _announced_steps(text: str, passages: Sequence[str], subject: str) -> str:
    """The question of "How to ...", "Why ..." or "Connecting ..."; "" for other headings."""
    if steps := _HOW_TO.fullmatch(text):
        return _asked(f"How do I {steps['what']}", subject)
    first, _, rest = text.partition(" ")
    if first.casefold() == "why" and len(rest.split()) == 1:
        return f"{text}?"
    if _EXPLAINS.fullmatch(text):
        return f"Can you explain {text[:1].lower()}{text[1:]}?"

    verb = _VERB_OF.get(first.casefold())
    if rest and verb and not (first.casefold() in _GERUND_NOUNS and _is_compound(verb, rest, passages)):
        return _asked(f"How do I {verb} {_AND_ING.sub(_base, rest)}", subject)
    return ""


def _is_compound(verb: str, rest: str, passages: Sequence[str]) -> bool:
    """Whether the first word of a heading is a part of a noun, as in "Parking policy": it stands right before a noun,
    and no passage says that anybody does it to that ("park the policy")."""
    bare: list[str] = []
    for word in WORD.findall(rest):
        if word.casefold() in STOP:
            break
        bare.append(word)
    if not bare:
        return False
    done = rf"\b{re.escape(verb)}(?:e?s|e?d)?(?: [\w'’-]+){{0,{BETWEEN}}} {re.escape(_stem(bare[-1]))}s?\b"
    return not any(re.search(done, passage, re.IGNORECASE) for passage in passages)


def _announced_case(text: str, passages: Sequence[str], subject: str) -> str:
    """The question of "Before ...", "If ..." or of something that does not work; "" for others."""
    if warned := _BEFORE.fullmatch(text):
        return _asked(f"What should I know {warned['when'].lower()} {warned['what']}", subject)
    if (case := _IF.fullmatch(text)) and len(text.split()) <= _CASE_WORDS and not _CODE.search(text):
        return _asked(f"What if {case['what']}", "")
    is_trouble = text.partition(" ")[0].casefold() not in PROCEDURES and " if " not in text
    if is_trouble and _TROUBLE.fullmatch(text):
        trouble = text if text.startswith("I ") else _begun_small(text, passages)
        return _asked(f"What can I do if {trouble}", "")
    return ""


def _announced_order(text: str, subject: str) -> str:
    """The question of an order, "Connect the antenna"; "" for other headings."""
    order = _IMPERATIVE.fullmatch(text)
    if order is None or order["verb"].casefold() not in PROCEDURES:
        return ""
    is_noun = order["verb"].casefold() in _NOUNS_TOO and _AFTER_NOUN.match(order["what"])
    return "" if is_noun else _asked(f"How do I {order['verb'].lower()} {order['what']}", subject)


def topic_question(heading: Heading, passages: Sequence[str]) -> str:
    """The plain question after a heading that names a topic; a headline stands in quotation marks.

    >>> topic_question(Heading("Training", title="Small models"), [])
    'What does “Small models” say about training?'
    """
    text = _ABOUT.sub("", heading.text)
    is_title = is_name(text) and not heading.title
    if not is_title and _is_headline(text):
        unquoted = text[1:-1] if text[0] + text[-1] in QUOTES else text
        return f"What is “{unquoted}” about?"

    if heading.title and heading.title not in text:
        topic = _begun_small(text, passages, always=" " not in text)
        return f"What does “{heading.title}” say about {topic}?"
    topic = text if is_name(text) else _begun_small(text, passages)
    return _asked(f"What is said about {topic}", "")


def _is_headline(text: str) -> bool:
    """Whether a heading is a clause, or has more words or other marks than the name of a topic."""
    first = text.partition(" ")[0].lower()
    is_clause = " " in text and first in (STOP | PROCEDURES) - DETERMINERS
    return is_clause or len(text.split()) > LONGEST_TOPIC or _HEADLINE.search(text) is not None


def placed(question: str, subject: str) -> str:
    """A question of how something is done or whether it can be, with the subject of its text if it does not say it.

    >>> placed("How do I connect an antenna?", "to the TV")
    'How do I connect an antenna to the TV?'
    """
    return _asked(question.rstrip("?"), subject) if subject and _OF_DOING.match(question) else question


def subject_of(passages: Sequence[str]) -> str:
    """Tell how most of the passages place themselves: "on the TV", "in Django"; "" if they share
    no such thing."""
    phrases_with: defaultdict[str, Counter[str]] = defaultdict(Counter)  # of each name, how often it is written how
    for passage in passages:
        for match in _PLACED.finditer(passage):
            article = "the " if match["article"] else ""
            phrase = f"{match['word']} {article}{match['name']}"
            phrases_with[match["name"]][phrase] += 1
    if not phrases_with:
        return ""

    passages_with: Counter[str] = Counter()
    for passage in passages:
        passages_with.update(phrases_with.keys() & WORD.findall(passage))
    name = max(phrases_with, key=lambda name: (passages_with[name], phrases_with[name].total()))

    is_shared = passages_with[name] >= max(1, SHARED * len(passages))
    is_repeated = sum(passage.count(name) for passage in passages) >= 2
    if not (is_shared and is_repeated):
        return ""

    ((commonest_phrase, _),) = phrases_with[name].most_common(1)
    return commonest_phrase


def _asked(question: str, subject: str) -> str:
    question = question.rstrip(" .:;,-–")
    question = re.sub(r"\byour\b", "my", re.sub(r"\byou\b", "I", question, flags=re.IGNORECASE), flags=re.IGNORECASE)
    word, _, name = subject.partition(" ")
    is_placed = not name or name.split()[-1].casefold() in question.casefold() or f" {word} " in question
    return f"{question}?" if is_placed else f"{question} {subject}?"


def _plain(line: str) -> str:
    """The heading without mark-up and number; "" for what is none, or stands over half of all texts."""
    if len(line) > LONGEST_LINE:
        return ""
    text = _MARKUP.sub(lambda match: match[1] or "", html.unescape(line))
    text = _NUMBER.sub("", " ".join(text.split()).strip("-–—:. "))
    text = _without_loose_end(text.partition(" (")[0] if text.count("(") != text.count(")") else text)
    is_generic = text.casefold() in GENERIC_HEADINGS or stands_in_menus(text)
    return "" if is_generic or len(text) > LONGEST or _NO_HEADING.fullmatch(text) else text


def _without_loose_end(text: str) -> str:
    """The text without the marks and small words at its end that lead on.

    >>> _without_loose_end("Installing and removing, and the"), _without_loose_end("The")
    ('Installing and removing', 'The')
    """
    text = text.rstrip(_LOOSE_MARKS)
    while text.endswith(_LOOSE_WORDS):
        text = text.rpartition(" ")[0].rstrip(_LOOSE_MARKS)
    return text


def _is_called(heading: str, passages: Sequence[str]) -> bool:
    """Whether something has this heading for a name: "Finding Nemo", which "is a film"."""
    if _WORK.search(heading):
        return True
    name = re.sub(r" \([^()]*\)$", "", heading).lower()
    return any(_names_something(name, passage.lower()) for passage in passages)


def _names_something(name: str, text: str) -> bool:
    """Whether a text says what the name is, or quotes it; both in small letters."""
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        is_quoted = text[start - 1 : start] in ('"', "“") and text.startswith(('"', "”"), end)
        if is_quoted or _SAYS_WHAT.match(text, end):
            return True
        start = text.find(name, start + 1)
    return False


def _lowered(heading: str, passages: Sequence[str]) -> str:
    """Write the words behind the first in small letters where the heading has capitals only for being one: those that
    the text, too, writes small, and in a title of capitals all that the text never names."""
    first, *rest = heading.split(" ")
    telling = [word for word in rest if word.casefold() not in STOP]
    is_title = len(telling) > 2 and all(word[:1].isupper() for word in telling)

    def lowered(word: str) -> str:
        bare = word.strip("(),'’")
        if not bare[1:].islower():
            return word
        is_heading_s = _is_written_small(bare, passages) or (is_title and not _written(bare, passages)[1])
        return word.lower() if is_heading_s else word

    return " ".join([first, *map(lowered, rest)])


def _is_written_small(word: str, passages: Sequence[str]) -> bool:
    if word.lower() in STOP or word.lower() in _SHORTENED:
        return True
    small, named = _written(word, passages)
    return small > SMALL * named


def _written(word: str, passages: Sequence[str]) -> tuple[int, int]:
    """How often a word, by its stem, stands inside sentences in small letters, and how often with a capital."""
    stem = _stem(word)
    counts = [_written_in(passage) for passage in passages]
    return sum(small.get(stem, 0) for small, _ in counts), sum(named.get(stem, 0) for _, named in counts)


@lru_cache(maxsize=512)
def _written_in(passage: str) -> tuple[Counter[str], Counter[str]]:
    prose = HEADING.sub("", parted(passage)[1])
    words = re.findall(_INSIDE, prose)
    small = Counter([_stem(word) for word in words if word.islower()])
    return small, Counter([_stem(word) for word in words if not word.islower()])


def _stem(word: str) -> str:
    return word.casefold().removesuffix("s")


def _begun_small(text: str, passages: Sequence[str], *, always: bool = False) -> str:
    first = text.partition(" ")[0]
    is_word = _is_written_small(first, passages) or (always and first.istitle())
    return f"{text[:1].lower()}{text[1:]}" if is_word and not first.isupper() else text


def _base(gerund: re.Match[str]) -> str:
    return _VERB_OF.get(gerund[0].casefold(), gerund[0])


def _ing(verb: str) -> str:
    if _DOUBLED.fullmatch(verb):
        return f"{verb}{verb[-1]}ing"
    return f"{verb[:-1]}ing" if verb.endswith("e") and verb[-2:-1] not in ("e", "o", "y") else f"{verb}ing"


_VERB_OF = {_ing(verb): verb for verb in PROCEDURES} | {"cancelling": "cancel", "labelling": "label"}
