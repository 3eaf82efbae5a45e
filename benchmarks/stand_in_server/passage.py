"""Finds entities, relations and sentences in a text by its capitals and full stops, the same ones every time."""

import hashlib
import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import pairwise

NO_NAMES = """The A An In On At But And Or If It He She They We I You His Her Its Their This That These Those There
Here When While As After Before For From With By To Of Not No Yes So Then Since Because Who What Where Why How Which
Is Are Was Were Be Been Has Have Had Do Does Did Will Would Can Could Should May Might Must Also Still Just Even Some
Many Most More Other Another Such Each Every All Both Few One Two Three Four Five Last Next Now Our My Your Mr Mrs Ms Dr
About Under Over During Until According Meanwhile However Although Though Instead Among Between Both Earlier Later
Entities Relationships Reports Data Sources Claims Text Description Entity Relationship id title"""
STOP_WORDS = set(NO_NAMES.split())
WORD = r"[A-Z][\w'’&\-]*(?:\.[A-Z]\.?)*"
CAPITALISED = re.compile(rf"{WORD}(?:(?: (?:of|for|the|and|de|van|on) (?=[A-Z])| (?=[A-Z])){WORD})*")
SENTENCE_END = re.compile(r"(?<=[.!?])[\"”’)]*\s+(?=[\"“A-Z(])|\n+")
ORGANIZATION = re.compile(
    r"\b(Inc|Corp|Co|Ltd|LLC|Company|Department|University|Court|Association|Center|Centers|Committee|Agency"
    r"|Administration|Group|Hospital|Institute|Council|Party|Press|House|Senate|Congress|Foundation|Organization|Board"
    r"|Ministry|Bank|Union|Legislature|News)\b",
    re.I,
)
PERSON = re.compile(r"^[A-Z][a-z]+(?: [A-Z]\.?)? [A-Z][a-z'’\-]+$")

Relation = tuple[str, str, str]  # two entities and the sentence that has both


def hash_64(*parts: object) -> int:
    """A number below 2**64 that depends on the parts alone."""
    text = "\x1f".join(map(str, parts)).encode("utf-8", "replace")
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big")


def hash_unit(*parts: object) -> float:
    """The same in [0, 1)."""
    return hash_64(*parts) / 2.0**64


class Passage:
    """The sentences of one text, its entities in order of appearance, and pairs of neighbours in a sentence."""

    __slots__ = ("descriptions", "entities", "relations", "sentences")

    def __init__(self, text: str, max_entities: int = 14, max_relations: int = 16) -> None:
        self.sentences = sentences_of(text)
        self.descriptions: dict[str, str] = {}
        pairs: dict[tuple[str, str], str] = {}
        for sentence in self.sentences:
            names = entities_of(sentence)
            for name in names:
                self.descriptions.setdefault(name, sentence)
            for a, b in pairwise(names):
                if a != b and (a, b) not in pairs and (b, a) not in pairs:
                    pairs[a, b] = sentence
        self.entities = list(self.descriptions)[:max_entities]
        shown = set(self.entities)
        self.relations = [(a, b, s) for (a, b), s in pairs.items() if a in shown and b in shown][:max_relations]

    def summary(self, sentences: int = 3) -> str:
        return " ".join(clip(s, 40) for s in self.sentences[:sentences]) or "No information is given."

    def question(self, n: int) -> str:
        if self.relations:
            a, b, _ = self.relations[n % len(self.relations)]
            return f"How is {a} connected with {b}?"
        name = self.entities[n % len(self.entities)] if self.entities else "the text"
        return f"What is the role of {name}?"


def sentences_of(text: str, most: int = 400) -> list[str]:
    return [s.strip() for s in SENTENCE_END.split(text[:200_000]) if len(s.strip()) > 15][:most]


def entities_of(sentence: str) -> list[str]:
    """Capitalised spans without the stop words at their ends, each once."""
    names = []
    for match in CAPITALISED.finditer(sentence):
        words = match.group().split(" ")
        while words and words[0] in STOP_WORDS:
            words.pop(0)
        while words and (words[-1] in STOP_WORDS or words[-1].islower()):
            words.pop()
        name = re.sub(r"(’s|'s|[’'\-])$", "", " ".join(words[:6])).strip()
        if len(name) > 2 and not name.isdigit():
            names.append(name)
    return list(dict.fromkeys(names))


def type_of(name: str, allowed: Sequence[str] = ()) -> str:
    """One of four types by the look of a name, or the one of `allowed` that is like it, or any."""
    if ORGANIZATION.search(name):
        guess = "organization"
    elif PERSON.match(name):
        guess = "person"
    elif " " not in name:
        guess = "geo"
    else:
        guess = "event"
    if not allowed:
        return guess
    lowered = [a.strip().lower() for a in allowed if a.strip()]
    for candidate in (guess, {"geo": "location"}.get(guess, guess)):
        if candidate in lowered:
            return allowed[lowered.index(candidate)].strip()
    return allowed[hash_64(name) % len(allowed)].strip()


def verb_between(a: str, b: str, sentence: str) -> str:
    """The words in small letters between two names in a sentence."""
    start, end = sentence.find(a), sentence.find(b)
    between = sentence[start + len(a) : end] if 0 <= start < end else ""
    return " ".join(re.findall(r"[a-z]+", between)[:4]) or "is mentioned with"


def clip(text: str, words: int = 28) -> str:
    return " ".join(text.split()[:words])


TOKEN = re.compile(r"[^\W_]+", re.U)


def embed(text: str, dimension: int) -> list[float]:
    """A vector of norm 1, the same for the same text."""
    vector = [0.0] * dimension
    for word, count in Counter(word.lower() for word in TOKEN.findall(text[:40_000])).items():
        first, sign, second = _places(word, dimension)
        weight = 1.0 + math.log(count)
        vector[first] += sign * weight
        vector[second] += 0.5 * weight
    norm = math.sqrt(sum(x * x for x in vector))
    if not norm:
        vector[0] = 1.0
        return vector
    return [round(x / norm, 6) for x in vector]


@cache
def _places(word: str, dimension: int) -> tuple[int, float, int]:
    number = hash_64("emb", word)
    return number % dimension, 1.0 if (number >> 40) & 1 else -1.0, (number >> 20) % dimension
