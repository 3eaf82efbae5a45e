"""Shows what `kraq` makes of bad input, as a Markdown table of outcomes. Exits with 1 after a traceback.

    python benchmarks/bad_inputs.py [--json] [--write docs/guide/reliability.md]

Each case is a command line over files made for it. An outcome is the exit code, whether a message says what to do, and
how many problems were listed while the rest went on.
"""

import argparse
import gzip
import json
import os
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from typer.testing import CliRunner

from kraq_dspy.apps.cli.program import make_app
from kraq_dspy.build.index.build import build_index
from kraq_dspy.errors import ConfigError, KraqError
from kraq_dspy.records import Document

GOOD = "Ada Lovelace met Charles Babbage in London. Charles Babbage lived in London."
BEGIN, END = "<!-- bad inputs: made by benchmarks/bad_inputs.py -->", "<!-- end of bad inputs -->"
MOST_SHOWN = 150  # characters of a message
INDEX = ("index", "corpus", "--out", "x.kraq", "--json")


@dataclass(frozen=True)
class Outcome:
    """`code` is the exit code, `listed` counts the problems that were named while the rest was indexed."""

    case: str
    code: int
    listed: int
    says: str
    traceback: bool


def cases() -> Iterator[tuple[str, tuple[str, ...], Callable[[], None]]]:
    """(what is wrong, the words after `kraq`, what makes the files in the working folder)."""
    for name, data in (
        ("a file of another encoding", "Zürich".encode("latin-1") * 50),
        ("binary content called .txt", bytes(range(256)) * 20),
        ("an empty file", b""),
        ("white space only", b" \n\t"),
    ):
        yield name, INDEX, with_file("odd.txt", data)
    yield "a folder of nothing", INDEX, lambda: Path("corpus").mkdir()
    yield "a corpus that is not there", INDEX, lambda: None
    yield "an unknown extension", INDEX, with_file("odd.xyz", b"text")
    yield (
        "broken JSON lines among good ones",
        INDEX,
        with_file("rows.jsonl", b'{"text": "' + GOOD.encode() + b'"}\n{"te\n[]\n3\n'),
    )
    yield "rows without text", INDEX, with_file("rows.jsonl", b'{"id": 1}\n{"text": null}\n{"text": 7}\n')
    yield "an id twice", INDEX, with_file("rows.jsonl", b'{"id": "a", "text": "One."}\n{"id": "a", "text": "Two."}\n')
    yield "a table without a text column", INDEX, with_file("t.csv", b"a,b\n1,2\n")
    yield "a CSV with stray quotes", INDEX, with_file("t.csv", b'id,text\n1,"a"b"c\n2,fine\n')
    yield "gzip that is cut off", INDEX, with_file("rows.jsonl.gz", gzip.compress(b'{"text": "x y"}\n' * 999)[:60])
    yield "gzip that is none", INDEX, with_file("rows.jsonl.gz", b"not gzip")
    yield "a gzip bomb of 400 MB", INDEX, with_file("a.jsonl.gz", gzip.compress(bytes(400 << 20), 9))
    yield "a PDF that is none", INDEX, with_file("a.pdf", b"%PDF-1.7 broken")
    yield "parquet that is none", INDEX, with_file("a.parquet", b"PAR1broken")
    yield "HTML nested 100,000 deep", INDEX, with_file("a.html", b"<div>" * 100_000 + b"Deep.")
    yield "a link out of the corpus", INDEX, with_link
    yield "a pipe in the corpus", INDEX, with_pipe
    yield (
        "control codes and lone surrogates",
        INDEX,
        with_file("rows.jsonl", b'{"text": "a\\u0000b\\ud800 \\u001b[31m x"}\n'),
    )
    yield "one word of a million letters", INDEX, with_file("a.txt", b"x" * 1_000_000)
    yield "settings that are no TOML", (*INDEX, "--config", "k.toml"), with_settings("[roles")
    yield "an unknown setting", (*INDEX, "--config", "k.toml"), with_settings("[chunks]\ntoken = 3")
    yield "a setting out of range", (*INDEX, "--config", "k.toml"), with_settings("[chunks]\noverlap = 900")
    yield "a setting of the wrong type", (*INDEX, "--config", "k.toml"), with_settings('[chunks]\ntokens = "many"')
    yield "a model of an unknown provider", (*INDEX, "--lm", "opneai/x"), with_file("a.txt", GOOD.encode())
    yield "a model server that is not there", (
        *INDEX, "--lm", "hosted_vllm/x", "--api-base", "http://127.0.0.1:9/v1",
    ), with_file("a.txt", GOOD.encode())  # fmt: skip
    yield (
        "a key that is not set",
        (*INDEX, "--config", "k.toml"),
        with_settings('[roles.default]\nmodel = "openai/x"\napi_key_env = "NO_SUCH_KEY"'),
    )
    yield "an output folder that holds other files", INDEX, with_foreign_folder
    for name, harm in (
        ("no manifest", lambda: Path("x.kraq/manifest.json").unlink()),
        ("a manifest cut off", lambda: Path("x.kraq/manifest.json").write_text('{"schema')),
        ("a manifest of a newer schema", newer_schema),
        ("no database", lambda: Path("x.kraq/states/1/index.db").unlink()),
        ("a database of noise", lambda: Path("x.kraq/states/1/index.db").write_bytes(os.urandom(9000))),
        ("a database without a table", lambda: dropped("entities")),
        ("no vectors", lambda: shutil.rmtree("x.kraq/states/1/vectors")),
        ("vectors of noise", noise_in_vectors),
    ):
        yield f"an index with {name}", ("ask", "x.kraq", "Who met Babbage?", "--json"), with_index(harm)
    for question in ("", " ", "?" * 20_000, "\x1b[2J", "DROP TABLE chunks; --"):
        yield f"the question {question[:12]!r}", ("ask", "x.kraq", question, "--json"), with_index(lambda: None)


