"""Takes a plain sentence apart into its clauses: the verb of each, its subject, and what a question keeps of the rest.

A clause is plain where its finite verb has one subject, or shares that of the verb before it, in a sentence that ends
in a full stop; no speech, no negation, nothing that points to another sentence. Others are none, and nothing is asked
of them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kraq_dspy.embedded.reading.vocabulary import (
    AT_HAND,
    DETERMINERS,
    INTRANSITIVE,
    KNOWN,
    PHRASES,
    SHOWING,
    STUDIED,
    VAGUE,
)
from kraq_dspy.language.vocabulary import KIND_OF_NOUN, POINTING, STOP

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

LENGTH = range(6, 51)  # tokens of a sentence
LONGEST_SUBJECT = 12  # words
READER = "I"
"""How a question calls the reader whom a text calls "you"."""
OF_TITLE = frozenset(("he", "she", "it"))
_BROKEN = re.compile(r"\b\w\.$|\.\w\b\.?$|\d[a-z]{4,}|``|\d's|(?:^|\s)['‘’](?!s\b)|^[^a-z]*$|\?")
"""Where a sentence was cut at an initial, where two words ran together, and speech."""
_SPEECH = re.compile(r"[“”\"|\t]|(?:^|\s)[‘’'](?!s\b)")
_BEGINS = re.compile(r"[A-Z0-9]|[a-z]+[A-Z0-9]")
_RESTRICTED = frozenset(("only", "never", "hardly", "rarely", "neither", "nor", "none", "barely", "seldom"))
_AUXILIARIES = frozenset(
    """am are be been being can could did do does had has have is may might must shall should was were will
    would""".split()  # noqa: SIM905
)
_NOT_PLAIN = frozenset(("neg", "expl", "parataxis", "csubj", "ccomp", "preconj"))
"""What a root has that is negated, split or speech."""
_LEFT_OUT = frozenset(("advcl", "punct", "cc", "conj", "dep", "mark", "intj", "npadvmod", "appos", "meta"))
"""What stands behind a root and is none of its statement."""
_BEFORE_VERB = frozenset(("aux", "auxpass", "advmod", "prep", "cc", "punct", "neg"))
"""What stands before a verb that is joined to another and shares its subject."""
_ORDINALS = frozenset(("first", "second", "third", "last", "final", "other"))
_CONNECTING = frozenset(("however", "therefore", "thus", "also", "then", "now", "too", "still", "again", "already"))
_ASIDES = frozenset(("advcl", "appos", "relcl", "acl", "parataxis"))
_APART = frozenset((",", "(", ";", ":", "—", "–", "--"))
_PREPOSITIONS_BEFORE = frozenset(("in", "on", "at", "for", "among", "under", "during", "after", "before"))


@dataclass(frozen=True)
class Clause:
    """A sentence's main clause, by its parts."""

    root: "Token"
    subject: "Token"
    subject_words: list["Token"]
    auxiliaries: list["Token"]
    rest: list["Token"]  # behind the subject and the verb, without what a question leaves out
    before: list["Token"]  # a short phrase before the subject that the question puts behind
    speaker: str  # who "we", "he" or "it" is; "" where the subject says it
    is_tale: bool = False

    @property
    def is_of_title(self) -> bool:
        """Whether the subject is a pronoun that stands for what the title names."""
        return bool(self.speaker) and self.subject.lower_ in OF_TITLE

    @property
    def is_copula(self) -> bool:
        return self.root.lemma_ == "be" and self.root.pos_ in ("AUX", "VERB")

    @property
    def is_passive(self) -> bool:
        return any(token.dep_ == "auxpass" for token in self.auxiliaries)

    @property
    def finite(self) -> "Token":
        return self.auxiliaries[0] if self.auxiliaries else self.root


def clauses_of(sentence: "Span", speaker: str, *, is_tale: bool, title: str = "", turn: str = "") -> list[Clause]:
    """The plain clauses of a sentence, the main one first; none of one that is not asked about.

    `title` is what "he", "she" or "it" is, and `turn` who "I" am.
    """
    if not _is_plain(sentence, is_tale=is_tale):
        return []
    clauses = (
        _clause_at(verb, sentence.root, speaker, is_tale=is_tale, title=title, turn=turn)
        for verb in _verbs_of(sentence.root)
    )
    return [clause for clause in clauses if clause is not None]


def _verbs_of(root: "Token") -> list["Token"]:
    """The root, what it is told to have shown, and the verbs that are joined to these by "and" or "but"."""
    verbs = [root]
    for verb in verbs:
        joined = [child for child in verb.children if child.dep_ == "conj" and child.pos_ in ("VERB", "AUX")]
        shown = [child for child in verb.children if child.dep_ == "ccomp" and _is_shown(child)]
        verbs += [*joined, *shown]
    return verbs


