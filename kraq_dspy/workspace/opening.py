"""Opens an index with its encoder and its models, and reads from it what programs and retrievers are made of."""

import logging
import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Self

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.asset.graph.passage_graph import PassageGraph
from kraq_dspy.asset.scope import Scope
from kraq_dspy.asset.store.faq import FAQ, FaqCache
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.instructed import InstructedStore
from kraq_dspy.asset.store.served_answers import ServedAnswers
from kraq_dspy.asset.store.sync import TextVectors
from kraq_dspy.errors import IndexStateError, KraqError, ScopeError
from kraq_dspy.indexing.prepare.graph import IndexGraph, entity_vectors, report_vectors, sentence_vectors
from kraq_dspy.indexing.prepare.instructed import StoredSentences, open_precomputed
from kraq_dspy.indexing.prepare.qa_pairs import StoredPairs
from kraq_dspy.indexing.prepare.raptor import open_tree
from kraq_dspy.indexing.prepare.summarised_corpus import SummarisedCorpus, open_summarised, shortener
from kraq_dspy.models.embedders import load_embedder, resolve_encoder
from kraq_dspy.models.embedders.cross_encoder import CrossEncoderReranker
from kraq_dspy.models.embedders.instructed import load_instructed_embedder
from kraq_dspy.models.embedders.text_encoder import EmbedderLike, as_embedder
from kraq_dspy.models.lms.prompt_scorer import make_prompt_scorer
from kraq_dspy.models.lms.roles import LanguageModels, ModelsLike, as_models, lent, names_models
from kraq_dspy.ports import Embedder, InstructedEmbedder, PromptScorer
from kraq_dspy.programs.k2rag.shorten import Shorten
from kraq_dspy.records import Chunk, Community, Entity, Question
from kraq_dspy.retrievers.combined import NearestQuestions
from kraq_dspy.retrievers.metadata_filter import KnownMetadata
from kraq_dspy.retrievers.raptor import SummaryTree
from kraq_dspy.retrievers.rerank import questions_by_chunk
from kraq_dspy.settings import Settings
from kraq_dspy.state import ProgramState, StepStates

logger = logging.getLogger(__name__)

SCOPE = "scope"
"""The key of a state's provenance that says who may read what it learned from."""


@dataclass(frozen=True)
class PartOfIndex:
    """The documents of an index that a view shows; `hidden` are those that `without` left out by
    id."""

    of: Path
    document_ids: frozenset[str]
    hidden: frozenset[str] = frozenset()


