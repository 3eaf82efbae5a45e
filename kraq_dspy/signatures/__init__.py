"""Holds the language-model steps: one step, one signature; a family of steps, one file.

Those of the table are optimized by name: `kraq optimize STEP` (docs/guide/optimizing.md).
"""

#   step                 signatures                                          module            metric, by default
# steps: made by scripts/readme_tables.py
#   extraction           ExtractElements, FindMissedElements                 ExtractGraph      triple_f1
#   gleaning             FindMissedElements                                  SingleStep        missed_f1
#   description          MergeDescriptions                                   DescribeEntity    facts_kept
#   same-entity          ConfirmSameEntity                                   ConfirmSame       agreement
#   summary              SummarizeCommunity                                  DescribeCommunity mentions
#   question-generation  GenerateQuestion                                    AskQuestion       relevance
#   evidence             ConfirmEvidence                                     SingleStep        agreement
#   answering            AnswerQuestion                                      SingleStep        token_f1
#   drafting             DraftAnswer                                         SingleStep        token_f1
#   verification         VerifyDraft                                         SingleStep        agreement
#   judging              JudgeAnswer                                         SingleStep        agreement
#   matching             FindSameQuestion                                    SingleStep        agreement
#   confirmation         ConfirmSameQuestion                                 SingleStep        agreement
#   critics              RateGroundedness, RateRelevance, RateStandAlone     RateSyntheticPair agreement
#   decomposition        AskSubQuestion                                      SingleStep        relevance
#   conversation         CompleteQuestion                                    StandaloneQuestionword_f1
#   testset-fact         AskFact                                             AskForRow         usable
#   testset-bridge       AskBridge                                           AskForRow         usable
#   testset-list         AskList                                             AskForRow         usable
#   testset-comparison   AskComparison                                       AskForRow         usable
#   testset-broad        AskBroad                                            AskForRow         usable
#   testset-alone        CheckStandAlone                                     SingleStep        agreement
#   testset-gold         CheckAnswered                                       SingleStep        agreement
#   testset-same         CheckSameAnswer                                     SingleStep        agreement
#   testset-wording      ParaphraseQuestion                                  PutOtherwise      other_words
# end of steps

from kraq_dspy.signatures.answering import (
    AnswerAndExplain as AnswerAndExplain,
    AnswerQuestion as AnswerQuestion,
    ChooseRewritings as ChooseRewritings,
    CondenseQuestion as CondenseQuestion,
    GuessAnswer as GuessAnswer,
    ListKeywords as ListKeywords,
    RewriteQuestion as RewriteQuestion,
    SummarizePassages as SummarizePassages,
    VaryQuestion as VaryQuestion,
)
from kraq_dspy.signatures.conversation import CompleteQuestion as CompleteQuestion
from kraq_dspy.signatures.graph import (
    AnswerFromGraph as AnswerFromGraph,
    AnswerFromPoints as AnswerFromPoints,
    RatePoints as RatePoints,
)
from kraq_dspy.signatures.judging import (
    AttributeReference as AttributeReference,
    CheckResponse as CheckResponse,
    GradeAnswer as GradeAnswer,
    JudgeAnswer as JudgeAnswer,
    JudgeListAnswer as JudgeListAnswer,
    JudgeSupport as JudgeSupport,
)
from kraq_dspy.signatures.k2rag import (
    AskSubQuestion as AskSubQuestion,
    ShortenText as ShortenText,
    TellFromGraph as TellFromGraph,
)
from kraq_dspy.signatures.learning import SummarizeEvidence as SummarizeEvidence
from kraq_dspy.signatures.pipeline import (
    AskAboutPassages as AskAboutPassages,
    ConfirmEvidence as ConfirmEvidence,
    ConfirmSameEntity as ConfirmSameEntity,
    DescribeDomain as DescribeDomain,
    ExtractElements as ExtractElements,
    FindMissedElements as FindMissedElements,
    GenerateQuestion as GenerateQuestion,
    MergeDescriptions as MergeDescriptions,
    NameElements as NameElements,
    SummarizeCommunity as SummarizeCommunity,
    WordQuestion as WordQuestion,
)
from kraq_dspy.signatures.qa_rag import (
    AnswerFromPairs as AnswerFromPairs,
    DecomposeQuestion as DecomposeQuestion,
    WriteQAPairs as WriteQAPairs,
)
from kraq_dspy.signatures.qa_search import (
    ConfirmSameQuestion as ConfirmSameQuestion,
    FindSameQuestion as FindSameQuestion,
    RateGroundedness as RateGroundedness,
    RateRelevance as RateRelevance,
    RateStandAlone as RateStandAlone,
    RephraseQuestion as RephraseQuestion,
    WriteFactoidPair as WriteFactoidPair,
)
from kraq_dspy.signatures.speculative import (
    DraftAnswer as DraftAnswer,
    ExplainResponse as ExplainResponse,
    VerifyDraft as VerifyDraft,
)
from kraq_dspy.signatures.testset import (
    AskBridge as AskBridge,
    AskBroad as AskBroad,
    AskComparison as AskComparison,
    AskFact as AskFact,
    AskFalsePremise as AskFalsePremise,
    AskList as AskList,
    CheckAnswered as CheckAnswered,
    CheckSameAnswer as CheckSameAnswer,
    CheckStandAlone as CheckStandAlone,
    ParaphraseQuestion as ParaphraseQuestion,
)

NAMES = sorted(name for name, value in globals().items() if isinstance(value, type))
"""Of all signatures."""

__all__ = NAMES


def __dir__() -> list[str]:
    return list(NAMES)
