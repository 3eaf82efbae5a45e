import dataclasses
from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from kraq_dspy.asset.corpus.tokens import count_tokens, truncate_tokens
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


SUMMARIES = {"left": Summary("left", "Star", "A knows B and C.")}
CLAIMS = [Claim("1", "A", "A is tall.", "chunk"), Claim("2", "D", "D helped E.", "chunk", "E")]


def plain_elements(
    whole: Community, graph: GraphView, limit: int, summaries: dict[str, Summary], parts: dict[str, Community]
) -> list[str]:
    """The rule as it is told, with everything written out that there is."""

    def written(part: Community) -> list[str]:
        return community_elements(part, graph, 10**9)

    def size(lines: Sequence[str]) -> int:
        return sum(count_tokens(line) + 2 for line in lines)

    lines = written(whole)
    if size(lines) > limit and (children := [parts[id] for id in whole.child_ids]):
        inside = {id for child in children for id in (*child.entity_ids, *child.relationship_ids)}
        shown = [written(child) for child in children]
        between = dataclasses.replace(
            whole, entity_ids=(), relationship_ids=tuple(id for id in whole.relationship_ids if id not in inside)
        )
        alone = dataclasses.replace(
            whole, entity_ids=tuple(id for id in whole.entity_ids if id not in inside), relationship_ids=()
        )
        rest = written(between) + written(alone)
        total = size(rest) + sum(map(size, shown))
        for number in sorted(range(len(children)), key=lambda n: -size(shown[n])):
            summary = summaries.get(children[number].id)
            if total > limit and summary is not None:
                total -= size(shown[number])
                shown[number] = [f"{summary.title}: {summary.text}"]
                total += size(shown[number])
        lines = [line for part in shown for line in part] + rest
    kept: list[str] = []
    for line in lines:
        if size([*kept, line]) > limit:
            return kept or [truncate_tokens(line, limit)]
        kept.append(line)
    return kept


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_what_is_shown_is_found_without_writing_out_the_rest(data: st.DataObject) -> None:
    names = "ABCDEFGHIJKL"[: data.draw(st.integers(2, 12))]
    part_of = {name: data.draw(st.sampled_from(["p1", "p2", "p3", "none"]), label=name) for name in names}
    pairs = data.draw(st.lists(st.tuples(*[st.sampled_from(names)] * 2), unique=True, max_size=15))
    links = [link(a, b, f"{a} and {b} met " + "often " * data.draw(st.integers(0, 6))) for a, b in pairs if a < b]
    entities = [entity(name, sum(name in (each.source_id, each.target_id) for each in links)) for name in names]
    graph = GraphView.of(entities, links)
    parts = {
        id: community(
            id,
            1,
            "".join(members),
            [e.id for e in links if {e.source_id, e.target_id} <= set(members)],
        )
        for id in ("p1", "p2", "p3")
        if (members := [name for name in names if part_of[name] == id])
    }
    whole = community("whole", 0, names, [each.id for each in links], tuple(parts))
    possible = {id: Summary(id, id, "word " * data.draw(st.integers(0, 30)), (), "m") for id in parts}
    summaries = {id: summary for id, summary in possible.items() if data.draw(st.booleans())}
    limit = data.draw(st.integers(1, 150))

    shown = community_elements(whole, graph, limit, summaries.get, parts.get)

    assert shown == plain_elements(whole, graph, limit, summaries, parts)


def test_a_large_community_is_not_read_where_its_parts_summaries_fill_the_room() -> None:
    class Untouched(dict[str, Relationship]):
        def __getitem__(self, id: str) -> Relationship:
            raise AssertionError(f"{id} was looked up")

    parts = {f"p{n}": community(f"p{n}", 1, "A" * 500, ["A-B"] * 500) for n in range(3)}
    whole = community("whole", 0, "A" * 1500, ["A-B"] * 1500, tuple(parts))
    graph = GraphView(GRAPH.entities, Untouched())
    written = {id: Summary(id, id, "long " * 100, (), "m") for id in parts}
    assert len(community_elements(whole, graph, 250, written.get, parts.get)) == 2
