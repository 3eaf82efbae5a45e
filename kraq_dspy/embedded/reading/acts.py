"""Takes out of a parsed sentence who does what to what, in the active voice, passives turned round."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kraq_dspy.embedded.reading.parse import name_in
from kraq_dspy.embedded.reading.vocabulary import SHARING, USING
from kraq_dspy.language.analysis import Act, Named

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

_LEADING = frozenset((("lead", "to"), ("result", "in"), ("contribute", "to"), ("depend", "on"), ("protect", "against")))
"""Verbs whose object stands behind a preposition."""
DEMANDED = "should"
"""Stands for the verb of what should be or be done."""
STATED = "state"
"""Is the verb of a sentence by which a site speaks to its readers; its subject is the site."""
PURPOSE = " for"
"""Follows a verb of use where the sentence says what for, and one of sharing where it says with whom."""
_PAST = frozenset(("was", "were", "had", "did"))


def acts_in(sentence: "Span", named: Sequence[Named]) -> list[Act]:
    """The acts of a sentence whose subject or object is named; none that is denied."""
    by_text = {each.text.casefold(): each.text for each in named}
    acts = []
    for verb in sentence:
        if verb.pos_ not in ("VERB", "AUX") or any(child.dep_ == "neg" for child in verb.children):
            continue
        if _is_demanded(verb):
            subjects = _below(verb, "nsubj")
            acts.append(Act(DEMANDED, name_in(subjects[0], by_text) if subjects else "", ""))
        elif verb.pos_ == "VERB":
            acts.append(_passive(verb, by_text) if _is_passive(verb) else _active(verb, by_text))
    return [act for act in acts if act.subject or act.object]


def _is_demanded(verb: "Token") -> bool:
    return any(child.lower_ in ("should", "must") for child in _below(verb, "aux"))


def _is_passive(verb: "Token") -> bool:
    return any(child.dep_ == "auxpass" for child in verb.children)


def _passive(verb: "Token", by_text: dict[str, str]) -> Act:
    subjects = _below(_with_subject(verb), "nsubjpass")
    agents = [token for agent in _below(verb, "agent") for token in _below(agent, "pobj")]
    done_to = name_in(subjects[0], by_text) if subjects else ""
    done_by = name_in(agents[0], by_text) if agents else ""
    return Act(_lemma(verb), done_by, done_to, _is_past(verb))


def _active(verb: "Token", by_text: dict[str, str]) -> Act:
    subjects = _below(_with_subject(verb), "nsubj")
    done_by = ""
    if subjects:
        done_by = "we" if subjects[0].lower_ == "we" else name_in(subjects[0], by_text)
    objects = _below(verb, "dobj")
    if objects:
        done_to = "it" if objects[0].pos_ == "PRON" else name_in(objects[0], by_text)
        return Act(_lemma(verb), done_by, done_to, _is_past(verb))

    for preposition in _below(verb, "prep"):
        if (verb.lemma_, preposition.lower_) in _LEADING:
            for target in _below(preposition, "pobj"):
                return Act(f"{verb.lemma_} {preposition.lower_}", done_by, name_in(target, by_text), _is_past(verb))
    return Act(_lemma(verb), done_by, "", _is_past(verb))


def _with_subject(verb: "Token") -> "Token":
    """The verb itself, or the one before it that has the subject of both: "He came and saw"."""
    has_own = any(child.dep_ in ("nsubj", "nsubjpass") for child in verb.children)
    is_second = verb.dep_ == "conj" and verb.head.pos_ in ("VERB", "AUX")
    return verb.head if is_second and not has_own else verb


def _below(token: "Token", role: str) -> list["Token"]:
    return [child for child in token.children if child.dep_ == role]


def _lemma(verb: "Token") -> str:
    lemma = str(verb.lemma_).lower()
    if (lemma in USING and _says_what_for(verb)) or (lemma in SHARING and _says_with_whom(verb)):
        return lemma + PURPOSE
    particles = [child.lower_ for child in verb.children if child.dep_ == "prt"]
    return " ".join([lemma, *particles])


def _says_what_for(verb: "Token") -> bool:
    """Whether a verb of use has a purpose: "to open the door", "as a lamp", "for guests"."""
    for child in verb.children:
        is_purpose = child.dep_ in ("advcl", "xcomp") and any(token.tag_ == "TO" for token in child.children)
        if child.i > verb.i and (is_purpose or (child.dep_ == "prep" and child.lower_ in ("as", "for"))):
            return True
    return False


def _says_with_whom(verb: "Token") -> bool:
    return any(child.lower_ in ("with", "to") for child in (*_below(verb, "prep"), *_below(verb, "dative")))


def _is_past(verb: "Token") -> bool:
    auxiliaries = [child.lower_ for child in verb.children if child.dep_ in ("aux", "auxpass")]
    return auxiliaries[0] in _PAST if auxiliaries else verb.tag_ == "VBD"
