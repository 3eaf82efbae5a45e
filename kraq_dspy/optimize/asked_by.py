"""Says of every signature who asks it, and so which commands and functions take a state that was made for it."""

from collections.abc import Mapping
from dataclasses import dataclass

OPENED = "`Workspace.open(DIR, optimized=[...])`"


@dataclass(frozen=True, slots=True)
class Asker:
    """A part of the library that asks steps. `commands` take their states by `--optimized`, in Python it is
    `in_python`."""

    commands: tuple[str, ...]
    in_python: str


ASKERS: Mapping[str, Asker] = {
    "answering": Asker(("ask", "serve", "mcp", "eval", "select", "faq seed"), OPENED),
    "conversation": Asker(("ask", "serve", "mcp"), f"{OPENED}, `space.ask(history=...)`"),
    "building": Asker(("index", "select"), "`build_index(optimized=[...])`"),
    "preparing": Asker(("precompute",), OPENED),
    "examining": Asker(("testset make", "testset update", "testset coverage"), f"{OPENED}, `make_testset`"),
    "judging": Asker(("eval",), f"{OPENED}, `evaluate(space=...)`"),
    "synthesizing": Asker(("faq seed --of passages",), f"{OPENED}, `make_synthetic_pairs`"),
    "describing": Asker(("index --domain",), "`describe_domain(lm=LanguageModels(states=StepStates([...])))`"),
    "teaching": Asker(("finetune pairs",), "`load_state(step, FILE)`, `teach(step=...)`"),
    "rephrasing": Asker((), "`load_state` into the `rephrase` of the table of QA search"),
}
"""The parts, by name."""

_ASKED: Mapping[str, str] = {
    "answering": """AnswerQuestion AnswerAndExplain AnswerFromGraph AnswerFromPairs AnswerFromPoints AskSubQuestion
        CheckResponse ChooseRewritings CondenseQuestion ConfirmSameQuestion DecomposeQuestion DraftAnswer
        FindSameQuestion GuessAnswer ListKeywords RatePoints RewriteQuestion TellFromGraph
        VaryQuestion VerifyDraft WriteQAPairs""",
    "conversation": "CompleteQuestion",
    "building": """ExtractElements FindMissedElements NameElements MergeDescriptions ConfirmSameEntity
        SummarizeCommunity GenerateQuestion AskAboutPassages WordQuestion ConfirmEvidence""",
    "preparing": "WriteQAPairs SummarizePassages ShortenText",
    "examining": """AskFact AskBridge AskList AskComparison AskBroad AskFalsePremise CheckStandAlone CheckAnswered
        CheckSameAnswer ParaphraseQuestion AnswerQuestion WordQuestion""",
    "judging": "JudgeAnswer JudgeListAnswer GradeAnswer JudgeSupport AttributeReference",
    "synthesizing": "WriteFactoidPair RateGroundedness RateRelevance RateStandAlone AnswerQuestion",
    "describing": "DescribeDomain",
    "teaching": "SummarizeEvidence ExplainResponse",
    "rephrasing": "RephraseQuestion",
}


def signatures_asked(*askers: str) -> frozenset[str]:
    """The names of the signatures that these parts ask.

    >>> sorted(signatures_asked("conversation"))
    ['CompleteQuestion']
    """
    return frozenset(name for asker in askers for name in _ASKED[asker].split())


def asked_by(signature: str) -> tuple[str, ...]:
    """The parts that ask a signature.

    >>> asked_by("WriteQAPairs")
    ('answering', 'preparing')
    """
    return tuple(asker for asker in ASKERS if signature in _ASKED[asker].split())
