"""Finds what passages tell together, and the question that all of them answer.

Statements go together by who does what to what: what affects a thing, how it is used, what somebody did to another. A
group that no plain question asks about is none. A group of one statement is one where its question asks no more than
that statement tells.
"""

import dataclasses
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set as AbstractSet
from dataclasses import dataclass

from kraq_dspy.embedded.reading.acts import DEMANDED, PURPOSE, STATED
from kraq_dspy.embedded.reading.phrasing import third_person
from kraq_dspy.embedded.reading.titles import speaker_of, tale_of
from kraq_dspy.embedded.reading.transcripts import MATTERS
from kraq_dspy.embedded.reading.vocabulary import (
    AFFECTING,
    CAUSING,
    CHANGING,
    FIGURES,
    FILLERS,
    KEEPING,
    LIGHT,
    SHARING,
    TELLING,
    UNASKED,
    USING,
    VAGUE,
)
from kraq_dspy.language.analysis import FEWEST, SAID_ALOUD, Act, Analysis, Group, Named
from kraq_dspy.language.text import content_words
from kraq_dspy.language.vocabulary import GENERAL, PEOPLE

FEWEST_DEEDS = 2  # of a figure in one passage of a tale
LONGEST_MATTER = 4  # words of a name that a site is asked about
LONGEST = 60  # words of a statement
MOST_NAMED = 8  # things of a sentence that somebody speaks about
FEWEST_OF_WORD = 3  # passages that tell of what is named by one plain word
OFTEN = 0.25  # share of an article from which on a thing that is one has it
ALIKE = 0.6  # share of words from which on two statements say the same
_UNNAMED = frozenset(("", "we", "it"))
_ODD = re.compile(r"[^\w\s'’.-]|\d{4}|^\W|\b(?:Figure|Table|Section)\b")
_SUPPOSED = re.compile(r"\b(?:whether|unlikely|(?:see|know|determine|wonder|asked?|tested) if)\b", re.IGNORECASE)
_WHAT_IT_IS = re.compile(r"(?:What|Who) (?:is|was) (?:the |an? )?(?P<name>.+)\?")
_USED = frozenset(verb + PURPOSE for verb in USING)
_SHARED = frozenset(verb + PURPOSE for verb in SHARING)
_HANDLED = SHARING | KEEPING | USING | _USED | _SHARED
_CHANGED = AFFECTING | CAUSING


@dataclass(frozen=True, slots=True)
class _Statement:
    passage_id: str
    text: str
    act: Act


@dataclass(frozen=True, slots=True)
class _Form:
    """A form of a question: `{0}` and `{1}` are the names, `{verb}` that of the statements.

    `differ` are the ends of the acts in which the statements have to differ: what is asked for. `may_be_one` says that
    one statement answers it.
    """

    question: str
    rank: int
    differ: str = "text"
    fewest: int = FEWEST
    may_be_one: bool = False


_FORMS = {
    "affects": _Form("How {does} {0} affect {1}?", 0, may_be_one=True),
    "uses": _Form("What {does} {0} use {1} for?", 0, may_be_one=True),
    "handles": _Form("What {does} {0} do with {1}?", 0, "verb", may_be_one=True),
    "does": _Form("What {does} {0} {verb}?", 1),
    "said": _Form("What {does} {0} say about {1}?", 2, may_be_one=True),
    "effects of one verb": _Form("What {does} {0} {verb}?", 1, "object"),
    "one verb": _Form("What {verbs} {0}?", 1, "subject"),
    "caused": _Form("What causes {0}?", 1, "subject", may_be_one=True),
    "changes": _Form("How {does} {0} change?", 1),
    "should do": _Form("What should {0} do?", 1),
    "should be": _Form("What should {0} be like?", 1),
    "shared": _Form("Who {is} {0} shared with?", 2, may_be_one=True),
    "used": _Form("What {is} {0} used for?", 2, may_be_one=True),
    "affected": _Form("What affects {0}?", 2, "subject", may_be_one=True),
    "effects": _Form("What are the effects of {0}?", 2, "object"),
    "is": _Form("", 2),
    "befalls": _Form("What happens to {0}?", 3, "verb", may_be_one=True),
    "deeds": _Form("What {does} {0} do?", 3, "verb", 3),
}


