"""Opens programs and retrievers by name, over an index of the first ten bundled passages."""

import asyncio
import dataclasses
import itertools
import json
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import dspy
import pytest
from dspy.utils import DummyLM

from kraq_dspy.apps.lines import prediction_lines
from kraq_dspy.asset.store.faq import NewEntry
from kraq_dspy.errors import ConfigError, EncoderMismatchError, IndexStateError
from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.indexing.prepare.graph import embed_graph, sentence_vectors
from kraq_dspy.indexing.prepare.raptor import build_tree
from kraq_dspy.models.lms.roles import lm_in_program
from kraq_dspy.records import Document
from kraq_dspy.settings import EncoderSettings, RoleSettings, Settings
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import choose_program
from kraq_dspy.workspace.registry import PROGRAMS, RETRIEVERS
from tests.kept import kept

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "hotpotqa-mini"
QUESTION = "Which film was directed by Tim Burton?"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("workspace") / "wiki.kraq"
    with (EXAMPLE / "corpus.jsonl").open(encoding="utf-8") as lines:
        rows = [json.loads(line) for line in itertools.islice(lines, 10)]
    documents = [Document(row["id"], row["title"], row["text"]) for row in rows]

    def build(path: Path) -> None:
        build_index(documents, path)
        with Workspace.open(path, write=True) as space:
            build_tree(space.index, space.embedder, space.models)
            embed_graph(space.index, space.embedder)
            sentence_vectors(space.index, space.embedder)

    return kept(f"{documents} with all that retrievers need", build, out)


def test_a_workspace_says_which_index_it_has(built: Path) -> None:
    with Workspace.open(built) as space:
        pass
    assert repr(space) == f"Workspace({str(built)!r})"


@pytest.mark.parametrize("name", sorted(set(RETRIEVERS.own) - {"cross-encoder"}))
def test_every_named_retriever_finds_passages(built: Path, name: str) -> None:
    with Workspace.open(built) as space:
        hits = space.retriever(name)(QUESTION, 5)
    assert 0 < len(hits) <= 5
    assert len({hit.chunk.id for hit in hits}) == len(hits)


@pytest.mark.parametrize("name", ["traditional", "combined"])
def test_one_program_serves_sixteen_threads(built: Path, name: str) -> None:
    with Workspace.open(built) as space:
        program = space.program(name, k=4)
        questions = [f"{QUESTION} ({number % 4})" for number in range(16)]
        alone = [space.ask(question, program) for question in questions[:4]]
        with ThreadPoolExecutor(16) as pool:
            together = list(pool.map(lambda question: space.ask(question, program), questions))
    for number, prediction in enumerate(together):
        assert prediction.answer == alone[number % 4].answer
        expected = alone[number % 4].hits
        assert [hit.chunk for hit in prediction.hits] == [hit.chunk for hit in expected]
        # An encoder rounds otherwise where questions come together.
        assert [hit.score for hit in prediction.hits] == pytest.approx([hit.score for hit in expected], abs=1e-3)


@pytest.mark.parametrize("name", ["qa-rag", "graph-local", "graph-global"])
def test_a_model_based_program_answers_with_its_evidence(built: Path, name: str) -> None:
    with Workspace.open(built) as space:
        prediction = space.ask(QUESTION, space.program(name, k=4))
    assert prediction.answer
    assert 0 < len(prediction.hits) <= 4
    assert prediction.timings["wall"] > 0


def test_qa_search_answers_from_the_faq_of_the_index_and_else_asks_the_program_named(
    built: Path, tmp_path: Path
) -> None:
    shutil.copytree(built, tmp_path / "index")
    with Workspace.open(tmp_path / "index") as space:
        space.answers.faq.add(NewEntry("Who keeps the lighthouse of Ardmore?", "Nobody."), by="test")
        program = space.program("qa-search", "bm25", over="traditional", k=2, scan="full", block=10)
        prepared = space.ask("who is it that keeps the Ardmore lighthouse", program)
        assert (prepared.answer, prepared.source) == ("Nobody.", "faq")
        prediction = space.ask(QUESTION, program, next_questions=0)
        assert (prediction.source, len(prediction.hits), prediction.hits[0].why) == ("program", 2, "bm25")
        assert prediction.answer == space.ask(QUESTION, space.program("traditional", "bm25", k=2)).answer
        with pytest.raises(ConfigError, match="cannot wrap"):
            space.program("qa-search", over="qa-search")
        with pytest.raises(ConfigError, match="'graph-local' finds its own evidence"):
            space.program("qa-search", "bm25", over="graph-local")
        with pytest.raises(ConfigError, match="no program 'magic'"):
            space.program("qa-search", over="magic")


