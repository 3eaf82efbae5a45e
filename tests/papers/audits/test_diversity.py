"""Tests two measures by hand: how alike found passages are, and from how many communities they come."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kraq_dspy import Document, Workspace, build_index
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import Example
from kraq_dspy.papers.audits.diversity import communities_of_chunks, mean_pairwise_cosine, measure_diversity
from kraq_dspy.ports import Retriever
from kraq_dspy.records import Chunk, Community, Hit
from kraq_dspy.retrievers import RetrievalRequest, Retrieving
from tests.conftest import KeywordEmbedder, WarmShell

DOCUMENTS = {
    "elbe": "The Elbe is a river. The Elbe crosses Dresden.",
    "rhine": "The Rhine is a river. The Rhine crosses Cologne.",
    "bach": "Johann Bach wrote music. Johann Bach lived in Leipzig.",
    "liszt": "Franz Liszt wrote music. Franz Liszt lived in Weimar.",
}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    path = tmp_path_factory.mktemp("diversity") / "four.kraq"
    embedder = KeywordEmbedder("river", "music")
    build_index([Document(id, id, text) for id, text in DOCUMENTS.items()], path, embedder=embedder)
    with Workspace.open(path, embedder=embedder) as opened:
        yield opened


class Fixed(Retrieving):
    """Finds the passages of these documents, whatever is asked."""

    def __init__(self, space: Workspace, *documents: str) -> None:
        chunks = {chunk.document_id: chunk for chunk in space.index.all(Chunk)}
        self.hits = [Hit(chunks[document], 1.0, "q") for document in documents]

    def find(self, request: RetrievalRequest) -> list[Hit]:
        return self.hits[: request.k]


ASKED = [Example(f"q{number}", f"Question {number}?", ("x",), ("elbe", "bach")) for number in range(4)]


def test_cosines_of_all_pairs_are_averaged() -> None:
    same, other = np.array([1.0, 0.0], np.float32), np.array([0.0, 1.0], np.float32)
    assert mean_pairwise_cosine(np.stack([same, same, other])) == pytest.approx(1 / 3)  # one pair of three
    assert mean_pairwise_cosine(np.stack([same, -same])) == -1.0
    with pytest.raises(EvaluationError, match="it takes two"):
        mean_pairwise_cosine(np.stack([same]))


def test_passages_of_one_topic_are_alike_and_of_two_topics_are_not(space: Workspace) -> None:
    retrievers: dict[str, Retriever] = {"rivers": Fixed(space, "elbe", "rhine"), "both": Fixed(space, "elbe", "bach")}
    evaluation = measure_diversity(space, retrievers, ASKED, k=2)
    rivers, both = (system.cells for system in evaluation.summary.systems)
    assert [evaluation.mean("pairwise_cosine", name) for name in retrievers] == pytest.approx([1.0, 0.0])
    assert both["pairwise_cosine"].difference is not None
    assert both["pairwise_cosine"].difference.estimate == pytest.approx(-1.0)
    assert rivers["pairwise_cosine"].difference is None
    assert [evaluation.mean("recall", name) for name in retrievers] == [0.5, 1.0]
    assert evaluation.mean("documents", "both") == 2.0


def test_communities_count_once_however_many_passages_they_have(space: Workspace) -> None:
    of_chunk = communities_of_chunks(space, level=0)
    known = {community.id for community in space.index.all(Community) if community.level == 0}
    assert set().union(*of_chunk.values()) == known
    twice = measure_diversity(space, {"twice": Fixed(space, "elbe", "elbe")}, ASKED, k=2)
    [elbe] = [chunk for chunk in space.index.all(Chunk) if chunk.document_id == "elbe"]
    assert twice.mean("communities") == len(of_chunk[elbe.id])


def test_recall_is_of_the_questions_that_name_a_document(space: Workspace) -> None:
    both = {"both": Fixed(space, "elbe", "bach")}
    bare = Example("bare", "Which?", ())
    some = measure_diversity(space, both, [*ASKED, bare], k=2).summary.systems[0].cells
    assert (some["recall"].n_undefined, some["documents"].n_undefined) == (1, 0)
    none = measure_diversity(space, both, [bare], k=2).summary
    assert none.metrics == ["pairwise_cosine", "communities", "documents"]


def test_the_command_compares_retrievers_by_name(kraq: WarmShell, tmp_path: Path) -> None:
    corpus = tmp_path / "four"
    corpus.mkdir()
    for name, text in DOCUMENTS.items():
        (corpus / f"{name}.txt").write_text(text)
    questions = tmp_path / "asked.csv"
    questions.write_text("question\nWhich river crosses Dresden?\nWho lived in Leipzig?\n")
    assert kraq("index", corpus, "--lm", "embedded", cwd=tmp_path).returncode == 0
    done = kraq("bench", "diversity", "four.kraq", questions, "-r", "dense", "-r", "bm25", "--k", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "pairwise_cosine" in done.stdout
    said = json.loads(kraq("bench", "diversity", "four.kraq", questions, "--k", "2", "--json", cwd=tmp_path).stdout)
    assert [each["name"] for each in said["runs"][0]["systems"]] == ["dense", "combined"]
