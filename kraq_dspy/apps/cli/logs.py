"""Sets up what `kraq` logs, to standard error."""

import logging
import sys


class _StandardError(logging.Handler):
    """Writes to what standard error is at the time."""

    def emit(self, record: logging.LogRecord) -> None:
        print(self.format(record), file=sys.stderr, flush=True)


_handler = _StandardError()
_handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))


def set_up_logs(*, verbose: bool) -> None:
    logging.getLogger().addHandler(_handler)  # once, however often it is said
    logging.getLogger().setLevel(logging.INFO if verbose else logging.ERROR)
    for talkative in ("httpx", "httpcore", "urllib3"):
        logging.getLogger(talkative).setLevel(logging.WARNING)
    # Whoever has several servers wants to know that one is gone.
    logging.getLogger("kraq_dspy.models.lms.transport").setLevel(logging.NOTSET if verbose else logging.WARNING)
    # Whoever brings an index up to date with the wrong corpus wants to know it before documents go.
    logging.getLogger("kraq_dspy.indexing.index.build").setLevel(logging.NOTSET if verbose else logging.WARNING)
    # A small model's list that runs to max_tokens is kept as far as it is complete: nothing to warn of in every call.
    logging.getLogger("dspy.clients.lm").setLevel(logging.NOTSET if verbose else logging.ERROR)


def tell_what_is_cut_off() -> None:
    """A person who asks is told that a prompt was too long and went out shorter; a build has too many to tell."""
    logging.getLogger("kraq_dspy._internal.step").setLevel(logging.WARNING)
