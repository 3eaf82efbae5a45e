"""Asks for what a sentence defines: "Massy is a town in France" answers "Which town is in France?"."""

import re

from kraq_dspy.models.lms.engines.embedded.clause import ADVERBIAL, LOOSE, ROLES, clause_end, without_asides
from kraq_dspy.models.lms.engines.embedded.names import names_in
from kraq_dspy.models.lms.engines.embedded.vocabulary import BASE_OF_PAST, BASES, MONTH, NOUNS, STOP, _set

DEFINES = re.compile(
    rf"^{ADVERBIAL}(?P<subject>(?:[Tt]he )?[\"“]?[A-Z0-9][^,;:]{{1,70}}?)[\"”]?(?:, [^,;:]{{3,70}},)?"
    r" (?P<verb>is|was|are|were) (?P<article>an?|the) (?P<thing>[^;:]+)$"
)
IS_A = re.compile(
    rf"^{ADVERBIAL}(?P<subject>(?:[Tt]he )?[\"“]?[A-Z0-9][^,;:]{{1,70}}?)[\"”]?(?:(?:,| who) [^,;:]{{3,70}},)?"
    r" (?P<verb>is|was|are|were) (?:an?|the|one of the) (?P<thing>[^;:]+)"
)
CONTINUATION = re.compile(
    r",? (?:(?P<clause>who|that|which)|(?P<adverb>(?:(?:best|originally|first|\w+ly) )?)"
    r"(?P<participle>known|written|built|held|made|set|born|led|run|drawn|found|shot|sung|won|[a-z]+(?:ed|ing)))"
    r"(?:(?:, [\w-]+(?:ed|en))*,? and [\w-]+(?:ed|en))?(?P<how> \w+ly)? (?P<rest>.+)$"
)
"""What tells a thing apart from others of its kind."""
LASTING = _set("""
    based located situated headquartered known named owned operated held used called considered found set bordered
    bounded affiliated dedicated played presented celebrated surrounded populated inhabited related connected composed
    devoted
""")
"""Participles that tell, after "is", what still is so."""
PLACED = re.compile(r"(?P<kind>[^,]+?) (?P<place>(?:in|on|near|at|between|by|along) .+)$")
ALSO = re.compile(r",? and (?:starring|featuring|\w+ed|written)\b.*")
CUT_DATE = re.compile(rf"(?:\b[A-Z][a-z]+day|{MONTH} \d{{1,2}})$")
YEARS = re.compile(rf",? (?:from|between) (?:{MONTH} )?\d{{4}} (?:to|until|and|through) (?:{MONTH} )?\d{{4}}\b")
NO_SUBJECT = STOP | _set("another others results people")
NO_HEAD = _set("part name result member one type kind form number pair series same first only second third last list")
OF_SERIES = _set("television tv film movie book novel comic drama comedy web radio documentary crime fantasy reality")
NO_NAME = re.compile(
    r"\b(?!(?:of|the|and|de|la|le|du|van|von|der|for|in|on|at|to|a|del|al|y|di|da)\b)[a-z]+| [-–] |[?!]"
)
"""What no name has: other words in small letters, and the marks of a headline."""
MOST_NAME_WORDS = 8
MOST_KIND_WORDS = 9
PEOPLE = (
    ROLES
    | NOUNS["person"]
    | _set("""
    man woman boy girl person people member members politician character cinematographer solicitor singer-songwriter
    dancer choreographer sculptor photographer bishop priest pope saint emperor empress prince princess duke earl
    soldier astronaut mathematician chemist biologist astronomer theologian explorer entrepreneur jurist diplomat
    archaeologist linguist translator critic columnist anchor host athlete driver rower gymnast skater skier cyclist
    pianist violinist organist cellist jockey golfer gangster criminal spy pilot sailor surgeon physician
""")
)
BASE_OF_ING = {f"{base.removesuffix('e')}ing": base for base in BASES} | {"starring": "star", "featuring": "feature"}


def ask_for_defined(part: str) -> tuple[str, str]:
    """The name that the sentence defines, and the question that it answers; ("", "") where the sentence defines no
    name, or says nothing that tells it apart from others."""
    match = DEFINES.match(without_asides(part).rstrip(" .!?"))
    subject = match["subject"].strip('"“”') if match else ""
    if not match or not names_in(f"· {subject}") or subject.split()[0].lower() in NO_SUBJECT - {"the", "a"}:
        return "", ""
    question = _question(match["verb"], match["article"], match["thing"])
    own = [word for word in re.findall(r"\w{4,}", subject) if word[0].isupper()]
    gives_away = sum(word in question for word in own) > len(own) / 2
    hangs = LOOSE.search(question[len("Which ") :].casefold()) or "same name" in question or question.count('"') % 2
    return (subject, question) if question and not gives_away and not hangs else ("", "")


