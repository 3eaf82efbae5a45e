"""Chooses what questions are asked of: passages and names of every part of the corpus, spread by a seed.

A passage belongs to the narrowest community that has it. Materials of all communities take turns, each community as
often as it is large, so that any number of them covers what the corpus is about.
"""

import dataclasses
import random
from collections import defaultdict
from collections.abc import Iterable

from kraq_dspy.exam.corpus import Corpus
from kraq_dspy.exam.kinds import KINDS
from kraq_dspy.exam.material import Material
from kraq_dspy.records import content_id


def materials_of(corpus: Corpus, kind: str, *, seed: int) -> list[Material]:
    """All of one kind, in the order in which they are to be used."""
    placed = [_placed(corpus, kind, material) for material in KINDS[kind].materials(corpus)]
    return in_turns({material.id: material for material in placed}.values(), seed=f"{kind} {seed}")


def _placed(corpus: Corpus, kind: str, material: Material) -> Material:
    """Give a material its kind, its id, and the community of its first passage."""
    id = content_id(kind, *(chunk.id for chunk in material.chunks), *material.names)
    community = corpus.community_of.get(material.chunks[0].id)
    if community is None:
        return dataclasses.replace(material, id=id, kind=kind)
    return dataclasses.replace(material, id=id, kind=kind, community_id=community.id, community_level=community.level)


def in_turns(materials: Iterable[Material], *, seed: str) -> list[Material]:
    """The materials in an order by chance in which every community comes as often as it is large, all along the way."""
    draw = random.Random(seed)
    strata: defaultdict[str, list[Material]] = defaultdict(list)
    for material in sorted(materials, key=lambda material: material.id):
        strata[material.community_id or ""].append(material)

    placed: list[tuple[float, str, Material]] = []
    for stratum in strata.values():
        draw.shuffle(stratum)
        begin = draw.random()
        for place, material in enumerate(stratum):
            placed.append(((place + begin) / len(stratum), material.id, material))
    return [material for _, _, material in sorted(placed, key=lambda entry: entry[:2])]
