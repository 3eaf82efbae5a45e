"""Finds what a model in this process needs: its packages, where its weights lie, and which tokens end and fill."""

from pathlib import Path
from typing import Any

from kraq_dspy.models.embedders.model_folder import local_folder, weights_place
from kraq_dspy.models.lms.engines.gguf_file import read_gguf


def end_tokens(tokenizer: Any, model: Any) -> list[int]:
    """Chat models have several: end of text, end of turn."""
    ends = model.generation_config.eos_token_id
    several = ends if isinstance(ends, list) else [] if ends is None else [ends]
    return sorted({*several, *([] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id])})


def pad_token(tokenizer: Any) -> int:
    """Never the end token: padding behind an answer must not look like its end. It is masked, so any other does."""
    for token in (tokenizer.pad_token_id, tokenizer.unk_token_id, tokenizer.bos_token_id):
        if token is not None and token != tokenizer.eos_token_id:
            return int(token)
    return 0 if tokenizer.eos_token_id != 0 else 1


def checked_weights(name: str) -> tuple[str, dict[str, Any]]:
    """`weights_place`, after a look at what is there. Raises ModelError for a GGUF file that is none, and a path with
    no folder."""
    place = weights_place(name)
    if place[1]:
        read_gguf(Path(name).expanduser())
    else:
        local_folder(name, "model")
    return place
