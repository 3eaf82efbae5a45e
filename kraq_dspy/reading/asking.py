"""Asks what a parsed sentence answers: its subject, its object, when, where, why and how many.

Overgenerate and rank (Heilman and Smith 2010): each rule proposes, and what does not stand alone is dropped. A sentence
is asked about only where its parse is plain: one finite verb as its root, one subject, a full stop; no speech, no
negation, nothing that points to another sentence. Questions leave out adverbial clauses, asides and citations.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kraq_dspy.language.vocabulary import STOP
from kraq_dspy.reading.analysis import Asked
from kraq_dspy.reading.vocabulary import DETERMINERS, FIGURES, INTRANSITIVE, PHRASES, POINTING, STUDIED, VAGUE

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

LENGTH = range(6, 51)  # tokens of a sentence
ASKED_LENGTH = range(4, 19)  # words of a question
LONGEST_ANSWER = 14  # words
LONGEST_REASON = 25  # words of a clause that says why or how
_OF_SUBJECT = frozenset(("its", "their", "his", "her", "itself", "themselves", "himself", "herself"))
"""May stand behind a subject that the question keeps."""
_READER = frozenset(("you", "your", "yours"))
_ODD = re.compile(
    r"[\[\]{}|<>=±@#*_\\“”\"«»;:()+$]|\.\.|--| - |—|–\s|https?:|www\.|\bet al\b|&|\d\.\d{3}|[a-z]\.[A-Z]"
    r"|(?:BIB|TAB|FIG|SEC|EQ)REF|INLINEFORM|\b(?:Table|Figure|Fig|Section|Appendix)\b"
)
"""What no question has that can be shown."""
_BROKEN = re.compile(r"\b\w\.$|\.\w\b\.?$|\d[a-z]{4,}|``|\$ ?\d|\d's|(?:^|\s)['‘’](?!s\b)|^[^a-z]*$|\?")
"""Where a sentence was cut at an initial, where two words ran together, and speech."""
_ASIDE = re.compile(r"\s*\[[^\[\]]{0,60}\]|\s*\([^()]{0,160}\)")
"""Citations, and what stands in brackets."""
_SPEECH = re.compile(r"[“”\"|\t]|(?:^|\s)[‘’'](?!s\b)")
_READERS_OWN = "I"
"""How a question calls the reader whom a text calls "you"."""
_PLACES = frozenset(("GPE", "LOC", "FAC"))
_CARDINAL = re.compile(
    r"(?:\d{1,3}(?:,\d{3})+|\d{1,5}|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)$"
)


def asked_of(sentence: "Span", speaker: str = "", tale: str = "") -> list[Asked]:
    """The questions that a sentence answers, best first. `speaker` stands for "we" where the document says who that
    is; `tale` is a title that tells which "king" or "old woman" is meant."""
    clause = _clause_of(sentence, speaker, bool(tale))
    if clause is None:
        return []
    proposed = [asked for asked in _proposals(clause) if asked is not None]
    if tale:
        proposed = [_placed(asked, tale) for asked in proposed]
    best = {asked.question: asked for asked in sorted(proposed, key=lambda asked: asked.weight)}
    return sorted(best.values(), key=lambda asked: -asked.weight)


def _placed(asked: Asked, tale: str) -> Asked:
    question = f"In “{tale}”, {asked.question[:1].lower()}{asked.question[1:]}"
    return Asked(question, asked.answer, asked.word, asked.weight, asked.about)


def plain_text(text: str) -> str:
    """The sentence without citations and bracketed years, which no question keeps."""
    return _ASIDE.sub("", text)


@dataclass(frozen=True)
class _Clause:
    """A sentence's main clause, by its parts."""

    root: "Token"
    subject: "Token"
    subject_words: list["Token"]
    auxiliaries: list["Token"]
    rest: list["Token"]  # behind the subject and the verb, without what a question leaves out
    before: list["Token"]  # a short phrase before the subject that the question puts behind
    speaker: str

    @property
    def is_copula(self) -> bool:
        return self.root.lemma_ == "be" and self.root.pos_ in ("AUX", "VERB")

    @property
    def is_passive(self) -> bool:
        return any(token.dep_ == "auxpass" for token in self.auxiliaries)