def _is_shown(verb: "Token") -> bool:
    """Whether a clause behind "that" tells what is so: "The study showed that sleep restores memory"."""
    is_denied = any(child.dep_ == "neg" or child.tag_ == "MD" for child in verb.head.children)
    return verb.head.lemma_ in SHOWING and not is_denied and verb.i > verb.head.i


def _clause_at(verb: "Token", root: "Token", speaker: str, *, is_tale: bool, title: str, turn: str) -> Clause | None:
    subject, auxiliaries = _subject_of(verb), _auxiliaries_of(verb)
    is_first = subject is not None
    if subject is None and verb.dep_ == "conj":
        subject, auxiliaries = _subject_before(verb), auxiliaries or _shared_auxiliaries(verb)
    if subject is None or not _is_plain_verb(verb) or not _is_finite(verb, auxiliaries):
        return None

    finite = auxiliaries[0] if auxiliaries else verb
    meant = _speaker_of(subject, auxiliaries, speaker, title=title, turn=turn)
    subject_words = kept(subject)
    if not meant and not _may_be_subject(subject, subject_words, is_tale=is_tale):
        return None
    if not _agrees(finite, subject, is_speaker=bool(meant)) or _is_misread(verb, subject, auxiliaries):
        return None

    before = _before(verb, subject) if is_first else []
    clause = Clause(verb, subject, subject_words, auxiliaries, _rest(verb), before, meant, is_tale)
    return None if _is_restricted(clause) else clause


def _subject_before(verb: "Token") -> "Token | None":
    """The subject of the verb that this one is joined to, or of the one that that is joined to; None where what stands
    before the verb may be a subject that was read as something else."""
    if any(child.i < verb.i and child.dep_ not in _BEFORE_VERB for child in verb.children):
        return None
    while verb.dep_ == "conj":
        verb = verb.head
        if subject := _subject_of(verb):
            return subject
    return None


def _speaker_of(subject: "Token", auxiliaries: Sequence["Token"], speaker: str, *, title: str, turn: str) -> str:
    """Who a pronoun is that is the subject; "" where the subject says it."""
    if subject.lower_ == "you":
        return READER if auxiliaries and auxiliaries[0].lower_ in ("can", "may", "could") else ""
    if subject.lower_ in OF_TITLE:
        return title if subject.i == subject.sent.start else ""
    if subject.lower_ == "i":
        return turn
    return speaker if subject.lower_ == "we" else ""


def _auxiliaries_of(verb: "Token") -> list["Token"]:
    return sorted((child for child in verb.children if child.dep_ in ("aux", "auxpass")), key=lambda token: token.i)


def _shared_auxiliaries(verb: "Token") -> list["Token"]:
    """Those of the verb before, where this one has its form: "may use and share", "was built and sold"."""
    is_alike = verb.tag_ == verb.head.tag_ and verb.tag_ in ("VB", "VBN", "VBG")
    auxiliaries = _auxiliaries_of(verb.head) if is_alike else []
    is_passive = any(token.dep_ == "auxpass" for token in auxiliaries)
    does_something = any(child.dep_ == "dobj" for child in verb.children)
    return [] if is_passive and does_something else auxiliaries


def _is_restricted(clause: Clause) -> bool:
    words = (*clause.subject_words, *clause.root.children, *clause.rest)
    return any(token.lower_ in _RESTRICTED for token in words)


def kept(token: "Token") -> list["Token"]:
    """The words below a token, in order, without asides: clauses set apart by commas, and brackets."""
    dropped: set[int] = set()
    for below in token.subtree:
        if below.i == token.i or below.dep_ not in _ASIDES:
            continue
        before = below.doc[below.left_edge.i - 1] if below.left_edge.i else below
        if before.text in _APART or below.dep_ in ("advcl", "parataxis"):
            dropped.update(range(below.left_edge.i, below.right_edge.i + 1))
    words = [each for each in token.subtree if each.i not in dropped]
    while words and ((words[-1].is_punct and words[-1].text != "%") or words[-1].dep_ == "cc"):
        words.pop()
    while words and words[0].is_punct:
        words.pop(0)
    return words


