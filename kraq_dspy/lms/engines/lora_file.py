"""A LoRA adapter as the GGUF file that llama.cpp reads."""

from pathlib import Path

from kraq_dspy.errors import ModelError
from kraq_dspy.lms.engines.gguf_file import read_gguf


def lora_file(place: str) -> Path:
    """Raises ModelError for a path that is no adapter."""
    path = Path(place)
    if not read_gguf(path).is_adapter:
        raise ModelError(f"{place!r} is a whole model; expected a LoRA adapter.")
    return path
