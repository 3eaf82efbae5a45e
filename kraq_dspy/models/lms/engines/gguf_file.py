"""Reads what a GGUF file says about its model, without loading it, tells whether the model fits into memory, and writes
a LoRA adapter of peft's as such a file.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (version 2 and 3, little-endian).
"""

import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from kraq_dspy._internal.files import replaced
from kraq_dspy.errors import ModelError, import_extra
from kraq_dspy.models.lms.local_models import WEIGHTS, models_folder, weights_hash
from kraq_dspy.models.machine import free_memory

_MAGIC = b"GGUF"
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_WORKSPACE = (
    400 << 20
)  # llama.cpp's graph and logits for one batch: 100 to 350 MiB for models of 0.1 to 2 billion weights
_MOST_ENTRIES = 1 << 17  # metadata, and tensors: large models have some thousands
_MOST_ITEMS = 1 << 23  # of an array of texts: vocabularies have up to a million
_MOST_BYTES = 64 << 20  # of one text
_MOST_DIMENSIONS, _MOST_NESTED = 8, 8


@dataclass(frozen=True, slots=True)
class GGUFHeader:
    """`values` are the metadata by name; arrays are left out, but for their names in `arrays`."""

    path: Path
    size: int  # bytes of the file
    values: dict[str, Any]
    arrays: frozenset[str]

    @property
    def architecture(self) -> str:
        return str(self.values.get("general.architecture", ""))

    @property
    def is_adapter(self) -> bool:
        return self.values.get("general.type") == "adapter"

    @property
    def has_chat_template(self) -> bool:
        return bool(self.values.get("tokenizer.chat_template"))

    @property
    def context(self) -> int:
        """Tokens that the model was trained to read; 0 where the file does not say."""
        return self.number("context_length")

    def memory(self, tokens: int) -> int:
        """Bytes that the model takes with a context of so many tokens in all: weights, keys and values (16 bits each),
        and what one batch needs."""
        heads = self.number("attention.head_count")
        width = self.number("embedding_length") // max(heads, 1)
        key = self.number("attention.key_length", width)
        value = self.number("attention.value_length", width)
        kept = self.number("attention.head_count_kv", heads) * (key + value)
        return int(self.size + tokens * self.number("block_count") * kept * 2 + _WORKSPACE)

    def number(self, name: str, default: int = 0) -> int:
        """A whole number that the file says about its architecture, such as "block_count"."""
        value = self.values.get(f"{self.architecture}.{name}", default)
        return value if isinstance(value, int) and value >= 0 else default


def read_gguf(path: Path) -> GGUFHeader:
    """Raises ModelError for a path that is no file, and for a file that is no GGUF, was cut off or is damaged.

    Counts and lengths that no model has are refused before they are followed, so that a damaged header costs neither
    time nor memory.
    """
    if path.is_dir():
        files = sorted(file.name for file in path.glob("*.gguf"))
        hint = f"It holds {', '.join(files[:5])}: name one of them." if files else "It holds none."
        raise ModelError(f"{str(path)!r} is a folder; expected a GGUF file. {hint}")
    if path.exists() and not path.is_file():
        raise ModelError(f"{str(path)!r} is a pipe, a socket or a device; expected a GGUF file.")
    try:
        with path.open("rb") as file:
            return _read(path, file)
    except FileNotFoundError:
        raise ModelError(
            f"There is no model file {str(path)!r}. Give the path of a GGUF file, or bring a model with `kraq lm get`."
        ) from None
    except OSError as error:
        raise ModelError(f"{str(path)!r} cannot be read: {error.strerror}.") from error
    except struct.error as error:
        raise ModelError(_cut(path, path.stat().st_size)) from error
    except UnicodeDecodeError as error:
        raise ModelError(f"{str(path)!r} is damaged: a text of its header is not UTF-8. Download it anew.") from error
    except ValueError as error:
        raise ModelError(f"{str(path)!r} is damaged: its header has {error}. Download it anew.") from error