def test_steps_of_a_retriever_ask_the_model_of_their_own_role_inside_a_program(built: Path) -> None:
    roles = {"default": RoleSettings(), "rewriter": RoleSettings(temperature=0.5)}
    with Workspace.open(built, settings=dataclasses.replace(Settings(), roles=roles)) as space:
        program = space.program("traditional", "qr-fusion")
        models = {name: lm_in_program(step) for name, step in program.named_predictors()}
        assert models == {"retrieve.rewrite": space.models["rewriter"], "answer": space.models["answerer"]}
    assert models["answer"].kwargs != models["retrieve.rewrite"].kwargs


def test_names_that_do_not_exist_are_refused_with_those_that_do(built: Path) -> None:
    with Workspace.open(built) as space:
        with pytest.raises(ConfigError, match="there are: dense, bm25"):
            space.retriever("sparse")
        with pytest.raises(ConfigError, match=f"there are: {', '.join(PROGRAMS.own)}"):
            space.program("magic")
        with pytest.raises(ConfigError, match="beta"):
            space.program("combined", beta=1)


def test_another_encoder_is_refused(built: Path) -> None:
    other = dataclasses.replace(Settings(), encoder=EncoderSettings(query_prefix="query: "))
    with pytest.raises(EncoderMismatchError):
        Workspace.open(built, settings=other)


def test_no_index_says_how_to_make_one(tmp_path: Path) -> None:
    with pytest.raises(IndexStateError, match="kraq index CORPUS"):
        Workspace.open(tmp_path / "none.kraq")


def test_an_encoder_that_fails_leaves_no_lock_behind(built: Path) -> None:
    class Torn:
        dimension = 384

        @property
        def name(self) -> str:
            raise OSError("the weights are torn")

        def encode_queries(self, texts: list[str]) -> NoReturn:
            raise AssertionError("nothing was asked")

        encode_passages = encode_queries

    torn: Any = Torn()
    with pytest.raises(OSError, match="torn"):
        Workspace.open(built, embedder=torn, write=True)
    with Workspace.open(built, write=True) as space:
        assert space.index.manifest.complete


def test_an_answer_that_streams_ends_with_the_prediction_of_ask(built: Path) -> None:
    with Workspace.open(built) as space:
        *before, prediction = space.stream("Who lived in London?", program="traditional")
        assert [getattr(value, "message", "") for value in before][:2] == ["retrieving", "answering"]
        assert prediction.answer == space.ask("Who lived in London?", program="traditional").answer


def test_a_question_alone_is_asked_of_the_default_program_over_the_default_retriever(built: Path) -> None:
    with Workspace.open(built) as space:
        prediction = space.ask(QUESTION)
        assert prediction.answer == space.ask(QUESTION, space.program("traditional", "adaptive")).answer
        assert {hit.why for hit in prediction.hits} == {"adaptive"}
        combined = space.ask(QUESTION, program="combined")
        assert combined.auxiliary_questions
        assert {hit.why for hit in combined.hits} <= {"adaptive", "auxiliary"}
        wrong: Any = 7
        with pytest.raises(ConfigError, match="ask takes a question in text, then a program"):
            space.ask(wrong)


def test_a_module_of_ones_own_asks_the_workspaces_model_and_a_configured_one_is_nearer(built: Path) -> None:
    class Own(dspy.Module):
        def __init__(self, retrieve: Any) -> None:
            super().__init__()
            self.retrieve = retrieve
            self.step = dspy.Predict("passages: list[str], question -> answer")

        def forward(self, question: str) -> dspy.Prediction:
            hits = self.retrieve(question, 2)
            return dspy.Prediction(
                answer=self.step(passages=[hit.chunk.text for hit in hits], question=question).answer
            )

    given = DummyLM([{"answer": "from the workspace"}] * 2)
    with Workspace.open(built, lm={"answerer": given}) as space:
        own = Own(space.retriever("bm25"))
        assert space.ask(QUESTION, own, next_questions=0).answer == "from the workspace"
        with dspy.context(lm=DummyLM([{"answer": "configured"}])):
            assert space.ask(QUESTION, own, next_questions=0).answer == "configured"


