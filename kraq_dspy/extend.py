"""Holds what a program, a retriever, a store or a model of your own is made with (docs/extend).

    from kraq_dspy.extend import Clock, FittingPredict, ProgramSpec, as_retriever, blocking, call, option

Declarations (`ProgramSpec`, `RetrieverSpec`, `option`), one body for both ways (`blocking`, `call`, `at_once`), the
seams (`Retriever`, `Embedder`, `VectorStore`, ...), records, and models by role.
"""

from kraq_dspy._internal.both_ways import at_once as at_once
from kraq_dspy._internal.both_ways import blocking as blocking
from kraq_dspy._internal.both_ways import call as call
from kraq_dspy._internal.clock import Clock as Clock
from kraq_dspy._internal.clock import answer_listeners as answer_listeners
from kraq_dspy._internal.step import FittingPredict as FittingPredict
from kraq_dspy.asset.store.faq import FaqCache as FaqCache
from kraq_dspy.models.embedders import load_embedder as load_embedder
from kraq_dspy.models.embedders.text_encoder import as_embedder as as_embedder
from kraq_dspy.models.lms.adapter import KraqAdapter as KraqAdapter
from kraq_dspy.models.lms.kraq_lm import KraqLM as KraqLM
from kraq_dspy.models.lms.meter import Limits as Limits
from kraq_dspy.models.lms.meter import Meter as Meter
from kraq_dspy.models.lms.meter import Price as Price
from kraq_dspy.models.lms.retry import Backoff as Backoff
from kraq_dspy.models.lms.roles import LanguageModels as LanguageModels
from kraq_dspy.models.lms.roles import make_lm as make_lm
from kraq_dspy.ports import ChunkSource as ChunkSource
from kraq_dspy.ports import Embedder as Embedder
from kraq_dspy.ports import InstructedEmbedder as InstructedEmbedder
from kraq_dspy.ports import PrecomputedVectors as PrecomputedVectors
from kraq_dspy.ports import Progress as Progress
from kraq_dspy.ports import QuestionFinder as QuestionFinder
from kraq_dspy.ports import Reranker as Reranker
from kraq_dspy.ports import Retriever as Retriever
from kraq_dspy.ports import RetrieverLike as RetrieverLike
from kraq_dspy.ports import SentenceVectors as SentenceVectors
from kraq_dspy.ports import Summariser as Summariser
from kraq_dspy.ports import VectorStore as VectorStore
from kraq_dspy.records import Chunk as Chunk
from kraq_dspy.records import Claim as Claim
from kraq_dspy.records import Community as Community
from kraq_dspy.records import Document as Document
from kraq_dspy.records import Entity as Entity
from kraq_dspy.records import Failure as Failure
from kraq_dspy.records import Finding as Finding
from kraq_dspy.records import Heading as Heading
from kraq_dspy.records import Hit as Hit
from kraq_dspy.records import Question as Question
from kraq_dspy.records import QuestionHit as QuestionHit
from kraq_dspy.records import Relationship as Relationship
from kraq_dspy.records import Summary as Summary
from kraq_dspy.records import Usage as Usage
from kraq_dspy.retrievers.adapted import as_retriever as as_retriever
from kraq_dspy.retrievers.hits import RetrievalRequest as RetrievalRequest
from kraq_dspy.retrievers.hits import Retrieving as Retrieving
from kraq_dspy.retrievers.hits import RetrievingModule as RetrievingModule
from kraq_dspy.retrievers.hits import best_first as best_first
from kraq_dspy.retrievers.hits import matches as matches
from kraq_dspy.spec import NoOptions as NoOptions
from kraq_dspy.spec import Note as Note
from kraq_dspy.spec import ProgramSpec as ProgramSpec
from kraq_dspy.spec import RetrieverSpec as RetrieverSpec
from kraq_dspy.spec import Space as Space
from kraq_dspy.spec import option as option
from kraq_dspy.state import SavableModule as SavableModule

__all__ = sorted(name for name in globals() if not name.startswith("__"))


def __dir__() -> list[str]:
    return __all__