def _read(path: Path, file: BinaryIO) -> GGUFHeader:
    size = os.fstat(file.fileno()).st_size
    magic = file.read(4)
    if magic != _MAGIC:
        raise ModelError(_no_model(path, magic))
    version, n_tensors, n_values = _unpack(file, "<IQQ")
    if version not in (2, 3):
        raise ModelError(f"{str(path)!r} is GGUF version {version}; version 2 and 3 can be read. Download it anew.")
    _require_most(n_values, _MOST_ENTRIES, "metadata")
    _require_most(n_tensors, _MOST_ENTRIES, "tensors")
    values: dict[str, Any] = {}
    arrays = set()
    for _ in range(n_values):
        name = _text(file, size)
        (kind,) = _unpack(file, "<I")
        if kind == _ARRAY:
            _skip_array(file, size)
            arrays.add(name)
        elif kind == _STRING:
            values[name] = _text(file, size)
        else:
            (values[name],) = _unpack(file, f"<{_scalar(kind)}")
    last = 0
    for _ in range(n_tensors):
        _text(file, size)
        (dimensions,) = _unpack(file, "<I")
        _require_most(dimensions, _MOST_DIMENSIONS, "dimensions of a tensor")
        *_, offset = _unpack(file, f"<{dimensions}QIQ")
        last = max(last, offset)
    if file.tell() + last >= size:
        raise ModelError(_cut(path, size))
    return GGUFHeader(path, size, values, frozenset(arrays))


def _unpack(file: BinaryIO, form: str) -> tuple[Any, ...]:
    return struct.unpack(form, file.read(struct.calcsize(form)))


def _text(file: BinaryIO, size: int) -> str:
    length = _length(file, size)
    _require_most(length, _MOST_BYTES, "bytes of a text")
    return file.read(length).decode("utf-8")


def _length(file: BinaryIO, size: int) -> int:
    (length,) = _unpack(file, "<Q")
    if length > size:
        raise struct.error("a length beyond the file")
    return int(length)


def _skip_array(file: BinaryIO, size: int, nested: int = 1) -> None:
    (kind,) = _unpack(file, "<I")
    count = _length(file, size)
    if kind == _STRING:
        _require_most(count, _MOST_ITEMS, "texts in an array")
        for _ in range(count):
            file.seek(_length(file, size), os.SEEK_CUR)
    elif kind == _ARRAY:
        _require_most(nested, _MOST_NESTED, "arrays within each other")
        _require_most(count, _MOST_ENTRIES, "arrays in an array")
        for _ in range(count):
            _skip_array(file, size, nested + 1)
    else:
        file.seek(count * struct.calcsize(_scalar(kind)), os.SEEK_CUR)


def _scalar(kind: int) -> str:
    if kind not in _SCALARS:
        raise ValueError(f"a value of the unknown kind {kind}")
    return _SCALARS[kind]


def _require_most(number: int, most: int, what: str) -> None:
    if number > most:
        raise ValueError(f"{number:,} {what}, and at most {most:,} are read")


def _no_model(path: Path, magic: bytes) -> str:
    kinds = {
        b"PK\x03\x04": "It looks like a zip file or a PyTorch checkpoint. ",
        b"<!DO": "It is a web page: the download went to a page about the file. ",
        b"<htm": "It is a web page: the download went to a page about the file. ",
        b"vers": "It is a Git LFS pointer: fetch the file itself, with `git lfs pull`. ",
    }
    kind = kinds.get(magic, "It is empty. " if not magic else "")
    return (
        f"{str(path)!r} is no GGUF model. {kind}llama.cpp reads GGUF files (the name usually ends in .gguf); a folder "
        'of Hugging Face files goes with "transformers/FOLDER".'
    )


