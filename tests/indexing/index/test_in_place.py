"""A build warns where templates ask about most communities in place of the generator, with the commonest reasons."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dspy.utils import DummyLM

from kraq_dspy import build_index
from kraq_dspy.indexing.index.in_place import AskedInPlace
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.settings import CommunitySettings, Settings

TEXTS = [
    "Kilda is a lighthouse on Hirta. Ada Moor built Kilda in 1894. The Board runs Kilda.",
    "Sule is a lighthouse near Orkney. Bo Lind built Sule in 1902. The Council runs Sule.",
    "The Rhine is a river in Germany. Cologne lies on the Rhine. Bonn lies on the Rhine.",
]


def problems(tmp_path: Path, replies: Iterator[str]) -> list[str]:
    class Generator(DummyLM):  # type: ignore[misc]
        def forward(self, *args: Any, **options: Any) -> Any:
            self.answers = iter([{"question": next(replies)}])
            return super().forward(*args, **options)

    models = {"default": make_lm("embedded"), "generator": Generator([])}
    settings = Settings(communities=CommunitySettings(by_document=False))
    report = build_index(TEXTS, tmp_path / "i.kraq", settings=settings, lm=models)
    assert report.asked_by
    return [problem for problem in report.problems if "in place of" in problem]


def repeated(*replies: str) -> Iterator[str]:
    while True:
        yield from replies


def test_a_generator_that_writes_no_questions_is_told_with_the_reasons(tmp_path: Path) -> None:
    [problem] = problems(tmp_path, repeated("It stands on Hirta.", "It stands on Hirta.", "What is this text?"))
    assert problem.startswith("Templates ask about ")
    assert "is no question (" in problem


def test_a_generator_whose_questions_stay_is_not_warned_of(tmp_path: Path) -> None:
    assert problems(tmp_path, repeated("how do keepers of lights reach their rocks")) == []  # the mark is put


def test_the_three_commonest_reasons_are_named_and_half_is_no_warning() -> None:
    in_place = AskedInPlace("small@1a2b", 4, 3, (("is no question", 2), ("is empty", 1)))
    assert str(in_place) == (
        "Templates ask about 3 of 4 communities in place of small, whose reply is no question (2); is empty (1)."
    )
    assert in_place
    assert not AskedInPlace("small", 4, 2, (("is empty", 2),))
