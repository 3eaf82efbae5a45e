"""Tests that every module of the package gives the same answer called and awaited, and is saved and loaded."""

import asyncio
import importlib
import inspect
import math
import pkgutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import dspy
import numpy as np
import pytest
from dspy.utils import DummyLM
from numpy.typing import NDArray

import kraq_dspy
from kraq_dspy import make_lm
from kraq_dspy.eval import BinaryJudge, Groundedness, RubricJudge
from kraq_dspy.eval.functions import AnsweringFunction
from kraq_dspy.eval.judges import AnswerRelevancy, ContextPrecision, ContextRecall
from kraq_dspy.extend import FittingPredict, RetrievingModule, at_once, blocking, call
from kraq_dspy.indexing.prepare.k2rag import GraphOnly
from kraq_dspy.optimize import load_state, save_state, state_of
from kraq_dspy.optimize.compile_run import KeptModels
from kraq_dspy.optimize.steps import SingleStep
from kraq_dspy.ports import Vectors
from kraq_dspy.programs import (
    K2RAG,
    KRAQ,
    QARAG,
    AskQuestion,
    AskRandomQuestion,
    CombinedRetrieveRAG,
    ConfirmSame,
    DescribeCommunity,
    DescribeEntity,
    EfficientSpeculativeRAG,
    ExtractGraph,
    ExtractNames,
    GraphGlobalSearch,
    GraphLocalSearch,
    KraqScore,
    LocalContext,
    NaiveGraphRAG,
    QASearch,
    RateSyntheticPair,
    RereadSyntheticPair,
    Shorten,
    SpeculativeRAG,
    StandaloneQuestion,
    SummarizeCluster,
    TraditionalRAG,
    VoteScore,
    WritePairs,
    WriteSyntheticPair,
)
from kraq_dspy.programs.kraq.evidence import JudgeEvidence
from kraq_dspy.programs.kraq.wording import PutInWords
from kraq_dspy.programs.speculative.drafts import Draft
from kraq_dspy.programs.speculative.scoring import WangScore
from kraq_dspy.retrievers import (
    AdaptedRetriever,
    DenseRetriever,
    DMQRRetriever,
    NearestQuestions,
    RAGFusionRetriever,
    RewrittenRetriever,
)
from kraq_dspy.retrievers.rewritten import FusedSearches
from kraq_dspy.settings import RoleSettings
from kraq_dspy.signatures import AnswerQuestion
from kraq_dspy.testset.asking import AskForRow, CheckGold, CheckRow, PutOtherwise, SupposeOfAnother
from tests.programs.conftest import Library

QUESTION = "Which castle has music?"
PASSAGE = "The Rhine is a river in Germany. Cologne stands on the Rhine. Its cathedral was finished in 1880."


