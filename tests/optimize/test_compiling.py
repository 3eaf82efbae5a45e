"""Tests that a compile is measured on rows that it did not learn from, and saves what is better."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy import build_index
from kraq_dspy.errors import ConfigError, WorseProgramError
from kraq_dspy.optimize import (
    Method,
    Resources,
    RowKind,
    Sizes,
    Target,
    compile_program,
    make_target,
    own_metric,
    read_state,
)
from kraq_dspy.optimize.compile_run import Learned, take_over
from kraq_dspy.optimize.rows import Row, split_rows
from kraq_dspy.records import Document
from kraq_dspy.signatures import AnswerQuestion, DraftAnswer, VerifyDraft
from tests.conftest import KeywordEmbedder
from tests.optimize import learner
from tests.optimize.learner import Learner

TOY = Sizes(demos=2, candidates=3, rounds=2, threads=2)


def test_before_and_after_are_measured_on_rows_that_were_not_learned_from(
    models: dict[str, dspy.LM], answering: Callable[[int], list[Row]]
) -> None:
    compiled = compile_program(
        "answering",
        answering(20),
        method=Method(sizes=TOY),
        resources=Resources(lm=models),
        metric="token_f1",
    )
    assert compiled.n_train == len(compiled.before) == 10
    split = split_rows(answering(20), make_target("answering").rows)
    learned = {example.id for example in split.train}
    assert not learned & {example.id for example in split.dev}
    questions = {demo.question for demo in compiled.program.predictors()[0].demos}
    assert questions <= {row["question"] for row in answering(20) if row["id"] in learned}
    difference = compiled.comparison.difference
    assert 0 < difference.low <= difference.estimate <= difference.high
    assert difference.n == 10


def test_the_same_seed_gives_the_same_state_and_another_seed_another_split(
    models: dict[str, dspy.LM], answering: Callable[[int], list[Row]]
) -> None:
    def learned(seed: int) -> Any:
        return compile_program(
            "answering", answering(16), method=Method(sizes=TOY, seed=seed), resources=Resources(lm=models)
        ).state.predictors

    assert learned(1) == learned(1)
    assert learned(1) != learned(2)


def test_the_state_says_where_it_comes_from_and_holds_no_path_key_or_probability(
    answering: Callable[[int], list[Row]], tmp_path: Path
) -> None:
    lm = learner.learner_model(name="transformers//somewhere/on/this/machine/tiny-model")
    out = tmp_path / "answering.json"
    compile_program(
        "answering",
        answering(16),
        method=Method(sizes=TOY, seed=3),
        resources=Resources(lm={"default": lm}),
        out=out,
    )
    state = json.loads(out.read_text())
    made_by = state["provenance"]
    assert made_by["optimizer"] == "bootstrap"
    assert made_by["metric"] == "token_f1"
    assert made_by["seed"] == 3
    assert made_by["models"]["default"] == "transformers/tiny-model"
    assert made_by["data"]["train"] == made_by["data"]["dev"] == 8
    assert len(made_by["data"]["digest"]) == 32
    assert {"library_version", "dspy_version", "before", "after", "difference"} <= set(made_by)
    assert "somewhere" not in out.read_text()
    assert "logprob" not in out.read_text()
    assert state["predictors"]["step"]["signature"]["instructions"]


def test_a_worse_program_is_not_saved_unless_forced_and_the_calls_are_not_paid_twice(
    models: dict[str, dspy.LM], engine: Learner, answering: Callable[[int], list[Row]], tmp_path: Path
) -> None:
    def wordy(example: dspy.Example, prediction: dspy.Prediction, trace: object = None) -> float:
        return float(len(prediction.answer.split()) > 3)  # what was learned from demonstrations makes this worse

    out = tmp_path / "worse.json"
    method, resources = Method("labeled", sizes=TOY), Resources(lm=models)
    with pytest.raises(WorseProgramError, match=r"fell from 1\.000 to 0\.000.*--force"):
        compile_program("answering", answering(16), method=method, metric=wordy, resources=resources, out=out)
    assert not out.exists()
    paid = engine.calls
    forced = compile_program(
        "answering", answering(16), method=method, metric=wordy, resources=resources, out=out, force=True
    )
    assert out.exists()
    assert engine.calls == paid
    assert forced.comparison.difference.estimate == -1.0


def test_a_score_of_zero_is_no_yes_even_inside_a_prediction(models: dict[str, dspy.LM]) -> None:
    def never_good(example: dspy.Example, prediction: dspy.Prediction, trace: object = None) -> dspy.Prediction:
        return dspy.Prediction(score=0.0, feedback="wrong")  # true, if one asks Python

    assert bool(never_good(None, None))
    compiled = compile_program(
        "extraction",
        [{"passage": f"Ada met Charles {n}.", "triples": [["Ada", "met", f"Charles {n}"]]} for n in range(8)],
        method=Method(sizes=TOY),
        resources=Resources(lm=models),
        metric=never_good,
    )
    assert all(predictor.demos == [] for predictor in compiled.program.predictors())
    assert "Nothing changed" in compiled.problems[-1]


def test_demonstrations_that_went_are_a_change_and_those_that_stayed_are_none() -> None:
    demo = dspy.Example(question="Who?", passages=["Ada."], answer="Ada")
    predictor, same, without = (dspy.Predict(AnswerQuestion) for _ in range(3))
    predictor.demos, same.demos = [demo], [demo]
    assert not take_over(predictor, same)
    assert take_over(predictor, without)
    assert predictor.demos == []


@pytest.mark.parametrize(("name", "kept"), [("StringSignature", "AnswerQuestion"), ("AnswerBriefly", "AnswerBriefly")])
def test_a_learned_signature_that_lost_its_name_has_that_of_the_step(name: str, kept: str) -> None:
    predictor, learned = dspy.Predict(AnswerQuestion), dspy.Predict(dspy.Signature(AnswerQuestion.fields, "Answer."))
    learned.signature.__name__ = name
    assert take_over(predictor, learned)
    assert predictor.signature.__name__ == kept


def test_a_partial_score_is_a_demonstration_only_from_the_threshold_on(models: dict[str, dspy.LM]) -> None:
    def demos(threshold: float) -> int:
        compiled = compile_program(
            "extraction",
            [{"passage": f"Ada met Charles {n}.", "triples": [["Ada", "met", f"Charles {n}"]]} for n in range(8)],
            method=Method(sizes=TOY),
            resources=Resources(lm=models),
            metric=own_metric(lambda example, prediction: 0.3, threshold),
        )
        return len(compiled.program.predictors()[0].demos)

    assert demos(0.31) == 0
    assert demos(0.3) == 2


class DraftAndVerify(dspy.Module):
    """Two steps, each with a model of its own."""

    def __init__(self, drafter: dspy.LM, verifier: dspy.LM) -> None:
        super().__init__()
        self.draft = dspy.Predict(DraftAnswer)
        self.verify = dspy.Predict(VerifyDraft)
        self.draft.lm, self.verify.lm = drafter, verifier

    def forward(self, question: str, passages: list[str]) -> dspy.Prediction:
        draft = self.draft(question=question, passages=passages)
        verdict = self.verify(question=question, response=draft.response, rationale=draft.rationale)
        return dspy.Prediction(answer=draft.response, verdict=verdict.verdict)


def two_models() -> tuple[Target, Any, Any]:
    drafter, verifier = learner.Learner(), learner.Learner()
    program = DraftAndVerify(learner.learner_model(drafter, "drafter"), learner.learner_model(verifier, "verifier"))
    answering = make_target("answering")
    return Target("two", program, answering.rows, answering.metrics), drafter, verifier


@pytest.mark.parametrize("optimizer", ["bootstrap", "random-search", "mipro", "gepa"])
def test_predictors_keep_their_own_models_whatever_the_optimizer_resets(
    optimizer: str, answering: Callable[[int], list[Row]]
) -> None:
    target, drafter, verifier = two_models()
    teacher = learner.Learner()
    compiled = compile_program(
        target,
        answering(8),
        method=Method(optimizer, sizes=Sizes(demos=1, candidates=2, rounds=1, threads=2)),
        resources=Resources(lm={"default": learner.learner_model(teacher, "teacher")}),
        force=True,
    )
    assert [lm.lm.model for lm in compiled.program.predictors()] == ["drafter", "verifier"]
    assert [lm.lm.engine for lm in compiled.program.predictors()] == [drafter, verifier]  # the caller's own
    # Each prompt went to its own model: a teacher sees instructions being written, and no step.
    steps = {"rationale", "response", "verdict"}
    assert not any(set(kinds) & steps for kinds in teacher.kinds)
    assert {"rationale", "response"} in drafter.kinds
    assert all(kinds == {"verdict"} for kinds in verifier.kinds)


class Mumbling(learner.Learner):
    """Proposes what Qwen2.5-Coder-0.5B did, without any marker, or nothing."""

    def __init__(self, proposal: str) -> None:
        super().__init__()
        self.proposal = proposal

    def _proposed(self, prompt: str, outputs: dict[str, str]) -> str:
        return self.proposal if "proposed_instruction" in outputs else super()._proposed(prompt, outputs)


@pytest.mark.parametrize("proposal", ["Where did you go is your car not your bus", ""])
def test_a_proposal_that_cannot_be_read_is_tried_as_it_stands(
    proposal: str, answering: Callable[[int], list[Row]]
) -> None:
    teacher = Mumbling(proposal)
    compiled = compile_program(
        "answering",
        answering(8),
        method=Method("mipro", sizes=Sizes(demos=1, candidates=2, rounds=1, threads=2)),
        resources=Resources(lm={"default": learner.learner_model(), "teacher": learner.learner_model(teacher)}),
        force=True,
    )
    assert any("proposed_instruction" in kinds for kinds in teacher.kinds)
    assert len(compiled.after) == len(compiled.before) == 4


def test_the_program_that_was_given_is_not_changed(answering: Callable[[int], list[Row]]) -> None:
    target, _, _ = two_models()
    compiled = compile_program(
        target,
        answering(8),
        method=Method(sizes=TOY),
        resources=Resources(lm={"default": learner.learner_model()}),
        force=True,
    )
    assert all(predictor.demos == [] for predictor in target.program.predictors())
    assert compiled.program is not target.program
    assert not getattr(compiled.program, "_compiled", False)


def test_it_goes_on_from_a_state(
    models: dict[str, dspy.LM], answering: Callable[[int], list[Row]], tmp_path: Path
) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    compile_program(
        "answering",
        answering(16),
        method=Method(sizes=TOY),
        resources=Resources(lm=models),
        metric="token_f1",
        out=first,
    )
    again = compile_program(
        "answering",
        answering(16),
        method=Method(sizes=TOY, start=first),
        resources=Resources(lm=models),
        metric="token_f1",
        out=second,
    )
    assert again.before == (1.0,) * 8
    assert read_state(second).provenance["started_from"] == "first.json"


def test_the_embedded_model_is_said_not_to_improve(answering: Callable[[int], list[Row]]) -> None:
    compiled = compile_program("answering", answering(12), method=Method(sizes=TOY))
    assert compiled.before == compiled.after
    assert any("cannot improve" in problem for problem in compiled.problems)


@pytest.mark.parametrize("optimizer", ["random-search", "mipro", "gepa"])
def test_the_result_says_what_was_learned(
    models: dict[str, dspy.LM], answering: Callable[[int], list[Row]], optimizer: str
) -> None:
    compiled = compile_program(
        "answering",
        answering(8),
        method=Method(optimizer, sizes=Sizes(demos=1, candidates=2, rounds=1, threads=2)),
        resources=Resources(lm=models),
        force=True,
    )
    for learned in compiled.learned:
        assert learned.demos or learned.diff


def test_instructions_are_compared_by_sentences() -> None:
    learned = Learned("answer", "Answer briefly. Be exact.", "Answer in a word. Be exact.")
    assert learned.diff == ("- Answer briefly.", "+ Answer in a word.")


def test_a_target_of_ones_own_is_optimized_like_the_others(models: dict[str, dspy.LM]) -> None:
    class Echo(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.answer = dspy.Predict(AnswerQuestion)

        def forward(self, text: str) -> dspy.Prediction:
            return self.answer(question="When was it opened?", passages=[text])

    rows = RowKind(
        {"text", "year"},
        lambda row: dspy.Example(text=row["text"], answers=[row["year"]]).with_inputs("text"),
    )
    target = Target("echo", Echo(), rows, make_target("answering").metrics)
    dev = [{"text": f"The tower was opened in {year} by a queen.", "year": str(year)} for year in range(1801, 1817)]
    compiled = compile_program(
        target, dev, method=Method(sizes=TOY), resources=Resources(lm=models), metric="substring_match"
    )
    assert len(compiled.program.answer.demos) == 2


def test_the_state_must_be_a_json_file(answering: Callable[[int], list[Row]], tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"state\.pkl"):
        compile_program("answering", answering(16), out=tmp_path / "state.pkl")


def test_a_state_of_a_step_makes_of_an_index_only_that_step_anew(
    models: dict[str, dspy.LM], tmp_path: Path, keyword_embedder: type[KeywordEmbedder]
) -> None:
    people = (("Ada Lovelace", "London"), ("Lord Byron", "Missolonghi"), ("Mary Shelley", "Geneva"))
    texts = [f"{person} lived in {town}. {person} met a friend in {town}." for person, town in people]
    corpus = [Document(str(number), "", text) for number, text in enumerate(texts)]
    rows = [
        {"elements": [f"{person} lived in {town}, number {n}."], "mentions": [person, town]}
        for person, town in people
        for n in range(4)
    ]
    state = tmp_path / "summaries.json"
    compile_program(
        "summary",
        rows,
        method=Method("bootstrap", sizes=TOY),
        metric=lambda example, prediction: 1.0,
        resources=Resources(lm=models),
        out=state,
    )

    def calls(*states: Path) -> dict[str, int]:
        embedder = keyword_embedder("ada", "byron", "shelley")
        report = build_index(corpus, tmp_path / "people.kraq", embedder=embedder, optimized=states)
        return {stage: usage.calls for stage, usage in report.usage.items()}

    assert {"extract", "summarize"} <= set(calls())
    assert calls() == {}
    assert set(calls(state)) == {"summarize"}
    assert calls(state) == {}
