"""Names an adapter: its folder's name and the hash of its weights, so that no cache takes it for another.

[roles.generator]
model = "transformers/models/llama"    # or hosted_vllm/...
adapter = "adapters/generator"         # becomes ...#adapters/generator@1a2b3c4d, or hosted_vllm/generator-1a2b3c4d
"""

import dataclasses
import functools
import hashlib
import re
from pathlib import Path

from kraq_dspy.errors import ModelError
from kraq_dspy.settings import RoleSettings

GGUF = "gguf/"
TRANSFORMERS = "transformers/"
IN_PROCESS = (TRANSFORMERS, GGUF)
SERVED = "hosted_vllm/"
WEIGHTS = "adapter_model.safetensors"
QUESTIONS = "kraq-questions"
"""The adapter that comes with the package: it makes a question generator of `config.QUESTIONS_BASE`."""
_PACKAGED = Path(__file__).parent / "adapters" / QUESTIONS
_HASH = re.compile(r"(?P<folder>.+)@(?P<hash>[0-9a-f]{8,32})")


def adapter_folder(named: str) -> tuple[str, str]:
    """ "FOLDER@HASH" as its folder and its hash; the hash is "" where none is said."""
    match = _HASH.fullmatch(named)
    folder, known = (match["folder"], match["hash"]) if match else (named, "")
    return str(_PACKAGED) if folder == QUESTIONS else folder, known


def weights_hash(folder: Path | str) -> str:
    """32 hexadecimal digits that depend on the adapter's weights and its configuration alone. Raises ModelError."""
    place = Path(adapter_folder(str(folder))[0])
    try:
        if place.is_file():  # a GGUF file holds both
            return _hash((place,), place.stat().st_mtime_ns, place.stat().st_size)
        weights, config = (place / WEIGHTS).stat(), (place / "adapter_config.json").stat()
    except OSError as error:
        raise ModelError(
            f"{str(folder)!r} is no adapter: {error.strerror} ({Path(error.filename).name}). Give a folder that "
            "`kraq finetune` or peft wrote."
        ) from error
    files = (place / "adapter_config.json", place / WEIGHTS)
    return _hash(files, weights.st_mtime_ns, weights.st_size, config.st_mtime_ns)


def served_name(folder: Path | str) -> str:
    """ "generator-1a2b3c4d" for the folder "adapters/generator": what a vLLM server calls it."""
    stem = re.sub(r"[^\w.-]+", "-", Path(folder).resolve().name)
    return f"{stem}-{weights_hash(folder)[:8]}"


def with_adapter(settings: RoleSettings) -> RoleSettings:
    """The role with its adapter in the model's name, and no `adapter` left; the path of a GGUF file alone ("m.gguf")
    becomes "gguf/m.gguf". Raises ModelError."""
    if _is_file(settings.model):
        settings = dataclasses.replace(settings, model=GGUF + settings.model)
    if settings.adapter is None:
        if settings.model.startswith(IN_PROCESS) and "#" in settings.model:
            base, _, named = settings.model.partition("#")
            folder, known = adapter_folder(named)
            if not known and (Path(folder).is_file() or (Path(folder) / WEIGHTS).is_file()):
                return dataclasses.replace(settings, model=f"{base}#{named}@{weights_hash(folder)[:8]}")
        return settings
    if settings.model.startswith(IN_PROCESS):
        name = f"{settings.model}#{settings.adapter}@{weights_hash(settings.adapter)[:8]}"
    elif settings.model.startswith(SERVED):
        name = f"{SERVED}{served_name(settings.adapter)}"
    else:
        raise ModelError(
            f"The model {settings.model!r} cannot take the adapter {settings.adapter!r}: adapters go with "
            f'"transformers/FOLDER", "{GGUF}FILE" and "{SERVED}NAME".'
        )
    return dataclasses.replace(settings, model=name, adapter=None)


def _is_file(model: str) -> bool:
    """Models of a server may end in .gguf too: "hosted_vllm/m.gguf" is no path unless such a file is here."""
    if not model.endswith(".gguf") or model.startswith(IN_PROCESS):
        return False
    return "/" not in model or model[0] in "./~" or Path(model).is_file()


@functools.lru_cache(maxsize=256)
def _hash(files: tuple[Path, ...], *changes_with: int) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in files:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()
