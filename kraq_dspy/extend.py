"""Holds what a program, a retriever, a store or a model of your own is made with (docs/extend).

    from kraq_dspy.extend import Clock, FittingPredict, ProgramSpec, as_retriever, blocking, call, option

Declarations (`ProgramSpec`, `RetrieverSpec`, `option`), one body for both ways (`blocking`, `call`, `at_once`), the
seams (`Retriever`, `Embedder`, `VectorStore`, ...), records, and models by role.
"""

from kraq_dspy._internal.both_ways import at_once as at_once, blocking as blocking, call as call
from kraq_dspy._internal.clock import Clock as Clock, answer_listeners as answer_listeners
from kraq_dspy._internal.step import FittingPredict as FittingPredict
from kraq_dspy.asset.store.faq import FaqCache as FaqCache
from kraq_dspy.models.embedders import load_embedder as load_embedder
from kraq_dspy.models.embedders.text_encoder import as_embedder as as_embedder
from kraq_dspy.models.lms.adapter import KraqAdapter as KraqAdapter
from kraq_dspy.models.lms.kraq_lm import KraqLM as KraqLM
from kraq_dspy.models.lms.meter import Limits as Limits, Meter as Meter, Price as Price
from kraq_dspy.models.lms.retry import Backoff as Backoff
from kraq_dspy.models.lms.roles import LanguageModels as LanguageModels, make_lm as make_lm
from kraq_dspy.ports import (
    ChunkSource as ChunkSource,
    Embedder as Embedder,
    InstructedEmbedder as InstructedEmbedder,
    PrecomputedVectors as PrecomputedVectors,
    Progress as Progress,
    QuestionFinder as QuestionFinder,
    Reranker as Reranker,
    Retriever as Retriever,
    RetrieverLike as RetrieverLike,
    SentenceVectors as SentenceVectors,
    Summariser as Summariser,
    VectorStore as VectorStore,
)
from kraq_dspy.records import (
    Chunk as Chunk,
    Claim as Claim,
    Community as Community,
    Document as Document,
    Entity as Entity,
    Failure as Failure,
    Finding as Finding,
    Heading as Heading,
    Hit as Hit,
    Question as Question,
    QuestionHit as QuestionHit,
    Relationship as Relationship,
    Summary as Summary,
    Usage as Usage,
)
from kraq_dspy.retrievers.adapted import as_retriever as as_retriever
from kraq_dspy.retrievers.hits import (
    RetrievalRequest as RetrievalRequest,
    Retrieving as Retrieving,
    RetrievingModule as RetrievingModule,
    best_first as best_first,
    matches as matches,
)
from kraq_dspy.spec import (
    NoOptions as NoOptions,
    Note as Note,
    ProgramSpec as ProgramSpec,
    RetrieverSpec as RetrieverSpec,
    Space as Space,
    option as option,
)
from kraq_dspy.state import SavableModule as SavableModule

__all__ = sorted(name for name in globals() if not name.startswith("__"))


def __dir__() -> list[str]:
    return __all__
