"""Reads a DSPy prompt, does its step by classic means, and answers in the prompt's format.

It needs no weights beyond the sentence encoder, which it is handed and which only answers use. The same prompt always
gets the same answer. Usage is counted in cl100k tokens, log-probabilities are made up from overlap: a word that the
input has is likely (0.9), another is not (0.3), and the words of a verdict have the verdict's probability.
"""

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import dspy
from dspy.lm15 import Message, Request, Response, TextPart, TokenLogprob, TopLogprob, Usage

from kraq_dspy import signatures
from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.errors import ModelError
from kraq_dspy.models.lms.engines.embedded import rewrite
from kraq_dspy.models.lms.engines.embedded.answer import (
    Similar,
    account,
    answer,
    answer_from_points,
    rated_points,
    short_answer,
)
from kraq_dspy.models.lms.engines.embedded.ask import (
    factoid_pair,
    question_about,
    question_about_theme,
    question_answer_pairs,
)
from kraq_dspy.models.lms.engines.embedded.extract import first_reading, names_and_links, second_reading
from kraq_dspy.models.lms.engines.embedded.judge import (
    agreement,
    grounded,
    is_same_question,
    matching_number,
    probability,
    relevant,
    same_thing,
    stands_alone,
    support,
)
from kraq_dspy.models.lms.engines.embedded.names import names_in
from kraq_dspy.models.lms.engines.embedded.rewrite import sub_questions
from kraq_dspy.models.lms.engines.embedded.summarize import (
    central,
    community_summary,
    merged_description,
    passages_summary,
    shortened,
)
from kraq_dspy.models.lms.engines.embedded.text import content_words, sentences
from kraq_dspy.ports import Embedder

