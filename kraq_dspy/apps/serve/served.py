"""Holds the indexes that are served: each open, with its programs made once and what walking it needs."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy._internal.display import shown_model
from kraq_dspy.apps.serve.atlas import Atlas
from kraq_dspy.apps.serve.refusals import RequestError
from kraq_dspy.apps.serve.testset_desk import TestsetDesk
from kraq_dspy.asset.scope import Scope
from kraq_dspy.asset.store import states
from kraq_dspy.asset.store.faq import FaqCache
from kraq_dspy.asset.store.index import Index
from kraq_dspy.errors import ConfigError, IndexLockedError, IndexStateError
from kraq_dspy.indexing.faq.sources import open_faq
from kraq_dspy.indexing.prepare.preparations import required_commands
from kraq_dspy.models.lms.meter import Price, prices_of
from kraq_dspy.ports import Retriever
from kraq_dspy.retrievers.hits import Retrieving
from kraq_dspy.retrievers.rerank import CROSS_ENCODER, names_a_model
from kraq_dspy.workspace.choices import ProgramChoice, choose_program, choose_retriever
from kraq_dspy.workspace.newest_state import UNDER_WAY, NewestState, moving_on
from kraq_dspy.workspace.registry import PROGRAMS, RETRIEVERS
from kraq_dspy.workspace.workspace import Workspace

logger = logging.getLogger(__name__)


class ServedIndex:
    """An index under its name. Safe for threads."""

    def __init__(
        self,
        name: str,
        space: Workspace | Callable[[], Workspace],
        *,
        edit: bool = False,
        desk: TestsetDesk | None = None,
    ) -> None:
        """`space` may be a function that opens it, which is called when the index is first asked. `desk` is what its
        owner reviews besides the FAQ cache."""
        self.name = name
        self.edit = edit
        self.desk = desk
        self._open = space if callable(space) else lambda: space
        self._lock = threading.Lock()
        self._opened: NewestState | None = None
        self._scoped: dict[Scope, ServedIndex] = {}
        self._left: list[tuple[float, NewestState]] = []  # of a scope, with when they were left

    @property
    def has_labels(self) -> bool:
        """Whether the documents say now who may read them."""
        return self.space.has_labels

    @property
    def _newest(self) -> NewestState:
        with self._lock:
            if self._opened is None:
                self._opened = NewestState(self._open())
            return self._opened

    def kept(self, key: Any, make: Callable[[Workspace], Any]) -> Any:
        """Do as `NewestState.kept` does."""
        return self._newest.kept(key, make)

    def scoped(self, scope: Scope) -> "ServedIndex":
        """The index as far as `scope` may read it, opened when it is first asked; itself where documents have no
        labels."""
        if not self.space.has_labels:
            return self
        with self._lock:
            if scope not in self._scoped:
                edit = self.edit and scope.is_everything
                self._scoped[scope] = ServedIndex(self.name, lambda: self.space.scoped(scope), edit=edit)
            return self._scoped[scope]

    @property
    def space(self) -> Workspace:
        """The workspace stands on the last complete state of the index."""
        return self._newest.space

    @property
    def index(self) -> Index:
        return self.space.index

    @property
    def atlas(self) -> Atlas:
        """Read anew once a build has changed the index."""
        atlas: Atlas = self.kept("atlas", lambda space: Atlas(space.index))
        return atlas

    @cached_property
    def faq(self) -> FaqCache | None:
        """None if there is none; to begin one is left to the command line."""
        return open_faq(self.index.path, write=self.edit)

    def program(
        self, name: str, retriever: str | None = None, options: Mapping[str, Any] | None = None
    ) -> tuple[ProgramChoice, dspy.Module]:
        """Made when it is first asked for. Raises RequestError for a name or an option that there is not."""
        _refuse_models(retriever, *(options or {}).values())
        try:
            choice = choose_program(name, retriever, options)
        except ConfigError as error:
            raise RequestError(422, "invalid_program", str(error)) from error

        key = (name, retriever, tuple(sorted((options or {}).items())))
        try:
            program: dspy.Module = self.kept(key, lambda space: space.make_program(choice))
        except IndexLockedError:
            raise
        except IndexStateError as error:
            commands = required_commands(name for name, _ in choice.prepared)
            if not commands:
                raise
            logger.info("%s", error)
            raise RequestError(
                409,
                "not_prepared",
                f"{name!r} needs a preparation that this index does not have: {', '.join(commands)}",
            ) from error
        return choice, program

    def retriever(self, name: str) -> Retriever:
        """Raises RequestError for a name that there is not, or one that asks a model."""
        _refuse_models(name)
        try:
            choice = choose_retriever(name)
        except ConfigError as error:
            raise RequestError(422, "invalid_retriever", str(error)) from error
        kept_retriever: Retriever = self.kept(("retriever", name), lambda space: space.make_retriever(choice))
        return kept_retriever

    @cached_property
    def prices(self) -> dict[str, Price]:
        """The prices of the models that the settings name, by their names."""
        return prices_of(self.space.models.settings)

    def require_prices(self) -> None:
        """Raises ConfigError if money is limited and a model that may be asked has no price."""
        models = self.space.models
        roles = {spec.role for spec in iter(PROGRAMS)} | {spec.role for spec in iter(RETRIEVERS)}
        roles.update(*(spec.roles.values() for spec in iter(PROGRAMS)))
        models.meter.require_prices(sorted({models.name(role) for role in roles}))

    def model_of(self, choice: ProgramChoice) -> str:
        return shown_model(self.space.models.name(choice.role))

    def move_on(self) -> None:
        """Take the newest state, and give the former ones back that no request is reading."""
        with self._lock:
            opened, scoped = self._opened, list(self._scoped.values())
        if opened is None:
            return
        closed = opened.move_on()
        for each in scoped:
            closed = each._leave() or closed
        if closed:
            states.give_back(self.space.path)

    def _leave(self) -> bool:
        """Close the view of a former state, once no request reads it; the next request opens that of the newest one.
        Whether one was closed."""
        with self._lock:
            if self._opened is not None and self._opened.is_stale:
                self._left.append((time.monotonic(), self._opened))
                self._opened = None
            opened = self._opened
            free = [each for each in self._left if not UNDER_WAY.any_before(each[0])]
            self._left = [each for each in self._left if each not in free]
        for _, state in free:
            state.close()
        return (opened is not None and opened.move_on()) or bool(free)

    def let_go(self) -> None:
        """Hold no state any more, in a process that ends at once."""
        for each in self._scoped.values():
            each.let_go()
        for state in (*(left for _, left in self._left), self._opened):
            if state is not None:
                state.let_go()

    def close(self) -> None:
        for each in self._scoped.values():
            each.close()
        for _, left in self._left:
            left.close()
        if self._opened is not None:
            self._opened.close()
        if "faq" in self.__dict__ and self.faq is not None:
            self.faq.close()


def asks_a_model(retriever: object, depth: int = 4) -> bool:
    """Whether a retriever, or one that it stands on, asks a language model."""
    if isinstance(retriever, dspy.Module):
        return bool(retriever.predictors()) or any(asks_a_model(part, depth - 1) for part in _parts(retriever, depth))
    return any(asks_a_model(part, depth - 1) for part in _parts(retriever, depth))


def _parts(retriever: object, depth: int) -> list[object]:
    """The retrievers that one holds."""
    held = vars(retriever).values() if depth and hasattr(retriever, "__dict__") else ()
    return [each for each in held if isinstance(each, dspy.Module | Retrieving)]


def _refuse_models(*values: object) -> None:
    """Raises RequestError if a request names a model to load: the server's are chosen by who starts it."""
    if names_a_model(*values):
        raise RequestError(
            403, "names_a_model", f"{CROSS_ENCODER.name!r} loads a model that the request names, which no client may."
        )


