"""A limit on money is checked when a server starts, and not when somebody asks."""

import dataclasses
from pathlib import Path

import pytest

from kraq_dspy import Limits
from kraq_dspy.apps.serve.served import ServedIndex
from kraq_dspy.errors import ConfigError
from kraq_dspy.extend import LanguageModels, Meter
from kraq_dspy.models.lms.meter import prices_of
from kraq_dspy.settings import RoleSettings, Settings
from kraq_dspy.workspace import Workspace
from tests.apps.serve.conftest import EMBEDDER

HOSTED = RoleSettings(model="hosted_vllm/m", api_base="http://127.0.0.1:9/v1")


def require_prices(poets: Path, **roles: RoleSettings) -> None:
    settings = Settings(roles={"default": RoleSettings(), **roles})
    meter = Meter(Limits(max_cost=1.0, prices=prices_of(settings)))
    models = LanguageModels(settings, embedder=EMBEDDER, meter=meter)
    with Workspace.open(poets, embedder=EMBEDDER, lm=models) as space:
        ServedIndex("poets", space).require_prices()


def test_a_model_without_a_price_is_refused_in_any_role_that_a_program_asks(poets: Path) -> None:
    for role in ("default", "answerer", "verifier", "rewriter"):
        with pytest.raises(ConfigError, match=r"'hosted_vllm/m' has no price .* prompt_price"):
            require_prices(poets, **{role: HOSTED})


def test_models_with_a_price_and_the_embedded_one_are_served(poets: Path) -> None:
    require_prices(poets)
    require_prices(poets, default=dataclasses.replace(HOSTED, prompt_price=0.1))
