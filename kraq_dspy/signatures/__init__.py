"""One language-model step, one signature, one file."""

from kraq_dspy.signatures.answer_from_graph import AnswerFromGraph
from kraq_dspy.signatures.answer_from_pairs import AnswerFromPairs
from kraq_dspy.signatures.answer_from_points import AnswerFromPoints
from kraq_dspy.signatures.answer_question import AnswerQuestion
from kraq_dspy.signatures.ask_about_passages import AskAboutPassages
from kraq_dspy.signatures.ask_sub_question import AskSubQuestion
from kraq_dspy.signatures.check_response import CheckResponse
from kraq_dspy.signatures.choose_rewritings import ChooseRewritings
from kraq_dspy.signatures.condense_question import CondenseQuestion
from kraq_dspy.signatures.confirm_same_entity import ConfirmSameEntity
from kraq_dspy.signatures.confirm_same_question import ConfirmSameQuestion
from kraq_dspy.signatures.decompose_question import DecomposeQuestion
from kraq_dspy.signatures.draft_answer import DraftAnswer
from kraq_dspy.signatures.explain_response import ExplainResponse
from kraq_dspy.signatures.extract_elements import ExtractElements
from kraq_dspy.signatures.find_missed_elements import FindMissedElements
from kraq_dspy.signatures.find_same_question import FindSameQuestion
from kraq_dspy.signatures.generate_question import GenerateQuestion
from kraq_dspy.signatures.grade_answer import GradeAnswer
from kraq_dspy.signatures.guess_answer import GuessAnswer
from kraq_dspy.signatures.judge_answer import JudgeAnswer
from kraq_dspy.signatures.judge_list_answer import JudgeListAnswer
from kraq_dspy.signatures.list_keywords import ListKeywords
from kraq_dspy.signatures.merge_descriptions import MergeDescriptions
from kraq_dspy.signatures.rate_groundedness import RateGroundedness
from kraq_dspy.signatures.rate_points import RatePoints
from kraq_dspy.signatures.rate_relevance import RateRelevance
from kraq_dspy.signatures.rate_stand_alone import RateStandAlone
from kraq_dspy.signatures.rewrite_question import RewriteQuestion
from kraq_dspy.signatures.shorten_text import ShortenText
from kraq_dspy.signatures.summarize_community import SummarizeCommunity
from kraq_dspy.signatures.summarize_evidence import SummarizeEvidence
from kraq_dspy.signatures.summarize_passages import SummarizePassages
from kraq_dspy.signatures.tell_from_graph import TellFromGraph
from kraq_dspy.signatures.vary_question import VaryQuestion
from kraq_dspy.signatures.verify_draft import VerifyDraft
from kraq_dspy.signatures.write_factoid_pair import WriteFactoidPair
from kraq_dspy.signatures.write_qa_pairs import WriteQAPairs

__all__ = [
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
    "RateGroundedness",
    "RatePoints",
    "RateRelevance",
    "RateStandAlone",
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
