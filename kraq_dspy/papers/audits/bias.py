"""Audits an index's questions for bias: how many a theme has against how much of the corpus it is.

By design the questions follow a corpus's dominant themes, which can amplify its biases (KRAQ paper, Ethical
Considerations). A theme is a community of one level, or a value of the documents' metadata.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval.statistics import holm
from kraq_dspy.records import Chunk, Community, Document, Summary

NO_THEME = "(no theme)"
"""The theme of everything without a summarized community, or without the metadata."""

RESAMPLES = 2000

Shares = Mapping[str, float]
"""The themes of a question or of a passage, with the sum 1."""


@dataclass(frozen=True, slots=True)
class ThemeShare:
    """Shares in [0, 1]. `chance` is the range in which the share of questions lies in 95 % of draws of as many
    questions from the passages; `p_adjusted` (Holm) says how easily chance alone would be as far off."""

    theme: str
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

    `distance` is the total variation distance of questions from passages: half the sum of the
    differences of their shares, from 0 (the same) to 1. It is the share of questions that would
    have to change their theme. A finite number of questions is off by chance too: by `chance` on
    average, and as far as this one with probability `p_value`. `left_out` questions are broader
    than the level of the themes.
    """

    by: str
    level: int | None
    themes: tuple[ThemeShare, ...]
    distance: float
    chance: float
    p_value: float
    n_questions: int
    n_passages: int
    left_out: int


@dataclass(frozen=True)
class _Counted:
    """The themes of each passage, by its id, and of each question."""

    passages: Mapping[str, Shares]
    questions: Sequence[Shares]
    left_out: int = 0


def audit_bias(
    index: Index, *, by: str | None = None, level: int = 0, source: str = "kraq", seed: int = 0
) -> BiasAudit:
    """Themes are the communities of `level` (0 is the broadest), or the values of the metadata field `by`.

    A passage of several themes counts for each in part; a question counts for the theme above its community, or in
    equal parts for the values of its documents. Raises ConfigError for a level or a field that is not there,
    EvaluationError without questions or passages.
    """
    counted = _by_community(index, level, source) if by is None else _by_metadata(index, by, source)
    n_questions = len(counted.questions)
    if not counted.questions or not counted.passages:
        raise EvaluationError(
            f"An audit compares questions with passages; found {n_questions} and {len(counted.passages)}."
        )

    of_passages, of_questions = _mean(counted.passages.values()), _mean(counted.questions)
    themes = sorted(of_passages.keys() | of_questions.keys(), key=lambda theme: (-of_passages.get(theme, 0.0), theme))
    expected = np.array([of_passages.get(theme, 0.0) for theme in themes])
    observed = np.array([of_questions.get(theme, 0.0) for theme in themes])

    draws = np.random.default_rng(seed).multinomial(n_questions, expected / expected.sum(), size=RESAMPLES)
    by_chance = draws / n_questions
    ranges = np.quantile(by_chance, (0.025, 0.975), axis=0)
    distance = float(np.abs(observed - expected).sum() / 2)
    distances = np.abs(by_chance - expected).sum(axis=1) / 2

    p_values = {theme: _p_value(by_chance[:, place], observed[place]) for place, theme in enumerate(themes)}
    adjusted = holm(p_values)
    return BiasAudit(
        by=by or "community",
        level=level if by is None else None,
        themes=tuple(
            ThemeShare(
                theme=theme,
                passages=float(expected[place]),
                questions=float(observed[place]),
                chance=(float(ranges[0, place]), float(ranges[1, place])),
                p_adjusted=adjusted[theme],
            )
            for place, theme in enumerate(themes)
        ),
        distance=distance,
        chance=float(distances.mean()),
        p_value=float((np.count_nonzero(distances >= distance - 1e-12) + 1) / (RESAMPLES + 1)),
        n_questions=n_questions,
        n_passages=len(counted.passages),
        left_out=counted.left_out,
    )


def _by_community(index: Index, level: int, source: str) -> _Counted:
    deepest = index.deepest_level()
    if level > deepest:
        raise ConfigError(f"The level of the themes is {level}; the deepest of this index is {deepest}.")

    titles = _titles(index, level)
    themes_of: defaultdict[str, list[str]] = defaultdict(list)
    communities = {community.id: community for community in index.all(Community)}
    for community in communities.values():
        if community.id in titles:
            for chunk_id in community.chunk_ids:
                themes_of[chunk_id].append(titles[community.id])
    passages = {chunk_id: _in_equal_parts(themes_of.get(chunk_id) or [NO_THEME]) for chunk_id in index.ids(Chunk)}

    questions: list[Shares] = []
    left_out = 0
    for question in index.questions(source=source):
        own = communities.get(question.community_id or "")
        if own is None:  # of random chunks
            questions.append(_mean([passages[each] for each in question.chunk_ids if each in passages]))
        elif own.level < level:
            left_out += 1
        else:
            questions.append({_theme_above(own, level, communities, titles): 1.0})
    return _Counted(passages, questions, left_out)


def _theme_above(
    community: Community, level: int, communities: Mapping[str, Community], titles: Mapping[str, str]
) -> str:
    """The title of the community of `level` that this one lies in; `NO_THEME` if that has no summary."""
    above: Community | None = community
    while above is not None and above.level > level:
        above = communities.get(above.parent_id or "")
    return NO_THEME if above is None else titles.get(above.id, NO_THEME)


def _titles(index: Index, level: int) -> dict[str, str]:
    """Names by id of the communities of a level that have a summary, and so a question; each name once."""
    here = {community.id for community in index.communities_at(level)}
    titles: dict[str, str] = {}
    repeated: Counter[str] = Counter()
    for summary in index.all(Summary):
        if summary.community_id in here:
            title = summary.title or summary.community_id
            repeated[title] += 1
            titles[summary.community_id] = f"{title} ({repeated[title]})" if repeated[title] > 1 else title
    return titles


def _by_metadata(index: Index, field: str, source: str) -> _Counted:
    value_of: dict[str, str] = {}
    known: set[str] = set()
    for document in index.all(Document):
        known.update(document.metadata)
        value_of[document.id] = str(document.metadata.get(field, NO_THEME))
    if field not in known:
        fields = ", ".join(sorted(known)) or "none"
        raise ConfigError(f"No document has the metadata {field!r}; there are: {fields}.")

    passages = {chunk.id: {value_of.get(chunk.document_id, NO_THEME): 1.0} for chunk in index.all(Chunk)}
    questions = [
        _in_equal_parts([value_of.get(document_id, NO_THEME) for document_id in question.document_ids])
        for question in index.questions(source=source)
        if question.document_ids
    ]
    return _Counted(passages, questions)


def _in_equal_parts(themes: Sequence[str]) -> Shares:
    return {theme: count / len(themes) for theme, count in Counter(themes).items()}


def _mean(rows: Iterable[Shares]) -> Shares:
    """The mean of the shares, theme by theme; no theme at all of nothing."""
    rows = list(rows)
    if not rows:
        return {NO_THEME: 1.0}
    sums: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        for theme, share in row.items():
            sums[theme] += share
    return {theme: total / len(rows) for theme, total in sums.items()}


def _p_value(by_chance: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]", observed: float) -> float:
    """Tell how often chance alone gives a theme so few, or so many, of the questions; twice the
    smaller share."""
    above = (np.count_nonzero(by_chance >= observed - 1e-12) + 1) / (len(by_chance) + 1)
    below = (np.count_nonzero(by_chance <= observed + 1e-12) + 1) / (len(by_chance) + 1)
    return float(min(1.0, 2 * min(above, below)))
