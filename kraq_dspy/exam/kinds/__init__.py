"""Lists the kinds of questions of a test set, in the order in which they are made; each is declared in a file."""

from collections.abc import Mapping

from kraq_dspy.errors import ConfigError, did_you_mean
from kraq_dspy.exam.kinds.bridge import Bridge
from kraq_dspy.exam.kinds.broad import Broad
from kraq_dspy.exam.kinds.comparison import Comparison
from kraq_dspy.exam.kinds.fact import Fact
from kraq_dspy.exam.kinds.false_premise import FalsePremise
from kraq_dspy.exam.kinds.kind import Kind
from kraq_dspy.exam.kinds.list_of import ListOf
from kraq_dspy.exam.kinds.unanswerable import Unanswerable

FACT, BRIDGE, LIST, COMPARISON = Fact.name, Bridge.name, ListOf.name, Comparison.name
BROAD, UNANSWERABLE, FALSE_PREMISE = Broad.name, Unanswerable.name, FalsePremise.name

KINDS: Mapping[str, Kind] = {
    kind.name: kind for kind in (Fact(), Bridge(), ListOf(), Comparison(), Broad(), Unanswerable(), FalsePremise())
}
"""Each kind by its name."""

SHARES: Mapping[str, float] = {name: kind.share for name, kind in KINDS.items()}
"""Of a set, if nothing else is said. What a kind cannot fill goes to those that can."""

WITHOUT_ANSWER = frozenset(name for name, kind in KINDS.items() if not kind.has_answer)


def read_shares(words: Mapping[str, float] | None) -> dict[str, float]:
    """Shares by kind that sum to 1. Raises ConfigError for an unknown kind, and if none has a share.

    >>> read_shares({"fact": 3, "bridge": 1})
    {'fact': 0.75, 'bridge': 0.25}
    """
    shares = dict(SHARES if words is None else words)
    for kind, share in shares.items():
        if kind not in KINDS:
            raise ConfigError(f"There is no kind {kind!r}{did_you_mean(kind, KINDS)}; there are: {', '.join(KINDS)}.")
        if share < 0:
            raise ConfigError(f"The share of {kind!r} is {share}; expected 0 or more.")

    total = sum(shares.values())
    if not total:
        raise ConfigError("No kind has a share; expected at least one above 0.")
    return {kind: share / total for kind, share in shares.items() if share}