class OpenedIndex(SharedByCopies):
    """An index that is open, the encoder of its vectors, and the models that are asked about it.

    It reads large parts at their first use, and keeps them until `close`.
    """

    def __init__(
        self,
        index: Index,
        embedder: Embedder,
        models: LanguageModels,
        *,
        scope: Scope | None = None,
        part: "PartOfIndex | None" = None,
    ) -> None:
        self.embedder = embedder
        self.models = models
        self.scope = scope
        self.part = part
        self._index = index
        self._owns_index = True  # or another workspace closes it
        self._block = ExitStack()  # what holds within `with`

    def __repr__(self) -> str:
        who = "" if self.scope is None else f", {self.scope!r}"
        return f"{type(self).__name__}({str(self._index.path)!r}{who})"

    @property
    def index(self) -> Index:
        """The readable index: the whole, or a view of it. Raises ScopeError if the index says
        who may read its documents and nobody has said who asks."""
        self.require_scope()
        return self._index

    def require_scope(self) -> None:
        """Raises ScopeError if documents say who may read them, and nobody has said who asks."""
        if self.has_labels:
            raise ScopeError(
                f"{str(self._index.path)!r} says who may read its documents, so it answers nobody in particular. Say "
                "who asks: space.scoped(Scope(['LABEL'])), or --scope LABEL; its owner says Scope.everything(), or "
                "--owner."
            )

    @property
    def has_labels(self) -> bool:
        """Whether documents say who may read them, and nobody has said yet who asks."""
        return self.scope is None and self._index.manifest.has_labels

    @property
    def learned_from(self) -> dict[str, list[str] | None]:
        """What the provenance of a compiled program says of who may read what it learned from: the labels, None for
        everything; nothing of an index without labels."""
        if self.scope is None:
            return {}
        return {SCOPE: None if self.scope.is_everything else sorted(self.scope.labels)}

    def require_readable_states(self) -> None:
        """Raises ScopeError as `require_readable` does, for the states that the workspace was opened with."""
        states = self.models.states
        if isinstance(states, StepStates):
            for file, state in states.by_file.items():
                self.require_readable(state, file)

    def require_readable(self, state: ProgramState, source: Path) -> None:
        """Raises ScopeError for a compiled program whose demonstrations may hold more than may be read here."""
        if self.scope is None or self.scope.is_everything:
            return
        labels = state.provenance.get(SCOPE)
        if not labels or not Scope(labels).reads_no_more_than(self.scope.labels):
            raise ScopeError(
                f"{source.name!r} may hold examples of what {self.scope!r} may not read. Compile the program in this "
                "scope: kraq optimize ... --index DIR --scope LABEL"
            )

    @property
    def path(self) -> Path:
        """The folder of the whole index, also where this is a view of it."""
        return self._index.path if self.part is None else self.part.of

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        settings: Settings | None = None,
        embedder: EmbedderLike | None = None,
        lm: ModelsLike | None = None,
        write: bool = False,
        trust: bool = False,
        optimized: Sequence[str | Path] = (),
    ) -> Self:
        """Open an index, to ask it.

        >>> Workspace.open("ada.kraq").ask("Where did Ada live?").answer  # doctest: +SKIP

        Args:
            path: the folder of the index, NAME.kraq.
            settings: what kraq.toml would say. Without them the index's own count: the encoder and the models that
                built it.
            embedder: a `kraq_dspy.extend.Embedder` or `dspy.Embedder` in place of the one that the settings name.
            lm: a `dspy.LM`, models by role (`{"drafter": lm}`), or `LanguageModels`. They answer the steps of
                programs that have no model of their own.
            write: also lets the workspace change the index, as preparations do.
            trust: agrees to the servers that an index of somebody else names. An index that this account made needs
                no such word.
            optimized: files of `kraq optimize`. Whatever is asked through this workspace gets what they hold of
                its steps: programs, retrievers that rewrite, the completion of a conversation's questions, judges, and
                the steps of test sets.

        Returns:
            The opened workspace, a context manager that closes the index.

        Raises:
            IndexStateError: if there is no index.
            EncoderMismatchError: if another encoder made its vectors.
            UntrustedError: if it names servers that nobody agreed to.
            StateError: for a file that is no state.
        """
        index = Index.open(Path(path), write=write)
        try:
            if settings is None:
                own_encoder = embedder is not None
                settings = index.usable_settings(trust=trust, own_models=names_models(lm), own_encoder=own_encoder)
            index.own_store = settings.store
            if embedder is None:
                encoder = load_embedder(resolve_encoder(settings.encoder, index.manifest.encoder_name))
            else:
                encoder = as_embedder(embedder)
            index.require_encoder(encoder)
            own = as_models(lm, settings, embedder=encoder)
            if optimized:
                own.states = StepStates(optimized)
            return cls(index, encoder, own)
        except BaseException:
            index.close()  # with its lock
            raise

    def let_go(self) -> None:
        """Hold the state no more, so that it may be removed, in a process that ends at once."""
        self._index.let_go()

    def close(self) -> None:
        if "summarised" in self.__dict__:  # was asked for
            self.summarised.close()
        if "answers" in self.__dict__:
            self.answers.close()
        if self._owns_index:
            self._index.close()

    def __enter__(self) -> Self:
        """Lend the answerer: until the end of the block DSPy's own modules ask the workspace's
        answerer, unless a model is configured. Configure yours before the block, or use
        `dspy.context(lm=...)` inside it: a `dspy.configure(lm=...)` inside counts when the block has ended.

        with kraq.Workspace.open("docs.kraq") as space:
            dspy.Predict("passages, question -> answer")(passages=..., question=...)
        """
        try:
            self._block.enter_context(lent(self.models))
        except KraqError as error:  # a key that is not set; to retrieve needs no model
            logger.info("DSPy's own modules have no model: %s", error)
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._block.close()
        self.close()

    @cached_property
    def asked_of(self) -> dict[str, set[str]]:
        """Which questions stand for the communities of a chunk, by its id. Read once."""
        questions = list(self.index.all(Question))
        ids = sorted({question.community_id for question in questions if question.community_id is not None})
        chunk_ids = {community.id: community.chunk_ids for community in self.index.get(Community, ids)}
        return questions_by_chunk(chunk_ids, questions)

    @cached_property
    def passage_graph(self) -> PassageGraph:
        """Chunks and the entities that they mention, for PageRank."""
        return self.index.passage_graph()

    @cached_property
    def graph(self) -> IndexGraph:
        """The graph as GraphRAG's searches need it."""
        return IndexGraph(self.index)

    @cached_property
    def entity_vectors(self) -> TextVectors:
        """Embeddings of the entities; made now where `kraq precompute DIR graph` was not run."""
        return entity_vectors(self.index, self.embedder)

    @cached_property
    def report_vectors(self) -> TextVectors:
        """Embeddings of the reports; made now where `kraq precompute DIR graph` was not run."""
        return report_vectors(self.index, self.embedder)

    @cached_property
    def sentence_vectors(self) -> TextVectors:
        """Embeddings of the passages' sentences; made at the first use, about five for each passage, and kept."""
        return sentence_vectors(self.index, self.embedder)

    @cached_property
    def known_metadata(self) -> KnownMetadata:
        """What a question can be filtered by. Read once."""
        return KnownMetadata(self.index.all(Chunk), self.index.all(Entity))

    @cached_property
    def summary_tree(self) -> tuple[SummaryTree, TextVectors]:
        """What `kraq precompute DIR raptor` stored. Raises IndexStateError if it was not run."""
        return open_tree(self.index, self.embedder)

    @cached_property
    def summarised(self) -> SummarisedCorpus:
        """What `kraq precompute DIR k2rag` stored. Raises IndexStateError if it was not run."""
        return open_summarised(self.index, self.embedder)

    @property
    def has_answers(self) -> bool:
        """Whether the index has an FAQ cache, approved or not."""
        return (self.path / FAQ).is_file()

    @cached_property
    def answers(self) -> ServedAnswers:
        """The index's FAQ cache of prepared answers, for QA search; an empty one if there was none.

        A view has only the answers that name documents, all of them in the view.
        """
        store = self.index.vectors_named("faq")
        readable = None if self.part is None else self.part.document_ids
        return ServedAnswers(self._faq(), store, self.embedder, readable=readable)

    def _faq(self) -> FaqCache:
        """Open it for notes on unanswered questions if the folder is writable; otherwise for
        reading, or an empty one."""
        path = self.path / FAQ
        try:
            return FaqCache(path)
        except IndexStateError:
            if path.is_file():
                return FaqCache(path, write=False)
            if os.access(self.path, os.W_OK):
                raise
        return FaqCache(self.index.folder_apart() / FAQ)

    @cached_property
    def stored_pairs(self) -> StoredPairs:
        """The pairs that `kraq precompute DIR qa-pairs` stored; a model writes those of other
        passages at query time."""
        return StoredPairs(self.index.results)

    @cached_property
    def instructed_embedder(self) -> InstructedEmbedder:
        """The encoder of the section [instructed]: passages as seen from a question."""
        return load_instructed_embedder(self.models.settings.instructed)

    def precomputed(self, source: str = "kraq") -> InstructedStore | StoredSentences:
        """Open what `kraq precompute DIR` stored for the questions of a source: "kraq" or "random".
        Raises IndexStateError if it was not run for them."""
        return open_precomputed(self.index, self.instructed_embedder, source)

    def shortener(self, share: float) -> Shorten:
        """Make what puts a text in fewer words, as the section [k2rag] says."""
        return shortener(self.models.settings.k2rag, share=share)

    def prompt_scorer(self, role: str) -> PromptScorer:
        """Open what tells how likely the model of a role finds given text: one behind vLLM, or of
        this process (transformers/FOLDER).

        Raises ModelError for any other.
        """
        return make_prompt_scorer(self.models.settings.role(role))

    def cross_encoder(self, model: str) -> CrossEncoderReranker:
        """A cross-encoder by a hub name or a folder. Raises ModelError for one that is not there."""
        return CrossEncoderReranker(model)

    def questions(self, source: str = "kraq") -> NearestQuestions:
        """Finds the index's questions nearest to a text; `source` "random" means those of the papers' baseline."""
        return NearestQuestions(self.index, self.index.question_vectors, self.embedder, filters={"source": source})
