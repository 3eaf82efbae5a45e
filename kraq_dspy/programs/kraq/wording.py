"""Words the question that a part of a statement answers: a model proposes, and checks decide.

Answer-aware question generation (Du, Shao and Cardie 2017): a statement and the answer in it go in, its question comes
out. The parse has proposed both, and a question of its own, which stays wherever the model's has a fault.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import dspy
from dspy.utils.exceptions import AdapterParseError

from kraq_dspy import signatures
from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.step import Step
from kraq_dspy.errors import counted
from kraq_dspy.language.analysis import Analysis
from kraq_dspy.language.text import content_words
from kraq_dspy.language.vocabulary import POINTING, STOP
from kraq_dspy.language.word_forms import base_of
from kraq_dspy.programs.kraq.question_text import OWNER, fault_of, names_in, question_in, with_mark
from kraq_dspy.state import SavableModule

UNREADABLE = "cannot be read"
_ABOUT_NOTHING = "does not say what it is about"
LENGTHS = range(5, 23)  # words of a question
KEPT = 0.6  # share of the telling words of the parse's question that a wording has at least
TELLING = 2  # words of a question that say what it is about; a question about a passage has more
_OWN = frozenset("its their his her himself herself itself themselves".split())  # noqa: SIM905
"""May stand in a question behind what they mean."""
_MEANT = _OWN.union("it they them he him she that".split())  # noqa: SIM905
"""May do so in a question about a passage, which names several things."""
_ASKER = frozenset("i my me you your".split())  # noqa: SIM905
"""Whoever asks."""
_ASKS = re.compile(
    r"(?P<word>how (?:many|much|long|old|far|often)|who|whom|whose|what|which|when|where|why|how)\b"
    r"|(?:in|on|at|of|for|from|to|with|by|under|during|since|until|through|into|after|before)"
    r" (?P<behind>which|what|whom|whose|how many)\b",
    re.IGNORECASE,
)
_KIND = re.compile(
    r"(?:(?P<when>years?|dates?|months?|day|days|century|decade|time|era|period|season)"
    r"|(?P<where>country|countries|city|cities|place|state|town|region|continent|location|island|province|area|county)"
    r"|(?P<many>number|amount|percentage|percent|quantity))\b",
    re.IGNORECASE,
)
_MAY_ASK_FOR = frozenset(
    """name named called known kind type sort year date month day time century decade number amount percentage country
    city place state person people group thing part word term happen use""".split()  # noqa: SIM905
)
"""What a question may ask for without its statement having the word."""
_KINDS_OF_WORD = {"whom": "who", "whose": "who", "how far": "how many", "how long": "how many", "how much": "how many"}
_ADDRESSED = frozenset(("user", "customer", "visitor"))
"""Whom a text addresses as "you"."""
_STEM = 5  # letters by which words are compared
_PLACE = re.compile(r"In “[^”]{1,200}”, ")
"""What the parse puts before a question about a tale."""


@dataclass(frozen=True, slots=True)
class Stated:
    """A statement, the part of it that is asked for, and how the parse asks: its `question` and its `word` ("who").

    The title of its passage stands before the statement where the parse's question needs it.
    """

    statement: str
    answer: str
    question: str
    word: str

    def inputs(self) -> dict[str, str]:
        """Those of `PutInWords`."""
        return {"statement": self.statement, "answer": self.answer, "own": self.question, "word": self.word}


def stated_in(question: str, analyses: Iterable[Analysis]) -> Stated | None:
    """The statement that the parse turned into this question; None where it is in no analysis, or where the question
    says what neither the statement nor its title does: who speaks, or whom a pronoun means.

    >>> from kraq_dspy.language.analysis import Asked, Sentence
    >>> asked = Asked("Who met Charles?", "Ada", "who", 0.5)
    >>> stated_in("Who met Charles?", [Analysis("", (Sentence("Ada met Charles.", asked=(asked,)),))]).answer
    'Ada'
    """
    for analysis in analyses:
        for sentence, asked in analysis.asked():
            if asked.question != question:
                continue
            bare = _PLACE.sub("", question)
            for statement in (sentence.text, f"{analysis.title}\n{sentence.text}"):
                if not words_beyond(bare, statement):
                    return Stated(statement, asked.answer, question, asked.word)
    return None


class PutInWords(SavableModule):
    """The question that a part of a statement answers: in the model's words, or as the parse asks (`own`) where these
    have a `fault`.

    >>> from dspy.utils import DummyLM
    >>> ada = {"statement": "Ada met Charles in 1833.", "answer": "in 1833", "own": "When did Ada meet Charles?"}
    >>> with dspy.context(lm=DummyLM([{"question": "In which year did Ada meet Charles?"}])):
    ...     PutInWords()(**ada, word="when").question
    'In which year did Ada meet Charles?'
    >>> with dspy.context(lm=DummyLM([{"question": "When did Ada marry?"}])):
    ...     PutInWords()(**ada, word="when").question
    'When did Ada meet Charles?'
    """

    outputs: ClassVar[dict[str, Any]] = {"question": str, "fault": str}

    def __init__(self) -> None:
        super().__init__()
        self.word = Step(signatures.WordQuestion)

    async def aforward(self, statement: str, answer: str, own: str, word: str) -> dspy.Prediction:
        try:
            reply = await call(self.word, statement=statement, answer=answer)
        except AdapterParseError:
            return dspy.Prediction(question=own, fault=UNREADABLE)
        question = with_mark(question_in(reply.question or ""))
        fault = fault_in(question, statement, answer, word) or _asks_something_else(question, own)
        if fault:
            return dspy.Prediction(question=own, fault=fault)
        place = _PLACE.match(own)
        return dspy.Prediction(question=_behind(place[0], question) if place else question, fault="")


def placed_in(question: str, title: str) -> str:
    """The question with a title before it, as the parse asks about a tale, where it names nothing.

    >>> placed_in("What did the bull ask?", "Kari"), placed_in("What did Kari ask?", "Kari")
    ('In “Kari”, what did the bull ask?', 'What did Kari ask?')
    """
    return question if names_in(question) or not title else _behind(f"In “{title}”, ", question)


def _behind(place: str, question: str) -> str:
    return f"{place}{question[:1].lower()}{question[1:]}"


def fault_in(question: str, statement: str, answer: str, word: str = "") -> str:
    """Why a question is none that this part of the statement answers; "" where nothing is wrong with it.

    `word` is how the parse asks for the answer ("who", "how many"); a question that asks for something else is wrong.

    >>> ada = "Ada Lovelace wrote the first program in 1843."
    >>> fault_in("When did Ada Lovelace write the first program?", ada, "in 1843", "when")
    ''
    >>> fault_in("When did Babbage write the first program?", ada, "in 1843", "when")
    'says what the statement does not: babbage'
    """
    return (
        fault_of(question, signatures.WordQuestion.instructions)
        or _fault_of_form(question)
        or _fault_of_kind(question, word)
        or words_beyond(question, statement)
        or _gives_away(question, answer)
    )


def fault_in_passage(question: str, passage: str) -> str:
    """Why a question is none that this passage answers, as far as its words tell; "" where nothing is wrong with it.

    >>> fault_in_passage("In “Ada”, what did Ada write before she met Charles?", "Ada met Charles. She wrote before.")
    ''
    """
    question = _PLACE.sub("", question)
    telling = set(_telling(question))
    *title, _ = passage.split("\n", 1)
    if len(telling) <= TELLING or telling.issubset(_words("".join(title))):
        return _ABOUT_NOTHING
    return fault_of(question, "") or _fault_of_form(question, _MEANT) or words_beyond(question, passage)


def _fault_of_form(question: str, own: frozenset[str] = _OWN) -> str:
    if len(question.split()) not in LENGTHS:
        return f"is of {counted(len(question.split()), 'word')}, not of {LENGTHS.start} to {LENGTHS[-1]}"
    if not _ASKS.match(question):
        return "begins with no question word"
    words, telling_words = _words(question), frozenset(_telling(question))
    telling = [place for place, each in enumerate(words) if each in telling_words]
    pointing = [place for place, each in enumerate(words) if each in POINTING - _ASKER]
    if any(words[place] not in own or not telling or place < telling[0] for place in pointing):
        return "points at something that it does not name"
    return "" if len(telling) >= TELLING else _ABOUT_NOTHING


def _fault_of_kind(question: str, word: str) -> str:
    """Whether it asks for another kind of thing: a question of "what" or "which" may ask for a year or a country."""
    kind = asked_kind(question)
    expected = _KINDS_OF_WORD.get(word, word)
    if not expected or kind == expected or (kind == "what" and expected in ("which", "who", "how")):
        return ""
    return f"asks {kind} where the answer says {expected}"


def asked_kind(question: str) -> str:
    """What a question asks for: "who", "when", "where", "why", "how", "how many", or "what"; "" without such a word.

    >>> asked_kind("In which year was Ada born?"), asked_kind("What number of notes did Ada write?")
    ('when', 'how many')
    """
    begun = _ASKS.match(question)
    if begun is None:
        return ""
    word = (begun["word"] or begun["behind"]).lower()
    if word in ("what", "which"):
        behind = _KIND.match(question[begun.end() :].strip())
        groups = behind.groupdict() if behind else {}
        return next((name if name != "many" else "how many" for name, text in groups.items() if text), "what")
    return _KINDS_OF_WORD.get(word, word)


def words_beyond(question: str, statement: str) -> str:
    """Which telling word or name of the question the statement does not have; "" where it has all of them, but for what
    any question may ask for, such as a year.

    >>> words_beyond("What is the purpose of the Ada prize?", "The Ada prize goes to engineers.")
    'says what the statement does not: purpose'
    """
    folded_statement = statement.casefold()
    strange = [name for name in names_in(question) if name not in folded_statement]
    allowed = {*_words(statement), *_MAY_ASK_FOR}
    allowed |= _ADDRESSED if "you" in allowed or "your" in allowed else set()
    known = {_stem(form) for each in allowed for form in (each, base_of(each)) if form}
    strange += [each for each in _telling(question) if _stem(each) not in known]
    return f"says what the statement does not: {strange[0]}" if strange else ""


def _stem(word: str) -> str:
    return re.sub(r"(?:ing|ed|es|s|e)$", "", word)[:_STEM]


def _asks_something_else(question: str, own: str) -> str:
    """Whether too few words of the parse's question are kept: then another part of the statement may answer it."""
    sought = {each[:_STEM] for each in _telling(_PLACE.sub("", own))}
    kept = sought & {each[:_STEM] for each in _telling(question)}
    return "asks something else than the parse" if len(kept) < KEPT * len(sought) else ""


def _gives_away(question: str, answer: str) -> str:
    sought = set(content_words(answer))
    return "has its own answer" if sought and len(sought & set(content_words(question))) * 2 > len(sought) else ""


def _telling(text: str) -> list[str]:
    return [each for each in _words(text) if each not in STOP and not _ASKS.fullmatch(each)]


def _words(text: str) -> list[str]:
    """The words of a text in small letters: "ada" of "Ada's"."""
    return [OWNER.sub("", each) or each for each in re.findall(r"[\w'’]+", text.casefold())]
