"""Holds the language-model steps: one step, one signature, one file."""

from kraq_dspy.signatures.answer_and_explain import AnswerAndExplain
from kraq_dspy.signatures.answer_question import AnswerQuestion
from kraq_dspy.signatures.catalogue.confirm_same_question import ConfirmSameQuestion
from kraq_dspy.signatures.catalogue.find_same_question import FindSameQuestion
from kraq_dspy.signatures.catalogue.rate_groundedness import RateGroundedness
from kraq_dspy.signatures.catalogue.rate_relevance import RateRelevance
from kraq_dspy.signatures.catalogue.rate_stand_alone import RateStandAlone
from kraq_dspy.signatures.catalogue.rephrase_question import RephraseQuestion
from kraq_dspy.signatures.catalogue.write_factoid_pair import WriteFactoidPair
from kraq_dspy.signatures.finetuning.summarize_evidence import SummarizeEvidence
from kraq_dspy.signatures.graph_search.answer_from_graph import AnswerFromGraph
from kraq_dspy.signatures.graph_search.answer_from_points import AnswerFromPoints
from kraq_dspy.signatures.graph_search.rate_points import RatePoints
from kraq_dspy.signatures.judging.check_response import CheckResponse
from kraq_dspy.signatures.judging.grade_answer import GradeAnswer
from kraq_dspy.signatures.judging.judge_answer import JudgeAnswer
from kraq_dspy.signatures.judging.judge_list_answer import JudgeListAnswer
from kraq_dspy.signatures.k2rag.ask_sub_question import AskSubQuestion
from kraq_dspy.signatures.k2rag.shorten_text import ShortenText
from kraq_dspy.signatures.k2rag.tell_from_graph import TellFromGraph
from kraq_dspy.signatures.pipeline.ask_about_passages import AskAboutPassages
from kraq_dspy.signatures.pipeline.confirm_same_entity import ConfirmSameEntity
from kraq_dspy.signatures.pipeline.extract_elements import ExtractElements
from kraq_dspy.signatures.pipeline.find_missed_elements import FindMissedElements
from kraq_dspy.signatures.pipeline.generate_question import GenerateQuestion
from kraq_dspy.signatures.pipeline.merge_descriptions import MergeDescriptions
from kraq_dspy.signatures.pipeline.name_elements import NameElements
from kraq_dspy.signatures.pipeline.summarize_community import SummarizeCommunity
from kraq_dspy.signatures.qa_rag.answer_from_pairs import AnswerFromPairs
from kraq_dspy.signatures.qa_rag.decompose_question import DecomposeQuestion
from kraq_dspy.signatures.qa_rag.write_qa_pairs import WriteQAPairs
from kraq_dspy.signatures.retrieving.choose_rewritings import ChooseRewritings
from kraq_dspy.signatures.retrieving.condense_question import CondenseQuestion
from kraq_dspy.signatures.retrieving.guess_answer import GuessAnswer
from kraq_dspy.signatures.retrieving.list_keywords import ListKeywords
from kraq_dspy.signatures.retrieving.rewrite_question import RewriteQuestion
from kraq_dspy.signatures.retrieving.summarize_passages import SummarizePassages
from kraq_dspy.signatures.retrieving.vary_question import VaryQuestion
from kraq_dspy.signatures.speculative.draft_answer import DraftAnswer
from kraq_dspy.signatures.speculative.explain_response import ExplainResponse
from kraq_dspy.signatures.speculative.verify_draft import VerifyDraft

__all__ = [
    "AnswerAndExplain",
    "AnswerFromGraph",
    "AnswerFromPairs",
    "AnswerFromPoints",
    "AnswerQuestion",
    "AskAboutPassages",
    "AskSubQuestion",
    "CheckResponse",
    "ChooseRewritings",
    "CondenseQuestion",
    "ConfirmSameEntity",
    "ConfirmSameQuestion",
    "DecomposeQuestion",
    "DraftAnswer",
    "ExplainResponse",
    "ExtractElements",
    "FindMissedElements",
    "FindSameQuestion",
    "GenerateQuestion",
    "GradeAnswer",
    "GuessAnswer",
    "JudgeAnswer",
    "JudgeListAnswer",
    "ListKeywords",
    "MergeDescriptions",
    "NameElements",
    "RateGroundedness",
    "RatePoints",
    "RateRelevance",
    "RateStandAlone",
    "RephraseQuestion",
    "RewriteQuestion",
    "ShortenText",
    "SummarizeCommunity",
    "SummarizeEvidence",
    "SummarizePassages",
    "TellFromGraph",
    "VaryQuestion",
    "VerifyDraft",
    "WriteFactoidPair",
    "WriteQAPairs",
]
