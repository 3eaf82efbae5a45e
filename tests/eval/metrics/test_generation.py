"""Tests BLEU and ROUGE-L on sentences that can be scored by hand."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.answers import split_words
from kraq_dspy.eval.metrics.generation import bleu, meteor, rouge_l
from tests.lazily import Lazily

rouge, tokenizers = Lazily("rouge_score.rouge_scorer"), Lazily("rouge_score.tokenizers")

TEXTS = st.lists(st.sampled_from(["the", "cat", "sat", "On", "mat", "北", "京", ".", "é"]), min_size=1, max_size=8).map(
    " ".join
)


@pytest.fixture
def wordnet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nltk.corpus.reader.wordnet import WordNetCorpusReader
    from nltk.corpus.util import LazyCorpusLoader

    """A WordNet of one synset, {auto, car}, in the format of wndb(5WN), where nltk looks for it."""
    folder = tmp_path / "corpora" / "wordnet"
    folder.mkdir(parents=True)
    for name in ("adj", "adv", "noun", "verb"):
        for file in (f"index.{name}", f"data.{name}", f"{name}.exc"):
            (folder / file).touch()
    (folder / "index.sense").touch()
    (folder / "lexnames").write_text("".join(f"{number:02d}\tfile{number:02d}\t1\n" for number in range(45)))
    header = "  1 a licence stands here: WordNet 3.0 Copyright\n"
    (folder / "data.adj").write_text(header)
    (folder / "data.noun").write_text(f"{header}{len(header):08d} 06 n 02 car 0 auto 0 000 | a vehicle  \n")
    lemmas = [f"{lemma} n 1 0 1 0 {len(header):08d}  \n" for lemma in ("auto", "car")]
    (folder / "index.noun").write_text(header + "".join(lemmas))
    monkeypatch.setattr("nltk.data.path", [str(tmp_path)])
    monkeypatch.setattr("nltk.corpus.wordnet", LazyCorpusLoader("wordnet", WordNetCorpusReader, None))


def test_bleu_1_is_the_share_of_right_words_times_the_brevity_penalty() -> None:
    assert bleu(["the cat sat on the mat"], "the dog sat on a mat", order=1) == pytest.approx(4 / 6)
    # Two words where four are expected: exp(1 - 4/2).
    assert bleu(["the cat sat down"], "the cat", order=1) == pytest.approx(0.36787944)


def test_a_short_right_answer_reaches_bleu_4_of_one() -> None:
    assert bleu(["Stanley Hall"], "stanley hall") == pytest.approx(1.0)


def test_bleu_4_rewards_word_order() -> None:
    gold = ["the cat sat on the mat"]
    assert bleu(gold, "the cat sat on a mat") > bleu(gold, "mat the on sat cat a")


def test_rouge_l_is_the_f1_of_the_longest_common_subsequence() -> None:
    # "the cat the mat" is common to both: 4 of 6 words on either side.
    assert rouge_l(["the cat sat on the mat"], "the cat lay by the mat") == pytest.approx(4 / 6)


@given(st.lists(st.sampled_from(["The", "cat", "U.S.", "2nd-best", "sat_on", "don't"]), min_size=1, max_size=6))
def test_on_ascii_text_words_are_those_of_rouge_scores_own_tokenizer(words: list[str]) -> None:
    text = " ".join(words)
    assert split_words(text) == tokenizers.DefaultTokenizer(use_stemmer=False).tokenize(text)


def test_chinese_is_scored_by_characters_where_rouge_score_alone_would_give_zero() -> None:
    gold, predicted = "由光荣开发", "光荣开发"
    assert rouge.RougeScorer(["rougeL"]).score(gold, predicted)["rougeL"].fmeasure == 0.0
    assert rouge_l([gold], predicted) == pytest.approx(2 * 4 / 9)
    assert bleu([gold], gold) == pytest.approx(1.0)
    assert 0 < bleu([gold], predicted) < 1


@pytest.mark.usefixtures("wordnet")
def test_meteor_takes_synonyms_from_wordnet() -> None:
    # Three words in one chunk: F = 1, penalty 0.5 * (1/3)^3.
    assert meteor(["a fast car"], "a fast auto") == pytest.approx(1 - 0.5 / 27)
    assert meteor(["a fast car"], "a fast boat") < 0.7


@pytest.mark.usefixtures("wordnet")
def test_meteor_of_a_single_right_word_is_one_half_and_of_none_zero() -> None:
    assert meteor(["car"], "car") == pytest.approx(0.5)
    assert meteor(["car"], "") == 0.0


@pytest.mark.usefixtures("wordnet")
def test_meteor_matches_chinese_by_characters() -> None:
    assert meteor(["光荣开发"], "光荣开发") == pytest.approx(1 - 0.5 / 64)


def test_without_wordnet_meteor_says_what_to_get(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from nltk.corpus.reader.wordnet import WordNetCorpusReader
    from nltk.corpus.util import LazyCorpusLoader

    monkeypatch.setattr("nltk.data.path", [str(tmp_path)])
    monkeypatch.setattr("nltk.corpus.wordnet", LazyCorpusLoader("wordnet", WordNetCorpusReader, None))
    with pytest.raises(EvaluationError, match="downloader wordnet"):
        meteor(["car"], "car")


@pytest.mark.parametrize("metric", [bleu, rouge_l])
@given(gold=st.lists(TEXTS, min_size=1, max_size=3), predicted=TEXTS)
def test_scores_stay_in_the_unit_interval(metric: Callable[..., float], gold: list[str], predicted: str) -> None:
    assert 0.0 <= metric(gold, predicted) <= 1.0


@pytest.mark.parametrize("metric", [bleu, rouge_l])
def test_an_empty_answer_scores_zero_and_empty_references_are_refused(metric: Callable[..., float]) -> None:
    assert metric(["car"], "  ") == 0.0
    with pytest.raises(EvaluationError, match="no gold answers"):
        metric([], "car")
