"""Names the kinds of questions of a test set, in the order in which they are made."""

from collections.abc import Mapping

from kraq_dspy.errors import ConfigError, did_you_mean

FACT, BRIDGE, LIST, COMPARISON = "fact", "bridge", "list", "comparison"
BROAD, UNANSWERABLE, FALSE_PREMISE = "broad", "unanswerable", "false_premise"

KINDS: Mapping[str, str] = {
    FACT: "One passage answers.",
    BRIDGE: "Two passages answer; what links them is not named.",
    LIST: "Each of several passages has an item of the answer.",
    COMPARISON: "Two things are compared, each told of in a passage of its own.",
    BROAD: "Most passages of a community have a part of the answer.",
    UNANSWERABLE: "Nothing answers, since the documents that do are hidden.",
    FALSE_PREMISE: "Nothing answers, since something is supposed of another name that no passage says of it.",
}
"""What each kind is."""

SHARES: Mapping[str, float] = {
    FACT: 0.2,
    BRIDGE: 0.2,
    LIST: 0.05,
    COMPARISON: 0.05,
    BROAD: 0.3,
    UNANSWERABLE: 0.15,
    FALSE_PREMISE: 0.05,
}
"""Of a set, if nothing else is said. What a kind cannot fill goes to those that can."""

WITHOUT_ANSWER = frozenset((UNANSWERABLE, FALSE_PREMISE))


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
