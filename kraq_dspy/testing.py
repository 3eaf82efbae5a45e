"""Checks whether a retriever, a store, a model or a program of your own keeps the contract that this library relies on.

    from kraq_dspy import testing

    def test_my_retriever() -> None:
        testing.check_retriever(MyRetriever(), ["Which rivers are there?", "Who built the bridge?"])

    def test_quality() -> None:
        testing.assert_quality("docs.kraq", "test.jsonl", {"recall@10": 0.9}, no_worse_than="runs/base")

Each check asks what it is given a few dozen times, and raises BrokenContractError, an AssertionError that says what was
promised and what came instead. The tests of this library run the same checks on its own parts.
"""

import asyncio
import copy
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, fields, is_dataclass
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import dspy
import numpy as np
from dspy.utils.callback import BaseCallback

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy.asset.scope import Scope
from kraq_dspy.asset.store.tables import TABLES
from kraq_dspy.errors import KraqError, UnknownRecordError
from kraq_dspy.eval.evaluation import Evaluation, evaluate
from kraq_dspy.eval.gate import require_other_folder, require_reachable, under_checks, worse_checks
from kraq_dspy.ports import Retriever, Vectors, VectorStore
from kraq_dspy.records import Document, Hit, content_id
from kraq_dspy.retrievers.adapted import as_retriever
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import choose_program
from kraq_dspy.workspace.registry import PROGRAMS, RETRIEVERS

__all__ = [
    "BrokenContractError", "QualityError", "ScopeReport", "assert_quality", "check_engine", "check_program",
    "check_retriever", "check_scope", "check_store",
]  # fmt: skip

THREADS = 16


class BrokenContractError(AssertionError):
    """A retriever, store, model or program breaks its contract."""


class QualityError(AssertionError):
    """A system scored lower than `assert_quality` requires."""


def assert_quality(
    systems: Any,
    devset: Any,
    at_least: Mapping[str, float] | None = None,
    *,
    no_worse_than: str | Path | None = None,
    out: str | Path | None = None,
    **options: Any,
) -> Evaluation:
    """Evaluate systems, and raise an error if a system is not good enough. Use this function in a test.

    Args:
        systems: the systems, as in `kraq_dspy.evaluate`.
        devset: the questions.
        at_least: the least mean, by metric.
        no_worse_than: the folder of an earlier run. This run must not be worse (`kraq_dspy.eval.gate.worse_checks`).
        out: the folder for this run. Later runs can compare with it.
        **options: further arguments of `kraq_dspy.evaluate`.

    Returns:
        The evaluation.

    Raises:
        QualityError: an AssertionError, if a mean is too low or the other run was better.
        ValueError: without `at_least` and `no_worse_than`.

    >>> rows = [{"question": "Where did Ada live?", "answer": "London"}]
    >>> assert_quality("ada.kraq", rows, {"answer_found": 0.9}).mean("answer_found")
    1.0
    """
    if not at_least and no_worse_than is None:
        raise ValueError("Nothing is asked for; give at_least={metric: number}, no_worse_than=DIR, or both.")
    require_reachable(at_least or {})

    base = Path(no_worse_than) if no_worse_than is not None else None
    judged = list(at_least or ()) or None
    metrics = options.pop("metrics", None) or judged
    with tempfile.TemporaryDirectory() as folder:
        place = Path(out) if out is not None else Path(folder) / "run"
        require_other_folder(base, place)
        result = evaluate(systems, devset, metrics, out=place, **options)
        checks = under_checks(result.summary, at_least or {})
        if base is not None:
            checks += worse_checks(base, place, metrics=judged)

    failed = [check.text for check in checks if not check.passed]
    if failed:
        raise QualityError("; ".join(failed))
    return result


