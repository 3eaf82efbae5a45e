"""Keeps numpy's products to one thread of BLAS, so that a question costs the same from whichever thread it is asked.

A BLAS library starts one thread for each core, and those wait for work busily. A question's products are too small to
gain by that; in a thread of its own, beside others, a question then took 400 ms of processor time instead of 26.
"""

import threading
from contextlib import ContextDecorator
from functools import cached_property
from typing import Any

from numpy.typing import NDArray
from threadpoolctl import OpenBLASController, ThreadpoolController

_OF_THE_PROCESS = ("openblas", "blis")
"""Libraries whose limit is that of the whole process; others (MKL) have one for each thread."""

_LARGE = 10**8
"""Multiplications; below, one core makes a product in some milliseconds."""


class OneBlasThread(ContextDecorator):
    """Limits BLAS to one thread while any thread of this process is inside; afterwards it has as many as before.

    >>> import numpy as np
    >>> with ONE_BLAS_THREAD:
    ...     float(np.ones(3) @ np.ones(3))
    3.0

    It may be entered from several threads at once, and twice from one; it also decorates a function. Enter it for
    arithmetic alone, never while a model is asked: all other products of the process have one thread meanwhile.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._limit: Any = None
        self._of_thread = threading.local()

    def __enter__(self) -> "OneBlasThread":
        of_process, of_thread = self._libraries

        with self._lock:
            if not self._inside:
                _take_control()
                self._limit = of_process.limit(limits=1, user_api="blas")
            self._inside += 1

        self._limits_of_thread.append(of_thread.limit(limits=1, user_api="blas"))
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._limits_of_thread.pop().restore_original_limits()

        with self._lock:
            self._inside -= 1
            if not self._inside:
                _take_control()
                self._limit.restore_original_limits()
                _take_control()

    @cached_property
    def _libraries(self) -> tuple[Any, Any]:
        """Those with a limit for the process and those with one for each thread."""
        controller = ThreadpoolController()
        others = {library.internal_api for library in controller.lib_controllers} - set(_OF_THE_PROCESS)
        return controller.select(internal_api=list(_OF_THE_PROCESS)), controller.select(internal_api=sorted(others))

    @property
    def _limits_of_thread(self) -> list[Any]:
        """The limits of the calling thread, the last one entered last."""
        if not hasattr(self._of_thread, "limits"):
            self._of_thread.limits = []
        limits: list[Any] = self._of_thread.limits
        return limits


def _take_control() -> None:
    """Let the calling thread set the limit of OpenBLAS.

    From threadpoolctl 3.8 on, the first thread that sets it keeps that right, and what any other thread sets is
    silently ignored.
    """
    clear = getattr(OpenBLASController, "clear_controlling_thread", None)
    if clear is not None:
        clear(force=True)


ONE_BLAS_THREAD = OneBlasThread()
"""Of this process, since the limit is."""


def product(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """`left @ right` of arrays with one or two axes: by one thread, or by all if there is much to multiply.

    >>> import numpy as np
    >>> product(np.array([[1, 2], [3, 4]]), np.array([1, 1])).tolist()
    [3, 7]
    """
    columns = right.shape[1] if right.ndim == 2 else 1
    if left.size * columns > _LARGE:
        return left @ right  # type: ignore[no-any-return]
    with ONE_BLAS_THREAD:
        return left @ right  # type: ignore[no-any-return]
