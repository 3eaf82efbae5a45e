import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

from kraq_dspy.asset.graph.exchange.triples_in import read_triples
from kraq_dspy.errors import ExchangeError
from kraq_dspy.records import ExtractedEntity, ExtractedRelationship

CORPUS = [{"id": "p1", "title": "Oslo", "text": "Oslo is in Norway."}, {"id": "p2", "title": "", "text": "Nothing."}]
TRIPLES = [{"passage_id": "p1", "entities": ["Oslo", "Norway"], "triples": [["Oslo", "is in", "Norway"]]}]


def write(path: Path, rows: list[Any]) -> Path:
    text = "".join(row if isinstance(row, str) else json.dumps(row) + "\n" for row in rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text, encoding="utf-8")
    return path


def write_parquet(path: Path, rows: list[Any]) -> Path:
    pa.parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


@pytest.mark.parametrize("suffix", [".jsonl", ".jsonl.gz", ".parquet"])
def test_a_folder_of_passages_and_triples_is_read_from_every_format(tmp_path: Path, suffix: str) -> None:
    save = write_parquet if suffix == ".parquet" else write
    save(tmp_path / f"corpus{suffix}", CORPUS)
    save(tmp_path / f"triples{suffix}", TRIPLES)
    imported = read_triples(tmp_path)
    assert [(d.id, d.title, d.text) for d in imported.documents] == [
        ("p1", "Oslo", "Oslo is in Norway."), ("p2", "", "Nothing."),
    ]  # fmt: skip
    assert [(c.document_id, c.start, c.end, c.text) for c in imported.chunks] == [
        ("p1", 0, 18, "Oslo is in Norway."), ("p2", 0, 8, "Nothing."),
    ]  # fmt: skip
    first, second = imported.extractions
    assert [first.chunk_id, second.chunk_id] == [chunk.id for chunk in imported.chunks]
    assert first.entities == (ExtractedEntity("Oslo", "", ""), ExtractedEntity("Norway", "", ""))
    assert first.relationships == (ExtractedRelationship("Oslo", "Norway", "is in", "Oslo is in Norway."),)
    assert second.relationships == ()
    assert imported.problems == ("1 passages have no triples",)


def test_a_triples_file_finds_the_corpus_beside_it(tmp_path: Path) -> None:
    write(tmp_path / "corpus.jsonl", CORPUS)
    assert read_triples(write(tmp_path / "triples.jsonl", TRIPLES)) == read_triples(tmp_path)


def test_one_file_may_hold_passages_and_triples(tmp_path: Path) -> None:
    rows = [
        {
            "id": "p1",
            "passage": "Oslo is in Norway.",
            "entities": [{"name": "Oslo", "type": "city"}],
            "triples": [{"subject": "Oslo", "predicate": "is in", "object": "Norway"}],
        }
    ]
    imported = read_triples(write(tmp_path / "graph.jsonl", rows))
    assert imported.problems == ()
    assert imported.extractions[0].entities == (ExtractedEntity("Oslo", "city", ""),)
    assert [(link.source, link.predicate, link.target) for link in imported.extractions[0].relationships] == [
        ("Oslo", "is in", "Norway")
    ]


def test_bad_rows_are_counted_with_their_reason_and_the_rest_goes_on(tmp_path: Path) -> None:
    write(
        tmp_path / "corpus.jsonl", [*CORPUS, CORPUS[0], {"id": "", "text": "x"}, {"id": "p3", "text": " "}, "{oops\n"]
    )
    write(
        tmp_path / "triples.jsonl",
        [
            *TRIPLES,
            {"passage_id": "p1", "entities": [3], "triples": [["a", "b"], ["a", "b", 3], ["Oslo", "", ""], "x"]},
            {"passage_id": "elsewhere", "triples": []},
            {"other": 1},
            "[1]\n",
        ],
    )
    imported = read_triples(tmp_path)
    assert len(imported.documents) == 2
    assert len(imported.extractions[0].relationships) == 1
    assert imported.problems == (
        "1 entities were not a text",
        "1 lines of corpus.jsonl were no JSON object",
        "1 lines of triples.jsonl were no JSON object",
        "1 passages have no triples",
        "1 passages with the id of an earlier one were left out",
        "2 passages without an id or a text were left out",
        "1 rows of triples name a passage that the corpus does not have",
        "1 rows of triples.jsonl lacked a column",
        "4 triples were not three texts",
    )


def test_missing_columns_and_files_are_named_beside_those_that_are_there(tmp_path: Path) -> None:
    write(tmp_path / "corpus.jsonl", [{"id": "1", "body": "text"}])
    with pytest.raises(ExchangeError, match=r"no triples .*'corpus.jsonl'"):
        read_triples(tmp_path)
    write(tmp_path / "triples.jsonl", TRIPLES)
    with pytest.raises(ExchangeError, match=r"'corpus.jsonl' lacks the column 'text' or 'passage'.*'body', 'id'"):
        read_triples(tmp_path)
    with pytest.raises(ExchangeError, match="no file or folder"):
        read_triples(tmp_path / "nowhere")
    with pytest.raises(ExchangeError, match=r"'notes.txt' is none of \.parquet"):
        read_triples(write(tmp_path / "notes.txt", []))


@pytest.mark.parametrize("name", ["corpus.parquet", "corpus.jsonl.gz"])
def test_a_damaged_file_is_named(tmp_path: Path, name: str) -> None:
    whole = gzip.compress(b'{"id": "1", "text": "x"}\n' * 1000)
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    write(tmp_path / "triples.jsonl", TRIPLES)
    with pytest.raises(ExchangeError, match=name):
        read_triples(tmp_path)


def test_without_a_usable_passage_the_error_says_why(tmp_path: Path) -> None:
    with pytest.raises(ExchangeError, match=r"no usable passage\. 1 passages without an id or a text"):
        read_triples(write(tmp_path / "graph.jsonl", [{"id": "1", "text": "", "triples": []}]))


def test_the_shared_triples_are_all_read(shared_data: Path) -> None:
    imported = read_triples(shared_data / "musique")
    assert (len(imported.documents), len(imported.chunks), len(imported.extractions)) == (1890, 1890, 1890)
    assert len({chunk.id for chunk in imported.chunks}) == 1890
    assert imported.problems == ("2 passages have no triples",)
    assert sum(len(each.relationships) for each in imported.extractions) == 17_204  # of 17,234; 30 repeat
