"""Tests that tokens are counted as OpenAI counts them, and that a text is cut between them."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from kraq_dspy.asset.corpus import tokens
from kraq_dspy.asset.corpus.tokens import count_tokens, encoding, truncate_tokens
from kraq_dspy.errors import ModelError


@pytest.mark.parametrize(
    ("text", "n_tokens"),
    [("", 0), ("hello world", 2), ("tiktoken is great!", 6), ("お誕生日おめでとう", 9)],
)
def test_counts_are_those_that_openai_publishes_for_cl100k_base(text: str, n_tokens: int) -> None:
    assert count_tokens(text) == n_tokens


def test_special_tokens_in_a_document_count_as_plain_text() -> None:
    assert count_tokens("<|endoftext|>") == 7


def test_lone_surrogates_are_counted_rather_than_refused() -> None:
    assert count_tokens("a\ud800b") > 1


def test_truncation_cuts_between_tokens() -> None:
    assert truncate_tokens("hello world again", 2) == "hello world"
    assert truncate_tokens("hello world", 2) == "hello world"
    assert truncate_tokens("hello", 0) == ""


def test_truncation_never_cuts_a_character_in_two() -> None:
    assert count_tokens("👩") == 3
    assert truncate_tokens("a👩", 2) == "a"


def test_a_negative_limit_is_refused() -> None:
    with pytest.raises(ValueError, match="limit is -1"):
        truncate_tokens("hello", -1)


@given(text=st.text(), limit=st.integers(0, 30))
def test_a_truncated_text_is_a_beginning_of_the_text_within_the_limit(text: str, limit: int) -> None:
    kept = truncate_tokens(text, limit)
    assert text.startswith(kept)
    assert count_tokens(kept) <= limit
    assert kept == text or count_tokens(text) > limit


@pytest.fixture
def fresh_encoding() -> Iterator[None]:
    encoding.cache_clear()
    yield
    encoding.cache_clear()


@pytest.mark.usefixtures("fresh_encoding")
def test_an_absent_vocabulary_is_an_error_that_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tokens, "VOCABULARY", tmp_path / "cl100k_base.xz")
    with pytest.raises(ModelError, match=r"is absent.*pip install --force-reinstall --no-deps kraq-dspy"):
        count_tokens("hello")


@pytest.mark.usefixtures("fresh_encoding")
@pytest.mark.parametrize("beginning", [0, 1000])
def test_a_damaged_vocabulary_is_refused(beginning: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cl100k_base.xz").write_bytes(tokens.VOCABULARY.read_bytes()[:beginning])
    monkeypatch.setattr(tokens, "VOCABULARY", tmp_path / "cl100k_base.xz")
    with pytest.raises(ModelError, match="is damaged"):
        count_tokens("hello")


def test_counting_needs_no_network_no_litellm_and_no_change_of_the_environment(tmp_path: Path) -> None:
    script = (
        "import os, socket, sys\n"
        "def refuse(*args, **kwargs): raise SystemExit('a connection was tried')\n"
        "socket.socket.connect = refuse\n"
        "socket.getaddrinfo = refuse\n"
        "before = dict(os.environ)\n"
        "from kraq_dspy.asset.corpus.tokens import count_tokens\n"
        "assert count_tokens('hello world') == 2\n"
        "assert dict(os.environ) == before\n"
        "assert 'litellm' not in sys.modules and 'torch' not in sys.modules\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert list(tmp_path.iterdir()) == []  # tiktoken's download cache stays unused
