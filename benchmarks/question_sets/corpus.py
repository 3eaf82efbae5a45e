"""Chooses the passages that every system asks about, and what people asked about them.

Articles of squad with five paragraphs each, drawn by the seed. Of the people's questions that a paragraph answers, some
are held out as a question set of their own; the others are what the sets are compared with.
"""

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.eval.datasets import Dataset, Example
from kraq_dspy.eval.tables.data import load

ARTICLES = 8


@dataclass(frozen=True)
class Corpus:
    """`dataset` are the passages that are asked about, `surroundings` all of squad's, among which retrievers search: so
    few passages are too easily found to tell one retriever from another. `references` and `held_out` share no question;
    each names the one paragraph that answers it."""

    dataset: Dataset
    surroundings: Dataset
    references: tuple[Example, ...]
    held_out: tuple[Example, ...]

    def passage(self, document_id: str) -> str:
        """What a generator is shown: the title, then the text."""
        document = next(each for each in self.dataset.documents if each.id == document_id)
        return f"{document.title}\n{document.text}"


def read_corpus(data: Path, *, articles: int = ARTICLES, held_out: int = 24, seed: int = 0) -> Corpus:
    """`held_out` questions at most are kept apart."""
    squad = load(data, "squad").dataset
    titles = sorted({document.title for document in squad.documents if document.title})
    chosen = set(random.Random(seed).sample(titles, articles))
    everything = tuple(
        dataclasses.replace(document, title=document.title.replace("_", " ")) for document in squad.documents
    )
    documents = tuple(document for document in everything if document.title.replace(" ", "_") in chosen)
    kept = {document.id for document in documents}
    asked = first_of_each([e for e in squad.examples if e.answers and set(e.supporting_ids) <= kept])
    random.Random(seed).shuffle(asked)
    apart, rest = asked[:held_out], asked[held_out:]
    dataset = Dataset(f"squad-{articles}-{seed}", documents, tuple(asked))
    return Corpus(dataset, Dataset("squad-all", everything, tuple(asked)), tuple(rest), tuple(apart))


def first_of_each(examples: Sequence[Example]) -> list[Example]:
    """By id; a question that was asked in the same words before is left out, and so is one without evidence."""
    by_text: dict[str, Example] = {}
    for example in sorted(examples, key=lambda each: each.id):
        if example.supporting_ids:
            by_text.setdefault(" ".join(example.question.casefold().split()), example)
    return list(by_text.values())


def in_turn(corpus: Corpus, seed: int = 0) -> list[str]:
    """Ids of all passages in the order in which they are asked about: one of each article, then the next of each."""
    draw = random.Random(seed)
    by_title: dict[str, list[str]] = {}
    for document in corpus.dataset.documents:
        by_title.setdefault(document.title, []).append(document.id)
    for ids in by_title.values():
        draw.shuffle(ids)
    most = max(map(len, by_title.values()))
    return [ids[turn] for turn in range(most) for ids in by_title.values() if turn < len(ids)]
