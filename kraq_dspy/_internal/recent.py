"""Keeps what was worked out last, for those who ask for it again."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """The values of the keys that were asked for last, `size` of them at most. Safe for threads.

    >>> lengths = Recent[str, int](size=2)
    >>> lengths.of(["Ada", "Byron"], lambda names: map(len, names))
    [3, 5]
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, keys: Sequence[Key], make: Callable[[list[Key]], Iterable[Value]]) -> list[Value]:
        """Return the values in the order of `keys`. `make` is called once with those that are not known, if any, and
        outside the lock: two threads may make the same value."""
        values: dict[Key, Value] = {}
        with self._lock:
            for key in keys:
                if key in self._values:
                    self._values.move_to_end(key)
                    values[key] = self._values[key]

        missing = [key for key in dict.fromkeys(keys) if key not in values]
        if missing:
            made = dict(zip(missing, make(missing), strict=True))
            values.update(made)
            with self._lock:
                self._values.update(made)
                while len(self._values) > self._size:
                    self._values.popitem(last=False)
        return [values[key] for key in keys]

    def clear(self) -> None:
        with self._lock:
            self._values.clear()
