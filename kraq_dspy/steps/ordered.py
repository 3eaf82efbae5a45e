"""Hands on items of a stage in an order: each once those that it is made from have come to their end."""

import heapq
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping

from kraq_dspy.steps.direct import Item


class OrderedItems(Iterator[Item]):
    """`make(id)` for each id of `after`, which says which other ids go before it; of those that may go, the first.

    An item is made when it is drawn. There may be none to draw now and some later: who maps says with `ended` what is
    done or has failed, once its outcome is handed on. Ids that are not in `after` are waited for by nobody.
    """

    def __init__(self, after: Mapping[str, Collection[str]], make: Callable[[str], Item]) -> None:
        self._make = make
        self._order = list(after)
        place = {id: number for number, id in enumerate(self._order)}
        self._left = {id: len({one for one in before if one in place}) for id, before in after.items()}
        self._next: defaultdict[str, list[str]] = defaultdict(list)
        for id, before in after.items():
            for one in set(before) & place.keys():
                self._next[one].append(id)
        self._place = place
        self._ready = [place[id] for id, left in self._left.items() if not left]  # a heap, since it is sorted

    def __next__(self) -> Item:
        if not self._ready:
            raise StopIteration
        return self._make(self._order[heapq.heappop(self._ready)])

    def ended(self, item: Item) -> None:
        for id in self._next.pop(item.id, ()):
            self._left[id] -= 1
            if not self._left[id]:
                heapq.heappush(self._ready, self._place[id])