def with_file(name: str, data: bytes) -> Callable[[], None]:
    def make() -> None:
        Path("corpus").mkdir()
        (Path("corpus") / name).write_bytes(data)

    return make


def with_settings(text: str) -> Callable[[], None]:
    def make() -> None:
        with_file("a.txt", GOOD.encode())()
        Path("k.toml").write_text(text)

    return make


def with_index(harm: Callable[[], object]) -> Callable[[], None]:
    def make() -> None:
        build_index([Document("a", "Ada", GOOD)], "x.kraq")
        Path("x.kraq/lock").unlink(missing_ok=True)
        harm()

    return make


def with_link() -> None:
    with_file("a.txt", GOOD.encode())()
    (Path("corpus") / "link.txt").symlink_to("/etc/hostname")


def with_pipe() -> None:
    with_file("a.txt", GOOD.encode())()
    os.mkfifo("corpus/pipe.txt")


def with_foreign_folder() -> None:
    with_file("a.txt", GOOD.encode())()
    Path("x.kraq").mkdir()
    Path("x.kraq/thesis.doc").write_text("precious")


def newer_schema() -> None:
    manifest = Path("x.kraq/manifest.json")
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "schema_version": 99}))


def dropped(table: str) -> None:
    with sqlite3.connect("x.kraq/states/1/index.db") as connection:
        connection.execute(f"DROP TABLE {table}")


def noise_in_vectors() -> None:
    Path("x.kraq/states/1/vectors/chunks").write_bytes(os.urandom(64))


@contextmanager
def in_folder(path: str) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(path)
    try:
        yield
    finally:
        os.chdir(before)


def outcome(case: str, words: tuple[str, ...], make: Callable[[], None]) -> Outcome:
    with tempfile.TemporaryDirectory() as folder, in_folder(folder):
        make()
        result = CliRunner().invoke(make_app(), list(words))
        says, listed, error = "", 0, result.exception
        if isinstance(error, KraqError):  # which `kraq` itself prints
            says = str(error)
        elif result.exit_code == 0 and words[0] == "index":
            failures = json.loads(result.stdout)["failures"]
            listed = len(failures)
            says = failures[0]["reason"] if failures else ""
        code = (2 if isinstance(error, ConfigError) else 1) if isinstance(error, KraqError) else result.exit_code
        unforeseen = error is not None and not isinstance(error, KraqError | SystemExit)
        says = f"{type(error).__name__}: {error}" if unforeseen else says
        return Outcome(case, code, listed, " ".join(says.replace(folder, "").split()), unforeseen)


def table(outcomes: Sequence[Outcome]) -> str:
    failed = sum(one.traceback for one in outcomes)
    lines = [f"{len(outcomes)} tried, {failed} ended in a traceback.", ""]
    lines += ["| bad input | exit | listed | message |", "|---|---|---|---|"]
    for one in outcomes:
        says = one.says.replace("|", "\\|")
        says = says[:MOST_SHOWN] + "..." * (len(says) > MOST_SHOWN)
        lines.append(f"| {one.case} | {one.code} | {one.listed or ''} | {says} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--write", type=Path, help="a page with the markers between which the table stands")
    options = parser.parse_args()
    outcomes = [outcome(*case) for case in cases()]
    if options.json:
        print(json.dumps([asdict(one) for one in outcomes], indent=2, ensure_ascii=False))
    else:
        print(table(outcomes))
    if options.write:
        before, _, rest = options.write.read_text("utf-8").partition(BEGIN)
        after = rest.partition(END)[2]
        options.write.write_text(f"{before}{BEGIN}\n{table(outcomes)}\n{END}{after}", "utf-8")
    sys.exit(any(one.traceback for one in outcomes))


if __name__ == "__main__":
    main()
