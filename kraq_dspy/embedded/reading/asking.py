"""Asks what a parsed sentence answers: its subject, its object, when, where, why and how many.

Overgenerate and rank (Heilman and Smith 2010): each rule proposes, and what does not stand alone is dropped. A sentence
is asked about only where its parse is plain (`clause.py`). Questions leave out adverbial clauses, asides and citations.
"""

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kraq_dspy.embedded.reading.clause import READER, Clause, clauses_of, is_name, kept, points_back
from kraq_dspy.embedded.reading.phrasing import (
    OF_READER,
    OF_SUBJECT,
    asked_what_it_is,
    kind_asked,
    lowered,
    made,
    of_subject,
    spoken_of_one,
    with_subject,
)
from kraq_dspy.embedded.reading.vocabulary import FIGURES, VAGUE
from kraq_dspy.language.analysis import Asked
from kraq_dspy.language.vocabulary import POINTING

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

LONGEST_ANSWER = 14  # words of an object, a date or a place
LONGEST_REASON = 25  # words of a clause that says why or how
LONGEST_CONDITION = 14  # words of a clause that says when something is so
_ASIDE = re.compile(r"(?<!\s)\s*+(?:\[[^\[\]]{0,60}\]|\([^()]{0,160}\))")
"""Citations, and what stands in brackets."""
_CITED = re.compile(r"\bet al\b|^(?:see|cf|e\.g|i\.e)\b|^[^\d;]{0,80}[,\s](?:1[89]|20)\d\d[a-z]?(?:;|$)", re.IGNORECASE)
"""Of an aside: authors and a year."""
_PLACES = frozenset(("GPE", "LOC", "FAC"))
_BEFORE_TIMES, _BEFORE_PLACES = ("in", "on", "since", "until"), ("in", "at", "near")
"""Prepositions of what tells when, and where."""
_THINGS = frozenset(("ORG", "GPE", "LOC", "FAC", "PRODUCT", "WORK_OF_ART", "EVENT", "LAW", "NORP"))
_CARDINAL = re.compile(
    r"(?:\d{1,3}(?:,\d{3})+|\d{1,5}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty"
    r"|sixty|seventy|eighty|ninety)$"
)
_HANDED_ON = frozenset(("share", "disclose", "sell", "give", "send", "release", "transfer", "rent", "report", "lend"))
_DONE_WITH = frozenset(
    (("make", "of"), ("compose", "of"), ("base", "on"), ("name", "after"), ("know", "for"), ("know", "as"))
)
FEWEST_OF_KIND = 4  # words that say what something is
_TAKES_ANYTHING = frozenset(("have", "take", "make", "do", "give", "get", "play", "need"))
"""Verbs whose object is a part of what is done: "take part"."""


def asked_of(sentence: "Span", speaker: str = "", tale: str = "", title: str = "", turn: str = "") -> list[Asked]:
    """The questions that a sentence answers, best first.

    `speaker` stands for "we" where the document says who that is, `turn` for "I" in a transcript, and `title` for "he",
    "she" or "it" where the sentences before speak of what the title names. `tale` is a title that tells which "king" or
    "old woman" is meant.
    """
    clauses = clauses_of(sentence, speaker, is_tale=bool(tale), title=title, turn=turn)
    proposed = [asked for clause in clauses for asked in _proposals(clause) if asked is not None]
    if tale:
        proposed = [_placed(asked, tale) for asked in proposed]
    best = {asked.question: asked for asked in sorted(proposed, key=lambda asked: asked.weight)}
    return sorted(best.values(), key=lambda asked: -asked.weight)


def plain_text(text: str) -> str:
    """The sentence without citations and bracketed years, which no question keeps."""
    return _ASIDE.sub("", text)