def groups_in(analyses: Mapping[str, Analysis], *, may_be_one: bool = False) -> list[Group]:
    """The groups of these passages, by their ids, the most particular first and those that more passages tell of.

    `may_be_one` adds those of one statement, and what a figure does in one passage of a tale.

    >>> groups_in({})
    []
    """
    words = _Words(analyses.values())
    statements_by_key = _statements_by_key(analyses, words)
    for name, (question, defining) in _definitions(analyses).items():
        others = statements_by_key["is", "", "", name]
        statements_by_key["is", "", question, name] = [defining, *others]

    groups = (_group(key, statements, words, may_be_one=may_be_one) for key, statements in statements_by_key.items())
    whole = [group for group in groups if group is not None]
    return sorted(whole, key=lambda group: (group.rank, -len(group.told), group.question))


def passages_under(key: tuple[str, ...], analyses: Mapping[str, Analysis]) -> list[str]:
    """The ids of the passages with a statement under the key of a group, those that repeat others among them, in the
    order of `analyses`.

    >>> passages_under(("affected", "", "", "sleep"), {})
    []
    """
    form, _, _, name, *_ = key
    if form == "is":  # what defines the name, and not all that is said of it
        return [id for id, analysis in analyses.items() if name in _definitions({id: analysis})]
    statements = _statements_by_key(analyses, _Words(analyses.values())).get(key, [])
    return list(dict.fromkeys(statement.passage_id for statement in statements))


def _statements_by_key(
    analyses: Mapping[str, Analysis], words: "_Words"
) -> defaultdict[tuple[str, ...], list[_Statement]]:
    statements_by_key: defaultdict[tuple[str, ...], list[_Statement]] = defaultdict(list)
    for passage_id, analysis in analyses.items():
        tale = tale_of(analysis.title, [sentence.text for sentence in analysis.sentences])
        for sentence in analysis.sentences:
            if _may_be_told(sentence.text, is_tale=bool(tale)):
                acts = [_with_speaker(act, analysis.title) for act in sentence.acts]
                for key, act in [
                    *_keys(acts, tale, words),
                    *_keys_of_speech(sentence.text, acts, sentence.named, tale, words),
                ]:
                    statements_by_key[key].append(_Statement(passage_id, sentence.text, act))
    return statements_by_key


def _definitions(analyses: Mapping[str, Analysis]) -> dict[str, tuple[str, _Statement]]:
    """The questions for what a name stands for, each with the statement that answers it, by the name, folded."""
    definitions: dict[str, tuple[str, _Statement]] = {}
    for passage_id, analysis in analyses.items():
        for sentence, asked in analysis.asked():
            defined = _WHAT_IT_IS.fullmatch(asked.question)
            if defined is not None:
                statement = _Statement(passage_id, sentence.text, Act("be", defined["name"], ""))
                definitions.setdefault(defined["name"].casefold(), (asked.question, statement))
    return definitions


def _may_be_told(text: str, *, is_tale: bool) -> bool:
    """Whether a sentence says something that can be part of an answer: whole, no speech, no supposition."""
    text = text if is_tale else text.strip('“”"')
    is_whole = text.endswith((".", "!")) and (is_tale or text[:1].isupper() or text[:1].isdigit())
    is_left_out = "|" in text or (is_tale and re.search(r"[\"“”]", text)) or _SUPPOSED.search(text)
    return is_whole and not is_left_out and len(text.split()) <= LONGEST


def _keys(acts: Iterable[Act], tale: str, words: "_Words") -> Iterator[tuple[tuple[str, ...], Act]]:
    """The groups that each act belongs to: the form of their question, a tale's title, and what they are about."""
    for act in acts:
        has_subject = words.may_be_asked(act.subject, tale)
        has_object = words.may_be_asked(act.object, tale)
        forms = [(form, act.subject) for form in _forms_of_subject(act, words, tale)] if has_subject else []
        forms += [(form, act.object) for form in _forms_of_object(act, tale)] if has_object else []
        if has_subject and not tale:
            yield ("is", "", "", act.subject.casefold()), act
        for form, name in forms:
            yield (form, tale, act.verb if form in _OF_ONE_VERB else "", name.casefold()), act
        if has_subject and has_object:
            for form in _forms_of_two(act):
                yield (form, tale, "", act.subject.casefold(), act.object.casefold()), act