def defined_name(part: str) -> tuple[str, str, str]:
    """(name, verb, kind) of a sentence that says what a name is: ("Ada", "was", "English mathematician"); empty ones
    where it does not."""
    match = IS_A.match(without_asides(part).rstrip(" .!?"))
    subject = match["subject"].strip('"“”') if match else ""
    if not match or not _is_name(subject):
        return "", "", ""
    kind = re.split(r",| (?:of|in|for|by|from|who|that|which|with|at|on|to)\b", match["thing"])[0]
    return re.sub(r"^The (?=[A-Z0-9])", "the ", subject), match["verb"], kind


def _is_name(subject: str) -> bool:
    words = subject.split()
    is_short = 0 < len(words) <= MOST_NAME_WORDS and words[0].lower() not in NO_SUBJECT - {"the"}
    return is_short and bool(names_in(f"· {subject}")) and not NO_NAME.search(subject)


def _question(verb: str, article: str, thing: str) -> str:
    more = _continuation(thing)
    kind = thing[: more.start()].partition(", ")[0] if more else clause_end(thing.partition(", ")[0])
    if not _is_kind(kind):
        return ""
    if article == "the":
        stated = _as_stated(more) if more else ""
        return f"{'Who' if _head(kind) in PEOPLE else 'What'} {verb} the {kind}{stated}?" if stated or not more else ""
    if more:
        predicate = _predicate(verb, more)
        return f"Which {kind} {predicate}?" if predicate else ""
    placed = PLACED.match(kind)
    return f"Which {placed['kind']} {verb} {placed['place']}?" if placed else ""


def _continuation(thing: str) -> re.Match[str] | None:
    """From where the thing is told apart from others; None where a list comes before."""
    for place in re.finditer(r",? (?=[a-z])", thing):
        before = thing[: place.start()]
        more = CONTINUATION.match(thing, place.start())
        if "," in before and _head(before.partition(",")[0]) not in PEOPLE:
            return None
        last = _last_word(before)
        if more and last and last not in STOP and not last.endswith("ly"):
            following = more["rest"].split()[0]
            if more["clause"] or following in STOP or not following[0].islower():
                return more  # else an adjective before its noun
    return None


def _as_stated(more: re.Match[str]) -> str:
    """As the sentence has it, up to the end of the clause; "" for nothing that can stand alone."""
    rest = _rest(more)
    lead = more["clause"] or f"{more['adverb']}{more['participle']}{more['how'] or ''}"
    return f" {lead} {rest}" if rest else ""


def _predicate(verb: str, more: re.Match[str]) -> str:
    """What the question says of the thing, with its verb; "" where the verb cannot be told."""
    rest = _rest(more)
    if not rest:
        return ""
    if more["clause"]:
        word = rest.split()[0]
        return rest if word in BASE_OF_PAST or word in {"is", "was", "are", "were", "has", "had"} | THIRD else ""
    adverb, participle = more["adverb"], more["participle"]
    if participle.endswith("ing"):
        base = BASE_OF_ING.get(participle, "")
        form = base if verb in ("are", "were") else _third_person(base)
        return f"{adverb}{form} {rest}" if base else ""
    if participle not in LASTING:
        verb = {"is": "was", "are": "were"}.get(verb, verb)
    return f"{verb} {adverb}{participle}{more['how'] or ''} {rest}"


def _rest(more: re.Match[str]) -> str:
    """The first of what is told, without the years of a span; "" where a date would be cut in two."""
    rest = clause_end(YEARS.sub("", ALSO.sub("", more["rest"])))
    first, _, others = rest.partition(", ")
    rest = rest if not others or others[0].isdigit() or len(first.split()) < 2 else first
    return "" if CUT_DATE.search(rest) else rest


def _third_person(base: str) -> str:
    if base.endswith("y") and base[-2:-1] not in tuple("aeiou"):
        return f"{base[:-1]}ies"
    return f"{base}es" if base.endswith(("s", "x", "z", "ch", "sh", "o")) else f"{base}s"


THIRD = {_third_person(base) for base in BASES if base}


def _head(kind: str) -> str:
    return _last_word(re.split(r" (?:of|in|on|at|for|by|from|between|to|with)\b", kind)[0])


def _last_word(text: str) -> str:
    return next(reversed(text.lower().split()), "")


def _is_kind(kind: str) -> bool:
    """Whether it is one kind of thing, such as can be asked for."""
    return (
        0 < len(kind.split()) <= MOST_KIND_WORDS
        and "," not in kind
        and (_head(kind) not in NO_HEAD or _is_series(kind))
        and _head(kind).isalpha()
    )


def _is_series(kind: str) -> bool:
    *_, before, last = ["", *kind.lower().split()]
    return last == "series" and before in OF_SERIES
