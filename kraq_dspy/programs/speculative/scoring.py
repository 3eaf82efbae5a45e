"""Scores drafts: by the papers' confidences, by Wang's probabilities, or by votes.

All in logarithms, so that long drafts do not underflow.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from kraq_dspy._internal.both_ways import at_once, call
from kraq_dspy._internal.step import CALL_ERRORS, Step, in_one_line, raise_if_final
from kraq_dspy.models.lms.logprobs import field_logprobs, mean_logprob, take_logprobs
from kraq_dspy.ports import PromptScorer, Space
from kraq_dspy.programs.speculative.drafts import Draft, FailedDraft
from kraq_dspy.signatures import VerifyDraft
from kraq_dspy.state import SavableModule


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a draft: the natural logarithms of `rho` and of its parts. `seconds` is the verifier's time."""

    total: float
    parts: Mapping[str, float]
    seconds: float = 0.0


class Scorer(SavableModule):
    """Base class for scorers of drafts. A scorer is a module, so optimizers can change the predictors of a scorer.

    `aforward(question, drafts)` returns one Score or FailedDraft for each draft, in the order of the drafts.
    `forward` does the same for synchronous callers.

    >>> class Shortest(Scorer):
    ...     name, needs_logprobs = "shortest", False
    ...     async def aforward(self, question, drafts):
    ...         return [Score(-len(draft.response), {}) for draft in drafts]
    >>> Shortest()(question="Where?", drafts=[Draft(0, (0,), "It says so.", "London", seconds=0.1)])[0].total
    -6
    """

    name: str
    needs_logprobs: bool  # of the drafter


class KraqScore(Scorer):
    """Scores a draft as the KRAQ papers do: rho_draft * rho_self_contain * rho_self_reflect.

    rho_draft is P_conf of the rationale plus P_conf of the response. rho_self_contain is P_conf of both together. The
    verifier sees the question and the draft, without passages, and replies Yes or No. rho_self_reflect is P_conf of
    this reply if it is Yes, and 1 - P_conf if it is No. All drafts are verified at once.

    >>> from kraq_dspy import Workspace
    >>> space = Workspace.open("ada.kraq")
    >>> draft = Draft(0, (0,), "Ada lived there.", "London", 0.1, rationale_logprobs=(-0.1,), response_logprobs=(-0.2,))
    >>> with space:  # whose embedded model makes log-probabilities up
    ...     sorted(KraqScore()(question="Where did Ada live?", drafts=[draft])[0].parts)
    ['draft', 'self_contain', 'self_reflect']
    """

    name = "kraq"
    needs_logprobs = True

    def __init__(self, in_flight: int | None = None) -> None:
        super().__init__()
        self.verify = Step(VerifyDraft)
        self.in_flight = in_flight

    async def aforward(self, question: str, drafts: Sequence[Draft]) -> list[Score | FailedDraft]:
        async def verify(draft: Draft) -> Score | FailedDraft:
            started = perf_counter()

            def failed(reason: str) -> FailedDraft:
                return FailedDraft(draft.number, draft.passages, reason, perf_counter() - started)

            try:
                verdict = await call(
                    self.verify,
                    question=question,
                    response=draft.response,
                    rationale=draft.rationale,
                    config={"logprobs": True},
                )
            except CALL_ERRORS as error:
                raise_if_final(error)
                return failed(in_one_line(error))
            seconds = perf_counter() - started
            logprobs = take_logprobs(verdict, role="verifier", wanted_by=self.name)
            tokens = field_logprobs(logprobs, {"verdict": verdict.verdict}).get("verdict")
            if not tokens:
                return failed("The verdict's log-probabilities could not be told apart in its answer.")
            return kraq_score(draft, supported=verdict.verdict == "Yes", verdict=tokens, seconds=seconds)

        return await at_once(verify, drafts, limit=self.in_flight)


@dataclass(frozen=True, slots=True)
class ReflectionPrompt:
    """The text around a draft that `WangScore` shows the verifier; put a chat model's turn markers in here.

    `question` is formatted with `{question}`. The defaults suit a model without a chat template.
    """

    question: str = "Question: {question}\nAnswer:"
    rationale: str = "\nExplanation:"
    statement: str = "\nDo you think the explanation supports the answers? (Yes or No)\n"
    yes: str = "Yes"


