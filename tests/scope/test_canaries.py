"""Tests that no word which only the board may read comes out for the staff, or goes into a prompt of theirs.

`KRAQ_CANARIES=10000 pytest tests/scope` (`make scope`) runs the same with as many canaries, in a thousand documents;
twenty-four otherwise. `KRAQ_SCOPE_INDEXES=DIR` keeps the index of these documents there: a run that was interrupted
goes on with it, and so does one of some tests alone.
"""

import json
import logging
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy import Index, Scope, Workspace, evaluate, export_index
from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy.apps.dataset import export_dataset
from kraq_dspy.apps.lines import prediction_lines
from kraq_dspy.apps.mcp.tools import IndexTools
from kraq_dspy.asset.store.faq import FAQ, NewEntry
from kraq_dspy.errors import ScopeError
from kraq_dspy.extend import Chunk, Entity, FaqCache
from kraq_dspy.indexing.faq.sources import sources_of
from kraq_dspy.optimize.index_rows import known_pairs
from kraq_dspy.records import AnswerEvidence, Document
from kraq_dspy.testing import _all_of, check_scope
from kraq_dspy.workspace.choices import choose_program
from kraq_dspy.workspace.registry import PROGRAMS
from tests.scope.corpora import CANARY, MANY, QUESTIONS, Corpus, built_in, corpus, make_prepared, with_skye

COUNT = int(os.environ.get("KRAQ_CANARIES", "24"))


class Echo(dspy.BaseLM):
    """Says again whatever it was shown."""

    def __init__(self) -> None:
        super().__init__("echo", cache=False)
        self.prompts: list[str] = []

    def forward(self, prompt: str | None = None, messages: Any = None, **options: Any) -> Any:
        shown = prompt or "\n".join(str(message["content"]) for message in messages)
        self.prompts.append(shown)

        text = " ".join(shown.replace("[[", "").split())
        fields = "".join(f"[[ ## {name} ## ]]\n{text}\n\n" for name in ("answer", "account"))
        content = f"{fields}[[ ## completed ## ]]"
        message = {"role": "assistant", "content": content}
        return {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "model": "echo"}


@pytest.fixture(scope="module")
def both() -> Corpus:
    return with_skye(corpus(COUNT))


