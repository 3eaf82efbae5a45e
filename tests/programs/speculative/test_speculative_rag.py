"""Tests Speculative RAG on six passages about three subjects; the drafter names the subject of its passages."""

import asyncio
import dataclasses
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.lm15 import ServerError

from kraq_dspy import make_lm
from kraq_dspy._internal.step import Step
from kraq_dspy.errors import BudgetExceededError, MissingLogprobsError, ModelError
from kraq_dspy.models.embedders.packaged_pair import PackagedPairEmbedder
from kraq_dspy.ports import Vectors
from kraq_dspy.programs import KraqScore, Scorer, SpeculativeRAG, VoteScore
from kraq_dspy.programs.speculative.drafts import Draft
from kraq_dspy.programs.speculative.speculative_rag import SPECULATIVE_PRESETS, StageSeconds
from kraq_dspy.records import Chunk, Hit
from kraq_dspy.settings import RoleSettings
from tests.conftest import KeywordEmbedder
from tests.programs.speculative.conftest import DrafterScore, ScriptedLM

HALF, QUARTER = math.log(1 / 2), math.log(1 / 4)
TEXTS = ["apple pie", "apple strudel", "rocket fuel", "rocket stage", "tax law", "apple juice"]


def hits_of(texts: Sequence[str], question: str = "q") -> list[Hit]:
    chunks = [Chunk(f"{i:032x}", "doc", i, 0, len(text), text, 2) for i, text in enumerate(texts)]
    return [Hit(chunk, 1 - chunk.position / 10, question) for chunk in chunks]


def retrieve(question: str, k: int, **_: Any) -> list[Hit]:
    return hits_of(TEXTS, question)[:k]


def retrieve_two(question: str, k: int, **_: Any) -> list[Hit]:
    return hits_of(TEXTS, question)[1:3]


def retrieve_nothing(question: str, k: int, **_: Any) -> list[Hit]:
    return []


class QuestionIgnored:
    """A passage embedder as an instructed one."""

    def __init__(self, embedder: KeywordEmbedder) -> None:
        self.embedder = embedder
        self.name, self.dimension = embedder.name, embedder.dimension

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        vectors: Vectors = self.embedder.encode_passages(passages)
        return vectors


@pytest.fixture
def embedder(keyword_embedder: type[KeywordEmbedder]) -> QuestionIgnored:
    return QuestionIgnored(keyword_embedder("apple", "rocket", "tax"))


def answers(prompt: str) -> list[tuple[str, float]]:
    """Drafts: sure of strudel, else not. Verdicts: Yes."""
    if "`[[ ## verdict ## ]]`" in prompt:
        return [("[[ ## verdict ## ]]\n", 0.0), ("Yes", HALF)]
    fruit = next(text for text in ("pie", "strudel", "juice", "no fruit") if text in prompt or text == "no fruit")
    return [
        ("[[ ## rationale ## ]]\n", 0.0),
        (f"It says {fruit}.", QUARTER),
        ("\n[[ ## response ## ]]\n", 0.0),
        (fruit, HALF if fruit == "strudel" else QUARTER),
        ("\n[[ ## completed ## ]]", 0.0),
    ]


def run(program: SpeculativeRAG, how: str) -> dspy.Prediction:
    if how == "threads":
        return program(question="what to bake?")
    return asyncio.run(program.acall(question="what to bake?"))


@pytest.mark.parametrize("how", ["threads", "tasks"])
def test_the_best_draft_answers_with_its_evidence(how: str, embedder: QuestionIgnored, scripted_lm: ScriptedLM) -> None:
    lm, engine = scripted_lm(answers, delay_s=0.1)
    program = SpeculativeRAG(retrieve, embedder, n=6, k=3, m=6)
    with dspy.context(lm=lm):
        prediction = run(program, how)
    assert prediction.answer == "strudel"
    assert prediction.rationale == "It says strudel."
    assert prediction.clusters == (0, 0, 1, 1, 2, 0)
    assert len(set(prediction.subsets)) == len(prediction.drafts) == 6  # 3 * 2 * 1 of them exist
    assert [hit.chunk.text.split()[0] for hit in prediction.evidence] == ["apple", "rocket", "tax"]
    assert prediction.subsets[prediction.chosen] == tuple(hit.chunk.position for hit in prediction.evidence)
    assert prediction.failures == ()
    assert engine.most_in_flight == 6