def _clause_of(sentence: "Span", speaker: str, is_tale: bool) -> _Clause | None:
    """The parts of a plain sentence; None for one that is not asked about."""
    words = [token for token in sentence if not token.is_space and not token.is_punct]
    text = sentence.text.strip()
    if len(words) not in LENGTH or not text.endswith((".", "!")) or _SPEECH.search(text):
        return None
    if _BROKEN.search(text) or any(token.lower_ in ("only", "never", "hardly", "rarely") for token in words):
        return None

    root = sentence.root
    if root.pos_ not in ("VERB", "AUX"):
        return None
    children = list(root.children)
    if any(
        child.dep_ in ("neg", "expl", "parataxis", "ccomp", "csubj", "nsubj") and child.i > root.i for child in children
    ):
        return None
    if any(child.dep_ in ("neg", "expl", "parataxis", "csubj", "ccomp", "preconj") for child in children):
        return None
    subjects = [child for child in children if child.dep_ in ("nsubj", "nsubjpass") and child.i < root.i]
    auxiliaries = sorted((child for child in children if child.dep_ in ("aux", "auxpass")), key=lambda token: token.i)
    if len(subjects) != 1 or any(token.i > root.i for token in auxiliaries) or any(t.tag_ == "TO" for t in auxiliaries):
        return None

    finite = auxiliaries[0] if auxiliaries else root
    if finite.tag_ not in ("VBD", "VBZ", "VBP", "MD") or (finite is root and root.tag_ == "MD"):
        return None
    subject = subjects[0]
    subject_words = _kept(subject)
    speaker_is_subject = bool(speaker) and subject.lower_ == "we"
    if subject.lower_ == "you" and auxiliaries and finite.lower_ in ("can", "may", "could"):
        speaker, speaker_is_subject = _READERS_OWN, True
    is_figure = is_tale and subject.pos_ in ("NOUN", "PROPN") and _is_figure(subject, subject_words)
    if not speaker_is_subject and not is_figure and not _stands_alone(subject, subject_words):
        return None
    if not _agrees(finite, subject, speaker_is_subject) or _is_participle(root, children, auxiliaries):
        return None
    if root.lemma_ in STUDIED and finite.lower_ in ("was", "were") and any(t.dep_ == "auxpass" for t in auxiliaries):
        return None

    rest: list[Token] = []
    for child in children:
        if child.i <= root.i or child.dep_ in (
            "advcl",
            "punct",
            "cc",
            "conj",
            "dep",
            "mark",
            "intj",
            "npadvmod",
            "appos",
            "meta",
        ):
            if child.dep_ == "conj" and child.i > root.i:
                continue
            if child.dep_ == "npadvmod" and child.i > root.i:
                rest += _kept(child)
            continue
        if child.dep_ == "advmod" and child.lower_ in ("however", "therefore", "thus", "also", "then", "now", "too"):
            continue
        rest += _kept(child)
    rest.sort(key=lambda token: token.i)
    return _Clause(
        root, subject, subject_words, auxiliaries, rest, _before(root, subject), speaker if speaker_is_subject else ""
    )


def _is_participle(root: "Token", children: Sequence["Token"], auxiliaries: Sequence["Token"]) -> bool:
    """Whether the root may be a participle that was taken for a past tense: "antibodies conjugated to peptides"."""
    has_complement = any(child.dep_ in ("dobj", "attr", "acomp", "xcomp", "oprd") for child in children)
    is_past = root.tag_ == "VBD" and root.lower_.endswith("ed") and not auxiliaries
    return is_past and not has_complement and root.lemma_ not in INTRANSITIVE


def _agrees(finite: "Token", subject: "Token", is_speaker: bool) -> bool:
    """Whether verb and subject agree in number: where they do not, the parse is wrong."""
    if is_speaker or (finite.tag_ in ("VBD", "MD") and finite.lower_ not in ("was", "were")):
        return True
    is_several = subject.tag_ in ("NNS", "NNPS") or any(child.dep_ == "conj" for child in subject.children)
    if finite.lower_ in ("was",) or finite.tag_ == "VBZ":
        return not is_several or subject.tag_ == "NNPS"
    return is_several or subject.lower_ in ("people", "police")


