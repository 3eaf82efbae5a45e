"""Estimates what an index will cost by arithmetic over the corpus, before any model is asked.

The calls of extraction follow from the corpus and the settings. All else hangs on what the model will find, so it is a
middle and a range from indexes of news, encyclopedia articles and a novel (docs/results/indexing.md, "The price").
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.store.index import Index
from kraq_dspy.build.index.opening import documents_of
from kraq_dspy.errors import CorpusError
from kraq_dspy.models.lms.local_models import with_adapter
from kraq_dspy.models.lms.meter import Price, prices_of
from kraq_dspy.programs.kraq.by_size import extractor
from kraq_dspy.records import Chunk, Document, Extraction, Failure, Usage, usage_by_stage
from kraq_dspy.settings import Settings

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
}
_LEAST, _MOST = 0.1, 1.6  # times as many calls: a novel has few communities, short encyclopedia articles have many


@dataclass(frozen=True, slots=True)
class StageEstimate:
    """Expected calls and tokens (cl100k) of a stage, each between `low` and `high`, as far as they are not yet paid.

    `exact_calls` says that the number of calls is known, save for retries. `cost` is None where the role has no price.
    """

    stage: str
    model: str
    expected: Usage
    low: Usage
    high: Usage
    exact_calls: bool
    cost: float | None = None
    cost_high: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an index will ask of models, by stage. `seconds` is None without a throughput."""

    documents: int
    chunks: int
    corpus_tokens: int
    stages: tuple[StageEstimate, ...]
    seconds: float | None = None
    problems: tuple[str, ...] = ()

    @property
    def expected(self) -> Usage:
        return sum((stage.expected for stage in self.stages), Usage())

    @property
    def low(self) -> Usage:
        return sum((stage.low for stage in self.stages), Usage())

    @property
    def high(self) -> Usage:
        return sum((stage.high for stage in self.stages), Usage())

    @property
    def cost(self) -> float | None:
        """The sum over all stages; None where one of them has no price."""
        return _sum([stage.cost for stage in self.stages])

    @property
    def cost_high(self) -> float | None:
        return _sum([stage.cost_high for stage in self.stages])


def estimate_corpus(
    corpus: str | Path | Iterable[Document | str],
    settings: Settings | None = None,
    *,
    tokens_per_second: float | None = None,
) -> Estimate:
    """Estimate an index of a file, a folder, documents or texts.

    `tokens_per_second` is what the models serve, all together. Raises CorpusError when there is nothing to index.

    >>> estimate_corpus(["Ada Lovelace met Charles Babbage in London."]).stages[0].expected.calls
    2
    """
    settings = settings or Settings()
    items = list(documents_of(corpus, settings))
    documents = [item for item in items if isinstance(item, Document)]
    chunks = [chunk for document in documents for chunk in chunk_document(document, settings.chunks)]
    if not chunks:
        raise CorpusError("There is no text in the corpus: every document is empty or was refused.")
    problems = tuple(item.reason for item in items if isinstance(item, Failure))
    stages = (_extraction(chunks, settings), *_later(chunks, settings, {}))
    return _together(len(documents), chunks, stages, tokens_per_second, problems)


def estimate_index(
    path: str | Path, settings: Settings | None = None, *, tokens_per_second: float | None = None
) -> Estimate:
    """Estimate what is still to be paid for an index that is under way."""
    with Index.open(Path(path), unfinished=True) as index:
        settings = settings or index.usable_settings()
        chunks = list(index.all(Chunk))
        extracted = set(index.ids(Extraction))
        paid = usage_by_stage(index.results.usage())
        n_documents = index.count(Document)
    missing = [chunk for chunk in chunks if chunk.id not in extracted]
    extraction = _extraction(missing, settings)
    unpaid = len(chunks) * extractor(settings).most_calls - paid.get("extract", Usage()).calls
    if 0 <= unpaid < extraction.expected.calls:  # replies that are kept, but not yet extractions
        extraction = _extraction(missing[: unpaid // extractor(settings).most_calls], settings)
    stages = (extraction, *_later(chunks, settings, paid))
    return _together(n_documents, chunks, stages, tokens_per_second)


def one_call_each(stage: str, role: str, texts: Iterable[int], reply: float, settings: Settings) -> StageEstimate:
    """A stage that asks once for each text of so many tokens, and is answered with `reply` tokens for each of those."""
    sizes = list(texts)
    return _priced(stage, role, settings, len(sizes), len(sizes) * INSTRUCTIONS + sum(sizes), reply * sum(sizes))


def _extraction(chunks: Iterable[Chunk], settings: Settings) -> StageEstimate:
    sizes = [chunk.n_tokens for chunk in chunks]
    readings = extractor(settings).most_calls
    written = _WRITTEN * sum(sizes) * readings
    read = (len(sizes) * INSTRUCTIONS + sum(sizes)) * readings
    return _priced("extract", "extractor", settings, len(sizes) * readings, read, written)


def _later(chunks: Iterable[Chunk], settings: Settings, paid: Mapping[str, Usage]) -> Iterable[StageEstimate]:
    thousands = sum(chunk.n_tokens for chunk in chunks) / 1000
    resolve = settings.resolve
    for stage, (role, rate, prompt, reply) in _LATER.items():
        asks_about_names = resolve.acronyms and _model(role, settings) != "embedded"
        is_asked = stage != "confirm" or asks_about_names
        calls = max(0, round(thousands * rate * is_asked) - paid.get(stage, Usage()).calls)
        yield _priced(stage, role, settings, calls, calls * prompt, calls * reply, (_LEAST, _MOST))


def _priced(
    stage: str,
    role: str,
    settings: Settings,
    calls: int,
    prompt: float,
    reply: float,
    times: tuple[float, float] = (1.0, 1.0),
) -> StageEstimate:
    """`times` are the least and the most calls; prompts are known but for a tenth, replies but for half to double."""
    least, most = times
    expected = Usage(calls, round(prompt), round(reply))
    low = Usage(round(calls * least), round(prompt * least * 0.9), round(reply * least * 0.5))
    high = Usage(round(calls * most), round(prompt * most * 1.1), round(reply * most * 2))
    model = _model(role, settings)
    price = Price(0.0, 0.0) if model == "embedded" else prices_of(settings).get(model)
    cost, cost_high = (price.of(expected), price.of(high)) if price else (None, None)
    return StageEstimate(stage, model, expected, low, high, least == most, cost, cost_high)


def _model(role: str, settings: Settings) -> str:
    return with_adapter(settings.role(role)).model


def _together(
    n_documents: int,
    chunks: list[Chunk],
    stages: tuple[StageEstimate, ...],
    tokens_per_second: float | None,
    problems: tuple[str, ...] = (),
) -> Estimate:
    corpus_tokens = sum(chunk.n_tokens for chunk in chunks)
    tokens = sum(stage.expected.prompt_tokens + stage.expected.completion_tokens for stage in stages)
    seconds = tokens / tokens_per_second if tokens_per_second else None
    return Estimate(n_documents, len(chunks), corpus_tokens, stages, seconds, problems)


def _sum(costs: Iterable[float | None]) -> float | None:
    known = list(costs)
    return None if None in known else sum(cost for cost in known if cost is not None)