def check_retriever(retrieve: Any, questions: Sequence[str], *, k: int = 4) -> None:
    """Check that a retriever keeps the contract of `ports.Retriever`.

    Args:
        retrieve: a retriever, or anything that `as_retriever` takes.
        questions: questions that find something; two or more show the most.
        k: passages for each.

    Raises:
        BrokenContractError: says what is broken.

    >>> import kraq_dspy as kraq
    >>> with kraq.Workspace.open("ada.kraq") as space:
    ...     check_retriever(space.retriever("dense"), ["Where did Ada live?"])
    """
    retriever = as_retriever(retrieve)
    if not questions:
        raise ValueError("questions is empty; expected one or more that find something.")

    for question in questions:
        for count in (1, k, 10 * k):
            _check_hits(retriever, question, count)
        _check_left_out(retriever, question, k)

    _refuses(ValueError, lambda: retriever(questions[0], 0), "k below 1")
    _refuses(ValueError, lambda: retriever(" \n", k), "an empty question")
    expected = [retriever(question, k) for question in questions]
    questions_at_once = [*questions] * (2 * THREADS)
    with ThreadPoolExecutor(THREADS) as pool:
        at_once = [pool.submit(copy_context().run, retriever, question, k) for question in questions_at_once]
        gathered = [each.result() for each in at_once]

    _require(all(map(_alike, gathered, expected * (2 * THREADS))), "is safe for threads")
    asynchronously = [run_coroutine(call(retriever, question, k)) for question in questions]
    _require(all(map(_alike, asynchronously, expected)), "finds the same asynchronously")


def check_store(store: VectorStore) -> None:
    """Check that a vector store keeps the contract of `ports.VectorStore`.

    Pass an empty store of three dimensions or more. The check leaves the store empty.

    >>> from kraq_dspy.asset.store.vectors import LocalVectorStore
    >>> check_store(LocalVectorStore(Path("points"), dimension=3))
    """
    _require(store.count() == 0 and store.ids() == set(), "is empty before it is checked")

    ids = [content_id(name) for name in ("one", "two", "three")]
    vectors = np.zeros((3, store.dimension), np.float32)
    vectors[[0, 1, 2], [0, 1, 2]] = 1.0
    texts = ["a red apple", "a green apple", "a yellow lemon"]
    payloads = [{"document_id": document_id} for document_id in ("d1", "d2", "d2")]
    store.upsert(ids, vectors, texts, payloads)
    _require(store.count() == 3 and store.ids() == set(ids), "counts and names its points")
    in_order = np.allclose(store.vectors(ids[::-1]), vectors[::-1], atol=1e-6)
    _require(bool(in_order), "gives vectors in the order asked")
    absent = content_id("absent")
    _refuses(UnknownRecordError, lambda: store.vectors([absent]), "an id that it does not hold")

    _check_search(store, ids, vectors)
    with_word = {id for id, _ in store.search_text("apple", 9)}
    _require(with_word == set(ids[:2]), "finds points by a word they have")
    _require(_ids_of(store.search_text("apple", 9, exclude=ids[:1])) == [ids[1]], "excludes among words too")

    store.upsert(ids[:1], vectors[2:], ["a blue plum"], [{"document_id": "d3"}])
    _require(store.count() == 3, "replaces a point that is there")
    first_id, _ = store.search_text("plum", 9)[0]
    _require(first_id == ids[0], "finds a replaced point by its new text")

    store.delete(ids)
    is_empty = store.count() == 0 and store.search(vectors[:1], 9) == [[]]
    _require(is_empty, "forgets what is deleted")


