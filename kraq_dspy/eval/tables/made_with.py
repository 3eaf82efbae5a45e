"""Says with what a run was made: commit, machine and device, checksums of its data and of models on this disk."""

import functools
import hashlib
import json
import os
import platform
import resource
import subprocess
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from kraq_dspy.eval.datasets import Dataset, Example
from kraq_dspy.models.lms.local_models import GGUF, TRANSFORMERS, with_adapter
from kraq_dspy.records import content_id
from kraq_dspy.settings import ROLES, Settings

_WEIGHTS = (".safetensors", ".bin", ".gguf")


def data_checksum(dataset: Dataset, examples: Sequence[Example]) -> str:
    """32 hexadecimal digits that depend on the corpus and on the questions that are asked, not on their files."""
    corpus = [(document.id, document.title, document.text) for document in dataset.documents]
    content = [(each.id, each.question, each.answers, each.answer_items, each.supporting_ids) for each in examples]
    return content_id("data", json.dumps(corpus), json.dumps(content))


def model_checksums(settings: Settings) -> dict[str, str]:
    """SHA-256 of the weights of every model that lies on this disk, by its name; the others are a server's to know."""
    sums = {}
    for role in ROLES:
        name = with_adapter(settings.role(role)).model
        for kind in (GGUF, TRANSFORMERS):
            path = Path(name.removeprefix(kind).partition("#")[0])
            if name.startswith(kind) and path.exists():
                files = [path] if path.is_file() else [each for each in path.iterdir() if each.suffix in _WEIGHTS]
                sums[name] = _sha256(tuple(sorted(files)))
    return sums


def machine() -> dict[str, str]:
    """Commit, versions, processor, memory, and the accelerator that the process has loaded."""
    facts = {
        "commit": _commit(),
        "library": f"kraq-dspy {version('kraq-dspy')}",
        "python": platform.python_version(),
        "processor": f"{_processor()}, {os.cpu_count()} cores",
        "memory": f"{os.sysconf('SC_PAGE_SIZE') * os.sysconf('SC_PHYS_PAGES') / 1e9:.0f} GB",
        "device": _device(),
    }
    return {name: text for name, text in facts.items() if text}


def memory_mb() -> dict[str, float]:
    """Megabytes that this process holds now, and the most that it had on an accelerator; servers' are not in it."""
    held = {"memory_mb": _resident() / 1e6}
    if (cuda := _cuda()) is not None:
        held["gpu_mb"] = cuda.max_memory_allocated() / 1e6
    return held


def _resident() -> int:
    try:
        return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:  # not Linux: the most so far stands for what is held
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _device() -> str:
    cuda = _cuda()
    return "cpu" if cuda is None else str(cuda.get_device_name())


def _cuda() -> Any | None:
    """torch's module for the GPU, where torch is loaded and has one; another thread may be loading it just now."""
    cuda: Any = getattr(sys.modules.get("torch"), "cuda", None)
    is_available = getattr(cuda, "is_available", None)
    return cuda if is_available is not None and is_available() else None


@functools.cache
def _commit() -> str:
    """Of the working copy that this package lies in, with "+" where it has changes; "" for an installed one."""
    place = Path(__file__).resolve().parents[3]
    if not (place / ".git").exists():
        return ""
    try:
        head, status = (
            subprocess.run(
                ["git", "-C", str(place), *words], capture_output=True, text=True, check=True, timeout=10
            ).stdout.strip()
            for words in (["rev-parse", "HEAD"], ["status", "--porcelain", "--untracked-files=no"])
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return f"{head[:12]}{'+' if status else ''}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


@functools.lru_cache(maxsize=64)
def _sha256(files: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for path in files:
        with path.open("rb") as file:
            hashlib.file_digest(file, lambda: digest)
    return digest.hexdigest()
