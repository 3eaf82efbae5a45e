"""Turns a summary or passages into a question: what a sentence tells becomes what a curious person would ask."""

import re
from collections import Counter

from rapidfuzz import fuzz

from kraq_dspy.models.lms.engines.embedded.clause import (
    LOOSE,
    MOST_WORDS,
    ONE,
    ask_about_act,
    ask_about_thing,
    ask_for_person,
    ask_for_role,
    ask_for_statement,
    ask_for_subject,
    ask_the_authors,
    tells_why,
)
from kraq_dspy.models.lms.engines.embedded.definition import PEOPLE, ask_for_defined, defined_name
from kraq_dspy.models.lms.engines.embedded.names import (
    DEFINITION,
    frequent_terms,
    has_capitals,
    kind_of,
    names_in,
    without_words,
)
from kraq_dspy.models.lms.engines.embedded.question_forms import (
    ACTS,
    BETWEEN,
    CHINESE,
    CUES,
    OF_KINDS,
    OF_ONE,
    OF_PAIR,
    OF_THREE,
    RANK,
)  # fmt: skip
from kraq_dspy.models.lms.engines.embedded.text import UNSPACED, sentences
from kraq_dspy.models.lms.engines.embedded.vocabulary import BASE_OF_PAST, KIND_OF_NOUN, MONTH, STOP
from kraq_dspy.records import content_id

GOES_ON = re.compile(
    r",? (?:[a-z]+(?:ed|ing|s)|born|best|led|won|had|was|were|been|wrote|became|met|built|ran|held)\b|, (?:an?|the) "
)
"""What comes after a name that a sentence is about, rather than after one that describes the next noun."""
ACTS_AS_PERSON = re.compile(f"{ONE}{ACTS}|{RANK}{ONE}")
CALLED_PERSON = re.compile(rf"{ONE}[^.]*\b(?:he|she|his|her)\b")
ASKS = re.compile(
    r"(?:Who|What|Which|Where|When|Why|How|Is|Are|Was|Were|Do|Does|Did|Can|Could|Will|Would|Should|Has|Have)\b"
)
LIVED = re.compile(rf"{ONE} \((?:[^()]*[;,] )?(?:born\b|(?:{MONTH} )?\d{{1,2}},? (?:{MONTH} )?\d{{4}} ?[–-] ?)")
LONGEST = 140  # characters of a question
SAME = 80  # of a hundred, by letters
CENTRAL = 4  # names that a question may be about


def question_about(summary: str) -> str:
    """One question about what the summary is mostly about. Its first line is a title where more lines follow. The form
    depends on the text alone, so different summaries get different forms."""
    title, _, body = summary.strip().partition("\n")
    if not body:
        title, body = "", title
    parts = sentences(body)
    return _question(_by_weight(title, parts, body), parts, int(content_id(summary)[:8], 16))


def question_about_theme(passages: list[str]) -> str:
    """One question about the names that the most passages share."""
    shared: Counter[str] = Counter()
    for passage in passages:
        shared.update(dict.fromkeys(_by_weight("", sentences(passage), passage), 1))
    text = "\n".join(passages)
    return _question(
        [name for name, _ in shared.most_common()], sentences(text), int(content_id(text)[:8], 16), single=False
    )


