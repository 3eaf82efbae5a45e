"""Asks what a reader can do: of sentences that tell how something is done, and what to do in some case.

"To close an account, write to the clerk" answers "How can I close an account?", and "If you have questions about our
prices, ask the clerk" answers "What can I do if I have questions about the club's prices?".
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kraq_dspy.embedded.reading.phrasing import answer_text, reads_well
from kraq_dspy.embedded.reading.vocabulary import VAGUE
from kraq_dspy.language.analysis import Asked
from kraq_dspy.language.vocabulary import POINTING

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

LONGEST_PURPOSE = 14  # words
LONGEST_CASE = 16  # words
LEAST_NAMED = 2  # nouns and names that tell what is done where no site does
MOST_NAMED = 4
_OF_READER = frozenset(("you", "your", "yours", "yourself", "we", "our", "us"))
_ALLOWING = frozenset(("can", "may", "could", "must", "should", "will", "need", "have"))
_AT_PLACE = re.compile(r"\b(?:here|below|above|following|this|these|that link)\b", re.IGNORECASE)
_READS = frozenset(("read", "see", "refer", "note", "contact", "mean", "be", "say", "get", "know"))
"""Verbs by which nobody asks how it is done."""


def asked_of_instruction(sentence: "Span", speaker: str) -> list[Asked]:
    """The questions that an instruction answers; `speaker` is the site that says "we", "" for none."""
    verb = sentence.root
    text = sentence.text.strip()
    if not text.endswith((".", "!")) or not text[:1].isupper() or not _is_instruction(verb):
        return []
    asked = [*_asked_how(verb, speaker), *_asked_in_case(verb, speaker)]
    return [each for each in asked if each is not None]


def _is_instruction(verb: "Token") -> bool:
    """Whether the main clause tells the reader what to do or what can be done."""
    subjects = [child for child in verb.children if child.dep_ in ("nsubj", "nsubjpass")]
    auxiliaries = [child for child in verb.children if child.dep_ == "aux"]
    if verb.pos_ not in ("VERB", "AUX") or any(child.dep_ in ("neg", "expl", "csubj") for child in verb.children):
        return False
    if not subjects:
        return verb.tag_ == "VB" and not auxiliaries
    is_reader = len(subjects) == 1 and subjects[0].lower_ == "you"
    return is_reader and (verb.lemma_ in _ALLOWING or any(token.lower_ in _ALLOWING for token in auxiliaries))


def _asked_how(verb: "Token", speaker: str) -> Iterator[Asked | None]:
    for child in verb.children:
        words = list(child.subtree)
        is_purpose = child.dep_ == "advcl" and child.tag_ == "VB" and words[0].tag_ == "TO"
        if not is_purpose or child.lemma_ in _READS or len(words) > LONGEST_PURPOSE:
            continue
        purpose = [token for token in words[1:] if not (token.is_punct and token is words[-1])]
        yield _asked("How can I", purpose, verb, words, speaker, word="how")


def _asked_in_case(verb: "Token", speaker: str) -> Iterator[Asked | None]:
    for child in verb.children:
        words = list(child.subtree)
        is_case = child.dep_ == "advcl" and words[0].lower_ == "if" and len(words) <= LONGEST_CASE
        is_readers = any(token.dep_ in ("nsubj", "nsubjpass") and token.lower_ == "you" for token in child.children)
        if is_case and is_readers:
            yield _asked("What can I do if", words[1:], verb, words, speaker, word="what")


def _asked(
    begun: str, told: Sequence["Token"], verb: "Token", left_out: Sequence["Token"], speaker: str, *, word: str
) -> Asked | None:
    answer = _answer(verb, left_out)
    if not answer or any(token.lower_ in POINTING - _OF_READER for token in told):
        return None
    if not speaker and any(token.lower_ in ("we", "our", "us") for token in told):
        return None
    named = {token.lemma_.lower() for token in told if token.pos_ in ("NOUN", "PROPN")} - VAGUE
    if len(named) < (1 if speaker else LEAST_NAMED):
        return None

    spoken = _spoken_by_reader(told, speaker)
    place = f" at {speaker}" if speaker and speaker not in spoken else ""
    question = f"What can I do{place} if {spoken}?" if word == "what" else f"{begun} {spoken}{place}?"
    if not reads_well(question):
        return None
    weight = min(1.0, (len(named) + bool(speaker)) / MOST_NAMED)
    return Asked(question, answer, word, weight, tuple(sorted(named)))


def _answer(verb: "Token", left_out: Sequence["Token"]) -> str:
    """What is to be done, as the sentence says it: from the verb or its subject on."""
    places = {token.i for token in left_out}
    words = [token for token in verb.subtree if token.i not in places and not token.is_space]
    while words and (
        words[0].is_punct or words[0].pos_ in ("CCONJ", "ADV", "INTJ") or words[0].dep_ in ("prep", "mark")
    ):
        words.pop(0)
    text = answer_text(words)
    return "" if _AT_PLACE.search(text) or len(text.split()) < LEAST_NAMED else text


def _spoken_by_reader(words: Sequence["Token"], speaker: str) -> str:
    """The words as the reader says them: "your account" is "my account", "our prices" are the site's."""
    spoken: list[str] = []
    for token in words:
        text = _READERS.get(token.lower_, token.text)
        if token.lower_ == "you":
            text = "I" if token.dep_ in ("nsubj", "nsubjpass") else "me"
        elif token.lower_ == "our":
            text = f"{speaker}'s" if speaker not in "".join(spoken) else "its"
        elif token.lower_ in ("we", "us"):
            text = speaker if speaker not in "".join(spoken) else "it"
        elif token.lower_ in ("are", "were") and _is_of_reader(token):
            text = "am" if token.lower_ == "are" else "was"
        spoken.append(text + token.whitespace_)
    return re.sub(r" (n't|'s)\b", r"\1", "".join(spoken).strip(" ,.;:"))


_READERS = {"your": "my", "yours": "mine", "yourself": "myself"}


def _is_of_reader(verb: "Token") -> bool:
    owner = verb.head if verb.dep_ in ("aux", "auxpass") else verb
    return any(child.dep_ in ("nsubj", "nsubjpass") and child.lower_ == "you" for child in owner.children)
