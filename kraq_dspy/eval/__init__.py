"""Measures how good answers, questions and retrieval are, and whether a difference is more than chance.

    from kraq_dspy.eval import evaluate, exact_match, token_f1

    print(evaluate("docs.kraq", "questions.csv", ["token_f1", "recall@10"]))
    exact_match(example, prediction)  # DSPy's form: dspy.Evaluate(devset=devset, metric=exact_match)

`metrics` holds pure functions of gold and predicted values; `metrics.for_dspy` has them by name, in the form that DSPy
takes. `evaluation` asks programs and retrievers about questions; `tables` does the papers' comparisons. `rows` keeps
every question's result, `statistics` compares them. Names are imported when they are first used.
"""

from typing import TYPE_CHECKING

from kraq_dspy._internal.lazy import lazy_names

if TYPE_CHECKING:  # for type checkers and editors; the names that are there are those below
    from kraq_dspy.eval.columns import QuestionColumns as QuestionColumns
    from kraq_dspy.eval.coverage import Coverage as Coverage, coverage_of as coverage_of
    from kraq_dspy.eval.datasets import (
        Dataset as Dataset,
        Example as Example,
        fetch_dataset as fetch_dataset,
        load_dataset as load_dataset,
    )
    from kraq_dspy.eval.evaluation import Evaluation as Evaluation, evaluate as evaluate
    from kraq_dspy.eval.foreign import ForeignSystem as ForeignSystem, read_foreign as read_foreign
    from kraq_dspy.eval.halves import Decision as Decision, decide as decide
    from kraq_dspy.eval.judges import (
        BinaryJudge as BinaryJudge,
        Groundedness as Groundedness,
        RubricJudge as RubricJudge,
    )
    from kraq_dspy.eval.metrics.for_dspy import (
        Metric as Metric,
        answer_found as answer_found,
        bleu_1 as bleu_1,
        bleu_4 as bleu_4,
        exact_match as exact_match,
        grounded as grounded,
        meteor as meteor,
        named_metric as named_metric,
        own_metric as own_metric,
        paper_match as paper_match,
        rag_metric as rag_metric,
        rag_quality as rag_quality,
        rouge_l as rouge_l,
        similarity_metric as similarity_metric,
        substring_match as substring_match,
        token_f1 as token_f1,
        token_precision as token_precision,
        token_recall as token_recall,
    )
    from kraq_dspy.eval.metrics.retrieval import (
        all_supporting_at_k as all_supporting_at_k,
        average_precision as average_precision,
        mrr as mrr,
        ndcg_at_k as ndcg_at_k,
        precision_at_k as precision_at_k,
        recall_at_k as recall_at_k,
        success_at_k as success_at_k,
    )
    from kraq_dspy.eval.questions import read_questions as read_questions
    from kraq_dspy.eval.reports.summary import RunSummary as RunSummary
    from kraq_dspy.eval.selection.candidates import SelectionPlan as SelectionPlan
    from kraq_dspy.eval.selection.outcome import Selection as Selection
    from kraq_dspy.eval.selection.selecting import select as select
    from kraq_dspy.eval.statistics import (
        bootstrap_difference as bootstrap_difference,
        bootstrap_mean as bootstrap_mean,
        compare as compare,
        permutation_test as permutation_test,
    )
    from kraq_dspy.testset.making import (
        TestsetPlan as TestsetPlan,
        make_testset as make_testset,
        make_trainset as make_trainset,
    )
    from kraq_dspy.testset.testset import Testset as Testset
    from kraq_dspy.testset.upkeep import update_testset as update_testset

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "kraq_dspy.eval.datasets": ("Dataset", "Example", "fetch_dataset", "load_dataset"),
        "kraq_dspy.eval.evaluation": ("Evaluation", "evaluate"),
        "kraq_dspy.eval.foreign": ("ForeignSystem", "read_foreign"),
        "kraq_dspy.eval.halves": ("Decision", "decide"),
        "kraq_dspy.eval.judges": ("BinaryJudge", "Groundedness", "RubricJudge"),
        "kraq_dspy.eval.metrics.for_dspy": (
            "Metric", "answer_found", "bleu_1", "bleu_4", "substring_match", "exact_match", "grounded", "meteor",
            "named_metric", "own_metric", "paper_match", "rag_metric", "rag_quality", "rouge_l", "similarity_metric",
            "token_f1", "token_precision", "token_recall",
        ),
        "kraq_dspy.eval.metrics.retrieval": (
            "all_supporting_at_k", "average_precision", "success_at_k", "mrr", "ndcg_at_k", "precision_at_k",
            "recall_at_k",
        ),
        "kraq_dspy.eval.columns": ("QuestionColumns",),
        "kraq_dspy.eval.questions": ("read_questions",),
        "kraq_dspy.eval.selection.candidates": ("SelectionPlan",),
        "kraq_dspy.eval.selection.outcome": ("Selection",),
        "kraq_dspy.eval.selection.selecting": ("select",),
        "kraq_dspy.eval.statistics": ("bootstrap_difference", "bootstrap_mean", "compare", "permutation_test"),
        "kraq_dspy.eval.reports.summary": ("RunSummary",),
        "kraq_dspy.testset.testset": ("Testset",),
        "kraq_dspy.eval.coverage": ("Coverage", "coverage_of"),
        "kraq_dspy.testset.making": ("TestsetPlan", "make_testset", "make_trainset"),
        "kraq_dspy.testset.upkeep": ("update_testset",),
    },
)  # fmt: skip
