"""Lets callers of a language model meet this library's errors as themselves."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import dspy
from dspy.utils.exceptions import LMUnexpectedError

from kraq_dspy.errors import KraqError
from kraq_dspy.models.lms.engines.engine import AsyncEngine


class KraqLM(dspy.LM):
    """A `dspy.LM` whose callers meet this library's errors as themselves.

    DSPy wraps what an engine raises into LMUnexpectedError; a spent budget or a server that is down must not look like
    a failure of one call.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        with self.around_call():
            return super().__call__(*args, **kwargs)

    @property
    def async_engine(self) -> AsyncEngine:
        """The twin of `engine` for `acall`."""
        twin: AsyncEngine = self._async_engine_spec
        return twin

    async def acall(self, *args: Any, **kwargs: Any) -> Any:
        with self.around_call():
            return await super().acall(*args, **kwargs)

    def around_call(self) -> AbstractContextManager[None]:
        """What a call happens in, whichever of the two forms it has."""
        return own_errors()


@contextmanager
def own_errors() -> Iterator[None]:
    """Errors of this library that DSPy wraps in the block are raised as themselves."""
    try:
        yield
    except LMUnexpectedError as error:
        cause = error.__cause__
        if isinstance(cause, KraqError):
            raise cause from cause.__cause__
        raise
