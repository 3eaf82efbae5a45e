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

from kraq_dspy.signatures.answering import AnswerAndExplain as AnswerAndExplain
from kraq_dspy.signatures.answering import AnswerQuestion as AnswerQuestion
from kraq_dspy.signatures.answering import ChooseRewritings as ChooseRewritings
from kraq_dspy.signatures.answering import CondenseQuestion as CondenseQuestion
from kraq_dspy.signatures.answering import GuessAnswer as GuessAnswer
from kraq_dspy.signatures.answering import ListKeywords as ListKeywords
from kraq_dspy.signatures.answering import RewriteQuestion as RewriteQuestion
from kraq_dspy.signatures.answering import SummarizePassages as SummarizePassages
from kraq_dspy.signatures.answering import VaryQuestion as VaryQuestion
from kraq_dspy.signatures.conversation import CompleteQuestion as CompleteQuestion
from kraq_dspy.signatures.graph import AnswerFromGraph as AnswerFromGraph
from kraq_dspy.signatures.graph import AnswerFromPoints as AnswerFromPoints
from kraq_dspy.signatures.graph import RatePoints as RatePoints
from kraq_dspy.signatures.judging import AttributeReference as AttributeReference
from kraq_dspy.signatures.judging import CheckResponse as CheckResponse
from kraq_dspy.signatures.judging import GradeAnswer as GradeAnswer
from kraq_dspy.signatures.judging import JudgeAnswer as JudgeAnswer
from kraq_dspy.signatures.judging import JudgeListAnswer as JudgeListAnswer
from kraq_dspy.signatures.judging import JudgeSupport as JudgeSupport
from kraq_dspy.signatures.k2rag import AskSubQuestion as AskSubQuestion
from kraq_dspy.signatures.k2rag import ShortenText as ShortenText
from kraq_dspy.signatures.k2rag import TellFromGraph as TellFromGraph
from kraq_dspy.signatures.learning import SummarizeEvidence as SummarizeEvidence
from kraq_dspy.signatures.pipeline import AskAboutPassages as AskAboutPassages
from kraq_dspy.signatures.pipeline import ConfirmEvidence as ConfirmEvidence
from kraq_dspy.signatures.pipeline import ConfirmSameEntity as ConfirmSameEntity
from kraq_dspy.signatures.pipeline import DescribeDomain as DescribeDomain
from kraq_dspy.signatures.pipeline import ExtractElements as ExtractElements
from kraq_dspy.signatures.pipeline import FindMissedElements as FindMissedElements
from kraq_dspy.signatures.pipeline import GenerateQuestion as GenerateQuestion
from kraq_dspy.signatures.pipeline import MergeDescriptions as MergeDescriptions
from kraq_dspy.signatures.pipeline import NameElements as NameElements
from kraq_dspy.signatures.pipeline import SummarizeCommunity as SummarizeCommunity
from kraq_dspy.signatures.pipeline import WordQuestion as WordQuestion
from kraq_dspy.signatures.qa_rag import AnswerFromPairs as AnswerFromPairs
from kraq_dspy.signatures.qa_rag import DecomposeQuestion as DecomposeQuestion
from kraq_dspy.signatures.qa_rag import WriteQAPairs as WriteQAPairs
from kraq_dspy.signatures.qa_search import ConfirmSameQuestion as ConfirmSameQuestion
from kraq_dspy.signatures.qa_search import FindSameQuestion as FindSameQuestion
from kraq_dspy.signatures.qa_search import RateGroundedness as RateGroundedness
from kraq_dspy.signatures.qa_search import RateRelevance as RateRelevance
from kraq_dspy.signatures.qa_search import RateStandAlone as RateStandAlone
from kraq_dspy.signatures.qa_search import RephraseQuestion as RephraseQuestion
from kraq_dspy.signatures.qa_search import WriteFactoidPair as WriteFactoidPair
from kraq_dspy.signatures.speculative import DraftAnswer as DraftAnswer
from kraq_dspy.signatures.speculative import ExplainResponse as ExplainResponse
from kraq_dspy.signatures.speculative import VerifyDraft as VerifyDraft
from kraq_dspy.signatures.testset import AskBridge as AskBridge
from kraq_dspy.signatures.testset import AskBroad as AskBroad
from kraq_dspy.signatures.testset import AskComparison as AskComparison
from kraq_dspy.signatures.testset import AskFact as AskFact
from kraq_dspy.signatures.testset import AskFalsePremise as AskFalsePremise
from kraq_dspy.signatures.testset import AskList as AskList
from kraq_dspy.signatures.testset import CheckAnswered as CheckAnswered
from kraq_dspy.signatures.testset import CheckSameAnswer as CheckSameAnswer
from kraq_dspy.signatures.testset import CheckStandAlone as CheckStandAlone
from kraq_dspy.signatures.testset import ParaphraseQuestion as ParaphraseQuestion

NAMES = sorted(name for name, value in globals().items() if isinstance(value, type))
"""Of all signatures."""

__all__ = NAMES


def __dir__() -> list[str]:
    return list(NAMES)
