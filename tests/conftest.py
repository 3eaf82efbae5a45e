"""Gives all tests a keyword embedder that a reader can work out by hand, and the way to the shared data sets."""

import gc
import json
import logging
import os
import re
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from kraq_dspy.embedded_model import has_embedded_model
from kraq_dspy.ports import Vectors
from tests.warm import WarmShell as WarmShell

gc.disable()  # until the tests have been imported: it took a quarter of that time
ROOT = Path(__file__).resolve().parents[1]
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in a job in the background of a shell
    signal.signal(signal.SIGINT, signal.default_int_handler)  # else no test and no process of one could hear Ctrl-C
os.environ["XDG_CONFIG_HOME"] = tempfile.mkdtemp(prefix="kraq-tests-")  # consents are not the user's own
os.environ["XDG_CACHE_HOME"] = tempfile.mkdtemp(prefix="kraq-tests-")  # nor are models that `kraq lm get` brought
SHARED_DATA = ROOT.parent / "shared" / "data"
# A busy machine must fail no property, and what failed once must fail again: examples are the same in each run.
# Others are drawn by pytest --hypothesis-profile=exploring, as `make test-explore` does.
settings.register_profile("untimed", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("exploring", deadline=None, max_examples=500, print_blob=True)
settings.load_profile("untimed")


LONG = frozenset(
    line for line in (ROOT / "tests" / "long.txt").read_text("utf-8").splitlines() if not line.startswith("#")
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What `tests/long.txt` lists has the marker `long`; asked for by its name alone, it runs all the same."""
    for item in items:
        if item.nodeid.partition("[")[0] in LONG:
            item.add_marker(pytest.mark.long)


HEAVY = {
    "sources": r"tests\.(sources|patterns) import|ast\.parse",
    "torch": r"(import|from|(importorskip|lazily)\(.) ?(torch|transformers|sentence_transformers|peft)|tiny_models|"
    r"\bfinetune\b|rglob\(\"\*\.py",
    "clients": r"(import|from|importorskip\(.) ?(litellm|langchain|llama_index)",
}
"""What takes seconds to load, libraries and the package's sources: what the text of a test file has that loads it."""


@cache
def worker_group(file: Path) -> str:
    """What takes seconds to load for the tests of a file, so that one worker alone loads it; else the file."""
    text = file.read_text("utf-8")
    return next((library for library, loads in HEAVY.items() if re.search(loads, text)), str(file))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file run in one worker, and so do those of all files that load the same heavy library.

    `--dist loadgroup` would do so with marks, but pytest-xdist 3.8 writes them where pytest 9.2 no longer reads them.
    """
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class InGroups(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return worker_group(config.rootpath / nodeid.partition("::")[0])

    return InGroups(config, log)


SECONDS = ("torch", "transformers", "peft", "litellm", "llama_index", "sklearn", "spacy")
"""Libraries that take a second or more to import."""
LOADED_TO_COLLECT: set[str] = set()


def pytest_collection_finish() -> None:
    """The collector of garbage need not look through what was imported again and again."""
    LOADED_TO_COLLECT.update(sys.modules.keys() & SECONDS)
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of real data sets beside the checkout; tests that need it are skipped where it is absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip("needs the data sets of ../shared/data, which are not part of the project")
    return SHARED_DATA


@pytest.fixture(scope="session", autouse=True)
def parser_of_this_process() -> None:
    """A process that has loaded the parser parses a few passages itself, so that small indexes start no other."""
    if has_embedded_model():
        from kraq_dspy.embedded.reading.pipeline import pipeline

        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(sys.modules, "torch", None)  # which spaCy would import, a second and a half in each worker
            pipeline()


@pytest.fixture(autouse=True)
def logs_as_they_were() -> Iterator[None]:
    """The command line sets the level of all logs; run inside a test, it must not decide what the next one sees."""
    root = logging.getLogger()
    level = root.level
    mask = os.umask(0o022)  # which a command sets as the index is open, for all that it writes
    yield
    os.umask(mask)
    root.setLevel(level)
    if access := sys.modules.get("kraq_dspy.asset.store.access"):
        access.__dict__["_guards_copies"] = False  # else each index that a later test opens would set the mask
    if logs := sys.modules.get("kraq_dspy.apps.cli.logs"):
        root.removeHandler(logs._handler)


class KeywordEmbedder:
    """One axis for each keyword, one more for texts without any: a text points to the keywords that it has."""

    def __init__(self, *keywords: str) -> None:
        self.keywords = keywords
        self.name = f"keywords({','.join(keywords)})"
        self.dimension = len(keywords) + 1

    def encode_queries(self, texts: Sequence[str]) -> Vectors:
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:-1] = [text.lower().count(keyword) for keyword in self.keywords]
            if not row.any():
                row[-1] = 1
            row /= np.linalg.norm(row)
        return rows

    def encode_passages(self, texts: Sequence[str]) -> Vectors:
        return self.encode_queries(texts)


@pytest.fixture(scope="session")
def keyword_embedder() -> type[KeywordEmbedder]:
    return KeywordEmbedder


@pytest.fixture(scope="session")
def kraq(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmShell]:
    base = tmp_path_factory.getbasetemp()
    of_all_workers = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    shell = WarmShell(of_all_workers / "shell")
    yield shell
    shell.close()


TINY_TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>{% endfor %}<|assistant|>"
TINY_TEXTS = ["the cat sat on the mat", "a dog ran to the house", "Zürich and 東京 are cities", "which city is this?"]


class TinyModels:
    """Makes language models with random weights: two layers, head_dim 32, byte-level BPE, a chat template.

    What they say has no meaning; that engines agree on it, and with torch, can be tested.
    """

    def llama(self, folder: Path, *, context: int = 256) -> str:
        import tokenizers
        import torch
        import transformers

        fast: Any = transformers.PreTrainedTokenizerFast
        marks = ["<s>", "<|end|>", "<|user|>", "<|assistant|>", "<|system|>"]
        bpe = tokenizers.ByteLevelBPETokenizer()
        bpe.train_from_iterator(TINY_TEXTS * 20, vocab_size=600, min_frequency=1, special_tokens=marks)
        tokenizer = fast(tokenizer_object=bpe._tokenizer, bos_token="<s>", eos_token="<|end|>", pad_token="<s>")
        tokenizer.add_special_tokens({"additional_special_tokens": marks[2:]})
        tokenizer.chat_template = TINY_TEMPLATE
        tokenizer.save_pretrained(folder)
        torch.manual_seed(0)
        config = transformers.LlamaConfig(
            vocab_size=len(tokenizer), hidden_size=64, intermediate_size=128, num_hidden_layers=2,
            num_attention_heads=2, num_key_value_heads=2, head_dim=32, max_position_embeddings=context,
            bos_token_id=0, eos_token_id=1, initializer_range=0.2,
        )  # fmt: skip
        transformers.LlamaForCausalLM(config).save_pretrained(folder)
        return str(folder)

    def gguf(self, model: str, file: Path, *, template: bool = True) -> Path:
        """The weights of `llama` as llama.cpp reads them, in 32 bits."""
        import gguf
        import transformers

        tokenizer = transformers.AutoTokenizer.from_pretrained(model)
        torch_model = transformers.LlamaForCausalLM.from_pretrained(model)
        config = torch_model.config
        writer = gguf.GGUFWriter(file, "llama")
        writer.add_block_count(config.num_hidden_layers)
        writer.add_context_length(config.max_position_embeddings)
        writer.add_embedding_length(config.hidden_size)
        writer.add_feed_forward_length(config.intermediate_size)
        writer.add_head_count(config.num_attention_heads)
        writer.add_head_count_kv(config.num_key_value_heads)
        writer.add_layer_norm_rms_eps(config.rms_norm_eps)
        writer.add_rope_dimension_count(config.head_dim)
        writer.add_vocab_size(config.vocab_size)
        vocabulary: dict[str, int] = tokenizer.get_vocab()
        tokens = sorted(vocabulary, key=vocabulary.__getitem__)
        special = set(tokenizer.all_special_tokens)
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(tokens)
        writer.add_token_types([3 if token in special else 1 for token in tokens])
        bpe = json.loads(tokenizer.backend_tokenizer.to_str())["model"]
        writer.add_token_merges([" ".join(pair) if isinstance(pair, list) else pair for pair in bpe["merges"]])
        writer.add_bos_token_id(0)
        writer.add_eos_token_id(1)
        writer.add_add_bos_token(False)
        if template:
            writer.add_chat_template(TINY_TEMPLATE)
        names = gguf.get_tensor_name_map(gguf.MODEL_ARCH.LLAMA, config.num_hidden_layers)
        for name, weights in torch_model.state_dict().items():
            array = weights.numpy()
            if ".q_proj." in name or ".k_proj." in name:  # llama.cpp turns pairs of neighbours, torch pairs of halves
                heads = config.num_attention_heads
                array = array.reshape(heads, 2, array.shape[0] // heads // 2, -1).swapaxes(1, 2).reshape(array.shape)
            writer.add_tensor(names.get_name(name, (".weight",)), array)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        return file

    def adapter(self, model: str, folder: Path, *, seed: int) -> str:
        """A LoRA adapter that changes the model, by chance."""
        import peft
        import torch
        import transformers

        base = transformers.AutoModelForCausalLM.from_pretrained(model)
        torch.manual_seed(seed)
        config = peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"], init_lora_weights=False)
        peft.get_peft_model(base, config).save_pretrained(str(folder))
        return str(folder)


@pytest.fixture(scope="session")
def tiny_models() -> TinyModels:
    for package in ("torch", "transformers", "tokenizers", "peft"):
        pytest.importorskip(package, reason=f"needs {package}: pip install 'kraq-dspy[train]'")
    return TinyModels()