def _kept(token: "Token") -> list["Token"]:
    """The words below a token, in order, without asides: clauses set apart by commas, and brackets."""
    dropped: set[int] = set()
    for below in token.subtree:
        is_clause = below.dep_ in ("advcl", "appos", "relcl", "acl", "parataxis")
        if below.i != token.i and is_clause:
            before = below.doc[below.left_edge.i - 1] if below.left_edge.i else below
            if before.is_punct or below.dep_ in ("advcl", "parataxis"):
                dropped.update(range(below.left_edge.i, below.right_edge.i + 1))
    words = [each for each in token.subtree if each.i not in dropped]
    while words and (words[-1].is_punct or words[-1].dep_ == "cc"):
        words.pop()
    while words and words[0].is_punct:
        words.pop(0)
    return words


def _before(root: "Token", subject: "Token") -> list["Token"]:
    """A short prepositional phrase that begins the sentence, without a date, which a question puts behind."""
    for child in root.children:
        if (
            child.dep_ == "prep"
            and child.i < subject.i
            and child.lower_ in ("in", "on", "at", "for", "among", "under", "during", "after", "before")
        ):
            words = _kept(child)
            if any(token.lower_ in PHRASES for token in words) and len(words) < 4:
                continue
            if 1 < len(words) <= 7 and not any(token.is_punct or token.pos_ in ("PRON", "VERB") for token in words):
                return words
    return []


def _stands_alone(head: "Token", words: Sequence["Token"]) -> bool:
    """Whether it says by itself what it is: a name, or a noun with something that tells which."""
    if (
        head.pos_ not in ("NOUN", "PROPN")
        or len(words) > 12
        or head.ent_type_ in ("DATE", "TIME", "CARDINAL", "ORDINAL")
    ):
        return False
    if any(token.lower_ in POINTING or token.pos_ == "PRON" or token.tag_ in ("WDT", "WP", "WRB") for token in words):
        return False
    if any(child.lower_ in DETERMINERS for child in head.children):
        return False
    if head.pos_ == "PROPN" and (head.text[:1].isupper() or len(words) > 1):
        return not (len(head.text) <= 2 and len(words) == 1)
    telling = [token for token in words if token.pos_ in ("NOUN", "PROPN", "ADJ") and token.lower_ not in STOP]
    if head.lemma_.lower() in VAGUE:
        return any(token.pos_ == "PROPN" for token in telling)
    has_article = any(child.dep_ == "det" and child.lower_ == "the" for child in head.children)
    return len(telling) >= (2 if has_article or head.tag_ == "NN" else 1) and not (len(telling) == 1 and has_article)


def _is_figure(head: "Token", words: Sequence["Token"]) -> bool:
    """Whether it is somebody of a tale: "the old woman", "little boy blue"."""
    has_article = any(child.lower_ == "the" for child in head.children) or head.pos_ == "PROPN"
    return has_article and len(words) <= 6 and not any(token.lower_ in POINTING for token in words)


def _proposals(clause: _Clause) -> Iterator[Asked | None]:
    if clause.speaker == _READERS_OWN:
        yield from (asked for asked in _adverbials_asked(clause) if asked is not None and asked.word == "how")
        return
    yield _subject_asked(clause)
    yield _object_asked(clause)
    yield _definition_asked(clause)
    yield from _adverbials_asked(clause)
    yield _count_asked(clause)
    yield _agent_asked(clause)


def _person(head: "Token") -> bool | None:
    """Whether it is somebody; None where that is not clear."""
    noun = head.lemma_.lower()
    if head.is_upper or not head.is_alpha:
        return False
    if head.ent_type_ == "PERSON":
        return True
    if noun in FIGURES:
        return True
    if head.pos_ == "PROPN":
        return (
            False
            if head.ent_type_ in ("ORG", "GPE", "LOC", "FAC", "PRODUCT", "WORK_OF_ART", "EVENT", "LAW", "NORP")
            else None
        )
    is_someone = re.search(r"(?:er|or|ist|man|woman|ian)$", noun) is not None
    return None if is_someone else False