def _check_search(store: VectorStore, ids: Sequence[str], vectors: Vectors) -> None:
    """Search between the first two points, nearer to the first."""
    query: Vectors = vectors[:1] * np.float32(0.8) + vectors[1:2] * np.float32(0.6)

    [nearest] = store.search(query, 2)
    cosines = [score for _, score in nearest]
    _require(_ids_of(nearest) == ids[:2], "finds the nearest points, best first")
    _require(bool(np.allclose(cosines, [0.8, 0.6], atol=1e-4)), "scores by the cosine")

    [all_points] = store.search(query, 99)
    _require(len(all_points) == 3, "gives what there is where more is asked for")
    _require(store.search(vectors[:0], 2) == [], "takes no vectors at all")

    [without_first] = store.search(query, 2, exclude=ids[:1])
    _require(_ids_of(without_first) == ids[1:], "leaves out the excluded")

    for document_id in ("d2", ["d2", "d9"]):
        [of_document] = store.search(query, 9, filters={"document_id": document_id})
        _require(set(_ids_of(of_document)) == set(ids[1:]), "keeps to its filters")


def _ids_of(hits: Sequence[tuple[str, float]]) -> list[str]:
    return [id for id, _ in hits]


def check_engine(lm: dspy.BaseLM) -> None:
    """Check that a model works with the stages of kraq.

    The synchronous and the asynchronous form of the model must give the same answer. Each thread must get the answer
    to its own request. A copy of the model must work, too. Pass a model that gives the same answer to the same
    request (temperature 0), in DSPy's chat format.

    >>> check_engine(dspy.LM("openai/gpt-4o-mini", temperature=0))  # doctest: +SKIP
    """
    step = dspy.Predict("question -> answer")

    def ask(question: str) -> str:
        with dspy.context(lm=lm):
            return str(step(question=question).answer)

    async def awaited(questions: Sequence[str]) -> list[str]:
        with dspy.context(lm=lm):
            predictions = await asyncio.gather(*(step.acall(question=question) for question in questions))
            return [prediction.answer for prediction in predictions]

    questions = [f"What is {number} and {number}?" for number in range(4)]
    expected = [ask(question) for question in questions]
    _require(all(expected), "answers every question")
    _require([ask(question) for question in questions] == expected, "answers the same request alike")
    _require(run_coroutine(awaited(questions)) == expected, "answers alike asynchronously")
    with ThreadPoolExecutor(THREADS) as pool:
        at_once = list(pool.map(lambda question: copy_context().run(ask, question), questions * THREADS))
    _require(at_once == expected * THREADS, "keeps the requests of threads apart")
    own = dspy.Predict("question -> answer")
    own.set_lm(lm)
    _require(str(copy.deepcopy(own)(question=questions[0]).answer) == expected[0], "answers in a copy of its program")


def check_program(program: dspy.Module, question: str) -> None:
    """Check that a program keeps the contract on which `Workspace`, tables and optimizers rely.

    Args:
        program: the program. Run the check inside `dspy.context(lm=...)`, with a model that gives the same answer
            each time.
        question: a question that the program can answer.

    Raises:
        BrokenContractError: says what is broken.

    >>> with dspy.context(lm=dspy.LM("openai/gpt-4o-mini", temperature=0)):  # doctest: +SKIP
    ...     check_program(MyProgram(), "Where did Ada live?")
    """
    before = dict(vars(program))
    prediction = program(question=question)
    _require(isinstance(prediction.get("answer"), str), "returns a prediction with `answer`, a text")
    hits = prediction.get("hits")
    _require(
        isinstance(hits, list | tuple) and all(isinstance(hit, Hit) for hit in hits),
        "returns a prediction with `hits`, its evidence (kraq_dspy.extend.Hit)",
    )
    changed = {name for name, value in vars(program).items() if name not in before or before[name] is not value}
    _require(not changed - {"history"}, f"does not change itself while it answers (it changed {sorted(changed)})")
    _require(type(program).__call__ is dspy.Module.__call__, "leaves `__call__` to dspy.Module")
    asynchronously = run_coroutine(call(program, question=question))
    _require(asynchronously.answer == prediction.answer, "answers alike asynchronously")
    _require(program.deepcopy()(question=question).answer == prediction.answer, "answers alike in a copy")
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state.json"
        program.save(state)
        fresh = program.deepcopy()
        fresh.load(state)

    names = [name for name, _ in program.named_predictors()]
    _require([name for name, _ in fresh.named_predictors()] == names, "loads what it saved")
    _require(fresh(question=question).answer == prediction.answer, "answers alike after it was loaded")