def asides_of(text: str) -> list[str]:
    """What stands in round brackets, without citations: a place of birth, another name, the name of an acronym.

    >>> asides_of("Ada Byron (born 1815 in London) wrote to Babbage (Toole, 1992; see Stein et al.).")
    ['born 1815 in London']
    """
    asides = (match[0].strip(" ()") for match in _ASIDE.finditer(text) if "[" not in match[0])
    return [aside for aside in asides if aside and not _CITED.search(aside)]


def _placed(asked: Asked, tale: str) -> Asked:
    question = f"In “{tale}”, {asked.question[:1].lower()}{asked.question[1:]}"
    return dataclasses.replace(asked, question=question)


def _proposals(clause: Clause) -> Iterator[Asked | None]:
    if clause.speaker == READER:
        yield from (asked for asked in _adverbials_asked(clause) if asked is not None and asked.word == "how")
        return
    yield _subject_asked(clause)
    yield _object_asked(clause)
    yield _definition_asked(clause)
    yield _kind_asked(clause)
    yield _value_asked(clause)
    yield from _adverbials_asked(clause)
    yield _counted_object_asked(clause)
    yield _counted_subject_asked(clause)
    yield _agent_asked(clause)


def _person(head: "Token") -> bool | None:
    """Whether it is somebody; None where that is not clear."""
    if head.is_upper or not head.is_alpha:
        return False
    if head.ent_type_ == "PERSON":
        return None if _is_no_persons_name(head) else True
    if _is_figure(head):
        return True
    if head.pos_ == "PROPN":
        is_lone = head.ent_type_ == "ORG" and not list(head.children)  # "Jinnah" may be somebody
        return False if head.ent_type_ in _THINGS and not is_lone else None
    is_someone = re.search(r"(?:er|or|ist|man|woman|ian|person)$", head.lemma_.lower()) is not None
    return None if is_someone else False


def _is_figure(head: "Token") -> bool:
    """Whether its word is one for somebody, or it stands beside such a word: "Dunstan and colleagues"."""
    is_people = head.ent_type_ == "NORP" and head.tag_ in ("NNPS", "NNS")
    is_beside = any(child.dep_ == "conj" and child.lemma_.lower() in FIGURES for child in head.children)
    return is_people or is_beside or head.lemma_.lower() in FIGURES


def _is_no_persons_name(head: "Token") -> bool:
    """Whether what was taken for somebody's name has an article, a plain word or the form of an activity."""
    is_in_small = head.text.islower() and not head.sent.text.islower()
    is_numbered = any(child.dep_ in ("nummod", "nmod", "appos") and not child.is_alpha for child in head.children)
    has_plain_word = any(child.lower_ in ("the", "a", "an") or child.dep_ == "amod" for child in head.children)
    return is_in_small or is_numbered or has_plain_word or head.lower_.endswith("ing")


def _subject_asked(clause: Clause) -> Asked | None:
    """ "Who sprang over the stile?" """
    if clause.is_of_title and clause.subject.lower_ != "it" and not clause.is_copula:
        return of_subject("Who", clause, spoken_of_one(clause), clause.speaker)
    if clause.speaker or _says_what_it_is(clause):
        return None
    person = _person(clause.subject)
    if person is None or _is_any(clause.subject_words) or (person and _are_any(clause)):
        return None
    kind = "" if person else kind_asked(clause.subject, clause.subject_words)
    if kind:
        return of_subject(
            kind, clause, [token.text for token in (*clause.auxiliaries, clause.root)], clause.subject_words
        )
    return of_subject("Who" if person else "What", clause, spoken_of_one(clause), clause.subject_words)


def _says_what_it_is(clause: Clause) -> bool:
    """Whether a statement says what its subject is, becomes or includes: then something else is asked of it."""
    return (clause.is_copula and not _is_somehow(clause)) or clause.root.lemma_ in ("include", "become")


def _are_any(clause: Clause) -> bool:
    """Whether the subject may be any of several to whom something is done, or who may do it."""
    return clause.subject.tag_ == "NNS" and (clause.is_passive or clause.finite.tag_ == "MD")


