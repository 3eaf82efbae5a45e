"""Puts the words of a question together, and strikes what no editor would show."""

import re
from collections.abc import Iterable, Sequence, Set as AbstractSet
from typing import TYPE_CHECKING

from kraq_dspy.embedded.reading.clause import READER, Clause, points_back
from kraq_dspy.embedded.reading.vocabulary import FEMALE, KEEPING, LIGHT, SHARING, USING, VAGUE
from kraq_dspy.language.analysis import Asked
from kraq_dspy.language.vocabulary import GENERAL, POINTING
from kraq_dspy.language.word_forms import plural

if TYPE_CHECKING:
    from spacy.tokens import Token

ASKED_LENGTH = range(4, 19)  # words of a question
LONGEST_ANSWER = 25  # words
OF_SUBJECT = frozenset(("its", "their", "his", "her", "itself", "themselves", "himself", "herself"))
"""May stand behind a subject that the question keeps."""
OF_READER = frozenset(("you", "your", "yours"))
LEAST_SAID, LEAST_OF_TALE = 1.5, 1.0
"""Names and nouns that a question has at least, a noun for half a name; and beside the title of its tale."""
MOST_SAID = 4
LONGEST_NAME = 5  # words of a name that is asked about by itself
_WHAT_IT_IS = 0.6  # weight of a question for what a name stands for
_BY_SPEAKER = 1.0  # what a speaker says who is named
_BY_TITLE = 1.0  # what the title of a tale says of which figures are meant
_ODD = re.compile(
    r"[\[\]{}|<>=±@#*_\\“”\"«»;:()+$]|\.\.|--| - |—|–\s|https?:|www\.|\bet al\b|&|\d\.\d{3}|[a-z]\.[A-Z]"
    r"|\b(?:[Uu]h|[Uu]m|[Mm]m|[Hh]mm|[Yy]eah|[Oo]kay)\b|(?:BIB|TAB|FIG|SEC|EQ)REF|INLINEFORM|\b(?:Table|Figure|Fig|Section|Appendix)\b"
)
"""What no question has that can be shown."""
_HESITATES = re.compile(r"\b(?:u[hm]|mm|hmm|yeah|okay)\b", re.IGNORECASE)
_ENDINGS = frozenset(
    """a about also an and are as at because between but by even for from in into is not of on or over soon than that
    the through to under was were which with""".split()  # noqa: SIM905
)
"""Words in which a question ends that lost what stood behind them."""
_ENUMERATES = re.compile(r",(?! ?[A-Z0-9])")
"""Where a question tells a list; a comma before a capital is a place's or a name's."""
_NEGATED = frozenset(("no", "not", "n't", "than", "nor", "without", "certain", "various"))
_LIGHT = LIGHT | USING | SHARING | KEEPING | {"take", "put", "give", "get"}
_ONE = {"am": "is", "are": "is", "have": "has", "were": "was", "do": "does"}
"""The forms of one for those of several."""


def of_subject(word: str, clause: Clause, verb: Sequence[str], answer: "Sequence[Token] | str") -> Asked | None:
    """The question for the subject, which keeps the order of the words: "Who sprang over the stile?"."""
    return made(word, clause, [word, *verb], [*clause.rest, *clause.before], answer, keeps_subject=False)


def with_subject(
    word: str,
    begun: Sequence[str],
    clause: Clause,
    rest: Iterable["Token"],
    answer: Sequence["Token"],
    *,
    keeps_before: bool = True,
    tail: str = "",
) -> Asked | None:
    """A question that keeps its subject, with "did" where the verb needs it; `tail` is a preposition at its end."""
    subject = clause.speaker or lowered(clause.subject_words)
    verb = clause.root
    is_one = bool(clause.speaker)
    if clause.auxiliaries:
        first, *others = [token.lower_ for token in clause.auxiliaries]
        spoken = [_ONE.get(first, first) if is_one else first, subject, *others, verb.text]
    elif clause.is_copula:
        spoken = [_ONE.get(verb.lower_, verb.lower_) if is_one else verb.lower_, subject]
    else:
        does = {"VBD": "did", "VBZ": "does", "VBP": "does" if is_one else "do"}[verb.tag_]
        spoken = [does, subject, verb.lemma_]
    behind = [*rest, *(clause.before if keeps_before else [])]
    return made(word, clause, [*begun, *spoken], behind, answer, keeps_subject=True, tail=tail)


def kind_asked(head: "Token", words: Sequence["Token"]) -> str:
    """How an answer is asked for by its kind: "Which vaccines" of "split virus vaccines", "What kind of company" of "a
    delivery company"; "" for one that has no kind, or is told by what stands behind it."""
    before = [token for token in words if token.i < head.i]
    if not _may_be_kind(head) or not _tells_kind(before):
        return ""
    if words[-1].i != head.i or words[0].pos_ in ("PRON", "ADV"):
        return ""
    named = [token for token in before if _is_part_of_name(token)]
    articles = {token.lower_ for token in before if token.dep_ == "det"}
    if articles & {"a", "an"}:
        return f"What kind of {head.text}" if named else ""
    is_one = "the" in articles and any(token.pos_ == "PROPN" for token in named)
    return f"Which {head.text}" if is_one or (head.tag_ == "NNS" and not articles) else ""


