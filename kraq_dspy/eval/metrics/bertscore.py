"""Measures how much of one text's meaning is in another: BERTScore (Zhang et al., 2020; package bert-score)."""

import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.errors import EvaluationError, ModelError, needs
from kraq_dspy.models.embedders.model_folder import packaged_folder, quiet_transformers

_log = logging.getLogger(__name__)

DEFAULT_MODEL = "roberta-large"
PACKAGED_MODEL = "all-MiniLM-L6-v2"
BATCH = 64
PACKAGED_LAYER = 6  # the best of its layers at telling paraphrases from hard negatives


@dataclass(frozen=True, slots=True)
class BertScores:
    """Precision, recall and F1 of each pair, float64 `[n_pairs]` in [0, 1].

    Scores of different models or layers are on different scales, so `model` and `layer` belong to every figure.
    """

    model: str
    layer: int
    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]


class BertScorer(SharedByCopies):
    """Scores pairs of texts. The model is loaded at the first use.

    The default is bert-score's own for English, roberta-large at layer 17, which comes from the hub. `packaged()` needs
    no network. A local folder needs `num_layers`, the layer whose embeddings are compared. No rescaling, no idf.
    """

    def __init__(
        self, model: str | Path = DEFAULT_MODEL, num_layers: int | None = None, *, name: str | None = None
    ) -> None:
        self._model = str(model)
        self._num_layers = num_layers
        # A folder's path says nothing on another machine.
        self.name = name or (Path(model).name if Path(model).is_dir() else str(model))
        self._scorer: Any = None
        self._lock = threading.Lock()  # bert-score pads and sorts batches in shared state

    @classmethod
    def packaged(cls) -> "BertScorer":
        """The sentence encoder that comes as a Python package: small, offline, another scale than the default's."""
        return cls(packaged_folder(), PACKAGED_LAYER, name=PACKAGED_MODEL)

    @property
    def layer(self) -> int:
        """The layer whose embeddings are compared. Raises EvaluationError for a folder without `num_layers`."""
        if self._num_layers is not None:
            return self._num_layers
        layer = _known_layers().get(self._model)
        if layer is None:
            raise EvaluationError(
                f"bert-score does not know which layer of {self.name!r} to compare. Give num_layers: the best layer is "
                "the one whose scores agree most with people's on pairs like yours."
            )
        return int(layer)

    def score(self, references: Sequence[str], candidates: Sequence[str]) -> BertScores:
        """Scores `candidates[i]` against `references[i]`.

        A blank candidate scores 0. Raises EvaluationError for a blank reference or lists of different lengths, and
        ModelError when the model cannot be had.
        """
        if len(references) != len(candidates):
            raise EvaluationError(f"There are {len(references)} references and {len(candidates)} candidates.")
        for row, reference in enumerate(references):
            if not reference.strip():
                raise EvaluationError(f"Row {row}: the reference is blank, so its BERTScore is undefined.")
        scores = np.zeros((3, len(candidates)))
        filled = [row for row, candidate in enumerate(candidates) if candidate.strip()]
        if filled:
            with self._lock:
                parts = self._loaded().score(
                    [candidates[row] for row in filled], [references[row] for row in filled], batch_size=BATCH
                )
            scores[:, filled] = [part.numpy().astype(np.float64) for part in parts]
        # Cosines of contextual embeddings can leave [0, 1] by rounding, and below 0 in principle.
        precision, recall, f1 = np.clip(scores, 0.0, 1.0)
        return BertScores(self.name, self.layer, precision, recall, f1)

    def _loaded(self) -> Any:
        if self._scorer is None:
            layer = self.layer
            _log.info("loading BERTScore model %s, layer %d", self.name, layer)
            with needs("bert-score", "eval", "BERTScore"):
                from bert_score import BERTScorer
            try:
                with quiet_transformers():
                    scorer = BERTScorer(model_type=self._model, num_layers=layer)
            except OSError as error:
                raise ModelError(
                    f"The BERTScore model {self.name!r} is neither here nor on a hub that can be reached. Use "
                    "BertScorer.packaged(), or give a folder and num_layers."
                ) from error
            _mend(scorer._tokenizer, scorer._model)
            self._scorer = scorer
        return self._scorer


def _mend(tokenizer: Any, model: Any) -> None:
    """A tokenizer without a length limit says 1e30, which overflows in Rust; the model knows its limit."""
    limit = int(getattr(model.config, "max_position_embeddings", 512))
    if getattr(model.config, "model_type", "") in {"roberta", "xlm-roberta", "camembert"}:
        limit -= 2  # their positions start after the padding index
    tokenizer.model_max_length = min(tokenizer.model_max_length, limit)


def _known_layers() -> dict[str, int]:
    with needs("bert-score", "eval", "BERTScore"):
        from bert_score.utils import model2layers
    return dict(model2layers)
