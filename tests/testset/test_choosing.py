"""Materials come from all parts of a corpus in turns; gold comes from the text; rows are drawn as hard as people's."""

import numpy as np
import pytest

from kraq_dspy.errors import ConfigError
from kraq_dspy.records import Chunk, Community, Entity, Hit, TestsetRow
from kraq_dspy.retrievers import as_retriever
from kraq_dspy.retrievers.in_memory import RecordsInMemory
from kraq_dspy.testset.corpus import Corpus
from kraq_dspy.testset.difficulty import MOST_EVENED, Candidate, bin_of, draw, evened, overlap, quotas, saturation
from kraq_dspy.testset.gold_finder import GoldFinder, Pool, are_twins, says_all_names, says_it_of_another
from kraq_dspy.testset.kinds import SHARES, materials_of, read_shares


def chunk(name: str, text: str, title: str = "") -> Chunk:
    return Chunk(f"c-{name}", name, 0, 0, len(text), text, 5, title=title or name.title())


RHINE = chunk("rhine", "The Rhine flows into the North Sea.")
ELBE = chunk("elbe", "The Elbe flows into the North Sea.")
SEA = chunk("sea", "The North Sea is a sea.", "North Sea")
ADA = chunk("ada", "Ada wrote notes on the engine.")
ENTITIES = [
    Entity("e1", "North Sea", "place", "", ("North Sea",), (RHINE.id, ELBE.id, SEA.id)),
    Entity("e2", "Rhine", "place", "", ("Rhine",), (RHINE.id,)),
    Entity("e3", "Elbe", "place", "", ("Elbe",), (ELBE.id,)),
    Entity("e4", "Ada", "person", "", ("Ada",), (ADA.id,)),
]
COMMUNITIES = [
    Community("m1", 0, None, ("m3",), ("e1", "e2", "e3"), (), (RHINE.id, ELBE.id, SEA.id)),
    Community("m2", 0, None, (), ("e4",), (), (ADA.id,)),
    Community("m3", 1, "m1", (), ("e2",), (), (RHINE.id,)),
]
CORPUS = Corpus([RHINE, ELBE, SEA, ADA], ENTITIES, COMMUNITIES)


def test_a_bridge_leads_from_a_passage_that_has_a_name_to_the_passage_about_it() -> None:
    bridges = {(one.chunks[0].id, one.chunks[1].id): one.names for one in materials_of(CORPUS, "bridge", seed=0)}

    assert bridges == {(RHINE.id, SEA.id): ("North Sea",), (ELBE.id, SEA.id): ("North Sea",)}


def test_a_list_is_asked_of_passages_that_share_a_name_and_a_comparison_of_one_kind_of_thing() -> None:
    [of_sea] = materials_of(CORPUS, "list", seed=0)
    assert of_sea.inputs["shared"] == "North Sea"
    assert {one.id for one in of_sea.chunks} == {RHINE.id, ELBE.id, SEA.id}
    pairs = [one.inputs["names"] for one in materials_of(CORPUS, "comparison", seed=0)]
    assert all(set(pair) <= {"North Sea", "Rhine", "Elbe"} for pair in pairs)


def test_passages_that_name_the_same_two_things_are_asked_about_together() -> None:
    both = [chunk(name, f"{name.title()} tells of the Rhine and of Cologne.") for name in ("one", "two", "three")]
    alone = chunk("four", "The Rhine is long.")
    entities = [
        Entity("e1", "Rhine", "place", "", ("Rhine",), (*(one.id for one in both), alone.id)),
        Entity("e2", "Cologne", "place", "", ("Cologne",), tuple(one.id for one in both)),
    ]

    asked = materials_of(Corpus([*both, alone], entities, []), "broad", seed=0)

    together = {tuple(one.inputs["about"]): {chunk.id for chunk in one.chunks} for one in asked}
    everywhere = {one.id for one in both}
    assert together == {
        ("Cologne", "Rhine"): everywhere,
        ("Cologne",): everywhere,
        ("Rhine",): everywhere | {alone.id},
    }


def test_two_things_of_one_name_are_asked_about_with_the_passages_of_both() -> None:
    river = chunk("river", "The Orange flows into the Atlantic.")
    dam = chunk("dam", "The dam holds back the Orange.")
    town = chunk("town", "Orange has a Roman theatre.")
    entities = [
        Entity("e1", "Orange", "river", "", ("Orange",), (river.id, dam.id)),
        Entity("e2", "Orange", "place", "", ("Orange",), (town.id, dam.id)),
    ]

    [asked] = materials_of(Corpus([river, dam, town], entities, []), "broad", seed=0)

    assert asked.inputs["about"] == ["Orange"]
    assert [one.id for one in asked.chunks] == [river.id, dam.id, town.id]


