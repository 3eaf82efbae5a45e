"""Chooses the question that stands for a community among those that its statements answer.

What statements of several passages answer together comes first, then what one statement of a name does, then what a
form asks of one statement: "What did X say about Y?".

The statement nearest to the middle of all of them says most of what they share (centroids: Radev et al. 2004, MEAD).
Its question also has to cover the community: the share of its entities that the statement names, weighed by how
connected they are, and the share of its passages that name one of these. So a broad community is not asked about a
detail of one passage, if anything else is told.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kraq_dspy.embedded_model import question_writer
from kraq_dspy.language.analysis import FEWEST, Analysis, Asked, Group, Sentence
from kraq_dspy.language.text import content_words

LEAST = 0.3  # weight of a question that may stand for a community
NARROW = 3  # passages of a community that may be asked about what its names are not
LEAST_OF_OTHER = 0.5  # of one that has none of the community's names, which its answer has
OTHER = 0.1  # how much such a question counts
TELLING = 9  # words from which on a question says enough
MOST_COMPARED = 400  # statements


@dataclass(frozen=True, slots=True)
class _Candidate:
    chunk_id: str
    sentence: Sentence
    asked: Asked
    names: frozenset[str]
    asks_of_it: bool  # whether the question has one of the names, and not its answer alone


@dataclass(frozen=True, slots=True)
class Representative:
    """A question that may stand for a community: `key` is that of a group of statements, or () where it is asked of
    one, in the chunk `chunk_id`."""

    question: str
    key: tuple[str, ...] = ()
    chunk_id: str = ""

    @classmethod
    def of_group(cls, group: Group) -> "Representative":
        return cls(group.question, group.key)


def representatives(analyses: Mapping[str, Analysis], weight_of_name: Mapping[str, float]) -> list[Representative]:
    """The questions that may stand for the community whose passages these are, by the chunk's id, the best first.

    `weight_of_name` has the community's names, folded.
    """
    every = question_writer().groups_in(analyses, may_be_one=True)
    groups = [group for group in every if _is_of(group, weight_of_name)]
    groups.sort(key=lambda group: _worth_of_group(group, weight_of_name), reverse=True)
    several = [Representative.of_group(group) for group in groups if len(group.told) >= FEWEST]
    alone = [Representative.of_group(group) for group in groups if len(group.told) < FEWEST]
    of_names = [*several, *_of_statements(analyses, weight_of_name), *alone]
    return of_names or (_of_passages(analyses, every) if len(analyses) <= NARROW else [])


def _of_passages(analyses: Mapping[str, Analysis], groups: Iterable[Group]) -> list[Representative]:
    """What a few passages answer where they say nothing that can be asked of their community's names."""
    asked = [
        (asked, chunk_id)
        for chunk_id, analysis in analyses.items()
        for _, asked in analysis.asked()
        if asked.weight >= LEAST_OF_OTHER
    ]
    asked.sort(key=lambda each: -each[0].weight)
    of_one = [Representative(each.question, chunk_id=chunk_id) for each, chunk_id in asked]
    return [*of_one, *map(Representative.of_group, groups)]


def _is_of(group: Group, weight_of_name: Mapping[str, float]) -> bool:
    """Whether the last thing that the question names is one of the community's."""
    return group.names[-1].casefold() in weight_of_name


def _worth_of_group(group: Group, weight_of_name: Mapping[str, float]) -> tuple[int, float, int]:
    """How many passages tell of it, how connected the community is by its names, and how particular it is."""
    weight = sum(weight_of_name.get(name.casefold(), 0.0) for name in group.names)
    return len(group.told), weight, -group.rank


def _of_statements(analyses: Mapping[str, Analysis], weight_of_name: Mapping[str, float]) -> list[Representative]:
    """The questions of single statements, the best first."""
    candidates = list(_candidates(analyses, weight_of_name))[:MOST_COMPARED]
    if not candidates:
        return []

    nearness = _nearness_to_middle([candidate.sentence.text for candidate in candidates])
    named_in = {id: _names_of(analysis.sentences) & weight_of_name.keys() for id, analysis in analyses.items()}
    total = sum(weight_of_name.values()) or 1.0

    def worth(number: int) -> float:
        candidate = candidates[number]
        covered = math.fsum(weight_of_name[name] for name in candidate.names) / total
        passages = sum(not candidate.names.isdisjoint(names) for names in named_in.values()) / len(named_in)
        says = min(1.0, len(candidate.asked.question.split()) / TELLING) ** 2
        says *= 1.0 if candidate.asks_of_it else OTHER
        return says * candidate.asked.weight * (0.2 + nearness[number]) * (0.1 + math.sqrt(covered)) * (0.2 + passages)

    best = sorted(range(len(candidates)), key=worth, reverse=True)
    return [Representative(candidates[number].asked.question, chunk_id=candidates[number].chunk_id) for number in best]


def _candidates(analyses: Mapping[str, Analysis], weight_of_name: Mapping[str, float]) -> Iterable[_Candidate]:
    for chunk_id, analysis in analyses.items():
        for sentence, asked in analysis.asked():
            names = _names_of([sentence]) & weight_of_name.keys()
            asks_of_it = any(name in asked.question.casefold() for name in names)
            if names and asked.weight >= (LEAST if asks_of_it else LEAST_OF_OTHER):
                yield _Candidate(chunk_id, sentence, asked, frozenset(names), asks_of_it)


def _names_of(sentences: Iterable[Sentence]) -> set[str]:
    return {named.text.casefold() for sentence in sentences for named in sentence.named}


def _nearness_to_middle(texts: Sequence[str]) -> list[float]:
    """The cosine of each text's words with those of all texts together, rare words counting more.

    Sums are exact: the order of a set, which differs from process to process, must not decide between two questions.
    """
    bags = [set(content_words(text)) for text in texts]
    spread = Counter(word for bag in bags for word in bag)
    weight = {word: spread[word] * math.log(1 + len(bags) / spread[word]) for word in spread}
    length_of_middle = math.sqrt(math.fsum(value**2 for value in weight.values())) or 1.0
    nearness = []
    for bag in bags:
        length = math.sqrt(len(bag)) or 1.0
        nearness.append(math.fsum(weight[word] for word in bag) / (length * length_of_middle))
    return nearness
