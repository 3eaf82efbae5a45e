"""Compares a text with a reference: BLEU, ROUGE-L, METEOR, as QA-RAG reports them, and BERTScore; all in [0, 1].

`gold` is a sequence of references; the best of them counts (for BLEU, all of them together, as it is defined).
EvaluationError as in `answers.py`. Text in scripts without spaces is compared character by character: without that,
rouge-score would drop it silently and the others would take a sentence for one word.
"""

import threading
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.errors import EvaluationError, ModelError, needs
from kraq_dspy.eval.metrics.answers import check_prediction, check_references, has_unspaced_script, split_words
from kraq_dspy.models.embedders.model_folder import packaged_folder, quiet_transformers

_READING_WORDNET = threading.Lock()  # nltk seeks in open files


def bleu(gold: Sequence[str], predicted: str, *, order: Literal[1, 2, 3, 4] = 4) -> float:
    """Sentence BLEU with n-grams up to `order`, ignoring case (Papineni et al., 2002; sacrebleu, Post, 2018).

    Exponential smoothing and effective order: an answer of two words is judged by its 1- and 2-grams, so that a short
    right answer reaches 1.0. Chinese and other unspaced scripts use sacrebleu's "char" tokenizer, all else "13a".
    """
    references = list(check_references(gold))
    if not check_prediction(predicted).strip():
        return 0.0
    unspaced = any(has_unspaced_script(text) for text in (*references, predicted))
    score = _bleu(order, "char" if unspaced else "13a").sentence_score(predicted, references).score
    return _into_unit(score / 100)


def rouge_l(gold: Sequence[str], predicted: str) -> float:
    """F1 of the longest common subsequence of words, unstemmed (Lin, 2004; rouge-score's rougeL)."""
    scores = _rouge().score_multi(list(check_references(gold)), check_prediction(predicted))
    return _into_unit(float(scores["rougeL"].fmeasure))


def meteor(gold: Sequence[str], predicted: str) -> float:
    """Words aligned by form, stem and WordNet synonym, less for broken order (Banerjee and Lavie, 2005; nltk).

    Identical texts of m words reach 1 - 0.5/m^3, not 1.0: a single right word scores 0.5. Stems and synonyms are
    English; other languages match by form alone. nltk looks synonyms up by stem, so a word that stemming changes
    ("automobile") has none, here as in all figures made with it. Raises EvaluationError if nltk has no WordNet.
    """
    references = [split_words(reference) for reference in check_references(gold)]
    words, wordnet = split_words(check_prediction(predicted)), _wordnet()
    if not words:
        return 0.0
    from nltk.translate.meteor_score import single_meteor_score

    with _READING_WORDNET:
        return _into_unit(max(single_meteor_score(reference, words, wordnet=wordnet) for reference in references))


def require_packages(metric: str) -> None:
    """Raises MissingExtraError, or EvaluationError for WordNet, where the metric of that name lacks what it works with.

    Called before the first question is asked; a name that needs nothing is let pass.
    """
    if metric.startswith("bleu"):
        _bleu(4, "13a")
    elif metric == "rouge_l":
        _rouge()
    elif metric == "meteor":
        _wordnet()


def _wordnet() -> Any:
    with needs("nltk", "eval", "METEOR"):
        import nltk.corpus
    try:
        nltk.corpus.wordnet.ensure_loaded()
    except LookupError as error:
        raise EvaluationError(
            "METEOR needs WordNet, which nltk has not on this machine. Get it, python -m nltk.downloader wordnet, or "
            "leave METEOR out."
        ) from error
    return nltk.corpus.wordnet


@lru_cache
def _bleu(order: int, tokenizer: str) -> Any:
    with needs("sacrebleu", "eval", "BLEU"):
        from sacrebleu.metrics import BLEU
    return BLEU(lowercase=True, tokenize=tokenizer, max_ngram_order=order, effective_order=True)


class _Words:
    """rouge-score's tokenizer: on ASCII text the same as its default, which drops all other scripts."""

    def tokenize(self, text: str) -> list[str]:
        return split_words(text)


@lru_cache
def _rouge() -> Any:
    with needs("rouge-score", "eval", "ROUGE-L"):
        from rouge_score.rouge_scorer import RougeScorer
    return RougeScorer(["rougeL"], tokenizer=_Words())


def _into_unit(score: float) -> float:
    """Takes rounding errors off ("1.0000000000000004"); the metrics are in [0, 1] by definition."""
    return min(1.0, max(0.0, score))


DEFAULT_MODEL = "roberta-large"
PACKAGED_MODEL = "all-MiniLM-L6-v2"
BATCH = 64
PACKAGED_LAYER = 6  # the best of its layers at telling paraphrases from hard negatives


class BertScorer(SharedByCopies):
    """Scores pairs of texts by BERTScore's F1. The model is loaded at the first use.

    The default is bert-score's own for English, roberta-large at layer 17, which comes from the hub. `packaged()` needs
    no network. A local folder needs `num_layers`, the layer whose embeddings are compared. No rescaling, no idf. Scores
    of different models or layers are on different scales, so `name` and `layer` belong to every figure.
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
        with needs("bert-score", "eval", "BERTScore"):
            from bert_score.utils import model2layers
        if self._model not in model2layers:
            raise EvaluationError(
                f"bert-score does not know which layer of {self.name!r} to compare. Give num_layers: the best layer is "
                "the one whose scores agree most with people's on pairs like yours."
            )
        return int(model2layers[self._model])

    def score(self, references: Sequence[str], candidates: Sequence[str]) -> NDArray[np.float64]:
        """F1 of `candidates[i]` against `references[i]`, float64 `[n_pairs]` in [0, 1]; 0 for a blank candidate.

        Raises EvaluationError for a blank reference or lists of different lengths, ModelError when the model cannot be
        had.
        """
        if len(references) != len(candidates):
            raise EvaluationError(f"There are {len(references)} references and {len(candidates)} candidates.")

        for row, reference in enumerate(references):
            if not reference.strip():
                raise EvaluationError(f"Row {row}: the reference is blank, so its BERTScore is undefined.")

        scores = np.zeros(len(candidates))
        filled = [row for row, candidate in enumerate(candidates) if candidate.strip()]
        if filled:
            with self._lock:
                _, _, f1 = self._loaded().score(
                    [candidates[row] for row in filled], [references[row] for row in filled], batch_size=BATCH
                )
            scores[filled] = f1.numpy().astype(np.float64)

        # Cosines of contextual embeddings can leave [0, 1] by rounding, and below 0 in principle.
        clipped: NDArray[np.float64] = np.clip(scores, 0.0, 1.0)
        return clipped

    def _loaded(self) -> Any:
        if self._scorer is None:
            layer = self.layer
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

            # A tokenizer without a length limit says 1e30, which overflows in Rust; the model knows its limit.
            limit = int(getattr(scorer._model.config, "max_position_embeddings", 512))
            if getattr(scorer._model.config, "model_type", "") in {"roberta", "xlm-roberta", "camembert"}:
                limit -= 2  # their positions start after the padding index
            scorer._tokenizer.model_max_length = min(scorer._tokenizer.model_max_length, limit)

            self._scorer = scorer
        return self._scorer