def test_nobody_is_asked_about_an_identifier() -> None:
    numbered = chunk("one", "The Rhine flows.", "PMID 28392032")
    entities = [
        Entity("e1", "PMID 28392032", "work", "", ("PMID 28392032",), (numbered.id, RHINE.id)),
        Entity("e2", "Rhine", "place", "", ("Rhine",), (numbered.id, RHINE.id)),
    ]
    corpus = Corpus([numbered, RHINE], entities, [])

    assert corpus.names_of[numbered.id] == ["Rhine"]
    assert [one.inputs["about"] for one in materials_of(corpus, "broad", seed=0)] == [["Rhine"]]


def test_a_passage_that_tells_of_both_names_in_one_sentence_says_how_they_are_related() -> None:
    names = ["Rhine", "North Sea"]

    assert says_all_names(names, RHINE.passage) == "The Rhine flows into the North Sea."
    assert says_all_names(names, "The Rhine is long. The North Sea is cold.") == ""
    assert says_all_names([], RHINE.passage) == ""


def test_a_passage_belongs_to_its_narrowest_community_and_the_seed_alone_decides_the_order() -> None:
    facts = materials_of(CORPUS, "fact", seed=3)
    places = {one.chunks[0].id: (one.community_id, one.community_level) for one in facts}

    assert places[RHINE.id] == ("m3", 1)
    assert places[ELBE.id] == ("m1", 0)
    assert [one.id for one in facts] == [one.id for one in materials_of(CORPUS, "fact", seed=3)]
    orders = {tuple(one.id for one in materials_of(CORPUS, "fact", seed=seed)) for seed in range(8)}
    assert len(orders) > 1


def test_communities_take_turns_by_their_size() -> None:
    many = [chunk(f"r{number}", f"River {number} flows.") for number in range(30)]
    few = [chunk(f"p{number}", f"Poet {number} wrote.") for number in range(10)]
    communities = [
        Community("rivers", 0, None, (), (), (), tuple(one.id for one in many)),
        Community("poets", 0, None, (), (), (), tuple(one.id for one in few)),
    ]

    first = materials_of(Corpus([*many, *few], [], communities), "fact", seed=0)[:20]

    assert sum(one.community_id == "poets" for one in first) in (4, 5, 6)


def test_twins_have_nearly_all_words_of_each_other() -> None:
    assert are_twins("Ada lived in London in 1843.", "In 1843 Ada lived in London.")
    assert not are_twins("Ada lived in London.", "Ada lived in London. She wrote notes on an engine and met Charles.")


def test_a_near_duplicate_of_a_source_is_found_by_its_vector_and_its_words() -> None:
    copy, other = chunk("copy", "The Rhine flows into the North Sea!"), chunk("other", "Rhine wine is drunk cold.")
    vectors = np.array([[1, 0], [1, 0], [1, 0]], np.float32)
    records = RecordsInMemory([RHINE, copy, other], vectors)

    assert GoldFinder({}, records, records).twins(RHINE) == [copy]


def test_a_question_that_another_passage_answers_otherwise_has_other_answers() -> None:
    pool = Pool({one.id: one for one in (RHINE, ELBE)}, {"dense": [RHINE.id, ELBE.id]})

    assert says_it_of_another("What flows into the North Sea?", ["The Rhine"], RHINE, pool)
    assert not says_it_of_another("What flows into the North Sea?", ["The Rhine", "The Elbe"], RHINE, pool)
    assert not says_it_of_another("Where does the Rhine flow?", ["the North Sea"], RHINE, pool)


def test_a_retriever_solves_a_question_that_it_finds_all_documents_of() -> None:
    none = RecordsInMemory([], np.zeros((0, 2), np.float32))
    both = as_retriever(lambda question: [Hit(RHINE, 1, question), Hit(ELBE, 0.5, question)])
    one = as_retriever(lambda question: [Hit(RHINE, 1, question)])
    finder = GoldFinder({"all": both, "one": one}, none, none)

    pool = finder.pool("Which rivers?")

    assert pool.solved_by(["rhine", "elbe"]) == ("all",)
    assert pool.solved_by(["rhine"]) == ("all", "one")
    assert pool.found_by(ELBE.id) == ("all",)


def row(id: str, *, share: float = 1.0, solved_by: tuple[str, ...] = (), kind: str = "fact") -> TestsetRow:
    return TestsetRow(id, f"Q {id}?", kind, ("a",), supporting_ids=("d",), overlap=share, solved_by=solved_by)


def test_overlap_counts_words_that_tell_something_with_endings_folded() -> None:
    assert overlap("Who directed the films?", ["A film by the director"]) == 1.0
    assert overlap("Who wrote poems?", ["Nothing of the kind"]) == 0.0
    assert [bin_of(share) for share in (0.4, 0.41, 0.75, 0.95)] == [0, 1, 2, 4]


def candidate(id: str, source: str = "", *, share: float = 1.0, kind: str = "fact") -> Candidate:
    return Candidate(row(id, share=share, kind=kind), source or id)


