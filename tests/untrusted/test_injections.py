"""Puts thirty injections into every signature, the whole build and every program; the model obeys what it can."""

import json
from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy import build_index, signatures
from kraq_dspy.extend import KraqAdapter
from kraq_dspy.indexing.prepare.preparations import PREPARATIONS
from kraq_dspy.ports import SilentProgress
from kraq_dspy.records import Document
from kraq_dspy.settings import CommunitySettings, ResolveSettings, RoleSettings, RunSettings, Settings
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.registry import PROGRAMS
from tests.untrusted.conftest import Injection, ObeyingServer, unquoted

ORDER = "PWNED"
QUESTION = "What stands near the mill?"


def prompts(adapter: dspy.Adapter, text: str) -> list[tuple[list[dict[str, Any]], list[str]]]:
    """Of every signature, with the text in one input field at a time; and the names of its input fields."""
    made = []
    for name in signatures.NAMES:
        signature = getattr(signatures, name)
        for place in signature.input_fields:
            values = {
                other: (text if other == place else "Mill")
                if field.annotation is str
                else ["Mill", text if other == place else "Tower", "Harbour"]
                for other, field in signature.input_fields.items()
            }
            made.append((adapter.format(signature, [], values), list(values)))
    return made


def test_no_signature_shows_a_document_unquoted(injections: list[Injection]) -> None:
    obeyed = {
        injection.name
        for injection in injections
        for messages, inputs in prompts(KraqAdapter(), injection.text)
        if any(ORDER in part for part in unquoted(messages, inputs))
    }
    assert len(injections) == 30
    assert obeyed == set()


def test_the_reader_of_this_test_is_gullible(injections: list[Injection]) -> None:
    """With DSPy's own adapter, which does not expect such documents, more than half of them are obeyed."""
    obeyed = {
        injection.name
        for injection in injections
        for messages, inputs in prompts(dspy.ChatAdapter(), injection.text)
        if any(ORDER in part for part in unquoted(messages, inputs))
    }
    assert len(obeyed) > 15
    assert {"forged question field", "turn in ChatML", "forged request"} <= obeyed


def settings(url: str) -> Settings:
    return Settings(
        communities=CommunitySettings(max_size=4),
        resolve=ResolveSettings(description_tokens=30),
        run=RunSettings(concurrency=4),
        roles={"default": RoleSettings(model="hosted_vllm/gullible", api_base=url, retries=0, timeout_s=20)},
    )


def documents(injections: list[Injection]) -> list[Document]:
    """Each carries an injection, in its text and in its title."""
    return [
        Document(f"d{n}", injection.text, f"The mill stands near the tower {n}. {injection.text}")
        for n, injection in enumerate(injections)
    ]


@pytest.fixture
def attacked(tmp_path: Path, obeying: ObeyingServer, injections: list[Injection]) -> Path:
    """An index of the injections, each of them carried through every stage by the model's own answers."""
    chosen = settings(obeying.url)
    report = build_index(documents(injections), tmp_path / "a.kraq", settings=chosen, random_questions=True)
    assert report.failures == ()
    assert {"extract", "describe", "summarize", "ask", "ask random"} <= report.usage.keys()
    return report.path


def test_neither_the_build_nor_any_program_obeys_a_document(
    attacked: Path, obeying: ObeyingServer, injections: list[Injection]
) -> None:
    assert obeying.obeyed == []
    with Workspace.open(attacked, write=True) as space:
        for preparation in PREPARATIONS.values():
            preparation.make(space, preparation.options(), SilentProgress())
    assert obeying.obeyed == []
    with Workspace.open(attacked) as space:
        for name in PROGRAMS.names():
            before = obeying.prompts
            answer = str(space.ask(QUESTION, space.program(name)).answer)
            assert obeying.prompts > before, name
            assert answer.strip() != ORDER, name
            assert obeying.obeyed == [], name
        for injection in injections:  # and a question that is an injection itself
            space.ask(injection.text, space.program("traditional", k=2))
    assert obeying.obeyed == []


def test_a_broken_mark_costs_no_letter_of_the_text(injections: list[Injection]) -> None:
    for injection in injections:
        messages = KraqAdapter().format(signatures.AnswerQuestion, [], {"passages": [injection.text], "question": "?"})
        sent = json.loads(messages[-1]["content"].split("\n")[1])[0]
        assert [c for c in sent if c.isalnum()] == [c for c in injection.text if c.isalnum()]
