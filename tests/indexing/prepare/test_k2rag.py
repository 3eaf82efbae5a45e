"""Makes the summarised corpus of a small real index by the embedded model, and runs the programs over it."""

import shutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from kraq_dspy import Index, build_index
from kraq_dspy.asset.corpus.tokens import count_tokens
from kraq_dspy.errors import ConfigError, EncoderMismatchError, IndexStateError
from kraq_dspy.extend import LanguageModels
from kraq_dspy.indexing.prepare.k2rag import build_summarised
from kraq_dspy.indexing.prepare.summarised import FOLDER, STAGE, forget
from kraq_dspy.indexing.prepare.summarised_corpus import FOR_VECTORS, open_summarised
from kraq_dspy.ports import SilentProgress
from kraq_dspy.programs import K2RAG, Shorten
from kraq_dspy.records import Chunk, Document, Question, content_id
from kraq_dspy.settings import K2RAGSettings, Settings
from kraq_dspy.workspace import Workspace
from tests.conftest import KeywordEmbedder
from tests.kept import kept_index

TOPICS = {"Rhine": "river", "Elbe": "river", "Keep": "castle", "Hall": "castle", "Choir": "music"}
SETTINGS = Settings(k2rag=K2RAGSettings(share=0.2, least_tokens=20))


def document(name: str) -> Document:
    """Twelve sentences of some 12 tokens; the first two say most."""
    about = TOPICS[name]
    first = f"The {name} is a {about} near Old Town. The {name} is the {about} that Anna Smith painted."
    rest = " ".join(f"Some {about} thing number {n} was seen there in 19{n:02}." for n in range(10))
    return Document(name, f"The {name}", f"{first} {rest}", metadata={"kind": about})


@pytest.fixture(scope="module")
def embedder(keyword_embedder: type[KeywordEmbedder]) -> KeywordEmbedder:
    return keyword_embedder("river", "castle", "music")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, embedder: KeywordEmbedder) -> Path:
    out = tmp_path_factory.mktemp("k2rag") / "town.kraq"
    return kept_index([document(name) for name in TOPICS], out, settings=SETTINGS, embedder=embedder)


@pytest.fixture
def index(made: Path, tmp_path: Path) -> Iterator[Index]:
    """A copy that the test may change."""
    shutil.copytree(made, tmp_path / "town.kraq", ignore=shutil.ignore_patterns("lock"))
    with Index.open(tmp_path / "town.kraq", write=True) as index:
        yield index


@pytest.fixture
def models(embedder: KeywordEmbedder) -> LanguageModels:
    return LanguageModels(SETTINGS, embedder=embedder)


def test_every_document_is_there_in_fewer_words_and_a_second_run_asks_nothing(
    index: Index, embedder: KeywordEmbedder, models: LanguageModels
) -> None:
    report = build_summarised(index, embedder, models)
    assert (report["documents"], report["failures"]) == (5, 0)
    assert report["tokens_before"] == sum(count_tokens(document(name).text) for name in TOPICS)
    assert report["tokens_after"] < 0.3 * report["tokens_before"]
    assert report["reduction"] == pytest.approx(1 - report["tokens_after"] / report["tokens_before"], abs=1e-4)
    assert report["calls"] > 5  # summaries, extraction, reports
    corpus = open_summarised(index, embedder)
    texts = {summarised.id: summarised for summarised in corpus.index.all(Document)}
    assert texts.keys() == TOPICS.keys()
    assert all(texts[name].text in document(name).text for name in TOPICS)
    assert {chunk.document_id for chunk in corpus.passages.values()} == set(TOPICS)
    assert corpus.vectors.ids() == set(corpus.passages)
    assert all(chunk.n_tokens <= FOR_VECTORS.tokens for chunk in corpus.passages.values())
    assert corpus.has_graph
    assert corpus.index.count(Question) == 0
    corpus.close()
    again = build_summarised(index, embedder, models)
    assert (again["calls"], again["tokens_after"]) == (0, report["tokens_after"])


def test_where_it_was_not_made_the_error_names_the_command(index: Index, embedder: KeywordEmbedder) -> None:
    with pytest.raises(IndexStateError, match=r"kraq precompute \S+town\.kraq k2rag"):
        open_summarised(index, embedder)


