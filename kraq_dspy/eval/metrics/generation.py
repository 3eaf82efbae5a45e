"""Compares the words of a text with a reference: BLEU, ROUGE-L, METEOR, as QA-RAG reports them; all in [0, 1].

`gold` is a sequence of references; the best of them counts (for BLEU, all of them together, as it is defined).
EvaluationError as in `answers.py`. Text in scripts without spaces is compared character by character: without that,
rouge-score would drop it silently and the others would take a sentence for one word.
"""

import io
import threading
import warnings
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from kraq_dspy.errors import EvaluationError, needs
from kraq_dspy.eval.metrics.normalise import has_unspaced_script, split_words
from kraq_dspy.eval.metrics.references import check_prediction, check_references

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
