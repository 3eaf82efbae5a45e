"""Labels of points that lie close together."""

from itertools import combinations

from kraq_dspy.eval.tables.report.labels import LETTER, LINE, places


def test_labels_of_near_points_do_not_cover_each_other() -> None:
    labels = ["adaptive", "pagerank", "hybrid", "fusion"]
    points = [(100.0, 50.0), (102.0, 52.0), (104.0, 49.0), (101.0, 51.0)]
    corners = [(x + dx, y + dy) for (x, y), (dx, dy) in zip(points, places(labels, points), strict=True)]
    boxes = [(x, y, x + LETTER * len(label), y + LINE) for label, (x, y) in zip(labels, corners, strict=True)]
    for one, other in combinations(boxes, 2):
        assert one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


def test_a_label_alone_stands_right_of_its_point() -> None:
    assert places(["dense"], [(10.0, 20.0)]) == [(5.0, 3.0)]
