"""Mentions are the same whether they are read at once or updated, and a file keeps them unchanged."""

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kraq_dspy.asset.arrays import write_arrays
from kraq_dspy.asset.graph import mentions_file
from kraq_dspy.asset.graph.mentions import COLUMNS, NAME, TEXT, Mentions
from kraq_dspy.asset.graph.mentions_file import read_mentions, save_mentions
from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship, Extraction

MET = Extraction(
    "c1",
    (ExtractedEntity("Ada", "person", "A mathematician."), ExtractedEntity("Charles", "", "")),
    (ExtractedRelationship("Ada", "Charles", "met", "Ada met Charles in 1833."),),
    (ExtractedClaim("Ada", "Ada met Charles in London.", "London"),),
)
WROTE = Extraction(
    "c2", (ExtractedEntity("Ada", "writer", ""),), (ExtractedRelationship("Ada", "Mary", "wrote to", ""),)
)
NOTHING = Extraction("c3")


def said(mentions: Mentions) -> dict[str, Any]:
    """What is said, in words: the numbers of names and texts hang on the order in which they came."""
    words: dict[str, Sequence[str]] = {NAME: list(mentions.spellings), TEXT: [*mentions.texts, ""]}
    rows = {
        log: [
            tuple(words[kind][number] if kind in words else number for kind, number in zip(columns, row, strict=True))
            for row in mentions.rows(log).tolist()
        ]
        for log, columns in COLUMNS.items()
    }
    names_and_texts = {"spellings": set(mentions.spellings), "texts": set(mentions.texts)}
    return {**rows, **names_and_texts, "chunks": mentions.chunk_ids}


def extraction(chunk_id: str, chance: random.Random) -> Extraction:
    names = [f"Name {number}" for number in range(9)]
    return Extraction(
        chunk_id,
        tuple(
            ExtractedEntity(name, chance.choice(["", "person", "place"]), chance.choice(["", f"Text {name}"]))
            for name in chance.sample(names, 2)
        ),
        tuple(
            ExtractedRelationship(chance.choice(names), chance.choice(names), f"verb {chance.randrange(3)}", "")
            for _ in range(chance.randrange(3))
        ),
        tuple(
            ExtractedClaim(chance.choice(names), f"Statement {chance.randrange(99)}.", chance.choice(["", *names]))
            for _ in range(chance.randrange(3))
        ),
    )


def test_a_chunk_more_comes_to_its_place_in_reading_order() -> None:
    updated = Mentions.of([MET, NOTHING]).updated(["c1", "c2", "c3"], [WROTE])
    assert said(updated) == said(Mentions.of([MET, WROTE, NOTHING]))


def test_nothing_is_left_of_a_chunk_that_is_gone_or_was_extracted_again() -> None:
    mentions = Mentions.of([MET, WROTE])
    assert said(mentions.updated(["c2"], [])) == said(Mentions.of([WROTE]))
    assert "Charles" not in mentions.updated(["c2"], []).spellings
    again = Extraction("c1", (ExtractedEntity("Grace", "person", ""),))
    assert said(mentions.updated(["c1", "c2"], [again])) == said(Mentions.of([again, WROTE]))


@pytest.mark.parametrize("seed", range(5))
def test_mentions_that_are_updated_again_and_again_are_those_of_the_extractions(seed: int) -> None:
    chance = random.Random(seed)
    extractions = {id: extraction(id, chance) for id in ("a", "b", "c", "d")}
    mentions = Mentions.of(extractions[id] for id in sorted(extractions))
    for _ in range(20):
        changed = chance.sample(["a", "b", "c", "d", "e", "f", "g"], chance.randrange(4))
        new = {id: extraction(id, chance) for id in changed if chance.random() < 0.6}
        extractions = {id: each for id, each in extractions.items() if id not in changed} | new
        order = sorted(extractions, reverse=seed % 2 == 1)
        mentions = mentions.updated(order, [new[id] for id in order if id in new])
        assert said(mentions) == said(Mentions.of(extractions[id] for id in order))


def test_a_file_gives_back_what_was_written_also_names_that_are_no_proper_text(tmp_path: Path) -> None:
    torn = Extraction("caf\udce9", (ExtractedEntity("A\ud800", "", "Ω " * 3), ExtractedEntity("Ωmega\0", "", "")))
    mentions = Mentions.of([MET, WROTE, NOTHING, torn])
    sums = {"c1": 1, "c2": 2**32 - 1, "c3": 0, "caf\udce9": 7, "not there": 9}
    save_mentions(tmp_path / "mentions.arrays", mentions, sums)

    read = read_mentions(tmp_path / "mentions.arrays")
    assert read is not None
    assert said(read[0]) == said(mentions)
    assert list(read[0].spellings.items()) == list(mentions.spellings.items())
    assert read[1] == {"c1": 1, "c2": 2**32 - 1, "c3": 0, "caf\udce9": 7}


def test_mentions_of_nothing_are_kept_too(tmp_path: Path) -> None:
    save_mentions(tmp_path / "mentions.arrays", Mentions(), {})
    read = read_mentions(tmp_path / "mentions.arrays")
    assert read is not None
    assert read[0].chunk_ids == []
    assert said(read[0].updated(["c1"], [MET])) == said(Mentions.of([MET]))


def test_a_file_of_another_version_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mentions_file, "MADE_BY", mentions_file.MADE_BY + 1)
    save_mentions(tmp_path / "mentions.arrays", Mentions.of([MET]), {"c1": 1})
    monkeypatch.undo()
    assert read_mentions(tmp_path / "mentions.arrays") is None


def test_a_file_that_is_something_else_raises_value_error(tmp_path: Path) -> None:
    path = tmp_path / "mentions.arrays"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(ValueError, match="magic string"):
        read_mentions(path)
    write_arrays(path, [("<i8", (2,), [np.zeros(2)])])
    with pytest.raises(ValueError, match=r"shape \(2,\)|magic"):
        read_mentions(path)


@pytest.mark.parametrize(("log", "row"), [("types", (0, 99, 0)), ("types", (-1, 0, 0)), ("claims", (0, -1, 0, 3))])
def test_numbers_that_stand_for_nothing_raise_value_error(tmp_path: Path, log: str, row: tuple[int, ...]) -> None:
    sound = Mentions.of([MET, WROTE, NOTHING])
    rows = {name: sound.rows(name) for name in COLUMNS} | {log: np.array([row], dtype=np.int32)}
    spoiled = Mentions.from_rows(sound.chunk_ids, sound.spellings, sound.texts, rows)
    save_mentions(tmp_path / "mentions.arrays", spoiled, {"c1": 1, "c2": 2, "c3": 3})
    with pytest.raises(ValueError, match="do not fit"):
        read_mentions(tmp_path / "mentions.arrays")
