"""Completes a question from the conversation before it: pronouns and short ways of asking get the names they stand for.

English alone is resolved; a question in another language stays as it is.
"""

import re
from collections.abc import Sequence

from kraq_dspy.language.names import kind_of, names_in
from kraq_dspy.language.text import content_words, sentences
from kraq_dspy.language.vocabulary import KIND_OF_NOUN

PERSON_PRONOUN = re.compile(r"\b(?:he|she|him|his|hers?|himself|herself)\b", re.IGNORECASE)
THING_PRONOUN = re.compile(r"\b(?:it|its|itself)\b", re.IGNORECASE)
GROUP_PRONOUN = re.compile(r"\b(?:they|them|their|theirs|themselves)\b", re.IGNORECASE)
PLACE_WORD = re.compile(r"(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )\bthere\b(?=\s*(?:[?.!,]|$))", re.IGNORECASE)

POSSESSIVE = re.compile(r"(?:his|its|their|her)", re.IGNORECASE)
FOLLOWING_NOUN = re.compile(
    r"\s+(?!(?:in|on|at|to|for|from|by|with|and|or|when|after|before|during)\b)\w", re.IGNORECASE
)

EMPTY_IT = re.compile(r"\bit (?:is|was) (?:true|possible|necessary|likely|known)\b|\bwhat time is it\b", re.IGNORECASE)
DEFINITE = re.compile(r"\b(?:the|this|that) (?:same )?(?P<noun>[a-z]{3,})\b")
INSTEAD = re.compile(r"^(?:and|but|so)?\s*(?:what|how) about (?P<topic>.+?)\s*\?*$", re.IGNORECASE)
OPENING = re.compile(r"^(?:and|but|so|then|also|ok(?:ay)?)\b[, ]*", re.IGNORECASE)

QUESTION_MARK = "Question: "
ANSWER_MARK = "Answer: "


def complete_question(question: str, conversation: Sequence[str]) -> str:
    """`question` with the names that its pronouns stand for, from the latest turn that has one of their kind.

    `conversation` holds turns as `programs.conversation` writes them: "Question: ...\\nAnswer: ...", the oldest first.

    >>> said = ["Question: Who founded Maybach Music Group?\\nAnswer: Rick Ross."]
    >>> complete_question("Where was he born?", said)
    'Where was Rick Ross born?'
    >>> complete_question("Who wrote Don Juan?", said)
    'Who wrote Don Juan?'
    """
    question = question.strip()
    turns = [_parts_of(turn) for turn in conversation]
    if not turns or not question:
        return question

    replaced = _asked_of_another(question, turns[-1][0])
    if replaced:
        return replaced

    mentioned = _subjects(turns, question)
    completed = _with_pronouns_resolved(question, mentioned)
    if completed == question and not names_in(question):
        completed = _with_topic_named(question, mentioned)
    if completed == question:
        return question

    completed = OPENING.sub("", completed)
    return completed[:1].upper() + completed[1:]


def pronoun_for_nobody(question: str) -> str:
    """The pronoun for a person with nothing before it in the question that it could stand for; "" if there is none.

    >>> pronoun_for_nobody("Where was he born?")
    'he'
    >>> pronoun_for_nobody("Which painter cut off his ear?")
    ''
    """
    pronoun = PERSON_PRONOUN.search(question)
    if pronoun is None or names_in(question) or content_words(question[: pronoun.start()]):
        return ""
    return pronoun[0]


def _parts_of(turn: str) -> tuple[str, str]:
    """(question, answer) of a turn as text."""
    question, _, answer = turn.partition(f"\n{ANSWER_MARK}")
    return question.removeprefix(QUESTION_MARK).strip(), answer.strip()


def _asked_of_another(question: str, earlier: str) -> str:
    """The earlier question asked of what "What about X?" names; "" for a question of another form."""
    match = INSTEAD.match(question)
    earlier_names = names_in(earlier)
    if match is None or not earlier_names:
        return ""
    return earlier.replace(earlier_names[-1], match["topic"], 1)


def _subjects(turns: Sequence[tuple[str, str]], question: str) -> list[tuple[str, str]]:
    """(name, kind) of what was named, the latest turn first; in a turn its answer's names before its question's.

    What the question itself names stands for itself, so it is left out.
    """
    own = set(names_in(question))
    subjects: dict[str, str] = {}
    for question_before, answer in reversed(turns):
        in_question = names_in(question_before)
        in_answer = names_in(answer, known=frozenset(_words_with_capitals(answer)))
        for name in (*in_answer, *in_question):
            if name not in own:
                subjects.setdefault(name, _kind_in(name, f"{answer} {question_before}"))
    return list(subjects.items())


def _kind_in(name: str, text: str) -> str:
    """Return what kind of thing the sentences of the text say that the name is; what only looks
    like a person comes last.

    A place is also told by "in", "at" or "near" before it.
    """
    kinds = [kind_of(name, sentence) for sentence in sentences(text) if name in sentence]
    telling = [kind for kind in kinds if kind not in ("person", "concept")]
    if telling:
        return telling[0]
    if "person" in kinds:
        return "person"
    return "place" if re.search(rf"\b(?:in|at|near|from) {re.escape(name)}\b", text) else "concept"


def _words_with_capitals(text: str) -> list[str]:
    """Single words that an answer begins with and that may be its name: "London." """
    return re.findall(r"(?:^|[.!?]\s+)([A-Z]\w+)(?=[.,]|$)", text)


def _with_pronouns_resolved(question: str, subjects: Sequence[tuple[str, str]]) -> str:
    persons = _of_kinds(subjects, "person") or _of_kinds(subjects, "concept")
    places = _of_kinds(subjects, "place")
    things = _of_kinds(subjects, "organisation", "work", "event", "place", "species") or _of_kinds(subjects, "concept")

    if PERSON_PRONOUN.search(question):
        return _replaced(PERSON_PRONOUN, question, persons)
    if PLACE_WORD.search(question):
        return PLACE_WORD.sub(f"in {places[0]}", question, count=1) if places else question
    if THING_PRONOUN.search(question) and not EMPTY_IT.search(question):
        return _replaced(THING_PRONOUN, question, things)
    if GROUP_PRONOUN.search(question):
        return _replaced(GROUP_PRONOUN, question, things)
    return question


def _of_kinds(subjects: Sequence[tuple[str, str]], *kinds: str) -> list[str]:
    return [name for name, kind in subjects if kind in kinds]


def _replaced(pronoun: re.Pattern[str], question: str, candidates: Sequence[str]) -> str:
    """The question with the first candidate in the place of the first pronoun; later ones are then clear."""
    match = pronoun.search(question)
    if match is None or not candidates:
        return question
    name = candidates[0]
    rest = question[match.end() :]
    if POSSESSIVE.fullmatch(match[0]) and FOLLOWING_NOUN.match(rest):
        name += "'" if name.endswith("s") else "'s"
    return question[: match.start()] + name + rest


def _with_topic_named(question: str, subjects: Sequence[tuple[str, str]]) -> str:
    """The question with the name of what "the company" is, or with the last subject after "And when?"."""
    definite = DEFINITE.search(question)
    if definite:
        kind = KIND_OF_NOUN.get(definite["noun"])
        of_that_kind = _of_kinds(subjects, kind) if kind else []
        if of_that_kind:
            return f"{question[: definite.start()]}{of_that_kind[0]}{question[definite.end() :]}"

    if subjects and OPENING.match(question):
        return f"{question.rstrip('?. ')} ({subjects[0][0]})?"
    return question
