"""Chooses, of the values of a sentence, the one that a question means: that of the clause which has its words.

A sentence is cut into stretches with one value each. The words of the first stretch hold for those behind it: in "The
fee is 180 pounds for adults and 75 pounds for juniors" both are fees. A stretch with a verb of its own has to have a
word of the question. Where two stretches would do as well, none is chosen.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kraq_dspy.embedded.short_answers.meaning import Keys, Word, is_among, is_in, vocabulary_of, words_of
from kraq_dspy.embedded.short_answers.sense import switched_in
from kraq_dspy.embedded.short_answers.values import Value
from kraq_dspy.embedded.word_forms import PAST
from kraq_dspy.language.vocabulary import DOES

_VERB = re.compile(
    rf"\b(?:is|are|was|were|be|been|has|have|had|can|may|must|will|does|did|do|{'|'.join(DOES)}|{PAST}|[a-z]{{2,}}ed"
    r"|paid|said|put|cut|cost|costs|fell|rose|opens?|closes?|begins?|starts?|ends?|leaves?|arrives?|stops?|weighs?"
    r"|measures?|holds?|takes?|lasts?|needs?|uses?|makes?|runs?|teaches|lives?|works?|plays?|leads?|owns?|looks?"
    r"|sells?|serves?|keeps?|stays?|lies|stands|goes|comes|gets|gives|pays|earns?|joins?|boils?|reaches)\b"
)
_BREAKS = re.compile(
    r"(?P<strong>;\s|\s[–—]\s)|(?P<joint>,? (?:and|but|while|whereas|although|though|then|or)\b)|(?P<comma>,(?=\s))"
    r"|(?P<colon>:\s)|(?P<weak> (?:to|from|in|on|with)\b)"
)
_GOES_ON = re.compile(rf",? (?:and|but) (?={_VERB.pattern})")
_ENDS_WITH_VERB = re.compile(rf"{_VERB.pattern}$")
"""Where two verbs have one object: "directed and produced by"."""
_RANKS = {"strong": 4, "joint": 3, "comma": 2, "colon": 1, "weak": 0}
_ASIDE = re.compile(r",? (?:who|which|whose|where)\b")


WORDS_FOR_ONE = 4
"""Of so many words of a question one may be missing where the sentence has one value of its kind."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a sentence, in characters, whether a semicolon is before it, and whether it has a verb."""

    start: int
    end: int
    is_apart: bool
    has_verb: bool


def chosen(
    sentence: str, values: Sequence[Value], needed: Sequence[Word], held: Sequence[Keys], *, of_person: bool = False
) -> Value | None:
    """The value of the stretch that has the needed words; None for none, and where several would do.

    `held` are words that what stands above the sentence has. `of_person` leaves "who ..." with whom it is said of.
    """
    stretches = _stretches(sentence, values, of_person=of_person)
    words = [*words_of(sentence), *switched_in(sentence)]

    rated: list[tuple[int, Value]] = []
    for value in values:
        own_stretch = next(each for each in stretches if each.start <= value.start < each.end)
        own = _keys_in(words, own_stretch)
        n_own = sum(is_among(word.keys, own) for word in needed)
        is_other = own_stretch.has_verb and n_own == 0 and own_stretch is not stretches[0]
        if is_other and not _has_same_subject(sentence, stretches[0], own_stretch, needed):
            continue

        shared = [key for head in _heads(stretches, own_stretch) for key in _keys_in(words, head)]
        vocabulary = frozenset().union(*own, *shared, *held)
        if _are_told(needed, vocabulary, is_only_value=len(values) == 1):
            rated.append((n_own, value))

    most = max((n_own for n_own, _ in rated), default=0)
    best = [value for n_own, value in rated if n_own == most]
    return best[0] if len({value.text for value in best}) == 1 else None


def _has_same_subject(sentence: str, head: Stretch, own: Stretch, needed: Sequence[Word]) -> bool:
    """Whether a stretch goes on with a verb of the first one's subject, and the subject is all that is asked about."""
    if not _GOES_ON.match(sentence, own.start) or not needed:
        return False
    verb = _VERB.search(sentence, head.start, head.end)
    subject = sentence[head.start : verb.start()] if verb else ""
    vocabulary = vocabulary_of(subject)
    return all(is_in(word.keys, vocabulary) for word in needed)


