"""Compares a text with a reference: BLEU, ROUGE-L, METEOR, as QA-RAG reports them, and BERTScore; all in [0, 1].

`gold` is a sequence of references; the best of them counts (for BLEU, all of them together, as it is defined).
EvaluationError as in `answers.py`. Text in scripts without spaces is compared character by character: without that,
rouge-score would drop it silently and the others would take a sentence for one word.
"""

import io
import logging
import threading
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from kraq_dspy._internal.concurrency import SharedByCopies
from kraq_dspy.errors import EvaluationError, ModelError, needs
from kraq_dspy.eval.metrics.answers import check_prediction, check_references, has_unspaced_script, split_words
from kraq_dspy.models.embedders.model_folder import packaged_folder, quiet_transformers

DEBIAN_WORDNET = Path("/usr/share/wordnet")
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


def meteor(gold: Sequence[str], predicted: str, *, wordnet: Path | None = None) -> float:
    """Words aligned by form, stem and WordNet synonym, less for broken order (Banerjee and Lavie, 2005; nltk).

    Identical texts of m words reach 1 - 0.5/m^3, not 1.0: a single right word scores 0.5. Stems and synonyms are
    English; other languages match by form alone. nltk looks synonyms up by stem, so a word that stemming changes
    ("automobile") has none, here as in all figures made with it.

    `wordnet` is the folder of WordNet's files; by default nltk's data path and then Debian's folder are searched.
    Raises EvaluationError that says what to install when there is none.
    """
    references = [split_words(reference) for reference in check_references(gold)]
    words = split_words(check_prediction(predicted))
    reader = load_wordnet(wordnet)
    if not words:
        return 0.0
    from nltk.translate.meteor_score import single_meteor_score

    with _READING_WORDNET:
        return _into_unit(max(single_meteor_score(reference, words, wordnet=reader) for reference in references))


def require_packages(metric: str) -> None:
    """Raises MissingExtraError, or EvaluationError for WordNet, where the metric of that name lacks what it works with.

    Called before the first question is asked; a name that needs nothing is let pass.
    """
    if metric.startswith("bleu"):
        _bleu(4, "13a")
    elif metric == "rouge_l":
        _rouge()
    elif metric == "meteor":
        load_wordnet()


def find_wordnet() -> Path | None:
    """The folder of WordNet's files, in nltk's data path or where Debian puts it; None if there is none."""
    with needs("nltk", "eval", "METEOR"):
        import nltk.data
    folders = [Path(root) / "corpora" / "wordnet" for root in nltk.data.path]
    return next((folder for folder in (*folders, DEBIAN_WORDNET) if (folder / "index.noun").is_file()), None)


def load_wordnet(folder: Path | None = None) -> Any:
    """nltk's reader of WordNet, once per folder. Raises EvaluationError when its files are absent."""
    files = folder or find_wordnet()
    if files is None or not (files / "index.noun").is_file():
        raise EvaluationError(
            f"METEOR needs WordNet's files, and there are none in {files or 'the data path of nltk'}. Install them: "
            "apt-get install wordnet-base (Debian), or python -m nltk.downloader wordnet and unzip it. Or leave METEOR "
            "out."
        )
    return _wordnet(files)


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


@lru_cache
def _wordnet(folder: Path) -> Any:
    import nltk.data
    from nltk.corpus.reader.wordnet import WordNetCorpusReader

    # nltk reads nothing outside the folders of its data path.
    if str(folder) not in nltk.data.path:
        nltk.data.path.append(str(folder))

    class Reader(WordNetCorpusReader):
        """Debian leaves WordNet's `lexnames` out. The names of lexicographer files play no part in synonymy, so a
        list of the right length (lexnames(5WN) numbers them 00 to 44) stands in for it. Nor is the map to other
        versions of WordNet needed, which serves translations."""

        def open(self, file: str) -> Any:
            if file == "lexnames" and not (folder / file).is_file():
                return io.StringIO("".join(f"{number:02d}\tfile{number:02d}\t1\n" for number in range(45)))
            return super().open(file)

        def map_wn(self, version: str = "wordnet") -> None:
            return None

    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The multilingual functions")
        return Reader(str(folder), None)


def _into_unit(score: float) -> float:
    """Takes rounding errors off ("1.0000000000000004"); the metrics are in [0, 1] by definition."""
    return min(1.0, max(0.0, score))


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