FIELD = re.compile(r"^\[\[ ## (\w+) ## \]\][ \t]*\n?", re.MULTILINE)
OUTPUT = re.compile(r"^\d+\. `(\w+)` \(((?:[^()]|\([^()]*\))*)\)", re.MULTILINE)
CHOICES = re.compile(r"one of: ([^\n\"]+)")
LISTED = re.compile(r"^\[\d+\] ", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Task:
    """`inputs` by name, lists as lists where the prompt shows them as such; `outputs` are one-word kinds by name."""

    inputs: Mapping[str, Any]
    outputs: Mapping[str, str]
    choices: Mapping[str, tuple[str, ...]]
    as_json: bool

    def text(self, name: str) -> str:
        value = self.inputs.get(name, "")
        return value if isinstance(value, str) else "\n".join(map(str, value))

    def texts(self, name: str) -> list[str]:
        value = self.inputs.get(name, [])
        if isinstance(value, str):
            return [value] if value.strip() else []
        return [entry if isinstance(entry, str) else json.dumps(entry, ensure_ascii=False) for entry in value]


def read_task(request: Request) -> Task:
    """Raises ModelError for anything but a DSPy prompt."""
    system = request.system if isinstance(request.system, str) else ""
    user = next((message.text or "" for message in reversed(request.messages) if message.role == "user"), "")
    start = system.rfind("Your output fields are:\n")
    if start < 0:
        raise ModelError(
            "The embedded model answers the DSPy signatures of this library; it cannot chat. For free prompts, name a "
            "real model for the role."
        )
    listing = system[start : system.find("\nAll interactions will be structured", start)]
    outputs = {name: _kind(annotation) for name, annotation in OUTPUT.findall(listing)}
    return Task(_inputs(user), outputs, _choices(system, outputs), "Outputs will be a JSON object" in system)


def write_answer(task: Task, values: Mapping[str, Any]) -> str:
    """`values` in the order of the task's outputs. Markers in text that came from a document do not survive."""
    ordered = {name: values[name] for name in task.outputs}
    if task.as_json:
        return json.dumps(ordered, ensure_ascii=False)
    parts = [f"[[ ## {name} ## ]]\n{_shown(value)}" for name, value in ordered.items()]
    return "\n\n".join([*parts, "[[ ## completed ## ]]"])


def _inputs(user: str) -> dict[str, Any]:
    end = max(
        user.rfind("\n\nRespond with the corresponding output fields"), user.rfind("\n\nRespond with a JSON object")
    )
    parts = FIELD.split(user[:end] if end >= 0 else user)
    return {name: _value(text.strip()) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def _value(text: str) -> Any:
    if text.startswith("["):
        try:
            value = json.loads(text, strict=False)
        except ValueError:
            value = None
        if isinstance(value, list):
            return value
        if LISTED.match(text):  # how DSPy numbers a list given for a plain text field
            return [entry.strip().strip("«»").strip() for entry in LISTED.split(text) if entry.strip()]
    return text


def _kind(annotation: str) -> str:
    word = re.match(r"\w+", annotation)
    return word[0].lower() if word else "str"


def _choices(system: str, outputs: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    choices = {}
    for name, kind in outputs.items():
        note = re.search(rf"\{{{name}\}}[^\n]*", system) or re.search(rf'"{name}": "[^\n]*', system)
        options = CHOICES.search(note[0]) if note and kind not in ("list", "dict") else None
        if options:
            choices[name] = tuple(option.strip() for option in options[1].split(";"))
    return choices


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text.replace("[[ ##", "[( ##")


PIECE = re.compile(r"\n+|[^\S\n]*\w+|[^\S\n]*[^\w\s]|\s+?")
VERDICTS = frozenset({"yes", "no", "true", "false"})

Step = Callable[[Task, Similar], Any]
"""The value of a task's only output, or the values of several by name."""


class EmbeddedEngine(SharedByCopies):
    """Safe for threads when the embedder is; it keeps nothing between calls."""

    supports_response_schema = False

    def __init__(self, embedder: Embedder | None = None) -> None:
        self.embedder = embedder

    def complete(self, request: Request) -> Response:
        """Raises ModelError for a prompt that is no DSPy signature, or asks for a kind of value it cannot make."""
        task = read_task(request)
        values = self._values(task)
        text = write_answer(task, values)
        prompt_tokens = sum(count_tokens(message.text or "") for message in request.messages)
        if isinstance(request.system, str):
            prompt_tokens += _tokens_of_instructions(request.system)
        return Response(
            id=None,
            model=request.model,
            message=Message.assistant([TextPart(text)]),
            finish_reason="stop",
            usage=Usage(input_tokens=prompt_tokens, output_tokens=count_tokens(text)),
            logprobs=_logprobs(text, task, request.config.logprobs) if request.config.logprobs is not None else None,
        )

    def similar(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Cosines of the question to the texts; zeros without an encoder."""
        if self.embedder is None or not texts:
            return [0.0] * len(texts)
        return list(self.embedder.encode_passages(texts) @ self.embedder.encode_queries([question])[0])

    def _values(self, task: Task) -> dict[str, Any]:
        fields = [name for name in task.outputs if name != "reasoning"]
        step = _step(task)
        made = step(task, self.similar) if step else {name: self._guess(task, name) for name in fields}
        values: dict[str, Any] = {fields[0]: made} if step and len(fields) == 1 else made
        if "reasoning" in task.outputs:
            everything = sentences("\n".join(_evidence(task)))
            values["reasoning"] = " ".join(central(everything, 2)) or "The inputs say so."
        return values

    def _guess(self, task: Task, name: str) -> Any:
        """A value for a field of a signature that is not known here."""
        kind, everything = task.outputs[name], "\n".join(task.text(field) for field in task.inputs)
        if kind == "bool":
            claims = [task.text(field) for field in list(task.inputs)[-1:]]
            rest = "\n".join(task.text(field) for field in list(task.inputs)[:-1])
            return support(claims[0] if claims else "", rest) >= 0.5
        if kind == "list":
            return list(dict.fromkeys(entry for part in sentences(everything) for entry in names_in(part)))
        if kind == "str" and not task.choices.get(name):
            if "question" in task.inputs and len(task.inputs) > 1:
                return answer(task.text("question"), _evidence(task), self.similar)
            return " ".join(central(sentences(everything), 2)) or everything[:200] or "Nothing was given."
        raise ModelError(
            f"The embedded model has no way to make the field {name!r} ({kind}). Name a real model for this role."
        )


_tokens_of_instructions = lru_cache(maxsize=64)(count_tokens)
"""The same ones come with every prompt of a signature."""


def _evidence(task: Task) -> list[str]:
    """Every input but the question: lists as they are."""
    return [text for name in task.inputs if name != "question" for text in task.texts(name)]


def _answer_from_pairs(task: Task, similar: Similar) -> str:
    answers = [pair.partition("\n")[2] or pair for pair in task.texts("pairs")]
    return answer(task.text("question"), answers, similar)


def _with_reason(task: Task, similar: Similar) -> dict[str, Any]:
    """A response and its reason, under the names that the task has for them."""
    response, reason = short_answer(task.text("question"), _evidence(task), similar)
    return {name: response if name in ("answer", "response") else reason for name in task.outputs}


def _verdict(task: Task) -> float:
    """Probability that the rationale supports the response, and speaks of the question."""
    rationale = task.text("rationale")
    response = task.text("response")
    stated = support(response, rationale) if content_words(response) else float(response.lower() in rationale.lower())
    return probability(0.7 * stated + 0.3 * support(task.text("question"), rationale))


def _check(task: Task, similar: Similar) -> str:
    """The context has most of the response's words, and the response a quarter of the question's."""
    response = task.text("response")
    fits = support(response, task.text("context")) >= 0.6 and support(task.text("question"), response) >= 0.25
    return "yes" if fits else "no"


def _titled(summary: str) -> dict[str, Any]:
    """The summary under the names that it begins with."""
    return {"title": " and ".join(names_in(summary)[:2]) or summary[:60], "summary": summary}


def _references(task: Task) -> list[str]:
    """Reference answers; of an item with synonyms, each synonym."""
    references: list[str] = []
    for name in ("reference_answers", "reference_items"):
        value = task.inputs.get(name, [])
        for entry in value if isinstance(value, list) else [value]:
            references += [str(part) for part in entry] if isinstance(entry, list) else [str(entry)]
    return references


def _judge(task: Task, similar: Similar) -> bool:
    items = task.inputs.get("reference_items")
    if isinstance(items, list) and items:
        groups = [[str(word) for word in item] if isinstance(item, list) else [str(item)] for item in items]
        covered = sum(agreement(task.text("answer"), group) >= 0.9 for group in groups)
        return covered * 2 > len(groups)
    return agreement(task.text("answer"), _references(task)) >= 0.6


def _grade(task: Task, similar: Similar) -> dict[str, Any]:
    share = agreement(task.text("answer"), _references(task))
    match = "has the reference word for word" if share == 1 else f"shares {share:.0%} of its words with the reference"
    return {"feedback": f"The answer {match}.", "grade": 1 + round(4 * share)}


def _says(passage: str, text: str) -> bool:
    """Whether a passage has most of the text's telling words."""
    telling = set(content_words(text))
    return len(telling.intersection(content_words(passage))) >= 0.6 * len(telling)


def _supported(task: Task, similar: Similar) -> list[dict[str, Any]]:
    return [
        {"statement": text, "supported": any(_says(passage, text) for passage in task.texts("passages"))}
        for text in sentences(task.text("answer"))
    ]


def _helpful(task: Task, similar: Similar) -> list[int]:
    passages = enumerate(task.texts("passages"), start=1)
    return [number for number, passage in passages if _says(passage, task.text("answer"))]


def _rated(name: str, rated: tuple[int, str]) -> dict[str, Any]:
    rating, evaluation = rated
    return {"evaluation": evaluation, name: rating}


STEPS: dict[type[dspy.Signature], Step] = {
    signatures.AnswerQuestion: lambda task, similar: answer(task.text("question"), _evidence(task), similar),
    signatures.AnswerFromGraph: lambda task, similar: answer(task.text("question"), _evidence(task), similar),
    signatures.AnswerAndExplain: _with_reason,
    signatures.AnswerFromPairs: _answer_from_pairs,
    signatures.AnswerFromPoints: lambda task, similar: answer_from_points(
        task.text("question"), task.texts("points"), similar
    ),
    signatures.AskAboutPassages: lambda task, similar: question_about_theme(task.texts("passages")),
    signatures.AskSubQuestion: lambda task, similar: question_about(task.text("information")),
    signatures.CheckResponse: _check,
    signatures.ConfirmSameEntity: lambda task, similar: same_thing(task.text("first"), task.text("second")),
    signatures.ConfirmSameQuestion: lambda task, similar: is_same_question(
        task.text("first_question"), task.text("second_question"), similar
    ),
    signatures.DecomposeQuestion: lambda task, similar: sub_questions(task.text("question")),
    signatures.DraftAnswer: _with_reason,
    signatures.ExtractElements: lambda task, similar: first_reading(task.text("passage")),
    signatures.FindMissedElements: lambda task, similar: second_reading(task.text("passage"), task.text("found")),
    signatures.FindSameQuestion: lambda task, similar: matching_number(
        task.text("question"), task.texts("catalogue"), similar
    ),
    signatures.GenerateQuestion: lambda task, similar: question_about(task.text("summary")),
    signatures.GradeAnswer: _grade,
    signatures.JudgeAnswer: _judge,
    signatures.JudgeListAnswer: _judge,
    signatures.JudgePassages: _helpful,
    signatures.JudgeRelevance: lambda task, similar: 5 if content_words(task.text("answer")) else 1,
    signatures.JudgeSupport: _supported,
    signatures.MergeDescriptions: lambda task, similar: merged_description(
        task.text("name"), task.texts("descriptions")
    ),
    signatures.NameElements: lambda task, similar: names_and_links(task.text("passage")),
    signatures.RateGroundedness: lambda task, similar: _rated(
        "groundedness", grounded(task.text("question"), task.text("answer"), task.text("passage"))
    ),
    signatures.RatePoints: lambda task, similar: rated_points(task.text("question"), task.texts("reports"), similar),
    signatures.RateRelevance: lambda task, similar: _rated(
        "relevance", relevant(task.text("question"), task.text("audience"))
    ),
    signatures.RateStandAlone: lambda task, similar: _rated("stand_alone", stands_alone(task.text("question"))),
    signatures.RephraseQuestion: lambda task, similar: rewrite.rephrased(
        task.text("question"), int(task.text("count") or 3), int(task.text("most_characters") or 0)
    ),
    signatures.RewriteQuestion: lambda task, similar: rewrite.clearer(task.text("question")),
    signatures.ShortenText: lambda task, similar: shortened(task.text("text"), int(task.text("words") or 60)),
    signatures.SummarizeCommunity: lambda task, similar: community_summary(task.texts("elements")),
    signatures.SummarizeEvidence: lambda task, similar: _titled(passages_summary(task.texts("passages"))),
    signatures.SummarizePassages: lambda task, similar: passages_summary(task.texts("passages")),
    signatures.TellFromGraph: lambda task, similar: account(task.text("question"), _evidence(task), similar),
    signatures.VerifyDraft: lambda task, similar: "Yes" if _verdict(task) >= 0.5 else "No",
    signatures.WriteFactoidPair: lambda task, similar: factoid_pair(task.text("passage"), similar),
    signatures.WriteQAPairs: lambda task, similar: question_answer_pairs(task.text("passage")),
}
"""What is done for each signature of this library."""


def _step(task: Task) -> Step | None:
    """That of the signature with the prompt's outputs and, of several, the most of its inputs; None for another.

    A prompt does not name its signature, and instructions change when they are optimized: fields are what stays.
    """
    outputs = task.outputs.keys() - {"reasoning"}
    shared = {
        signature: len(signature.input_fields.keys() & task.inputs.keys())
        for signature in STEPS
        if signature.output_fields.keys() == outputs
    }
    best = max(shared, key=shared.__getitem__, default=None)
    return STEPS[best] if best is not None and shared[best] else None


def _logprobs(text: str, task: Task, alternatives: int) -> tuple[TokenLogprob, ...]:
    input_words = set(content_words("\n".join(task.text(name) for name in task.inputs)))
    verdict = _verdict(task) if "verdict" in task.outputs else None
    tokens = []
    for piece in PIECE.findall(text):
        word = piece.strip().lower()
        chance = 0.99
        if word in VERDICTS and verdict is not None:
            chance = max(verdict, 1 - verdict)
        elif word.isalnum():
            chance = 0.9 if not content_words(word) or set(content_words(word)) & input_words else 0.3
        top = [TopLogprob(token=piece, logprob=math.log(chance), bytes=tuple(piece.encode()))]
        if word in VERDICTS and verdict is not None:
            other = {"yes": "No", "no": "Yes", "true": "False", "false": "True"}[word]
            top.append(TopLogprob(token=other, logprob=math.log(1 - chance), bytes=tuple(other.encode())))
        tokens.append(
            TokenLogprob(
                token=piece, logprob=math.log(chance), bytes=tuple(piece.encode()), top=tuple(top[:alternatives])
            )
        )
    return tuple(tokens)
