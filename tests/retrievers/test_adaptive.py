"""Tests that the graph has the more to say the steeper the scores fall."""

from typing import Any

import pytest

from kraq_dspy.records import Chunk, Hit
from kraq_dspy.retrievers import AdaptiveRetriever, DenseRetriever, passage_graph
from kraq_dspy.retrievers.adaptive import graph_weight, of_named_source
from tests.programs.conftest import Library


def adaptive(library: Library, mentions: list[tuple[str, str]], **settings: Any) -> AdaptiveRetriever:
    return AdaptiveRetriever(
        DenseRetriever(library.records, library.chunk_vectors, library.embedder),
        passage_graph(library.records.chunks, [(library.id(name), entity) for name, entity in mentions]),
        library.records,
        **settings,
    )


@pytest.mark.parametrize(
    ("scores", "weight"),
    [
        ([1.0] * 10, 0.0),  # flat
        ([1.0] * 9 + [0.9], 0.0),
        ([1.0] * 9 + [0.7], 0.3),  # half-way
        ([1.0] * 9 + [0.5, 0.1], 0.6),
        ([1.0] * 9 + [-0.5], 0.6),
        ([1.0, 0.7], 0.3),  # the last, where there are fewer
        ([1.0], 0.0),
        ([], 0.0),
        ([0.0, -1.0], 0.0),
        ([-0.1], 0.0),
    ],
)
def test_the_steeper_the_scores_the_more_the_graph_says(scores: list[float], weight: float) -> None:
    assert graph_weight(scores) == pytest.approx(weight)


def test_where_scores_fall_off_the_graph_brings_in_what_does_not_resemble_the_question(library: Library) -> None:
    mentions = [("span", "Stonework"), ("blank", "Stonework")]
    hits = adaptive(library, mentions, start=1, damping=0.5)("bridge", 2)
    assert [(hit.chunk.title, hit.why) for hit in hits] == [("span", "adaptive"), ("blank", "adaptive")]
    # The walk from "span" alone visits it 7 times as often as "blank" (worked out in test_pagerank), whose cosine is 0.
    assert [hit.score for hit in hits] == pytest.approx([1.0, 0.6 * (1 / 7) ** 0.25], abs=1e-6)


class Ranking:
    """Finds the passages named, with these scores."""

    def __init__(self, library: Library, scores: dict[str, float]) -> None:
        self.hits = [
            Hit(library.records.chunks[library.id(name)], score, "?", "given") for name, score in scores.items()
        ]

    def __call__(self, question: str, k: int = 10, **_: Any) -> list[Hit]:
        return self.hits[:k]


def test_the_walk_starts_from_all_good_hits_and_mostly_from_the_one_that_stands_out(library: Library) -> None:
    graph = passage_graph(
        library.records.chunks,
        [(library.id(name), entity) for name, entity in [("span", "A"), ("blank", "A"), ("gate", "B"), ("tune", "B")]],
    )

    def behind(second: float) -> list[float]:
        """Scores of what the graph links to the first and to the second hit."""
        ranking = Ranking(library, {"span": 1.0, "gate": second, "keep": 0.1})
        hits = AdaptiveRetriever(ranking, graph, library.records)("?", 5)
        scores = {hit.chunk.title: hit.score for hit in hits}
        return [scores["blank"], scores["tune"]]

    first, other = behind(second=1.0)
    assert first == pytest.approx(other)
    first, other = behind(second=0.5)
    base = 0.4 * 0.1  # of both: no more like the question than the last candidate
    assert (other - base) / (first - base) == pytest.approx(0.5 ** (10 / 4))  # visits as the weights, under the root


def test_a_larger_budget_finds_the_same_and_more(library: Library) -> None:
    retrieve = adaptive(library, [("span", "X"), ("blank", "X"), ("gate", "Y"), ("tune", "Y")])
    ids = [hit.chunk.id for hit in retrieve("a bridge to a castle", 9)]
    assert all([hit.chunk.id for hit in retrieve("a bridge to a castle", k)] == ids[:k] for k in (1, 3, 5))


def test_where_they_are_flat_it_is_the_retriever_itself(library: Library) -> None:
    retrieve = adaptive(library, [("span", "Stonework"), ("blank", "Stonework")], pool=1)
    [hit] = retrieve("bridge", 1)  # one candidate has no shape
    assert (hit.chunk.title, hit.why) == ("span", "adaptive")
    plain = DenseRetriever(library.records, library.chunk_vectors, library.embedder)("bridge", 4)
    never = adaptive(library, [("span", "X"), ("blank", "X")], most=0)("bridge", 4)
    assert [hit.chunk.id for hit in never] == [hit.chunk.id for hit in plain]


def test_a_graph_without_entities_keeps_the_best_hit(library: Library) -> None:
    retrieve = adaptive(library, [])
    plain = DenseRetriever(library.records, library.chunk_vectors, library.embedder)("bridge castle", 3)
    assert retrieve("bridge castle", 3)[0].chunk == plain[0].chunk


def test_a_walk_that_visits_nothing_leaves_each_hit_its_own_part_of_the_score(library: Library) -> None:
    """Their scores fall to a half, so that the graph has .6 of the say, and it knows another passage alone."""
    graph = passage_graph([library.id("tune")], [])
    ranking = Ranking(library, {"span": 2.0, "gate": 1.0})
    hits = AdaptiveRetriever(ranking, graph, library.records)("?", 2)
    assert [hit.chunk.title for hit in hits] == ["span", "gate"]
    assert [hit.score for hit in hits] == pytest.approx([0.4, 0.2])


@pytest.mark.parametrize(
    ("settings", "message"), [({"most": 1.1}, "most"), ({"pool": 0}, "pool"), ({"start": 0}, "start")]
)
def test_settings_out_of_range_are_refused(library: Library, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        adaptive(library, [], **settings)


def test_a_question_that_names_a_site_is_answered_by_that_site_alone() -> None:
    def hit(title: str) -> Hit:
        return Hit(Chunk(title, title, 0, 0, 5, "Text.", 1, title), 1.0, "?")

    hits = [hit("acme.com"), hit("honda.com"), hit("Dr. Who")]
    assert of_named_source("How do I leave honda.com's list?", hits) == hits[1:2]
    assert of_named_source("How do I leave toyota.com?", hits) == hits
    assert of_named_source("Who is Dr. Who?", hits) == hits


def test_passages_of_a_title_or_a_speaker_that_a_question_names_come_first() -> None:
    def hit(title: str, text: str) -> Hit:
        return Hit(Chunk(title, title, 0, 0, len(text), text, 1, title), 1 / len(title), "?")

    hits = [
        hit("Blaine", "He sat down."),
        hit("Ed Wood (film)", "It is of 1994."),
        hit("Meeting 5", "Ann Berg: It is late.\nOle: Yes."),
        hit("features", "They are many."),
    ]
    assert [hit.score for hit in of_named_source("Who directed Ed Wood?", hits)] == [hit.score for hit in hits]
    first_of = {
        question: of_named_source(question, hits)[0].chunk.title
        for question in (
            "Who directed Ed Wood?",
            "What did Ann Berg say about it?",
            "What was said in Meeting 5?",
            "What are the features?",
        )
    }
    assert list(first_of.values()) == ["Ed Wood (film)", "Meeting 5", "Meeting 5", "Blaine"]