def _question(names: list[str], parts: list[str], dice: int, *, single: bool = True) -> str:
    """`names` by weight. What a sentence tells of the first and another gives the form, else what one tells of a name
    among the first few; `single` lets one about the first alone go before a form that fits any two."""
    if not names:
        return "What is this about?"
    first = names[0]
    partners = _partners(first, names, parts)
    if UNSPACED.search(first):
        return CHINESE[0].format(a=first, b=partners[0]) if partners else CHINESE[1].format(a=first)
    called = {name: _called(name, parts) for name in names[: 2 * CENTRAL]}
    if question := _told_relation(first, partners, parts, called) or _told_clause(names, parts, called, least=1):
        return question
    if single and (cue := _cue(first, parts)):
        return _filled(cue, called[first])
    if question := _told_clause(names, parts, called, least=0) or _defined(names, parts) or _told_of_any(names, parts):
        return question
    if question := _what_it_is(parts) or _told_clause(names, parts, called, least=0, untold=True):
        return question
    kinds = {name: _known_kind(name, parts) for name in (first, *partners[:2])}
    for partner in partners[:2]:
        if forms := OF_KINDS.get((kinds[first], kinds[partner])):
            return _filled(forms[dice % len(forms)], called[first], called[partner])
    if len(partners) > 1 and dice % 2:
        return _filled(OF_THREE[dice // 2 % len(OF_THREE)], *(called[name] for name in (first, *partners[:2])))
    if partners:
        return _filled(OF_PAIR[dice // 2 % len(OF_PAIR)], called[first], called[partners[0]])
    about = next((part for part in parts if first in part), "")
    forms = OF_ONE.get(kind_of(first, about), OF_ONE[""])
    return _filled(forms[dice // 2 % len(forms)], called[first])


def _filled(form: str, a: str, b: str = "", c: str = "") -> str:
    return form.format(a=a, b=b, c=c).replace("s's ", "s' ")


def _told_relation(first: str, partners: list[str], parts: list[str], called: dict[str, str]) -> str:
    """A question from a sentence that tells how `first` and a partner are related; "" where none says it plainly."""
    for part in parts:
        for partner in partners:
            for source, target in ((first, partner), (partner, first)):
                if form := _form_between(part, source, target):
                    return _filled(form, called[source], called[target])
                if question := ask_for_role(part, source, called[target]):
                    return question
    return next(
        (
            question
            for part in parts
            for partner in partners
            for one, other in ((first, partner), (partner, first))
            if " " in one and (question := ask_for_statement(part, one, called[other]))
        ),
        "",
    )


def _told_clause(
    names: list[str], parts: list[str], called: dict[str, str], *, least: int, untold: bool = False
) -> str:
    """What a sentence tells of one of the central names as a question that has at least `least` of the other names,
    most if it can; "" where no sentence tells such a thing. `untold` lets it ask why or how where no sentence says."""
    candidates: list[tuple[int, int, str]] = []
    for place, name in enumerate(names[:CENTRAL]):
        question_word = _question_word(name, parts)
        for part in parts:
            about, subject = ask_about_act(part, name, called[name]), ask_for_subject(part, name, question_word)
            candidates += [(0, 2 * place, about if untold or _is_told(about, part) else "")]
            candidates += [(1, 2 * place + 1, subject)]
    for part in parts:
        thing = ask_about_thing(part)
        candidates += [(1, CENTRAL, thing if untold or _is_told(thing, part) else "")]
        candidates += [(1, CENTRAL, ask_for_person(part)), (0, CENTRAL, ask_the_authors(part) or _own_question(part))]
    questions = []
    for hidden, place, question in candidates:
        there = sum(name in question for name in called)
        if 0 < len(question) <= LONGEST and there >= max(1, least + 1 - hidden):
            questions.append((-min(2, there + hidden), place, question))
    return min(questions)[2] if questions else ""


def _is_told(question: str, part: str) -> bool:
    """Whether the sentence answers the question, rather than that somebody would like to know."""
    return not question.startswith(("Why", "How")) or tells_why(part)


def _own_question(part: str) -> str:
    """The sentence itself, where it is a question that can stand alone."""
    alone = part.endswith("?") and ASKS.match(part) and not LOOSE.search(part.partition(" ")[2])
    return part if alone and 4 <= len(part.split()) <= MOST_WORDS and names_in(part) else ""


def _defined(names: list[str], parts: list[str]) -> str:
    """The question for what a sentence defines, for the weightiest of the names if it can; "" where none does."""
    questions = []
    for part in parts:
        subject, question = ask_for_defined(part)
        if 0 < len(question) <= LONGEST:
            place = next((n for n, name in enumerate(names) if name in subject or subject in name), len(names))
            questions.append((place, question))
    return min(questions, key=lambda one: one[0])[1] if questions else ""


def _what_it_is(parts: list[str]) -> str:
    """ "Who was Ada Lovelace?", of what the first sentence that defines a name tells; "" where none does."""
    for part in parts:
        name, verb, kind = defined_name(part)
        if name:
            is_who = _is_person(name, kind, parts) or verb in ("are", "were")
            return f"{'Who' if is_who else 'What'} {verb} {name}?"
    return ""


def _is_person(name: str, kind: str, parts: list[str]) -> bool:
    """By what the text says that it is, as "Welsh director and writer"."""
    heads = {phrase.split()[-1] for phrase in re.split(r" and |/", kind) if phrase.strip()}
    return not PEOPLE.isdisjoint(heads) or _known_kind(name, parts) == "person"


def _told_of_any(names: list[str], parts: list[str]) -> str:
    """What the first sentence that can be turned round tells of any name; "" where none can."""
    for part in parts:
        for name in names_in(part):
            about = ask_about_act(part, name, name)
            question = (about if _is_told(about, part) else "") or ask_for_subject(
                part, name, _question_word(name, parts)
            )
            if 0 < len(question) <= LONGEST and any(other in question for other in names[: 2 * CENTRAL]):
                return question
    return ""


def _form_between(part: str, source: str, target: str) -> str:
    """The form that fits what the sentence says between the two, when `source` comes first; "" where none does."""
    start = part.find(source)
    end = part.find(target, start + len(source)) if start >= 0 else -1
    if end < 0 or end - start - len(source) > 90:
        return ""
    middle = re.sub(r"\s*\([^)]*\)", "", part[start + len(source) : end]).rstrip(" \"“'")
    if re.search(r"[.;:]\s", middle) or not GOES_ON.match(middle):
        return ""
    plain = re.sub(r"(?: (?:the|a|an|his|her|its|their))+$", "", middle)
    if "," not in plain[1:]:
        for pattern, form in BETWEEN:
            if re.search(pattern, plain):
                return form
    return ""


def _called(name: str, parts: list[str]) -> str:
    """With "the" where the text mostly says so: the Saints, the Supreme Court."""
    counts = Counter(
        bool(match[1])
        for part in parts
        for match in re.finditer(rf"\b([Tt]he )?{re.escape(name)}(?= (\w+)|\W|$)", part)
        if not match[2] or match[2] in STOP or match[2] in BASE_OF_PAST
    )
    return f"the {name}" if counts[True] > counts[False] and not name.startswith("The ") else name


def _question_word(name: str, parts: list[str]) -> str:
    """Who, what, or which film: by what the text says that it is."""
    kind = next((kind for part in parts for defined, _, kind in [defined_name(part)] if name in defined), "")
    if _is_person(name, kind, parts):
        return "Who"
    for part in parts:
        if name in part and (stated := DEFINITION.match(part, part.find(name) + len(name) + 1)):
            head = re.split(r"\b(?:of|in|for|by|from|who|that|which|directed|written|based)\b", stated[1])[0].split()
            if head and head[-1].lower() in KIND_OF_NOUN:
                return f"Which {head[-1].lower()}"
    noun = next((word for word in map(str.lower, name.split()[::-1]) if word in KIND_OF_NOUN), "")
    if noun:
        return f"Which {noun}"
    return "Who" if _called(name, parts).startswith("the ") and name.endswith("s") else "What"


def _known_kind(name: str, parts: list[str]) -> str:
    """What kind of thing it is, where a sentence shows it; "" where the name alone would have to say it."""
    about = [part for part in parts if name in part]
    marked = [part.replace(name, ONE) for part in about]
    if any(ACTS_AS_PERSON.search(part) or LIVED.search(part) for part in marked):
        return "person"
    kind = next((kind_of(name, part) for part in about if part.startswith((name, f"The {name}"))), "")
    kind = kind or next((kind_of(name, part) for part in about), "")
    if kind == "person" and not any(CALLED_PERSON.search(part) for part in marked):
        return ""
    return kind


def _by_weight(title: str, parts: list[str], body: str) -> list[str]:
    """Names by how often they are said, each once in its longest form; those of the title count more, and the earlier
    the better."""
    if not has_capitals(body):
        return frequent_terms(f"{title}\n{body}") or ([title] if title else [])
    counts: Counter[str] = Counter()
    bare_title = re.sub(r"\s*\([^)]*\)", "", title)
    known = frozenset(re.split(r"; |,? and |, ", bare_title))
    for number, part in enumerate(parts):
        for name in without_words(names_in(part, known), body):
            counts[name] += 3 if number == 0 else 2
    named = sorted((name for name in counts if name in bare_title), key=bare_title.find)
    for place, name in enumerate(named):
        counts[name] += max(4, 14 - 3 * place)
    order = {name: place for place, name in enumerate(counts)}
    ranked = sorted(counts, key=lambda name: (-counts[name], order[name]))
    longest = [name for name in ranked if not any(name != other and _within(name, other) for other in ranked)]
    return [name for place, name in enumerate(longest) if not any(_alike(name, other) for other in longest[:place])]


def _alike(name: str, other: str) -> bool:
    """Whether the two are one name, spelled in two ways."""
    return fuzz.ratio(name.lower(), other.lower()) >= SAME and len(name.split()) == len(other.split())


def _within(name: str, other: str) -> bool:
    """Whether the words of `name` are a part of those of `other`."""
    return f" {name} " in f" {other} " or f"{name}'s" in other


def _partners(first: str, names: list[str], parts: list[str]) -> list[str]:
    """The other names that a sentence tells together with the first, weightiest first."""
    together = [part for part in parts if first in part]
    return [
        name
        for name in names[1:8]
        if name not in first and first not in name and any(name in part for part in together)
    ]


def _cue(first: str, parts: list[str]) -> str:
    for part in parts:
        if part.startswith(first) and GOES_ON.match(re.sub(r"\s*\([^)]*\)", "", part[len(first) :])):
            for pattern, form in CUES:
                if re.search(pattern, part):
                    return form
            if re.match(r"(?: \([^)]*\))? (?:is|was|are|were) ", part[len(first) :]):
                kind = defined_name(part)[2]
                return "Who is {a}?" if _is_person(first, kind, parts) else "What is {a}?"
    return ""
