"""Tests BERTScore with a small model: equal texts, paraphrases, blanks, and what the result says of the model."""

from pathlib import Path

import numpy as np
import pytest

from kraq_dspy.errors import EvaluationError, ModelError
from kraq_dspy.eval.metrics.generation import DEFAULT_MODEL, BertScorer
from kraq_dspy.models.embedders.model_folder import packaged_folder


@pytest.fixture(scope="module")
def scorer() -> BertScorer:
    return BertScorer.packaged()


def test_the_same_text_scores_one_and_a_paraphrase_more_than_another_question(scorer: BertScorer) -> None:
    question = "Who wrote the play Hamlet?"
    scores = scorer.score([question] * 3, [question, "Who is the author of Hamlet?", "How deep is the Atlantic?"])
    same, paraphrase, other = scores
    assert same == pytest.approx(1.0, abs=1e-5)
    assert same > paraphrase > other > 0


def test_the_model_and_its_layer_are_part_of_the_result_without_a_path(scorer: BertScorer) -> None:
    assert (scorer.name, scorer.layer) == ("all-MiniLM-L6-v2 int8", 6)


def test_the_packaged_model_scores_as_bert_score_does_with_its_weights_unrounded(scorer: BertScorer) -> None:
    references = ["Who wrote the play Hamlet?", "How deep is the Atlantic?", "Where did Ada Lovelace live? " * 60]
    pairs = [
        (reference, candidate) for reference in references for candidate in [*references, "Hamlet's author, then?"]
    ]
    of_pairs = [list(texts) for texts in zip(*pairs, strict=True)]

    in_torch = BertScorer(packaged_folder(), 6).score(*of_pairs)

    assert in_torch.min() < 0.3
    np.testing.assert_allclose(scorer.score(*of_pairs), in_torch, atol=0.015)


def test_a_text_of_marks_alone_scores_zero(scorer: BertScorer) -> None:
    assert scorer.score(["Who?"], ["\u200b"]).tolist() == [0.0]  # the tokenizer drops it


def test_loading_the_model_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    BertScorer.packaged().score(["Who?"], ["Who?"])
    assert capfd.readouterr() == ("", "")


def test_a_blank_candidate_scores_zero_and_leaves_the_others_in_place(scorer: BertScorer) -> None:
    scores = scorer.score(["Who?", "Who?", "Who?"], ["", "Who?", " \n"])
    assert scores[[0, 2]].tolist() == [0.0, 0.0]
    assert scores[1] == pytest.approx(1.0, abs=1e-5)


def test_no_pairs_give_no_scores(scorer: BertScorer) -> None:
    assert scorer.score([], []).shape == (0,)


def test_text_longer_than_the_model_reads_is_cut_not_refused(scorer: BertScorer) -> None:
    long = "word " * 2000
    assert scorer.score([long], [long])[0] == pytest.approx(1.0, abs=1e-5)


def test_a_blank_reference_or_unequal_lists_are_refused(scorer: BertScorer) -> None:
    with pytest.raises(EvaluationError, match="Row 1: the reference is blank"):
        scorer.score(["Who?", ""], ["Who?", "Who?"])
    with pytest.raises(EvaluationError, match="1 reference and 2 candidates"):
        scorer.score(["Who?"], ["Who?", "Who?"])


def test_the_default_is_the_packages_own_english_model() -> None:
    from bert_score.utils import lang2model, model2layers

    assert lang2model["en"] == DEFAULT_MODEL
    scorer = BertScorer()
    assert (scorer.name, scorer.layer) == ("roberta-large", 17) == (DEFAULT_MODEL, model2layers[DEFAULT_MODEL])


def test_a_local_folder_needs_a_layer(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="does not know which layer"):
        BertScorer(tmp_path).score(["Who?"], ["Who?"])


def test_a_model_that_cannot_be_had_is_an_error_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"BertScorer.packaged\(\)"):
        BertScorer(tmp_path / "absent", 6).score(["Who?"], ["Who?"])


def test_a_roberta_model_like_the_default_is_read_to_its_own_length(tmp_path: Path) -> None:
    from tokenizers import ByteLevelBPETokenizer
    from transformers import RobertaConfig, RobertaModel, RobertaTokenizerFast

    bpe = ByteLevelBPETokenizer()
    bpe.train_from_iterator(["who wrote hamlet"] * 9, 280, special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    bpe.save_model(str(tmp_path))
    RobertaTokenizerFast(str(tmp_path / "vocab.json"), str(tmp_path / "merges.txt")).save_pretrained(tmp_path)
    RobertaModel(
        RobertaConfig(
            vocab_size=bpe.get_vocab_size(),
            hidden_size=16,
            num_hidden_layers=2,
            num_attention_heads=2,
            intermediate_size=16,
            max_position_embeddings=34,
        )
    ).save_pretrained(tmp_path)
    scorer = BertScorer(tmp_path, 2, name="tiny-roberta")
    long = "who wrote hamlet " * 40
    assert scorer.score([long, "who"], [long, ""]) == pytest.approx([1.0, 0.0], abs=1e-5)