@pytest.mark.parametrize("how", ["threads", "tasks"])
def test_drafts_and_verdicts_go_one_after_another_where_each_is_timed_alone(
    how: str, embedder: QuestionIgnored, scripted_lm: ScriptedLM
) -> None:
    lm, engine = scripted_lm(answers, delay_s=0.02)
    program = SpeculativeRAG(retrieve, embedder, n=6, k=3, m=3, scorer=KraqScore(in_flight=1), in_flight=1)
    with dspy.context(lm=lm):
        assert run(program, how).answer
    assert engine.most_in_flight == 1


def test_threads_and_tasks_agree_and_the_same_seed_draws_the_same_subsets(
    embedder: QuestionIgnored, scripted_lm: ScriptedLM
) -> None:
    lm, _ = scripted_lm(answers)
    program = SpeculativeRAG(retrieve, embedder, n=6, k=3, m=4, seed=7)
    with dspy.context(lm=lm):
        first, second, third = run(program, "threads"), run(program, "threads"), run(program, "tasks")
        other = run(SpeculativeRAG(retrieve, embedder, n=6, k=3, m=4, seed=8), "threads")
    assert first.subsets == second.subsets == third.subsets
    assert first.answer == second.answer == third.answer
    assert other.subsets != first.subsets


def test_the_evidence_is_the_last_of_the_prompt_so_that_drafts_share_what_comes_before(
    embedder: QuestionIgnored, scripted_lm: ScriptedLM
) -> None:
    lm, engine = scripted_lm(answers)
    with dspy.context(lm=lm):
        SpeculativeRAG(retrieve, embedder, n=6, k=3, m=4, scorer=DrafterScore())(question="what to bake?")
    for prompt in engine.prompts:
        assert prompt.index("what to bake?") < prompt.index("tax law")
        places = [prompt.index(text) for text in TEXTS if text in prompt]
        assert places == sorted(places)  # best hit first


@pytest.mark.parametrize("how", ["threads", "tasks"])
def test_a_draft_that_fails_costs_that_draft_only(how: str, embedder: QuestionIgnored, scripted_lm: ScriptedLM) -> None:
    def flaky(prompt: str) -> list[tuple[str, float]]:
        if "strudel" in prompt:
            raise ServerError("out of memory")
        if "juice" in prompt:
            return [("I would rather not.", HALF)]
        return answers(prompt)

    lm, _ = scripted_lm(flaky)
    with dspy.context(lm=lm):
        prediction = run(SpeculativeRAG(retrieve, embedder, n=6, k=3, m=6), how)
    assert prediction.answer == "pie"
    assert len(prediction.drafts) == 2
    reasons = sorted(failure.reason.split(":")[0] for failure in prediction.failures)
    assert reasons == ["AdapterParseError", "AdapterParseError", "LMServerError", "LMServerError"]


def test_an_empty_field_fails_the_draft(embedder: QuestionIgnored, scripted_lm: ScriptedLM) -> None:
    def terse(prompt: str) -> list[tuple[str, float]]:
        if "strudel" in prompt:
            return [("[[ ## rationale ## ]]\n\n[[ ## response ## ]]\ntart", HALF)]
        return answers(prompt)

    lm, _ = scripted_lm(terse)
    with dspy.context(lm=lm):
        prediction = SpeculativeRAG(retrieve, embedder, n=6, k=3, m=6, scorer=DrafterScore())(question="q")
    assert {failure.reason for failure in prediction.failures} == {"The model left rationale empty."}
    assert prediction.answer != "strudel"


@pytest.mark.parametrize("how", ["threads", "tasks"])
def test_all_drafts_failed_is_an_error_with_the_reasons(
    how: str, embedder: QuestionIgnored, scripted_lm: ScriptedLM
) -> None:
    lm, _ = scripted_lm(lambda prompt: [("no format at all", HALF)])
    program = SpeculativeRAG(retrieve, embedder, n=6, k=3, m=2)
    with dspy.context(lm=lm), pytest.raises(ModelError, match=r"None of 2 drafts .*draft 0: .*draft 1: Adapter"):
        run(program, how)