def _may_be_kind(head: "Token") -> bool:
    """Whether a noun may name a kind of things: a plain word that says something."""
    return head.pos_ == "NOUN" and head.text.isalpha() and head.lemma_.lower() not in VAGUE


def _tells_kind(before: Sequence["Token"]) -> bool:
    """Whether the words before a noun tell of which kind it is, and not how many there are."""
    is_counted = any(token.pos_ == "NUM" for token in before)
    is_told = any(_is_part_of_name(token) or (token.dep_ == "amod" and token.lower_ not in GENERAL) for token in before)
    return is_told and not is_counted


def _is_part_of_name(token: "Token") -> bool:
    """Whether a noun stands before another that it is one with: "delivery company"."""
    return token.dep_ in ("compound", "nmod")


def asked_what_it_is(word: str, clause: Clause, answer: Sequence["Token"]) -> Asked | None:
    """ "What is Siberia?": a question of two words and a name."""
    text = answer_text(answer)
    name = lowered(clause.subject_words)
    if not text or _ODD.search(name) or len(clause.subject_words) > LONGEST_NAME:
        return None
    return Asked(f"{word} {clause.root.text} {name}?", text, word.lower(), _WHAT_IT_IS, (clause.subject.text,))


def made(
    word: str,
    clause: Clause,
    begun: Sequence[str],
    behind: Sequence["Token"],
    answer: "Sequence[Token] | str",
    *,
    keeps_subject: bool,
    tail: str = "",
) -> Asked | None:
    """The question and its answer; None for one that an editor would strike."""
    answered = answer if isinstance(answer, str) else answer_text(answer)
    owners = OF_SUBJECT if keeps_subject else _owners(clause.subject) if word == "Who" else frozenset[str]()
    if not answered or not _may_stand_behind(clause, behind, owners=owners):
        return None
    question = _question(clause, begun, behind)
    if not reads_well(question):
        return None
    question = f"{question[:-1]} {tail}?" if tail else question
    tokens = [*(clause.subject_words if keeps_subject and not clause.speaker else []), *behind]
    about, weight = _weighed(tokens, clause, is_told=bool(clause.speaker) and keeps_subject)
    if weight <= 0 or _asks_nothing_particular(clause, tokens, behind):
        return None
    word = "which" if word.startswith(("Which ", "What kind ")) else word.lower()
    return Asked(question, answered, word, weight, tuple(about))


def answer_text(answer: Sequence["Token"]) -> str:
    """The answer as it stands in the sentence; "" for one with a gap, for a long one, and for none."""
    places = [token.i for token in answer]
    if not places or places[-1] - places[0] + 1 != len(places):
        return ""
    text = "".join(token.text_with_ws for token in answer).strip(" ,.;:")
    is_told = re.search(r"\w", text) is not None and _HESITATES.search(text) is None
    return text if is_told and len(text.split()) <= LONGEST_ANSWER else ""


def lowered(words: Sequence["Token"]) -> str:
    """The words as they stand within a sentence."""
    text = "".join(token.text_with_ws for token in words).strip()
    return text[:1].lower() + text[1:] if _is_lowered(words[0]) else text


def third_person(verb: str) -> str:
    """The form of a verb that one does.

    >>> third_person("carry"), third_person("do"), third_person("have")
    ('carries', 'does', 'has')
    """
    if verb == "have":
        return "has"
    return f"{verb}es" if verb.endswith("o") else plural(verb)


def spoken_of_one(clause: Clause) -> list[str]:
    """The verb as who or what is asked for has it: "What carries", "Who was seen"."""
    verb = [*clause.auxiliaries, clause.root]
    spoken = [token.text for token in verb]
    finite = clause.finite
    if finite.lower_ in _ONE:
        spoken[0] = _ONE[finite.lower_]
    elif finite.tag_ == "VBP":
        spoken[0] = third_person(finite.lemma_)
    return spoken


def _owners(subject: "Token") -> frozenset[str]:
    """What may point at who is asked for: "Who stretched out his arms?", of a boy."""
    if subject.tag_ in ("NNS", "NNPS") or any(child.dep_ == "conj" for child in subject.children):
        return frozenset(("their",))
    return frozenset(("her", "herself") if subject.lemma_.lower() in FEMALE else ("his", "himself"))


def _may_stand_behind(clause: Clause, behind: Sequence["Token"], *, owners: frozenset[str]) -> bool:
    """Whether nothing behind the verb points out of the question, is negated, or is cut off from its clause.

    `owners` are pronouns that point at what the question names or asks for.
    """
    allowed = owners | OF_READER | {"our", "us"} if clause.speaker else owners
    if behind and behind[0].lower_ in ("including", "like"):
        return False  # what was like that is what was asked for
    is_placed = clause.is_tale or clause.speaker
    for token in behind:
        if _points_out(token, allowed) or _is_negated_or_cut_off(token):
            return False
        if not is_placed and points_back(token):
            return False
    return True


