"""Writes what the commands of the pages say over three small corpora into tests/golden, or compares it: make golden

    python scripts/golden.py [CORPUS ...]            run the cases and write their files
    python scripts/golden.py --check [CORPUS ...]    run them and say what differs from the files; exit code 1 if so

`tests/golden/cases.toml` names the cases. Each corpus has two files. NAME.exact.jsonl holds graphs, ranks, numbers and
the shape of the JSON; NAME.wording.jsonl holds what a person reads: questions, answers, summaries, messages. A line is
[case, place in its result, value]. Left out are times, paths, sizes in bytes, counts of tokens, and ids that are
hashes: a passage is named by its document and position, an entity by its name, a community by its level, first entity
and size.
"""

import argparse
import csv
import difflib
import hashlib
import json
import os
import re
import shlex
import shutil
import sys
import tempfile
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

from stand_in import stand_in  # noqa: E402 (a folder of scripts)

from kraq_dspy import Index  # noqa: E402
from kraq_dspy.records import Chunk, Community, Entity, Question  # noqa: E402
from tests.orchids import ANSWERED, FOREIGN, ORCHIDS  # noqa: E402
from tests.warm import WarmShell  # noqa: E402

GOLDEN = ROOT / "tests" / "golden"
CASES: dict[str, dict[str, str]] = tomllib.loads((GOLDEN / "cases.toml").read_text("utf-8"))

Line = tuple[str, str, Any]
"""A case, the place in its result, and what stands there."""

LEFT_OUT = re.compile(
    r"seconds|timings|_hash$|changed_by|_at$|_s$|_ms$|_mb$|bytes|path|^settings$|^origin$|^state$|version|fingerprint|tokens|file$|folder|^out$"
    r"|report$|^models$|_db$|machine|command|^index$|memory|latency|cpu"
)
"""Keys whose values differ between runs, machines or releases, or are known from elsewhere."""
WORDING = frozenset({
    "answer", "description", "explanation", "feedback", "finding", "message", "note", "persona", "prompt", "question",
    "reason", "statement", "summary", "text", "topic", "warning",
})  # fmt: skip
"""Keys of what people read. So is each string of five words or more."""
LONGEST = 240
"""Characters of a text that its line shows; a longer one ends in a hash of all of it."""
HASH = re.compile(r"[0-9a-f]{24,64}")
NEAR = 0.011
"""How far apart two scores may be: encoders round otherwise on other processors."""
NEAR_BOUND = 0.05
"""How far apart two bounds of an interval may be: rows are resampled in the order in which they were answered."""


