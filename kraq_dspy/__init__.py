"""Finds a corpus's representative questions (KRAQ) and answers with them, as DSPy programs.

    import kraq_dspy as kraq

    kraq.build_index("docs/", "docs.kraq")  # a corpus becomes a graph, communities, summaries and questions
    with kraq.Workspace.open("docs.kraq") as space:
        print(space.ask("combined", "What happens to mules in spring?").answer)

An index: `build_index`, `add_documents`, `remove_documents`, `update_index`, `resume_index`, `import_graphrag`,
`import_triples`, `export_index`; what it took is a `BuildReport`, what it may take a `Limits`. `Index` reads its
records (`Document`, `Chunk`, `Entity`, `Relationship`, `Community`, `Summary`, `Question`).

Programs, all of them a `dspy.Module`: `TraditionalRAG`, `CombinedRetrieveRAG`, `SpeculativeRAG`,
`EfficientSpeculativeRAG`, `GraphLocalSearch`, `GraphGlobalSearch`, `QARAG`, `K2RAG`, `QASearch`; `KRAQ` is the
pipeline of an index. A `Workspace` makes them by name, with their retriever. `kraq.retrievers` has the retrievers,
`kraq.signatures` every language-model step.

Settings: `read_settings` reads a `kraq.toml`; `Settings` and its sections do the same in Python. `LanguageModels` are
the models by role.

Better programs: `kraq.evaluate` measures them on questions of yours, with `kraq.metrics` in DSPy's form;
`kraq.optimize` for prompts, `kraq.finetune` for adapters. Your own parts: `kraq.testing` checks whether a retriever, a
store, a model or a program keeps its contract.

Whatever this library raises on purpose is a `KraqError`. Names are imported when they are first used.
"""

import os
from importlib.metadata import version
from typing import TYPE_CHECKING

from kraq_dspy._internal.display import show_tables_in_notebooks
from kraq_dspy._internal.lazy import lazy_names

