"""Makes one scripted model for runs that have a model for each role."""

import dspy

from kraq_dspy.extend import LanguageModels
from kraq_dspy.settings import RoleSettings, RunSettings, Settings


class Models(LanguageModels):
    """The same model for every role; `roles` are those that were asked for, of which the settings name `named`."""

    def __init__(self, lm: dspy.BaseLM, *named: str) -> None:
        of_settings = {role: RoleSettings() for role in ("default", *named)}
        super().__init__(Settings(run=RunSettings(concurrency=2), roles=of_settings))
        self.lm = lm
        self.roles: list[str] = []

    def __getitem__(self, role: str) -> dspy.BaseLM:
        self.roles.append(role)
        return self.lm