def test_all_verdicts_failed_is_an_error_too(embedder: QuestionIgnored, scripted_lm: ScriptedLM) -> None:
    drafter, _ = scripted_lm(answers)
    verifier, _ = scripted_lm(lambda prompt: [("[[ ## verdict ## ]]\nPerhaps", HALF)])
    program = SpeculativeRAG(retrieve, embedder, n=6, k=3, m=2)
    program.draft.set_lm(drafter)
    program.scorer.set_lm(verifier)
    with pytest.raises(ModelError, match="Perhaps"):
        program(question="q")


@pytest.mark.parametrize("how", ["threads", "tasks"])
def test_a_spent_budget_ends_the_run_instead_of_failing_a_draft(
    how: str, embedder: QuestionIgnored, scripted_lm: ScriptedLM
) -> None:
    def spent(prompt: str) -> list[tuple[str, float]]:
        raise BudgetExceededError("100 calls were allowed")

    lm, _ = scripted_lm(spent)
    with dspy.context(lm=lm), pytest.raises(BudgetExceededError, match="100 calls"):
        run(SpeculativeRAG(retrieve, embedder, n=6, k=3, m=3), how)


def test_a_drafter_without_logprobs_is_an_error_that_names_the_way_out(
    embedder: QuestionIgnored, scripted_lm: ScriptedLM
) -> None:
    lm, _ = scripted_lm(answers, logprobs=False)
    with dspy.context(lm=lm):
        with pytest.raises(MissingLogprobsError, match=r"drafter .*logprobs=True.*'vote'"):
            SpeculativeRAG(retrieve, embedder, n=6, k=3, m=4)(question="q")
        prediction = SpeculativeRAG(retrieve, embedder, n=6, k=3, m=6, scorer=VoteScore())(question="q")
    assert prediction.answer in {"pie", "strudel", "juice"}


def test_drafter_and_verifier_can_be_different_models(embedder: QuestionIgnored, scripted_lm: ScriptedLM) -> None:
    drafter, drafting = scripted_lm(answers)
    verifier, verifying = scripted_lm(answers)
    program = SpeculativeRAG(retrieve, embedder, n=6, k=3, m=4)
    program.draft.set_lm(drafter)
    program.scorer.set_lm(verifier)
    program(question="q")
    assert all("`[[ ## response ## ]]`" in prompt for prompt in drafting.prompts)
    assert all("`[[ ## verdict ## ]]`" in prompt for prompt in verifying.prompts)
    assert len(drafting.prompts) == len(verifying.prompts) == 4


def test_no_hits_make_one_draft_without_evidence(embedder: QuestionIgnored, scripted_lm: ScriptedLM) -> None:
    lm, engine = scripted_lm(answers)
    with dspy.context(lm=lm):
        prediction = SpeculativeRAG(retrieve_nothing, embedder, scorer=DrafterScore())(question="q")
    assert (prediction.hits, prediction.evidence, prediction.subsets) == ((), (), ((),))
    assert len(engine.prompts) == 1


def test_more_clusters_than_passages_make_one_draft_from_all_of_them(
    embedder: QuestionIgnored, scripted_lm: ScriptedLM
) -> None:
    lm, _ = scripted_lm(answers)
    with dspy.context(lm=lm):
        prediction = SpeculativeRAG(retrieve_two, embedder, n=6, k=9, m=5)(question="q")
    assert prediction.subsets == ((0, 1),)


def test_stages_are_timed_apart_and_the_papers_model_is_their_sum_without_the_wall_clock(
    embedder: QuestionIgnored, scripted_lm: ScriptedLM
) -> None:
    lm, _ = scripted_lm(answers, delay_s=0.05)
    with dspy.context(lm=lm):
        timings = SpeculativeRAG(retrieve, embedder, n=6, k=3, m=4)(question="q").timings
    assert min(timings.draft_max, timings.verify_max) >= 0.05
    assert timings.wall >= timings.draft_max + timings.verify_max
    assert min(timings.retrieve, timings.embed, timings.cluster, timings.select) > 0
    assert (timings.lookup, timings.proxy) == (0, 0)
    stages = StageSeconds(retrieve=1, cluster=2, draft_max=4, verify_max=8, select=16, wall=1000, lookup=32)
    assert stages.parallel_model == 63


