"""Does the step that a DSPy prompt states by classic means, and answers in the prompt's format.

It needs no weights beyond the sentence encoder, which it is handed and which only answers use. The same prompt always
gets the same answer. Usage is estimated: four letters are a token. Log-probabilities are made up from overlap: a word
that the input has is likely (0.9), another is not (0.3), and the words of a verdict have the verdict's probability.
"""

import math
import re
from collections.abc import Callable, Sequence, Set as AbstractSet
from functools import cached_property, lru_cache
from typing import Any

import dspy
import numpy as np
from dspy.lm15 import Message, Request, Response, TextPart, TokenLogprob, TopLogprob, Usage

from kraq_dspy import signatures
from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy._internal.one_blas_thread import product
from kraq_dspy._internal.recent import Recent
from kraq_dspy.embedded import extract, judge, pairs, rewrite, summarize
from kraq_dspy.embedded.answer import UNKNOWN, Similar, account, answer, rated_points, short_answer
from kraq_dspy.embedded.asking import templates
from kraq_dspy.embedded.fitting import fitted
from kraq_dspy.embedded.names import names_in
from kraq_dspy.embedded.prompt import Task, read_task, write_answer
from kraq_dspy.embedded.rewrite import in_other_words
from kraq_dspy.embedded.testset import checks, facts, over_many
from kraq_dspy.errors import ModelError
from kraq_dspy.language.follow_ups import complete_question
from kraq_dspy.language.text import content_words, sentences
from kraq_dspy.ports import Embedder, Vectors

PIECE = re.compile(r"\n+|[^\S\n]*\w+|[^\S\n]*[^\w\s]|\s+?")
OTHER = {"yes": "No", "no": "Yes", "true": "False", "false": "True"}
REMEMBERED = 1024
"""Sentences whose vectors an engine keeps: the next question about the same passages compares them again."""
_LETTERS = 4  # of a token, about, in English