if TYPE_CHECKING:  # for type checkers and editors; the names that are there are those of `lazy_names` below
    from kraq_dspy import finetune as finetune
    from kraq_dspy import optimize as optimize
    from kraq_dspy import signatures as signatures
    from kraq_dspy import testing as testing
    from kraq_dspy._internal.announce import answer_listeners as answer_listeners
    from kraq_dspy._internal.backoff import Backoff as Backoff
    from kraq_dspy._internal.display import show as show
    from kraq_dspy.asset.corpus.bundled import bundled_example as bundled_example
    from kraq_dspy.asset.store.catalogue import Catalogue as Catalogue
    from kraq_dspy.asset.store.index import Index as Index
    from kraq_dspy.build.index.build import abuild_index as abuild_index
    from kraq_dspy.build.index.build import build_index as build_index
    from kraq_dspy.build.index.change import add_documents as add_documents
    from kraq_dspy.build.index.change import remove_documents as remove_documents
    from kraq_dspy.build.index.change import resume_index as resume_index
    from kraq_dspy.build.index.change import update_index as update_index
    from kraq_dspy.build.index.export import export_index as export_index
    from kraq_dspy.build.index.import_graph import import_graphrag as import_graphrag
    from kraq_dspy.build.index.import_graph import import_triples as import_triples
    from kraq_dspy.build.index.options import BuildOptions as BuildOptions
    from kraq_dspy.build.index.report import BuildReport as BuildReport
    from kraq_dspy.build.index.report import DocumentChanges as DocumentChanges
    from kraq_dspy.errors import BudgetExceededError as BudgetExceededError
    from kraq_dspy.errors import CatalogueConflictError as CatalogueConflictError
    from kraq_dspy.errors import CatalogueError as CatalogueError
    from kraq_dspy.errors import ConfigError as ConfigError
    from kraq_dspy.errors import CorpusError as CorpusError
    from kraq_dspy.errors import EncoderMismatchError as EncoderMismatchError
    from kraq_dspy.errors import EvaluationError as EvaluationError
    from kraq_dspy.errors import ExchangeError as ExchangeError
    from kraq_dspy.errors import IndexLockedError as IndexLockedError
    from kraq_dspy.errors import IndexStateError as IndexStateError
    from kraq_dspy.errors import KraqError as KraqError
    from kraq_dspy.errors import MissingExtraError as MissingExtraError
    from kraq_dspy.errors import MissingLogprobsError as MissingLogprobsError
    from kraq_dspy.errors import ModelError as ModelError
    from kraq_dspy.errors import ServerDownError as ServerDownError
    from kraq_dspy.errors import StateError as StateError
    from kraq_dspy.errors import TrainingError as TrainingError
    from kraq_dspy.errors import UnknownRecordError as UnknownRecordError
    from kraq_dspy.errors import WorseProgramError as WorseProgramError
    from kraq_dspy.eval.evaluation import evaluate as evaluate
    from kraq_dspy.eval.metrics import for_dspy as metrics  # noqa: F401
    from kraq_dspy.models.embedders import load_embedder as load_embedder
    from kraq_dspy.models.embedders.adapted import as_embedder as as_embedder
    from kraq_dspy.models.lms.kraq_lm import KraqLM as KraqLM
    from kraq_dspy.models.lms.meter import Limits as Limits
    from kraq_dspy.models.lms.meter import Meter as Meter
    from kraq_dspy.models.lms.meter import Price as Price
    from kraq_dspy.models.lms.roles import LanguageModels as LanguageModels
    from kraq_dspy.models.lms.roles import make_lm as make_lm
    from kraq_dspy.models.lms.structured.adapter import KraqAdapter as KraqAdapter
    from kraq_dspy.models.lms.structured.forms import Form as Form
    from kraq_dspy.ports import ChunkSource as ChunkSource
    from kraq_dspy.ports import Embedder as Embedder
    from kraq_dspy.ports import InstructedEmbedder as InstructedEmbedder
    from kraq_dspy.ports import PrecomputedVectors as PrecomputedVectors
    from kraq_dspy.ports import Progress as Progress
    from kraq_dspy.ports import PromptScorer as PromptScorer
    from kraq_dspy.ports import QuestionFinder as QuestionFinder
    from kraq_dspy.ports import Reranker as Reranker
    from kraq_dspy.ports import Retriever as Retriever
    from kraq_dspy.ports import Summariser as Summariser
    from kraq_dspy.ports import VectorStore as VectorStore
    from kraq_dspy.programs import retrievers as retrievers
    from kraq_dspy.programs.combined import CombinedRetrieveRAG as CombinedRetrieveRAG
    from kraq_dspy.programs.graph.graph_global_search import GraphGlobalSearch as GraphGlobalSearch
    from kraq_dspy.programs.graph.graph_local_search import GraphLocalSearch as GraphLocalSearch
    from kraq_dspy.programs.graph.local_context import KnowledgeGraph as KnowledgeGraph
    from kraq_dspy.programs.graph.local_context import LocalContext as LocalContext
    from kraq_dspy.programs.graph.sources import GraphSource as GraphSource
    from kraq_dspy.programs.graph.sources import NearestTexts as NearestTexts
    from kraq_dspy.programs.k2rag import K2RAG as K2RAG
    from kraq_dspy.programs.k2rag import NaiveGraphRAG as NaiveGraphRAG
    from kraq_dspy.programs.k2rag import Shorten as Shorten
    from kraq_dspy.programs.kraq import KRAQ as KRAQ
    from kraq_dspy.programs.qa_rag import QARAG as QARAG
    from kraq_dspy.programs.qa_rag.write_pairs import QAPairSource as QAPairSource
    from kraq_dspy.programs.qa_search.program import PreparedAnswers as PreparedAnswers
    from kraq_dspy.programs.qa_search.program import QASearch as QASearch
    from kraq_dspy.programs.retrievers.in_memory import Corpus as Corpus
    from kraq_dspy.programs.speculative.efficient_speculative_rag import (
        EfficientSpeculativeRAG as EfficientSpeculativeRAG,
    )
    from kraq_dspy.programs.speculative.scoring import Scorer as Scorer
    from kraq_dspy.programs.speculative.speculative_rag import SpeculativeRAG as SpeculativeRAG
    from kraq_dspy.programs.traditional import TraditionalRAG as TraditionalRAG
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
    from kraq_dspy.settings import ChunkSettings as ChunkSettings
    from kraq_dspy.settings import CommunitySettings as CommunitySettings
    from kraq_dspy.settings import CorpusSettings as CorpusSettings
    from kraq_dspy.settings import EncoderSettings as EncoderSettings
    from kraq_dspy.settings import ExtractSettings as ExtractSettings
    from kraq_dspy.settings import InstructedSettings as InstructedSettings
    from kraq_dspy.settings import K2RAGSettings as K2RAGSettings
    from kraq_dspy.settings import QuestionSettings as QuestionSettings
    from kraq_dspy.settings import RedactSettings as RedactSettings
    from kraq_dspy.settings import ResolveSettings as ResolveSettings
    from kraq_dspy.settings import RoleSettings as RoleSettings
    from kraq_dspy.settings import RunSettings as RunSettings
    from kraq_dspy.settings import Settings as Settings
    from kraq_dspy.settings import StoreSettings as StoreSettings
    from kraq_dspy.settings import SummarySettings as SummarySettings
    from kraq_dspy.settings import read_settings as read_settings
    from kraq_dspy.workspace import Workspace as Workspace

# Before dspy is imported: LiteLLM would otherwise fetch its price list over the network when it is first asked.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
# Before torch or llama.cpp are imported: threads that spin while they wait for each other starve each other as soon as
# something else wants the cores (encoding one query took ten times as long).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

