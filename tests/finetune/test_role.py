"""The role that `kraq finetune` prints can be put into kraq.toml, and a generator's replies end."""

import tomllib
from pathlib import Path

from kraq_dspy.apps.cli.train import role_of


def test_a_tuned_generator_s_role_has_a_limit_of_tokens_and_a_drafter_s_has_none() -> None:
    facts = {"served": "transformers/models/small"}
    generator = tomllib.loads(role_of(facts, "generator", Path("adapters/mine")))["roles"]["generator"]
    assert generator == {"model": "transformers/models/small", "adapter": "adapters/mine", "max_tokens": 60}
    assert "max_tokens = 60" in role_of(facts, "asker", Path("adapters/mine"))
    assert "max_tokens" not in role_of(facts, "drafter", Path("adapters/mine"))