class Doubling(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict("question -> answer")

    async def aforward(self, question: str) -> dspy.Prediction:
        first = await call(self.answer, question=question)
        answers = await at_once(self._ask, [f"{first.answer}?"] * 2)
        return dspy.Prediction(answers=answers, thread=await call(threading.get_ident))

    forward = blocking(aforward)

    async def _ask(self, question: str) -> str:
        return str((await call(self.answer, question=question)).answer)


def test_both_forms_call_the_predictors_by_dspys_own_ways_so_that_traces_and_callbacks_are_there() -> None:
    started: list[str] = []

    class Watch(dspy.utils.BaseCallback):  # type: ignore[misc]
        def on_module_start(self, call_id: str, instance: object, inputs: dict[str, Any]) -> None:
            started.append(type(instance).__name__)

    for form in (Doubling(), lambda **inputs: asyncio.run(Doubling().acall(**inputs))):
        started.clear()
        lm = DummyLM([{"answer": "x"}] * 3)
        with dspy.context(lm=lm, callbacks=[Watch()], trace=[]):
            assert form(question="q").answers == ["x", "x"]
            assert len(dspy.settings.trace) == 3
        assert started == ["Doubling", "Predict", "Predict", "Predict"]
        assert len(lm.history) == 3


def test_work_that_computes_leaves_the_loop_free_and_stays_in_the_thread_of_a_synchronous_call() -> None:
    with dspy.context(lm=DummyLM([{"answer": "x"}] * 6)):
        assert Doubling()(question="q").thread == threading.get_ident()
        assert asyncio.run(Doubling().acall(question="q")).thread != threading.get_ident()


def test_the_synchronous_form_works_inside_a_running_loop_as_in_a_notebook() -> None:
    async def cell() -> list[str]:
        answers: list[str] = Doubling()(question="q").answers
        return answers

    with dspy.context(lm=DummyLM([{"answer": "x"}] * 3)):
        assert asyncio.run(cell()) == ["x", "x"]


def test_a_module_without_an_asynchronous_form_runs_in_a_thread() -> None:
    class Old(dspy.Module):
        def forward(self, question: str) -> tuple[str, int]:
            return question, threading.get_ident()

    question, thread = asyncio.run(call(Old(), question="q"))
    assert question == "q"
    assert thread != threading.get_ident()


def test_a_body_that_waits_for_an_event_loop_itself_says_so() -> None:
    @blocking
    async def asleep() -> None:
        await asyncio.sleep(1)

    with pytest.raises(RuntimeError, match=r"event loop|only an event loop can do"):
        asleep()


def test_the_signature_of_a_program_is_read_from_either_form() -> None:
    assert str(inspect.signature(TraditionalRAG.forward)) == str(inspect.signature(TraditionalRAG.aforward))
    assert TraditionalRAG.forward.__name__ == "forward"
    assert not inspect.iscoroutinefunction(TraditionalRAG.forward)


# --- every module of the package -------------------------------------------------------------------------------------


def knowledge(question: str) -> LocalContext:
    shown = {"reports": ["A town."], "entities": ["Keep: a castle"], "relationships": [], "passages": ["Music."]}
    return LocalContext((), (), (), (), shown, 10)


class NoAnswers:
    """An FAQ cache that holds no question."""

    def exact(self, question: str) -> None:
        return None

    def entries(self) -> list[Any]:
        return []

    def nearest(self, question: str, k: int, similarity: float = 0.0) -> list[Any]:
        return []

    def collect(self, question: str, answer: str, evidence: Sequence[Any], failure: str = "") -> None:
        return


class NothingStored:
    """No embedding was made in advance."""

    def lookup(self, question_id: str, chunk_ids: Sequence[str]) -> tuple[Vectors, NDArray[np.bool_]]:
        return np.zeros((len(chunk_ids), 5), np.float32), np.zeros(len(chunk_ids), np.bool_)


def graph_local(library: Library) -> GraphLocalSearch:
    program = GraphLocalSearch(nearest=lambda *_, **__: [], graph=Any)  # type: ignore[arg-type]
    program.context = knowledge  # type: ignore[assignment]
    return program


def relevancy(library: Library) -> AnswerRelevancy:
    judge = AnswerRelevancy()
    judge.embedder = library.embedder
    return judge


def dense(library: Library) -> DenseRetriever:
    return DenseRetriever(library.records, library.chunk_vectors, library.embedder)


def nearest(library: Library) -> NearestQuestions:
    return NearestQuestions(library.records, library.question_vectors, library.embedder)


class QuestionIgnored:
    """A passage embedder as an instructed one."""

    def __init__(self, library: Library) -> None:
        self.embedder = library.embedder
        self.name, self.dimension = self.embedder.name, self.embedder.dimension

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        vectors: Vectors = self.embedder.encode_passages(passages)
        return vectors


DRAFTS = [
    Draft(number, (0,), "Music is played there.", response, 0.0, (math.log(0.5),), (math.log(0.25),))
    for number, response in enumerate(["the hall", "the hall", "the keep"])
]
ANSWERED = {
    "example": dspy.Example(question=QUESTION, answer="the hall", passages=[PASSAGE]),
    "prediction": dspy.Prediction(answer="the hall"),
}
KEEPER = dspy.Prediction(answer="Jonas Berg has kept the light of Tarnvik since 1998.")
ASKED = {"question": QUESTION}
SCORED = {"question": QUESTION, "drafts": DRAFTS}

MODULES: dict[type[dspy.Module], tuple[Callable[[Any], dspy.Module], Mapping[str, Any]]] = {
    AdaptedRetriever: (lambda library: AdaptedRetriever(lambda question: [PASSAGE]), {"question": QUESTION, "k": 4}),
    AnswerRelevancy: (relevancy, {**ANSWERED, "prediction": KEEPER}),
    AnsweringFunction: (lambda library: AnsweringFunction(lambda question: "the hall"), ASKED),
    AskForRow: (lambda library: AskForRow("fact"), {"passage": PASSAGE, "about": ["Rhine"]}),
    AskQuestion: (lambda library: AskQuestion(), {"summary": PASSAGE}),
    AskRandomQuestion: (lambda library: AskRandomQuestion(), {"passages": [PASSAGE, "Cologne is a city."]}),
    BinaryJudge: (lambda library: BinaryJudge(), ANSWERED),
    ContextPrecision: (lambda library: ContextPrecision(), ANSWERED),
    ContextRecall: (lambda library: ContextRecall(), ANSWERED),
    CheckGold: (lambda library: CheckGold(), {"question": QUESTION, "answer": "the hall", "passage": PASSAGE}),
    CheckRow: (
        lambda library: CheckRow(),
        {"kind": "fact", "question": QUESTION, "answers": ["the hall"], "passages": [PASSAGE]},
    ),
    CombinedRetrieveRAG: (lambda library: CombinedRetrieveRAG(dense(library), nearest(library), k=4), ASKED),
    ConfirmSame: (lambda library: ConfirmSame(), {"first": "Rhine: a river", "second": "The Rhine: a river"}),
    DescribeCommunity: (lambda library: DescribeCommunity(), {"elements": ["Rhine (river): a river in Germany"]}),
    DescribeEntity: (lambda library: DescribeEntity(), {"name": "Rhine", "descriptions": ["A river.", "It is long."]}),
    EfficientSpeculativeRAG: (
        lambda library: EfficientSpeculativeRAG(
            dense(library), nearest(library), NothingStored(), QuestionIgnored(library), n=4
        ),
        ASKED,
    ),
    ExtractGraph: (lambda library: ExtractGraph(), {"passage": PASSAGE}),
    ExtractNames: (lambda library: ExtractNames(), {"passage": PASSAGE}),
    FittingPredict: (
        lambda library: FittingPredict(AnswerQuestion, shorten="passages"),
        {"question": QUESTION, "passages": ["Music in the castle."]},
    ),
    GraphGlobalSearch: (lambda library: GraphGlobalSearch(dense(library), k=4, tokens=10), ASKED),
    GraphLocalSearch: (graph_local, ASKED),
    K2RAG: (lambda library: K2RAG(dense(library), knowledge, Shorten(), k=2), ASKED),
    JudgeEvidence: (lambda library: JudgeEvidence(), {"question": QUESTION, "passages": [PASSAGE]}),
    KRAQ: (lambda library: KRAQ(), {}),
    KraqScore: (lambda library: KraqScore(), SCORED),
    NaiveGraphRAG: (lambda library: NaiveGraphRAG(Knowledge()), ASKED),  # type: ignore[arg-type]
    PutInWords: (
        lambda library: PutInWords(),
        {"statement": PASSAGE, "answer": "the Rhine", "own": "Where does Cologne stand?", "word": "where"},
    ),
    QARAG: (lambda library: QARAG(dense(library), k=3), ASKED),
    QASearch: (lambda library: QASearch(TraditionalRAG(dense(library)), NoAnswers()), ASKED),
    RateSyntheticPair: (
        lambda library: RateSyntheticPair("travellers"),
        {"question": "Where does Cologne stand?", "answer": "on the Rhine", "passage": PASSAGE},
    ),
    RereadSyntheticPair: (
        lambda library: RereadSyntheticPair(),
        {"question": "Where does Cologne stand?", "answer": "on the Rhine", "passage": PASSAGE},
    ),
    DMQRRetriever: (lambda library: DMQRRetriever(dense(library), adaptive=False), {"question": QUESTION, "k": 4}),
    RAGFusionRetriever: (lambda library: RAGFusionRetriever(dense(library)), {"question": QUESTION, "k": 4}),
    RewrittenRetriever: (lambda library: RewrittenRetriever(dense(library)), {"question": QUESTION, "k": 4}),
    RubricJudge: (lambda library: RubricJudge(), ANSWERED),
    Groundedness: (lambda library: Groundedness(), ANSWERED),
    Shorten: (lambda library: Shorten(least_tokens=5), {"text": " ".join([PASSAGE] * 3)}),
    SingleStep: (lambda library: SingleStep(AnswerQuestion), {"question": QUESTION, "passages": [PASSAGE]}),
    SpeculativeRAG: (lambda library: SpeculativeRAG(dense(library), QuestionIgnored(library), n=4), ASKED),
    SummarizeCluster: (lambda library: SummarizeCluster(), {"passages": [PASSAGE]}),
    StandaloneQuestion: (
        lambda library: StandaloneQuestion(), {"question": QUESTION, "turns": [("What is the Rhine?", "A river.")]}
    ),
    PutOtherwise: (lambda library: PutOtherwise(), {"question": QUESTION, "avoid": ["music"]}),
    SupposeOfAnother: (
        lambda library: SupposeOfAnother(),
        {"question": "Where did Ada live?", "name": "Ada", "other": "Eve"},
    ),
    TraditionalRAG: (lambda library: TraditionalRAG(dense(library), k=3), ASKED),
    VoteScore: (lambda library: VoteScore(), SCORED),
    WangScore: (lambda library: WangScore(HalfOfAll()), SCORED),
    WritePairs: (lambda library: WritePairs(), {"passage": PASSAGE}),
    WriteSyntheticPair: (lambda library: WriteSyntheticPair(), {"passage": PASSAGE}),
}  # fmt: skip


class HalfOfAll:
    """A verifier to which each text has the probability 1/2."""

    def prompt_logprobs(self, prompts: Sequence[Sequence[str]]) -> list[list[tuple[float, ...]]]:
        return [[(-0.69,) for _ in prompt] for prompt in prompts]


class Knowledge:
    k = 3

    def __call__(self, question: str) -> LocalContext:
        return knowledge(question)


def modules() -> Iterator[type[dspy.Module]]:
    """The package's own, but for the applications': those have the shape that other frameworks ask for."""
    for info in pkgutil.walk_packages(kraq_dspy.__path__, "kraq_dspy."):
        if info.name.endswith("__main__") or info.name.startswith("kraq_dspy.apps"):
            continue
        for value in vars(importlib.import_module(info.name)).values():
            if isinstance(value, type) and issubclass(value, dspy.Module) and value.__module__ == info.name:
                yield value


def test_no_module_overrides_call_and_every_one_has_both_forms_or_none_of_its_own() -> None:
    forms = {"__call__", "acall", "forward", "aforward"}
    described = {RetrievingModule}  # its call has the types that dspy.Tool shows to a model
    own = {module.__name__: forms & vars(module).keys() for module in modules() if module not in described}
    assert {name: names for name, names in own.items() if names and names != {"forward", "aforward"}} == {}


def test_the_table_below_has_every_module_that_has_a_body() -> None:
    bodies = {module for module in modules() if not module.__name__.startswith("_") and hasattr(module, "aforward")}
    predictors = {module for module in bodies if issubclass(module, dspy.Predict)} - {FittingPredict}
    whole = bodies - predictors - {RetrievingModule, FusedSearches, KeptModels, GraphOnly}  # the bodies are others'
    assert {module.__name__ for module in whole} == {module.__name__ for module in MODULES}


def timeless(value: Any) -> Any:
    """The same without the seconds that it took."""
    if isinstance(value, dspy.Prediction):
        return {name: timeless(item) for name, item in value.items() if name != "timings"}
    if isinstance(value, list | tuple):
        return [timeless(item) for item in value]
    if isinstance(value, Mapping):
        return {key: timeless(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type) and hasattr(value, "seconds"):
        return replace(value, seconds=0.0)  # type: ignore[type-var]
    return value


def stages(value: Any) -> Mapping[str, float]:
    """The seconds of a prediction's stages; none for what is no prediction of a program."""
    timings: Any = value.get("timings") if isinstance(value, dspy.Prediction) else {}
    return asdict(timings) if hasattr(timings, "wall") else timings or {}


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_both_forms_give_the_same_answer(module: type[dspy.Module], library: Library) -> None:
    make, inputs = MODULES[module]
    if module is KRAQ:
        inputs = {"chunks": list(library.records.chunks.values())}
    program = make(library)
    with dspy.context(lm=make_lm(RoleSettings(model="embedded"))):
        started = perf_counter()
        called = program(**inputs)
        took = perf_counter() - started
        awaited = asyncio.run(program.acall(**inputs))
    assert timeless(called) == timeless(awaited)
    assert {name: seconds for name, seconds in stages(called).items() if not 0 <= seconds <= 10 * took} == {}


LEARNS_NOTHING = {AdaptedRetriever, AnsweringFunction, VoteScore, WangScore}
SAMPLES = {str: "Which tower?", list[str]: ["A tower.", "A bridge."]}


@pytest.mark.parametrize(
    "module",
    [each for each in MODULES if each not in LEARNS_NOTHING | {FittingPredict}],
    ids=lambda each: each.__name__,
)
def test_what_a_module_learned_is_saved_and_loaded_by_dspys_ways_and_by_this_librarys(
    module: type[dspy.Module], library: Library, tmp_path: Path
) -> None:
    make, _ = MODULES[module]
    program, loaded, from_program, from_library = (make(library) for _ in range(4))
    assert program.predictors()
    for name, predictor in program.named_predictors():
        fields = predictor.signature.fields
        demo = {field: SAMPLES[info.annotation] for field, info in fields.items() if info.annotation in SAMPLES}
        predictor.demos = [dspy.Example(demo)]
        predictor.signature = predictor.signature.with_instructions(f"What {name} learned.")
    program.save(tmp_path / "saved.json")
    loaded.load(tmp_path / "saved.json")
    load_state(from_program, tmp_path / "saved.json")
    save_state(state_of(program, {"target": "any"}), tmp_path / "optimized.json")
    from_library.load(tmp_path / "optimized.json")
    for copy in (loaded, from_program, from_library):
        assert state_of(copy, {}) == state_of(program, {})
        learned = {name: predictor.signature.instructions for name, predictor in copy.named_predictors()}
        assert learned == {name: f"What {name} learned." for name in learned}
        assert all(predictor.demos for predictor in copy.predictors())
