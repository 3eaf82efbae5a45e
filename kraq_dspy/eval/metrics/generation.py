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
from kraq_dspy.errors import EvaluationError, ModelError, counted, needs
from kraq_dspy.eval.metrics.answers import check_prediction, check_references, has_unspaced_script, split_words
from kraq_dspy.models.embedders.model_folder import clean_text, quiet_transformers
from kraq_dspy.models.embedders.packaged_embedder import MINILM, PACKAGED_MODELS, POSITIONS, LoadedModel
from kraq_dspy.ports import Vectors

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
            "leave METEOR out: --without meteor."
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
BATCH = 64
PACKAGED_LAYER = 6  # the best of its layers at telling paraphrases from hard negatives


class BertScorer(SharedByCopies):
    """Scores pairs of texts by BERTScore's F1. The model is loaded at the first use.

    The default is bert-score's own for English, roberta-large at layer 17, which comes from the hub. `packaged()` needs
    no network and no torch. A local folder needs `num_layers`, the layer whose embeddings are compared. No rescaling,
    no idf. Scores of different models or layers are on different scales, so `name` and `layer` belong to every figure.
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
        """The sentence encoder that comes with the library, weights in int8: small, offline, without torch.

        Its scale is another than the default's.
        """
        return _PackagedBertScorer()

    @property
    def _purpose(self) -> str:
        return f"BERTScore by {self.name!r} (packaged, and without an extra: --bertscore minilm)"

    @property
    def layer(self) -> int:
        """The layer whose embeddings are compared. Raises EvaluationError for a folder without `num_layers`."""
        if self._num_layers is not None:
            return self._num_layers
        with needs("bert-score", "eval", self._purpose):
            from bert_score.utils import model2layers
        if self._model not in model2layers:
            raise EvaluationError(
                f"bert-score does not know which layer of {self.name!r} to compare. Give num_layers: the best layer is "
                "the one whose scores agree most with human ratings on pairs like yours."
            )
        return int(model2layers[self._model])

    def score(self, references: Sequence[str], candidates: Sequence[str]) -> NDArray[np.float64]:
        """F1 of `candidates[i]` against `references[i]`, float64 `[n_pairs]` in [0, 1]; 0 for a blank candidate.

        Raises EvaluationError for a blank reference or lists of different lengths, ModelError when the model cannot be
        had.
        """
        if len(references) != len(candidates):
            given = f"{counted(len(references), 'reference')} and {counted(len(candidates), 'candidate')}"
            raise EvaluationError(f"There are {given}; expected as many of both.")

        for row, reference in enumerate(references):
            if not reference.strip():
                raise EvaluationError(f"Row {row}: the reference is blank, so its BERTScore is undefined.")

        scores = np.zeros(len(candidates))
        filled = [row for row, candidate in enumerate(candidates) if candidate.strip()]
        if filled:
            with self._lock:
                scores[filled] = self._f1([references[row] for row in filled], [candidates[row] for row in filled])

        # Cosines of contextual embeddings can leave [0, 1] by rounding, and below 0 in principle.
        clipped: NDArray[np.float64] = np.clip(scores, 0.0, 1.0)
        return clipped

    def _f1(self, references: list[str], candidates: list[str]) -> NDArray[np.float64]:
        """Of texts that are not blank."""
        _, _, f1 = self._loaded().score(candidates, references, batch_size=BATCH)
        scores: NDArray[np.float64] = f1.numpy().astype(np.float64)
        return scores

    def _loaded(self) -> Any:
        if self._scorer is None:
            layer = self.layer
            with needs("bert-score", "eval", self._purpose):
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


class _PackagedBertScorer(BertScorer):
    """BERTScore's F1 (Zhang et al., 2020, equation 3) of MiniLM's last layer in ONNX Runtime.

    It is computed as bert-score does without idf: the marks at both ends of a text may be matched and have no weight.
    """

    def __init__(self) -> None:
        packaged = PACKAGED_MODELS[MINILM]
        super().__init__(packaged.name, PACKAGED_LAYER, name=f"{packaged.name} {packaged.precision}")

    def _f1(self, references: list[str], candidates: list[str]) -> NDArray[np.float64]:
        vectors = {text: self._token_vectors(text) for text in {*references, *candidates}}
        pairs = zip(references, candidates, strict=True)
        return np.array([_matched(vectors[reference], vectors[candidate]) for reference, candidate in pairs])

    def _token_vectors(self, text: str) -> Vectors:
        """float32 `[n_tokens, width]`, rows L2-normalised, the first and the last of the marks."""
        model: LoadedModel = self._loaded()
        [tokens] = model.tokenize([clean_text(text.strip())])
        vectors = model.bert.token_vectors(tokens)
        normalised: Vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        return normalised

    def _loaded(self) -> LoadedModel:
        if self._scorer is None:
            self._scorer = PACKAGED_MODELS[MINILM].loaded(POSITIONS)
        model: LoadedModel = self._scorer
        return model


def _matched(reference: Vectors, candidate: Vectors) -> float:
    """The F1 of two texts whose tokens are matched with the nearest of the other; 0.0 for one without a token."""
    if len(reference) < 3 or len(candidate) < 3:
        return 0.0
    cosines = candidate @ reference.T
    precision = float(cosines.max(axis=1)[1:-1].mean())
    recall = float(cosines.max(axis=0)[1:-1].mean())
    return 2 * precision * recall / (precision + recall) if precision + recall > 0 else 0.0