def _keys_of_speech(
    text: str, acts: Iterable[Act], named: Sequence[Named], tale: str, words: "_Words"
) -> Iterator[tuple[tuple[str, ...], Act]]:
    """What somebody says of each thing that the sentence names."""
    for act in acts:
        is_torn = act.verb == SAID_ALOUD and ":" in text  # the next turn ran into it
        if tale or is_torn or act.verb not in TELLING | {SAID_ALOUD} or not words.is_doer(act.subject):
            continue
        for other in named[:MOST_NAMED]:
            is_apart = other.text.casefold() not in act.subject.casefold() and words.is_topic(other.text)
            if act.verb == STATED and not words.is_matter(other.text):
                continue
            if is_apart and words.may_be_asked(act.subject, tale) and words.may_be_asked(other.text, tale):
                yield ("said", tale, "", act.subject.casefold(), other.text.casefold()), act


def _with_speaker(act: Act, title: str) -> Act:
    """The act with the site that the title names in the place of "we"."""
    speaker = speaker_of(title) if act.subject == "we" else ""
    return dataclasses.replace(act, subject=speaker) if speaker else act


_OF_ONE_VERB = frozenset(("does", "effects of one verb", "one verb"))


def _forms_of_subject(act: Act, words: "_Words", tale: str) -> Iterator[str]:
    is_doer = words.is_doer(act.subject)
    if act.verb == DEMANDED:
        yield "should do" if is_doer else "should be"
        return
    if act.verb in CHANGING and not act.object and not is_doer:
        yield "changes"
    if act.verb in _CHANGED and act.object not in _UNNAMED:
        if not is_doer:
            yield "effects"
        if " " not in act.verb:
            yield "effects of one verb"
    elif act.object and act.verb not in UNASKED | LIGHT | _HANDLED:
        yield "does"
    if tale and is_doer and act.verb not in UNASKED:
        yield "deeds"


def _forms_of_object(act: Act, tale: str) -> Iterator[str]:
    if tale and act.verb not in UNASKED | LIGHT:
        yield "befalls"
    if act.verb in _USED:
        yield "used"
    if act.verb in _SHARED:
        yield "shared"
    if act.subject in _UNNAMED:
        return
    if act.verb in AFFECTING:
        yield "affected"
        yield "one verb"
    if act.verb in CAUSING:
        yield "caused"


def _forms_of_two(act: Act) -> Iterator[str]:
    if act.verb in AFFECTING:
        yield "affects"
    elif act.verb in _USED:
        yield "uses"
    if act.verb in _HANDLED:
        yield "handles"


def _group(
    key: tuple[str, ...], statements: Sequence[_Statement], words: "_Words", *, may_be_one: bool
) -> Group | None:
    """The group, if several passages tell different things, or one does that `may_be_one`; else None."""
    name_of_form, _, verb, *names = key
    is_misread = any(name not in words for name in names) or f"{names[0]} {verb}" in words
    if is_misread or (name_of_form == "is" and not verb):
        return None

    distinct = _told_apart(statements)
    if not _are_several(key, statements, len(distinct), words):
        is_answer = may_be_one and _may_be_one(key, statements, words)
        if not is_answer:
            return None
    rank = _FORMS[name_of_form].rank
    asked_about = tuple(words.written(name) for name in names)
    return Group(key, _question_of(key, statements, words), asked_about, distinct, rank)


def _are_several(key: tuple[str, ...], statements: Sequence[_Statement], n_passages: int, words: "_Words") -> bool:
    """Whether enough passages tell different things; of what one plain word names, more have to."""
    name_of_form, tale, _, *names = key
    form = _FORMS[name_of_form]
    is_of_word = any(words.is_plain_word(name) for name in names) and not tale
    fewest = max(form.fewest, FEWEST_OF_WORD if is_of_word else FEWEST)
    return n_passages >= fewest and len(_differing(form, statements)) >= form.fewest


