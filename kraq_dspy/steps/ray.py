"""Maps steps on a Ray cluster: the driver looks up and keeps, actors of Ray Data ask the models."""

import asyncio
import dataclasses
import json
import logging
import math
import os
import socket
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator, Iterable, Iterator, Mapping
from typing import Any, TypeVar, cast

import dspy
import pyarrow as pa

from kraq_dspy import errors
from kraq_dspy.asset.store.results import ResultStore
from kraq_dspy.errors import ConfigError, KraqError, needs
from kraq_dspy.models.lms.kraq_lm import KraqLM
from kraq_dspy.models.lms.local_models import with_adapter
from kraq_dspy.models.lms.meter import Answer, TappedJournal
from kraq_dspy.models.lms.roles import LanguageModels, configured_lm, make_lm
from kraq_dspy.ports import Progress
from kraq_dspy.records import Usage
from kraq_dspy.settings import RoleSettings
from kraq_dspy.steps.bounded import bounded_map
from kraq_dspy.steps.direct import Done, Item, Items, limit_of, lm_of, when_ended
from kraq_dspy.steps.failures import StageFailures
from kraq_dspy.steps.kept import StageResults, StoredSteps, encoded, reason_of, run_program

logger = logging.getLogger(__name__)

R = TypeVar("R")

CALLS = 16  # items at work in one actor, more where processors are few
BLOCK = 8  # items that travel together: they come back, and are kept, once the last of them is done
WAVE = 20_000  # items that the driver holds in memory at once