def _is_somehow(clause: Clause) -> bool:
    """Whether a statement tells what something is like, and toward what: "is available on Harrow's site"."""
    likes = [child for child in clause.root.children if child.dep_ == "acomp"]
    return not clause.is_tale and any(
        child.dep_ in ("prep", "xcomp") for like in likes for child in like.children if child.i > like.i
    )


def _is_any(words: Sequence["Token"]) -> bool:
    """Whether an answer is one plain word, which tells nothing: "participants"."""
    return len(words) == 1 and words[0].pos_ == "NOUN"


def _object_of(clause: Clause) -> "Token | None":
    objects = [token for token in clause.rest if token.dep_ == "dobj" and token.head.i == clause.root.i]
    return objects[0] if len(objects) == 1 else None


def _object_asked(clause: Clause) -> Asked | None:
    """ "What does IFITM1 prevent?" """
    target = _object_of(clause)
    if target is None or clause.root.lemma_ in _TAKES_ANYTHING or target.pos_ not in ("NOUN", "PROPN"):
        return None
    answer, person = _object_answer(clause, target), _person(target)
    if person is None or not _tells(target, answer) or (person and not _says_who(target, answer)):
        return None
    rest = [token for token in clause.rest if token not in answer]
    if _is_any(answer) or _is_torn(rest) or answer[0].pos_ == "ADP":
        return None
    word = "Who" if person else kind_asked(target, answer) or "What"
    return with_subject(word, [word], clause, [*rest, *_condition_of(clause)], answer)


def _object_answer(clause: Clause, target: "Token") -> list["Token"]:
    """The words of an object. Of what a site does, those of with whom are left out if enough is left: "information
    about your location" stays whole."""
    answer = _without_partners(target) if clause.speaker else kept(target)
    return kept(target) if _is_any(answer) else answer


def _condition_of(clause: Clause) -> list["Token"]:
    """The words of the one "if" or "when" under which a site does what it says: "if you close your account"."""
    if not clause.speaker or clause.speaker == READER or clause.is_of_title:
        return []
    conditions = [child for child in clause.root.children if child.dep_ == "advcl" and _is_condition(child)]
    if len(conditions) != 1:
        return []
    words = [token for token in conditions[0].subtree if not (token.is_punct and token.i == conditions[0].right_edge.i)]
    is_plain = not any(token.lower_ in ("we", "any", "such") or token.dep_ in ("neg", "relcl") for token in words)
    others = [token for token in words if token.lower_ not in ("our", "us")]
    return words if is_plain and len(words) <= LONGEST_CONDITION and _points_at_nothing(others) else []


def _is_condition(verb: "Token") -> bool:
    """Whether a clause with a subject of its own begins with "if" or "when"."""
    first = verb.left_edge
    has_subject = any(child.dep_ in ("nsubj", "nsubjpass") for child in verb.children)
    return has_subject and first.lower_ in ("if", "when") and first.head.i == verb.i and verb.tag_ in ("VBP", "VBZ")


def _is_torn(rest: Sequence["Token"]) -> bool:
    """Whether a noun is left behind the verb that nothing joins to it: the object was parsed in two."""
    return bool(rest) and rest[0].dep_ not in ("prep", "agent", "prt", "advmod", "dative", "aux", "npadvmod")


def _without_partners(target: "Token") -> list["Token"]:
    """ "share your address with partners": with whom is asked about, not which address."""
    parted: set[int] = set()
    for child in target.children:
        if child.dep_ == "prep" and child.lower_ != "of":
            parted.update(below.i for below in child.subtree)
    return [token for token in kept(target) if token.i not in parted]


def _says_who(head: "Token", answer: Sequence["Token"]) -> bool:
    """Whether an answer that is somebody says which one: "patients" are any."""
    return head.pos_ == "PROPN" or len([token for token in answer if token.pos_ != "DET"]) > 1 or head.tag_ == "NN"


