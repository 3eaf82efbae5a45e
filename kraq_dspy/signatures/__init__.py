"""Holds the language-model steps: one step, one signature, one file."""

from kraq_dspy.signatures.answer_and_explain import AnswerAndExplain as AnswerAndExplain
from kraq_dspy.signatures.answer_question import AnswerQuestion as AnswerQuestion
from kraq_dspy.signatures.catalogue.confirm_same_question import ConfirmSameQuestion as ConfirmSameQuestion
from kraq_dspy.signatures.catalogue.find_same_question import FindSameQuestion as FindSameQuestion
from kraq_dspy.signatures.catalogue.rate_groundedness import RateGroundedness as RateGroundedness
from kraq_dspy.signatures.catalogue.rate_relevance import RateRelevance as RateRelevance
from kraq_dspy.signatures.catalogue.rate_stand_alone import RateStandAlone as RateStandAlone
from kraq_dspy.signatures.catalogue.rephrase_question import RephraseQuestion as RephraseQuestion
from kraq_dspy.signatures.catalogue.write_factoid_pair import WriteFactoidPair as WriteFactoidPair
from kraq_dspy.signatures.finetuning.summarize_evidence import SummarizeEvidence as SummarizeEvidence
from kraq_dspy.signatures.graph_search.answer_from_graph import AnswerFromGraph as AnswerFromGraph
from kraq_dspy.signatures.graph_search.answer_from_points import AnswerFromPoints as AnswerFromPoints
from kraq_dspy.signatures.graph_search.rate_points import RatePoints as RatePoints
from kraq_dspy.signatures.judging.check_response import CheckResponse as CheckResponse
from kraq_dspy.signatures.judging.grade_answer import GradeAnswer as GradeAnswer
from kraq_dspy.signatures.judging.judge_answer import JudgeAnswer as JudgeAnswer
from kraq_dspy.signatures.judging.judge_list_answer import JudgeListAnswer as JudgeListAnswer
from kraq_dspy.signatures.k2rag.ask_sub_question import AskSubQuestion as AskSubQuestion
from kraq_dspy.signatures.k2rag.shorten_text import ShortenText as ShortenText
from kraq_dspy.signatures.k2rag.tell_from_graph import TellFromGraph as TellFromGraph
from kraq_dspy.signatures.pipeline.ask_about_passages import AskAboutPassages as AskAboutPassages
from kraq_dspy.signatures.pipeline.confirm_same_entity import ConfirmSameEntity as ConfirmSameEntity
from kraq_dspy.signatures.pipeline.extract_elements import ExtractElements as ExtractElements
from kraq_dspy.signatures.pipeline.find_missed_elements import FindMissedElements as FindMissedElements
from kraq_dspy.signatures.pipeline.generate_question import GenerateQuestion as GenerateQuestion
from kraq_dspy.signatures.pipeline.merge_descriptions import MergeDescriptions as MergeDescriptions
from kraq_dspy.signatures.pipeline.name_elements import NameElements as NameElements
from kraq_dspy.signatures.pipeline.summarize_community import SummarizeCommunity as SummarizeCommunity
from kraq_dspy.signatures.qa_rag.answer_from_pairs import AnswerFromPairs as AnswerFromPairs
from kraq_dspy.signatures.qa_rag.decompose_question import DecomposeQuestion as DecomposeQuestion
from kraq_dspy.signatures.qa_rag.write_qa_pairs import WriteQAPairs as WriteQAPairs
from kraq_dspy.signatures.retrieving.choose_rewritings import ChooseRewritings as ChooseRewritings
from kraq_dspy.signatures.retrieving.condense_question import CondenseQuestion as CondenseQuestion
from kraq_dspy.signatures.retrieving.guess_answer import GuessAnswer as GuessAnswer
from kraq_dspy.signatures.retrieving.list_keywords import ListKeywords as ListKeywords
from kraq_dspy.signatures.retrieving.rewrite_question import RewriteQuestion as RewriteQuestion
from kraq_dspy.signatures.retrieving.summarize_passages import SummarizePassages as SummarizePassages
from kraq_dspy.signatures.retrieving.vary_question import VaryQuestion as VaryQuestion
from kraq_dspy.signatures.speculative.draft_answer import DraftAnswer as DraftAnswer
from kraq_dspy.signatures.speculative.explain_response import ExplainResponse as ExplainResponse
from kraq_dspy.signatures.speculative.verify_draft import VerifyDraft as VerifyDraft

NAMES = sorted(name for name, value in globals().items() if isinstance(value, type))
"""Of all signatures."""
