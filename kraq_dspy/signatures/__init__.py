"""One language-model step, one signature, one file."""

from kraq_dspy.signatures.answer_question import AnswerQuestion
from kraq_dspy.signatures.ask_about_passages import AskAboutPassages
from kraq_dspy.signatures.confirm_same_entity import ConfirmSameEntity
from kraq_dspy.signatures.draft_answer import DraftAnswer
from kraq_dspy.signatures.extract_elements import ExtractElements
from kraq_dspy.signatures.find_missed_elements import FindMissedElements
from kraq_dspy.signatures.generate_question import GenerateQuestion
from kraq_dspy.signatures.merge_descriptions import MergeDescriptions
from kraq_dspy.signatures.summarize_community import SummarizeCommunity
from kraq_dspy.signatures.verify_draft import VerifyDraft

__all__ = [
    "AnswerQuestion",
    "AskAboutPassages",
    "ConfirmSameEntity",
    "DraftAnswer",
    "ExtractElements",
    "FindMissedElements",
    "GenerateQuestion",
    "MergeDescriptions",
    "SummarizeCommunity",
    "VerifyDraft",
]