def _definition_asked(clause: Clause) -> Asked | None:
    """ "What is the capital of France?": of "Paris is the capital of France"."""
    attribute = _attribute_of(clause)
    if attribute is None or attribute.pos_ not in ("NOUN", "PROPN"):
        return None
    has_the = any(child.lower_ == "the" for child in attribute.children)
    tells_which = any(child.dep_ in ("prep", "relcl", "acl") or child.tag_ == "JJS" for child in attribute.children)
    person = _person(clause.subject) or _person(attribute)
    if not has_the or not tells_which or person is None:
        return None
    word = "Who" if person else "What"
    begun = [word, clause.root.text]
    return made(word, clause, begun, [*kept(attribute), *clause.before], clause.subject_words, keeps_subject=False)


def _attribute_of(clause: Clause) -> "Token | None":
    """What a clause says that its subject is or was; None where the subject speaks, or is several things."""
    if not clause.is_copula or clause.speaker or clause.root.tag_ not in ("VBD", "VBZ"):
        return None
    attributes = [token for token in clause.rest if token.dep_ == "attr" and token.head.i == clause.root.i]
    return attributes[0] if len(attributes) == 1 else None


def _kind_asked(clause: Clause) -> Asked | None:
    """ "What is a lagoon?": of "A lagoon is a shallow body of water"."""
    attribute = _attribute_of(clause)
    if attribute is None or clause.is_tale or clause.before or not is_name(clause.subject):
        return None
    person = _person(attribute)
    is_misread = person is False and _person(clause.subject) is True
    if is_misread or person is None or not _tells_what_kind(attribute):
        return None
    word = "Who" if person else "What"
    return asked_what_it_is(word, clause, kept(attribute))


def _tells_what_kind(attribute: "Token") -> bool:
    """Whether "a" thing is said with enough words to explain what it is."""
    answer = kept(attribute)
    has_a = any(child.lower_ in ("a", "an") for child in attribute.children)
    return has_a and len(answer) >= FEWEST_OF_KIND and _tells(attribute, answer)


def _value_asked(clause: Clause) -> Asked | None:
    """ "What was the toll of the bridge?": of "The toll of the bridge was $4"."""
    values = [token for token in clause.rest if token.dep_ == "attr" and token.pos_ in ("NUM", "NOUN")]
    if not clause.is_copula or clause.speaker or len(values) != 1 or values[0].head.i != clause.root.i:
        return None
    value = kept(values[0])
    is_value = values[0].ent_type_ in ("MONEY", "PERCENT", "QUANTITY") and value[-1].i == values[0].i
    tells_which = any(child.dep_ == "prep" for child in clause.subject.children)
    if not is_value or not tells_which:
        return None
    rest = [token for token in clause.rest if token not in value]
    return with_subject("What", ["What"], clause, rest, value)


def _adverbials_asked(clause: Clause) -> Iterator[Asked | None]:
    """When, how soon, where, why and how."""
    for child in clause.root.children:
        if child.dep_ == "prep":
            yield _asked_by_preposition(clause, child)
            yield _asked_for_the_other(clause, child)
        elif child.dep_ == "advcl" and child.i > clause.root.i:
            yield _asked_why(clause, child)
            yield _asked_what_for(clause, child)
        elif child.dep_ == "xcomp" and clause.root.lemma_ == "use":
            yield _asked_what_for(clause, child)


def _asked_by_preposition(clause: Clause, preposition: "Token") -> Asked | None:
    """What a phrase behind its preposition tells: when, where, why or how."""
    led_by = preposition.lower_
    if led_by in _BEFORE_TIMES or led_by in _BEFORE_PLACES:
        return _asked_when_or_where(clause, preposition)
    if led_by == "within":
        return _asked_how_soon(clause, preposition)

    answer = kept(preposition)
    if preposition.i < clause.subject.i or len(answer) > LONGEST_REASON:
        return None
    rest = [token for token in clause.rest if token not in answer]
    if led_by in ("because", "due"):
        return with_subject("Why", ["Why"], clause, rest, answer)
    does = any(token.dep_ == "pcomp" and token.tag_ == "VBG" for token in preposition.children)
    if led_by == "by" and does and not clause.is_passive:
        return with_subject("How", ["How"], clause, rest, answer)
    return None


