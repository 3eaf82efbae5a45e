"""Holds an index against a log of questions that people asked: what it anticipates, and what it cannot answer."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from kraq_dspy._internal.files import replaced
from kraq_dspy.errors import EvaluationError, counted
from kraq_dspy.eval.datasets import Example
from kraq_dspy.eval.defaults import ABOUT, NEAR
from kraq_dspy.eval.grids import Grid
from kraq_dspy.eval.metrics.questions import nearest_rows
from kraq_dspy.eval.questions import FOUND, QuestionColumns, QuestionSource, read_questions
from kraq_dspy.eval.refused import is_answerable
from kraq_dspy.eval.statistics import Interval, bootstrap_mean
from kraq_dspy.eval.terminal import print_grid, write_page
from kraq_dspy.indexing.refusals.scoring import PassageScorer
from kraq_dspy.ports import Progress, SilentProgress, Vectors
from kraq_dspy.records import Chunk
from kraq_dspy.workspace import Workspace

KINDS, ALIKE = 20, 5000
"""Kinds of questions that are shown, and questions among which kinds are looked for."""
RESAMPLES = 2000
_BATCH = 256


@dataclass(frozen=True, slots=True)
class QuestionSet:
    """Questions held against the asked ones.

    `relevance` is the mean cosine of each question with the nearest one that people asked.
    `coverage` is the share of the on-topic questions that people asked with a similar question
    here; None if none is on topic.
    """

    name: str
    n: int
    relevance: Interval
    coverage: Interval | None


@dataclass(frozen=True, slots=True)
class AskedQuestion:
    """A question of the log, with the stored question and the passage nearest to it, and their cosines.

    `unanswered`, in [0, 1], is higher the less a passage has of the question's meaning and words.
    """

    id: str
    text: str
    question: str
    question_cosine: float
    chunk_id: str
    title: str
    passage_cosine: float
    unanswered: float


@dataclass(frozen=True)
class QuestionLog:
    """The questions of an index against those of a log.

    Attributes:
        index: the index that was compared.
        encoder: the encoder of the questions.
        near: the least cosine of two questions that ask the same.
        about: the least cosine of a passage that is about a question.
        sets: the index's questions and those of other sources, each with relevance and coverage.
        asked: the questions of the log, each with what is nearest to it.
        unanticipated: kinds of on-topic questions without a similar stored question. The largest kind is
            first, and in it the most typical question.
        unanswered: kinds of off-topic questions, in the same order.
        auc: the chance that a question without an answer scores above one with an answer; None if the log
            does not tell.

    >>> log = against_log(Workspace.open("ada.kraq"), [{"question": "Where did Ada live?"}, {"question": "Why?"}])
    >>> log.asked[0].title
    'Ada'
    """

    index: str
    encoder: str
    near: float
    about: float
    sets: tuple[QuestionSet, ...]
    asked: tuple[AskedQuestion, ...]
    unanticipated: tuple[tuple[AskedQuestion, ...], ...]
    unanswered: tuple[tuple[AskedQuestion, ...], ...]
    auc: Interval | None

    def to_dict(self) -> dict[str, Any]:
        """The figures and the kinds as JSON values; `write` has every question."""
        kinds = {
            name: [{"n": len(kind), "asked": [each.text for each in kind[:5]]} for kind in getattr(self, name)]
            for name in ("unanticipated", "unanswered")
        }
        return {**asdict(self), "asked": len(self.asked), "about_asked": self._n_about, **kinds}

    @property
    def _n_about(self) -> int:
        return sum(each.passage_cosine >= self.about for each in self.asked)

    def grids(self) -> list[Grid]:
        """The figures, the kinds, and the questions that the corpus answers least."""
        n, about = len(self.asked), self._n_about
        auc = "" if self.auc is None else f" Told from the answered ones with an AUC of {_shown(self.auc)}."
        least = sorted(self.asked, key=lambda each: -each.unanswered)[:KINDS]

        return [
            Grid(
                "The index's questions against those that were asked",
                ("questions", "n", "Relevance", "coverage"),
                tuple((each.name, str(each.n), _shown(each.relevance), _shown(each.coverage)) for each in self.sets),
                note=f"Relevance: mean cosine of each with the nearest of {n:,} asked ones. Coverage: share of the "
                f"{about:,} asked ones that the corpus is about (a passage at {self.about}) with one at {self.near}. "
                f"Encoder {self.encoder}; 95 % by bootstrap.",
            ),
            *_kinds("Asked, and known to the corpus, but anticipated by no question of the index", self.unanticipated),
            *_kinds("Asked, and not known to the corpus", self.unanswered),
            Grid(
                "Asked, and answered least here",
                ("score", "question", "nearest passage"),
                tuple((f"{each.unanswered:.2f}", each.text, each.title) for each in least),
                note=f"The score is 1 less the cosine of the nearest passage and a quarter of the share of the words, "
                f"over 1.25.{auc} Every question: asked.jsonl.",
            ),
        ]

    def write(self, folder: str | Path) -> list[Path]:
        """`report.html`, and `asked.jsonl` with every asked question, the least answered first."""
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)

        def show(console: Console) -> None:
            for grid in self.grids():
                print_grid(grid, console)

        rows = sorted(self.asked, key=lambda each: -each.unanswered)
        with replaced(place / "asked.jsonl") as draft:
            draft.write_text("".join(json.dumps(asdict(row), ensure_ascii=False) + "\n" for row in rows), "utf-8")
        return [write_page(show, place / "report.html"), place / "asked.jsonl"]


def against_log(
    space: Workspace,
    questions: QuestionSource,
    *,
    columns: QuestionColumns = FOUND,
    near: float = NEAR,
    about: float = ABOUT,
    seed: int = 0,
    progress: Progress | None = None,
) -> QuestionLog:
    """Compare the questions of an index with questions that people asked. It calls no language model.

    Args:
        space: the open index.
        questions: the log, as `read_questions` takes it; two questions or more.
        columns: names of columns that kraq does not find by itself.
        near: the least cosine of two questions that ask the same, in [-1, 1].
        about: the least cosine of a passage that is about a question, in [-1, 1].
        seed: the random seed of the two halves of the log.
        progress: is called as the comparison advances.

    Returns:
        The comparison. `write(folder)` makes its report.

    Raises:
        EvaluationError: for a log that cannot be read or is too short, and for an index without questions or
            passages.

    For comparison it rates titles and headings, these as "How do I ...?", and the questions of random
    passages if the index has them. The highest figure to expect is that of one half of the log against the
    other.

    >>> against_log(space, "asked.csv").write("report")  # doctest: +SKIP
    """
    progress = progress or SilentProgress()
    examples = read_questions(questions, columns)
    own = [question.text for question in space.index.questions(source="kraq")]
    if len(examples) < 2:
        raise EvaluationError(
            f"The log has {counted(len(examples), 'question')}; expected two or more, since one half is compared with "
            "the other."
        )
    if not own:
        raise EvaluationError(
            "The index has no questions to compare with the log. kraq status DIR says why; kraq index DIR tries again."
        )

    def encode(texts: Sequence[str], stage: str) -> Vectors:
        progress.start(stage, len(texts))
        blocks = []
        for start in range(0, len(texts), _BATCH):
            blocks.append(space.embedder.encode_queries(texts[start : start + _BATCH]))
            progress.advance(stage, len(blocks[-1]))
        progress.finish(stage)
        return np.concatenate(blocks)

    vectors = encode([example.question for example in examples], "asked")
    stored = encode(own, "questions")
    chunks = list(space.index.all(Chunk))
    log_questions = _beside_the_index(space, examples, vectors, own, stored, chunks)
    is_about = np.array([each.passage_cosine >= about for each in log_questions])

    def held(name: str, texts: Vectors, log: Vectors, known: NDArray[np.bool_]) -> QuestionSet:
        _, of_texts = nearest_rows(texts, log)
        _, of_log = nearest_rows(log[known], texts) if known.any() else (None, None)
        coverage = None if of_log is None else _mean(of_log >= near, seed)
        return QuestionSet(name, len(texts), _mean(of_texts, seed), coverage)

    titles = sorted(_titles_and_headings(chunks))
    random = [question.text for question in space.index.questions(source="random")]
    how = [f"How do I {title[0].lower()}{title[1:]}?" for title in titles]
    baselines = {"titles": titles, "How do I <title>?": how, "random passages": random}
    sets = [held("the index", stored, vectors, is_about)]
    sets += [held(name, encode(texts, name), vectors, is_about) for name, texts in baselines.items() if texts]

    order = np.random.default_rng(seed).permutation(len(examples))
    half, other = np.split(order, [len(order) // 2])
    sets.append(held("other people's", vectors[half[: len(own)]], vectors[other], is_about[other]))

    is_covered = np.array([each.question_cosine >= near for each in log_questions])
    unanticipated = order[(is_about & ~is_covered)[order]]
    unanswered = order[~is_about[order]]
    return QuestionLog(
        index=space.index.path.name,
        encoder=space.embedder.name,
        near=near,
        about=about,
        sets=tuple(sets),
        asked=tuple(log_questions),
        unanticipated=_alike(log_questions, vectors, unanticipated, near),
        unanswered=_alike(log_questions, vectors, unanswered, near),
        auc=_auc(examples, [each.unanswered for each in log_questions], seed),
    )


def _titles_and_headings(chunks: Sequence[Chunk]) -> set[str]:
    titles: set[str] = set()
    for chunk in chunks:
        titles.update(title for title in (chunk.title, *chunk.headings) if title.strip())
    return titles


def _beside_the_index(
    space: Workspace,
    examples: Sequence[Example],
    vectors: Vectors,
    own: Sequence[str],
    stored: Vectors,
    chunks: Sequence[Chunk],
) -> list[AskedQuestion]:
    nearest, cosines = nearest_rows(vectors, stored)
    known = {chunk.id: chunk for chunk in chunks}
    scores = PassageScorer(space.index, space.embedder)([example.question for example in examples], vectors)

    log_questions = []
    for place, (example, score) in enumerate(zip(examples, scores, strict=True)):
        if not score.nearest:
            raise EvaluationError("The index has no passages.")
        chunk_id, cosine = score.nearest[0]
        title = known[chunk_id].title or known[chunk_id].document_id
        log_questions.append(
            AskedQuestion(
                example.id, example.question, own[nearest[place]], float(cosines[place]),
                chunk_id, title, cosine, 1 - score.value,
            )
        )  # fmt: skip
    return log_questions


def _mean(values: NDArray[Any], seed: int) -> Interval:
    return bootstrap_mean(values.astype(np.float64), resamples=RESAMPLES, seed=seed)


def _alike(
    questions: Sequence[AskedQuestion], vectors: Vectors, places: NDArray[np.int64], near: float
) -> tuple[tuple[AskedQuestion, ...], ...]:
    """Kinds of two and more: the question with most others near to it takes them, then the next of what is left."""
    places = np.sort(places[:ALIKE])
    cosines = vectors[places] @ vectors[places].T
    is_near = cosines >= near

    kinds: list[tuple[AskedQuestion, ...]] = []
    while len(places):
        middle = int(is_near.sum(axis=1).argmax())
        members = np.flatnonzero(is_near[middle])
        if len(members) < 2:
            break
        nearest_first = members[np.argsort(-cosines[middle, members], kind="stable")]
        kinds.append(tuple(questions[places[member]] for member in nearest_first))
        is_near[members, :] = False
        is_near[:, members] = False
    return tuple(kinds)


def _auc(examples: Sequence[Example], scores: Sequence[float], seed: int) -> Interval | None:
    """Measure the area under the curve; None if the log does not tell questions with an answer
    from those without."""
    labels = np.array([not is_answerable(example) for example in examples])
    if labels.all() or not labels.any():
        return None
    without, answered = np.asarray(scores)[labels], np.asarray(scores)[~labels]

    rng = np.random.default_rng(seed)
    resampled = []
    for _ in range(RESAMPLES):
        resampled.append(auc(rng.choice(without, len(without)), rng.choice(answered, len(answered))))
    low, high = np.quantile(resampled, [0.025, 0.975])
    estimate = auc(without, answered)
    return Interval(estimate, float(low), float(high), 0.95, len(scores), RESAMPLES, seed, "percentile bootstrap")


def auc(high: NDArray[np.float64], low: NDArray[np.float64]) -> float:
    """The share of pairs in which the first is higher; a tie is half a pair (Mann and Whitney, 1947)."""
    ordered = np.sort(low)
    below = np.searchsorted(ordered, high, "left")
    not_above = np.searchsorted(ordered, high, "right")
    return float((below + not_above).mean() / (2 * len(low)))


def _shown(interval: Interval | None) -> str:
    return "" if interval is None else f"{interval.estimate:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def _kinds(title: str, kinds: Sequence[Sequence[AskedQuestion]]) -> list[Grid]:
    rows = tuple(
        (
            str(len(kind)),
            kind[0].text,
            " | ".join(list(dict.fromkeys(each.text for each in kind if each.text != kind[0].text))[:3]),
            kind[0].title,
        )
        for kind in kinds[:KINDS]
    )
    note = (
        f"{counted(len(kinds), 'kind')} of two questions and more, {sum(map(len, kinds)):,} in all; the passage "
        "is the one "
        "nearest to the first question."
    )
    headings = ("asked", "question", "others like it", "nearest passage")
    return [Grid(title, headings, rows, note=note)] if kinds else []
