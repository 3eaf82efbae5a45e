"""Maps the programs of a view over its items: what the whole index keeps of the very same inputs serves again."""

from collections.abc import AsyncIterator, Mapping

import dspy

from kraq_dspy.asset.store.results import ResultStore
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.ports import Progress
from kraq_dspy.settings import EMBEDDED
from kraq_dspy.steps.direct import Done, Items
from kraq_dspy.steps.kept import FoundResults, StoredSteps


class ViewSteps(StoredSteps):
    """Takes what a model said of an item in the whole index, if it was shown nothing but what the view holds.

    A result is found by a fingerprint of its inputs, and the inputs of a view are made of its own documents. So what is
    found was made of these alone. Whatever was also made of other documents has other inputs, and is made again by
    `models`; nothing is written to the results of the whole.
    """

    def __init__(
        self, results: ResultStore, made_with: Mapping[str, str], models: LanguageModels, progress: Progress
    ) -> None:
        """`results` are those of the whole index, which were `made_with` these models, by role."""
        super().__init__(results, models, progress)
        self.made_with = made_with

    async def map(
        self, stage: str, role: str, program: dspy.Module, items: Items, *, total: int | None = None
    ) -> AsyncIterator[Done]:
        if total is not None:
            self.progress.start(stage, total)

        keeper = FoundResults(self.results, stage, program, self.model(role, program))
        async for done in self.ask(stage, self.models[role], program, items, keeper):
            yield done

    def model(self, role: str, program: dspy.Module) -> str:
        """The name of the model that served the role when the whole index was made."""
        return self.made_with.get(role, EMBEDDED)
