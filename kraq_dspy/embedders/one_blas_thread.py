"""Keeps numpy's matrix products to one thread for a while: where other work has the cores, several wait for each other.

A question is encoded in the same time by one thread as by two; with every core busy, two took nineteen times as long.
"""

import threading
from functools import cached_property
from typing import Any

from threadpoolctl import ThreadpoolController


class OneBlasThread:
    """A context that any number of threads may be in: the first sets the limit, the last gives back what was before.

    OpenBLAS 0.3.31 does not always let one thread give back what another has set; then its limit stays at one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limiter: Any = None

    @cached_property
    def _libraries(self) -> Any:
        return ThreadpoolController()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._limiter = self._libraries.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *exc_info: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._limiter.restore_original_limits()


ONE_BLAS_THREAD = OneBlasThread()
"""Of this process, since the limit is."""