class RaySteps(StoredSteps):
    """`StoredSteps` whose missing items are worked on by a Ray cluster.

    Items go out and outcomes come back as JSON, the program as its state. An actor builds the model of the role itself,
    from settings that hold no key: keys are read from the environment of the machine that it runs on. The driver alone
    writes the index, a block of items at a time, so one that was killed pays again for the blocks in flight: about
    twice `concurrency` items. An actor or a machine that is lost costs its blocks another try.

    `concurrency` is that of the whole cluster; there is an actor for each 16 of it, as far as there are processors.
    A limit of the meter is checked as outcomes come in, so it may be exceeded by what is in flight.

    `address` is that of `ray.init`; None takes the cluster of this process, else that of RAY_ADDRESS, else starts one
    on this machine. Nothing is started before an item is missing. Raises MissingExtraError without the package.
    """

    def __init__(
        self,
        results: ResultStore,
        models: LanguageModels,
        progress: Progress,
        concurrency: int,
        address: str | None = None,
    ) -> None:
        require_ray()
        super().__init__(results, models, progress, concurrency)
        self.address = address
        self._own_connection = False
        self._running: Generator[pa.Table, None, None] | None = None

    async def map(
        self, stage: str, role: str, program: dspy.Module, items: Items, *, total: int | None = None
    ) -> AsyncIterator[Done]:
        if self.models.given(role) or configured_lm():
            raise ConfigError(
                f"The model {self.models.name(role)!r} is an object of this process, and a cluster cannot be sent one: "
                "name the model of the role in the settings (kraq.toml)."
            )

        settings = with_adapter(self.models.settings.role(role))
        model, max_tokens = _model_of(program, settings)
        keeper = StageResults(self.results, stage, program, model, max_tokens)
        failures = StageFailures(stage, f"items of the stage {stage!r}", model=model)
        if total is not None:
            self.progress.start(stage, total)
        tell_ended = when_ended(items)
        sent: dict[str, Item] = {}
        waiting = iter([item async for item in items] if isinstance(items, AsyncIterable) else items)
        while True:
            missing: list[dict[str, str]] = []
            for item in waiting:
                stored = keeper.find(item)
                if stored is None:
                    sent[item.id] = item
                    missing.append({"item": json.dumps([item.id, keeper.fingerprint(item), dict(item.inputs)])})
                    if len(missing) == WAVE:
                        break
                    continue
                failures.succeed()
                self.progress.advance(stage)
                yield stored
                tell_ended(item)

            if not missing:
                break

            try:
                async for rows in self._outcomes(missing, Actor.arguments(stage, settings, program)):
                    for done in self._keep(keeper, failures, stage, rows, sent):
                        yield done
                    for row in rows:
                        tell_ended(sent.pop(row["id"]))
            finally:
                self._stop()
        failures.check_end()

    async def _outcomes(self, missing: list[dict[str, str]], arguments: tuple[Any, ...]) -> AsyncIterator[list[Any]]:
        """The outcomes, block by block as they come."""
        blocks = self._running = await _in_thread(self._dispatched, missing, arguments)
        while (block := await _in_thread(next, blocks, None)) is not None:
            yield [json.loads(row) for row in block["outcome"].to_pylist()]

    def _dispatched(self, missing: list[dict[str, str]], arguments: tuple[Any, ...]) -> Generator[pa.Table, None, None]:
        import ray

        self._connect()
        processors = int(ray.cluster_resources().get("CPU", 1))
        actors = max(1, min(processors, math.ceil(min(self.concurrency, len(missing)) / CALLS)))
        logger.info("%d items go to %d actors", len(missing), actors)
        calls = math.ceil(self.concurrency / actors)
        blocks = math.ceil(2 * calls / BLOCK)  # in an actor's hands: a block that waits for its last item idles nobody
        items = ray.data.from_items(missing, override_num_blocks=math.ceil(len(missing) / BLOCK))
        outcomes = items.map_batches(
            Actor,
            fn_constructor_args=(*arguments, calls),
            batch_size=None,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(
                size=actors, max_tasks_in_flight_per_actor=blocks, max_concurrent_calls_per_actor=blocks
            ),
            num_cpus=1,
        )
        returned = outcomes.iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0)
        return cast(Generator[pa.Table, None, None], iter(returned))

    def _stop(self) -> None:
        """Stop, whatever the actors still do: nobody waits for it."""
        if self._running is not None:
            self._running.close()
            self._running = None

    def _keep(
        self,
        keeper: StageResults,
        failures: StageFailures,
        stage: str,
        rows: Iterable[dict[str, Any]],
        sent: Mapping[str, Item],
    ) -> Iterator[Done]:
        """Commits every outcome of a block, then raises what ends the run, if anything does."""
        journal = TappedJournal(self.tell, self.results)
        paid: list[tuple[str, Usage]] = []
        end: KraqError | None = None
        for row in rows:
            for answer in row["answers"]:
                usage = Usage(**answer.pop("usage"))
                journal.remember(**answer, usage=usage)
                paid.append((answer["model"], usage))

            if "end" in row:
                end = end or _as_it_was_raised(*row["end"])
                continue

            self.progress.advance(stage)
            if row["output"] is None:
                keeper.fail(row["id"], row["reason"])
                item = sent[row["id"]]
                failures.add(item.name or item.id, row["reason"], item.document)
                continue
            keeper.save(row["id"], row["fingerprint"], row["output"], row["flaws"])
            failures.succeed()
            yield keeper.done(row["id"], row["output"])

        if end is not None:
            raise end
        for name, usage in paid:
            with self.models.meter.call(stage, name, usage.prompt_tokens) as call:
                call.usage = usage

    def _connect(self) -> None:
        import ray

        ray.data.DataContext.get_current().enable_progress_bars = False  # the run has its own
        logging.getLogger("ray.data").setLevel(logging.ERROR)
        if ray.is_initialized():
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a cluster of ours does not report to Ray's makers
        try:
            _check_reachable(self.address)
            ray.init(address=self.address, log_to_driver=False, logging_level=logging.ERROR)
        except (OSError, ValueError, RuntimeError) as error:
            raise ConfigError(
                f"There is no Ray cluster at {self.address or 'the address of RAY_ADDRESS'}: {error} Start one with "
                "`ray start --head`, set run.ray_address, or leave it out to work on this machine."
            ) from error
        self._own_connection = True

    def close(self) -> None:
        """Leave the cluster; one that was started here ends. One that the caller had joined is left alone."""
        self._stop()
        if self._own_connection:
            import ray

            ray.shutdown()
            self._own_connection = False