def test_as_many_rows_that_only_words_solve_are_drawn_as_rows_that_only_meaning_solves() -> None:
    by_words = [row(f"w{number}", share=0.8, solved_by=("bm25",)) for number in range(80)]
    by_meaning = [row(f"m{number}", share=0.8, solved_by=("dense", "pagerank")) for number in range(20)]
    candidates = [Candidate(one, one.id) for one in (*by_words, *by_meaning)]

    counts = [
        sum("bm25" in one.solved_by for one in draw(candidates, 20, {"fact": 1}, seed=seed)) for seed in range(20)
    ]

    assert 8 < np.mean(counts) < 13  # 16 by their number alone


def test_where_search_by_words_or_by_meaning_never_solves_alone_rows_are_drawn_all_the_same() -> None:
    alike = [Candidate(row(f"r{number}", share=0.8, solved_by=("bm25", "dense")), f"s{number}") for number in range(9)]
    by_words = [Candidate(row(f"w{number}", share=0.8, solved_by=("bm25",)), f"w{number}") for number in range(9)]

    assert evened(alike, [1.0] * 9) == [1.0] * 9
    assert evened([alike[0], by_words[0]], [1.0, 1.0]) == [1.0, 1 / MOST_EVENED]
    assert len(draw(by_words, 5, {"fact": 1}, seed=0)) == 5
    drawn = draw([*alike, *by_words], 9, {"fact": 1}, seed=0)
    assert sum(one.solved_by == ("bm25",) for one in drawn) <= 3


def test_a_passage_puts_forward_one_of_its_names_so_that_what_many_tell_of_is_asked_about() -> None:
    """Ten names that stand in the same two passages give at most two questions; what eight passages name gives one."""
    chunks = [chunk(f"p{number}", f"Passage {number} tells of the Rhine.") for number in range(8)]
    everywhere = Entity("e0", "Rhine", "place", "", ("Rhine",), tuple(one.id for one in chunks))
    in_passing = [
        Entity(f"e{letter}", f"Brook {letter}", "place", "", (f"Brook {letter}",), (chunks[0].id, chunks[1].id))
        for letter in "ABCDEFGHIJ"
    ]

    asked = materials_of(Corpus(chunks, [everywhere, *in_passing], []), "broad", seed=0)

    alone = [one.inputs["about"][0] for one in asked if len(one.inputs["about"]) == 1]
    assert "Rhine" in alone
    assert 1 <= sum(name.startswith("Brook") for name in alone) <= 2


def test_overlaps_are_drawn_to_those_of_people() -> None:
    wordy = [candidate(f"w{number}", share=1.0) for number in range(500)]
    other = [candidate(f"o{number}", share=0.7) for number in range(100)]

    drawn = draw([*wordy, *other], 100, {"fact": 1.0}, seed=0)

    assert sum(one.overlap == 0.7 for one in drawn) > 30  # 17 by their number alone


def test_of_several_wordings_of_one_question_one_is_drawn() -> None:
    wordings = [candidate(f"{source}-{number}", source) for source in ("a", "b", "c") for number in range(4)]

    drawn = draw(wordings, 10, {"fact": 1.0}, seed=0)

    assert sorted(one.id[0] for one in drawn) == ["a", "b", "c"]


def test_a_kind_that_lacks_rows_gives_its_places_to_others_and_the_seed_decides_alone() -> None:
    rows = [*(candidate(f"f{number}") for number in range(20)), candidate("b0", kind="bridge")]

    drawn = draw(rows, 10, {"fact": 0.5, "bridge": 0.5}, seed=1)

    assert len(drawn) == 10
    assert "b0" in {one.id for one in drawn}
    assert drawn == draw(rows, 10, {"fact": 0.5, "bridge": 0.5}, seed=1)


def test_saturation_is_told_of_answerable_rows() -> None:
    rows = [row("a", solved_by=("x", "y")), row("b"), row("c", solved_by=("x",)), row("d", solved_by=("x", "y"))]

    assert saturation([*rows, TestsetRow("u", "Q?", "unanswerable")], 2) == (0.5, 0.25)


def test_shares_are_of_known_kinds_and_quotas_sum_up() -> None:
    assert sum(quotas(7, SHARES).values()) == 7
    with pytest.raises(ConfigError, match="did you mean 'bridge'"):
        read_shares({"brigde": 1})
    with pytest.raises(ConfigError, match="No kind has a share"):
        read_shares({"fact": 0})


def test_every_near_duplicate_of_a_source_is_found_however_many_there_are() -> None:
    copies = [chunk(f"copy{number}", RHINE.text) for number in range(9)]
    other = chunk("other", "Rhine wine is drunk cold.")
    vectors = np.array([[1, 0]] * 10 + [[0, 1]], np.float32)
    records = RecordsInMemory([RHINE, *copies, other], vectors)

    assert {twin.id for twin in GoldFinder({}, records, records).twins(RHINE)} == {copy.id for copy in copies}
