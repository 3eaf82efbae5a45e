"""Probabilities here are powers of two, so that every score can be worked out by hand."""

import asyncio
import math
from collections.abc import Sequence

import dspy
import pytest

from kraq_dspy.errors import MissingLogprobsError
from kraq_dspy.extend import KraqAdapter
from kraq_dspy.programs import KraqScore, Scorer, VoteScore
from kraq_dspy.programs.speculative.drafts import Draft, FailedDraft
from kraq_dspy.programs.speculative.scoring import Score, WangScore, best, kraq_score
from tests.programs.speculative.conftest import ScriptedLM

HALF, QUARTER, EIGHTH = math.log(1 / 2), math.log(1 / 4), math.log(1 / 8)


def draft(
    response: str = "Paris", rationale: Sequence[float] = (HALF,), answer: Sequence[float] = (HALF,), number: int = 0
) -> Draft:
    return Draft(number, (0,), "because", response, 0.1, tuple(rationale), tuple(answer))


def test_kraq_multiplies_the_sum_of_confidences_the_joint_confidence_and_the_verdicts() -> None:
    # P_conf(rationale) = 1/4, P_conf(response) = 1/2, together (1/4 * 1/4 * 1/2) ** (1/3), Yes with 1/2.
    score = kraq_score(draft(rationale=[QUARTER, QUARTER], answer=[HALF]), supported=True, verdict=[HALF])
    assert score.parts["draft"] == pytest.approx(math.log(3 / 4))
    assert score.parts["self_contain"] == pytest.approx(math.log((1 / 32) ** (1 / 3)))
    assert score.parts["self_reflect"] == pytest.approx(HALF)
    assert score.total == pytest.approx(math.log(3 / 4) + math.log(1 / 32) / 3 + HALF)


def test_a_no_counts_with_one_minus_its_confidence() -> None:
    score = kraq_score(draft(), supported=False, verdict=[math.log(3 / 4)])
    assert score.parts["self_reflect"] == pytest.approx(QUARTER)


def test_a_certain_no_rules_a_draft_out() -> None:
    assert kraq_score(draft(), supported=False, verdict=[0.0]).total == -math.inf


def test_a_draft_of_4000_tokens_does_not_underflow() -> None:
    long, longer = draft(rationale=[EIGHTH] * 4000), draft(rationale=[EIGHTH] * 4001)
    for scored in (long, longer):
        assert math.isfinite(kraq_score(scored, supported=True, verdict=[HALF]).total)


def test_the_best_draft_wins_and_equal_scores_go_to_the_surer_then_to_the_earlier() -> None:
    ruled_out = Score(-math.inf, {})
    sure, unsure = draft(answer=[HALF]), draft(answer=[EIGHTH])
    assert best([unsure, sure], [Score(-1.0, {}), Score(-2.0, {})]) == 0
    assert best([unsure, sure], [ruled_out, ruled_out]) == 1
    assert best([sure, sure], [ruled_out, ruled_out]) == 0

    certain, untold = draft(rationale=[0.0], answer=[0.0]), draft(rationale=[], answer=[])
    assert best([untold, certain], [ruled_out, ruled_out]) == 1  # what tells no confidence goes after the certain


def test_vote_counts_equal_responses_whatever_their_case_and_punctuation() -> None:
    drafts = [draft("Paris."), draft("Lyon"), draft("  paris"), draft("?!"), draft("東京")]
    assert [math.exp(score.total) for score in VoteScore()(question="q", drafts=drafts)] == pytest.approx(
        [2, 1, 2, 1, 1]
    )


def verdicts(prompt: str) -> list[tuple[str, float]]:
    """Yes to Paris, No to Lyon, chatter about Rome, each after the marker."""
    verdict = "Yes" if "Paris" in prompt else "No" if "Lyon" in prompt else "Well, that depends"
    return [("[[ ## verdict ## ]]\n", 0.0), (verdict, HALF), ("\n[[ ## completed ## ]]", EIGHTH)]


@pytest.mark.parametrize("run", ["threads", "tasks"])
def test_the_verifier_is_asked_about_all_drafts_at_once_and_what_it_does_not_judge_costs_that_draft(
    run: str, scripted_lm: ScriptedLM
) -> None:
    lm, engine = scripted_lm(verdicts, delay_s=0.2)
    drafts = [draft("Paris", answer=[QUARTER]), draft("Lyon"), draft("Rome")]
    scorer = KraqScore()
    with dspy.context(lm=lm):
        if run == "threads":
            scores = scorer(question="capital of France?", drafts=drafts)
        else:
            scores = asyncio.run(scorer.acall(question="capital of France?", drafts=drafts))
    assert engine.most_in_flight >= 3
    assert scores[0].parts["self_reflect"] == pytest.approx(HALF)
    assert scores[1].parts["self_reflect"] == pytest.approx(math.log(1 - 1 / 2))
    assert isinstance(scores[2], FailedDraft)
    assert "Well, that depends" in scores[2].reason
    assert all("passages" not in prompt for prompt in engine.prompts)


