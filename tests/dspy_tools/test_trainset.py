"""Tests that the training rows of an index fit DSPy's Evaluate and its optimizers as they are."""

from collections.abc import Iterator

import dspy
import pytest

import kraq_dspy as kraq
from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.optimize import compile_program
from tests.dspy_tools.conftest import Obliging
from tests.kept import kept_index

RAG = kraq.eval.rag_quality
TEXTS = [
    "Ida Berg keeps the light at Lurr. She was born in 1902 in Oslo.",
    "Karl Moe owns the mill at Tarn. The mill was built in 1877.",
    "The school at Lurr was founded by Anna Lie in 1911.",
    "The bridge at Tarn was designed by Per Holm.",
    "The church at Vik was painted by Nils Aas in 1920.",
    "The Lurr ferry is run by Ola Dahl.",
    "Tarn Brewery was founded by Eva Lund in 1888.",
    "Vik Library was opened by King Haakon in 1930.",
    "The old lighthouse of Lurr destroyed two ships in 1843.",
    "Nils Berg painted the great hall of Tarn in 1902.",
    "Eva Moe founded the Lurr school of music in 1954.",
]


class OwnRAG(dspy.Module):
    """As DSPy's tutorial on RAG writes one."""

    def __init__(self, space: kraq.Workspace) -> None:
        super().__init__()
        self.retrieve = space.retriever()
        self.respond = dspy.ChainOfThought("context: list[str], question -> response")

    def forward(self, question: str) -> dspy.Prediction:
        context = [hit.chunk.text for hit in self.retrieve(question, k=3)]
        return dspy.Prediction(context=context, response=self.respond(context=context, question=question).response)


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[kraq.Workspace]:
    out = tmp_path_factory.mktemp("trainset") / "lurr.kraq"
    kept_index([kraq.Document(str(number), "", text) for number, text in enumerate(TEXTS)], out)
    with kraq.Workspace.open(out) as space:
        yield space


@pytest.fixture(scope="module")
def trainset(space: kraq.Workspace) -> list[dspy.Example]:
    return space.trainset(12, unanswerable=0.25)


def test_question_is_the_only_input_and_the_rest_is_gold(space: kraq.Workspace, trainset: list[dspy.Example]) -> None:
    answerable = [example for example in trainset if example.answerable]
    unanswerable = [example for example in trainset if not example.answerable]
    assert all(set(example.inputs().keys()) == {"question"} for example in trainset)
    assert len(answerable) >= 6
    assert all(example.passages and example.answers and example.supporting_ids for example in answerable)
    assert unanswerable
    assert {(tuple(example.answers), example.answer) for example in unanswerable} == {((), "I do not know")}
    assert all(example.answerable for example in space.trainset(4))

    with pytest.raises(ConfigError, match="unanswerable is 1"):
        space.trainset(4, unanswerable=1)


@pytest.mark.parametrize("own", [True, False])
def test_evaluate_scores_a_program_and_a_module_of_ones_own(
    space: kraq.Workspace, trainset: list[dspy.Example], own: bool
) -> None:
    program = OwnRAG(space) if own else space.program("traditional")
    evaluate = dspy.Evaluate(devset=trainset, metric=RAG, num_threads=1, display_progress=False, max_errors=1)
    with dspy.context(lm=kraq.make_lm("embedded")):
        assert 0 < evaluate(program).score < 100


def optimized(name: str, program: dspy.Module, trainset: list[dspy.Example], writer: dspy.LM) -> dspy.Module:
    match name:
        case "BootstrapFewShot":
            return dspy.BootstrapFewShot(metric=RAG, max_errors=1).compile(program, trainset=trainset)
        case "MIPROv2":
            mipro = dspy.MIPROv2(
                metric=RAG, prompt_model=writer, auto=None, num_candidates=2, max_bootstrapped_demos=1,
                max_labeled_demos=1, num_threads=1, max_errors=1,
            )  # fmt: skip
            return mipro.compile(program, trainset=trainset, valset=trainset, num_trials=1, minibatch=False)
        case "GEPA":
            gepa = dspy.GEPA(metric=RAG, reflection_lm=writer, max_metric_calls=30, num_threads=1)
            return gepa.compile(program, trainset=trainset, valset=trainset)
    raise AssertionError(name)


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("name", ["BootstrapFewShot", "MIPROv2", "GEPA"])
def test_an_optimizer_runs_on_it_with_the_embedded_model(
    space: kraq.Workspace, trainset: list[dspy.Example], name: str, own: bool
) -> None:
    program = OwnRAG(space) if own else space.program("traditional")
    engine = Obliging()
    writer = dspy.LM("obliging/model", engine=engine, cache=False)
    with dspy.context(lm=kraq.make_lm("embedded")):
        best = optimized(name, program, trainset, writer)
        assert best(question=trainset[0].question).get("answer" if not own else "response")

    demos = [demo for predictor in best.predictors() for demo in predictor.demos]
    if name == "BootstrapFewShot":
        assert any(demo.get("augmented") for demo in demos)
    if name == "GEPA":
        assert any("This was refused" in each or "scores 0." in each for each in engine.prompts)


@pytest.mark.parametrize("target", ["traditional", "answering", "own"])
def test_kraqs_own_compile_takes_it_for_programs_steps_and_modules(space: kraq.Workspace, target: str) -> None:
    rows = space.trainset(12)
    compiled = compile_program(OwnRAG(space) if target == "own" else target, rows, "token_f1", space=space)
    assert compiled.comparison.system.n >= 4
    assert compiled.comparison.system.estimate > 0


def test_an_input_that_a_module_does_not_take_is_named_before_a_row_is_run(space: kraq.Workspace) -> None:
    rows = [row.with_inputs("question", "passages") for row in space.trainset(8)]
    with pytest.raises(EvaluationError, match=r"'passages' as an input.*takes 'question'.*with_inputs\(\"question\"\)"):
        compile_program(OwnRAG(space), rows, "token_f1", space=space)

    class NeedsMore(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.respond = dspy.Predict("question, audience -> response")

        def forward(self, question: str, audience: str) -> dspy.Prediction:
            return self.respond(question=question, audience=audience)

    with pytest.raises(EvaluationError, match="has no 'audience', which the program needs"):
        compile_program(NeedsMore(), space.trainset(8), "token_f1", space=space)


def test_a_module_that_fails_on_each_row_is_named_in_place_of_the_model(space: kraq.Workspace) -> None:
    class Broken(OwnRAG):
        def forward(self, question: str) -> dspy.Prediction:
            raise KeyError("context")

    with pytest.raises(EvaluationError, match=r"Broken failed on each of \d+ rows; the last error: KeyError"):
        compile_program(Broken(space), space.trainset(12), "token_f1", space=space)
