"""Estimates what an index will cost, before any model is asked, by a rehearsal with the embedded model.

The rehearsal runs the whole pipeline, with the prompts as they will be sent, and counts. What depends on the corpus
alone (the number of extractions and their first prompts) is exact; what depends on what a model will find (gleaning,
the number of communities, the length of answers) is what the embedded model found, with a range. Where an index is
under way, its own extractions take the place of rehearsed ones, and the number of later calls is exact too.
"""

import dataclasses
import random
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import dspy

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.graph.communities import find_communities
from kraq_dspy.asset.store.index import Index
from kraq_dspy.build.index.opening import documents_of
from kraq_dspy.errors import CorpusError
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.lms.adapter_name import with_adapter
from kraq_dspy.models.lms.meter import Meter, Price, prices_of
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.models.lms.structured.adapter import KraqAdapter
from kraq_dspy.ports import Embedder, Progress, SilentProgress
from kraq_dspy.programs.kraq.by_size import extractor
from kraq_dspy.programs.kraq.pipeline import KRAQ
from kraq_dspy.records import Chunk, Document, Extraction, Usage, usage_by_stage
from kraq_dspy.settings import RoleSettings, Settings
from kraq_dspy.steps.direct import DirectSteps, Steps

ROLE_OF = {
    "extract": "extractor", "confirm": "summarizer", "describe": "summarizer", "summarize": "summarizer",
    "ask": "generator",
}  # fmt: skip
REHEARSED = 2000  # chunks; of a larger corpus a sample of so many, drawn by a seed
SPREAD = 0.5  # a language model finds between half and one and a half times as much as the embedded one


