"""Tests that files which are no models are refused, each with its reason."""

import os
import struct
import sys
import time
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest

from kraq_dspy.errors import ModelError
from kraq_dspy.models.lms.engines.gguf_file import read_gguf


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def gguf(values: dict[str, str | int], *, weights: int = 64) -> bytes:
    """A file with such metadata, an array of two tokens, one tensor, and so many bytes of weights."""
    pairs = b"".join(
        text(name) + (struct.pack("<I", 8) + text(value) if isinstance(value, str) else struct.pack("<II", 4, value))
        for name, value in values.items()
    )
    tokens = text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 2) + text("a") + text("b")
    tensor = text("output.weight") + struct.pack("<IQIQ", 1, 16, 0, 0)
    return b"GGUF" + struct.pack("<IQQ", 3, 1, len(values) + 1) + pairs + tokens + tensor + bytes(weights)


LLAMA: dict[str, str | int] = {
    "general.architecture": "llama",
    "tokenizer.chat_template": "{{ messages }}",
    "llama.context_length": 8192,
    "llama.block_count": 30,
    "llama.embedding_length": 576,
    "llama.attention.head_count": 9,
    "llama.attention.head_count_kv": 3,
}


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    return path


def test_the_header_tells_architecture_context_and_template(tmp_path: Path) -> None:
    header = read_gguf(written(tmp_path, gguf(LLAMA)))
    assert (header.architecture, header.number("context_length"), header.number("absent")) == ("llama", 8192, 0)
    assert header.arrays == {"tokenizer.ggml.tokens"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is no GGUF model"),
        (b"<!DOCTYPE html>", "web page"),
        (b"GGUF\x01\x00\x00\x00" + bytes(16), "version 1"),
        (gguf(LLAMA)[:200], "cut off"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 1) + struct.pack("<Q", 1 << 60), "cut off"),
    ],
)
def test_a_file_that_is_no_model_is_named_with_what_it_seems_to_be(tmp_path: Path, content: bytes, says: str) -> None:
    with pytest.raises(ModelError, match=says) as raised:
        read_gguf(written(tmp_path, content))
    assert "m.gguf" in str(raised.value)


def head(*, tensors: int = 0, values: int = 1) -> bytes:
    return b"GGUF" + struct.pack("<IQQ", 3, tensors, values)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (head(values=1 << 62) + bytes(1_000_000), "4,611,686,018,427,387,904 values"),
        (head() + text("a") + struct.pack("<IIQ", 9, 8, 9_000_000) + bytes(1_000_000), "array of 9,000,000 items"),
        (head() + text("a") + struct.pack("<I", 9) + struct.pack("<IQ", 9, 1) * 5000, "recursion"),
        (head() + text("a") + struct.pack("<IIQ", 9, 99, 1), "unknown kind 99"),
        (head() + text("a") + struct.pack("<I", 77), "unknown kind 77"),
        (head() + text("a") + struct.pack("<IQ", 8, 70 << 20), "a text of 73,400,320 bytes"),
        (head() + struct.pack("<Q", 2) + b"\xff\xfe", "codec"),
    ],
)
def test_a_header_that_lies_is_refused_before_it_costs_time_or_memory(
    tmp_path: Path, content: bytes, says: str
) -> None:
    path = written(tmp_path, content)
    tracemalloc.start()
    begin = time.process_time()
    try:
        with pytest.raises(ModelError, match=rf"m\.gguf.*{says}.*Download it again"):
            read_gguf(path)
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
        assert time.process_time() - begin < 5
    finally:
        tracemalloc.stop()


def test_no_byte_of_a_header_ends_in_another_error(tmp_path: Path) -> None:
    whole = gguf(LLAMA)
    path = tmp_path / "m.gguf"
    contents = [whole[:end] for end in range(len(whole))]
    contents += [whole[:at] + bytes([byte]) + whole[at + 1 :] for at in range(len(whole)) for byte in (0, 9, 255)]
    for content in contents:
        path.write_bytes(content)
        with suppress(ModelError):
            assert read_gguf(path).number("block_count") >= 0


@pytest.mark.skipif(sys.platform == "win32", reason="has no named pipes")
def test_a_pipe_is_no_model(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "m.gguf")
    with pytest.raises(ModelError, match="is not a regular file"):
        read_gguf(tmp_path / "m.gguf")


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    written(tmp_path, gguf(LLAMA))
    with pytest.raises(ModelError, match="is not a regular file"):
        read_gguf(tmp_path)
    with pytest.raises(ModelError, match="kraq lm get"):
        read_gguf(tmp_path / "absent.gguf")