def _points_out(token: "Token", allowed: AbstractSet[str]) -> bool:
    """Whether a word points at something else than what is allowed; "her" may be whom it was done to."""
    is_pronoun = token.pos_ == "PRON" and token.tag_ not in ("WDT", "WP")
    is_her = token.lower_ == "her" and token.tag_ != "PRP$"
    return (token.lower_ not in allowed or is_her) and (token.lower_ in POINTING or is_pronoun)


def _is_negated_or_cut_off(token: "Token") -> bool:
    is_of_condition = token.lower_ == "when" and token.head.dep_ == "advcl"
    return token.dep_ == "ROOT" or (token.tag_ == "WRB" and not is_of_condition) or token.lower_ in _NEGATED


def _question(clause: Clause, begun: Sequence[str], behind: Sequence["Token"]) -> str:
    rest = _spelled(behind, for_reader=bool(clause.speaker))
    question = re.sub(r"\s+", " ", " ".join(filter(None, [" ".join(begun), rest]))).strip(" ,.;:!") + "?"
    question = re.sub(r" ([,.%’'])", r"\1", question)
    question = re.sub(r" (n't|'s)\b", r"\1", question)
    if not clause.speaker:
        return question
    question = re.sub(r"\byours\b", "mine", re.sub(r"\byour\b", "my", question))
    question = re.sub(
        r"\byou\b(?= (?:can|may|could|are|were|have|will|do|use|visit|choose|send|provide|give)\b)", "I", question
    )
    question = re.sub(r"\bus\b", "it", question)
    question = re.sub(r"\bI are\b", "I am", re.sub(r"\bI were\b", "I was", question))
    return re.sub(r"\byou\b", "I" if clause.speaker == READER else "me", re.sub(r"\bour\b", "its", question))


def reads_well(question: str) -> bool:
    """Whether a question has no list, no mark of a text, and no end that lost what stood behind it."""
    words = question.split()
    is_whole = len(words) in ASKED_LENGTH and words[-1].rstrip("?").lower() not in _ENDINGS
    return is_whole and not _ODD.search(question[:-1]) and not _ENUMERATES.search(question)


def _asks_nothing_particular(clause: Clause, tokens: Sequence["Token"], behind: Sequence["Token"]) -> bool:
    """Whether a verb that says little has nothing beside it: "What does the company use?"."""
    if clause.root.lemma_ not in _LIGHT or clause.is_copula:
        return False
    return not any(token.pos_ in ("NOUN", "PROPN", "NUM") and token.lemma_.lower() not in VAGUE for token in behind)


def _is_lowered(first: "Token") -> bool:
    """Whether a word has its capital from the sentence that it begins: it is no name, and of none."""
    is_name = first.pos_ == "PROPN" or first.ent_type_ not in ("", "CARDINAL", "DATE")
    return bool(first.text.istitle() and (not is_name or first.pos_ == "DET"))


def _spelled(tokens: Sequence["Token"], *, for_reader: bool) -> str:
    """The words with the spaces between them; what began the sentence in small letters, unless it is a name.

    `for_reader` says that "you" is who asks.
    """
    words = []
    for token in tokens:
        text = token.lower_ if token.i == token.sent.start and _is_lowered(token) else token.text
        if for_reader and text == "you" and token.dep_ in ("nsubj", "nsubjpass"):
            text = READER
        words.append(
            text + (token.whitespace_ or " " * (token.nbor(1) not in tokens if token.i + 1 < len(token.doc) else 1))
        )
    return "".join(words).strip()


def _is_readers(noun: "Token") -> bool:
    """Whether it is the reader's: "your information"."""
    return any(child.lower_ == "your" for child in noun.children)


def _weighed(tokens: Sequence["Token"], clause: Clause, *, is_told: bool) -> tuple[list[str], float]:
    """The telling words of a question, and how much they say: names count one, nouns and numbers a half."""
    names = {token.text for token in tokens if token.pos_ == "PROPN" and token.text[:1].isalpha()}
    nouns = {
        token.lemma_.lower()
        for token in tokens
        if token.pos_ in ("NOUN", "ADJ", "NUM")
        and len(token.text) > 2
        and (token.lemma_.lower() not in VAGUE or _is_readers(token))
    }
    verb_says = 0.25 * (clause.root.lemma_ not in LIGHT and not clause.is_copula)
    says = len(names) + 0.5 * len(nouns) + verb_says + _BY_SPEAKER * is_told + _BY_TITLE * clause.is_tale
    if says < (LEAST_OF_TALE + _BY_TITLE if clause.is_tale else LEAST_SAID):
        return [], 0.0
    return [*sorted(names), *sorted(nouns)], min(1.0, says / MOST_SAID)