show_tables_in_notebooks()
__version__ = version("kraq-dspy")
# fmt: off
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "kraq_dspy._internal.announce": ("answer_listeners",),
        "kraq_dspy._internal.backoff": ("Backoff",),
        "kraq_dspy._internal.display": ("show",),
        "kraq_dspy.asset.corpus.bundled": ("bundled_example",),
        "kraq_dspy.asset.store.catalogue": ("Catalogue",),
        "kraq_dspy.asset.store.index": ("Index",),
        "kraq_dspy.build.index.build": ("abuild_index", "build_index",),
        "kraq_dspy.build.index.change": ("add_documents", "remove_documents", "resume_index", "update_index",),
        "kraq_dspy.build.index.export": ("export_index",),
        "kraq_dspy.build.index.import_graph": ("import_graphrag", "import_triples",),
        "kraq_dspy.build.index.options": ("BuildOptions",),
        "kraq_dspy.build.index.report": ("BuildReport", "DocumentChanges",),
        "kraq_dspy.errors": (
            "BudgetExceededError", "CatalogueConflictError", "CatalogueError", "ConfigError", "CorpusError",
            "EncoderMismatchError", "EvaluationError", "ExchangeError", "IndexLockedError", "IndexStateError",
            "KraqError", "MissingExtraError", "MissingLogprobsError", "ModelError", "ServerDownError", "StateError",
            "TrainingError", "UnknownRecordError", "WorseProgramError",
        ),
        "kraq_dspy.eval.evaluation": ("evaluate",),
        "kraq_dspy.models.embedders": ("load_embedder",),
        "kraq_dspy.models.embedders.adapted": ("as_embedder",),
        "kraq_dspy.models.lms.kraq_lm": ("KraqLM",),
        "kraq_dspy.models.lms.meter": ("Limits", "Meter", "Price",),
        "kraq_dspy.models.lms.roles": ("LanguageModels", "make_lm",),
        "kraq_dspy.models.lms.structured.adapter": ("KraqAdapter",),
        "kraq_dspy.models.lms.structured.forms": ("Form",),
        "kraq_dspy.ports": (
            "ChunkSource", "Embedder", "InstructedEmbedder", "PrecomputedVectors", "Progress", "PromptScorer",
            "QuestionFinder", "Reranker", "Retriever", "Summariser", "VectorStore",
        ),
        "kraq_dspy.programs.combined": ("CombinedRetrieveRAG",),
        "kraq_dspy.programs.graph.graph_global_search": ("GraphGlobalSearch",),
        "kraq_dspy.programs.graph.graph_local_search": ("GraphLocalSearch",),
        "kraq_dspy.programs.graph.local_context": ("KnowledgeGraph", "LocalContext",),
        "kraq_dspy.programs.graph.sources": ("GraphSource", "NearestTexts",),
        "kraq_dspy.programs.k2rag": ("K2RAG", "NaiveGraphRAG", "Shorten",),
        "kraq_dspy.programs.kraq": ("KRAQ",),
        "kraq_dspy.programs.qa_rag": ("QARAG",),
        "kraq_dspy.programs.qa_rag.write_pairs": ("QAPairSource",),
        "kraq_dspy.programs.qa_search.program": ("PreparedAnswers", "QASearch",),
        "kraq_dspy.programs.retrievers.in_memory": ("Corpus",),
        "kraq_dspy.programs.speculative.efficient_speculative_rag": ("EfficientSpeculativeRAG",),
        "kraq_dspy.programs.speculative.scoring": ("Scorer",),
        "kraq_dspy.programs.speculative.speculative_rag": ("SpeculativeRAG",),
        "kraq_dspy.programs.traditional": ("TraditionalRAG",),
        "kraq_dspy.records": (
            "Chunk", "Claim", "Community", "Document", "Entity", "Failure", "Finding", "Heading", "Hit", "Question",
            "QuestionHit", "Relationship", "Summary", "Usage",
        ),
        "kraq_dspy.settings": (
            "ChunkSettings", "CommunitySettings", "CorpusSettings", "EncoderSettings", "ExtractSettings",
            "InstructedSettings", "K2RAGSettings", "QuestionSettings", "RedactSettings", "ResolveSettings",
            "RoleSettings", "RunSettings", "Settings", "StoreSettings", "SummarySettings", "read_settings",
        ),
        "kraq_dspy.workspace": ("Workspace",),
    },
    {
        "finetune": "kraq_dspy.finetune",
        "metrics": "kraq_dspy.eval.metrics.for_dspy",
        "optimize": "kraq_dspy.optimize",
        "retrievers": "kraq_dspy.programs.retrievers",
        "signatures": "kraq_dspy.signatures",
        "testing": "kraq_dspy.testing",
    },
)
# fmt: on
