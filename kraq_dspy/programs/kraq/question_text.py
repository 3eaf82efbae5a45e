"""Takes the question out of a model's reply, says whether it stands alone, and marks questions that ask the same."""

import dataclasses
import html
import re
from collections.abc import Sequence

import numpy as np

from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.language.text import UNSPACED
from kraq_dspy.ports import Vectors
from kraq_dspy.programs.kraq.element_list import plain_words
from kraq_dspy.records import Question

MARKS = ("?", "？", "؟", ";")
"""What a question ends in, the Greek one among them."""
ECHO = 5
"""Words of the instructions in a row that make a question a repetition of its task."""

_AROUND = " \t\"'*-"
_NUMBERED = re.compile(r"^(?:\(?\d{1,2}[.):]\s+(?![A-Z]{2,4}\b)|(?i:Q|Question)\s?\d{0,2}\s?[.:]\s*)")
"""What a list or a quiz has before a question; "1. FC Nuremberg" is a name."""
LONGEST = 400  # characters of a question

_UP_TO_MARK = re.compile(r".*[?？؟]")
_LATIN = re.compile(r"[a-z]", re.IGNORECASE)
_ABOUT_TEXT = re.compile(
    r"\bthe (?:\w+ )?summar(?:y|ies)\b|\b(?:this|these|the given) (?:text|article|passage|summary|passages)\b"
    r"|\b(?:the|both|each|all)(?: (?:first|second|third|last|two|three|following|other))? passages?\b(?! of)",
    re.IGNORECASE,
)
_KINDS = """actor actress album area artist author band battle book building character city club college company county
country director episode film game group man movie novel person place player ship show singer song school series station
story subject team theme topic town university village war woman"""
_BEFORE = "of|in|by|for|from|to|with|at|on|about|is|was|are|were|did|does|do|has|had"
_TELLS_WHICH = "that|which|who|whose|where|of|in|by|at|on|from|with|for|named|called|known"
_ONE_OF_ITS_KIND = re.compile(
    rf"\b(?:{_BEFORE}) (?:the|this|that) (?:{'|'.join(_KINDS.split())})\b(?! (?:{_TELLS_WHICH})\b)"
    r"|\b(?:is|was|are|were) (?:this|that|it|these|those)(?: about)?\?$"
    r"|\bthe names? of the \w+(?: \w+)?\?$",
    re.IGNORECASE,
)
"""A thing of which there are many, as if one had been spoken of or were at hand: "of the film", "is this?", "the name
of the beer brand?"."""
_BROKEN = re.compile(
    r"[{}|\\]|</|(?<![\d.] )(?<![\d.])%|\s(?:[Aa]n?|[Tt]he|and|or|than)\?$"
    r"|\b[Tt]he (?:Company|Group|Corporation|Partnership|Registrant|Issuer|Board|Agreement|Plan)\b(?! (?:of|for) [A-Z])"
    r"|(?<=[a-z] )(?:The|An) [a-z]|\b(?i:(\w{3,}(?: \w+){2,6}) \1)\b"
)
"""Code and tables, a unit without its number, what only a document's own definition says ("the Company"), an end
that lost its word, the beginning of a sentence inside ("do The cash flows"), and words told twice in a row."""
_NAMED = re.compile(r"\s[\"'“‘(]*[A-Z0-9]|[\"“‘]")
_WORD_OF_NAME = re.compile(r"(?<!\w)(?:[A-Z][\w'’.-]*|\d[\w.,-]*)")
OWNER = re.compile(r"['’]s?$")
"""What "Ada's" has more than "Ada"."""
_BEGINNING = 5
"""Letters by which words are compared: "Kenya" is in "Kenyan"."""
_WORDS_OF_ANY = """a about all an and any are as at be been by can could did do does for from had has have he her his
how i in into is it its many me much my not of on one or our out she so some that the their them there these they this
those to us was we were what when where which who whom whose why will with would you your"""
_IN_ANY_QUESTION = frozenset(_WORDS_OF_ANY.split())
_ASKS_FOR = frozenset(["name", "named", "called", "known", "kind", "type", "year", "person", "part"])
"""What a question may ask for without its text having the word."""
_BREAKS_OFF = frozenset(["a", "an", "and", "by", "or", "the"])
_VERB = re.compile(
    r"\b(?:is|was|are|were|do|does|did|has|had|have|can|could|will|would|may|might|should|must|won|wrote|made|led|held"
    r"|built|began|became|beat|took|gave|got|sold|bought|ran|met|sang|went|came|lost|left|drew|grew|shot|saw|found"
    r"|[a-z]{2,}ed|[a-z]{3,}[^s\W]s)\b"
)
"""What may be a verb, by its form."""
_ASKS = re.compile(
    r"(?:[a-z]+ )?(?:who|whom|whose|what|which|where|when|why|how)\b|(?:can|could|do|does|did|should|will)\b",
    re.IGNORECASE,
)
"""How a question that asks for more than yes or no of what something is begins: "In which year", "Can I"."""
_VERBS_FIRST = "is|was|are|were|do|does|did|has|had|have|can|could|will|would|should|may|might|must"
_BEGINS_AS_QUESTION = re.compile(
    rf"(?:(?:in|on|at|of|for|from|to|with|by|under|during) (?:which|what|whom|whose)"
    rf"|who|whom|whose|what|when|where|which|why|how|{_VERBS_FIRST})\b",
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(rf"(?:\w+ ){{0,3}}(?:{_VERBS_FIRST}) (?:he|she|they|his|her|their|its)\b", re.IGNORECASE)
"""A question about somebody who was spoken of before: "What were their differences"."""
PLAIN = 0.9
"""A `plainness` that leaves nothing to be desired."""
_ENOUGH = 2
"""Different telling words, of the text's, that a question needs to be about one thing."""
_LONG = 25
"""The number of words that nearly all human questions stay below."""


def question_in(reply: str) -> str:
    """Return the first line that ends in a question mark of any script. Without one, return the
    first line with a question mark inside, up to the mark; otherwise the first line. A number or
    "Question:" before it is none of it.

    >>> question_in("Here you are:\\n1. **Who founded it?**")
    'Who founded it?'
    """
    lines_of_reply = html.unescape(reply).splitlines()  # a prompt shows "&amp;" for "&", and models copy it
    bare = [_NUMBERED.sub("", raw.strip(_AROUND)).strip(_AROUND) for raw in lines_of_reply]
    lines = [line for line in bare if line]
    questions = [line for line in lines if line.endswith(MARKS)]
    begun = [begin[0] for line in lines if (begin := _UP_TO_MARK.match(line))]
    return (questions or begun or lines or [""])[0]


def with_mark(question: str) -> str:
    """The question with the mark and the capital that small models leave out.

    >>> with_mark('who wrote "Night'), with_mark("It was written in 1956.")
    ('Who wrote "Night"?', 'It was written in 1956.')
    """
    if not _BEGINS_AS_QUESTION.match(question) or question.endswith((*MARKS, ".", "!")):
        return question
    closed = f'{question}"' if question.count('"') % 2 else question
    return f"{closed[0].upper()}{closed[1:]}?"


def stands_alone(question: str, instructions: str) -> bool:
    """Whether it has a question mark, where its script has one, and neither speaks of "the summary" nor repeats its
    instructions. A question about "the film" or "their" names must have a name or a number that says which."""
    return not fault_of(question, instructions)


def fault_of(question: str, instructions: str) -> str:
    """Why the question does not stand alone, as what is said of it; "" where it does.

    >>> fault_of("Where does it say so in this text?", ""), fault_of("Who led Kenya?", "")
    ('speaks of the text that it was asked about', '')
    """
    if not plain_words(question).strip():
        return "is empty"
    if len(question) > LONGEST:
        return f"has more than {LONGEST} characters"
    if _LATIN.search(question) is not None and not question.endswith(MARKS):
        return "is no question"
    if repeats(instructions, question):
        return "repeats its instructions"
    if _ABOUT_TEXT.search(question):
        return "speaks of the text that it was asked about"
    if _BROKEN.search(question) or question.count("`") % 2:
        return "has marks of code, a defined term or an end that lost its word"
    points = _ONE_OF_ITS_KIND.search(question) or _POINTS_BACK.match(question)
    return "does not say which thing it asks about" if points and not _NAMED.search(question) else ""


def shares_a_word(question: str, text: str) -> bool:
    """Whether a telling word of the question begins as one of the text's; true where one of both has no Latin letters,
    and where the question has letters of a script that parts no words.

    >>> shares_a_word("Who led Kenya?", "A Kenyan state."), shares_a_word("Who led Kenya?", "Ada lived in London.")
    (True, False)
    """
    if _LATIN.search(question) is None or _LATIN.search(text) is None or UNSPACED.search(question):
        return True

    beginnings = _beginnings(text)
    return any(
        word[:_BEGINNING] in beginnings for word in plain_words(question).split() if word not in _IN_ANY_QUESTION
    )


def names_in(question: str) -> list[str]:
    """The names and numbers behind the first word, folded, without the endings of owners.

    >>> names_in("Did Ada's father write in 1812?")
    ['ada', '1812']
    """
    return [OWNER.sub("", name.rstrip(".").casefold()) for name in _WORD_OF_NAME.findall(question)[1:]]


def plainness(question: str, text: str) -> float:
    """Return from 0 to 1 how plainly the text answers the question, by words: the largest share of
    the question's telling words in one sentence, times the share of these words that differ.

    The first line of several is a title: a name of it counts with every sentence. Each of these
    faults halves it: the question names nothing though the text has names, shares fewer than two
    words with a sentence, has more than 25 words or no verb, or begins as a statement or a yes-no
    question. It is 1 for a question or a text without Latin letters.
    """
    if _LATIN.search(question) is None or _LATIN.search(text) is None:
        return 1.0

    title, _, body = text.partition("\n")
    telling = [word for word in plain_words(question).split() if word not in _IN_ANY_QUESTION | _ASKS_FOR]
    sought = {word[:_BEGINNING] for word in telling}
    if not sought:
        return 0.0

    named = _beginnings(" ".join(_WORD_OF_NAME.findall(question[1:])))
    in_title = named & _beginnings(title) if body else set[str]()
    body = body or title
    sentences = [body[start:end] for start, end in sentence_spans(body)]
    most = max((sought & (_beginnings(sentence) | in_title) for sentence in sentences), key=len, default=set[str]())
    words = question.lower().rstrip(" ?").split()
    faults = (
        _NAMED.search(body) is not None and not named,
        len(most) < _ENOUGH,
        len(words) > _LONG,
        words[-1] in _BREAKS_OFF or (words[0] in ("which", "what") and not _VERB.search(question)),
        not _ASKS.match(question),
    )
    return len(most) / len(telling) * 0.5 ** sum(faults)


def repeats(instructions: str, question: str) -> bool:
    """Whether the question has so many words of the instructions in a row that it is no question of its own."""
    words, task = plain_words(question), plain_words(instructions).split()
    return any(f" {' '.join(task[at : at + ECHO])} " in words for at in range(len(task) - ECHO + 1))


def _beginnings(text: str) -> set[str]:
    return {word[:_BEGINNING] for word in plain_words(text).split()}


_BLOCK = 1024


def mark_duplicates(questions: Sequence[Question], vectors: Vectors, similarity: float) -> list[Question]:
    """The same questions in the same order, `duplicate_of` set where an earlier, unmarked one asks the same.

    `vectors` is float32 `[n_questions, dim]`, rows L2-normalised. Two questions ask the same if their texts are equal
    up to case and spaces, or if their cosine is at least `similarity`. Earlier means nearer to the front. A topic
    repeats other topics alone, and no question repeats it.
    """
    original_of: list[int | None] = [None] * len(questions)  # index of the question that each one repeats
    first_with_text: dict[tuple[bool, str], int] = {}
    for index, question in enumerate(questions):
        plain = " ".join(question.text.casefold().split())
        twin = first_with_text.setdefault((question.is_topic, plain), index)
        original_of[index] = None if twin == index else twin

    for start in range(0, len(questions), _BLOCK):
        stop = min(start + _BLOCK, len(questions))
        near = vectors[start:stop] @ vectors[:stop].T >= similarity
        for row, column in np.argwhere(near):
            index, earlier = start + int(row), int(column)
            is_alike = questions[index].is_topic == questions[earlier].is_topic
            if is_alike and earlier < index and original_of[index] is None and original_of[earlier] is None:
                original_of[index] = earlier

    return [
        dataclasses.replace(question, duplicate_of=None if twin is None else questions[twin].id)
        for question, twin in zip(questions, original_of, strict=True)
    ]


LONGEST_TOPIC = 5  # words of a heading that names a topic; longer ones are headlines
_OF_HEADLINE = re.compile(r"What is “(.+)” about\?$")


def asks_of_something(question: str) -> bool:
    """Whether a template's question asks more than what the texts say about a name, or what a short
    heading is about. A longer headline says its topic, and a template asks about it more truly than
    a small model.

    >>> asks_of_something("Who directed Ed Wood?"), asks_of_something("What is said about Acme and Globex?")
    (True, False)
    """
    headline = _OF_HEADLINE.match(question)
    if headline is not None:
        return len(headline[1].split()) > LONGEST_TOPIC
    return not re.match(r"What is said about |What does “|$", question)


def asks_of_headline(question: str) -> bool:
    """Whether a template's question asks what a text with this headline is about.

    >>> asks_of_headline("What is “Copper handles kill bacteria” about?")
    True
    """
    return _OF_HEADLINE.match(question) is not None