def test_documents_that_changed_since_are_noticed_and_made_up_for(
    index: Index, embedder: KeywordEmbedder, models: LanguageModels
) -> None:
    build_summarised(index, embedder, models)
    text = "The Mill is a river mill."
    index.delete(Document, ["Rhine"])
    index.delete(Chunk, [chunk.id for chunk in index.all(Chunk, document_id="Rhine")])
    index.add([Document("Mill", "Mill", text), Chunk(content_id("mill"), "Mill", 0, 0, len(text), text, 8, "Mill")])
    with pytest.raises(IndexStateError, match="have changed since they were summarised"):
        open_summarised(index, embedder)
    build_summarised(index, embedder, models)
    corpus = open_summarised(index, embedder)
    assert {chunk.document_id for chunk in corpus.passages.values()} == {"Mill", *TOPICS} - {"Rhine"}
    assert corpus.vectors.ids() == set(corpus.passages)
    corpus.close()


@pytest.mark.parametrize("killed_at", ["replace", "erase_when_complete"])
def test_a_removal_that_was_killed_leaves_nothing_behind_when_it_is_gone_on_with(
    index: Index, embedder: KeywordEmbedder, models: LanguageModels, monkeypatch: pytest.MonkeyPatch, killed_at: str
) -> None:
    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    build_summarised(index, embedder, models)
    with monkeypatch.context() as patched:
        patched.setattr(Index, killed_at, dies)
        with pytest.raises(KeyboardInterrupt):
            forget(index, {"Rhine"})

    [note] = forget(index, {"Rhine"})
    assert note.startswith("The summarised corpus of k2rag lost 1 document;")
    with Index.open(index.path / FOLDER) as seen:
        assert set(seen.ids(Document)) == TOPICS.keys() - {"Rhine"}
        assert seen.chunk_vectors.ids() == set(seen.ids(Chunk))
    assert forget(index, {"Rhine"}) == []


