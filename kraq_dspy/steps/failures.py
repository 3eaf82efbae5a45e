"""Counts the failures of a run over many items, and ends it if nothing but failures comes."""

import logging

from kraq_dspy.errors import ModelError

logger = logging.getLogger(__name__)

GIVE_UP_AFTER = 25  # documents, or items of none, that failed without one success
OF_ONE_DOCUMENT = 200  # failures of any items without one success: a long document may be all that there is


class StageFailures:
    """Logs and counts the failures of a stage, and ends one in which nothing else happens."""

    def __init__(
        self,
        stage: str,
        items: str,
        *,
        model: str = "",
        again: str = "run the same command again: what was done is kept",
    ) -> None:
        """`items` names them in the plural, `again` is what to do once the fault is mended."""
        self._stage = stage
        self._items = items
        self._model = f" with the model {model!r}" if model else ""
        self._again = again
        self._count = 0
        self._failed: set[str] = set()  # ids of documents, or of items that belong to none
        self._succeeded = False
        self._reason = ""

    def succeed(self) -> None:
        self._succeeded = True

    def add(self, item_id: str, reason: str, document: str = "") -> None:
        """Raises ModelError when it is one too many; failures of one document count once."""
        fields = {"stage": self._stage, "item": item_id, "reason": reason}
        logger.warning("%s of %s failed: %s", self._stage, item_id, reason, extra=fields)
        self._count += 1
        self._reason = reason
        self._failed.add(document or item_id)
        too_many = len(self._failed) >= GIVE_UP_AFTER or self._count >= OF_ONE_DOCUMENT
        if too_many and not self._succeeded:
            raise self._error(f"The first {self._count}")

    def check_end(self) -> None:
        """Raises ModelError when every item failed."""
        if self._count and not self._succeeded:
            raise self._error(f"All {self._count}")

    def _error(self, which: str) -> ModelError:
        return ModelError(
            f"{which} {self._items} failed{self._model}; the last reason: {self._reason}. Fix that and {self._again}."
        )
