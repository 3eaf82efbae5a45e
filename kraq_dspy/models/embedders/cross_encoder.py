"""Scores question and passage read together by a cross-encoder: slower than two vectors, and better."""

import logging
import threading
from collections.abc import Sequence
from typing import Any

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.errors import MissingExtraError, ModelError
from kraq_dspy.models.embedders.model_folder import local_folder, quiet_transformers
from kraq_dspy.models.machine import device_named
from kraq_dspy.ports import Vectors
from kraq_dspy.records import Hit

logger = logging.getLogger(__name__)


class CrossEncoderReranker(SharedByCopies):
    """A `ports.Reranker` from a sequence-classification model by its hub name or its folder, through transformers.

    The score is the model's own output (a logit; no fixed range): its only one, or that of its last class, which is
    "relevant" if a model has two. Passages are cut to `max_tokens`. Weights must be in safetensors files and code
    that a model brings is not run. Safe for threads, which take turns. Raises ModelError for a model that is not there.
    """

    def __init__(self, model: str, *, max_tokens: int = 512, batch_size: int = 16, device: str = "auto") -> None:
        try:
            import torch
            from transformers import AutoModelForSequenceClassification, AutoTokenizer
        except ImportError as error:
            raise MissingExtraError(error.name or "transformers", "transformers", "A cross-encoder") from error

        source = str(local_folder(model, "cross-encoder") or model)
        self.device = device_named(device, torch)
        try:
            self._tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False)
            with quiet_transformers():
                loaded: Any = AutoModelForSequenceClassification.from_pretrained(
                    source, trust_remote_code=False, use_safetensors=True, dtype=torch.float32
                )
            self._model = loaded.to(self.device).eval()
        except Exception as error:  # tokenizers and safetensors raise nothing more precise
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise ModelError(
                f"The cross-encoder {model!r} cannot be loaded ({reason}). Name a saved model's folder, or a "
                "sequence-classification model that is in this machine's cache or on a hub that can be reached."
            ) from error

        self.name = model
        limit = getattr(self._model.config, "max_position_embeddings", max_tokens)
        self._max_tokens = min(max_tokens, limit)
        self._batch_size = batch_size
        self._lock = threading.Lock()

    def __call__(self, question: str, hits: Sequence[Hit], *, vector: Vectors | None = None) -> list[float]:
        import torch

        scores: list[float] = []
        for start in range(0, len(hits), self._batch_size):
            passages = [_clean(hit.chunk.passage) for hit in hits[start : start + self._batch_size]]
            with self._lock, torch.inference_mode():
                batch = self._tokenizer(
                    [_clean(question)] * len(passages),
                    passages,
                    truncation="longest_first",
                    max_length=self._max_tokens,
                    padding=True,
                    return_tensors="pt",
                )
                scores += self._model(**batch.to(self.device)).logits[:, -1].tolist()
        return scores


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")  # the tokenizer takes no lone surrogates