def test_a_sloppy_verdict_that_the_forgiving_adapter_reads_counts_by_its_word(scripted_lm: ScriptedLM) -> None:
    lm, _ = scripted_lm(lambda prompt: [("[[ ## verdict ## ]]\n", 0.0), ("yes", HALF), (", it does.", EIGHTH)])
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        [score] = KraqScore()(question="q", drafts=[draft("Paris")])
    assert score.parts["self_reflect"] == pytest.approx(HALF)


def test_a_verifier_without_logprobs_is_an_error_that_names_the_way_out(scripted_lm: ScriptedLM) -> None:
    lm, _ = scripted_lm(verdicts, logprobs=False)
    with dspy.context(lm=lm), pytest.raises(MissingLogprobsError, match=r"verifier .*logprobs=True.*'vote'"):
        KraqScore()(question="q", drafts=[draft("Paris"), draft("Lyon")])


@pytest.mark.parametrize("scorer", [KraqScore(), VoteScore()])
def test_every_scorer_gives_one_score_for_each_draft_in_order(scorer: Scorer, scripted_lm: ScriptedLM) -> None:
    lm, _ = scripted_lm(verdicts)
    drafts = [draft("Paris", number=3), draft("Paris", answer=[EIGHTH], number=5)]
    with dspy.context(lm=lm):
        scores = scorer(question="q", drafts=drafts)
        again = asyncio.run(scorer.acall(question="q", drafts=drafts))
        assert scorer(question="q", drafts=[]) == []
    assert [score.total for score in scores] == [score.total for score in again]
    assert scores[0].total >= scores[1].total
    assert all(isinstance(score, Score) for score in scores)


class OneBitPerCharacter:
    """A verifier to which each character has the probability 1/2, and "Yes" the probability 1."""

    def __init__(self) -> None:
        self.calls: list[Sequence[Sequence[str]]] = []

    def prompt_logprobs(self, prompts: Sequence[Sequence[str]]) -> list[list[tuple[float, ...]]]:
        self.calls.append(prompts)
        return [[(0.0,) if text == "Yes" else (HALF,) * len(text) for text in prompt] for prompt in prompts]


def test_wang_multiplies_conditional_probabilities_of_whole_texts() -> None:
    """Drafter: P(rationale) = 1/4 * 1/2, P(response) = 1/8. Verifier: 1/2 a character of the draft, Yes for certain."""
    scored = draft("Rome", rationale=[QUARTER, HALF], answer=[EIGHTH])
    [score] = WangScore(OneBitPerCharacter())(question="capital?", drafts=[scored])
    characters = len(" Rome") + len(" because")
    assert math.exp(score.parts["draft"]) == pytest.approx(1 / 8 + 1 / 8)
    assert score.parts["self_contain"] == pytest.approx(characters * HALF)
    assert score.parts["self_reflect"] == 0.0
    assert score.total == pytest.approx(math.log(1 / 4) + characters * HALF)


def test_wang_by_token_takes_geometric_means_so_that_length_does_not_count() -> None:
    scored = draft("Rome", rationale=[QUARTER, QUARTER], answer=[HALF])
    [score] = WangScore(OneBitPerCharacter(), per_token=True)(question="capital?", drafts=[scored])
    assert math.exp(score.parts["draft"]) == pytest.approx(1 / 4 + 1 / 2)
    assert score.parts["self_contain"] == pytest.approx(HALF)


def test_wang_asks_for_all_drafts_in_one_call_and_keeps_texts_and_labels_apart() -> None:
    verifier = OneBitPerCharacter()
    scores = WangScore(verifier)(question="capital?", drafts=[draft("Paris"), draft("Lyon")])
    [call] = verifier.calls
    assert "".join(call[0]) == (
        "Question: capital?\nAnswer: Paris\nExplanation: because\n"
        "Do you think the explanation supports the answers? (Yes or No)\nYes"
    )
    # " Paris" and " because" have 14 characters, " Lyon" and " because" 13.
    assert scores[0].parts["self_contain"] == pytest.approx(14 * HALF)
    assert scores[1].parts["self_contain"] == pytest.approx(13 * HALF)


def test_wang_of_no_draft_asks_nobody() -> None:
    verifier = OneBitPerCharacter()
    assert WangScore(verifier)(question="capital?", drafts=[]) == []
    assert verifier.calls == []