@dataclass(frozen=True)
class ScopeReport:
    """The number of outputs and prompts that `check_scope` examined.

    Attributes:
        outputs: the number of outputs examined: answers, hits, records and other results.
        prompts: the number of prompts examined.
        left_out: the programs and retrievers that could not run, each with the reason.
    """

    outputs: int
    prompts: int
    left_out: Mapping[str, str]


def check_scope(
    space: Workspace,
    scope: Scope,
    secrets: Collection[str],
    questions: Sequence[str],
    *,
    programs: Sequence[str] | None = None,
    retrievers: Sequence[str] | None = None,
) -> ScopeReport:
    """Check that no output and no prompt contains text from documents that a scope may not read.

    Args:
        space: the open index, with the models that the programs use.
        scope: the scope.
        secrets: words and names that occur only in documents that the scope may not read. Letter case does not count.
        questions: questions about the forbidden documents, without the secrets.
        programs: names of programs; by default all of this library.
        retrievers: names of retrievers; by default all of this library.

    Returns:
        The number of examined outputs and prompts, and what could not run.

    Raises:
        BrokenContractError: says where a secret came out.
        ValueError: if the documents of the owner contain none of the secrets.

    The check reads every field of each prediction, the text of errors, prompts, starters, and every record and file
    of the view.

        def test_the_board_s_papers_stay_with_the_board() -> None:
            with kraq.Workspace.open("docs.kraq") as space:
                check_scope(space, Scope(["staff"]), ["Project Nightingale"], ["What will be built next year?"])
    """
    watcher = _PromptWatcher()
    with space.scoped(Scope.everything()) as owner:
        texts = "\n".join(map(_all_of, owner.index.all(Document))).casefold()
    if not secrets or not all(secret.casefold() in texts for secret in secrets):
        raise ValueError("Some of the secrets stand in no document of the index; expected words of documents.")

    program_names = list(PROGRAMS.own) if programs is None else programs
    retriever_names = list(RETRIEVERS.own) if retrievers is None else retrievers
    callbacks = [*dspy.settings.callbacks, watcher]
    with space.scoped(scope) as scoped, dspy.context(callbacks=callbacks):
        looked = _Looked(secrets)
        _look_at_view(scoped, looked)
        for name, question in product(retriever_names, questions):
            if RETRIEVERS[name].argument:  # a cross-encoder's model would have to be named
                continue
            looked.at_what_comes_of(f"the retriever {name!r}", lambda: scoped.retriever(name)(question, 10))  # noqa: B023
            for program in program_names:
                takes_retriever = choose_program(program).takes_retriever
                if not takes_retriever and name != "dense":  # those that take none are asked once
                    continue
                over = name if takes_retriever else None
                looked.at_what_comes_of(
                    f"the program {program!r} over {name!r}",
                    lambda: scoped.ask(question, scoped.program(program, over)),  # noqa: B023
                )
        for prompt in watcher.prompts:
            looked.at(prompt, "a prompt")
    return ScopeReport(looked.count - len(watcher.prompts), len(watcher.prompts), looked.left_out)


def _look_at_view(scoped: Workspace, looked: "_Looked") -> None:
    """Look at the files and the records of a view, and at the questions that it suggests."""
    for path in scoped.index.path.rglob("*"):
        if path.is_file():
            text = path.read_bytes().decode("utf-8", "replace")
            looked.at(text, f"the file {path.name} of the view")
    for kind in TABLES:
        records: Iterable[object] = scoped.index.all(kind)
        for record in records:
            looked.at(_all_of(record), f"a {kind.__name__} of the view")
    looked.at(_all_of(scoped.starters()), "the starters")