class WangScore(Scorer):
    """The score of Wang et al. (2024, 3.3), in conditional probabilities.

    rho_draft = P(rationale | Q, D) + P(response | Q, D, rationale), by the drafter. rho_self_contain = P(response,
    rationale | Q) and rho_self_reflect = P("Yes" | Q, response, rationale, statement), by the verifier, which is given
    the texts and generates none. The probability of a text is the product over its tokens, so longer drafts score
    lower: that is why the KRAQ thesis (5.2.2) takes means instead, as `KraqScore` does; `per_token` takes them here.

    >>> class Certain:
    ...     def prompt_logprobs(self, prompts):
    ...         return [[(-0.1,)] * 6 for _ in prompts]
    >>> draft = Draft(0, (0,), "Ada lived there.", "London", 0.1, rationale_logprobs=(-0.1,), response_logprobs=(-0.2,))
    >>> [score] = WangScore(Certain())(question="Where did Ada live?", drafts=[draft])
    >>> round(score.parts["self_contain"], 1), round(score.parts["self_reflect"], 1)
    (-0.2, -0.1)
    """

    name = "wang2024"
    needs_logprobs = True

    def __init__(
        self, verifier: PromptScorer, *, prompt: ReflectionPrompt | None = None, per_token: bool = False
    ) -> None:
        super().__init__()
        self.verifier = verifier
        self.prompt = prompt or ReflectionPrompt()
        self.per_token = per_token

    async def aforward(self, question: str, drafts: Sequence[Draft]) -> list[Score | FailedDraft]:
        if not drafts:
            return []

        started = perf_counter()
        asked_part = self.prompt.question.format(question=question)
        prompts = [
            (
                asked_part,
                f" {draft.response}",
                self.prompt.rationale,
                f" {draft.rationale}",
                self.prompt.statement,
                self.prompt.yes,
            )
            for draft in drafts
        ]
        scored = await call(self.verifier.prompt_logprobs, prompts)
        seconds = perf_counter() - started

        scores: list[Score | FailedDraft] = []
        for draft, (_, response, _, rationale, _, yes) in zip(drafts, scored, strict=True):
            log_p = mean_logprob if self.per_token else math.fsum
            parts = {
                "draft": _log_of_sum(log_p(draft.rationale_logprobs), log_p(draft.response_logprobs)),
                "self_contain": log_p([*response, *rationale]),
                "self_reflect": log_p(yes),
            }
            scores.append(Score(sum(parts.values()), parts, seconds))
        return scores


class VoteScore(Scorer):
    """Scores a draft by the number of drafts with the same response. Letter case and punctuation do not count. Use
    this
    scorer for models without log-probabilities.

    >>> drafts = [Draft(0, (0,), "", answer, seconds=0.1) for answer in ("London", "Rome", "london.")]
    >>> [round(score.total, 1) for score in VoteScore()(question="Where did Ada live?", drafts=drafts)]
    [0.7, 0.0, 0.7]
    """

    name = "vote"
    needs_logprobs = False

    async def aforward(self, question: str, drafts: Sequence[Draft]) -> list[Score | FailedDraft]:
        plain = (draft.response.casefold() for draft in drafts)
        responses = [" ".join(re.findall(r"\w+", response)) or response.strip() for response in plain]
        votes = Counter(responses)
        return [Score(math.log(votes[response]), {"votes": math.log(votes[response])}) for response in responses]


def kraq_score(draft: Draft, *, supported: bool, verdict: Sequence[float], seconds: float = 0.0) -> Score:
    """`verdict` are the log-probabilities of the verifier's answer, Yes (`supported`) or No."""
    confidence = mean_logprob(verdict)
    parts = {
        "draft": _sum_of_confidences(draft),
        "self_contain": mean_logprob(draft.rationale_logprobs + draft.response_logprobs),
        "self_reflect": confidence if supported else _log_of_rest(confidence),
    }
    return Score(sum(parts.values()), parts, seconds)


def best(drafts: Sequence[Draft], scores: Sequence[Score]) -> int:
    """The position of the best draft. Equal scores: the drafter's confidence decides, then the order.

    Raises ValueError when there is none.
    """

    def rank(position: int) -> tuple[float, float, int]:
        draft = drafts[position]
        confidence = _sum_of_confidences(draft) if draft.response_logprobs else 0.0
        return scores[position].total, confidence, -position

    return max(range(len(drafts)), key=rank)


def _sum_of_confidences(draft: Draft) -> float:
    """log(P_conf(rationale) + P_conf(response))"""
    return _log_of_sum(mean_logprob(draft.rationale_logprobs), mean_logprob(draft.response_logprobs))


def _log_of_sum(a: float, b: float) -> float:
    """log(exp(a) + exp(b))"""
    high, low = max(a, b), min(a, b)
    return high if low == -math.inf else high + math.log1p(math.exp(low - high))


def _log_of_rest(a: float) -> float:
    """log(1 - exp(a)), -inf for a certain event."""
    return math.log(-math.expm1(a)) if a < 0 else -math.inf


SCORERS: dict[str, Callable[[Space, int | None], Scorer]] = {
    "kraq": lambda space, in_flight: KraqScore(in_flight),
    "wang2024": lambda space, in_flight: WangScore(space.prompt_scorer("verifier")),
    "vote": lambda space, in_flight: VoteScore(),
}
"""By their names in `SpeculativeOptions`; each takes the index and how many verdicts may be asked for at once."""
