"""Reads the questions and the corpus of a table, and draws those that are asked."""

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.datasets import Dataset, Example, load_dataset, load_local, sample_to_tokens
from kraq_dspy.eval.datasets.dataset import is_dataset
from kraq_dspy.eval.questions import without_learned
from kraq_dspy.papers.tables.table import DATASET_NAMES


@dataclass(frozen=True, slots=True)
class ExampleSet:
    """A data set, the questions of it that are asked, how many are not because of a limit, and how many of the others a
    model in use had learned from."""

    dataset: Dataset
    examples: tuple[Example, ...]
    left_out: int
    learned: int = 0


def dataset_names(folder: Path, chosen: Sequence[str], of_table: Sequence[str]) -> list[str]:
    """Return those that were chosen, else those of the table; a folder that is a data set itself is
    the only one.

    Raises EvaluationError when nothing says which.
    """
    if is_dataset(folder):
        if chosen and list(chosen) != [folder.resolve().name]:
            raise EvaluationError(
                f"{str(folder)!r} is the data set {folder.resolve().name!r} itself; for {', '.join(chosen)} give the "
                "folder that holds them."
            )
        return [folder.resolve().name]

    names = list(dict.fromkeys(chosen or of_table))
    if not names:
        raise EvaluationError("No data set was named: use --dataset NAME, or list `datasets` in the table.")
    return names


def load(
    folder: Path,
    name: str,
    *,
    tokens: int | None = None,
    limit: int | None = None,
    seed: int = 0,
    needs_corpus: bool = True,
    learned: Collection[str] = frozenset(),
) -> ExampleSet:
    """`name` from the folder of data sets, or the folder itself if it is one. No network is used.

    With `tokens`, the papers' sample: questions until their evidence has that many tokens, over that evidence alone.
    With `limit`, that many questions, drawn by the seed alone: a larger limit asks the same and more.
    `learned` are fingerprints of questions that are left out: an adapter learned from them.
    Raises EvaluationError, with the command that gets it, for a set that is absent.
    """
    if is_dataset(folder):
        dataset = load_local(folder.resolve())
    elif not (folder / name).exists() and name in DATASET_NAMES:
        dataset = load_dataset(DATASET_NAMES[name], folder)
    else:
        dataset = load_dataset(name, folder)

    if tokens is not None:
        dataset = sample_to_tokens(dataset, tokens, seed=seed)
    if needs_corpus and not dataset.documents:
        raise EvaluationError(f"{dataset.name} has questions but no corpus, so nothing can be indexed.")

    usable = without_learned(dataset.examples, learned)
    examples = sorted(usable, key=lambda example: example.id)
    random.Random(seed).shuffle(examples)
    drawn = examples if limit is None else examples[:limit]
    return ExampleSet(dataset, tuple(drawn), len(examples) - len(drawn), len(dataset.examples) - len(usable))
