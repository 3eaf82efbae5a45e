"""Runs `kraq ask --program qa-search` in this process, over three passages and an FAQ cache of two entries."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.asset.store.faq import FAQ, NewEntry
from kraq_dspy.errors import ConfigError
from kraq_dspy.extend import FaqCache
from kraq_dspy.optimize import make_target
from kraq_dspy.papers.tables.systems import program_of
from kraq_dspy.papers.tables.table import System
from kraq_dspy.records import Document
from kraq_dspy.workspace import Workspace
from tests.kept import kept_index
from tests.whole_program import app

POETS = {
    "Ada Lovelace": "Ada Lovelace wrote notes on the Analytical Engine. Charles Babbage designed that engine.",
    "Charles Babbage": "Charles Babbage invented the Difference Engine. Babbage met Ada Lovelace in 1833.",
    "Lord Byron": "Lord Byron wrote Don Juan. Lord Byron was the father of Ada Lovelace.",
}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    out = tmp_path_factory.mktemp("cli") / "poets.kraq"
    kept_index([Document(name, name, text) for name, text in POETS.items()], out)
    faq = FaqCache(out / FAQ)
    faq.add(NewEntry("When did Babbage meet Lovelace in 1833?", "On 5 June 1833."), by="test")
    faq.add(NewEntry("Who wrote Don Juan?", "George Gordon Byron."), by="test")
    yield out
    faq.close()


def kraq(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    app([str(word) for word in words], standalone_mode=False)
    return capsys.readouterr().out


def ask(capsys: pytest.CaptureFixture[str], index: Path, question: str, *words: str) -> Any:
    return json.loads(kraq(capsys, "ask", index, question, "-p", "qa-search", "--json", *words))


def test_prepared_answers_come_first_and_the_program_named_answers_the_rest(
    index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prepared = ask(capsys, index, "Who was it that wrote Don Juan?")
    assert (prepared["answer"], prepared["source"], prepared["entry"]["number"]) == (
        "George Gordon Byron.",
        "faq",
        2,
    )
    answer = ask(capsys, index, "Who invented the Difference Engine?", "-P", "over=traditional", "--k", "2")
    assert (answer["source"], answer["entry"], len(answer["hits"])) == ("program", None, 2)
    assert "Babbage" in answer["answer"]
    paired = ask(capsys, index, "Who designed the Analytical Engine?", "-P", "over=qa-rag", "-P", "variant=type1")
    assert paired["sub_questions"]


def test_another_year_is_turned_down_and_shown_to_a_person(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = " ".join(kraq(capsys, "ask", index, "When did Babbage meet Lovelace in 1834?", "-p", "qa-search").split())
    assert "entry 1 is another question: When did Babbage meet Lovelace in 1833? (another number: 1834, 1833)" in shown
    assert "not in the FAQ cache: 1 block" in shown
    let_through = ask(capsys, index, "When did Babbage meet Lovelace in 1834?", "-P", "check=none", "-P", "scan=full")
    assert let_through["answer"] == "On 5 June 1833."
    shown = " ".join(kraq(capsys, "ask", index, "who wrote don juan", "-p", "qa-search").split())
    assert "entry 2, version 1 (word for word): Who wrote Don Juan?" in shown


def test_what_cannot_be_answered_is_noted_unless_told_not_to(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown = kraq(capsys, "ask", index, "Xyzzy plugh?", "-p", "qa-search", "-P", "over=traditional", "-P", "collect=no")
    assert "noted for review" not in shown
    shown = kraq(capsys, "ask", index, "Xyzzy plugh?", "-p", "qa-search", "-P", "over=traditional")
    assert "noted for review: kraq serve DIR --open --edit" in " ".join(shown.split())
    pending = {entry.question: entry.asked for entry in FaqCache(index / FAQ, write=False).entries("pending")}
    assert pending["Xyzzy plugh?"] == 1


def test_what_a_table_or_an_optimizer_tries_is_not_noted(index: Path) -> None:
    question = "Zyxxy hgulp?"
    with Workspace.open(index) as space:
        system = System("search", "qa-search", {"over": "traditional"})
        in_table = space.make_program(program_of(system))
        in_optimizer = make_target("qa-search", space, arguments={"over": "traditional"}).program
        for program in (in_table, in_optimizer):
            assert space.ask(question, program).search.collected is False
        assert space.answers.faq.find(question) is None


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["-p", "combined", "-P", "scan=full"], "The program 'combined' has no option 'scan'"),
        (["-p", "qa-search", "-P", "scan=wide"], "'scan' is wide; expected one of narrow, nearest, full, exhaustive"),
        (["-p", "qa-search", "-P", "check=twice"], "expected one of model, rules, none"),
        (["-p", "qa-search", "-P", "over=qa-search"], "cannot wrap"),
        (["-p", "qa-search", "-P", "over=magic"], "no program 'magic'"),
        (["-p", "qa-search", "-P", "m=2"], "has no option 'm'"),
        (["-p", "graph-global", "-k", "2"], "is given no number of passages"),
    ],
)
def test_what_does_not_fit_is_refused(
    index: Path, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    with pytest.raises(ConfigError, match=says.replace("(", r"\(")):
        kraq(capsys, "ask", index, "Who wrote Don Juan?", *words)
