"""Lists what can be optimized, steps of the pipeline and programs over an index, and how each step is scored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dspy
import numpy as np

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.step import Step
from kraq_dspy.errors import ConfigError, EvaluationError, did_you_mean, needs
from kraq_dspy.eval.metrics.answers import check_references, normalise_answer, token_f1
from kraq_dspy.eval.metrics.for_dspy import METRICS, Metric, named_metric
from kraq_dspy.eval.metrics.generation import BertScorer
from kraq_dspy.optimize.rows import Row, RowKind
from kraq_dspy.programs.kraq.by_size import extractor
from kraq_dspy.programs.kraq.describe import AskQuestion
from kraq_dspy.settings import Settings
from kraq_dspy.signatures import AnswerQuestion, JudgeAnswer
from kraq_dspy.state import SavableModule
from kraq_dspy.workspace import Workspace
from kraq_dspy.workspace.choices import choose_program
from kraq_dspy.workspace.registry import PROGRAMS

QUESTION_FIELDS = frozenset(
    {"id", "question", "answers", "answer", "answer_items", "supporting_ids", "context_ids", "type", "level", "split"}
)
"""Of rows with questions: those of the data sets that this library reads, so that their files serve as they are."""


@dataclass(frozen=True)
class Target:
    """A program to optimize, how to read its rows, and how to score it.

    `role` is whose model it asks. `metrics` are those that can be named, the default first. `labelled` says that an
    example carries all outputs of the program's one predictor, so that it can be shown as a demonstration without
    asking a model.

    >>> rows = RowKind({"question", "answer"}, lambda row: dspy.Example(**row).with_inputs("question"))
    >>> Target("mine", dspy.Predict("question -> answer"), rows, METRICS).metric(None).name
    'token_f1'
    """

    name: str
    program: dspy.Module
    rows: RowKind
    metrics: Mapping[str, Metric]
    role: str = "default"
    labelled: bool = False

    def metric(self, name: str | None) -> Metric:
        """Raises ConfigError for a name that it does not have."""
        if name is None:
            return next(iter(self.metrics.values()))
        if name not in self.metrics and (":" in name or self.metrics is METRICS):
            return named_metric(name)
        if name not in self.metrics:
            raise ConfigError(f"There is no metric {name!r} for {self.name}; there are: {', '.join(self.metrics)}.")
        return self.metrics[name]


class SingleStep(SavableModule):
    """A signature asked once, as a program of its own."""

    def __init__(self, signature: type[dspy.Signature]) -> None:
        super().__init__()
        self.step = Step(signature)

    async def aforward(self, **inputs: Any) -> dspy.Prediction:
        return await call(self.step, **inputs)

    forward = blocking(aforward)


def make_target(
    name: str,
    space: Workspace | None = None,
    *,
    retriever: str | None = None,
    scorer: BertScorer | None = None,
    settings: Settings | None = None,
    arguments: Mapping[str, Any] | None = None,
) -> Target:
    """The step or the program of that name. Programs need `space`; `retriever` and `arguments` go to them.

    >>> make_target("extraction").metric("link_f1").threshold
    0.5

    `scorer` measures the relevance of questions, by default with the packaged model; `settings` choose the program that
    extracts. Raises ConfigError for a name that is neither, or a program without an index.
    """
    if name in STEPS:
        return STEPS[name](settings or Settings(), scorer)
    if name not in PROGRAMS:
        raise ConfigError(
            f"There is no step or program {name!r}{did_you_mean(name, [*STEPS, *PROGRAMS.names()])}; "
            f"steps: {', '.join(STEPS)}; programs: {', '.join(PROGRAMS.names())}."
        )
    if space is None:
        raise ConfigError(f"The program {name!r} needs an index: --index DIR.")
    choice = choose_program(name, retriever, arguments or {}, measured=True)
    program = space.make_program(choice)
    rows = RowKind(QUESTION_FIELDS, lambda row: _example(row, {"question": _text(row, "question")}, _answers(row)))
    return Target(name, program, rows, METRICS, choice.role)


def _extraction(settings: Settings) -> Target:
    def example(row: Row) -> dspy.Example:
        triples = [tuple(triple) for triple in row["triples"]]
        return _example(row, {"passage": _text(row, "passage")}, {"triples": _checked(triples)})

    rows = RowKind({"id", "passage", "triples"}, example)
    return Target(
        "extraction", extractor(settings), rows, {metric.name: metric for metric in (TRIPLE_F1, LINK_F1)}, "extractor"
    )


def _generation(scorer: BertScorer | None) -> Target:
    def example(row: Row) -> dspy.Example:
        questions = _texts(row["questions"] if "questions" in row else [row["question"]])
        if not questions:
            raise EvaluationError("there are no reference questions")
        return _example(row, {"summary": _text(row, "summary")}, {"questions": questions, "question": questions[0]})

    rows = RowKind({"id", "summary", "questions", "question"}, example)
    relevance = {"relevance": relevance_metric(scorer or BertScorer.packaged())}
    return Target("question-generation", AskQuestion(), rows, relevance, "generator", labelled=True)


def _answering() -> Target:
    def example(row: Row) -> dspy.Example:
        gold = _answers(row)
        inputs = {"question": _text(row, "question"), "passages": _texts(row["passages"])}
        return _example(row, inputs, {**gold, "answer": gold["answers"][0]})

    rows = RowKind({*QUESTION_FIELDS, "passages"}, example)
    return Target("answering", SingleStep(AnswerQuestion), rows, METRICS, "answerer", labelled=True)


def _judging() -> Target:
    def example(row: Row) -> dspy.Example:
        references = [str(answer) for answer in check_references(row["answers"])]
        inputs = {"question": _text(row, "question"), "reference_answers": references, "answer": _text(row, "answer")}
        if not isinstance(row["right"], bool):
            raise EvaluationError(f"right is {row['right']!r}; expected true or false")
        return _example(row, inputs, {"correct": row["right"]})

    rows = RowKind({*QUESTION_FIELDS, "right"}, example)
    return Target("judging", SingleStep(JudgeAnswer), rows, {"agreement": AGREEMENT}, "judge", labelled=True)


STEPS: Mapping[str, Callable[[Settings, BertScorer | None], Target]] = {
    "extraction": lambda settings, _: _extraction(settings),
    "question-generation": lambda _, scorer: _generation(scorer),
    "answering": lambda *_: _answering(),
    "judging": lambda *_: _judging(),
}
"""What makes the target of a step, by its name. Other steps are optimized with the program that has them."""


def _example(row: Row, inputs: Mapping[str, Any], gold: Mapping[str, Any]) -> dspy.Example:
    named = {"id": str(row["id"])} if "id" in row else {}
    return dspy.Example(**named, **gold, **inputs).with_inputs(*inputs)


def _text(row: Row, name: str) -> str:
    value = row[name]
    if not isinstance(value, str) or not value.strip():
        raise EvaluationError(f"{name} is {value!r}; expected text")
    return value


def _texts(value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence) or not all(isinstance(text, str) for text in value):
        raise EvaluationError(f"expected a list of texts, found {value!r}")
    return list(value)


def _answers(row: Row) -> dict[str, Any]:
    gold = row.get("answers")
    if gold is None and "answer" in row:
        gold = [row["answer"]]
    if gold is None:
        raise EvaluationError("there are no `answers`; leave questions without a known answer out")
    extra = {field: row[field] for field in ("answer_items", "supporting_ids") if row.get(field)}
    return {"answers": [str(answer) for answer in check_references(gold)], "type": str(row.get("type", "")), **extra}


Triple = tuple[str, str, str]
"""Subject, predicate, object."""


def triple_f1(gold: Sequence[Triple], predicted: Sequence[Triple]) -> float:
    """Harmonic mean of precision and recall of the triples, in [0, 1].

    Two triples are of one fact when subjects and objects are equal after normalisation; the credit is the word F1 of
    their predicates, since no two readers choose the same verb. Each triple counts once, in the best pairs of all.
    No prediction scores 0.0. Raises EvaluationError when `gold` is empty or has a blank part.
    """
    credits = [
        [token_f1([wanted[1]], other[1]) if _ends(wanted) == _ends(other) else 0.0 for other in predicted]
        for wanted in _checked(gold)
    ]
    return 2 * best_pairs(credits) / (len(credits) + len(predicted))


def link_f1(gold: Sequence[Triple], predicted: Sequence[Triple]) -> float:
    """As `triple_f1`, without regard to the predicates, which models below two billion parameters do not write."""
    return triple_f1(*([(subject, "links", object_) for subject, _, object_ in each] for each in (gold, predicted)))


def best_pairs(credit: Sequence[Sequence[float]]) -> float:
    """The credit of the best pairs, each row and column used once."""
    with needs("scipy", "optimize", "Matching triples"):
        from scipy.optimize import linear_sum_assignment  # a tenth of a second

    credits = np.atleast_2d(np.array(credit, np.float64))
    return float(credits[linear_sum_assignment(credits, maximize=True)].sum())


def _ends(triple: Triple) -> tuple[str, str]:
    return normalise_answer(triple[0]), normalise_answer(triple[2])


def _checked(gold: Sequence[Triple]) -> Sequence[Triple]:
    if not gold:
        raise EvaluationError("There are no gold triples, so precision and recall are undefined.")
    for position, triple in enumerate(gold):
        if len(triple) != 3 or not all(isinstance(part, str) and part.strip() for part in triple):
            raise EvaluationError(f"Gold triple {position} is {triple!r}; expected subject, predicate and object.")
    return gold


def _extraction_metric(function: Callable[[Sequence[Triple], Sequence[Triple]], float]) -> Metric:
    def score(example: Any, prediction: Any) -> float:
        return function(example.triples, _triples(prediction))

    def explain(example: Any, prediction: Any, score: float) -> str:
        links = set(map(_ends, _triples(prediction)))
        missing = [" | ".join(triple) for triple in example.triples if _ends(triple) not in links]
        return f"Of {len(example.triples)} triples these are missing: {'; '.join(missing[:5]) or 'none'}."

    return Metric(function.__name__, score, explain, threshold=0.5)


TRIPLE_F1, LINK_F1 = map(_extraction_metric, (triple_f1, link_f1))


def relevance_metric(scorer: BertScorer, threshold: float = 0.7) -> Metric:
    """BERTScore F1 of the generated question with the nearest of the example's `questions` (KRAQ paper 4.2).

    The model's name is part of the metric's: figures of different ones must not be compared.
    """

    def relevance(example: Any, prediction: Any) -> float:
        references = list(example.questions)
        generated = prediction.question
        if not generated.strip():
            return 0.0
        return float(scorer.score(references, [generated] * len(references)).max())

    def explain(example: Any, prediction: Any, score: float) -> str:
        return f"{prediction.question!r} scores {score:.2f}; people asked: {' or '.join(example.questions[:3])}"

    return Metric(f"relevance({scorer.name})", relevance, explain, threshold)


AGREEMENT = Metric(
    "agreement",
    lambda example, prediction: float(getattr(prediction, "correct", None) == example.correct),
    lambda example, prediction, score: f"People said {example.correct}.",
)
"""Whether the judge's verdict is that of people."""


def _triples(prediction: Any) -> list[Triple]:
    return [(link.source, link.predicate, link.target) for link in prediction.relationships]
