from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer
from rouge_score.tokenizers import DefaultTokenizer

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics import generation
from kraq_dspy.eval.metrics.answers import split_words
from kraq_dspy.eval.metrics.generation import bleu, meteor, rouge_l

TEXTS = st.lists(st.sampled_from(["the", "cat", "sat", "On", "mat", "北", "京", ".", "é"]), min_size=1, max_size=8).map(
    " ".join
)


@pytest.fixture
def wordnet(tmp_path: Path) -> Path:
    """A WordNet of one synset, {auto, car}, in the format of wndb(5WN); like Debian's, without `lexnames`."""
    for name in ("adj", "adv", "verb"):
        (tmp_path / f"index.{name}").touch()
        (tmp_path / f"data.{name}").touch()
    for name in ("adj", "adv", "noun", "verb"):
        (tmp_path / f"{name}.exc").touch()
    header = "  1 a licence stands here\n"
    (tmp_path / "data.noun").write_text(f"{header}{len(header):08d} 06 n 02 car 0 auto 0 000 | a vehicle  \n")
    lemmas = [f"{lemma} n 1 0 1 0 {len(header):08d}  \n" for lemma in ("auto", "car")]
    (tmp_path / "index.noun").write_text(header + "".join(lemmas))
    return tmp_path


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
    assert split_words(text) == DefaultTokenizer(use_stemmer=False).tokenize(text)


def test_chinese_is_scored_by_characters_where_rouge_score_alone_would_give_zero() -> None:
    gold, predicted = "由光荣开发", "光荣开发"
    assert RougeScorer(["rougeL"]).score(gold, predicted)["rougeL"].fmeasure == 0.0
    assert rouge_l([gold], predicted) == pytest.approx(2 * 4 / 9)
    assert bleu([gold], gold) == pytest.approx(1.0)
    assert 0 < bleu([gold], predicted) < 1


def test_meteor_takes_synonyms_from_wordnet(wordnet: Path) -> None:
    # Three words in one chunk: F = 1, penalty 0.5 * (1/3)^3.
    assert meteor(["a fast car"], "a fast auto", wordnet=wordnet) == pytest.approx(1 - 0.5 / 27)
    assert meteor(["a fast car"], "a fast boat", wordnet=wordnet) < 0.7


def test_meteor_of_a_single_right_word_is_one_half(wordnet: Path) -> None:
    assert meteor(["car"], "car", wordnet=wordnet) == pytest.approx(0.5)


def test_meteor_matches_chinese_by_characters(wordnet: Path) -> None:
    assert meteor(["光荣开发"], "光荣开发", wordnet=wordnet) == pytest.approx(1 - 0.5 / 64)


def test_without_wordnet_meteor_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(EvaluationError, match="apt-get install wordnet-base"):
        meteor(["car"], "car", wordnet=tmp_path)
    monkeypatch.setattr(generation, "DEBIAN_WORDNET", tmp_path)
    monkeypatch.setattr("nltk.data.path", [str(tmp_path)])
    with pytest.raises(EvaluationError, match="the data path of nltk"):
        meteor(["car"], "car")


def test_wordnet_is_found_on_nltks_data_path(wordnet: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "nltk_data" / "corpora").mkdir(parents=True)
    (tmp_path / "nltk_data" / "corpora" / "wordnet").symlink_to(wordnet)
    monkeypatch.setattr("nltk.data.path", [str(tmp_path / "nltk_data")])
    assert generation.find_wordnet() == tmp_path / "nltk_data" / "corpora" / "wordnet"


@pytest.mark.parametrize("metric", [bleu, rouge_l])
@settings(max_examples=50)
@given(gold=st.lists(TEXTS, min_size=1, max_size=3), predicted=TEXTS)
def test_scores_stay_in_the_unit_interval(metric: Callable[..., float], gold: list[str], predicted: str) -> None:
    assert 0.0 <= metric(gold, predicted) <= 1.0


@pytest.mark.parametrize("metric", [bleu, rouge_l])
def test_an_empty_answer_scores_zero_and_empty_references_are_refused(metric: Callable[..., float]) -> None:
    assert metric(["car"], "  ") == 0.0
    with pytest.raises(EvaluationError, match="no gold answers"):
        metric([], "car")


def test_meteor_of_an_empty_answer_is_zero(wordnet: Path) -> None:
    assert meteor(["car"], "", wordnet=wordnet) == 0.0
