"""Files are read in a fixed order, and duplicates, known documents and damage are told."""

import codecs
import gzip
import json
import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, strategies as st

from kraq_dspy.asset.corpus.formats.readers import READERS
from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.errors import CorpusError
from kraq_dspy.records import Document, Failure
from tests.asset.corpus.corpora import load_all, only_document, only_failure, write


def test_files_come_in_sorted_order_and_hidden_ones_are_passed_over(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.txt", "a/b/c.md", "Z.txt", ".hidden.txt", ".git/x.txt", "a/.DS_Store"):
        write(tmp_path, name, name)
    documents, failures = load_all(tmp_path)
    assert [document.id for document in documents] == ["Z.txt", "a/b/c.md", "a/z.txt", "b.txt"]
    assert failures == []


def test_links_inside_the_corpus_are_followed_to_files_and_others_are_refused(tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    write(corpus, ".store/real.txt", "real")
    write(corpus, "folder/a.txt", "a")
    write(tmp_path, "secret.txt", "secret")
    (corpus / "linked.txt").symlink_to(".store/real.txt")
    (corpus / "out.txt").symlink_to(tmp_path / "secret.txt")
    (corpus / "up").symlink_to(tmp_path)
    (corpus / "again").symlink_to(corpus / "folder")
    (corpus / "folder" / "loop").symlink_to(corpus)
    (corpus / "self.txt").symlink_to("self.txt")
    (corpus / "gone.txt").symlink_to("nowhere.txt")
    documents, failures = load_all(corpus)
    assert [(document.id, document.text) for document in documents] == [("folder/a.txt", "a"), ("linked.txt", "real")]
    reasons = {failure.item_id: failure.reason for failure in failures}
    assert reasons.keys() == {"out.txt", "up", "again", "folder/loop", "self.txt", "gone.txt"}
    assert all("out of the corpus folder" in reasons[name] for name in ("out.txt", "up"))
    assert all("under its own name" in reasons[name] for name in ("again", "folder/loop"))
    assert all("nowhere or in a circle" in reasons[name] for name in ("self.txt", "gone.txt"))


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    assert "Not a regular file" in only_failure(tmp_path).reason


def test_a_file_name_that_is_not_utf8_gives_an_id_that_is(tmp_path: Path) -> None:
    try:
        write(tmp_path, os.fsdecode(b"caf\xe9.txt"), "coffee")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    assert only_document(tmp_path).id == "caf\ufffd.txt"


@pytest.fixture
def without_privileges() -> Iterator[Path]:
    """A folder, and a user who is not root while the test runs: root may read everything."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    was_root = os.geteuid() == 0
    if was_root:
        os.seteuid(65534)
    try:
        yield folder
    finally:
        if was_root:
            os.seteuid(0)
        shutil.rmtree(folder)


def test_files_and_folders_without_permission_are_failures(without_privileges: Path) -> None:
    folder = without_privileges
    privileged = os.geteuid() == 65534
    if privileged:
        os.seteuid(0)
    write(folder, "open.txt", "open")
    write(folder, "closed.txt", "closed").chmod(0)
    write(folder, "vault/a.txt", "a")
    (folder / "vault").chmod(0)
    if privileged:
        os.seteuid(65534)
    documents, failures = load_all(folder)
    if not privileged:
        (folder / "vault").chmod(0o755)
    assert [document.id for document in documents] == ["open.txt"]
    assert [failure.item_id for failure in failures] == ["closed.txt", "vault"]
    assert all("Permission denied" in failure.reason for failure in failures)


def test_a_path_that_does_not_exist_is_an_error_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"There is no corpus at .*nowhere"):
        load_documents(tmp_path / "nowhere")


def test_a_corpus_without_usable_text_is_an_error_after_its_failures(tmp_path: Path) -> None:
    write(tmp_path, "a.txt", "")
    items = load_documents(tmp_path)
    assert isinstance(next(items), Failure)
    with pytest.raises(CorpusError, match=r"no usable text; 1 failed, the first 'a.txt': The file is empty"):
        next(items)


def test_an_empty_folder_is_an_error_that_says_what_to_put_in_it(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"holds no files.*txt, .*parquet"):
        list(load_documents(tmp_path))


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz", "a.csv"])
def test_the_first_document_comes_before_the_rest_of_the_file_is_read(tmp_path: Path, name: str) -> None:
    chance = random.Random(0)
    texts = [f"text {n} {chance.randbytes(400).hex()}" for n in range(4_000)]  # 3 MB, half of it when packed
    rows = (f'{{"text": "{text}"}}\n' if "jsonl" in name else f"{text}\n" for text in texts)
    path = tmp_path / name
    with gzip.open(path, "wt", compresslevel=1) if name.endswith(".gz") else path.open("w") as out:
        out.write("" if "jsonl" in name else "text\n")
        out.writelines(rows)
    items = load_documents(path)
    first = next(items)
    assert isinstance(first, Document)
    assert first.text == texts[0]
    path.open("r+b").truncate(path.stat().st_size // 2)  # had it been read, the second half would still come
    n_more = sum(isinstance(item, Document) for item in items)
    assert 1_000 < n_more < 3_000


def test_parquet_is_read_in_batches_so_damage_further_on_costs_only_what_follows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    texts = [os.urandom(100).hex() for _ in range(5000)]
    pq.write_table(pa.table({"text": texts}), path, row_group_size=1024, compression="none", use_dictionary=False)
    data = bytearray(path.read_bytes())
    place = pq.ParquetFile(path).metadata.row_group(3).column(0).data_page_offset
    data[place : place + 40] = b"\xff" * 40
    path.write_bytes(data)
    documents, failures = load_all(path)
    assert [document.text for document in documents] == texts[:3072]
    assert "damaged after row 3072" in failures[0].reason


@given(
    data=st.one_of(
        st.binary(max_size=300),
        st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.text(alphabet='{}[]":,text\n\r\\u0d8<>/!-p?#;|\t\0\ufeff', max_size=200).map(str.encode),
        st.sampled_from([b"%PDF-1.4\n", b"PAR1", b"\x1f\x8b\x08", codecs.BOM_UTF16_LE, b"text\n"]).flatmap(
            lambda start: st.binary(max_size=200).map(lambda rest: start + rest)
        ),
    ),
    compress=st.booleans(),
)
def test_no_bytes_whatever_make_the_loader_raise(data: bytes, compress: bool) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for extension in READERS:
            packed = compress and extension.endswith(".gz")
            write(folder, f"a{extension}", gzip.compress(data) if packed else data)
        documents, _ = load_all(folder, max_bytes=250)
        for document in documents:
            assert document.text.strip()
            document.text.encode("utf-8")
            document.id.encode("utf-8")
            json.dumps(dict(document.metadata), allow_nan=False)