def _subject_asked(clause: _Clause) -> Asked | None:
    """ "Who sprang over the stile?" """
    if clause.speaker or clause.is_copula:
        return None
    person = _person(clause.subject)
    if person is None or (person and clause.subject.tag_ in ("NNS",) and clause.is_passive):
        return None
    finite = (clause.auxiliaries or [clause.root])[0]
    verb = [*clause.auxiliaries, clause.root]
    spoken = [token.text for token in verb]
    singular = {"were": "was", "are": "is", "have": "has", "do": "does"}
    if finite.lower_ in singular and (person or finite.lower_ in ("have", "do")):
        spoken[0] = singular[finite.lower_]
    elif finite.tag_ == "VBP" and finite.lower_ != "are":
        return None
    word = "Who" if person else "What"
    return _made(
        word, clause, [word, *spoken], [*clause.rest, *clause.before], clause.subject_words, keeps_subject=False
    )


def _object_asked(clause: _Clause) -> Asked | None:
    """ "What does IFITM1 prevent?" """
    objects = [token for token in clause.rest if token.dep_ == "dobj" and token.head.i == clause.root.i]
    if len(objects) != 1 or clause.root.lemma_ in ("have", "take", "make", "do", "give", "get", "play", "need"):
        return None
    thing = objects[0]
    answer = _kept(thing)
    if clause.speaker:  # "share your address with partners": with whom is asked about, not which address
        parted = [
            below.i
            for child in thing.children
            if child.dep_ == "prep" and child.lower_ != "of"
            for below in child.subtree
        ]
        answer = [token for token in answer if token.i not in parted]
    person = _person(thing)
    if person is None or thing.pos_ not in ("NOUN", "PROPN") or not _tells(thing, answer):
        return None
    rest = [token for token in clause.rest if token not in answer]
    word = "Who" if person else "What"
    return _asked_with_subject(word, [word], clause, rest, answer)


def _definition_asked(clause: _Clause) -> Asked | None:
    """ "What is the capital of France?": of "Paris is the capital of France"."""
    if not clause.is_copula or clause.speaker:
        return None
    attributes = [token for token in clause.rest if token.dep_ == "attr" and token.head.i == clause.root.i]
    if len(attributes) != 1 or attributes[0].pos_ not in ("NOUN", "PROPN"):
        return None
    said = _kept(attributes[0])
    has_the = any(child.lower_ == "the" for child in attributes[0].children)
    tells_which = any(child.dep_ in ("prep", "relcl", "acl") or child.tag_ == "JJS" for child in attributes[0].children)
    person = _person(clause.subject)
    if not has_the or not tells_which or person is None or clause.root.tag_ not in ("VBD", "VBZ"):
        return None
    word = "Who" if person else "What"
    return _made(
        word, clause, [word, clause.root.text], [*said, *clause.before], clause.subject_words, keeps_subject=False
    )


def _adverbials_asked(clause: _Clause) -> Iterator[Asked | None]:
    """When, where, why and how."""
    for child in clause.root.children:
        if child.i < clause.subject.i and child.dep_ != "prep":
            continue
        answer = _kept(child)
        pobj = next((token for token in child.children if token.dep_ == "pobj"), None)
        rest = [token for token in clause.rest if token not in answer]
        before: list[Token] | None = [] if child.i < clause.subject.i else None
        if child.dep_ == "prep" and pobj is not None and len(answer) <= LONGEST_ANSWER:
            if (
                pobj.ent_type_ == "DATE"
                and child.lower_ in ("in", "on", "since", "until")
                and re.search(r"\d", child.doc[child.i : child.right_edge.i + 1].text)
            ):
                word = "Since when" if child.lower_ == "since" else "Until when" if child.lower_ == "until" else "When"
                yield _asked_with_subject("When", [word], clause, rest, answer, before)
            elif pobj.ent_type_ in _PLACES and child.lower_ in ("in", "at", "near") and not clause.is_copula:
                yield _asked_with_subject("Where", ["Where"], clause, rest, answer, before)
            elif child.lower_ in ("because",) and child.i > clause.root.i:
                yield _asked_with_subject("Why", ["Why"], clause, rest, answer)
        elif child.dep_ == "advcl" and child.i > clause.root.i:
            mark = next((token for token in child.children if token.dep_ == "mark"), None)
            whole = list(child.subtree)
            if mark is not None and mark.lower_ == "because" and len(whole) <= LONGEST_REASON:
                yield _asked_with_subject("Why", ["Why"], clause, rest, whole)
        elif child.dep_ == "prep" and child.lower_ == "by" and child.i > clause.root.i and not clause.is_passive:
            does = any(token.dep_ == "pcomp" and token.tag_ == "VBG" for token in child.children)
            if does and len(answer) <= LONGEST_REASON:
                yield _asked_with_subject("How", ["How"], clause, rest, answer)


