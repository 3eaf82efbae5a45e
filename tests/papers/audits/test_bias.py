"""A planted bias is found, an even hand is not accused, and shares are what a reader counts."""

import json
from pathlib import Path

import pytest

from kraq_dspy import Index
from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.papers.audits.bias import NO_THEME, audit_bias
from kraq_dspy.records import Chunk, Community, Document, Question, Summary
from kraq_dspy.settings import Settings
from tests.conftest import WarmShell


def themed(path: Path, questions: dict[str, int], passages: dict[str, int]) -> Index:
    """A broad community for each theme with a narrower one below, of which the questions are; metadata "place" too."""
    index = Index.create(path, Settings(), encoder_name="none", encoder_dimension=2)
    for theme, count in passages.items():
        ids = [f"{theme}-{number}" for number in range(count)]
        chunk_ids = tuple(f"c-{id}" for id in ids)
        for id in ids:
            index.add([Document(id, id, "text", metadata={"place": theme}), Chunk(f"c-{id}", id, 0, 0, 4, "text", 1)])
        below = f"{theme}-below"
        index.add(
            [
                Community(theme, 0, None, (below,), (), (), chunk_ids),
                Community(below, 1, theme, (), (), (), chunk_ids),
                Summary(theme, f"The {theme}", "Text."),
                Summary(below, f"Below the {theme}", "Text."),
            ]
        )
        for number in range(questions.get(theme, 0)):
            place = number % count
            about = ((chunk_ids[place],), (ids[place],))
            text = f"What is {number} of {theme}?"
            index.add([Question(f"q-{theme}-{number}", text, "kraq", below, 1, *about)])
    return index


def test_a_planted_bias_is_found_with_its_size(tmp_path: Path) -> None:
    with themed(tmp_path / "i.kraq", {"north": 90, "south": 10}, {"north": 40, "south": 40}) as index:
        audit = audit_bias(index)
    north, south = audit.themes
    assert (north.theme, north.passages, north.questions) == ("The north", 0.5, 0.9)
    assert (south.theme, south.questions, south.ratio) == ("The south", 0.1, 0.2)
    assert audit.distance == pytest.approx(0.4)
    assert audit.chance < 0.06
    assert audit.p_value < 0.01
    assert north.p_adjusted < 0.01
    assert north.chance[1] < 0.9


def test_an_even_hand_is_not_accused(tmp_path: Path) -> None:
    with themed(tmp_path / "i.kraq", {"north": 62, "south": 31}, {"north": 40, "south": 20}) as index:
        audit = audit_bias(index)
    assert audit.distance == pytest.approx(0, abs=1e-9)
    assert audit.p_value > 0.5
    assert all(theme.p_adjusted > 0.5 for theme in audit.themes)


def test_by_metadata_a_question_over_two_values_counts_half_for_each(tmp_path: Path) -> None:
    with themed(tmp_path / "i.kraq", {"north": 1}, {"north": 2, "south": 2}) as index:
        index.add([Question("both", "Both?", "kraq", "north", 0, (), ("north-0", "south-0"))])
        index.add([Document("bare", "", "text"), Chunk("c-bare", "bare", 0, 0, 4, "text", 1)])
        audit = audit_bias(index, by="place")
        with pytest.raises(ConfigError, match="No document has the metadata 'time'; there are: place"):
            audit_bias(index, by="time")
    shares = {theme.theme: (theme.passages, theme.questions) for theme in audit.themes}
    assert shares == {"north": (0.4, 0.75), "south": (0.4, 0.25), NO_THEME: (0.2, 0.0)}


def test_themes_of_a_deeper_level_leave_broader_questions_out(tmp_path: Path) -> None:
    with themed(tmp_path / "i.kraq", {"north": 3, "south": 2}, {"north": 4, "south": 4}) as index:
        index.add([Question("broad", "Broad?", "kraq", "north", 0, (), ("north-0",))])
        audit = audit_bias(index, level=1)
        assert audit_bias(index).left_out == 0
        with pytest.raises(ConfigError, match="deepest of this index is 1"):
            audit_bias(index, level=2)
    assert (audit.left_out, audit.n_questions) == (1, 5)
    assert {theme.theme for theme in audit.themes} == {"Below the north", "Below the south"}


def test_a_question_of_a_community_without_summary_is_of_no_theme_as_its_passages_are(tmp_path: Path) -> None:
    with themed(tmp_path / "i.kraq", {"north": 3}, {"north": 3}) as index:
        bare = Community("bare", 0, None, (), (), (), ("c-bare",))
        index.add([Document("bare", "", "text"), Chunk("c-bare", "bare", 0, 0, 4, "text", 1), bare])
        index.add([Question("of-bare", "Bare?", "kraq", "bare", 0, ("c-bare",), ("bare",))])
        audit = audit_bias(index)

    assert audit.left_out == 0
    assert {theme.theme: theme.questions for theme in audit.themes} == {"The north": 0.75, NO_THEME: 0.25}
    assert audit.distance == 0


def test_a_passage_of_two_themes_counts_half_for_each_and_one_of_none_for_none(tmp_path: Path) -> None:
    with themed(tmp_path / "i.kraq", {"north": 1}, {"north": 2, "south": 1}) as index:
        index.replace(
            Community,
            [
                Community("north", 0, None, (), (), (), ("c-north-0", "c-north-1")),
                Community("north-below", 1, "north", (), (), (), ("c-north-0",)),
                Community("south", 0, None, (), (), (), ("c-south-0", "c-north-0")),
            ],
        )
        index.add([Document("bare", "", "text"), Chunk("c-bare", "bare", 0, 0, 4, "text", 1)])
        audit = audit_bias(index)
    passages = {theme.theme: theme.passages for theme in audit.themes}
    assert passages == pytest.approx({"The north": 0.375, "The south": 0.375, NO_THEME: 0.25})


def test_without_questions_there_is_nothing_to_audit(tmp_path: Path) -> None:
    with themed(tmp_path / "i.kraq", {}, {"north": 2}) as index, pytest.raises(EvaluationError, match="found 0 and 2"):
        audit_bias(index)


def test_the_command_marks_what_is_asked_too_much(kraq: WarmShell, tmp_path: Path) -> None:
    index = themed(tmp_path / "i.kraq", {"north": 90, "south": 10}, {"north": 40, "south": 40})
    index.update_manifest(complete=True)
    index.close()
    done = kraq("bench", "bias", tmp_path / "i.kraq")
    assert done.returncode == 0, done.stderr
    assert "too many" in done.stdout
    assert "too few" in done.stdout
    assert "Distance 0.400" in done.stdout
    audit = json.loads(kraq("bench", "bias", tmp_path / "i.kraq", "--by", "place", "--json").stdout)
    assert [theme["theme"] for theme in audit["themes"]] == ["north", "south"]
    both = kraq("bench", "bias", tmp_path / "i.kraq", "--by", "place", "--level", "1")
    assert both.returncode == 2
    assert "not both" in both.stderr