def _may_be_one(key: tuple[str, ...], statements: Sequence[_Statement], words: "_Words") -> bool:
    """Whether one statement answers the question of a key, whose names say by themselves what is meant."""
    name_of_form, tale, _, *names = key
    form = _FORMS[name_of_form]
    is_used = "use" in form.question
    is_bare = not tale and not all(words.may_be_said_alone(name, is_used=is_used) for name in names)
    differing = _differing(form, statements)
    return not is_bare and _answers_alone(form, statements, differing, is_tale=bool(tale), words=words)


def _differing(form: _Form, statements: Sequence[_Statement]) -> set[str]:
    """What the statements tell that the form asks for, each thing once."""
    ends = {str(getattr(statement.act, form.differ, statement.text)).casefold() for statement in statements}
    return ends - _UNNAMED


def _question_of(key: tuple[str, ...], statements: Sequence[_Statement], words: "_Words") -> str:
    """The question of a key; that for what a name stands for is in its key."""
    name_of_form, tale, verb, *names = key
    if name_of_form == "is":
        return verb
    question = _worded(_FORMS[name_of_form], verb, names, words, was_done=_was_done(statements))
    if not tale:
        return question
    if words.is_phrase(names[0]):  # a figure without a name
        question = question.replace(words.spoken(names[0]), f"the {words.written(names[0])}")
    return f"In “{tale}”, {question[:1].lower()}{question[1:]}"


def _worded(form: _Form, verb: str, names: Sequence[str], words: "_Words", *, was_done: bool) -> str:
    """The form with its names, whose verb agrees with the first of them."""
    is_several = words.is_several(names[0])
    does = "do" if is_several else "does"
    forms_of_verb = {"is": "are" if is_several else "is", "verb": verb, "verbs": third_person(verb) if verb else ""}
    spoken = (words.spoken(name) for name in names)
    return form.question.format(*spoken, does="did" if was_done else does, **forms_of_verb)


def _was_done(statements: Sequence[_Statement]) -> bool:
    """Whether most of the statements tell what was done, or said aloud."""
    n_done = sum(statement.act.past or statement.act.verb == SAID_ALOUD for statement in statements)
    return n_done * 2 > len(statements)


def _answers_alone(
    form: _Form, statements: Sequence[_Statement], differing: AbstractSet[str], *, is_tale: bool, words: "_Words"
) -> bool:
    """Whether one statement tells all that the form asks for, or a passage of a tale enough of a figure or a thing."""
    if not is_tale:
        is_told = form is _FORMS["said"] or not any(statement.act.past for statement in statements)
        return form.may_be_one and is_told and bool(differing)
    if form is _FORMS["befalls"]:
        return words.is_doer(statements[0].act.object) and bool(differing)
    return len(differing) >= FEWEST_DEEDS


def _told_apart(statements: Sequence[_Statement]) -> dict[str, str]:
    """The first statement of each passage, by the passage's id, without those that say what another says."""
    text_by_passage: dict[str, str] = {}
    bags: list[set[str]] = []
    for statement in statements:
        bag = set(content_words(statement.text))
        is_repeated = any(len(bag & other) > ALIKE * min(len(bag), len(other)) for other in bags)
        if statement.passage_id not in text_by_passage and bag and not is_repeated:
            text_by_passage[statement.passage_id] = statement.text
            bags.append(bag)
    return text_by_passage