def write_orchids(folder: Path) -> None:
    rows = [{"id": name, "title": name.title(), "text": text} for name, text in ORCHIDS.items()]
    write_rows(folder / "corpus.jsonl", rows)
    with (folder / "questions.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "answer"])
        writer.writerows(
            zip(ANSWERED, ("John Lindley", "once a week", "Phalaenopsis amabilis", "Edmond Albius"), strict=True)
        )
        writer.writerows([question, ""] for question in FOREIGN)


def write_wiki(folder: Path) -> None:
    """Three questions of the bundled sample, and some of the passages shown with them."""
    sample = ROOT / "examples" / "hotpotqa-mini"
    questions = read_rows(sample / "questions.jsonl")[:3]
    ids = {document for row in questions for document in (*row["supporting_ids"], *row["context_ids"][:3])}
    write_rows(folder / "corpus.jsonl", [row for row in read_rows(sample / "corpus.jsonl") if row["id"] in ids])
    write_rows(folder / "questions.jsonl", questions)
    given = [
        {**row, "response": answer} for row, answer in zip(questions, ("Yes.", "Jayhawk", "Henry Kaiser"), strict=True)
    ]
    write_rows(folder / "answers.jsonl", given)


def write_handbook(folder: Path) -> None:
    """A folder of several formats and languages, about heat pumps and their workshop."""
    shutil.copytree(GOLDEN / "handbook", folder / "handbook")
    (folder / "more.md").write_text("# Cellar\n\nIda Bach painted the cellar of the Nordlys Hotel in 2024.\n", "utf-8")


CORPORA = {"orchids": write_orchids, "wiki": write_wiki, "handbook": write_handbook, "stand-in": write_orchids}
NAMES = (*CORPORA, "papers")


def read_rows(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def write_rows(file: Path, rows: list[Any]) -> None:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


class Recording:
    """The lines of one corpus: `exact` and `wording`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.asked = ""  # the command of the case
        self.names: dict[str, str] = {}
        self.exact: list[Line] = []
        self.wording: list[Line] = []

    def learn_names(self, path: Path) -> None:
        """Note what stands for the ids of an index."""
        with Index.open(path) as index:
            for chunk in index.all(Chunk):
                self.names[chunk.id] = f"{chunk.document_id}#{chunk.position}"
            for entity in index.all(Entity):
                self.names[entity.id] = entity.name
            for community in index.all(Community):
                first = min(self.names[each] for each in community.entity_ids)
                self.names[community.id] = f"L{community.level} {first} ({len(community.entity_ids)})"
            for question in index.all(Question):
                self.names[question.id] = f"question of {self.names.get(question.community_id or '', 'no community')}"

    def add(self, case: str, place: str, value: Any, key: str = "") -> None:
        """Take a result apart: a line for each object's own values, and one for each text."""
        if isinstance(value, dict):
            self.add_object(case, place, value)
        elif isinstance(value, list) and value:
            for name, each in self.in_order(value):
                self.add(case, f"{place}/{name}", each, key)
        elif self.is_wording(key, value):
            self.add_text(case, place, value)
        else:
            self.exact.append((case, place, self.named(value)))

    def in_order(self, values: list[Any]) -> list[tuple[str, Any]]:
        """A list's values with their numbers; entries of an FAQ cache, which are numbered as they come, by question."""
        if all(isinstance(each, dict) and {"question", "sources"} <= each.keys() for each in values):
            return sorted((each["question"], each) for each in values)
        return [(str(number), each) for number, each in enumerate(values)]

    def add_object(self, case: str, place: str, value: Mapping[str, Any]) -> None:
        own = {}
        for name, each in value.items():
            if self.is_left_out(value, place, name, each):
                continue
            if name == "chunk" and isinstance(each, dict):  # of a hit: its text is that of the passage
                own[name] = self.known(each["id"])
            elif isinstance(each, dict) or (
                isinstance(each, list) and any(isinstance(one, dict | list) for one in each)
            ):
                self.add(case, f"{place}/{self.known(name)}", each, name)
            elif self.is_wording(name, each):
                self.add_text(case, f"{place}/{name}", each)
            else:
                own[self.known(name)] = self.named(each)
        if own:
            self.exact.append((case, place, own))

    def label(self, row: Mapping[str, Any]) -> str:
        """What a row of a table is of, so that a row that comes leaves the others as they are; "" if it has no name."""
        for keys in (("id",), ("source_id", "target_id"), ("entity_id",), ("community_id",)):
            if all(row.get(key) in self.names for key in keys):
                return " - ".join(self.names[row[key]] for key in keys)
        return str(row["question"]) if {"question", "sources"} <= row.keys() else ""

    def is_left_out(self, siblings: Mapping[str, Any], place: str, name: str, value: Any) -> bool:
        if name == "id" and HASH.fullmatch(str(value)):
            return True  # what it names stands beside it
        if name == "number" and "sources" in siblings:
            return True  # of an entry of an FAQ cache
        if name == "stages" and "/systems/" in place:
            return True  # what they took
        if name == "query" and str(value) in self.asked:
            return True
        if name == "text" and re.search(r"evidence/\d+$", place):
            return True  # the same as in the table of passages
        if place.startswith(("claims/", "relationships/")) and name in ("statement", "description"):
            return True  # sentences of the passages
        return bool(LEFT_OUT.search(name))

    def add_text(self, case: str, place: str, value: Any) -> None:
        texts = value if isinstance(value, list) else [value]
        self.wording += [(case, place, shortened(self.without_paths(str(text)))) for text in texts if text]

    def is_wording(self, key: str, value: Any) -> bool:
        texts = value if isinstance(value, list) else [value]
        strings = [text for text in texts if isinstance(text, str)]
        return bool(strings) and (key in WORDING or any(text.count(" ") >= 4 for text in strings))

    def known(self, text: str) -> str:
        return self.names.get(text, "an id" if HASH.fullmatch(text) else text)

    def named(self, value: Any) -> Any:
        if isinstance(value, list):
            return [self.named(each) for each in value]
        if isinstance(value, float):
            return round(value, 3)
        return self.known(self.without_paths(value)) if isinstance(value, str) else value

    def without_paths(self, text: str) -> str:
        for path, name in ((self.folder, "FOLDER"), (ROOT, "PROJECT")):
            text = text.replace(str(path), name)
        return re.sub(r"127\.0\.0\.1:\d+", "HOST", re.sub(r"\b\d+(\.\d+)? (s|ms|min|seconds)\b", "N s", text))


def shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def recorded(corpus: str, shell: WarmShell, folder: Path, cases: Mapping[str, str]) -> Recording:
    """Run these cases of a corpus in this empty folder."""
    recording = Recording(folder)
    CORPORA[corpus](folder)
    with ExitStack() as stack:
        if corpus == "stand-in":
            server = stack.enter_context(stand_in())
            os.environ["OPENAI_API_KEY"] = "none"
            text = f'[roles.default]\nmodel = "openai/stand-in"\napi_base = "{server.url}"\n'
            (folder / "kraq.toml").write_text(text, "utf-8")
        for case, line in cases.items():
            run_case(recording, shell, case, line)
    return recording


def run_case(recording: Recording, shell: WarmShell, case: str, line: str) -> None:
    command, _, written = line.partition(" -> ")
    recording.asked = command
    done = shell(*shlex.split(command)[1:], cwd=recording.folder)
    if (recording.folder / "i.kraq").exists():
        recording.learn_names(recording.folder / "i.kraq")

    recording.exact.append((case, "exit code", done.returncode))
    if done.returncode or "--json" not in command:
        lines = (done.stdout + done.stderr).splitlines()
        recording.add_text(case, "output", [text for line in lines if (text := line.strip("│╭╰─╮╯ "))])
        return
    recording.add(case, "", json.loads(done.stdout))
    n_exact, n_wording = len(recording.exact), len(recording.wording)
    for file in sorted(recording.folder.glob(written)) if written else ():
        if file.stem not in ("extractions", "documents"):  # whose contents the other tables have
            for number, row in enumerate(read_rows(file)):
                recording.add(case, f"{file.stem}/{recording.label(row) or number}", row)
    recording.exact[n_exact:] = sorted(recording.exact[n_exact:], key=str)
    recording.wording[n_wording:] = sorted(recording.wording[n_wording:], key=str)


def recorded_tables(folder: Path) -> Recording:
    """Run each table of the papers at its smallest: one question over three passages, with the embedded model."""
    from kraq_dspy.eval.reports.summary import summarise
    from kraq_dspy.eval.rows import read_run
    from kraq_dspy.optimize import describe_domain
    from kraq_dspy.papers.catalogue import papers_tables
    from kraq_dspy.papers.listing import paper_grids
    from tests.eval.saving import save
    from tests.papers.tables.conftest import LIGHTHOUSES, Toy
    from tests.papers.tables.test_papers_tables import RUN, SETTINGS, table_of

    recording = Recording(folder)
    toy = Toy(folder)
    data = folder / LIGHTHOUSES.name
    save(LIGHTHOUSES, data)
    for table_id in sorted(RUN.values()):
        paper_table = papers_tables()[table_id]
        (folder / table_id).mkdir()
        table = table_of(paper_table, folder / table_id, toy)
        run = toy.run(table, data=data, settings=SETTINGS, tokens=None, limit=1, describe=describe_domain)
        for index in (folder / "indexes").glob("*.kraq"):
            recording.learn_names(index)

        for grid in paper_grids(summarise([run])):
            labels = [row[0] for row in grid.rows]
            recording.add(table_id, "grid", {"title": grid.title, "headings": list(grid.headings), "labels": labels})
        for row in read_run(run)[1]:
            result = {"metrics": row.metrics, "hits": list(row.hit_ids), "answer": row.answer, "failure": row.failure}
            recording.add(table_id, f"{row.system}/{row.question_id}", result)
    return recording


def lines_of(lines: list[Line]) -> list[str]:
    return [json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines]


def same(first: Any, second: Any, near: float = NEAR) -> bool:
    """Whether two values of exact lines are equal, scores within the rounding of encoders."""
    if isinstance(first, float) and isinstance(second, int | float):
        return abs(first - second) <= near
    if isinstance(first, dict) and isinstance(second, dict):
        return list(first) == list(second) and all(
            same(first[key], second[key], NEAR_BOUND if key in ("low", "high") else NEAR) for key in first
        )
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


def differences(corpus: str, recording: Recording, cases: Mapping[str, str] | None = None) -> Iterator[str]:
    """The lines of both layers that are not as the files have them, and how many of each case."""
    for layer, lines in (("exact", recording.exact), ("wording", recording.wording)):
        text = (GOLDEN / f"{corpus}.{layer}.jsonl").read_text("utf-8")
        before = [line for line in text.splitlines() if cases is None or json.loads(line)[0] in cases]
        now = lines_of(lines)
        if len(before) == len(now) and all(map(same, map(json.loads, before), map(json.loads, now))):
            continue

        changed = [line for line in difflib.unified_diff(before, now, lineterm="", n=0) if line[:2] in ("-[", "+[")]
        counts = Counter(json.loads(line[1:])[0] for line in changed)
        told = ", ".join(f"{case} {count}" for case, count in counts.most_common())
        yield f"{corpus}, {layer}: {len(changed)} lines differ, before {len(before)}, now {len(now)} ({told})"
        yield from changed


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", metavar="CORPUS", help=f"of {', '.join(NAMES)}; default: all")
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()

    wrong = False
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["XDG_CONFIG_HOME"] = os.environ["XDG_CACHE_HOME"] = temporary
        names = options.corpora or NAMES
        shell = WarmShell(Path(temporary) / "shell") if {*names} - {"papers"} else None
        for corpus in names:
            folder = Path(temporary) / corpus
            folder.mkdir()
            if corpus == "papers" or shell is None:
                recording = recorded_tables(folder)
            else:
                recording = recorded(corpus, shell, folder, CASES[corpus])

            if options.check:
                for line in differences(corpus, recording):
                    wrong = True
                    print(line)
                continue
            for layer, lines in (("exact", recording.exact), ("wording", recording.wording)):
                text = "".join(line + "\n" for line in lines_of(lines))
                (GOLDEN / f"{corpus}.{layer}.jsonl").write_text(text, "utf-8")
        if shell:
            shell.close()
    sys.exit(wrong)


if __name__ == "__main__":
    main()
