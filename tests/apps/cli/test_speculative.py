"""The speculative programs as a shell user meets them, over the embedded model and the packaged encoder."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import WarmShell

PASSAGES = {
    "ada": "# Ada Lovelace\n\nAda Lovelace wrote notes on the Analytical Engine. Charles Babbage designed that engine.",
    "babbage": "# Charles Babbage\n\nCharles Babbage invented the Difference Engine. Babbage met Ada Lovelace in 1833.",
    "byron": "# Lord Byron\n\nLord Byron wrote Don Juan. Lord Byron married Annabella Milbanke. "
    "Milbanke was born in Kirkby Mallory.",
}


def as_json(kraq: WarmShell, *words: str | Path) -> Any:
    done = kraq(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def index(kraq: WarmShell, tmp_path_factory: pytest.TempPathFactory) -> Path:
    corpus = tmp_path_factory.mktemp("corpus")
    for name, text in PASSAGES.items():
        (corpus / f"{name}.md").write_text(text)
    out = tmp_path_factory.mktemp("cli") / "poets.kraq"
    as_json(kraq, "index", corpus, "--out", out)
    return out


@pytest.fixture(scope="module")
def precomputed(kraq: WarmShell, index: Path) -> Path:
    """The index, after it was asked without, and then with, pre-computed embeddings."""
    before = kraq("ask", index, "Who wrote Don Juan?", "-p", "efficient")
    assert before.returncode == 1
    said = " ".join(before.stderr.split())
    assert f"Run: kraq precompute {index}" in said
    assert 'The variant "sentences" needs no stored question: [instructed] kind = "sentences"' in said
    first = kraq("precompute", index, "--top-n", "3")
    report = as_json(kraq, "precompute", index, "--top-n", "3")
    readings = 3 * report["questions"]
    assert f"{readings} readings of a question with a passage, for {report['questions']} questions" in first.stdout
    assert (report["embedded"], report["kept"]) == (0, readings)
    assert "Nothing is left to read" in kraq("precompute", index, "--top-n", "3").stdout
    return index


@pytest.mark.parametrize("program", ["combined", "efficient"])
def test_an_condition_over_random_questions_is_refused_where_there_are_none(
    program: str, kraq: WarmShell, precomputed: Path
) -> None:
    """Else it would be another condition under its name: dense retrieval, or passages as seen from the user's
    question."""
    done = kraq("ask", precomputed, "Who wrote Don Juan?", "-p", program, "-P", "questions=random")
    assert done.returncode == 1
    assert "--random-questions" in done.stderr
    if program == "combined":
        alone = kraq(
            "ask", precomputed, "Who wrote Don Juan?", "-p", program, "-P", "questions=random", "-P", "alpha=1"
        )
        assert alone.returncode == 0, alone.stderr
        retriever = kraq(
            "ask", precomputed, "Who wrote Don Juan?", "-p", "traditional", "-r", "combined(questions=random)"
        )
        assert retriever.returncode != 0


def test_efficient_over_random_questions_wants_embeddings_of_them(
    kraq: WarmShell, precomputed: Path, tmp_path: Path
) -> None:
    (tmp_path / "corpus").mkdir()
    for name, text in PASSAGES.items():
        (tmp_path / "corpus" / f"{name}.md").write_text(text)
    both = tmp_path / "both.kraq"
    as_json(kraq, "index", tmp_path / "corpus", "--out", both, "--random-questions")
    asked = ("ask", both, "Who wrote Don Juan?", "-p", "efficient", "-P", "scorer=vote", "-P", "questions=random")
    as_json(kraq, "precompute", both, "--top-n", "3")
    done = kraq(*asked)
    assert done.returncode == 1
    assert "--source random" in " ".join(done.stderr.split())
    as_json(kraq, "precompute", both, "--top-n", "3", "--source", "random")
    assert as_json(kraq, *asked)["n_looked_up"] > 0
    assert kraq("ask", both, "Who wrote Don Juan?", "-p", "combined", "-P", "questions=random").returncode == 0


def test_speculative_answers_with_its_drafts_scores_and_times(kraq: WarmShell, index: Path) -> None:
    answer = as_json(kraq, "ask", index, "Who wrote Don Juan?", "-p", "speculative", "-k", "3", "-P", "m=4")
    assert "Byron" in answer["answer"]
    assert len(answer["drafts"]) == len(answer["scores"]) == 2  # 3 passages in 2 clusters
    assert answer["timings"]["wall"] > answer["timings"]["embed"] > 0


def test_efficient_looks_up_and_says_which_question_stood_in(kraq: WarmShell, precomputed: Path) -> None:
    answer = as_json(kraq, "ask", precomputed, "Who wrote Don Juan?", "-p", "efficient", "-P", "scorer=vote")
    assert (answer["proxy_used"], answer["n_looked_up"], answer["n_embedded"]) == (True, 3, 0)
    assert answer["timings"]["embed"] == 0
    assert answer["seen_by"].startswith("pair:minilm[int8]@256")
    shown = kraq("ask", precomputed, "Who wrote Don Juan?", "-p", "efficient")
    assert "seen from (3 looked up" in shown.stdout
    assert "papers' model" in shown.stdout


def test_a_stored_question_that_is_too_far_stands_in_for_nobody(kraq: WarmShell, precomputed: Path) -> None:
    least = ("-P", "min_similarity=0.99")
    answer = as_json(kraq, "ask", precomputed, "Who wrote Don Juan?", "-p", "efficient", *least)
    assert answer["proxy_used"] is False
    assert 0 < answer["proxy_similarity"] < 0.99
    assert answer["n_embedded"] == 3


def test_the_variant_sentences_sees_passages_from_the_question_itself_and_is_named(
    kraq: WarmShell, tmp_path: Path
) -> None:
    (tmp_path / "byron.md").write_text(PASSAGES["byron"])
    (tmp_path / "variant.toml").write_text('[instructed]\nkind = "sentences"\n')
    index, variant = tmp_path / "byron.kraq", ("--config", tmp_path / "variant.toml")
    as_json(kraq, "index", tmp_path / "byron.md", "--out", index)
    report = as_json(kraq, "precompute", index, *variant)
    assert (report["passages"], report["embedded"]) == (1, 1)
    asked = ("ask", index, "Who wrote Don Juan?", "-p", "efficient", "-P", "scorer=vote", *variant)
    answer = as_json(kraq, *asked)
    assert (answer["proxy"], answer["n_looked_up"], answer["n_embedded"]) == (None, 1, 0)
    assert answer["seen_by"].startswith("sentences:")
    assert "a variant of Algorithm 2" in kraq(*asked).stdout.replace("\n", " ")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("-P", "alpha=0.5"), 2, "The program 'speculative' has no option 'alpha'"),
        (("-P", "preset=squad"), 2, "'preset' is squad; expected one of bioasq, hotpotqa"),
        (("-P", "scorer=best"), 2, "'scorer' is best; expected one of kraq, wang2024, vote"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_can(
    kraq: WarmShell, index: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    done = kraq("ask", index, "Who wrote Don Juan?", "-p", "speculative", *words)
    assert done.returncode == code
    assert message in done.stderr.replace("\n", " ")


def test_precompute_refuses_a_wrong_number_and_an_unknown_source(kraq: WarmShell, index: Path) -> None:
    assert "a number from 1, or all" in kraq("precompute", index, "--top-n", "few").stderr
    assert "'mine' is not one of 'kraq'" in kraq("precompute", index, "--source", "mine").stderr
