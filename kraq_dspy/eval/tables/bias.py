"""Audits an index's questions for bias: how many a theme has against how much of the corpus it is.

By design the questions follow a corpus's dominant themes, which can amplify its biases (KRAQ paper, Ethical
Considerations). A theme is a community of one level, or a value of the documents' metadata.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval.statistics import Interval, holm
from kraq_dspy.records import Chunk, Community, Document, Entity, Summary
from kraq_dspy.stores.index import Index

NONE = "(no theme)"
"""What belongs to no community that has a question, or lacks the metadata."""
Weights = Mapping[str, float]
"""The themes of a question or of a passage, with the sum 1."""


@dataclass(frozen=True, slots=True)
class ThemeShare:
    """Shares in [0, 1]. `chance` is the range in which the share of questions lies in 95 % of draws of as many
    questions from the passages; `p_adjusted` (Holm) says how easily chance alone would be as far off."""

    theme: str
    documents: float
    passages: float
    questions: float
    chance: tuple[float, float]
    p_adjusted: float

    @property
    def ratio(self) -> float | None:
        """Questions to passages; None for a theme without passages."""
        return self.questions / self.passages if self.passages else None


@dataclass(frozen=True, slots=True)
class BiasAudit:
    """Themes by their share of passages, largest first.

    `distance` is the total variation distance of questions from passages: half the sum of the differences of their
    shares, from 0 (the same) to 1; so much of the questions would have to ask about something else. A finite number of
    questions is off by chance too: by `chance` on average, and as far as this one with probability `p_value`. As this
    also holds for resampled questions, the bootstrap's interval is moved onto the estimate. `left_out` questions are
    broader than the level of the themes.
    """

    by: str
    level: int | None
    themes: tuple[ThemeShare, ...]
    distance: Interval
    chance: float
    p_value: float
    n_questions: int
    n_passages: int
    n_documents: int
    left_out: int


def audit_bias(
    index: Index, *, by: str | None = None, level: int = 0, source: str = "kraq", resamples: int = 2000, seed: int = 0
) -> BiasAudit:
    """Themes are the communities of `level` (0 is the broadest), or the values of the metadata field `by`.

    A passage of several themes counts for each in part, a document as its passages do, a question for the theme above
    its community, or in equal parts for the values of its documents. Raises ConfigError for a level or a field that is
    not there, EvaluationError without questions or passages.
    """
    passages, questions, left_out = (
        _by_community(index, level, source) if by is None else _by_metadata(index, by, source)
    )
    if not questions or not passages:
        raise EvaluationError(f"An audit compares questions with passages; found {len(questions)} and {len(passages)}.")
    documents = _documents(index, passages)
    shares = {name: _shares(weights) for name, weights in (("d", documents), ("p", passages), ("q", questions))}
    themes = sorted(shares["p"] | shares["q"], key=lambda theme: (-shares["p"].get(theme, 0), theme))
    expected = np.array([shares["p"].get(theme, 0.0) for theme in themes])
    observed = np.array([shares["q"].get(theme, 0.0) for theme in themes])
    rng = np.random.default_rng(seed)
    by_chance = rng.multinomial(len(questions), expected / expected.sum(), size=resamples) / len(questions)
    distance = float(np.abs(observed - expected).sum() / 2)
    chance = np.abs(by_chance - expected).sum(axis=1) / 2
    spread = _resampled(questions, themes, expected, resamples, rng)
    low, high = np.clip(distance + np.quantile(spread, (0.025, 0.975)) - spread.mean(), 0, 1)
    n = len(questions)
    p_values = {theme: _two_sided(n * observed[place], n, expected[place]) for place, theme in enumerate(themes)}
    adjusted = holm(p_values)
    ranges = np.quantile(by_chance, (0.025, 0.975), axis=0)
    return BiasAudit(
        by=by or "community",
        level=level if by is None else None,
        themes=tuple(
            ThemeShare(
                theme=theme,
                documents=shares["d"].get(theme, 0.0),
                passages=float(expected[place]),
                questions=float(observed[place]),
                chance=(float(ranges[0, place]), float(ranges[1, place])),
                p_adjusted=adjusted[theme],
            )
            for place, theme in enumerate(themes)
        ),
        distance=Interval(
            distance, float(low), float(high), 0.95, len(questions), resamples, seed, "bootstrap, centred"
        ),
        chance=float(chance.mean()),
        p_value=float((np.count_nonzero(chance >= distance - 1e-12) + 1) / (resamples + 1)),
        n_questions=len(questions),
        n_passages=len(passages),
        n_documents=len(documents),
        left_out=left_out,
    )


def _by_community(index: Index, level: int, source: str) -> tuple[dict[str, Weights], list[Weights], int]:
    deepest = index.deepest_level()
    if level > deepest:
        raise ConfigError(f"The level of the themes is {level}; the deepest of this index is {deepest}.")
    titles = _titles(index, level)
    themes_of: defaultdict[str, list[str]] = defaultdict(list)
    parents: dict[str, str | None] = {}
    for community in index.all(Community):
        parents[community.id] = community.parent_id
        if community.id in titles:
            for chunk_id in community.chunk_ids:
                themes_of[chunk_id].append(titles[community.id])
    passages = {chunk_id: _even(themes_of.get(chunk_id) or [NONE]) for chunk_id in index.ids(Chunk)}
    questions: list[Weights] = []
    left_out = 0
    for question in index.questions(source=source):
        above = question.community_id
        while above is not None and above not in titles:
            above = parents.get(above)
        if above is not None:
            questions.append({titles[above]: 1.0})
        elif question.community_id is None:  # of random chunks
            questions.append(_mean([passages[each] for each in question.chunk_ids if each in passages]))
        else:
            left_out += 1
    return passages, questions, left_out


def _titles(index: Index, level: int) -> dict[str, str]:
    """Names by id of the communities of a level that have a summary, and so a question; each name once."""
    here = {community.id: community for community in index.communities_at(level)}
    titles: dict[str, str] = {}
    repeated: Counter[str] = Counter()
    for summary in index.all(Summary):
        if summary.community_id in here:
            title = summary.title or ", ".join(
                entity.name for entity in index.get(Entity, here[summary.community_id].entity_ids[:3])
            )
            repeated[title] += 1
            titles[summary.community_id] = f"{title} ({repeated[title]})" if repeated[title] > 1 else title
    return titles


def _by_metadata(index: Index, field: str, source: str) -> tuple[dict[str, Weights], list[Weights], int]:
    value_of: dict[str, str] = {}
    known: set[str] = set()
    for document in index.all(Document):
        known.update(document.metadata)
        value_of[document.id] = str(document.metadata.get(field, NONE))
    if field not in known:
        fields = ", ".join(sorted(known)) or "none"
        raise ConfigError(f"No document has the metadata {field!r}; there are: {fields}.")
    passages = {chunk.id: _even([value_of.get(chunk.document_id, NONE)]) for chunk in index.all(Chunk)}
    questions = [
        _even([value_of.get(document_id, NONE) for document_id in question.document_ids])
        for question in index.questions(source=source)
        if question.document_ids
    ]
    return passages, questions, 0


def _documents(index: Index, passages: Mapping[str, Weights]) -> dict[str, Weights]:
    of_document: defaultdict[str, list[Weights]] = defaultdict(list)
    for chunk in index.all(Chunk):
        if chunk.id in passages:
            of_document[chunk.document_id].append(passages[chunk.id])
    return {document_id: _mean(weights) for document_id, weights in of_document.items()}


def _even(themes: Sequence[str]) -> Weights:
    return {theme: count / len(themes) for theme, count in Counter(themes).items()}


def _mean(weights: Sequence[Weights]) -> Weights:
    return _shares(weights) if weights else {NONE: 1.0}


def _shares(weights: Mapping[str, Weights] | Iterable[Weights]) -> dict[str, float]:
    """The mean of the weights, theme by theme."""
    rows = list(weights.values()) if isinstance(weights, Mapping) else list(weights)
    sums: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        for theme, weight in row.items():
            sums[theme] += weight
    return {theme: total / len(rows) for theme, total in sums.items()}


def _resampled(
    questions: Sequence[Weights], themes: Sequence[str], expected: NDArray[np.float64], resamples: int,
    rng: np.random.Generator,
) -> NDArray[np.float64]:  # fmt: skip
    """Distances of as many questions, drawn from these with replacement."""
    place_of = {theme: place for place, theme in enumerate(themes)}
    flat = [(row, place_of[theme], weight) for row, each in enumerate(questions) for theme, weight in each.items()]
    rows, places, weights = (np.array(column) for column in zip(*flat, strict=True))
    distances = np.empty(resamples)
    for number in range(resamples):
        drawn = np.bincount(rng.integers(0, len(questions), len(questions)), minlength=len(questions))
        shares = np.bincount(places, weights=weights * drawn[rows], minlength=len(themes)) / len(questions)
        distances[number] = np.abs(shares - expected).sum() / 2
    return distances


def _two_sided(questions: float, n: int, share: float) -> float:
    """How likely a theme of that share of the passages gets so few, or so many, of `n` questions: exact binomial."""
    if share in (0.0, 1.0):
        return float(questions == n * share)
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    counts = np.arange(n + 1)
    logs = log_factorials[n] - log_factorials - log_factorials[::-1]
    likely = np.exp(logs + counts * np.log(share) + (n - counts) * np.log1p(-share))
    above = likely[int(np.ceil(questions - 1e-9)) :].sum()
    below = likely[: int(np.floor(questions + 1e-9)) + 1].sum()
    return float(min(1.0, 2 * min(above, below)))
