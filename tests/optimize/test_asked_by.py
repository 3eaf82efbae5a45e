"""A compiled state is used by whatever asks its step; who that is, is declared once and shown in the guide."""

import asyncio
import contextlib
from pathlib import Path

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy import signatures
from kraq_dspy.errors import ModelError, StateError
from kraq_dspy.eval import evaluate
from kraq_dspy.models.lms.roles import LanguageModels
from kraq_dspy.optimize import STEPS
from kraq_dspy.optimize.asked_by import ASKERS, asked_by, signatures_asked
from kraq_dspy.ports import SilentProgress
from kraq_dspy.programs.qa_search.critics import RateSyntheticPair
from kraq_dspy.records import Document
from kraq_dspy.settings import Settings
from kraq_dspy.state import StepStates, save_state, state_of
from kraq_dspy.steps.direct import Item
from kraq_dspy.steps.kept import StoredSteps
from kraq_dspy.testset.making import TestsetPlan, make_testset
from kraq_dspy.workspace import Workspace
from tests.dspy_tools.conftest import AsyncObliging, Obliging
from tests.kept import kept_index
from tests.warm import WarmShell

TUNED = "Tuned: "
COMMANDS = Path(__file__).resolve().parents[2] / "docs" / "reference" / "commands.md"
TEXT = "Team Ravens won 12 matches. The coach of the Foxes is Mia Dahl. The coach of the Ravens is Sam Eide."


def tuned(step: str, folder: Path) -> Path:
    """A state of the step in which all its instructions begin otherwise."""
    program = STEPS[step].make(Settings())
    for predictor in program.predictors():
        predictor.signature = predictor.signature.with_instructions(TUNED + predictor.signature.instructions)
    save_state(state_of(program, {}), folder / f"{step}.json")
    return folder / f"{step}.json"


def is_tuned(program: dspy.Module) -> bool:
    return all(each.signature.instructions.startswith(TUNED) for each in program.predictors())


@pytest.fixture(scope="module")
def league(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("league") / "league.kraq"
    return kept_index([Document("league", "League", TEXT)], out)


def test_every_signature_says_who_asks_it() -> None:
    assert {name for name in signatures.NAMES if not asked_by(name)} == set()
    assert signatures_asked(*ASKERS) == set(signatures.NAMES)
    named = {name for step in STEPS.values() for name in (each.__name__ for each in step.signatures)}
    without_a_command = {name for name in named if not any(ASKERS[each].commands for each in asked_by(name))}
    assert without_a_command == set()


def test_every_command_that_the_table_names_has_the_option() -> None:
    page = COMMANDS.read_text("utf-8")
    sections: dict[str, str] = {}
    for section in page.split("\n### `kraq ")[1:]:
        words = section.partition("`")[0].split()
        name = " ".join(word for word in words if word.islower() and not word.startswith("table"))
        sections[name] = sections.get(name, "") + section
    for command in {each for asker in ASKERS.values() for each in asker.commands}:
        assert "`--optimized`" in sections[command.partition(" --")[0]], command


def test_a_workspace_gives_states_to_programs_conversations_judges_and_test_sets(league: Path, tmp_path: Path) -> None:
    states = [tuned(step, tmp_path) for step in ("answering", "conversation", "judging", "testset-fact")]
    with Workspace.open(league, optimized=states) as space:
        assert is_tuned(space.program("traditional"))
        assert is_tuned(space._standalone)

        lm = DummyLM([{"correct": "True", "reasoning": "x"}] * 3)
        asked = [{"id": "q", "question": "Who is the coach of the Foxes?", "answer": "Mia Dahl"}]
        evaluate({"plain": space.program("traditional")}, asked, ["judge"], space=space, judge=lm)
        assert TUNED in str(lm.history[-1]["messages"])

        engine = Obliging()
        lm = dspy.LM("obliging/model", engine=engine, async_engine=AsyncObliging(engine), cache=False)
        with dspy.context(lm=lm), contextlib.suppress(ModelError):  # whose questions need not be good
            make_testset(space, plan=TestsetPlan(1, {"fact": 1}))
        assert any(TUNED in prompt for prompt in engine.prompts)


def test_critics_of_made_pairs_get_theirs_with_the_stage(league: Path, tmp_path: Path) -> None:
    models = LanguageModels(states=StepStates([tuned("critics", tmp_path)]))
    critic = RateSyntheticPair("anybody")
    with Workspace.open(league, lm=models, write=True) as space:

        async def rated() -> None:
            steps = StoredSteps(space.index.results, models, SilentProgress())
            item = Item("pair", {"question": "Who?", "answer": "Ida", "passage": "Ida."})
            async for _ in steps.map("rate", "judge", critic, [item]):
                pass

        asyncio.run(rated())
    assert is_tuned(critic)


def test_a_state_of_a_step_that_nobody_asks_here_is_refused_by_its_name(tmp_path: Path) -> None:
    states = StepStates([tuned("judging", tmp_path)])
    program = STEPS["answering"].make(Settings())
    states.apply(program)
    assert not is_tuned(program)
    states.require_asked([program], "kraq eval", signatures_asked("judging"))
    with pytest.raises(StateError, match=r"judging\.json was made for JudgeAnswer, which kraq ask does not ask"):
        states.require_asked([program], "kraq ask")


def test_commands_take_the_states_of_what_they_ask_and_refuse_the_others(
    kraq: WarmShell, league: Path, tmp_path: Path
) -> None:
    answering, conversation, judging = (tuned(step, tmp_path) for step in ("answering", "conversation", "judging"))
    questions = tmp_path / "questions.csv"
    questions.write_text("question,answer\nWho is the coach of the Foxes?,Mia Dahl\n", "utf-8")
    both = ("--optimized", answering, "--optimized", conversation)

    assert kraq("ask", league, "Who is the coach of the Foxes?", *both).returncode == 0
    out = ("--out", tmp_path / "run")
    judged = kraq("eval", league, questions, "-m", "judge", "--optimized", judging, *out, "--json")
    assert judged.returncode == 0, judged.stderr

    for command in (
        ("ask", league, "Who?", "--optimized", judging),
        ("eval", league, questions, "-m", "token_f1", "--optimized", judging),
        ("testset", "make", league, "--optimized", judging, "--out", tmp_path / "t.jsonl"),
        ("faq", "seed", league, "--of", "passages", "--optimized", judging),
    ):
        refused = kraq(*command)
        assert refused.returncode == 1
        assert "was made for JudgeAnswer, which" in " ".join(refused.stderr.split())