@pytest.fixture(scope="module")
def path(both: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of both groups' documents with all that can be prepared, and an FAQ cache of answers to both."""

    build = partial(make_prepared, both.documents)
    path = built_in(tmp_path_factory.mktemp("scope"), f"prepared-{COUNT}", build, copied=COUNT < MANY)
    if not (path / FAQ).exists():  # it is there where the index is that of an earlier run
        fill_faq(path, both)
    return path


def fill_faq(path: Path, both: Corpus) -> None:
    """Prepare answers to both groups' questions, one of no documents, and one that waits."""
    with Workspace.open(path) as space, FaqCache(path / FAQ) as entries:
        owner = space.owned()
        secret, open_one = both.documents[1], both.documents[0]
        of_open, of_secret = sources_of(owner.index, [open_one.id]), sources_of(owner.index, [secret.id])
        evidence = (AnswerEvidence("x", secret.id, secret.text),)
        entries.add(
            NewEntry(
                "What is known of the note?", open_one.text, sources=of_open, evidence=evidence, given=secret.text
            ),
            by="me",
        )
        entries.add(NewEntry("What is known of the deal?", secret.text, sources=of_secret), by="me")
        entries.add(NewEntry("What is known of both?", secret.text, sources=of_secret + of_open), by="me")
        entries.add(NewEntry("What does nobody vouch for?", secret.text), by="me")
        entries.collect(f"Who is behind {secret.title}?", secret.text, evidence)


@pytest.fixture
def staff(path: Path) -> Iterator[Workspace]:
    with Workspace.open(path) as space, space.scoped(Scope(["staff"])) as scoped:
        yield scoped


def require_clean(value: Any) -> None:
    text = value if isinstance(value, str) else _all_of(value) + repr(value)
    found = CANARY.search(text)
    assert found is None, f"...{text[max(0, found.start() - 200) : found.end() + 50]}..."


def test_the_owner_would_see_the_canaries(path: Path, both: Corpus) -> None:
    with Workspace.open(path) as space:
        owner = space.owned()
        hits = [hit for question in QUESTIONS for hit in owner.retriever("hybrid")(question, 10)]
        assert CANARY.search(_all_of(hits))
        assert any(CANARY.search(entity.name) for entity in owner.index.all(Entity))
        assert owner.prepared("What is known of the deal?") is not None
    assert len(both.canaries) >= COUNT


def test_every_program_over_every_retriever_is_clean(path: Path, both: Corpus) -> None:
    with Workspace.open(path) as space:
        report = check_scope(space, Scope(["staff"]), both.canaries, QUESTIONS[: 4 if COUNT > 100 else 1])
    print(f"\n{len(both.canaries):,} canaries: 0 in {report.outputs:,} outputs and {report.prompts:,} prompts")
    assert report.outputs > 100
    assert report.prompts > 50
    left_out = {name for name in report.left_out if not name.startswith("the program 'efficient'")}
    assert left_out == set()  # all is prepared, but for questions that a view of so few documents asks anew


@pytest.mark.parametrize("program", ["traditional", "combined", "graph-local", "naive-graph"])
def test_a_model_that_echoes_its_prompt_says_nothing_secret(program: str, path: Path) -> None:
    echo = Echo()
    with Workspace.open(path, lm=echo) as space, space.scoped(Scope(["staff"])) as staff:
        for question in QUESTIONS:
            require_clean(staff.ask(question, program))
    assert len(echo.prompts) >= len(QUESTIONS)
    require_clean(echo.prompts)


def test_streams_and_notes_are_clean(staff: Workspace, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for name in PROGRAMS.own.keys() - {"efficient"}:  # which asks of stored questions that this view does not have
        choice = choose_program(name)
        for value in staff.stream(QUESTIONS[0], staff.make_program(choice)):
            require_clean(value)
            if isinstance(value, dspy.Prediction):
                require_clean([line.plain for line in prediction_lines(choice, value)])
    require_clean(caplog.text)


def test_prepared_answers_are_those_that_rest_on_what_may_be_read(staff: Workspace) -> None:
    allowed = staff.prepared("What is known of the note?")
    assert allowed is not None
    require_clean(allowed)
    for question in ("What is known of the deal?", "What is known of both?", "What does nobody vouch for?"):
        assert staff.prepared(question) is None
        require_clean(staff.ask(question, "qa-search"))
    require_clean(staff.answers.entries())
    with pytest.raises(ScopeError, match="may not be read here"):
        _ = staff.answers.faq
    require_clean(staff.answers.nearest("What is known of the deal?", 10))


def test_rows_to_learn_from_are_clean(staff: Workspace) -> None:
    rows = [row.toDict() for row in staff.trainset(10)]
    says_the_same_everywhere = len(staff.index.ids(Document)) > 100  # hundreds of notes about eight people
    assert rows or says_the_same_everywhere  # where no question has one answer, none is asked
    require_clean(rows)
    pairs = known_pairs(staff)
    assert [pair.question for pair in pairs] == ["What is known of the note?"]
    require_clean(pairs)


def test_the_tools_of_agents_are_clean(staff: Workspace) -> None:
    tools = IndexTools(staff, choose_program("traditional"))
    [entity, *_] = staff.index.all(Entity)
    [chunk, *_] = staff.index.all(Chunk)
    found = [
        tools.search(QUESTIONS[0]),
        tools.starters(),
        tools.questions_about("Helsinki Works"),
        tools.neighbours_of(entity.name),
        tools.read_document(chunk.document_id),
        run_coroutine(tools.ask(QUESTIONS[0])),
    ]
    require_clean(json.dumps(found))


def test_exports_are_clean(staff: Workspace, tmp_path: Path) -> None:
    export_index(staff.index, tmp_path / "jsonl", "jsonl")
    export_index(staff.index, tmp_path / "parquet")
    export_index(staff.index, tmp_path / "graph.graphml", "graphml")
    export_dataset(staff.index, tmp_path / "set.jsonl", unanswered=True)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(files) > 15
    for file in files:
        require_clean(file.read_bytes().decode("utf-8", "replace"))


def test_an_export_of_a_scope_names_no_group_and_the_owners_keeps_all(
    staff: Workspace, path: Path, tmp_path: Path
) -> None:
    def exported_labels(index: Index, out: Path) -> list[list[str]]:
        export_index(index, out, "jsonl")
        return [json.loads(line)["labels"] for line in (out / "documents.jsonl").read_text("utf-8").splitlines()]

    with Workspace.open(path) as space:
        of_owner = exported_labels(space.owned().index, tmp_path / "owner")

    assert not any(exported_labels(staff.index, tmp_path / "staff"))
    assert any(labels == ["staff"] for labels in of_owner)


def test_errors_do_not_tell_whether_something_is_there(path: Path, both: Corpus) -> None:
    """What is asked for by a secret's id fails as what was never there."""
    with Workspace.open(path) as space:
        owner = space.owned()
        secret = both.documents[1]
        [chunk, *_] = owner.index.all(Chunk, document_id=secret.id)
        with space.scoped(Scope(["staff"])) as staff:
            for kind, id in ((Chunk, chunk.id), (type(secret), secret.id)):
                messages = []
                for asked in (id, "0" * 32):
                    with pytest.raises(Exception) as caught:  # noqa: PT011 (whatever it is, it is the same)
                        staff.index.get(kind, [asked])
                    messages.append((type(caught.value), str(caught.value).replace(asked, "ID")))
                assert messages[0] == messages[1]


def test_a_report_of_an_evaluation_is_clean(staff: Workspace) -> None:
    rows = [{"question": question, "answer": "Anna Berg"} for question in QUESTIONS]
    report = evaluate(staff.program("traditional"), rows)
    require_clean(str(report))
    require_clean(report)
