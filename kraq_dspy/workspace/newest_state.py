"""Follows an index to its last complete state, for a process that stays open while others change the index."""

import logging
import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from kraq_dspy.asset.store.manifest import MANIFEST
from kraq_dspy.errors import KraqError

if TYPE_CHECKING:
    from kraq_dspy.workspace.workspace import Workspace

logger = logging.getLogger(__name__)


class NewestState:
    """The workspace to use at the time. Safe for threads.

    `begin` is called with every newer workspace before anybody gets it: what was read from the one before is to be
    forgotten then. A state that cannot be read is logged, and what was there before is used until the next one.
    """

    def __init__(self, space: "Workspace", begin: "Callable[[Workspace], None]") -> None:
        self._path = space.index.path
        self._former = self._space = space
        self._begin = begin
        self._renewing = threading.Lock()
        self._read_at = 0
        self._read_at = self.version
        begin(space)

    @property
    def space(self) -> "Workspace":
        """The one before stays open for what is under way."""
        if self.version != self._read_at:
            with self._renewing:
                if (version := self.version) != self._read_at:
                    try:
                        newer = self._space.newest()
                    except KraqError as error:
                        logger.error("The index cannot be read after a change; the state before is used: %s", error)
                    else:
                        if self._former is not self._space:
                            self._former.close()
                        self._former, self._space = self._space, newer
                        self._begin(newer)
                    self._read_at = version
        return self._space

    @property
    def version(self) -> int:
        """Changes when a build has changed the index."""
        try:
            return os.stat(self._path / MANIFEST).st_mtime_ns
        except OSError:  # it is just being replaced, or was deleted under us: what was read stays
            return self._read_at

    def close(self) -> None:
        for space in (self._former, self._space):
            space.close()