def points_back(noun: "Token") -> bool:
    """Whether a noun with an article is one that only another sentence tells of: "the film", "the resulting charge".

    What everybody knows ("the sun"), and what is told which one it is ("the tower of Harrow"), points at nothing.
    """
    children = list(noun.children)
    if noun.pos_ != "NOUN" or not any(child.lower_ == "the" for child in children):
        return False
    if any(child.lower_ in AT_HAND for child in children):
        return True
    if any(child.lower_ in _ORDINALS for child in children):
        return not any(child.dep_ in ("prep", "relcl", "acl") for child in children)
    tells_which = any(
        child.dep_ in ("prep", "relcl", "acl", "compound", "amod", "poss", "nummod", "nmod", "appos")
        for child in children
    )
    return not tells_which and noun.lemma_.lower() not in KNOWN


def _is_plain(sentence: "Span", *, is_tale: bool) -> bool:
    words = [token for token in sentence if not token.is_space and not token.is_punct]
    text = sentence.text.strip()
    if len(words) not in LENGTH or not text.endswith((".", "!")) or not (is_tale or _BEGINS.match(text)):
        return False
    return not _SPEECH.search(text) and not _BROKEN.search(text)


def _is_plain_verb(root: "Token") -> bool:
    """Whether it is a verb within a statement; one with a capital is a heading's."""
    if root.pos_ not in ("VERB", "AUX") or not root.text.islower():
        return False
    return not any(child.dep_ in _NOT_PLAIN or (child.dep_ == "nsubj" and child.i > root.i) for child in root.children)


def _subject_of(root: "Token") -> "Token | None":
    subjects = [child for child in root.children if child.dep_ in ("nsubj", "nsubjpass") and child.i < root.i]
    return subjects[0] if len(subjects) == 1 else None


def _is_finite(root: "Token", auxiliaries: Sequence["Token"]) -> bool:
    if any(token.i > root.i or token.tag_ == "TO" or token.lower_ not in _AUXILIARIES for token in auxiliaries):
        return False
    finite = auxiliaries[0] if auxiliaries else root
    return finite.tag_ in ("VBD", "VBZ", "VBP", "MD") and not (finite is root and root.tag_ == "MD")


def _may_be_subject(subject: "Token", words: Sequence["Token"], *, is_tale: bool) -> bool:
    if is_tale and subject.pos_ in ("NOUN", "PROPN"):
        return _is_figure(subject, words) or stands_alone(subject, words)
    return stands_alone(subject, words)


def _is_misread(root: "Token", subject: "Token", auxiliaries: Sequence["Token"]) -> bool:
    """Whether the parse is not to be trusted, or tells how a study was done."""
    if root.lemma_.lower() in {token.lemma_.lower() for token in subject.subtree}:
        return True  # "Rotate rotates the video": a label and its explanation
    is_word_at_begin = subject.i == subject.sent.start and subject.pos_ == "PROPN" and not subject.ent_type_
    if is_word_at_begin and subject.text.istitle() and subject.nbor(1).pos_ == "ADV":
        return True  # "Designate frequently watched channels"
    finite = auxiliaries[0] if auxiliaries else root
    is_done = any(token.dep_ == "auxpass" for token in auxiliaries)
    if root.lemma_ in STUDIED and is_done and finite.lower_ in ("was", "were"):
        return True
    return _is_participle(root, auxiliaries)


def _is_participle(root: "Token", auxiliaries: Sequence["Token"]) -> bool:
    """Whether the root may be a participle that was taken for a past tense: "antibodies conjugated to peptides"."""
    has_complement = any(child.dep_ in ("dobj", "attr", "acomp", "xcomp", "oprd") for child in root.children)
    is_past = root.tag_ == "VBD" and root.lower_.endswith("ed") and not auxiliaries
    return is_past and not has_complement and root.lemma_ not in INTRANSITIVE


def _agrees(finite: "Token", subject: "Token", *, is_speaker: bool) -> bool:
    """Whether verb and subject agree in number: where they do not, the parse is wrong."""
    if is_speaker or (finite.tag_ in ("VBD", "MD") and finite.lower_ not in ("was", "were")):
        return True
    is_several = subject.tag_ in ("NNS", "NNPS") or any(child.dep_ == "conj" for child in subject.children)
    if finite.lower_ == "was" or finite.tag_ == "VBZ":
        return not is_several or subject.tag_ == "NNPS"
    return is_several or subject.lower_ in ("people", "police")


def _rest(root: "Token") -> list["Token"]:
    """What stands behind the verb and before the next one that is joined to it."""
    rest: list[Token] = []
    joined = [child.i for child in root.children if child.dep_ == "conj" and child.pos_ in ("VERB", "AUX")]
    end = min(joined, default=len(root.doc))
    for child in root.children:
        is_measure = child.dep_ == "npadvmod" and child.ent_type_ in ("DATE", "TIME")
        if not root.i < child.i < end or (child.dep_ in _LEFT_OUT and not is_measure):
            continue
        if child.dep_ == "advmod" and child.lower_ in _CONNECTING:
            continue
        words = kept(child)
        if child.dep_ != "prep" or not _says_nothing(words):
            rest += words
    return sorted(rest, key=lambda token: token.i)