class EmbeddedEngine(SharedByCopies):
    """Safe for threads when the embedder is; between calls it keeps only the vectors of sentences."""

    supports_response_schema = False

    def __init__(self, embedder: Embedder | None = None) -> None:
        self.embedder = embedder

    def complete(self, request: Request) -> Response:
        """Raises ModelError for a prompt that is no DSPy signature, or asks for a kind of value it cannot make."""
        task = read_task(request)
        text = write_answer(task, self._values(task))
        asked = [str(request.system or ""), *(message.text or "" for message in request.messages)]

        return Response(
            id=None,
            model=request.model,
            message=Message.assistant([TextPart(text)]),
            finish_reason="stop",
            usage=Usage(input_tokens=sum(map(len, asked)) // _LETTERS, output_tokens=len(text) // _LETTERS),
            logprobs=_logprobs(text, task, request.config.logprobs) if request.config.logprobs is not None else None,
        )

    def similar(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Cosines of the question to the texts; zeros without an encoder."""
        if self.embedder is None or not texts:
            return [0.0] * len(texts)
        vectors = np.stack(self._sentences.of(texts, self.embedder.encode_passages))
        return list(product(vectors, self.embedder.encode_queries([question])[0]))

    @cached_property
    def _sentences(self) -> Recent[str, Vectors]:
        return Recent(REMEMBERED)

    def _values(self, task: Task) -> dict[str, Any]:
        fields = [name for name in task.outputs if name != "reasoning"]
        step = _step(tuple(task.outputs.items()), frozenset(task.inputs))
        values = step(task, self.similar) if step else {name: self._guess(task, name) for name in fields}
        if step and len(fields) == 1:
            values = {fields[0]: values}
        values = {
            name: fitted(name, task.annotations.get(name, "str"), task.choices.get(name, ()), value)
            for name, value in values.items()
        }
        if "reasoning" in task.outputs:
            everything = sentences("\n".join(task.evidence()))
            values["reasoning"] = " ".join(summarize.central(everything, 2)) or "The inputs say so."
        return values

    def _guess(self, task: Task, name: str) -> Any:
        """Make up a value for a field of an unknown signature. A truth value or a choice is the
        higher, the more words of the answer (or the last input) the other inputs have. A list gets
        the names of the answer to a question, or of all inputs, and a text the answer, or the gist;
        what else there is gets the text, for `fitted` to read."""
        kind, choices = task.outputs[name], task.choices.get(name, ())
        annotation = task.annotations.get(name, "list[str]")
        if len(task.inputs) == 1 and kind != "str" and annotation not in ("list", "list[str]"):
            return _everything(task)  # what the text says itself, or an error of `fitted`
        is_asked = "question" in task.inputs and len(task.inputs) > 1
        if is_asked and kind in ("int", "float", "union", "optional"):
            return self._guessed_text(task)
        if is_asked and kind == "list":
            return self._guessed_list(task, task.annotations.get(name, "list[str]"))

        share = _supported_share(task)
        if kind == "bool":
            return share >= 0.5
        chosen = _chosen(choices, share)
        if chosen is not None:
            return chosen
        if kind == "list":
            return _names_of(task)
        if is_asked or kind == "str":
            return self._guessed_text(task)
        raise ModelError(
            f"The embedded model has no way to make the field {name!r} ({kind}) without a question to answer. Name a "
            "real model for this role."
        )

    def _guessed_list(self, task: Task, annotation: str) -> Any:
        """The names of the short answer, or the answer alone; none without one. Of other things than texts `fitted`
        finds them in the answer."""
        response, rationale = short_answer(task.text("question"), task.evidence(), self.similar)
        if annotation not in ("list", "list[str]"):
            return "" if rationale.startswith(response) else response  # a sentence says other values, too
        return [] if response == UNKNOWN else names_in(response) or [response]

    def _guessed_text(self, task: Task) -> str:
        if "question" in task.inputs and len(task.inputs) > 1:
            return answer(task.text("question"), task.evidence(), self.similar)
        everything = _everything(task)
        gist = " ".join(summarize.central(sentences(everything), 2))
        return gist or everything[:200] or "Nothing was given."


def _chosen(choices: Sequence[str], share: float) -> int | str | None:
    """The number as high, or the verdict as favorable, as the share in [0, 1]; None if the choices are neither."""
    if choices and all(map(str.isdecimal, choices)):
        return int(choices[round(share * (len(choices) - 1))])
    verdicts = {choice.lower(): choice for choice in choices}
    if verdicts.keys() == {"yes", "no"}:
        return verdicts["yes" if share >= 0.5 else "no"]
    return None


def _names_of(task: Task) -> list[str]:
    return list(dict.fromkeys(name for part in sentences(_everything(task)) for name in names_in(part)))


def _everything(task: Task) -> str:
    return "\n".join(task.text(field) for field in task.inputs)


def _supported_share(task: Task) -> float:
    """How much of the answer, or of the last input, the other inputs say."""
    candidates = ("answer", "response", *reversed(list(task.inputs)))
    claim = next((field for field in candidates if field in task.inputs), "")
    others = [task.text(field) for field in task.inputs if field not in (claim, "question")]
    return judge.support(task.text(claim), "\n".join(others))


Step = Callable[[Task, Similar], Any]
"""The value of a task's only output, or the values of several by name."""


def _with_reason(task: Task, similar: Similar) -> dict[str, Any]:
    """A response and its reason, under the names that the task has for them."""
    response, reason = short_answer(task.text("question"), task.evidence(), similar)
    return {name: response if name in ("answer", "response") else reason for name in task.outputs}


def _verdict(task: Task) -> float:
    """Probability, never certain, that the rationale supports the response, and speaks of the question."""
    rationale, response = task.text("rationale"), task.text("response")
    has_words = bool(content_words(response))
    stated = judge.support(response, rationale) if has_words else float(response.lower() in rationale.lower())
    return 0.05 + 0.9 * (0.7 * stated + 0.3 * judge.support(task.text("question"), rationale))


def _titled(summary: str) -> dict[str, Any]:
    """The summary under the names that it begins with."""
    return {"title": " and ".join(names_in(summary)[:2]) or summary[:60], "summary": summary}


def _agrees(task: Task, similar: Similar) -> float:
    return judge.agreement(task.text("answer"), task.texts("reference_answers"))


def _covers(task: Task, similar: Similar) -> bool:
    """Whether the answer has a synonym of more than half of the items."""
    items = task.inputs.get("reference_items", [])
    groups = [list(map(str, item)) if isinstance(item, list) else [str(item)] for item in items]
    return sum(judge.agreement(task.text("answer"), group) >= 0.9 for group in groups) * 2 > len(groups)


def _grade(task: Task, similar: Similar) -> dict[str, Any]:
    share = _agrees(task, similar)
    return {"feedback": f"The answer shares {share:.0%} of its words with a reference.", "grade": 1 + round(4 * share)}


def _lets_pass(task: Task, similar: Similar) -> dict[str, Any]:
    """The best rating for what says anything: overlap does not tell what is relevant or clear."""
    rating = 5 if content_words(task.text("question")) else 1
    return {name: "Not judged." if name == "evaluation" else rating for name in task.outputs}


def _statements(task: Task, field: str, verdict: str) -> list[dict[str, Any]]:
    """Each sentence of an input, and whether one of the passages supports it."""
    passages = task.texts("passages")
    return [
        {"statement": text, verdict: any(judge.support(text, passage) >= 0.6 for passage in passages)}
        for text in sentences(task.text(field))
    ]


STEPS: dict[type[dspy.Signature], Step] = {
    signatures.AnswerQuestion: lambda task, similar: answer(task.text("question"), task.evidence(), similar),
    signatures.AnswerAndExplain: _with_reason,
    signatures.AnswerFromPairs: lambda task, similar: answer(
        task.text("question"), [pair.partition("\n")[2] or pair for pair in task.texts("pairs")], similar
    ),
    signatures.AnswerFromPoints: lambda task, similar: answer(
        task.text("question"), [re.sub(r"^\d+: ", "", point) for point in task.texts("points")], similar
    ),
    signatures.CompleteQuestion: lambda task, similar: complete_question(
        task.text("last_question"), task.texts("conversation")
    ),
    signatures.AskAboutPassages: lambda task, similar: templates.question_about_theme(task.texts("passages")),
    signatures.AskSubQuestion: lambda task, similar: templates.question_about(task.text("information")),
    signatures.ChooseRewritings: lambda task, similar: rewrite.rewritings(task.text("question")),
    signatures.CondenseQuestion: lambda task, similar: rewrite.core(task.text("question")),
    signatures.ConfirmEvidence: lambda task, similar: judge.support(task.text("question"), task.text("passage")) >= 0.6,
    signatures.ConfirmSameEntity: lambda task, similar: judge.same_thing(task.text("first"), task.text("second")),
    signatures.ConfirmSameQuestion: lambda task, similar: judge.is_same_question(
        task.text("first_question"), task.text("second_question"), similar
    ),
    signatures.DecomposeQuestion: lambda task, similar: rewrite.sub_questions(task.text("question")),
    signatures.DraftAnswer: _with_reason,
    signatures.ExtractElements: lambda task, similar: extract.first_reading(task.text("passage")),
    signatures.FindMissedElements: lambda task, similar: extract.second_reading(
        task.text("passage"), task.text("found")
    ),
    signatures.FindSameQuestion: lambda task, similar: judge.matching_number(
        task.text("question"), task.texts("catalogue"), similar
    ),
    signatures.GenerateQuestion: lambda task, similar: templates.question_about(task.text("summary")),
    signatures.GradeAnswer: _grade,
    signatures.GuessAnswer: lambda task, similar: rewrite.core(task.text("question")),
    signatures.JudgeAnswer: lambda task, similar: _agrees(task, similar) >= 0.6,
    signatures.JudgeListAnswer: _covers,
    signatures.AttributeReference: lambda task, similar: _statements(task, "reference_answer", "attributed"),
    signatures.JudgeSupport: lambda task, similar: _statements(task, "answer", "supported"),
    signatures.ListKeywords: lambda task, similar: rewrite.keywords(task.text("question")),
    signatures.MergeDescriptions: lambda task, similar: summarize.merged_description(
        task.text("name"), task.texts("descriptions")
    ),
    signatures.NameElements: lambda task, similar: extract.names_and_links(task.text("passage")),
    signatures.RatePoints: lambda task, similar: rated_points(task.text("question"), task.texts("reports"), similar),
    signatures.RateRelevance: _lets_pass,
    signatures.RateStandAlone: _lets_pass,
    signatures.RephraseQuestion: lambda task, similar: rewrite.rephrased(
        task.text("question"), int(task.text("count") or 3), int(task.text("most_characters") or 0)
    ),
    signatures.RewriteQuestion: lambda task, similar: rewrite.said_once(task.text("question")),
    signatures.ShortenText: lambda task, similar: summarize.shortened(task.text("text"), int(task.text("words") or 60)),
    signatures.SummarizeCommunity: lambda task, similar: summarize.community_summary(task.texts("elements")),
    signatures.SummarizeEvidence: lambda task, similar: _titled(summarize.passages_summary(task.texts("passages"))),
    signatures.SummarizePassages: lambda task, similar: summarize.passages_summary(task.texts("passages")),
    signatures.TellFromGraph: lambda task, similar: account(task.text("question"), task.evidence(), similar),
    signatures.VaryQuestion: lambda task, similar: rewrite.varied(task.text("question"), int(task.text("count") or 4)),
    signatures.VerifyDraft: lambda task, similar: "Yes" if _verdict(task) >= 0.5 else "No",
    signatures.WordQuestion: lambda task, similar: facts.question_for(task.text("statement"), task.text("answer")),
    signatures.WriteFactoidPair: lambda task, similar: pairs.factoid_pair(task.text("passage"), similar),
    signatures.WriteQAPairs: lambda task, similar: pairs.question_answer_pairs(task.text("passage")),
    signatures.AskFact: lambda task, similar: facts.fact_about(task.text("passage"), task.texts("about")),
    signatures.AskList: lambda task, similar: {"question": "", "items": []},
    signatures.AskBridge: lambda task, similar: dict.fromkeys(task.outputs, ""),
    signatures.AskComparison: lambda task, similar: dict.fromkeys(task.outputs, ""),
    signatures.AskBroad: lambda task, similar: over_many.question_for_many(task.texts("passages"), task.texts("about")),
    signatures.AskFalsePremise: lambda task, similar: facts.asked_of_another(
        task.text("question"), task.text("name"), task.text("other")
    ),
    signatures.CheckStandAlone: lambda task, similar: checks.says_what_it_is_about(task.text("question")),
    signatures.CheckAnswered: lambda task, similar: checks.is_answered(
        task.text("question"), task.text("answer"), task.text("passage")
    ),
    signatures.CheckSameAnswer: lambda task, similar: checks.says_the_same(
        task.text("first_answer"), task.text("second_answer")
    ),
    signatures.ParaphraseQuestion: lambda task, similar: in_other_words(
        rewrite.said_once(task.text("question")), task.texts("avoid")
    ),
}
"""What is done for the signatures of this library; the others, and strangers', are answered by a guess."""


@lru_cache(maxsize=256)
def _step(kinds_of_outputs: tuple[tuple[str, str], ...], inputs: AbstractSet[str]) -> Step | None:
    """That of the signature with the prompt's outputs, whose truth values are its own, and, of several, the most
    of its inputs; None for another.

    A prompt does not name its signature, and instructions change when they are optimized: fields are what stays.
    """
    kinds = dict(kinds_of_outputs)
    outputs = kinds.keys() - {"reasoning"}
    shared = {
        signature: len(signature.input_fields.keys() & inputs)
        for signature in STEPS
        if signature.output_fields.keys() == outputs
        and all(
            field.annotation is not bool or kinds[name] == "bool" for name, field in signature.output_fields.items()
        )
    }
    best = max(shared, key=shared.__getitem__, default=None)
    return STEPS[best] if best is not None and shared[best] else None


def _logprobs(text: str, task: Task, alternatives: int) -> tuple[TokenLogprob, ...]:
    input_words = set(content_words("\n".join(task.text(name) for name in task.inputs)))
    verdict = _verdict(task) if "verdict" in task.outputs else None

    tokens = []
    for piece in PIECE.findall(text):
        word = piece.strip().lower()
        is_verdict = verdict is not None and word in OTHER
        if verdict is not None and is_verdict:
            chance = max(verdict, 1 - verdict)
        elif word.isalnum():
            telling_words = set(content_words(word))
            chance = 0.9 if not telling_words or telling_words & input_words else 0.3
        else:
            chance = 0.99

        logprob, content = math.log(chance), tuple(piece.encode())
        top = [TopLogprob(token=piece, logprob=logprob, bytes=content)]
        if is_verdict:
            other = OTHER[word]
            top.append(TopLogprob(token=other, logprob=math.log(1 - chance), bytes=tuple(other.encode())))
        tokens.append(TokenLogprob(token=piece, logprob=logprob, bytes=content, top=tuple(top[:alternatives])))
    return tuple(tokens)
