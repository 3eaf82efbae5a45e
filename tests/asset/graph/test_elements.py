"""Tests what a model is shown of a community: the most central elements first, within the limit, nothing twice."""

from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.asset.graph.elements import GraphView, community_elements
from kraq_dspy.records import Claim, Community, Entity, Relationship, Summary


def entity(name: str, degree: int, description: str = "") -> Entity:
    return Entity(name, name, "", description or f"About {name}.", (name,), (), degree)


def link(source: str, target: str, description: str = "") -> Relationship:
    return Relationship(f"{source}-{target}", source, target, "knows", description, 1.0, ())


# A star around A, and the pair D-E hanging on it.
ENTITIES = [entity("A", 3), entity("B", 1), entity("C", 1), entity("D", 2), entity("E", 1)]
LINKS = [link("A", "B"), link("A", "C"), link("A", "D"), link("D", "E")]
GRAPH = GraphView.of(ENTITIES, LINKS, [Claim("claim", "A", "A is tall.", "chunk")])


def community(name: str, level: int, members: str, links: list[str], children: tuple[str, ...] = ()) -> Community:
    return Community(name, level, None, children, tuple(members), tuple(links), ())


WHOLE = community("whole", 0, "ABCDE", [each.id for each in LINKS], ("left", "right"))
LEFT = community("left", 1, "ABC", ["A-B", "A-C"])
RIGHT = community("right", 1, "DE", ["D-E"])
PARTS = {"left": LEFT, "right": RIGHT}


def test_the_most_central_come_first_each_once() -> None:
    assert community_elements(WHOLE, GRAPH, 1000) == [
        "A: About A. A is tall.",
        "D: About D.",
        "A | knows | D",
        "B: About B.",
        "A | knows | B",
        "C: About C.",
        "A | knows | C",
        "E: About E.",
        "D | knows | E",
    ]


def test_a_claim_about_two_stands_with_the_first_link_between_them_in_either_direction() -> None:
    claims = [Claim("1", "B", "B once saved the life of A.", "chunk", "A"), Claim("2", "A", "A is tall.", "chunk")]
    graph = GraphView.of([entity("A", 1), entity("B", 1)], [link("A", "B", "They met in Rome.")], claims)
    assert community_elements(community("pair", 0, "AB", ["A-B"]), graph, 1000) == [
        "A: About A. A is tall.",
        "B: About B.",
        "A | knows | B: They met in Rome. B once saved the life of A.",
    ]


def test_a_claim_about_a_link_that_is_not_shown_stands_with_its_subject() -> None:
    claims = [Claim("1", "A", "A once saved the life of B.", "chunk", "B")]
    graph = GraphView.of([entity("A", 1), entity("B", 1)], [], claims)
    assert community_elements(community("one", 0, "A", []), graph, 1000) == ["A: About A. A once saved the life of B."]


def test_a_sentence_is_not_shown_twice() -> None:
    entities = [entity("A", 1, "A met B."), entity("B", 1, "A met B.")]
    graph = GraphView.of(entities, [link("A", "B", "A met B.")])
    lines = community_elements(community("pair", 0, "AB", ["A-B"]), graph, 1000)
    assert lines == ["A: A met B.", "B", "A | knows | B"]


def test_a_description_that_says_little_new_is_left_out() -> None:
    statement = "A met B at the station in Rome on Monday."
    entities = [entity("A", 1, statement), entity("B", 1, "B is a painter.")]
    graph = GraphView.of(entities, [link("A", "B", f"It is said that {statement}")])
    lines = community_elements(community("pair", 0, "AB", ["A-B"]), graph, 1000)
    assert lines == [f"A: {statement}", "B: B is a painter.", "A | knows | B"]


def test_what_does_not_fit_is_replaced_by_the_summary_of_the_largest_part() -> None:
    summaries = {"left": Summary("left", "Star", "A knows B and C."), "right": Summary("right", "Pair", "D knows E.")}
    whole = community_elements(WHOLE, GRAPH, 1000)
    limit = sum(count_tokens(line) + 2 for line in whole) - 1
    assert community_elements(WHOLE, GRAPH, limit, summaries.get, PARTS.get) == [
        "Star: A knows B and C.",
        "D: About D.",
        "E: About E.",
        "D | knows | E",
        "A | knows | D",
    ]


def test_the_limit_holds_also_when_nothing_can_be_replaced() -> None:
    for limit in (5, 12, 30):
        lines = community_elements(WHOLE, GRAPH, limit)
        assert lines
        assert sum(count_tokens(line) for line in lines) <= limit


def test_a_large_community_is_not_read_where_its_parts_summaries_fill_the_room() -> None:
    class Untouched(dict[str, Relationship]):
        def __getitem__(self, id: str) -> Relationship:
            raise AssertionError(f"{id} was looked up")

    parts = {f"p{n}": community(f"p{n}", 1, "A" * 500, ["A-B"] * 500) for n in range(3)}
    whole = community("whole", 0, "A" * 1500, ["A-B"] * 1500, tuple(parts))
    graph = GraphView(GRAPH.entities, Untouched())
    written = {id: Summary(id, id, "long " * 100, (), "m") for id in parts}
    assert len(community_elements(whole, graph, 250, written.get, parts.get)) == 2
