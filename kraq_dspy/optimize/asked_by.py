"""Says of every signature who asks it, and so which commands and functions take a state that was made for it."""

from collections.abc import Mapping
from dataclasses import dataclass

OPENED = "`Workspace.open(DIR, optimized=[...])`"


@dataclass(frozen=True, slots=True)
class Asker:
    """A part of the library that asks `signatures`, given by their names with spaces between. `commands` take their
    states by `--optimized`, in Python it is `in_python`."""

    commands: tuple[str, ...]
    in_python: str
    signatures: str


ASKERS: Mapping[str, Asker] = {
    "answering": Asker(
        ("ask", "serve", "mcp", "eval", "select", "faq seed"),
        OPENED,
        """AnswerQuestion AnswerAndExplain AnswerFromGraph AnswerFromPairs AnswerFromPoints AskSubQuestion
        CheckResponse ChooseRewritings CondenseQuestion ConfirmSameQuestion DecomposeQuestion DraftAnswer
        FindSameQuestion GuessAnswer ListKeywords RatePoints RewriteQuestion TellFromGraph VaryQuestion
        VerifyDraft WriteQAPairs""",
    ),
    "conversation": Asker(
        ("ask", "serve", "mcp"),
        f"{OPENED}, `space.ask(history=...)`",
        "CompleteQuestion",
    ),
    "building": Asker(
        ("index", "select"),
        "`build_index(optimized=[...])`",
        """ExtractElements FindMissedElements NameElements MergeDescriptions ConfirmSameEntity
        SummarizeCommunity GenerateQuestion AskAboutPassages WordQuestion ConfirmEvidence""",
    ),
    "preparing": Asker(
        ("precompute",),
        OPENED,
        "WriteQAPairs SummarizePassages ShortenText",
    ),
    "examining": Asker(
        ("testset make", "testset update", "testset coverage"),
        f"{OPENED}, `make_testset`",
        """AskFact AskBridge AskList AskComparison AskBroad AskFalsePremise CheckStandAlone CheckAnswered
        CheckSameAnswer ParaphraseQuestion AnswerQuestion WordQuestion""",
    ),
    "judging": Asker(
        ("eval",),
        f"{OPENED}, `evaluate(space=...)`",
        "JudgeAnswer JudgeListAnswer GradeAnswer JudgeSupport AttributeReference",
    ),
    "synthesizing": Asker(
        ("faq seed --of passages",),
        f"{OPENED}, `make_synthetic_pairs`",
        "WriteFactoidPair RateGroundedness RateRelevance RateStandAlone AnswerQuestion",
    ),
    "describing": Asker(
        ("index --domain",),
        "`describe_domain(lm=LanguageModels(states=StepStates([...])))`",
        "DescribeDomain",
    ),
    "teaching": Asker(
        ("finetune pairs",),
        "`load_state(step, FILE)`, `teach(step=...)`",
        "SummarizeEvidence ExplainResponse",
    ),
    "rephrasing": Asker(
        (),
        "`load_state` into the `rephrase` of the table of QA search",
        "RephraseQuestion",
    ),
}
"""The parts, by name."""


def signatures_asked(*askers: str) -> frozenset[str]:
    """The names of the signatures that these parts ask.

    >>> sorted(signatures_asked("conversation"))
    ['CompleteQuestion']
    """
    return frozenset(name for asker in askers for name in ASKERS[asker].signatures.split())


def asked_by(signature: str) -> tuple[str, ...]:
    """The parts that ask a signature.

    >>> asked_by("WriteQAPairs")
    ('answering', 'preparing')
    """
    return tuple(name for name, asker in ASKERS.items() if signature in asker.signatures.split())
