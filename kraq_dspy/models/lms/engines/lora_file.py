"""Gives a LoRA adapter as the GGUF file that llama.cpp reads: taken as it is, or written from a folder of peft's."""

import json
from pathlib import Path
from typing import Any

from kraq_dspy._internal.files import replaced
from kraq_dspy.errors import ModelError, import_extra
from kraq_dspy.models.lms.adapter_name import WEIGHTS, weights_hash
from kraq_dspy.models.lms.engines.gguf_file import GGUFHeader, read_gguf
from kraq_dspy.models.lms.local_models import models_folder

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
