"""Finds places for the labels of points, so that none covers another one."""

from collections.abc import Sequence

LETTER, LINE = 4.5, 9.0  # typographic points, at font size 8
RISES = (3, -10, 13, -20, 23, -30, 33)
"""How far above or below its point a label may stand, the first that is free."""

Box = tuple[float, float, float, float]


def places(labels: Sequence[str], points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """For each label the left lower corner beside its point, relative to it, all in typographic points.

    Right of the point where that is free, else left of it, else further off; where nothing is free, the first place.
    """
    taken: list[Box] = [(x - 3, y - 3, x + 3, y + 3) for x, y in points]
    chosen = []
    for label, (x, y) in zip(labels, points, strict=True):
        width = LETTER * len(label)
        lefts = [(left, y + rise) for rise in RISES for left in (x + 5, x - 5 - width)]
        boxes = [(left, low, left + width, low + LINE) for left, low in lefts]
        box = next((box for box in boxes if not any(_covers(box, other) for other in taken)), boxes[0])
        taken.append(box)
        chosen.append((box[0] - x, box[1] - y))
    return chosen


def _covers(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