@dataclass(frozen=True, slots=True)
class StageEstimate:
    """Expected calls and tokens (cl100k) of a stage, each between `low` and `high`. `done` is what is paid for already.

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
    """`rehearsed` of `chunks` were read by the embedded model. `seconds` is None without a throughput."""

    documents: int
    chunks: int
    corpus_tokens: int
    rehearsed: int
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
        """None where a stage has no price."""
        return _sum([stage.cost for stage in self.stages])

    @property
    def cost_high(self) -> float | None:
        return _sum([stage.cost_high for stage in self.stages])


def estimate_corpus(
    corpus: str | Path | Iterable[Document],
    settings: Settings | None = None,
    *,
    tokens_per_second: float | None = None,
    rehearse: int = REHEARSED,
    seed: int = 0,
    progress: Progress | None = None,
) -> Estimate:
    """Estimate an index of a file, a folder or documents. `tokens_per_second` is what the models serve, all together.

    Raises CorpusError when there is nothing to index.
    """
    settings = settings or Settings()
    documents, problems, chunks = 0, [], []
    for item in documents_of(corpus, settings):
        if isinstance(item, Document):
            documents += 1
            chunks += chunk_document(item, settings.chunks)
        else:
            problems.append(item.reason)
    if not chunks:
        raise CorpusError("There is no text in the corpus: every document is empty or was refused.")
    sample = chunks if len(chunks) <= rehearse else random.Random(seed).sample(chunks, rehearse)
    share = len(chunks) / len(sample)
    used = run_coroutine(_rehearsal(settings, sample, None, progress or SilentProgress()))
    calls = len(chunks) * extractor(settings).most_calls
    stages = []
    for stage in ROLE_OF:
        expected = scaled(used.get(stage, Usage()), share)
        if stage == "extract":
            # A round of gleaning that finds nothing ends the search, so that fewer calls are possible.
            expected = dataclasses.replace(
                expected, calls=min(calls, expected.calls) if calls > 2 * len(chunks) else calls
            )
            low, high = spread(expected)
        else:
            low, high = scaled(expected, 1 - SPREAD), scaled(expected, 1 + SPREAD)
        stages.append(priced(stage, ROLE_OF[stage], settings, expected, low, high, exact=stage == "extract"))
    return Estimate(
        documents=documents,
        chunks=len(chunks),
        corpus_tokens=sum(chunk.n_tokens for chunk in chunks),
        rehearsed=len(sample),
        stages=tuple(stages),
        seconds=_seconds(stages, tokens_per_second),
        problems=tuple(problems),
    )


def estimate_index(
    path: str | Path,
    settings: Settings | None = None,
    *,
    tokens_per_second: float | None = None,
    progress: Progress | None = None,
) -> Estimate:
    """What is still to be paid for an index under way, as far as it was not asked yet.

    With all extractions there, the calls of the later stages are exact: graph and communities are computed from them.
    """
    with Index.open(Path(path), unfinished=True) as index:
        settings = settings or index.usable_settings()
        chunks = list(index.all(Chunk))
        extractions = list(index.all(Extraction))
        paid = usage_by_stage(index.results.usage())
        n_documents = index.count(Document)
    missing = {chunk.id for chunk in chunks} - {extraction.chunk_id for extraction in extractions}
    order = {chunk.id: (chunk.document_id, chunk.position) for chunk in chunks}
    known = sorted((e for e in extractions if e.chunk_id in order), key=lambda e: order[e.chunk_id])
    progress = progress or SilentProgress()
    used = run_coroutine(_rehearsal(settings, [c for c in chunks if c.id in missing], known, progress))
    stages = []
    for stage in ROLE_OF:
        whole = used.get(stage, Usage())
        exact = not missing or stage == "extract"
        done = Usage() if stage == "extract" else paid.get(stage, Usage())
        expected = Usage(*(max(0, a - b) for a, b in zip(_counts(whole), _counts(done), strict=True)))
        doubt = 0.0 if exact else SPREAD
        low, high = _with_tokens(expected, 0.8, 1 - SPREAD), _with_tokens(expected, 1.2, 1 + SPREAD)
        low, high = (
            dataclasses.replace(low, calls=round(expected.calls * (1 - doubt))),
            dataclasses.replace(high, calls=round(expected.calls * (1 + doubt))),
        )
        stages.append(priced(stage, ROLE_OF[stage], settings, expected, low, high, exact=exact))
    return Estimate(
        documents=n_documents,
        chunks=len(chunks),
        corpus_tokens=sum(chunk.n_tokens for chunk in chunks),
        rehearsed=len(missing),
        stages=tuple(stages),
        seconds=_seconds(stages, tokens_per_second),
    )


async def _rehearsal(
    settings: Settings, chunks: Sequence[Chunk], known: Sequence[Extraction] | None, progress: Progress
) -> dict[str, Usage]:
    """What every stage asked the embedded model. `known` extractions come before those of `chunks`."""
    embedder = load_embedder(settings.encoder) if settings.resolve.semantic and settings.resolve.confirm else None
    with rehearsing(settings, progress, embedder) as (steps, meter):
        kraq = KRAQ(settings, embedder)
        place = {chunk.id: number for number, chunk in enumerate(chunks)}
        rehearsed = [e async for e in kraq.extractions(chunks, steps, total=len(chunks))] if chunks else []
        extractions = [*(known or ()), *sorted(rehearsed, key=lambda e: place[e.chunk_id])]
        graph = await kraq.graph(extractions, steps)
        communities = find_communities(graph.entities, graph.relationships, settings.communities)
        summaries = [summary async for summary in kraq.summaries(communities, graph, steps)]
        async for _ in kraq.questions(communities, summaries, {}, steps, total=len(summaries)):
            pass
    return usage_by_stage(meter.usage())


@contextmanager
def rehearsing(
    settings: Settings, progress: Progress, embedder: Embedder | None = None
) -> Iterator[tuple[Steps, Meter]]:
    """Steps that ask the embedded model in place of those of `settings`, and the meter that counts what they ask."""
    meter = Meter()
    lm = make_lm(RoleSettings(), embedder=embedder, meter=meter)
    with dspy.context(lm=lm, adapter=KraqAdapter(), disable_history=True, trace=None):
        yield _RehearsalSteps(settings, progress), meter


class _RehearsalSteps(DirectSteps):
    """Names the models that will be asked, so that what is put to a language model alone is rehearsed too."""

    def __init__(self, settings: Settings, progress: Progress) -> None:
        super().__init__(8, _RehearsalProgress(progress))
        self._settings = settings

    def model(self, role: str, program: dspy.Module) -> str:
        return with_adapter(self._settings.role(role)).model


class _RehearsalProgress(SilentProgress):
    """Tells `progress` of the stages under names of their own."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def start(self, stage: str, total: int | None) -> None:
        self._progress.start(f"rehearse {stage}", total)

    def advance(self, stage: str, done: int = 1, *, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        self._progress.advance(f"rehearse {stage}", done)

    def finish(self, stage: str) -> None:
        self._progress.finish(f"rehearse {stage}")


def spread(expected: Usage) -> tuple[Usage, Usage]:
    """The least and the most for a known number of calls: prompts are known but for a tenth, replies are guessed."""
    low = _with_tokens(expected, 1 - SPREAD / 5, 1 - SPREAD)
    return low, _with_tokens(expected, 1 + SPREAD / 5, 1 + SPREAD)


def priced(
    stage: str, role: str, settings: Settings, expected: Usage, low: Usage, high: Usage, *, exact: bool
) -> StageEstimate:
    """With the prices that the settings give for the role's model."""
    model = with_adapter(settings.role(role)).model
    price = Price(0.0, 0.0) if model == "embedded" else prices_of(settings).get(model)
    return StageEstimate(
        stage=stage,
        model=model,
        expected=expected,
        low=low,
        high=high,
        exact_calls=exact,
        cost=price.of(expected) if price else None,
        cost_high=price.of(high) if price else None,
    )


def _seconds(stages: Iterable[StageEstimate], tokens_per_second: float | None) -> float | None:
    if tokens_per_second is None:
        return None
    return sum(s.expected.prompt_tokens + s.expected.completion_tokens for s in stages) / tokens_per_second


def _sum(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if len(known) == len(costs) else None


def scaled(usage: Usage, factor: float) -> Usage:
    """As much of all three, rounded."""
    return Usage(*(round(count * factor) for count in _counts(usage)))


def _with_tokens(usage: Usage, prompt: float, completion: float) -> Usage:
    return Usage(usage.calls, round(usage.prompt_tokens * prompt), round(usage.completion_tokens * completion))


def _counts(usage: Usage) -> tuple[int, int, int]:
    return usage.calls, usage.prompt_tokens, usage.completion_tokens
