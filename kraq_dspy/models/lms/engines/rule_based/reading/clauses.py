"""Chooses, of the values of a sentence, the one that a question means: that of the clause which has its words.

A sentence is cut into stretches with one value each. The words of the first stretch hold for those behind it: in "The
fee is 180 pounds for adults and 75 pounds for juniors" both are fees. A stretch with a verb of its own has to have a
word of the question. Where two stretches would do as well, none is chosen.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from kraq_dspy.language.vocabulary import DOES
from kraq_dspy.language.word_forms import PAST
from kraq_dspy.models.lms.engines.rule_based.reading.meaning import Keys, Word, is_among, is_in, words_of
from kraq_dspy.models.lms.engines.rule_based.reading.sense import switched_in
from kraq_dspy.models.lms.engines.rule_based.reading.values import Value

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
    sentence: str, values: Sequence[Value], wanted: Sequence[Word], held: Sequence[Keys], *, of_person: bool = False
) -> Value | None:
    """The value of the stretch that has the wanted words; None for none, and where several would do.

    `held` are words that what stands above the sentence has. `of_person` leaves "who ..." with whom it is said of.
    """
    stretches = _stretches(sentence, values, of_person=of_person)
    words = [*words_of(sentence), *switched_in(sentence)]
    needed = [word.keys for word in wanted]

    rated: list[tuple[int, int, Value]] = []
    for value in values:
        own_stretch = next(each for each in stretches if each.start <= value.start < each.end)
        own = _keys_in(words, own_stretch)
        heads = _heads(stretches, own_stretch)
        shared = [key for head in heads for key in _keys_in(words, head)]

        n_own = sum(is_among(key, own) for key in needed)
        told_here = frozenset().union(*own, *shared, *held)
        missing = [word for word in wanted if not is_in(word.keys, told_here)]
        told = not missing or (
            len(missing) <= len(wanted) // WORDS_FOR_ONE and len(values) == 1 and all(map(_is_plain, missing))
        )
        stands_alone = not own_stretch.has_verb or n_own > 0 or own_stretch is stretches[0]
        if told and stands_alone:
            rated.append((n_own, -value.start, value))

    if not rated:
        return None
    most = max(n_own for n_own, _, _ in rated)
    best = [value for n_own, _, value in rated if n_own == most]
    return best[0] if len({value.text for value in best}) == 1 else None


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
    inside = [(value.start, value.end) for value in values]
    breaks = [
        match
        for match in _BREAKS.finditer(sentence)
        if not any(start < match.end() and match.start() < end - 1 and match.start() >= start for start, end in inside)
    ]
    cuts: dict[int, bool] = {}
    for place, match in enumerate(breaks):
        following = breaks[place + 1 :]
        until = next(
            (other.start() for other in following if other.lastgroup in ("strong", "joint", "comma")), len(sentence)
        )
        rest = sentence[match.end() : until]
        if match["strong"]:
            cuts[match.start()] = True
        elif match["joint"] and _VERB.search(rest) and not _ENDS_WITH_VERB.search(sentence[: match.start()]):
            cuts[match.start()] = False
        elif match["comma"] and _VERB.search(rest):
            is_aside = _ASIDE.match(sentence, match.start()) is not None
            begins_with_verb = _VERB.match(rest.lstrip()) is not None
            if not begins_with_verb and not (is_aside and of_person):
                cuts[match.start()] = False

    for earlier, later in pairwise(values):
        if any(earlier.end <= cut <= later.start for cut in cuts):
            continue
        between = [match for match in breaks if earlier.end <= match.start() and match.end() <= later.start + 1]
        if between:
            best = max(between, key=lambda match: _RANKS[match.lastgroup or "weak"])
            cuts[best.start()] = False

    edges = [0, *sorted(cut for cut in cuts if cut > 0), len(sentence)]
    stretches = [
        Stretch(start, end, cuts.get(start, False), _VERB.search(sentence[start:end]) is not None)
        for start, end in pairwise(edges)
    ]
    return _with_their_verbs(stretches, values)


def _with_their_verbs(stretches: list[Stretch], values: Sequence[Value]) -> list[Stretch]:
    """The stretches, with a first one that has no verb and no value left to itself joined to the next."""
    if len(stretches) < 2 or stretches[0].has_verb or stretches[1].is_apart:
        return stretches
    first, second = stretches[:2]
    n_values = sum(first.start <= value.start < second.end for value in values)
    if n_values > 1:
        return stretches
    return [Stretch(first.start, second.end, first.is_apart, second.has_verb), *stretches[2:]]