class _Words:
    """How the names of some passages are written, and which may be asked about."""

    def __init__(self, analyses: Iterable[Analysis]) -> None:
        self._named: dict[str, Named] = {}
        self._speakers: set[str] = set()
        self._texts: defaultdict[str, list[str]] = defaultdict(list)
        self._articles: dict[str, Counter[str]] = {}
        for analysis in analyses:
            site = speaker_of(analysis.title)
            for sentence in analysis.sentences:
                speakers = [Named(act.subject, "person") for act in sentence.acts if act.verb == SAID_ALOUD]
                self._speakers.update(speaker.text.casefold() for speaker in speakers)
                if site:
                    speakers.append(Named(site, "organisation"))
                for named in (*sentence.named, *speakers):
                    self._named.setdefault(named.text.casefold(), named)
                    self._texts[named.text.casefold()].append(sentence.text)

    def __contains__(self, name: str) -> bool:
        return name in self._named

    def is_doer(self, name: str) -> bool:
        """Whether it is somebody, or a body that acts."""
        named = self._named.get(name.casefold())
        return named is not None and (named.kind in ("person", "organisation", "group") or named.head in FIGURES)

    def is_topic(self, name: str) -> bool:
        """Whether somebody speaks about it: no plain word, nobody that acts or speaks, but people of several words."""
        named = self._named[name.casefold()]
        is_people = named.is_phrase and self.is_several(name.casefold())
        is_nobody = name.casefold() not in self._speakers and (is_people or not self.is_doer(name))
        return is_nobody and not self.is_plain_word(name.casefold())

    def is_matter(self, name: str) -> bool:
        """Whether a site may be asked what it says about it: a phrase, or a name of several words that no heading
        shouts."""
        named = self._named[name.casefold()]
        if named.is_phrase:
            return name.islower()
        is_short = 1 < len(name.split()) <= LONGEST_MATTER
        return is_short and not any(word.isupper() and len(word) > 4 for word in name.split())

    def may_be_said_alone(self, name: str, *, is_used: bool) -> bool:
        """Whether a question of one statement may have it: no plain word; of what is used, one with its article."""
        if not self.is_phrase(name):
            return True
        if " " not in name:
            return self.is_several(name) and self.is_doer(name)
        is_matter = name.endswith((*MATTERS, "data", "software"))
        return not is_used or is_matter or self.is_several(name) or self.spoken(name) != self.written(name)

    def is_phrase(self, name: str) -> bool:
        return self._named[name].is_phrase

    def is_plain_word(self, name: str) -> bool:
        return " " not in name and self.is_phrase(name)

    def may_be_asked(self, name: str, tale: str) -> bool:
        """Whether a name says what is meant: no filler, nobody in general, no figure but of a tale."""
        named = self._named.get(name.casefold())
        if name in _UNNAMED or named is None or _ODD.search(name) or len(name) < 3:
            return False
        if not named.is_phrase:
            return True
        if tale:
            return named.head not in VAGUE and self._led_by(name.casefold())["the"] > 0
        if self._is_anybody(named, name) or name.split()[0].casefold() in GENERAL:
            return False
        if " " in name:
            return named.head not in FILLERS
        return named.head not in VAGUE and name.endswith("s") and not self._points_back(name)

    def _is_anybody(self, named: Named, name: str) -> bool:
        """Whether a phrase is somebody of whom it says no more: "the keeper", and not "old keepers"."""
        is_somebody = named.head in FIGURES or named.head in PEOPLE
        is_people = " " in name and self.is_several(name.casefold())
        return is_somebody and not is_people

    def _points_back(self, name: str) -> bool:
        """Whether the passages mostly say "the" before it, though it is a word of its own: "the film"."""
        led_by = self._led_by(name.casefold())
        return led_by["the"] * 2 > led_by.total()

    def _led_by(self, name: str) -> Counter[str]:
        """How often the passages say each article before a name, folded; "" for none."""
        if name not in self._articles:
            self._articles[name] = Counter(_article_before(name, text) for text in self._texts[name])
        return self._articles[name]

    def is_several(self, name: str) -> bool:
        named = self._named[name]
        last = name.split()[-1]
        return named.is_phrase and last.endswith("s") and last != named.head

    def written(self, name: str) -> str:
        return self._named[name].text

    def spoken(self, name: str) -> str:
        """The name with the article that the passages give it most often."""
        led_by = self._led_by(name)
        if name in self._speakers:
            return self.written(name)
        article = max(sorted(led_by), key=led_by.__getitem__)
        if not article and self._named[name].is_phrase and not self.is_several(name):
            often = max(("a", "an", "the"), key=led_by.__getitem__)
            article = often if led_by[often] >= OFTEN * led_by.total() else ""
        return f"{article} {self.written(name)}".strip()


def _article_before(name: str, text: str) -> str:
    led = re.search(rf"\b(the|an?) {re.escape(name)}\b", text, re.IGNORECASE)
    return led[1].lower() if led else ""