def _count_asked(clause: _Clause) -> Asked | None:
    """ "How many people died in the fire?" """
    subject, counted = (
        clause.subject,
        [token for token in clause.rest if token.dep_ == "dobj" and token.head.i == clause.root.i],
    )
    for head in counted[:1]:
        number = _number_of(head)
        if number is not None and head.tag_ in ("NNS",):
            words = [token for token in _kept(head) if token not in list(number.subtree)]
            rest = [token for token in clause.rest if token not in _kept(head)]
            told = "".join(token.text_with_ws for token in words if token.i >= number.i).strip()
            return _asked_with_subject("How many", [f"How many {told}"], clause, rest, [*number.subtree])
    number = _number_of(subject)
    if number is not None and subject.tag_ == "NNS" and not clause.speaker:
        told = "".join(t.text_with_ws for t in clause.subject_words if t.i > number.i).strip()
        verb = [token.text for token in (*clause.auxiliaries, clause.root)]
        return _made(
            "How many",
            clause,
            [f"How many {told}", *verb],
            [*clause.rest, *clause.before],
            [*number.subtree],
            keeps_subject=False,
        )
    return None


def _number_of(noun: "Token") -> "Token | None":
    numbers = [child for child in noun.children if child.dep_ == "nummod" and _CARDINAL.match(child.lower_)]
    return numbers[0] if len(numbers) == 1 and numbers[0].i == noun.left_edge.i else None


def _agent_asked(clause: _Clause) -> Asked | None:
    """ "Who directed Ed Wood?", of a passive."""
    agents = [child for child in clause.root.children if child.dep_ == "agent"]
    if len(agents) != 1 or not clause.is_passive or len(clause.auxiliaries) != 1 or clause.speaker:
        return None
    by = next((token for token in agents[0].children if token.dep_ == "pobj"), None)
    is_past = clause.auxiliaries[0].tag_ == "VBD" and clause.root.lower_.endswith("ed")
    if by is None or not is_past:
        return None
    person, answer = _person(by), _kept(by)
    if person is None or not _tells(by, answer):
        return None
    rest = [token for token in clause.rest if token not in list(agents[0].subtree)]
    word = "Who" if person else "What"
    told = "".join(token.text_with_ws for token in clause.subject_words).strip()
    told = told[:1].lower() + told[1:] if _is_lowered(clause.subject_words[0]) else told
    return _made(word, clause, [word, clause.root.text, told], [*rest, *clause.before], answer, keeps_subject=True)


def _tells(head: "Token", words: Sequence["Token"]) -> bool:
    """Whether an answer says something: no pronoun, no filler alone."""
    if len(words) > LONGEST_ANSWER or any(token.lower_ in POINTING - _OF_SUBJECT - _READER for token in words):
        return False
    return (
        head.lemma_.lower() not in VAGUE
        or len([token for token in words if token.pos_ in ("NOUN", "PROPN", "ADJ", "NUM")]) > 1
    )


def _asked_with_subject(
    word: str,
    begun: list[str],
    clause: _Clause,
    rest: Iterable["Token"],
    answer: Sequence["Token"],
    before: list["Token"] | None = None,
) -> Asked | None:
    """A question that keeps its subject, with "did" where the verb needs it."""
    subject = clause.speaker or "".join(token.text_with_ws for token in clause.subject_words).strip()
    if not clause.speaker and _is_lowered(clause.subject_words[0]):
        subject = subject[:1].lower() + subject[1:]
    verb = clause.root
    if clause.auxiliaries:
        first, *others = [token.lower_ for token in clause.auxiliaries]
        if clause.speaker:
            first = {"are": "is", "have": "has", "were": "was", "do": "does"}.get(first, first)
        spoken = [first, subject, *others, verb.text]
    elif clause.is_copula:
        spoken = [
            {"are": "is", "were": "was"}.get(verb.lower_, verb.lower_) if clause.speaker else verb.lower_,
            subject,
        ]
    else:
        does = {"VBD": "did", "VBZ": "does", "VBP": "does" if clause.speaker else "do"}[verb.tag_]
        spoken = [does, subject, verb.lemma_]
    behind = [*rest, *(clause.before if before is None else before)]
    return _made(word, clause, [*begun, *spoken], behind, answer, keeps_subject=True)


