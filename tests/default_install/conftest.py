"""Runs `kraq` as `pip install kraq-dspy` leaves it, without any extra: `make test-default` makes that environment."""

import importlib
import json
import os
import shlex
import shutil
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OF_EXTRAS = ("torch", "pyarrow", "starlette", "mcp", "xllamacpp", "scipy", "pandas", "hypothesis")

collect_ignore_glob = ["test_*.py"] if any(map(find_spec, OF_EXTRAS)) else []  # another environment

TARNVIK = {
    "lighthouse.md": "The lighthouse of Tarnvik was built in 1871 by the engineer Maren Holt. Jonas Berg has kept the "
    "light since 1998.",
    "ferry.md": "The ferry Alma sails from Tarnvik to the island of Skarv. Berg Line has owned her since 2004. A "
    "ticket costs twelve crowns.",
    "museum.md": "The museum of Tarnvik was opened in 1954. Maren Holt's drawings of the lighthouse hang in its first "
    "room.",
}
ALSO_OF_TARNVIK = {
    "school.md": "The school of Tarnvik was founded in 1902 by the teacher Ida Holm. Peder Vik has led the school of "
    "Tarnvik since 2015. Ida Holm wrote the song of Tarnvik in 1911.",
    "mill.md": "Otto Lind built the mill of Tarnvik in 1840. The Lind family has owned the mill of Tarnvik since 1840. "
    "Nils Brandt painted the mill of Tarnvik in 1888.",
}
ROWS = {
    "Who keeps the light?": "Jonas Berg",
    "Who owns the ferry Alma?": "Berg Line",
    "When was the museum opened?": "1954",
}


@dataclass(frozen=True)
class Done:
    """What a command wrote, standard output and errors together, and its exit code."""

    code: int
    text: str


def kraq(words: list[str], folder: Path) -> Done:
    """Run the command in a fork, which has imported already what it needs."""
    out = folder.parent / f"{folder.name}.output"
    child = os.fork()
    if child == 0:
        _run(words, folder, out)
    _, status = os.waitpid(child, 0)
    return Done(os.waitstatus_to_exitcode(status), out.read_text("utf-8", "replace"))


def _run(words: list[str], folder: Path, out: Path) -> None:
    """Does not come back."""
    code = 1
    try:
        os.chdir(folder)
        file = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for number in (1, 2):
            os.dup2(file, number)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 (pytest's own go elsewhere)
        from kraq_dspy.apps.cli import main

        sys.argv = ["kraq", *words]
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001 (as the interpreter would)
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def words_of(command: str) -> list[str]:
    return shlex.split(command, comments=True)[1:]


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what the pages name: documents, their index, questions, a log, an FAQ cache."""
    os.environ.update(
        COLUMNS="200",
        NO_COLOR="1",
        OMP_NUM_THREADS="1",
        TQDM_DISABLE="1",
        XDG_CACHE_HOME=str(tmp_path_factory.mktemp("cache")),
        XDG_CONFIG_HOME=str(tmp_path_factory.mktemp("config")),
    )
    for name in [name for name in os.environ if name.endswith("_API_KEY")]:
        del os.environ[name]
    for name in ("kraq_dspy.apps.cli.program", "kraq_dspy.indexing.index.build", "kraq_dspy.workspace", "onnxruntime"):
        importlib.import_module(name)

    folder = tmp_path_factory.mktemp("place") / "work"
    folder.mkdir()
    (folder / "docs").mkdir()
    for name, text in {**TARNVIK, **ALSO_OF_TARNVIK}.items():
        (folder / "docs" / name).write_text(f"---\nauthor: {name[0]}\n---\n{text}\n")
    (folder / "docs" / "byron.txt").write_text("Lord Byron wrote Don Juan. The heat pump resets by its red button.")

    rows = "".join(f"{question},{answer}\n" for question, answer in ROWS.items())
    (folder / "questions.csv").write_text(f"question,answer\n{rows}")
    (folder / "faq.csv").write_text(f"question,answer\n{rows}")
    (folder / "log.csv").write_text("question\n" + "".join(f"{question}\n" for question in ROWS))
    (folder / "wiki.csv").write_text(
        "title,text,groups\nCanteen,The canteen opens at 11.,staff\nSite,The Holt Trust bought the site.,board\n"
    )

    asked = [
        ("Who built the lighthouse?", "Maren Holt", "lighthouse.md"),
        ("Who wrote Don Juan?", "Lord Byron", "byron.txt"),
    ]
    asked += [(question, answer, name) for (question, answer), name in zip(ROWS.items(), TARNVIK, strict=True)]
    (folder / "few.csv").write_text("question,answer,supporting_ids\n" + "".join(",".join(row) + "\n" for row in asked))

    given = {"question": "Who wrote Don Juan?", "response": "Lord Byron", "contexts": ["Lord Byron wrote it."]}
    (folder / "answers.jsonl").write_text(json.dumps(given) + "\n")

    dev = [
        {"question": f"{question} ({number})", "answer": answer}
        for number in range(3)
        for question, answer in ROWS.items()
    ]
    (folder / "dev.jsonl").write_text("".join(json.dumps(row) + "\n" for row in dev))
    (folder / "pairs.jsonl").write_text(json.dumps({"summary": "Byron wrote.", "question": "Who wrote?"}) + "\n")
    statement = {"statement": "Ada Lovelace met Charles Babbage in 1833.", "answer": "1833"}
    asking = {**statement, "question": "When did Ada Lovelace meet Charles Babbage?", "source": "new_wiki"}
    (folder / "asking.jsonl").write_text(json.dumps(asking) + "\n")
    (folder / "tokens.toml").write_text('[[token]]\nname = "page"\ntoken = "a-token-of-a-page"\n')
    (folder / "new.pdf").write_bytes(b"%PDF-1.4\n")
    (folder / "ragtest" / "output").mkdir(parents=True)
    for table in ("entities", "relationships", "text_units", "documents", "communities", "community_reports"):
        (folder / "ragtest" / "output" / f"{table}.parquet").touch()

    lines = (ROOT / "examples/hotpotqa-mini/corpus.jsonl").read_text("utf-8").splitlines(keepends=True)
    (folder / "passages.jsonl").write_text("".join(lines[:24]), "utf-8")
    for corpus, index in {"docs": "docs.kraq", "wiki.csv": "other.kraq", "passages.jsonl": "wiki.kraq"}.items():
        done = kraq(["index", corpus, "--out", index], folder)
        assert done.code == 0, done.text
    return Path(shutil.copytree(folder, folder.parent / "made"))


@pytest.fixture
def folder(place: Path) -> Path:
    """The place as it was made, at the path that its indexes know."""
    work = place.parent / "work"
    shutil.rmtree(work)
    shutil.copytree(place, work)
    return work
