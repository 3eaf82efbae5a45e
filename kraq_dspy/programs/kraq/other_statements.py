"""Gives what passages in German, French, Chinese or Japanese answer the form of what the parser reads in English.

So one choice (`representatives`) decides for all languages which question stands for a community.
"""

import re
from collections.abc import Collection

from kraq_dspy.embedded.asking.clozes.asking import clozes_in
from kraq_dspy.embedded.asking.clozes.cloze import Cloze
from kraq_dspy.embedded.reading.analysis import Analysis, Asked, Named, Sentence
from kraq_dspy.records import PHRASE

WEIGHT = 0.6
"""How well a question of another language stands alone, if nothing speaks against it."""
SHORTEST_NAME = 2  # letters of a name that is looked for in a statement
_MOST_CLAUSES = 1  # commas of a question that is asked of one thing
_POINTS_ON = re.compile(
    r"\b(?:weitere[nrms]?|dritten?|ebenfalls|jedoch|erneut|noch|autres?|également|encore|ensuite)\b"
    r"|^(?:后|後|初期|这|那|同|随后|之后|其|该|曾|第一个)|也|亦|再次|继续|ついに|更に|さらに"
)
"""Words of a statement that continues another one."""
_COMMAS = re.compile(r"[,，、](?!\d)")


def asked_otherwise(passage: str) -> list[Cloze]:
    """The questions of a passage that may stand for a group: of one statement, which continues no other one.

    >>> [cloze.question for cloze in asked_otherwise("Karl Voss baute 1931 die Brücke von Brandvik.")]
    ['Wann baute Karl Voss die Brücke von Brandvik?', 'Wer baute 1931 die Brücke von Brandvik?']
    """
    return [cloze for cloze in clozes_in(passage) if _may_stand(cloze.question)]


def _may_stand(question: str) -> bool:
    return len(_COMMAS.findall(question)) <= _MOST_CLAUSES and _POINTS_ON.search(question) is None


def analysis_of(clozes: Collection[Cloze], names: Collection[str]) -> Analysis:
    """What the questions say of some names, folded: a sentence for each, which has its question and its answer."""
    sentences = []
    for cloze in clozes:
        text = f"{cloze.question} {cloze.answer}"
        named = tuple(Named(name, PHRASE) for name in names if len(name) >= SHORTEST_NAME and name in text.casefold())
        asked = Asked(cloze.question, cloze.answer, cloze.word, WEIGHT)
        sentences.append(Sentence(text, named, asked=(asked,)))
    return Analysis("", tuple(sentences))
