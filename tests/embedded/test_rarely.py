"""`rarely.toml` lists rules of the embedded model that are there, each once, and gets no longer.

`python scripts/rules.py` listens over corpora and names the rules that belong into it.
"""

import importlib
import tomllib
from pathlib import Path
from typing import Any

LISTED: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("rarely.toml").read_text("utf-8"))
MOST = 130
"""Rules that may be listed: lower it when some go."""


def is_there(rule: str) -> bool:
    """Whether "reading.turns:_REPLY" names something of `kraq_dspy.embedded` or, "language.text:_ITEM", of language."""
    module, _, names = rule.partition(":")
    place = module if module.startswith("language.") else f"embedded.{module}"
    try:
        holder: Any = importlib.import_module(f"kraq_dspy.{place}")
    except ModuleNotFoundError:
        return False
    for name in names.split("."):
        holder = getattr(holder, name, None)
    return holder is not None


def test_a_listed_rule_is_there() -> None:
    assert [rule for rules in LISTED.values() for rule in rules if not is_there(rule)] == []
    assert not is_there("reading.turns:_GONE")
    assert not is_there("reading.gone:_REPLY")


def test_a_rule_is_listed_once_and_in_the_order_of_the_alphabet() -> None:
    assert [reason for reason, rules in LISTED.items() if rules != sorted(rules)] == []
    every = [rule for rules in LISTED.values() for rule in rules]
    assert len(every) == len(set(every))


def test_the_list_does_not_grow() -> None:
    assert sum(map(len, LISTED.values())) <= MOST, "take a rule back that hardly ever fires, rather than list one more"