def _made(
    word: str,
    clause: _Clause,
    begun: Sequence[str],
    behind: Sequence["Token"],
    answer: Sequence["Token"],
    *,
    keeps_subject: bool,
) -> Asked | None:
    """The question and its answer; None for one that an editor would strike."""
    allowed = _OF_SUBJECT if keeps_subject else frozenset[str]()
    allowed |= _READER | {"our"} if clause.speaker else frozenset()
    if any(
        token.lower_ in POINTING - allowed
        or (token.pos_ == "PRON" and token.lower_ not in allowed and token.tag_ not in ("WDT", "WP"))
        for token in behind
    ):
        return None
    if any(token.dep_ == "ROOT" or token.tag_ == "WRB" or token.lower_ in ("no", "than") for token in behind):
        return None

    told = _spelled(behind)
    question = re.sub(r"\s+", " ", " ".join(filter(None, [" ".join(begun), told]))).strip(" ,.;:!") + "?"
    question = re.sub(r" ([,.%’'])", r"\1", question)
    question = re.sub(r" (n't|'s)\b", r"\1", question)
    if clause.speaker == _READERS_OWN:
        question = re.sub(r"\byou\b", "I", re.sub(r"\byour\b", "my", question))
    elif clause.speaker:
        question = re.sub(r"\bour\b", "its", question)
    words = question.split()
    if (
        len(words) not in ASKED_LENGTH
        or _ODD.search(question[:-1])
        or question.count(",") > 1
        or words[-1].rstrip("?").lower() in _ENDINGS
    ):
        return None

    tokens = [*(clause.subject_words if keeps_subject and not clause.speaker else []), *behind]
    about, weight = _weighed(tokens, clause)
    answered = "".join(token.text_with_ws for token in answer).strip(" ,.;:")
    if weight <= 0 or not re.search(r"\w", answered) or len(answered.split()) > 25:
        return None
    return Asked(question, answered, word.lower(), weight, tuple(about))


_ENDINGS = frozenset(("and", "or", "the", "a", "an", "but", "that", "which", "because", "as", "than", "also", "not"))


def _is_lowered(first: "Token") -> bool:
    """Whether a word has its capital from the sentence that it begins: it is no name, and of none."""
    is_name = first.pos_ == "PROPN" or first.ent_type_ not in ("", "CARDINAL", "DATE")
    return bool(first.text.istitle() and (not is_name or first.pos_ == "DET"))


def _spelled(tokens: Sequence["Token"]) -> str:
    """The words with the spaces between them; what began the sentence in small letters, unless it is a name."""
    words = []
    for token in tokens:
        text = token.lower_ if token.i == token.sent.start and _is_lowered(token) else token.text
        words.append(
            text + (token.whitespace_ or " " * (token.nbor(1) not in tokens if token.i + 1 < len(token.doc) else 1))
        )
    return "".join(words).strip()


def _weighed(tokens: Sequence["Token"], clause: _Clause) -> tuple[list[str], float]:
    """The telling words of a question, and how much they say: names count one, nouns and numbers a half."""
    names = {token.text for token in tokens if token.pos_ == "PROPN" and token.text[:1].isalpha()}
    nouns = {
        token.lemma_.lower()
        for token in tokens
        if token.pos_ in ("NOUN", "ADJ", "NUM") and token.lemma_.lower() not in VAGUE and len(token.text) > 2
    }
    verb_says = 0.25 * (clause.root.lemma_ not in ("be", "have", "include", "do", "say", "make", "use"))
    says = len(names) + 0.5 * len(nouns) + verb_says + 0.75 * bool(clause.speaker)
    if says < 1.5:
        return [], 0.0
    return [*sorted(names), *sorted(nouns)], min(1.0, says / 4)