class _PromptWatcher(BaseCallback):
    """Keeps every prompt that a model is sent, whichever it is."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def on_lm_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        self.prompts.append(repr(inputs))


class _Looked:
    """Looks for secrets in what comes out."""

    def __init__(self, secrets: Collection[str]) -> None:
        self._secrets = re.compile("|".join(sorted(map(re.escape, secrets), key=len, reverse=True)), re.IGNORECASE)
        self.count = 0
        self.left_out: dict[str, str] = {}

    def at(self, text: str, where: str) -> None:
        self.count += 1
        if secret := self._secrets.search(text):
            raise BrokenContractError(f"A scope lets nothing out; {where} holds {secret[0]!r}.")

    def at_what_comes_of(self, name: str, work: Callable[[], object]) -> None:
        """The outcome, or the text of the error that it ends with."""
        try:
            self.at(_all_of(work()), name)
        except KraqError as error:
            self.at(str(error), f"an error of {name}")
            self.left_out[name] = str(error)


def _all_of(value: Any) -> str:
    """All text in records, predictions and lists of these."""
    if isinstance(value, dspy.Prediction):
        return _all_of(value.toDict())
    if is_dataclass(value) and not isinstance(value, type):
        return _all_of({each.name: getattr(value, each.name) for each in fields(value)})
    if isinstance(value, Mapping):
        return " ".join(f"{name} {_all_of(each)}" for name, each in value.items())
    if isinstance(value, list | tuple | set | frozenset):
        return " ".join(map(_all_of, value))
    return str(value)


def _check_hits(retriever: Retriever, question: str, k: int) -> None:
    hits = retriever(question, k)
    are_hits = isinstance(hits, list) and all(isinstance(hit, Hit) for hit in hits)
    _require(are_hits, f"returns hits; it gave {hits!r:.80}")

    ids = [hit.chunk.id for hit in hits]
    _require(len(ids) <= k, f"returns at most k={k} hits; it gave {len(ids)} for {question!r}")
    _require(len(ids) == len(set(ids)), f"returns no passage twice; it gave {ids} for {question!r}")

    for query in {hit.query for hit in hits}:
        scores = [hit.score for hit in hits if hit.query == query]
        falling = all(earlier >= later for earlier, later in pairwise(scores))
        _require(falling, f"lets the scores of a query's hits fall; they are {scores} for {query!r}")

    is_repeated = _alike(retriever(question, k), hits)
    _require(is_repeated, f"gives the same answer to the same question; {question!r} got another")


def _check_left_out(retriever: Retriever, question: str, k: int) -> None:
    hits = retriever(question, k)
    _require(bool(hits), f"finds something for {question!r}, or the question shows nothing")
    best = {hit.chunk.id for hit in hits[: max(1, len(hits) // 2)]}
    rest = {hit.chunk.id for hit in retriever(question, k, exclude=best)}
    _require(not best & rest, f"leaves out what is excluded; {sorted(best & rest)} came back for {question!r}")
    document = next((hit.chunk.document_id for hit in hits if hit.chunk.document_id), None)
    if document is None:  # summaries of several documents belong to none
        return
    documents = {hit.chunk.document_id for hit in retriever(question, k, filters={"document_id": document})}
    _require(documents == {document}, f"keeps to filters; document_id={document!r} gave {sorted(documents)}")


def _alike(hits: Sequence[Hit], others: Sequence[Hit]) -> bool:
    """Whether both are the same passages by the same scores, but for an encoder's rounding in batches."""
    passages = [hit.chunk.id for hit in hits] == [hit.chunk.id for hit in others]
    return passages and np.allclose([hit.score for hit in hits], [hit.score for hit in others], rtol=1e-4, atol=1e-6)


def _require(holds: bool, promise: str) -> None:
    if not holds:
        raise BrokenContractError(f"The contract says that it {promise}.")


def _refuses(kind: type[Exception], work: Callable[[], object], what: str) -> None:
    try:
        work()
    except kind:
        return
    raise BrokenContractError(f"The contract says that {what} raises {kind.__name__}; it was accepted.")