def _asked_when_or_where(clause: Clause, preposition: "Token") -> Asked | None:
    """When or where, of a date or a place that the parser knows as one."""
    whole, led_by = kept(preposition), preposition.lower_
    object_ = next((token for token in preposition.children if token.dep_ == "pobj"), None)
    if object_ is None or len(whole) > LONGEST_ANSWER:
        return None

    is_before = preposition.i < clause.subject.i
    rest = [token for token in clause.rest if token not in whole]
    if object_.ent_type_ == "DATE" and led_by in _BEFORE_TIMES and _has_figure(whole):
        word = {"since": "Since when", "until": "Until when"}.get(led_by, "When")
        return with_subject("When", [word], clause, rest, kept(object_), keeps_before=not is_before)
    if object_.ent_type_ in _PLACES and led_by in _BEFORE_PLACES and not clause.is_copula:
        return _asked_where(clause, rest, kept(object_), is_before=is_before)
    return None


def _asked_how_soon(clause: Clause, preposition: "Token") -> Asked | None:
    """ "How soon does the office answer?": of "The office answers within 30 days"."""
    answer = kept(preposition)
    is_time = any(token.ent_type_ in ("DATE", "TIME") for token in preposition.children)
    if (
        not is_time
        or not any(token.like_num for token in answer)
        or len(answer) > LONGEST_ANSWER
        or preposition.i < clause.subject.i
    ):
        return None
    rest = [token for token in clause.rest if token not in answer]
    return with_subject("When", ["How soon"], clause, [*rest, *_condition_of(clause)], answer)


def _has_figure(answer: Sequence["Token"]) -> bool:
    return any(re.search(r"\d", token.text) for token in answer)


def _asked_where(
    clause: Clause, rest: Sequence["Token"], answer: Sequence["Token"], *, is_before: bool
) -> Asked | None:
    """Where something was done; nothing where the sentence says from or to where as well."""
    if any(token.lower_ in ("from", "to", "into") and token.head.i == clause.root.i for token in rest):
        return None
    return with_subject("Where", ["Where"], clause, rest, answer, keeps_before=not is_before)


def _asked_why(clause: Clause, reason: "Token") -> Asked | None:
    mark = next((token for token in reason.children if token.dep_ == "mark"), None)
    whole = list(reason.subtree)
    if mark is None or mark.lower_ != "because" or len(whole) > LONGEST_REASON:
        return None
    rest = [token for token in clause.rest if token not in whole]
    return with_subject("Why", ["Why"], clause, rest, whole)


def _asked_what_for(clause: Clause, purpose: "Token") -> Asked | None:
    """ "Why does the keeper use a lamp?", "What are cookies used for?": of what is done to do something."""
    answer = list(purpose.subtree)
    is_purpose = len(answer) > 2 and answer[0].tag_ == "TO" and purpose.tag_ == "VB" and purpose.i > clause.root.i
    if not is_purpose or len(answer) > LONGEST_REASON or not _points_at_nothing(answer):
        return None
    rest = [token for token in clause.rest if token not in answer]
    if clause.is_passive:
        is_used = clause.root.lemma_ == "use" and not rest
        return with_subject("What", ["What"], clause, rest, answer, tail="for") if is_used else None
    return with_subject("Why", ["Why"], clause, rest, answer) if _object_of(clause) is not None else None