def _cut(path: Path, size: int) -> str:
    return f"{str(path)!r} ends too early ({size / 1e6:,.0f} MB): the download was cut off. Download it anew."


def require_fit(header: GGUFHeader, *, context: int, slots: int) -> None:
    """Raises ModelError for a model that needs more memory than is free, with what would fit."""
    free = free_memory()
    needed = header.memory(context * slots)
    if free is None or needed <= free:
        return
    least = header.memory(2048)
    way = (
        f"A smaller context fits: context = {max(2048, context // 4)} and slots = 1 in its role (kraq.toml)."
        if least <= free
        else "Take a smaller model or a stronger quantisation, or close other programs."
    )
    raise ModelError(
        f"{header.path.name!r} needs about {_gb(needed)} (weights {_gb(header.size)}, the rest for {slots} x "
        f"{context:,} tokens of context), and {_gb(free)} of memory are free. {way}"
    )


def _gb(size: int) -> str:
    return f"{size / 1e9:,.1f} GB"


_TURNED = ("llama",)  # llama.cpp rotates neighbouring numbers of queries and keys, torch the two halves of a head
_KNOWN = (*_TURNED, "qwen2", "qwen3")


def lora_file(place: str, base: GGUFHeader) -> Path:
    """For the model `base`. A folder is converted once; the file is kept in the cache under the hash of its weights.

    Raises ModelError for a path that is no adapter, or one that cannot be converted.
    """
    path = Path(place)
    if path.is_file():
        if not read_gguf(path).is_adapter:
            raise ModelError(f"{place!r} is a whole model; expected a LoRA adapter.")
        return path
    kept = models_folder().parent / "adapters" / f"{weights_hash(path)}-{base.architecture}.gguf"
    if not kept.is_file():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with replaced(kept) as draft:
            _convert(path, base, draft)
    return kept


def _convert(folder: Path, base: GGUFHeader, target: Path) -> None:
    purpose = "An adapter of peft's in llama.cpp"
    gguf, numpy = import_extra("gguf", "local", purpose), import_extra("safetensors.numpy", "embedded", purpose)
    config = json.loads((folder / "adapter_config.json").read_text("utf-8"))
    if base.architecture not in _KNOWN or config.get("use_dora") or config.get("modules_to_save"):
        raise ModelError(
            f"The adapter {str(folder)!r} cannot be turned into a GGUF file here: plain LoRA of {', '.join(_KNOWN)} "
            f"models can ({base.path.name!r} is {base.architecture!r}). Convert it with llama.cpp's "
            "convert_lora_to_gguf.py, and give that file as adapter."
        )
    rank = config["r"]
    scale = rank**0.5 if config.get("use_rslora") else 1.0
    writer = gguf.GGUFWriter(target, base.architecture)
    writer.add_type("adapter")
    writer.add_string("adapter.type", "lora")
    writer.add_float32("adapter.lora.alpha", float(config["lora_alpha"]) * scale)
    architecture = next(kind for kind, name in gguf.MODEL_ARCH_NAMES.items() if name == base.architecture)
    names = gguf.get_tensor_name_map(architecture, base.number("block_count"))
    for name, weights in sorted(numpy.load_file(folder / WEIGHTS).items()):
        module, _, side = name.removeprefix("base_model.model.").rpartition(".lora_")
        known = names.get_name(module)
        if known is None:
            raise ModelError(f"The adapter {str(folder)!r} changes {module!r}, which a GGUF file has no name for.")
        side = side[0].lower()
        if side == "b" and base.architecture in _TURNED:
            heads = {"q_proj": "attention.head_count", "k_proj": "attention.head_count_kv"}.get(
                module.rpartition(".")[2]
            )
            if heads:
                weights = _turned(weights, base.number(heads))
        writer.add_tensor(f"{known}.weight.lora_{side}", weights.astype("float32"))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _turned(weights: Any, heads: int) -> Any:
    rows, columns = weights.shape
    return weights.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)