def test_dspys_own_modules_ask_the_workspaces_answerer_inside_the_block_alone(built: Path) -> None:
    answerer = DummyLM([{"answer": "lent"}] * 3)
    plain = dspy.Predict("question -> answer")
    with Workspace.open(built, lm={"answerer": answerer}):
        assert plain(question=QUESTION).answer == "lent"
        with dspy.context(lm=DummyLM([{"answer": "configured"}])):
            assert plain(question=QUESTION).answer == "configured"
        with Workspace.open(built, lm=DummyLM([{"answer": "of the inner one"}])):
            assert plain(question=QUESTION).answer == "of the inner one"
        assert plain(question=QUESTION).answer == "lent"
    assert dspy.settings.lm is None


def test_a_lent_model_does_not_stand_in_for_a_role_with_settings_of_its_own(built: Path) -> None:
    small = RoleSettings(model="hosted_vllm/small", api_base="http://localhost:1/v1")
    settings = Settings(roles={**Settings().roles, "drafter": small})
    with Workspace.open(built, settings=settings) as space:
        assert space.models["drafter"].model == space.models.name("drafter") == "hosted_vllm/small"
        assert space.models["judge"].model == "embedded"


def test_a_word_alone_is_a_question_even_where_a_program_is_called_so(built: Path) -> None:
    with Workspace.open(built) as space, pytest.raises(ConfigError, match="There is no program 'Who"):
        space.ask("traditional", "Who lived in London?")


class SaysText(dspy.Module):
    """Returns what no program may: a text in place of a prediction."""

    def forward(self, question: str) -> str:
        return "In Oslo."


def test_a_program_that_returns_no_prediction_is_named(built: Path) -> None:
    says = r"SaysText returned 'In Oslo\.'; expected a dspy\.Prediction"
    with Workspace.open(built) as space:
        with pytest.raises(ConfigError, match=says):
            space.ask(QUESTION, SaysText())
        with pytest.raises(ConfigError, match=says):
            list(space.stream(QUESTION, SaysText()))

        async def in_a_loop() -> None:
            with pytest.raises(ConfigError, match=says):
                await asyncio.wait_for(space.aask(QUESTION, SaysText()), 60)
            with pytest.raises(ConfigError, match=says):
                async with asyncio.timeout(60):
                    [_ async for _ in space.astream(QUESTION, SaysText())]

        asyncio.run(in_a_loop())


def test_options_of_a_retriever_reach_it(built: Path) -> None:
    with Workspace.open(built) as space:
        assert vars(space.retriever("adaptive", pagerank=0.5))["most"] == 0.5
        program = space.program("traditional", "hybrid", retriever_options={"weight": 0.9})
        assert vars(program)["retrieve"].weight == 0.9


@pytest.mark.parametrize("name", sorted(set(PROGRAMS.own) - {"efficient", "k2rag", "qa-search"}))
def test_a_program_is_of_the_class_and_predicts_the_keys_that_its_spec_says(built: Path, name: str) -> None:
    with Workspace.open(built) as space:
        choice = choose_program(name)
        program = space.make_program(choice)
        prediction = space.ask(QUESTION, program, next_questions=0)
        assert type(program).__name__ == choice.spec.class_name
        of_the_workspace = {"next_questions", "answerable", "answerable_score"}
        assert set(prediction.keys()) - of_the_workspace == {"answer", "hits", "timings", *choice.spec.keys}
        assert len(prediction.hits) <= choice.budget
        assert choice.seconds(prediction)["wall"] > 0
        assert all(line.plain.strip() for line in prediction_lines(choice, prediction))


def test_a_retriever_is_of_the_class_that_its_spec_says(built: Path) -> None:
    with Workspace.open(built) as space:
        classes = {name: type(space.retriever(name)).__name__ for name in RETRIEVERS.own if name != "cross-encoder"}
    assert classes == {name: RETRIEVERS[name].class_name for name in classes}


def test_a_question_costs_the_calls_that_the_guide_says(built: Path) -> None:
    guide = (EXAMPLE.parents[1] / "docs" / "guide" / "programs.md").read_text("utf-8")
    row = r"^\| `([\w-]+)` \| (\d+) \|[^|]*\|[^|]*\|  \|"  # of a program that needs nothing prepared
    calls = {name: int(count) for name, count in re.findall(row, guide, re.MULTILINE)}
    assert len(calls) >= 5
    with Workspace.open(built) as space:
        counted = {}
        for name in calls:
            program = space.program(name)
            before = space.models.meter.total()
            space.ask(QUESTION, program)
            counted[name] = (space.models.meter.total() - before).calls
    assert counted == calls
