"""An index opened for work: with its encoder and its models, retrievers and programs by name."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dspy

from kraq_dspy.config import Settings
from kraq_dspy.embedders import load_embedder
from kraq_dspy.errors import ConfigError, EncoderMismatchError
from kraq_dspy.lms.adapter import KraqAdapter
from kraq_dspy.lms.roles import LanguageModels
from kraq_dspy.ports import Embedder, Retriever
from kraq_dspy.programs.combined_retrieve_rag import CombinedRetrieveRAG
from kraq_dspy.programs.retrievers.bm25 import BM25Retriever
from kraq_dspy.programs.retrievers.dense import DenseRetriever
from kraq_dspy.programs.retrievers.questions import NearestQuestions
from kraq_dspy.programs.traditional_rag import TraditionalRAG
from kraq_dspy.stores.index import Index


class Workspace:
    """`Workspace.open("docs.kraq")` is what most code needs: programs and retrievers over that index.

    The index stays open until `close` or the end of a `with` block. Safe for threads.
    """

    def __init__(self, index: Index, embedder: Embedder, models: LanguageModels) -> None:
        self.index = index
        self.embedder = embedder
        self.models = models

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        settings: Settings | None = None,
        embedder: Embedder | None = None,
        models: LanguageModels | None = None,
    ) -> "Workspace":
        """Without `settings`, the index's own: the encoder and the models that built it.

        Raises IndexStateError when there is no index, EncoderMismatchError when another encoder made its vectors.
        """
        index = Index.open(Path(path))
        settings = settings or index.manifest.settings
        embedder = embedder or load_embedder(settings.encoder)
        try:
            index.require_encoder(embedder)
        except EncoderMismatchError:
            index.close()
            raise
        return cls(index, embedder, models or LanguageModels(settings, embedder=embedder))

    def close(self) -> None:
        self.index.close()

    def __enter__(self) -> "Workspace":
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def retriever(self, name: str = "dense") -> Retriever:
        """One of RETRIEVERS. Raises ConfigError for another name."""
        retriever: Retriever = _named(RETRIEVERS, name, "retriever")(self)
        return retriever

    def questions(self, source: str = "kraq") -> NearestQuestions:
        """Finds the index's questions nearest to a text; `source` "random" means those of the papers' baseline."""
        return NearestQuestions(self.index, self.index.question_vectors, self.embedder, filters={"source": source})

    def program(self, name: str = "combined", retriever: str = "dense", **arguments: Any) -> dspy.Module:
        """One of PROGRAMS over one of RETRIEVERS, answered by the model of the role "answerer".

        `arguments` go to the program: `k`, `n`, `alpha`. Raises ConfigError for an unknown name or argument.
        """
        make = _named(PROGRAMS, name, "program")
        try:
            program: dspy.Module = make(self, self.retriever(retriever), **arguments)
        except TypeError as error:
            raise ConfigError(f"The program {name!r} cannot be made with {sorted(arguments)}: {error}") from error
        program.set_lm(self.models["answerer"])
        return program

    def ask(self, program: dspy.Module, question: str) -> dspy.Prediction:
        """Run the program with this library's adapter."""
        with dspy.context(adapter=KraqAdapter()):
            return program(question=question)


RETRIEVERS: dict[str, Callable[[Workspace], Retriever]] = {
    "dense": lambda space: DenseRetriever(space.index, space.index.chunk_vectors, space.embedder),
    "bm25": lambda space: BM25Retriever(space.index, space.index.chunk_vectors),
}

PROGRAMS: dict[str, Callable[..., dspy.Module]] = {
    "traditional": lambda space, retrieve, **arguments: TraditionalRAG(retrieve, **arguments),
    "combined": lambda space, retrieve, **arguments: CombinedRetrieveRAG(retrieve, space.questions(), **arguments),
}


def _named(known: dict[str, Any], name: str, what: str) -> Any:
    if name not in known:
        raise ConfigError(f"There is no {what} {name!r}; there are: {', '.join(known)}.")
    return known[name]