def test_no_logprobs_are_left_for_demos_and_a_saved_program_is_restored(
    embedder: QuestionIgnored, scripted_lm: ScriptedLM, tmp_path: Path
) -> None:
    lm, _ = scripted_lm(answers)
    program = SpeculativeRAG(retrieve, embedder, n=6, k=3, m=2)
    with dspy.context(lm=lm, trace=[]):
        program(question="q")
        traced = {type(module): dict(prediction.items()) for module, _, prediction in dspy.settings.trace}
    assert set(traced[Step]) <= {"rationale", "response", "verdict"}
    program.draft.demos = [dspy.Example(question="a?", passages=["b"], rationale="c", response="d").toDict()]
    program.save(tmp_path / "state.json")
    fresh = SpeculativeRAG(retrieve, embedder, n=6, k=3, m=2)
    fresh.load(tmp_path / "state.json")
    assert fresh.draft.demos[0]["response"] == "d"
    assert {name for name, _ in fresh.named_predictors()} == {"draft", "scorer.verify"}


def test_two_threads_may_share_a_program(embedder: QuestionIgnored, scripted_lm: ScriptedLM) -> None:
    lm, _ = scripted_lm(answers)
    program = SpeculativeRAG(retrieve, embedder, n=6, k=3, m=6)
    examples = [(program, {"question": f"question {i}"}) for i in range(8)]
    with dspy.context(lm=lm):
        predictions = dspy.Parallel(num_threads=4, timeout=0, disable_progress_bar=True)(examples)
    assert {prediction.answer for prediction in predictions} == {"strudel"}


@pytest.mark.parametrize("scorer", [KraqScore(), DrafterScore(), VoteScore()])
def test_scorers_are_interchangeable(scorer: Scorer, embedder: QuestionIgnored, scripted_lm: ScriptedLM) -> None:
    lm, _ = scripted_lm(answers)
    with dspy.context(lm=lm):
        prediction = SpeculativeRAG(retrieve, embedder, n=6, k=3, m=6, scorer=scorer)(question="q")
    assert prediction.scorer == scorer.name
    assert set(prediction.scores) == {0, 1, 2, 3, 4, 5}
    assert all(isinstance(draft, Draft) for draft in prediction.drafts)


@pytest.mark.parametrize("how", ["threads", "tasks"])
def test_the_embedded_model_and_the_packaged_encoder_draft_verify_and_choose(how: str) -> None:
    texts = [
        "Paris is the capital of France and lies on the Seine.",
        "Lyon is a city in France, known for its food.",
        "Berlin is the capital of Germany.",
        "The Seine flows through Paris to the sea.",
    ]

    def find(question: str, k: int, **_: Any) -> list[Hit]:
        return hits_of(texts, question)[:k]

    program = SpeculativeRAG(find, PackagedPairEmbedder(), n=4, k=2, m=4)
    with dspy.context(lm=make_lm(RoleSettings())):
        if how == "threads":
            prediction = program(question="What is the capital of France?")
        else:
            prediction = asyncio.run(program.acall(question="What is the capital of France?"))
    assert any(prediction.answer in hit.chunk.text for hit in prediction.evidence)
    assert prediction.failures == ()
    assert len(prediction.evidence) == 2
    assert all(score.total < math.log(2) for score in prediction.scores.values())


@pytest.mark.parametrize("wrong", [{"n": 0}, {"k": 0}, {"m": -1}, {"in_flight": 0}])
def test_settings_below_one_are_refused(wrong: dict[str, int], embedder: QuestionIgnored) -> None:
    with pytest.raises(ValueError, match="expected a whole number, 1 or more"):
        SpeculativeRAG(retrieve, embedder, **wrong)  # type: ignore[arg-type]


def test_presets_are_the_papers_settings() -> None:
    settings = {name: dataclasses.astuple(preset) for name, preset in SPECULATIVE_PRESETS.items()}
    assert settings == {
        "bioasq": (18, 5, 10),
        "hotpotqa": (10, 4, 8),
        "triviaqa": (10, 2, 5),
        "pubhealth": (10, 2, 5),
    }
