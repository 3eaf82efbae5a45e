"""Runs DSPy's own optimizers, as its tutorials call them, on a program of this library."""

from pathlib import Path

import dspy
import pytest

import kraq_dspy as kraq
from kraq_dspy.programs import TraditionalRAG

EXACT = kraq.eval.exact_match


def compiled(name: str, lm: dspy.LM, program: TraditionalRAG, devset: list[dspy.Example]) -> dspy.Module:
    match name:
        case "BootstrapFewShot":
            return dspy.BootstrapFewShot(metric=EXACT, max_labeled_demos=0).compile(program, trainset=devset)
        case "BootstrapFewShotWithRandomSearch":
            search = dspy.BootstrapFewShotWithRandomSearch(
                metric=EXACT, max_labeled_demos=0, num_candidate_programs=1, num_threads=1
            )
            return search.compile(program, trainset=devset, valset=devset)
        case "MIPROv2":
            mipro = dspy.MIPROv2(
                metric=EXACT, auto=None, num_candidates=2, max_bootstrapped_demos=1, max_labeled_demos=0, num_threads=1
            )
            return mipro.compile(program, trainset=devset, valset=devset, num_trials=2, minibatch=False)
        case "GEPA":
            gepa = dspy.GEPA(metric=EXACT.with_feedback(), reflection_lm=lm, max_metric_calls=20, num_threads=1)
            return gepa.compile(program, trainset=devset, valset=devset)
        case "SIMBA":
            simba = dspy.SIMBA(metric=EXACT, bsize=4, num_candidates=2, max_steps=1, max_demos=1, num_threads=1)
            return simba.compile(program, trainset=devset, seed=0)
    raise AssertionError(name)


@pytest.mark.parametrize("name", ["BootstrapFewShot", "BootstrapFewShotWithRandomSearch", "MIPROv2", "GEPA", "SIMBA"])
def test_an_optimizer_improves_the_program_and_its_result_is_saved_and_loaded(
    name: str, lm: dspy.LM, program: TraditionalRAG, devset: list[dspy.Example], tmp_path: Path
) -> None:
    evaluate = dspy.Evaluate(devset=devset, metric=EXACT, num_threads=1, display_progress=False)
    with dspy.context(lm=lm):
        before = evaluate(program).score
        best = compiled(name, lm, program, devset)
        after = evaluate(best).score
    assert before == 75.0
    assert after >= before
    if name in ("BootstrapFewShot", "MIPROv2", "GEPA"):
        assert after == 100.0
    assert type(best) is type(program)
    best.save(tmp_path / "best.json")
    fresh = type(program)(program.retrieve, k=2)
    fresh.load(tmp_path / "best.json")
    assert fresh.answer.signature.instructions == best.answer.signature.instructions
    assert len(fresh.answer.demos) == len(best.answer.demos)
    with dspy.context(lm=lm):
        assert evaluate(fresh).score == after
