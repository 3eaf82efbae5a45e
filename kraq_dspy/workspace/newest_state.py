"""Follows an index to its last complete state, for a process that stays open while others change the index."""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kraq_dspy._internal.recent import Recent
from kraq_dspy.asset.store.manifest import MANIFEST
from kraq_dspy.errors import KraqError
from kraq_dspy.workspace.workspace import Workspace

logger = logging.getLogger(__name__)


KEPT = 24  # things that were made of a state and stay, the last used


class UnderWay:
    """The requests that a server is answering, by when they began. Safe for threads."""

    def __init__(self) -> None:
        self._begun: dict[object, float] = {}

    @contextmanager
    def one(self) -> Iterator[None]:
        """A request, from its beginning to its end."""
        key = object()
        self._begun[key] = time.monotonic()
        try:
            yield
        finally:
            del self._begun[key]

    def any_before(self, moment: float) -> bool:
        """Whether one is under way that began before the moment (`time.monotonic`)."""
        return any(begun <= moment for begun in list(self._begun.values()))


UNDER_WAY = UnderWay()
"""Of this process."""


@contextmanager
def moving_on(move_on: Callable[[], None], every_s: float = 1.0) -> Iterator[None]:
    """Within the block, `move_on` is called again and again, in a thread: a former state goes although nobody asks."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(every_s):
            try:
                move_on()
            except Exception:
                logger.exception("kraq cannot give a former state back, and tries again")

    thread = threading.Thread(target=run, name="moving-on", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


class NewestState:
    """The workspace to use at the time, and what was made of it. Safe for threads.

    A state that cannot be read is logged, and what was there before is used until the next one.
    """

    def __init__(self, space: Workspace) -> None:
        self._path = space.path
        self._space = space
        self._former: list[tuple[float, Workspace]] = []  # with when they were left
        self._made = Recent[Any, Any](KEPT)
        self._renewing = threading.Lock()
        self._read_at = 0
        self._read_at = self.version

    @property
    def space(self) -> Workspace:
        """The one before stays open for what is under way."""
        if self.version != self._read_at:
            with self._renewing:
                if (version := self.version) != self._read_at:
                    try:
                        newer = self._space.newest()
                    except KraqError as error:
                        logger.error("kraq cannot read the index after a change, and uses the state before: %s", error)
                    else:
                        if newer.has_labels and not self._space.has_labels:
                            logger.error(
                                "The documents of %s say now who may read them. Nobody is answered without a scope: "
                                "start again with --scope LABEL, --owner or a file of tokens with labels.",
                                self._path,
                            )
                        left, self._former = self._former, [(time.monotonic(), self._space)]
                        self._space, self._made = newer, Recent(KEPT)
                        for _, former in left:
                            former.close()
                    self._read_at = version
        return self._space

    def kept(self, key: Any, make: Callable[[Workspace], Any]) -> Any:
        """Return what `make` makes of the workspace, until there is a newer one; made twice if
        two ask at the same time."""
        _ = self.space  # made newer, if it can be
        made, space = self._made, self._space  # in this order: nothing older stands among what is newer
        [value] = made.of([key], lambda _: [make(space)])
        return value

    @property
    def version(self) -> int:
        """Changes when a build has changed the index."""
        try:
            return os.stat(self._path / MANIFEST).st_mtime_ns
        except OSError:  # it is just being replaced, or was deleted under us: what was read stays
            return self._read_at

    @property
    def is_stale(self) -> bool:
        """Whether a build has changed the index since it was read."""
        return self.version != self._read_at

    def move_on(self) -> bool:
        """Take the newest state, and close former ones that no request is reading any more; whether one was closed."""
        _ = self.space
        with self._renewing:
            free = [each for each in self._former if not UNDER_WAY.any_before(each[0])]
            self._former = [each for each in self._former if each not in free]
        for _, former in free:
            former.close()
        return bool(free)

    def let_go(self) -> None:
        """Hold no state any more, in a process that ends at once, without closing what threads may still read."""
        for space in (*(former for _, former in self._former), self._space):
            space.let_go()

    def close(self) -> None:
        for space in (*(former for _, former in self._former), self._space):
            space.close()
