"""Follows an index to its last complete state, for a process that stays open while others change the index."""

import logging
import os
import threading
from collections.abc import Callable
from typing import Any

from kraq_dspy.asset.store.manifest import MANIFEST
from kraq_dspy.errors import KraqError
from kraq_dspy.workspace.workspace import Workspace

logger = logging.getLogger(__name__)


KEPT = 24  # things that were made of a state and stay, the last used


class NewestState:
    """The workspace to use at the time, and what was made of it. Safe for threads.

    A state that cannot be read is logged, and what was there before is used until the next one.
    """

    def __init__(self, space: Workspace) -> None:
        self._path = space.path
        self._former = self._space = space
        self._made: dict[Any, Any] = {}
        self._renewing, self._keeping = threading.Lock(), threading.Lock()
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
                        if self._former is not self._space:
                            self._former.close()
                        self._former, self._space, self._made = self._space, newer, {}
                    self._read_at = version
        return self._space

    def kept(self, key: Any, make: Callable[[Workspace], Any]) -> Any:
        """Return what `make` makes of the workspace, until there is a newer one; made twice if
        two ask at the same time."""
        _ = self.space  # made newer, if it can be
        made, space = self._made, self._space  # in this order: nothing older stands among what is newer
        with self._keeping:
            if key in made:
                made[key] = made.pop(key)  # the last used stands last
                return made[key]

        value = make(space)
        with self._keeping:
            made[key] = value
            if len(made) > KEPT:
                made.pop(next(iter(made)))
        return value

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
