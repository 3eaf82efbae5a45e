"""Estimates what an index will cost by arithmetic over the corpus, before any model is asked.

The calls of extraction follow from the corpus and the settings. All else hangs on what the model will find, so it is a
middle of indexes of news, encyclopedia articles and a novel (benchmarks/results/indexing.md, "The price").
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import CorpusError
from kraq_dspy.indexing.index.opening import documents_of
from kraq_dspy.models.lms.local_models import with_adapter
from kraq_dspy.models.lms.meter import Price, prices_of
from kraq_dspy.programs.kraq.asked_by import asks_generator
from kraq_dspy.programs.kraq.by_size import extractor
from kraq_dspy.records import Chunk, Document, Failure, Usage, usage_by_stage
from kraq_dspy.settings import EMBEDDED, Settings

INSTRUCTIONS = 380
"""Tokens of an extraction's prompt beside its passage."""
_WRITTEN = 1.5
"""Tokens that a reading of a passage writes for each token of it, taken over all readings."""
_LATER = {
    # stage: role, calls for 1,000 tokens of the corpus, tokens of a prompt, tokens of a reply
    "confirm": ("summarizer", 0.2, 250, 20),
    "describe": ("summarizer", 0.4, 700, 200),
    "summarize": ("summarizer", 8.0, 470, 340),
    "ask": ("generator", 8.0, 180, 22),
    "word": ("asker", 8.0, 150, 22),
    "judge": ("judge", 16.0, 350, 8),
}
LEAST, MOST = 0.1, 2.3
"""Times as many calls of the later stages: a novel has few communities, short encyclopedia articles have many, above
all where the parser names what they tell of."""


@dataclass(frozen=True, slots=True)
class StageEstimate:
    """Calls and tokens (cl100k) of a stage, as far as they are not yet paid; `cost` is None if the model has no
    price."""

    stage: str
    model: str
    expected: Usage
    cost: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an index will ask of models, by stage. `problems` say what of the corpus is left out."""

    documents: int
    chunks: int
    corpus_tokens: int
    stages: tuple[StageEstimate, ...]
    problems: tuple[str, ...] = ()

    @property
    def expected(self) -> Usage:
        return sum((stage.expected for stage in self.stages), Usage())

    @property
    def cost(self) -> float | None:
        """The sum over all stages; None if one of them has no price."""
        costs = [stage.cost for stage in self.stages]
        return None if None in costs else sum(cost for cost in costs if cost is not None)


def estimate_corpus(corpus: str | Path | Iterable[Document | str], settings: Settings | None = None) -> Estimate:
    """Estimate an index of a file, a folder, documents or texts. Raises CorpusError when there is nothing to index.

    >>> estimate_corpus(["Ada Lovelace met Charles Babbage in London."]).stages[0].expected.calls
    2
    """
    settings = settings or Settings()
    items = list(documents_of(corpus, settings))
    documents = [item for item in items if isinstance(item, Document)]
    chunks = [chunk for document in documents for chunk in chunk_document(document, settings.chunks)]
    if not chunks:
        raise CorpusError("There is no text in the corpus: every document is empty or was rejected.")
    problems = tuple(item.reason for item in items if isinstance(item, Failure))
    return _estimate(len(documents), chunks, settings, {}, problems)


def estimate_index(path: str | Path, settings: Settings | None = None) -> Estimate:
    """Estimate what is still to be paid for an index that is under way."""
    with Index.open(Path(path), unfinished=True) as index:
        settings = settings or index.usable_settings()
        paid = usage_by_stage(index.results.usage())
        return _estimate(index.count(Document), list(index.all(Chunk)), settings, paid)


def _estimate(
    n_documents: int, chunks: list[Chunk], settings: Settings, paid: Mapping[str, Usage], problems: tuple[str, ...] = ()
) -> Estimate:
    tokens = sum(chunk.n_tokens for chunk in chunks)
    program = extractor(settings)
    calls = sum(program.most_calls(chunk.passage) for chunk in chunks)
    a_call = tokens / max(1, len(chunks))
    stages = [_stage("extract", "extractor", calls, INSTRUCTIONS + a_call, _WRITTEN * a_call, settings, paid)]
    for stage, (role, rate, prompt, reply) in _LATER.items():
        if stage in ("word", "judge") and role not in settings.roles:
            continue  # asked only of a model of the role's own
        is_asked = _is_asked(stage, role, settings)
        stages.append(_stage(stage, role, round(tokens / 1000 * rate * is_asked), prompt, reply, settings, paid))
    return Estimate(n_documents, len(chunks), tokens, tuple(stages), problems)


def _is_asked(stage: str, role: str, settings: Settings) -> bool:
    """Whether the stage asks a model at all, by the settings."""
    if stage == "confirm":
        return settings.resolve.acronyms and _model(role, settings) != EMBEDDED
    return stage != "ask" or asks_generator(settings.questions.asked_by, _model(role, settings))


def _stage(
    stage: str, role: str, calls: int, prompt: float, reply: float, settings: Settings, paid: Mapping[str, Usage]
) -> StageEstimate:
    """`prompt` and `reply` are the tokens of a call."""
    calls = max(0, calls - paid.get(stage, Usage()).calls)
    expected = Usage(calls, round(calls * prompt), round(calls * reply))
    model = _model(role, settings)
    price = Price(0.0, 0.0) if model == EMBEDDED else prices_of(settings).get(model)
    return StageEstimate(stage, model, expected, price.of(expected) if price else None)


def _model(role: str, settings: Settings) -> str:
    return with_adapter(settings.role(role)).model