def names_of(folders: Sequence[Path]) -> list[str]:
    """A name for each: the folder's, or that of a link to it, without ".kraq", numbered if two are the same."""
    names: list[str] = []
    for folder in folders:
        stem = Path(os.path.abspath(folder)).name.removesuffix(".kraq") or "index"
        name, number = stem, 2
        while name in names:
            name, number = f"{stem}-{number}", number + 1
        names.append(name)
    return names


@contextmanager
def served(
    folders: Sequence[Path],
    opened: Callable[[Path], AbstractContextManager[Workspace]],
    *,
    edit: bool = False,
    desk: TestsetDesk | None = None,
) -> Iterator[dict[str, ServedIndex]]:
    """The folders as served indexes by name; `opened` opens one. `desk` is of the first.

    Vectors that cannot be read are refused here, and not when somebody asks. Raises KraqError.
    """
    with ExitStack() as stack:
        indexes: dict[str, ServedIndex] = {}
        for name, folder in zip(names_of(folders), folders, strict=True):
            space = stack.enter_context(opened(folder))
            if not space.has_labels and not space.index.manifest.settings.store.url:
                space.index.chunk_vectors.count()
            indexes[name] = ServedIndex(name, space, edit=edit, desk=None if indexes else desk)
            stack.callback(indexes[name].close)

        def move_on() -> None:
            for each in indexes.values():
                each.move_on()

        with moving_on(move_on):
            yield indexes
