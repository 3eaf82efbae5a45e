"""Asks the question that a text answers: what its heading announces, what it defines, or else plainly about its names.

The templates are few, so that each is right wherever it is used: nothing is asked that a sentence of the text does not
answer by its form. Questions with their answers are made of passages in the same way.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from rapidfuzz import fuzz, process

from kraq_dspy.embedded.asking.headings import (
    Heading,
    announced_question,
    headings_by_weight,
    subject_of,
    topic_question,
)
from kraq_dspy.embedded.names import PERSON, REFERENCE, frequent_terms, has_capitals, kind_of, names_in, without_words
from kraq_dspy.language.text import NOTHING_NAMED, parted, plain_question, sentences
from kraq_dspy.language.told import is_english, language_of, may_be_english
from kraq_dspy.language.vocabulary import DONE_BY, MONTH, PEOPLE, STOP

_FILE_NAME = re.compile(r"\S*[._/\\]\S*")
_IS_A = (
    r"(?:(?:,| who) [^,;:]{3,70},)?,? (?P<verb>is|was|are|were) (?:an?|the|one of the|the name of an?)"
    r" (?P<thing>[^;:]+)"
)
_DEFINES = re.compile(rf"^(?P<name>(?:[Tt]he )?[\"“]?[A-Z0-9][^,;:]{{1,70}}?)[\"”]?{_IS_A}")
_NO_NAME = re.compile(
    r"\b(?!(?:of|the|and|de|la|le|du|van|von|der|for|in|on|at|to|a|del|al|y|di|da)\b)[a-z]+| [-–] |[?!]"
)
"""What no name has: other words in small letters, and the marks of a headline."""
_UNPAIRED = re.compile(r"[()\[\]{}]|^[^\"“”]*[\"“”][^\"“”]*$")
_NO_SUBJECT = STOP - {"the"} | {"another", "others", "results", "people"}
_BY = re.compile(rf"^[^,;]*?\b(?P<done>{'|'.join(DONE_BY)})(?:,? (?:and|or|&) (?:\w+-)?\w+)* by (?:the )?[\"“]?[A-Z]")
_NOT_OF_IT = re.compile(
    r"\b(?:of|in|for|from|by|on|that|which|who|with|at|to|about|based|best|born|known|whose|where)\b"
)
_LIVED = re.compile(
    rf"^(?P<name>[A-Z][^,;:()]{{1,60}}?)(?: [\"“][^\"”]+[\"”])? \((?:[^()]*[;,] )?"
    rf"(?:born (?:[^()]*\d{{4}})|(?:{MONTH} \d{{1,2}}, |\d{{1,2}} {MONTH} )\d{{4}} ?(?P<died>[–-])?)"
)
"""Somebody with the dates of a life."""
_GOES_ON = re.compile(r"(He|She|It|Its)\b")
_SEVERAL = frozenset(
    "band duo trio quartet quintet ensemble orchestra choir crew team club couple twins people peoples "  # noqa: SIM905
    "men women".split()
) | {f"{person}s" for person in PEOPLE}
"""What several people are together, "singers" among it."""
_GATHERED = frozenset(["group", "family", "tribe", "clan"])
"""What several people are together, and other things, too: a family of plants."""
_MAY_BE_SOMEBODY = re.compile(
    r"(?:er|or|ist|ian|man|woman|ess|ant|ent|ee|eur|ard|mate)\b|\b(?:native|graduate|star|icon|figure|victim|alumnus"
    r"|hero|heroine|veteran|child|son|daughter|sister|brother|wife|husband|mother|father|friend|professional|head)$"
)
"""Kinds of somebody that `PEOPLE` may lack: then a name of two words is asked about neither by who nor by what."""
_ODD_NAME = re.compile(r"(?:^|\s)(?:\d+|\w)(?:\s|$)")
"""Names with a number or a letter in them that may stand for anything."""
MOST_NAME_WORDS = 8
LONGEST = 140  # characters of a question
SAME = 80  # of a hundred, by letters
OPENING = 2  # sentences of a passage that may say what it is about
TRIED = 12  # headings of which the first that announces a question is taken


def question_about(
    summary: str,
    passages: Sequence[str] = (),
    subject: str = "",
    *,
    language_of_corpus: str = "en",
) -> str:
    """One question about what the summary is mostly about; its first line is a title where more lines follow.

    `passages` are those behind the summary: a heading of theirs that announces a question goes before all else.
    `subject` is what the whole corpus is about (`subject_of`), for passages that do not say it. Passages in English of
    a corpus in another language are asked about only if a heading or a sentence says what to ask. Nothing is asked of
    passages in other languages: that takes a language model.

    >>> question_about("Ada Lovelace\\nAda Lovelace was an English mathematician.")
    'Who was Ada Lovelace?'
    """
    title, _, body = summary.strip().partition("\n")
    if not body:
        title, body = "", title
    parts = sentences(body)
    names = _by_weight(title, parts, body)
    if not names and title and not _FILE_NAME.fullmatch(title):
        names = [title]
    return _question(names, parts, summary, passages, subject, is_plain=language_of_corpus == "en")


def question_about_theme(passages: Sequence[str]) -> str:
    """One question about what the most passages share: a heading, or the names that they have in common."""
    shared: Counter[str] = Counter()
    for passage in passages:
        shared.update(dict.fromkeys(_by_weight("", sentences(passage), passage), 1))
    text = "\n".join(passages)
    return _question([name for name, _ in shared.most_common()], sentences(text), text, passages)


@dataclass(frozen=True, slots=True)
class Definition:
    """What a sentence says that a name is: "Ada", "was", the kind "English mathematician", and the whole `thing`."""

    name: str
    verb: str
    kind: str
    thing: str


def definition(sentence: str, titles: Collection[str] = ()) -> Definition | None:
    """Read a definition; None if the sentence defines nothing. A title is a name whatever its
    letters."""
    plain = without_asides(sentence).rstrip(" .!?")
    match = _definition_of_title(plain, titles)
    if match is None:
        match = _DEFINES.match(plain)
        if match is None or not _is_name(match["name"].strip('"“”')):
            return None

    kind = _NOT_OF_IT.split(match["thing"].partition(",")[0])[0].strip()
    name = _once(re.sub(r"^The (?=[A-Z0-9])", "the ", match["name"].strip('"“”')))
    return Definition(name, match["verb"], kind, match["thing"])


def _once(name: str) -> str:
    """The name that stands twice where a heading has run into its first sentence: "Ed Wood Ed Wood is a film"."""
    half = len(name) // 2
    first, space, second = name[:half], name[half : half + 1], name[half + 1 :]
    return first if space == " " and first == second else name


def _definition_of_title(plain: str, titles: Collection[str]) -> re.Match[str] | None:
    """Match a sentence that begins with one of the titles, and says what that is."""
    begun = plain.removeprefix("The ").lstrip('"“')
    title = next((title for title in titles if begun.startswith(title)), "")
    if not title:
        return None
    return _defines(title).match(plain)


@lru_cache(maxsize=2048)
def _defines(title: str) -> re.Pattern[str]:
    return re.compile(rf"(?P<name>(?:The )?[\"“]?{re.escape(title)})[\"”]?{_IS_A}")


def is_person(kind: str, sentence: str, name: str) -> bool:
    """Whether the text says so: by what somebody is ("Welsh director and writer"), or by the dates of a life."""
    heads = {phrase.split()[-1].lower() for phrase in re.split(r" and |/", kind) if phrase.strip()}
    lived = _LIVED.match(sentence)
    return not PEOPLE.isdisjoint(heads) or bool(lived and lived["name"] in name)


def without_asides(sentence: str) -> str:
    """Leave out references and what stands in brackets, brackets inside brackets too."""
    before = ""
    while before != sentence:
        before, sentence = sentence, re.sub(r"(?<!\s)\s*+(?:\([^()]*\)|\[[^\[\]]*\])", "", sentence)
    return REFERENCE.sub("", sentence).replace(" ,", ",").replace("  ", " ")


def _question(
    names: list[str],
    parts: list[str],
    text: str,
    passages: Sequence[str],
    subject: str = "",
    *,
    is_plain: bool = True,
) -> str:
    """Ask for what a heading announces, or what a sentence says about a name; else, if `is_plain`, about a topic."""
    everything = "\n".join([text, *passages])
    if language_of(everything) != "en":
        return NOTHING_NAMED
    headings = headings_by_weight(passages, text)
    question = _announced(headings, passages, subject_of(passages) or subject)
    if not question:
        openings = [part for passage in passages for part in sentences(parted(passage)[1])[:OPENING]]
        question = _told(names, _titles_of(headings), [*parts, *openings])
    if question:
        return question
    if not is_plain or not may_be_english(everything):
        return NOTHING_NAMED
    if headings:
        first = headings[0]  # its title may be in another language, as in a half-translated text
        is_asked = is_english(first.title or first.text, first.text)
        return topic_question(first, passages) if is_asked else NOTHING_NAMED
    named = [name for name in names if not _ODD_NAME.search(name)]
    return plain_question([named[0], *_partners(named[0], named, parts)]) if named else NOTHING_NAMED


def _announced(headings: Sequence[Heading], passages: Sequence[str], subject: str) -> str:
    """The question of the first heading that announces one of a fair length; "" for none."""
    for heading in headings[:TRIED]:
        question = announced_question(heading, passages, subject)
        if 0 < len(question) <= LONGEST:
            return question
    return ""


def _titles_of(headings: Sequence[Heading]) -> dict[str, None]:
    """The headings as titles, without what tells namesakes apart: brackets, then a comma."""
    bare = [re.sub(r" \([^()]*\)$", "", heading.text) for heading in headings]
    before_comma = [title.partition(", ")[0] for title in bare]
    return dict.fromkeys([*bare, *before_comma])


def _told(names: list[str], titles: Collection[str], parts: list[str]) -> str:
    """The question for what a sentence says that a name is, of the weightiest name if it can; ""
    if none says."""
    questions: list[tuple[int, str]] = []
    for part, following in pairwise([*parts, ""]):
        name, question = _asked_of_sentence(part, following, titles)
        if 0 < len(question) <= LONGEST:
            places = (place for place, other in enumerate(names) if other in name or name in other)
            questions.append((next(places, len(names)), question))

    _, question = min(questions, key=lambda placed: placed[0], default=(0, ""))
    return question


def _asked_of_sentence(part: str, following: str, titles: Collection[str]) -> tuple[str, str]:
    """The name that a sentence is about, and the question that it answers; "" if it has none."""
    defined = definition(part, titles)
    if defined is not None:
        return defined.name, _about_defined(defined, part, following)

    lived = _LIVED.match(part)
    if lived and _is_name(lived["name"]):
        return lived["name"], f"Who {'was' if lived['died'] else 'is'} {lived['name']}?"
    return "", ""


def _about_defined(defined: Definition, part: str, following: str) -> str:
    """Ask who made it, where the definition goes on to say so; else what or who it is."""
    name, verb, kind = defined.name, defined.verb, defined.kind
    looks_like_person = PERSON.fullmatch(name) is not None
    pronoun = _GOES_ON.match(following)
    goes_on_with = pronoun[1] if pronoun else ""

    if is_person(kind, part, name) or (goes_on_with in ("He", "She") and looks_like_person):
        return f"Who {verb} {name}?"

    made = _BY.match(defined.thing)
    if made and not _NOT_OF_IT.search(defined.thing[: made.start("done")]):
        return f"Who {DONE_BY[made['done']]} {name}?"

    may_be_somebody = looks_like_person and _MAY_BE_SOMEBODY.search(kind) is not None
    if may_be_somebody and not goes_on_with.startswith("It") and kind_of(name, part) in ("person", "concept"):
        return ""
    return f"{'Who' if _is_several(defined) else 'What'} {verb} {name}?"


def _is_several(defined: Definition) -> bool:
    """Whether the name is that of several people: "The Beatles were a band", and not of a genus or a breed."""
    if defined.verb not in ("are", "were"):
        return False
    heads = {phrase.split()[-1].lower() for phrase in re.split(r" and |/", defined.kind) if phrase.strip()}
    if not heads.isdisjoint(_SEVERAL):
        return True

    _, of, members = defined.thing.lower().partition(f"{defined.kind.lower()} of ")
    of_what = _NOT_OF_IT.split(members.partition(",")[0])[0].split()
    return not heads.isdisjoint(_GATHERED) and (not of or not _SEVERAL.isdisjoint(of_what[-1:]))


def _is_name(name: str) -> bool:
    words = name.split()
    is_short = 0 < len(words) <= MOST_NAME_WORDS and words[0].lower() not in _NO_SUBJECT
    return is_short and bool(names_in(f"· {name}")) and not _NO_NAME.search(name) and not _UNPAIRED.search(name)


def _by_weight(title: str, parts: list[str], body: str) -> list[str]:
    """Names by how often they are said, each once in its longest form; those of the title count
    more, and the earlier the better."""
    if not has_capitals(body):
        return frequent_terms(f"{title}\n{body}") or ([title] if title else [])

    bare_title = re.sub(r"(?<!\s)\s*+\([^()]*\)", "", title)
    weights = _weights_of_names(parts, bare_title, body)
    in_title = sorted((name for name in weights if name in bare_title), key=bare_title.find)
    for place, name in enumerate(in_title):
        weights[name] += max(4, 14 - 3 * place)

    ranked = sorted(weights, key=lambda name: -weights[name])
    return _spelled_once(_without_parts_of_others(ranked))


def _weights_of_names(parts: Sequence[str], bare_title: str, body: str) -> Counter[str]:
    """The names of the sentences, in order; those of the first sentence weigh more."""
    known = frozenset(re.split(r"; |,? and |, ", bare_title))
    weights: Counter[str] = Counter()
    for number, part in enumerate(parts):
        for name in without_words(names_in(part, known), body):
            weights[name] += 3 if number == 0 else 2
    return weights


def _without_parts_of_others(names: Sequence[str]) -> list[str]:
    """Drop the names whose words are a part of another's."""
    every = "\n".join(f" {name} " for name in names)
    return [name for name in names if every.count(f" {name} ") == 1 and f"{name}'s" not in every]


def _spelled_once(names: Sequence[str]) -> list[str]:
    """Drop the names that are an earlier one, spelled in another way."""
    distinct = []
    earlier: defaultdict[int, list[str]] = defaultdict(list)  # in small letters, by their number of words
    for name in names:
        as_long = earlier[len(name.split())]
        if process.extractOne(name.lower(), as_long, scorer=fuzz.ratio, score_cutoff=SAME) is None:
            distinct.append(name)
        as_long.append(name.lower())
    return distinct


def _partners(first: str, names: list[str], parts: list[str]) -> list[str]:
    """The other names that a sentence tells together with the first, weightiest first."""
    together = [part for part in parts if first in part]
    return [
        name
        for name in names[1:8]
        if name not in first and first not in name and any(name in part for part in together)
    ]