def _before(root: "Token", subject: "Token") -> list["Token"]:
    """A short prepositional phrase that begins the sentence, which a question puts behind."""
    for child in root.children:
        if child.dep_ != "prep" or child.i > subject.i or child.lower_ not in _PREPOSITIONS_BEFORE:
            continue
        words = kept(child)
        is_short = 1 < len(words) <= 7 and not any(token.is_punct or token.pos_ in ("PRON", "VERB") for token in words)
        if is_short and not _says_nothing(words):
            return words
    return []


def _says_nothing(words: Sequence["Token"]) -> bool:
    """Whether a phrase is one that leaves all as it was: "in addition", "at any time"."""
    is_of_any_time = any(token.lower_ == "time" for token in words) and any(token.lower_ == "any" for token in words)
    return is_of_any_time or any(token.lower_ in PHRASES for token in words)


def stands_alone(head: "Token", words: Sequence["Token"]) -> bool:
    """Whether it says by itself what it is: a name, or a noun with something that tells which."""
    if not _may_stand_alone(head, words):
        return False
    telling = [token for token in words if token.pos_ in ("NOUN", "PROPN", "ADJ") and token.lower_ not in STOP]
    if head.pos_ == "PROPN" and (head.text[:1].isupper() or len(words) > 1):
        return not _is_letter_or_role(head, n_words=len(words), n_telling=len(telling))
    if head.lemma_.lower() in VAGUE:
        return any(token.pos_ == "PROPN" for token in telling)
    has_article = _has_article(head)
    if has_article and (points_back(head) or not _is_told_apart(head, words)):
        return False
    return len(telling) >= (2 if has_article or head.tag_ == "NN" else 1)


def _has_article(head: "Token") -> bool:
    return any(child.dep_ == "det" and child.lower_ == "the" for child in head.children)


def _is_letter_or_role(head: "Token", *, n_words: int, n_telling: int) -> bool:
    """Whether a word with a capital names nothing: a letter or two alone, or a kind behind "the", as "the Company"."""
    noun = head.lemma_.lower()
    is_role = _has_article(head) and n_telling == 1 and (noun in VAGUE or noun in KIND_OF_NOUN)
    return is_role or (len(head.text) <= 2 and n_words == 1)


def _may_stand_alone(head: "Token", words: Sequence["Token"]) -> bool:
    is_noun = head.pos_ in ("NOUN", "PROPN") and head.ent_type_ not in ("DATE", "TIME", "CARDINAL", "ORDINAL")
    if not is_noun or len(words) > LONGEST_SUBJECT or _has_determiner(head, words):
        return False
    is_compared = words[0].pos_ == "ADV" or any(token.tag_ in ("JJR", "RBR") for token in words)
    is_counted = words[0].pos_ == "NUM" and head.lemma_.lower() in VAGUE
    return not is_compared and not is_counted and not any(map(_points, words))


def _has_determiner(head: "Token", words: Sequence["Token"]) -> bool:
    """Whether a noun is one, begins with one, or has one: "some of the towers"."""
    if head.lower_ in DETERMINERS or words[0].lower_ in DETERMINERS:
        return True
    return any(child.lower_ in DETERMINERS for child in head.children)


def _points(token: "Token") -> bool:
    """Whether a word stands for something that it does not name."""
    return token.lower_ in POINTING or token.pos_ == "PRON" or token.tag_ in ("WDT", "WP", "WRB")


def _is_told_apart(head: "Token", words: Sequence["Token"]) -> bool:
    """Whether a noun with an article has a name, a number or more words behind it that tell which one it is."""
    if any(token.pos_ in ("PROPN", "NUM") for token in words):
        return True
    return any(child.dep_ in ("prep", "relcl", "acl", "poss") for child in head.children)


def is_name(head: "Token") -> bool:
    """Whether it is a name, by its capital or by what the parser takes it for."""
    return head.pos_ == "PROPN" and (head.text[:1].isupper() or not head.text.islower())


def _is_figure(head: "Token", words: Sequence["Token"]) -> bool:
    """Whether it is somebody of a tale: "the old woman", "little boy blue"."""
    has_article = any(child.lower_ == "the" for child in head.children) or head.pos_ == "PROPN"
    return has_article and len(words) <= 6 and not any(token.lower_ in POINTING for token in words)
