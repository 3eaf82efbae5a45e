"""Weighs noun phrases by how they are used, and tells those that name nothing of a corpus.

A name is kept for what it is. A phrase ("remote control", "moment") is kept for what the texts do with it: how many
passages say it, whether something is said to be done by it or to it, and whether it stands by itself or only inside of
longer phrases (C-value: Frantzi, Ananiadou and Mima 2000). The numbers are those of the passages at hand, so in a view
of an index they depend on the documents of that view alone.
"""

import math
from collections import Counter, defaultdict

import numpy as np

from kraq_dspy.asset.graph.mentions import Mentions, majorities
from kraq_dspy.records import PHRASE

FEW = 20  # passages below which one use is enough
COMMON = 0.15  # share of the passages from which on a single word is a word of all of them
LONGEST_SUB = 4  # words of a phrase inside another


def weak_phrases(mentions: Mentions) -> set[str]:
    """The phrases that are no entities."""
    spellings = list(mentions.spellings)
    types = majorities(mentions.rows("types"), list(mentions.texts))
    phrases = {number: spellings[number] for number, kind in types.items() if kind == PHRASE}
    if not phrases:
        return set()

    n_passages = len(mentions.chunk_ids)
    spread = _spread(mentions)
    linked = np.bincount(mentions.rows("links")[:, :2].ravel(), minlength=len(spellings))
    folded = {number: phrase.casefold() for number, phrase in phrases.items()}
    c_values = _c_values({text: int(spread[number]) for number, text in folded.items()})
    needed = 1 if n_passages < FEW else 2

    weak = set()
    for number, phrase in phrases.items():
        uses, links = int(spread[number]), int(linked[number])
        if " " in phrase or "-" in phrase:
            is_kept = c_values[folded[number]] > 0 and (uses >= needed or links > 0)
        else:
            is_kept = uses >= needed and links >= needed and (uses <= COMMON * n_passages or n_passages < FEW)
        if not is_kept:
            weak.add(phrase)
    return weak


def _spread(mentions: Mentions) -> np.ndarray:
    """The number of passages that say each name."""
    rows = mentions.rows("mentioned")
    pairs = np.unique(rows[:, [0, 2]].astype(np.int64), axis=0)
    return np.bincount(pairs[:, 0], minlength=len(mentions.spellings))


def _c_values(counts: dict[str, int]) -> dict[str, float]:
    """The C-value of each phrase: how often it is said, less what longer phrases around it account for."""
    around: defaultdict[str, list[int]] = defaultdict(list)
    inside = Counter[str]()
    for phrase, count in counts.items():
        words = phrase.split()
        for size in range(1, min(LONGEST_SUB, len(words) - 1) + 1):
            for start in range(len(words) - size + 1):
                part = " ".join(words[start : start + size])
                if part in counts:
                    around[part].append(count)
                    inside[part] += count

    values = {}
    for phrase, count in counts.items():
        longer = around[phrase]
        total = count + inside[phrase]
        rest = total - (sum(longer) / len(longer) if longer else 0)
        values[phrase] = math.log2(1 + len(phrase.split())) * rest
    return values
