"""Turns token sequences into one vector each by a transformer, in batches of similar length."""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kraq_dspy._internal.copies import SharedByCopies
from kraq_dspy.errors import ModelError, import_extra
from kraq_dspy.models.embedders.device import device_named
from kraq_dspy.models.embedders.model_folder import (
    packaged_folder,
    quiet_transformers,
    read_model_folder,
    unpacked,
    weights_fingerprint,
    weights_place,
)
from kraq_dspy.ports import Vectors

PACKAGED = "minilm"
_NEEDED = "embedded", "Embedding passages as seen from a question"  # the extra, and what for

Pool = Callable[[Any, Any, Any], Any]
"""(last hidden layer `[batch, tokens, dim]`, attention mask and token ids `[batch, tokens]`) -> `[batch, dim]`."""


class Transformer(SharedByCopies):
    """Tokeniser and weights of a Hugging Face model: "minilm" (packaged), a local folder or a hub name.

    `model_class` is the name of a class of `transformers`. Safe for threads: one batch runs at a time. Raises
    MissingExtraError without torch and transformers, ModelError when the model cannot be loaded.
    """

    def __init__(
        self,
        name: str = PACKAGED,
        *,
        model_class: str = "AutoModel",
        batch_size: int = 32,
        threads: int | None = None,
        dtype: str = "float32",
        device: str = "auto",
        layers: int | None = None,
        **tokenizer_options: Any,
    ) -> None:
        torch, transformers = import_extra("torch", *_NEEDED), import_extra("transformers", *_NEEDED)
        folder, place = (str(packaged_folder()), {}) if name == PACKAGED else weights_place(name)
        shallow = {} if layers is None else {"num_hidden_layers": layers}
        if threads is not None:
            torch.set_num_threads(threads)
        try:
            with quiet_transformers():  # its report lists heads that an encoder does without
                self.tokenizer = transformers.AutoTokenizer.from_pretrained(folder, **place, **tokenizer_options)
                loader = getattr(transformers, model_class)
                model, report = loader.from_pretrained(
                    folder, dtype=getattr(torch, dtype), output_loading_info=True, **unpacked(place), **shallow
                )
        except (OSError, ValueError) as error:
            raise ModelError(
                f"The instructed encoder {name!r} cannot be loaded: {error} Give a folder with its files, or 'minilm'."
            ) from error
        lacking = sorted(key for key in report["missing_keys"] if not key.startswith("pooler."))
        if lacking:
            raise ModelError(f"{name!r} lacks weights of a {model_class}: {', '.join(lacking[:3])}. Is it an encoder?")
        self.model = model.to(device_named(device, torch)).eval()
        self.torch = torch
        if self.tokenizer.pad_token_id is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self.folder = folder
        self.name = name_of(name, dtype)
        self.dimension: int = getattr(self.model.config, "hidden_size", None) or self.model.config.d_model
        self.batch_size = batch_size
        self._lock = threading.Lock()

    @staticmethod
    def depth(name: str) -> int:
        """How many layers the model has. Raises ModelError as the constructor does."""
        transformers = import_extra("transformers", *_NEEDED)
        folder, place = weights_place(name)
        try:
            return int(transformers.AutoConfig.from_pretrained(folder, **place).num_hidden_layers)
        except (OSError, ValueError, AttributeError) as error:
            raise ModelError(f"The instructed encoder {name!r} cannot be loaded: {error}") from error

    def encode(self, rows: Sequence[dict[str, list[int]]], pool: Pool, side: str = "right") -> Vectors:
        """float32 `[n_rows, dim]`, L2-normalised, in the order of `rows` (the tokeniser's output for one text each).

        `side` is where padding goes.
        """
        torch = self.torch
        vectors = np.zeros((len(rows), self.dimension), dtype=np.float32)
        order = sorted(range(len(rows)), key=lambda i: (len(rows[i]["input_ids"]), i))
        for start in range(0, len(order), self.batch_size):
            batch = order[start : start + self.batch_size]
            with self._lock, torch.inference_mode():
                self.tokenizer.padding_side = side
                inputs = self.tokenizer.pad([rows[i] for i in batch], return_tensors="pt").to(self.model.device)
                hidden = self.model(**inputs).last_hidden_state
                pooled = pool(hidden, inputs["attention_mask"], inputs["input_ids"]).float()
                vectors[batch] = torch.nn.functional.normalize(pooled, dim=-1).cpu().numpy()
        return vectors


def name_of(name: str, dtype: str) -> str:
    """Tells weights and precision apart; of a folder it has the last part and a fingerprint, wherever it lies."""
    path = Path(name)
    if path.is_dir():
        known = f"{path.resolve().name}#{read_model_folder(path).fingerprint()}"
    else:
        known = f"{path.name}#{weights_fingerprint(path)}" if path.is_file() else name
    return known if dtype == "float32" else f"{known}[{dtype}]"


def mean(hidden: Any, mask: Any, ids: Any) -> Any:
    """The mean over all tokens that are no padding."""
    weights = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * weights).sum(1) / weights.sum(1)


def last(hidden: Any, mask: Any, ids: Any) -> Any:
    """The last token; padding is on the left."""
    return hidden[:, -1]