class Actor:
    """Works on blocks of items, `calls` items at once over all blocks in its hands. Made by Ray, one process each."""

    def __init__(
        self, stage: str, role: dict[str, Any], program: dspy.Module, state: dict[str, Any], calls: int
    ) -> None:
        self.stage = stage
        self.role = RoleSettings(**role)
        self.program = program
        self.state = state
        self.slots = asyncio.Semaphore(calls)
        self._lm: KraqLM | None = None

    @staticmethod
    def arguments(stage: str, role: RoleSettings, program: dspy.Module) -> tuple[Any, ...]:
        """Return what an actor needs to run the program as it is now, `calls` left out."""
        bare = program.deepcopy()
        bare.set_lm(None)  # models hold connections and keys; their settings travel with the state
        return stage, dataclasses.asdict(role), bare, program.dump_state()

    async def __call__(self, block: pa.Table) -> AsyncIterator[pa.Table]:
        items = [json.loads(item) for item in block["item"].to_pylist()]
        outcomes = [json.dumps(row) async for row in bounded_map(self._work, items, len(items))]
        yield pa.table({"outcome": outcomes})

    async def _work(self, item: tuple[str, str, dict[str, Any]]) -> dict[str, Any]:
        item_id, fingerprint, inputs = item
        row: dict[str, Any] = {"id": item_id, "output": None, "fingerprint": fingerprint}
        answers: list[Answer] = []

        async with self.slots:
            try:
                prediction = await run_program(
                    self.program, self._ready(), self.stage, item_id, inputs, TappedJournal(answers.append)
                )
                row["output"] = encoded(self.program, prediction)
                row["flaws"] = prediction.get("flaws", ())
            except KraqError as error:  # ends the run, but not before the driver has what is done
                row["end"] = [type(error).__name__, str(error)]
            except Exception as error:  # noqa: BLE001 (costs its item; the driver keeps the reason)
                row["reason"] = reason_of(error)

        return row | {"answers": [dataclasses.asdict(answer) for answer in answers]}

    def _ready(self) -> KraqLM:
        """The model of the role; with the first call, so that what is missing here is told as an item's outcome."""
        if self._lm is None:
            self.program.load_state(self.state, allow_unsafe_lm_state=True)
            self._lm = make_lm(self.role)
        return self._lm


def require_ray() -> None:
    """Raises MissingExtraError."""
    with needs("ray", "ray", "Indexing on a cluster"):
        import ray.data  # noqa: F401


async def _in_thread(call: Callable[..., R], *arguments: Any) -> R:
    """`asyncio.to_thread`, but a cancelled caller waits for the thread as well.

    One that was left in Ray's hands would start another cluster once ours is gone.
    """
    thread = asyncio.ensure_future(asyncio.to_thread(call, *arguments))
    try:
        return await asyncio.shield(thread)
    except asyncio.CancelledError:
        await asyncio.gather(thread, return_exceptions=True)
        raise


def _check_reachable(address: str | None) -> None:
    """Raises OSError if nothing listens at HOST:PORT; Ray itself would try for minutes."""
    host, _, port = (address or "").rpartition(":")
    if host:
        socket.create_connection((host, int(port)), timeout=10).close()


def _as_it_was_raised(kind: str, message: str) -> KraqError:
    """The error of an actor, of the class that it had there; `__new__` because some make their message themselves."""
    raised = getattr(errors, kind, KraqError)
    error: KraqError = raised.__new__(raised, message)
    return error


def _model_of(program: dspy.Module, settings: RoleSettings) -> tuple[str, int | None]:
    """The name of the model that a program asks, its own or the role's, and the most tokens of a reply.

    The role's model is not made here, since its key may be on other machines.
    """
    with dspy.context(lm=None):
        own = lm_of(program)
    if own is None:
        return settings.model, settings.max_tokens
    return str(own.model), limit_of(own)
