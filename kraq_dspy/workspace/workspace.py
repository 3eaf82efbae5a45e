"""Opens an index for work: with its encoder and its models, and with retrievers and programs by name."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Collection, Iterator, Mapping
from contextlib import ExitStack, aclosing, contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import dspy
from dspy.streaming import StatusMessage, StreamResponse

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.clock import answer_listeners
from kraq_dspy.asset.corpus.normalise import normalised
from kraq_dspy.asset.graph.passage_graph import PassageGraph
from kraq_dspy.asset.store.catalogue import CATALOGUE, Catalogue
from kraq_dspy.asset.store.index import Index
from kraq_dspy.asset.store.instructed import InstructedStore
from kraq_dspy.asset.store.served_answers import ServedAnswers
from kraq_dspy.asset.store.sync import TextVectors
from kraq_dspy.errors import ConfigError, KraqError, UnknownRecordError
from kraq_dspy.indexing.catalogue.review import evidence_for
from kraq_dspy.indexing.prepare.graph import IndexGraph, entity_vectors, report_vectors, sentence_vectors
from kraq_dspy.indexing.prepare.instructed import StoredSentences, open_precomputed
from kraq_dspy.indexing.prepare.k2rag import SummarisedCorpus, open_summarised, shortener
from kraq_dspy.indexing.prepare.qa_pairs import StoredPairs
from kraq_dspy.indexing.prepare.raptor import open_tree
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.embedders.cross_encoder import CrossEncoderReranker
from kraq_dspy.models.embedders.instructed import load_instructed_embedder
from kraq_dspy.models.embedders.text_encoder import EmbedderLike, as_embedder
from kraq_dspy.models.lms.envelope import Flaw, flaws_heard, with_flaws
from kraq_dspy.models.lms.roles import LanguageModels, ModelsLike, answerer_for, as_models, fill_in, lent, own_adapter
from kraq_dspy.ports import Embedder, InstructedEmbedder, Retriever
from kraq_dspy.programs.k2rag.shorten import Shorten
from kraq_dspy.records import Chunk, Community, Entity, Hit, Question
from kraq_dspy.retrievers.combined import NearestQuestions
from kraq_dspy.retrievers.metadata_filter import KnownMetadata
from kraq_dspy.retrievers.raptor import SummaryTree
from kraq_dspy.retrievers.rerank import questions_by_chunk
from kraq_dspy.retrievers.without_documents import WithoutDocuments
from kraq_dspy.settings import Settings
from kraq_dspy.state import load_state
from kraq_dspy.workspace.choices import (
    DEFAULT_PROGRAM,
    ProgramChoice,
    RetrieverChoice,
    choose_program,
    choose_retriever,
)
from kraq_dspy.workspace.suggested import SuggestedQuestion, next_questions, starters

logger = logging.getLogger(__name__)

NEXT = 3
"""Questions that are suggested after an answer."""

PARTS = (StatusMessage, StreamResponse)
"""What comes of a streamed answer before its prediction."""


class Workspace:
    """`Workspace.open("docs.kraq")` is what most code needs: programs and retrievers over that index.

    The index stays open until `close` or the end of a `with` block. Safe for threads.

    >>> with Workspace.open("ada.kraq") as space:
    ...     space.ask("Where did Ada live?").answer
    'London. Ada lived in London.'
    """

    def __init__(self, index: Index, embedder: Embedder, models: LanguageModels) -> None:
        self.index = index
        self.embedder = embedder
        self.models = models
        self._programs: dict[str, dspy.Module] = {}  # those that `ask` made, by name
        self._block = ExitStack()  # what holds within `with`

    def __repr__(self) -> str:
        return f"Workspace({str(self.index.path)!r})"

    @classmethod
    def open(
        cls,
        path: str | Path,
        *,
        settings: Settings | None = None,
        embedder: EmbedderLike | None = None,
        models: ModelsLike | None = None,
        write: bool = False,
        trust: bool = False,
    ) -> "Workspace":
        """Without `settings`, the index's own: the encoder and the models that built it.

        Servers that an index of somebody else names are used once `trust` said so, here or at the command line. An
        index that was made by this account needs no such word.

        `models` are a `dspy.LM`, models by role (`{"drafter": lm}`), or `LanguageModels`; steps of programs that have
        none of their own get those that are given so.

        Raises IndexStateError when there is no index, EncoderMismatchError when another encoder made its vectors,
        UntrustedError when it names servers that nobody agreed to.
        """
        index = Index.open(Path(path), write=write)
        try:
            if settings is None:
                own_models = isinstance(models, LanguageModels | dspy.BaseLM) or "default" in (models or {})
                settings = index.usable_settings(trust=trust, own_models=own_models, own_encoder=embedder is not None)
            index.own_store = settings.store
            encoder = load_embedder(settings.encoder) if embedder is None else as_embedder(embedder)
            index.require_encoder(encoder)
            return cls(index, encoder, as_models(models, settings, embedder=encoder))
        except BaseException:
            index.close()  # with its lock
            raise

    def newest(self) -> "Workspace":
        """Another workspace, on the last complete state of the same index, with this one's encoder and models."""
        newer = Workspace.open(self.index.path, embedder=self.embedder, models=self.models)
        newer.index.own_store = self.index.own_store
        return newer

    def close(self) -> None:
        if "summarised" in self.__dict__:  # was asked for
            self.summarised.close()
        if "answers" in self.__dict__:
            self.answers.catalogue.close()
        self.index.close()

    def __enter__(self) -> "Workspace":
        """Until the end of the block DSPy's own modules ask the workspace's answerer, unless a model is configured.

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
        """Embeddings of the entities; made now where `kraq precompute DIR --graph` was not run."""
        return entity_vectors(self.index, self.embedder)

    @cached_property
    def report_vectors(self) -> TextVectors:
        """Embeddings of the reports; made now where `kraq precompute DIR --graph` was not run."""
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
        """What `kraq precompute DIR --raptor` stored. Raises IndexStateError where it was not run."""
        return open_tree(self.index, self.embedder)

    @cached_property
    def summarised(self) -> SummarisedCorpus:
        """What `kraq precompute DIR --k2rag` stored. Raises IndexStateError where it was not run."""
        return open_summarised(self.index, self.embedder)

    @cached_property
    def answers(self) -> ServedAnswers:
        """The index's catalogue of prepared answers, for QA search; an empty one where there was none."""
        catalogue = Catalogue(self.index.path / CATALOGUE)
        store = self.index.vectors_named("catalogue")
        return ServedAnswers(catalogue, store, self.embedder)

    @cached_property
    def stored_pairs(self) -> StoredPairs:
        """What `kraq precompute DIR --qa-pairs` stored; pairs of other passages are written when they are asked for."""
        return StoredPairs(self.index.results)

    @cached_property
    def instructed_embedder(self) -> InstructedEmbedder:
        """The encoder of the section [instructed]: passages as seen from a question."""
        return load_instructed_embedder(self.models.settings.instructed)

    def precomputed(self) -> InstructedStore | StoredSentences:
        """What `kraq precompute DIR` stored. Raises IndexStateError where it was not run."""
        return open_precomputed(self.index, self.instructed_embedder)

    def shortener(self, share: float) -> Shorten:
        """What puts a text in fewer words, as the section [k2rag] says."""
        return shortener(self.models.settings.k2rag, share=share)

    def cross_encoder(self, model: str) -> CrossEncoderReranker:
        """A cross-encoder by a hub name or a folder. Raises ModelError for one that is not there."""
        return CrossEncoderReranker(model)

    def questions(self, source: str = "kraq") -> NearestQuestions:
        """Finds the index's questions nearest to a text; `source` "random" means those of the papers' baseline."""
        return NearestQuestions(self.index, self.index.question_vectors, self.embedder, filters={"source": source})

    @property
    def default_retriever(self) -> str:
        """See `default_of`."""
        return default_of(self.index)

    def retriever(self, name: str | None = None, **options: Any) -> Retriever:
        """By its name in RETRIEVERS, or "cross-encoder:MODEL", a hub name or a folder; `default_retriever` without one.

        Raises ConfigError for an unknown name, option or value, IndexStateError for what has to be prepared first,
        ModelError for a cross-encoder that is not there.
        """
        return self.make_retriever(choose_retriever(name or self.default_retriever, options))

    def program(
        self,
        name: str = DEFAULT_PROGRAM,
        retriever: str | None = None,
        *,
        state: str | Path | None = None,
        retriever_options: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> dspy.Module:
        """By its name in PROGRAMS, over a retriever of RETRIEVERS; over `default_retriever` without one.

        `options` are those of the program (`k=10`); "qa-search" takes `over`, the name of the program behind it, and
        hands on what is not its own. `state` is a file of `kraq optimize`, for the program or one of its steps. Raises
        ConfigError for an unknown name, option or value, IndexStateError for what has to be prepared first, StateError
        for a state that does not fit.

        The steps ask their own model where they have one (`set_lm`), else that of `dspy.context` or `dspy.configure`,
        else that of their role in kraq.toml.
        """
        return self.make_program(
            choose_program(name, retriever, options, retriever_options=retriever_options), state=state
        )

    def make_retriever(self, choice: RetrieverChoice, *, hidden: Collection[str] = ()) -> Retriever:
        """The retriever of a choice, whose steps, if it has any, ask the model of its role.

        Passages of the documents in `hidden` are not found.
        """
        retrieve = choice.spec.make(self, choice.options)
        if isinstance(retrieve, dspy.Module):
            fill_in(retrieve, self.models, choice.spec.role)
        return WithoutDocuments(retrieve, self.chunk_ids_of(hidden)) if hidden else retrieve

    def make_program(
        self, choice: ProgramChoice, *, state: str | Path | None = None, hidden: Collection[str] = ()
    ) -> dspy.Module:
        """The program of a choice, with a state of `kraq optimize`; without a retriever, over the index's default.

        Passages of the documents in `hidden` are not found. Raises ConfigError for a program that finds its own
        evidence, from which nothing can be hidden.
        """
        part: Retriever | dspy.Module | None = None
        if choice.inner is not None:
            part = self.make_program(choice.inner, hidden=hidden)
        elif choice.takes_retriever:
            chosen = choice.retriever or choose_retriever(self.default_retriever)
            part = self.make_retriever(chosen, hidden=hidden)
        elif hidden:
            raise ConfigError(f"The program {choice.spec.name!r} finds its own evidence: no document can be hidden.")
        program = choice.spec.make(self, part, choice.options)
        fill_in(program, self.models, choice.spec.role, choice.spec.roles)
        if state is not None:
            load_state(program, Path(state))
        return program

    def chunk_ids_of(self, document_ids: Collection[str]) -> frozenset[str]:
        """The passages of these documents."""
        documents = sorted(document_ids)
        return frozenset(chunk.id for each in documents for chunk in self.index.all(Chunk, document_id=each))

    def ask(
        self, question: str, program: dspy.Module | str = DEFAULT_PROGRAM, *, next_questions: int = NEXT
    ) -> dspy.Prediction:
        """Answer a question with a program, or with one by its name; without one, with the default program.

        >>> space.ask("Who wrote Don Juan?").answer  # doctest: +SKIP
        >>> space.ask("Who wrote Don Juan?", program="speculative")  # doctest: +SKIP
        >>> space.ask("Who wrote Don Juan?", MyRAG(space.retriever("adaptive")))  # doctest: +SKIP

        A module of your own asks its own models, else those of `dspy.context` or `dspy.configure`, else the workspace's
        answerer.

        The prediction has `flaws`, in words, where a reply behind it was cut off, withheld, or readable in part; and
        `next_questions`, so many at most, which the index answers (`SuggestedQuestion`).
        """
        with self._asking(question, program) as (question, program, flaws):
            prediction = with_flaws(program(question=question), flaws)
        return self._followed(prediction, question, next_questions)

    async def aask(
        self, question: str, program: dspy.Module | str = DEFAULT_PROGRAM, *, next_questions: int = NEXT
    ) -> dspy.Prediction:
        """As `ask`, in an event loop. Cancelled, it cancels the model's calls in flight."""
        with self._asking(question, program) as (question, program, flaws):
            prediction: dspy.Prediction = with_flaws(await call(program, question=question), flaws)
        return await asyncio.to_thread(self._followed, prediction, question, next_questions)

    def stream(
        self, question: str, program: dspy.Module | str = DEFAULT_PROGRAM, *, next_questions: int = NEXT
    ) -> Iterator[Any]:
        """As `ask`, as it comes: a `dspy.streaming.StatusMessage` for each stage, then the answer's text, as the model
        writes it, in `StreamResponse`s, and at last the prediction.

        Text that is chosen among drafts, or that lay ready, comes with the prediction alone.
        """
        with self._asking(question, program) as (question, program, flaws):
            streamed = dspy.streamify(program, stream_listeners=answer_listeners(program), async_streaming=False)
            for value in streamed(question=question):
                if isinstance(value, dspy.Prediction):
                    yield self._followed(with_flaws(value, flaws), question, next_questions)
                elif isinstance(value, PARTS):
                    yield value

    async def astream(
        self, question: str, program: dspy.Module | str = DEFAULT_PROGRAM, *, next_questions: int = NEXT
    ) -> AsyncGenerator[Any, None]:
        """As `stream`, in an event loop, for one task to listen to. To close it (`contextlib.aclosing`) or to cancel
        the task ends the program, and cancels the model's calls in flight."""
        with self._asking(question, program) as (question, program, flaws):
            is_async = hasattr(program, "aforward")
            streamed = dspy.streamify(program, stream_listeners=answer_listeners(program), is_async_program=is_async)
            async with aclosing(streamed(question=question)) as values:
                async for value in values:
                    if isinstance(value, dspy.Prediction):
                        prediction = with_flaws(value, flaws)
                        yield await asyncio.to_thread(self._followed, prediction, question, next_questions)
                    elif isinstance(value, PARTS):
                        yield value

    def prepared(self, question: str) -> dspy.Prediction | None:
        """The catalogue's approved answer to a question that is there word for word, with its passages; None without.

        `kraq catalogue seed DIR --starters 12 --approve` prepares those to the starters, and `kraq ask`, `chat`,
        `serve` and `explore` give them at once where nobody chose a program.

        >>> space.prepared(space.starters(1)[0].text).hits  # doctest: +SKIP
        """
        question = normalised(question)
        there = (self.index.path / CATALOGUE).is_file()
        entry = self.answers.exact(question) if there else None
        if entry is None:
            return None
        try:
            chunks = self.index.get(Chunk, [each.chunk_id for each in evidence_for(self.index, entry)])
        except UnknownRecordError:  # its documents were cut anew
            chunks = []
        hits = [Hit(chunk, 1.0, question, "prepared") for chunk in chunks]
        prediction = dspy.Prediction(answer=entry.answer, hits=hits, entry=entry, source="catalogue")
        return self._followed(prediction, question, NEXT)

    def starters(self, count: int = 12) -> list[SuggestedQuestion]:
        """Questions to begin with: each answerable here, no two alike, together covering most of the corpus."""
        return starters(self.index, count)

    def _followed(self, prediction: dspy.Prediction, question: str, count: int) -> dspy.Prediction:
        """The prediction with its `next_questions`; without them where the index cannot tell, since it has answered."""
        if count:
            try:
                prediction.next_questions = tuple(next_questions(self.index, self.questions(), question, count))
            except KraqError as error:
                logger.info("There are no next questions: %s", error)
                prediction.next_questions = ()
        return prediction

    @contextmanager
    def _asking(self, question: str, program: dspy.Module | str) -> Iterator[tuple[str, dspy.Module, list[Flaw]]]:
        """The question as texts are kept here, the program itself, and the flaws of the replies behind its answer."""
        if not isinstance(question, str) or not isinstance(program, dspy.Module | str):
            raise ConfigError(
                f"ask takes a question in text, then a program; found {question!r:.80} and {program!r:.80}."
            )
        if isinstance(program, str):
            if program not in self._programs:
                self._programs[program] = self.program(program)
            program = self._programs[program]
        with own_adapter(), answerer_for(program, self.models), flaws_heard() as flaws:
            yield normalised(question), program, flaws


def default_of(index: Index) -> str:
    """The retriever of an index where none is named: "adaptive", which needs a graph, or "dense" without one."""
    return "adaptive" if index.count(Entity) else "dense"
