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
def pair(index: Path) -> tuple[str, Path]:
    """Has question and passage read together, so that stored questions stand in for the user's."""
    settings = index.parent / "pair.toml"
    settings.write_text('[instructed]\nkind = "pair"\n')
    return "--config", settings


@pytest.fixture(scope="module")
def precomputed(kraq: WarmShell, index: Path, pair: tuple[str, Path]) -> Path:
    """The index, after it was asked without, and then with, pre-computed embeddings."""
    before = kraq("ask", index, "Who wrote Don Juan?", "-p", "efficient")
    assert before.returncode == 1
    assert f"Run: kraq precompute {index}" in before.stderr.replace("\n", " ")
    report = as_json(kraq, "precompute", index, "--top-n", "3", *pair)
    assert report["embedded"] == 3 * report["questions"] > 0
    assert as_json(kraq, "precompute", index, "--top-n", "3", *pair)["embedded"] == 0
    return index


def test_speculative_answers_with_its_drafts_scores_and_times(kraq: WarmShell, index: Path) -> None:
    answer = as_json(kraq, "ask", index, "Who wrote Don Juan?", "-p", "speculative", "-k", "3", "-P", "m=4")
    assert "Byron" in answer["answer"]
    assert len(answer["drafts"]) == len(answer["scores"]) == 2  # 3 passages in 2 clusters
    assert answer["timings"]["wall"] > answer["timings"]["embed"] > 0


def test_efficient_looks_up_and_says_which_question_stood_in(
    kraq: WarmShell, precomputed: Path, pair: tuple[str, Path]
) -> None:
    answer = as_json(kraq, "ask", precomputed, "Who wrote Don Juan?", "-p", "efficient", "-P", "scorer=vote", *pair)
    assert (answer["proxy_used"], answer["n_looked_up"], answer["n_embedded"]) == (True, 3, 0)
    assert answer["timings"]["embed"] == 0
    shown = kraq("ask", precomputed, "Who wrote Don Juan?", "-p", "efficient", *pair)
    assert "seen from (3 looked up" in shown.stdout
    assert "papers' model" in shown.stdout


def test_a_stored_question_that_is_too_far_stands_in_for_nobody(
    kraq: WarmShell, precomputed: Path, pair: tuple[str, Path]
) -> None:
    least = ("-P", "min_similarity=0.99")
    answer = as_json(kraq, "ask", precomputed, "Who wrote Don Juan?", "-p", "efficient", *least, *pair)
    assert answer["proxy_used"] is False
    assert 0 < answer["proxy_similarity"] < 0.99
    assert answer["n_embedded"] == 3


def test_by_default_passages_are_seen_from_the_question_itself_by_their_stored_sentences(
    kraq: WarmShell, tmp_path: Path
) -> None:
    (tmp_path / "byron.md").write_text(PASSAGES["byron"])
    index = tmp_path / "byron.kraq"
    as_json(kraq, "index", tmp_path / "byron.md", "--out", index)
    report = as_json(kraq, "precompute", index)
    assert (report["passages"], report["embedded"]) == (1, 1)
    answer = as_json(kraq, "ask", index, "Who wrote Don Juan?", "-p", "efficient", "-P", "scorer=vote")
    assert (answer["proxy"], answer["n_looked_up"], answer["n_embedded"]) == (None, 1, 0)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("-P", "alpha=0.5"), 2, "The program 'speculative' has no option 'alpha'"),
        (("-P", "preset=squad"), 2, "'preset' is squad; expected one of bioasq, hotpotqa"),
        (("-P", "scorer=best"), 2, "'scorer' is best; expected one of kraq, vote"),
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
