"""Reads what a GGUF file says about its model, without loading it, and writes a LoRA adapter of peft's as such a file.

Format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md (version 2 and 3, little-endian).
"""

import json
import os
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from kraq_dspy._internal.files import replaced
from kraq_dspy.errors import ModelError, counted, import_extra
from kraq_dspy.models.lms.local_models import WEIGHTS, models_folder, weights_hash

_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_MOST_BYTES = 64 << 20  # of one text
_MOST_ITEMS = 1 << 23  # of an array of texts: vocabularies have up to a million


@dataclass(frozen=True, slots=True)
class GGUFHeader:
    """`values` are the metadata by name; arrays are left out, but for their names in `arrays`."""

    path: Path
    values: dict[str, Any]
    arrays: frozenset[str]

    @property
    def architecture(self) -> str:
        return str(self.values.get("general.architecture", ""))

    def number(self, name: str) -> int:
        """A whole number that the file says about its architecture, such as "block_count"; 0 if it does not."""
        value = self.values.get(f"{self.architecture}.{name}")
        return value if isinstance(value, int) and value >= 0 else 0


def read_gguf(path: Path) -> GGUFHeader:
    """Raises ModelError for a path that is no file, and for a file that is no GGUF, was cut off or is damaged."""
    if path.exists() and not path.is_file():
        raise ModelError(f"{str(path)!r} is not a regular file; expected a GGUF file.")

    try:
        with path.open("rb") as file:
            return _read(path, file)
    except FileNotFoundError:
        raise ModelError(
            f"There is no model file {str(path)!r}. Give the path of a GGUF file, "
            "or download a model with `kraq lm get`."
        ) from None
    except (OSError, ValueError, OverflowError, RecursionError, struct.error) as error:
        raise ModelError(f"{str(path)!r} is damaged or was cut off ({error}). Download it again.") from error


def _read(path: Path, file: BinaryIO) -> GGUFHeader:
    if file.read(4) != b"GGUF":
        raise ModelError(
            f"{str(path)!r} is no GGUF model (a web page or a Git LFS pointer that was downloaded in its place?). A "
            'folder of Hugging Face files goes with "transformers/FOLDER".'
        )

    version, _, n_values = _unpack(file, "<IQQ")
    if version not in (2, 3):
        raise ModelError(f"{str(path)!r} is GGUF version {version}; kraq reads versions 2 and 3. Download it again.")
    if n_values > _MOST_ITEMS:
        raise ValueError(f"{n_values:,} values")

    values: dict[str, Any] = {}
    arrays = set()
    for _ in range(n_values):
        name = _text(file)
        (kind,) = _unpack(file, "<I")
        if kind == _ARRAY:
            _skip_array(file)
            arrays.add(name)
        else:
            values[name] = _text(file) if kind == _STRING else _unpack(file, f"<{_scalar(kind)}")[0]
    return GGUFHeader(path, values, frozenset(arrays))


def _unpack(file: BinaryIO, form: str) -> tuple[Any, ...]:
    return struct.unpack(form, file.read(struct.calcsize(form)))


def _text(file: BinaryIO) -> str:
    (length,) = _unpack(file, "<Q")
    if length > _MOST_BYTES:
        raise ValueError(f"a text of {length:,} bytes")
    return file.read(length).decode("utf-8")


def _skip_array(file: BinaryIO) -> None:
    kind, count = _unpack(file, "<IQ")
    if kind not in (_STRING, _ARRAY):
        file.seek(count * struct.calcsize(_scalar(kind)), os.SEEK_CUR)
        return
    if count > _MOST_ITEMS:
        raise ValueError(f"an array of {counted(count, 'item')}")
    for _ in range(count):
        if kind == _ARRAY:
            _skip_array(file)
        else:
            file.seek(_unpack(file, "<Q")[0], os.SEEK_CUR)


def _scalar(kind: int) -> str:
    if kind not in _SCALARS:
        raise ValueError(f"a value of the unknown kind {kind}")
    return _SCALARS[kind]


_TURNED = ("llama",)  # llama.cpp rotates neighbouring numbers of queries and keys, torch the two halves of a head
_KNOWN = (*_TURNED, "qwen2", "qwen3")


def lora_file(place: str, base: GGUFHeader) -> Path:
    """Find the adapter's file for the model `base`. A folder is converted once; the file is kept in
    the cache under the hash of its weights.

    Raises ModelError for a path that is no adapter, or one that cannot be converted.
    """
    path = Path(place)
    if path.is_file():
        if read_gguf(path).values.get("general.type") != "adapter":
            raise ModelError(f"{place!r} is a whole model; expected a LoRA adapter.")
        return path

    converted = models_folder().parent / "adapters" / f"{weights_hash(path)}-{base.architecture}.gguf"
    if not converted.is_file():
        converted.parent.mkdir(parents=True, exist_ok=True)
        with replaced(converted) as draft:
            _convert(path, base, draft)
    return converted


def _convert(folder: Path, base: GGUFHeader, target: Path) -> None:
    purpose = "An adapter of peft's in llama.cpp"
    gguf, numpy = import_extra("gguf", "local", purpose), import_extra("safetensors.numpy", "local", purpose)
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
                rows, columns = weights.shape
                pairs = weights.reshape(base.number(heads), 2, -1, columns)
                weights = pairs.swapaxes(1, 2).reshape(rows, columns)
        writer.add_tensor(f"{known}.weight.lora_{side}", weights.astype("float32"))

    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