def _are_told(needed: Sequence[Word], vocabulary: Keys, *, is_only_value: bool) -> bool:
    """Whether a vocabulary has the words, or nearly so for the only value of its kind."""
    missing = [word for word in needed if not is_in(word.keys, vocabulary)]
    if not missing:
        return True
    return is_only_value and len(missing) <= len(needed) // WORDS_FOR_ONE and all(map(_is_plain, missing))


def _is_plain(word: Word) -> bool:
    """Whether a word is neither a name nor a number."""
    return word.text.islower() and not any(map(str.isdigit, word.text))


def _keys_in(words: Sequence[Word], stretch: Stretch) -> list[Keys]:
    return [word.keys for word in words if stretch.start <= word.start < stretch.end]


def _heads(stretches: Sequence[Stretch], own: Stretch) -> list[Stretch]:
    """The stretches whose words hold for another: the first of the sentence, and of its part behind a semicolon."""
    heads = [stretches[0]]
    for stretch in stretches[1:]:
        if stretch.start > own.start:
            break
        if stretch.is_apart:
            heads = [stretch] if stretch.has_verb else [stretches[0], stretch]
    return heads


def _stretches(sentence: str, values: Sequence[Value], *, of_person: bool) -> list[Stretch]:
    """Cut before each clause with a verb, and between two values where a mark or a small word stands."""
    breaks = [match for match in _BREAKS.finditer(sentence) if not _is_inside(match, values)]
    cuts = _cuts_at_clauses(sentence, breaks, of_person=of_person)
    cuts |= _cuts_between_values(breaks, values, cuts)

    edges = [0, *sorted(cut for cut in cuts if cut > 0), len(sentence)]
    stretches = [
        Stretch(start, end, cuts.get(start, False), _VERB.search(sentence[start:end]) is not None)
        for start, end in pairwise(edges)
    ]
    return _with_their_verbs(stretches, values)


def _is_inside(match: re.Match[str], values: Sequence[Value]) -> bool:
    return any(value.start <= match.start() < value.end - 1 and value.start < match.end() for value in values)


def _cuts_at_clauses(sentence: str, breaks: Sequence[re.Match[str]], *, of_person: bool) -> dict[int, bool]:
    """The places where a clause begins, and whether a semicolon or a dash stands there."""
    cuts: dict[int, bool] = {}
    for place, match in enumerate(breaks):
        ends = (other.start() for other in breaks[place + 1 :] if other.lastgroup in ("strong", "joint", "comma"))
        rest = sentence[match.end() : next(ends, len(sentence))]
        if match["strong"]:
            cuts[match.start()] = True
        elif _begins_clause(sentence, match, rest, of_person=of_person):
            cuts[match.start()] = False
    return cuts


def _begins_clause(sentence: str, match: re.Match[str], rest: str, *, of_person: bool) -> bool:
    """Whether what stands behind a joint or a comma is a clause with a verb of its own."""
    if not _VERB.search(rest):
        return False
    if match["joint"]:
        return _ENDS_WITH_VERB.search(sentence[: match.start()]) is None
    if not match["comma"] or _VERB.match(rest.lstrip()):
        return False
    return not (of_person and _ASIDE.match(sentence, match.start()))


def _cuts_between_values(
    breaks: Sequence[re.Match[str]], values: Sequence[Value], cuts: Mapping[int, bool]
) -> dict[int, bool]:
    """The strongest break between two values that no clause parts yet."""
    more: dict[int, bool] = {}
    for earlier, later in pairwise(values):
        if any(earlier.end <= cut <= later.start for cut in (*cuts, *more)):
            continue
        between = [match for match in breaks if earlier.end <= match.start() and match.end() <= later.start + 1]
        if between:
            strongest = max(between, key=lambda match: _RANKS[match.lastgroup or "weak"])
            more[strongest.start()] = False
    return more


def _with_their_verbs(stretches: list[Stretch], values: Sequence[Value]) -> list[Stretch]:
    """The stretches, with a first one that has no verb and no value left to itself joined to the next."""
    if len(stretches) < 2 or stretches[0].has_verb or stretches[1].is_apart:
        return stretches
    first, second = stretches[:2]
    n_values = sum(first.start <= value.start < second.end for value in values)
    if n_values > 1:
        return stretches
    return [Stretch(first.start, second.end, first.is_apart, second.has_verb), *stretches[2:]]
