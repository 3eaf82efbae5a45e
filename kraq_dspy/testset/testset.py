"""Holds a test set: rows with questions, answers and evidence, in a file that `kraq eval` reads.

testset = Testset.load("test.jsonl")
learn, measure = testset.split(by="document")
"""

import dataclasses
import json
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import dspy

from kraq_dspy._internal.files import json_objects, replaced
from kraq_dspy.errors import EvaluationError, import_extra
from kraq_dspy.records import MADE, OWN, GoldPassage, TestsetRow
from kraq_dspy.testset.difficulty import saturation
from kraq_dspy.testset.gold_finder import UNLIKE

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class Testset:
    """The rows of a test set, and facts about their making.

    Args:
        rows: the rows.
        rejected: the number of dropped questions, by reason.
        left_out: why requested kinds could not be made, by kind.
        gold_by: the retrievers that proposed candidates for gold passages.

    >>> made = Testset((TestsetRow("t1", "Who met Ada?", "fact", ("Charles",), supporting_ids=("ada",)),))
    >>> made.examples()[0].answers
    ['Charles']
    """

    __test__ = False

    rows: tuple[TestsetRow, ...]
    rejected: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    gold_by: tuple[str, ...] = UNLIKE

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[TestsetRow]:
        return iter(self.rows)

    def examples(self) -> list[dspy.Example]:
        """Make examples for DSPy's Evaluate and optimizers: `question` is the only input."""
        return [dspy.Example(**as_line(row)).with_inputs("question") for row in self.rows]

    def to_pandas(self) -> "pandas.DataFrame":
        """A row each. Raises MissingExtraError without pandas."""
        pandas = import_extra("pandas", "pandas", "Testset.to_pandas")
        return pandas.DataFrame([as_line(row) for row in self.rows])

    def with_row(self, row: TestsetRow) -> "Testset":
        """The set with the row behind the others, and without another one of its id."""
        return dataclasses.replace(self, rows=(*(each for each in self.rows if each.id != row.id), row))

    def save(self, path: str | Path) -> Path:
        """A JSON line each, which `kraq eval INDEX FILE` reads; an earlier file is replaced."""
        place = Path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        lines = (json.dumps(as_line(row), ensure_ascii=False) + "\n" for row in self.rows)
        with replaced(place) as draft, draft.open("w", encoding="utf-8", errors="replace", newline="\n") as file:
            file.writelines(lines)
        return place

    @classmethod
    def load(cls, path: str | Path) -> "Testset":
        """Return what `save` wrote. Raises EvaluationError for a file that is no test set."""
        rows = []
        for where, line in json_objects(Path(path), EvaluationError, "the test set"):
            try:
                rows.append(as_row(line))
            except (KeyError, TypeError, ValueError) as error:
                raise EvaluationError(
                    f"{where} is no row of a test set ({type(error).__name__}: {error}). Make one: kraq testset make"
                ) from error
        return cls(tuple(rows))

    def split(
        self, share: float = 0.5, *, by: Literal["document"] = "document", seed: int = 0
    ) -> tuple["Testset", "Testset"]:
        """Two sets of which the first has about `share` of the rows, and no document is evidence in both.

        Rows that share a document, over any number of rows, stay together.
        """
        if not 0 < share < 1:
            raise ValueError(f"share is {share}; expected a number between 0 and 1.")

        groups = _sharing_documents(self.rows)
        random.Random(seed).shuffle(groups)
        first: set[str] = set()
        for group in groups:
            if len(first) + len(group) / 2 <= share * len(self.rows):
                first |= group

        rows_of_first = tuple(row for row in self.rows if row.id in first)
        rows_of_second = tuple(row for row in self.rows if row.id not in first)
        return dataclasses.replace(self, rows=rows_of_first), dataclasses.replace(self, rows=rows_of_second)

    def counts(self) -> dict[str, int]:
        """Rows by kind."""
        return dict(Counter(row.type for row in self.rows))

    def about(self) -> dict[str, Any]:
        """Return what there is to know of it before it is used: rows by half and kind, communities, and of the made
        half overlap and saturation."""
        made = [row for row in self.rows if row.half != OWN]
        every, none = saturation(made, len(self.gold_by))
        shares = sorted(row.overlap for row in made)
        return {
            "rows": len(self.rows),
            "halves": {MADE: len(made), OWN: len(self.rows) - len(made)},
            "kinds": self.counts(),
            "communities": len({row.community_id for row in self.rows if row.community_id}),
            "documents": len({document for row in self.rows for document in row.supporting_ids}),
            "median_overlap": shares[len(shares) // 2] if shares else 0.0,
            "solved_by_all": round(every, 3),
            "solved_by_none": round(none, 3),
            "rejected": dict(self.rejected),
            "left_out": dict(self.left_out),
        }


def as_line(row: TestsetRow) -> dict[str, Any]:
    """A row as it stands in a file: with the columns of `kraq eval` first."""
    line = dataclasses.asdict(row)
    line["answerable"] = row.is_answerable
    return {name: list(value) if isinstance(value, tuple) else value for name, value in line.items()}


def as_row(line: Mapping[str, Any]) -> TestsetRow:
    """The inverse of `as_line`; columns that are not known are left out. Raises KeyError, TypeError or ValueError."""
    values: dict[str, Any] = {name: line[name] for name in ("id", "question", "type")}
    for each in dataclasses.fields(TestsetRow)[3:]:
        if each.name in line:
            value = line[each.name]
            values[each.name] = tuple(value) if isinstance(value, list) else value
    values["answer_items"] = tuple(tuple(item) for item in line.get("answer_items", ()))
    values["passages"] = tuple(
        GoldPassage(**{**passage, "found_by": tuple(passage["found_by"])}) for passage in line.get("passages", ())
    )
    return TestsetRow(**values)


def _sharing_documents(rows: Sequence[TestsetRow]) -> list[set[str]]:
    """The ids of rows in groups, no two of which have a document in common; by the first row of each."""
    group_of: dict[str, set[str]] = {}
    groups: dict[int, set[str]] = {}

    for row in rows:
        documents = (*row.supporting_ids, *row.hidden_documents)
        merged = {row.id}
        for document in documents:
            if document in group_of:
                merged |= group_of[document]

        touched = [each for each in groups.values() if each & merged]
        for each in touched:
            merged |= each
            del groups[id(each)]
        groups[id(merged)] = merged

        for other in rows:
            if other.id in merged:
                group_of |= dict.fromkeys((*other.supporting_ids, *other.hidden_documents), merged)
    return list(groups.values())
