"""Gives words the form that questions have them in: "move" of "moved", "lakes" of "lake"."""

import re

from kraq_dspy.language.vocabulary import DOES

PAST = (
    "won|wrote|made|led|held|built|began|became|beat|took|gave|got|sold|bought|ran|met|sang|went|came|lost|left|drew"
    "|grew|shot|saw|found|taught|brought|chose|fell|flew|kept|knew|rose|sent|set|spent|spoke|stood|told|thought|wore"
)
_BASE_OF_PAST = (
    "win|write|make|lead|hold|build|begin|become|beat|take|give|get|sell|buy|run|meet|sing|go|come|lose|leave|draw|grow"
    "|shoot|see|find|teach|bring|choose|fall|fly|keep|know|rise|send|set|spend|speak|stand|tell|think|wear"
)
_IRREGULAR = dict(zip(PAST.split("|"), _BASE_OF_PAST.split("|"), strict=True))
_BASES = frozenset(DOES.values())
_ENDS_IN_E = re.compile(
    r"(?:[vzcu]|[^s]s|[^n]g|[aei]ng|[^aeiouy]l|[iau]r|or|at|ut|[iuo]d|um|nam|fil|nit|vit|bin|remier|plet|mot)$"
)
_NO_E = re.compile(
    r"(?:(?<!cr)ea[rt]|oa[rt]|air|onor|avor|sor|thor|itor|chor|debut|our|og|eed|ood|ound|oid|belong|ing|star)$"
)
"""Of verbs without their -ed: which have an e before it, and which of these do not."""


def base_of(verb: str) -> str:
    """ "move" of "moved", "write" of "wrote"; "" if it is no past."""
    if verb in _IRREGULAR:
        return _IRREGULAR[verb]
    if not re.fullmatch(r"[a-z]{2,}ed", verb):
        return ""

    stem = verb.removesuffix("ed")
    if stem in _BASES:
        return stem
    if f"{stem}e" in _BASES or stem in ("di", "li", "ti") or (_ENDS_IN_E.search(stem) and not _NO_E.search(stem)):
        return f"{stem}e"
    if stem.endswith("i"):
        return f"{stem[:-1]}y"
    return stem[:-1] if re.search(r"([bdgmnprt])\1$", stem) else stem


def plural(kind: str) -> str:
    if re.search(r"[^aeiou]y$", kind):
        return f"{kind[:-1]}ies"
    if kind.endswith("s") and not kind.endswith("ss"):
        return kind
    return f"{kind}es" if re.search(r"(?:s|x|ch|sh)$", kind) else f"{kind}s"
