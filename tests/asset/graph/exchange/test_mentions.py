from kraq_dspy.asset.graph.exchange.graphrag_out import Mentions

CHUNKS = {"one": 0, "two": 1, "three": 2}


def test_the_records_of_a_chunk_come_in_the_order_in_which_they_were_given() -> None:
    mentions = Mentions([("b", ["two", "one"]), ("a", ["two"]), ("東", ["one"])], CHUNKS)
    assert [mentions[number] for number in range(3)] == [["b", "東"], ["b", "a"], []]


def test_a_chunk_that_nobody_knows_is_left_out_and_half_characters_stay_as_they_are() -> None:
    mentions = Mentions([("x", ["elsewhere"]), ("\ud83d", ["three", "three"])], CHUNKS)
    assert [mentions[number] for number in range(3)] == [[], [], ["\ud83d", "\ud83d"]]


def test_no_records_are_none_for_every_chunk() -> None:
    assert Mentions([], CHUNKS)[2] == []