def _asked_for_the_other(clause: Clause, preposition: "Token") -> Asked | None:
    """ "Who may the keeper share the letters with?", "What is the tower made of?"."""
    target = next((token for token in preposition.children if token.dep_ == "pobj"), None)
    if target is None or preposition.i < clause.root.i or target.pos_ not in ("NOUN", "PROPN"):
        return None
    answer, led_by = kept(target), preposition.lower_
    rest = [token for token in clause.rest if token not in kept(preposition)]
    if not _tells(target, answer):
        return None
    if clause.is_passive and not rest and (clause.root.lemma_, led_by) in _DONE_WITH:
        return with_subject("What", ["What"], clause, rest, answer, tail=led_by)
    is_handed_on = clause.root.lemma_ in _HANDED_ON and led_by in ("with", "to") and _object_of(clause) is not None
    if is_handed_on and not clause.is_passive and _person(target) is not False:
        return with_subject("Who", ["Who"], clause, rest, answer, tail=led_by)
    return None


def _counted_object_asked(clause: Clause) -> Asked | None:
    """ "How many workers did the commission pay?" """
    counted = _object_of(clause)
    number = _number_of(counted) if counted is not None else None
    if counted is None or number is None or counted.tag_ != "NNS":
        return None
    words = [token for token in kept(counted) if token not in list(number.subtree)]
    rest = [token for token in clause.rest if token not in kept(counted)]
    noun = "".join(token.text_with_ws for token in words if token.i >= number.i).strip()
    return with_subject("How many", [f"How many {noun}"], clause, rest, [*number.subtree])


def _counted_subject_asked(clause: Clause) -> Asked | None:
    """ "How many people died in the fire?" """
    number = _number_of(clause.subject)
    if number is None or clause.subject.tag_ != "NNS" or clause.speaker:
        return None
    counted = [token for token in clause.subject_words if token.i > number.i]
    noun = "".join(token.text_with_ws for token in counted).strip()
    if not counted or not counted[0].is_alpha:
        return None  # "six-and-thirty"
    verb = [token.text for token in (*clause.auxiliaries, clause.root)]
    begun = [f"How many {noun}", *verb]
    return made("How many", clause, begun, [*clause.rest, *clause.before], [*number.subtree], keeps_subject=False)


def _number_of(noun: "Token") -> "Token | None":
    numbers = [child for child in noun.children if child.dep_ == "nummod" and _CARDINAL.match(child.lower_)]
    return numbers[0] if len(numbers) == 1 and numbers[0].i == noun.left_edge.i else None


def _agent_asked(clause: Clause) -> Asked | None:
    """ "Who directed Ed Wood?", of a passive."""
    by = _agent_of(clause)
    if by is None or (clause.speaker and not clause.is_of_title):
        return None
    person, answer = _person(by), kept(by)
    if person is None or _is_any(answer) or not _tells(by, answer):
        return None
    rest = [token for token in clause.rest if token not in list(by.head.subtree)]
    word = "Who" if person else "What"
    begun = [word, clause.root.text, clause.speaker or lowered(clause.subject_words)]
    return made(word, clause, begun, [*rest, *clause.before], answer, keeps_subject=True)


def _agent_of(clause: Clause) -> "Token | None":
    """Who or what did it, of a passive that tells what was done; None for another clause."""
    if not clause.is_passive or len(clause.auxiliaries) != 1:
        return None
    is_past = clause.auxiliaries[0].tag_ == "VBD" and clause.root.lower_.endswith("ed")
    agents = [child for child in clause.root.children if child.dep_ == "agent"]
    if len(agents) != 1 or not is_past:
        return None
    return next((token for token in agents[0].children if token.dep_ == "pobj"), None)


def _points_at_nothing(words: Sequence["Token"]) -> bool:
    return not any(token.lower_ in POINTING - OF_SUBJECT - OF_READER for token in words)


def _tells(head: "Token", words: Sequence["Token"]) -> bool:
    """Whether an answer says something: no pronoun, no filler alone, nothing that only another sentence tells of."""
    if len(words) > LONGEST_ANSWER or not _points_at_nothing(words):
        return False
    is_bare = len(words) <= 2 and points_back(head) and not head.ent_type_
    says_more = len([token for token in words if token.pos_ in ("NOUN", "PROPN", "ADJ", "NUM")]) > 1
    return says_more or (head.lemma_.lower() not in VAGUE and not is_bare)