class Stops(SilentProgress):
    """Ends the run at the first sign of a stage."""

    def __init__(self, stage: str) -> None:
        self.stage = stage

    def advance(self, stage: str, done: int = 1, *, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        if stage == self.stage:
            raise KeyboardInterrupt


def test_an_interrupted_run_is_not_used_and_goes_on(
    index: Index, embedder: KeywordEmbedder, models: LanguageModels
) -> None:
    with pytest.raises(KeyboardInterrupt):
        build_summarised(index, embedder, models, progress=Stops("embed passages"))
    with pytest.raises(IndexStateError, match=" k2rag"):
        open_summarised(index, embedder)
    assert build_summarised(index, embedder, models)["calls"] == 0
    open_summarised(index, embedder).close()


class Fixed:
    """A summariser that tells every text in the same words, but for one that it has nothing to say of."""

    def __init__(self, summary: str, silent_about: str = "nobody") -> None:
        self.name = f"fixed {summary}"
        self.summary = summary
        self.silent_about = silent_about

    def __call__(self, text: str, words: int) -> str:
        return "" if self.silent_about in text else self.summary


def test_a_document_that_cannot_be_summarised_stands_in_full_and_is_tried_again(
    index: Index, embedder: KeywordEmbedder, models: LanguageModels
) -> None:
    report = build_summarised(index, embedder, models, shorten=Shorten(Fixed("A river.", "Keep"), least_tokens=20))
    assert report["failures"] == 1
    assert [failure.item_id for failure in index.results.failures(STAGE)] == ["Keep"]
    corpus = open_summarised(index, embedder)
    texts = {summarised.id: summarised.text for summarised in corpus.index.all(Document)}
    corpus.close()
    assert texts == dict.fromkeys(TOPICS, "A river.") | {"Keep": document("Keep").text}
    assert (
        build_summarised(index, embedder, models, shorten=Shorten(Fixed("A river."), least_tokens=20))["failures"] == 0
    )
    assert index.results.failures(STAGE) == []


def test_another_summariser_summarises_anew(index: Index, embedder: KeywordEmbedder, models: LanguageModels) -> None:
    for summary in ("A river.", "A castle."):
        build_summarised(index, embedder, models, shorten=Shorten(Fixed(summary), least_tokens=20))
        corpus = open_summarised(index, embedder)
        assert {summarised.text for summarised in corpus.index.all(Document)} == {summary}
        corpus.close()


def test_an_index_without_documents_says_what_to_do(
    index: Index, embedder: KeywordEmbedder, models: LanguageModels
) -> None:
    index.replace(Document, [])
    with pytest.raises(IndexStateError, match="kraq index"):
        build_summarised(index, embedder, models)


def test_another_encoder_is_refused(
    index: Index, embedder: KeywordEmbedder, models: LanguageModels, keyword_embedder: type[KeywordEmbedder]
) -> None:
    build_summarised(index, embedder, models)
    with pytest.raises(EncoderMismatchError):
        open_summarised(index, keyword_embedder("river", "castle", "songs"))


@pytest.fixture(scope="module")
def prepared(made: Path, tmp_path_factory: pytest.TempPathFactory, embedder: KeywordEmbedder) -> Path:
    path = tmp_path_factory.mktemp("prepared") / "town.kraq"
    shutil.copytree(made, path, ignore=shutil.ignore_patterns("lock"))
    with Index.open(path, write=True) as index:
        build_summarised(index, embedder, LanguageModels(SETTINGS, embedder=embedder))
    return path


@pytest.mark.parametrize("name", ["k2rag", "naive-graph"])
def test_the_program_and_its_baselines_answer_with_evidence(
    prepared: Path, embedder: KeywordEmbedder, name: str
) -> None:
    with Workspace.open(prepared, embedder=embedder) as space:
        prediction = space.ask("Which castle did Anna Smith paint?", space.program(name, k=3))
    assert prediction.answer
    assert prediction.hits
    assert {hit.chunk.document_id for hit in prediction.hits} <= TOPICS.keys()
    assert prediction.timings["wall"] > 0


def test_the_passages_of_k2rag_are_those_of_the_summaries(prepared: Path, embedder: KeywordEmbedder) -> None:
    with Workspace.open(prepared, embedder=embedder) as space:
        prediction = space.ask("Which castle did Anna Smith paint?", space.program("k2rag", k=3))
        assert {hit.chunk.id for hit in prediction.hits} <= space.summarised.passages.keys()
        assert not {hit.chunk.id for hit in prediction.hits} & set(space.index.ids(Chunk))
        assert prediction.account


def test_one_k2rag_serves_sixteen_threads(prepared: Path, embedder: KeywordEmbedder) -> None:
    with Workspace.open(prepared, embedder=embedder) as space:
        program = space.program("k2rag", k=3)
        questions = [f"Which {about} did Anna Smith paint?" for about in ("castle", "river")] * 8
        alone = [space.ask(question, program) for question in questions[:2]]
        with ThreadPoolExecutor(16) as pool:
            together = list(pool.map(lambda question: space.ask(question, program), questions))
    for number, prediction in enumerate(together):
        assert (prediction.answer, prediction.hits) == (alone[number % 2].answer, alone[number % 2].hits)


def test_a_corpus_without_names_has_no_graph_and_is_answered_all_the_same(
    tmp_path: Path, embedder: KeywordEmbedder, models: LanguageModels
) -> None:
    texts = [f"some {about} was there and nobody came to see it." for about in set(TOPICS.values())]
    out = tmp_path / "plain.kraq"
    build_index([Document(str(n), "", text) for n, text in enumerate(texts)], out, settings=SETTINGS, embedder=embedder)
    with Index.open(out, write=True) as index:
        assert build_summarised(index, embedder, models)["entities"] == 0
    with Workspace.open(out, embedder=embedder) as space:
        program = space.program("k2rag", k=1)
        assert isinstance(program, K2RAG)
        assert program.knowledge is None
        prediction = space.ask("where was the castle?", program)
    assert "castle" in prediction.hits[0].chunk.text


def test_an_argument_that_the_program_does_not_have_is_refused(prepared: Path, embedder: KeywordEmbedder) -> None:
    with Workspace.open(prepared, embedder=embedder) as space:
        for name in ("k2rag", "naive-graph"):
            with pytest.raises(ConfigError, match="alpha"):
                space.program(name, alpha=0.5)
