"""Indexes unlike corpora one after the other, and puts into one table what comes of each: the zoo.

    python benchmarks/zoo.py --data ../shared/data --out runs/zoo [tales papers ...] [--passages 300] [--before DIR]

Of each corpus up to 300 passages are drawn (`--passages`), of those in other languages than English half as many, of
1,500 characters each at most on average, those first that answer up to 100 of people's questions (`--questions`). A
process of its own indexes them with the default models, checks the index, lists the first 20 lines of `kraq
questions`, makes a small test set, asks whether its own rows would be refused, and retrieves for people's questions.
So seconds and memory are one corpus' own: seconds are the processor's. What is done is kept in OUT/NAME.json, and the
lines of questions in OUT/NAME.questions.txt, so an interrupted run goes on. `--json` prints the rows in place of the
table. `--before` adds how much recall differs from another run's on the same questions.
"""

import argparse
import gzip
import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from kraq_dspy import Document, Workspace, build_index
from kraq_dspy.eval.statistics import paired_difference
from kraq_dspy.exam.making import make_testset
from kraq_dspy.indexing.index.check import check_index
from kraq_dspy.language.clozes.asking import ASKED_IN
from kraq_dspy.language.text import is_plain_question

ENGLISH = (
    "tales",
    "papers",
    "meetings",
    "policies",
    "finance",
    "tv_manual",
    "clapnq",
    "qasper",
    "squad",
    "multihop_rag",
    "wildgraph_technology",
    "hotpotqa",
    "musique",
    "popqa",
)
OTHERS = ("xquad_de", "xquad_zh", "cmrc2018", "graphrag_sengoku_ja", "french", "half_german")
SETS = (*ENGLISH, *OTHERS)
MOST_PASSAGES, MOST_QUESTIONS, MOST_GOLD = 300, 100, 10
CHARACTERS = 1_500
"""Of a passage, on average: so few of long documents are drawn."""
LINES = 20
ROWS = 30
TEMPLATES = (
    "What is known about ",
    "What is said about ",
    "What is the connection between ",
    "What is “",
    "Que dit-on sur ",
)
ENDS_OF_TEMPLATES = (
    "文中说了什么？",
    "有什么关系？",
    "何が書かれていますか？",
    "どのような関係がありますか？",
    " gesagt?",
)
RETRIEVERS = ("adaptive", "bm25")

FRENCH = (
    (
        "Le canal du Midi",
        "Le canal du Midi relie la Garonne à la mer Méditerranée. Pierre-Paul Riquet a dirigé les travaux "
        "entre 1666 et 1681. Les bateaux transportaient du blé, du vin et des voyageurs. Depuis 1996, "
        "l'ouvrage est inscrit au patrimoine mondial de l'UNESCO.",
    ),
    (
        "Marie Curie",
        "Marie Curie est née à Varsovie en 1867. Elle a découvert le polonium et le radium avec son mari, "
        "Pierre Curie. Elle a reçu le prix Nobel de physique en 1903 et le prix Nobel de chimie en 1911.",
    ),
    (
        "Le phare de Cordouan",
        "Le phare de Cordouan se dresse à l'embouchure de la Gironde. Louis de Foix a commencé sa "
        "construction en 1584. Deux gardiens y vivent toute l'année.",
    ),
    (
        "La Commune de Paris",
        "La Commune de Paris a gouverné la ville de mars à mai 1871. Louise Michel a soigné les blessés "
        "sur les barricades. Le gouvernement de Versailles a écrasé l'insurrection pendant la Semaine "
        "sanglante.",
    ),
    (
        "Le roquefort",
        "Le roquefort est un fromage à pâte persillée. Il est fabriqué avec du lait cru de brebis dans le "
        "sud de l'Aveyron. Les pains mûrissent dans les caves du mont Combalou pendant trois mois au "
        "moins.",
    ),
    (
        "Le mascaret",
        "Le mascaret est une vague qui remonte la Dordogne lors des grandes marées. Les surfeurs viennent "
        "de toute l'Europe pour la chevaucher. Le phénomène est le plus fort à Saint-Pardon, en septembre "
        "et en octobre.",
    ),
)
"""Passages that were written for this table."""


@dataclass(frozen=True)
class Sample:
    documents: tuple[Document, ...]
    questions: tuple[tuple[str, frozenset[str]], ...]
    """People's questions, each with the ids of the documents that answer it."""


def sample(name: str, data: Path, most_passages: int = MOST_PASSAGES, most_questions: int = MOST_QUESTIONS) -> Sample:
    """The same for each run, drawn by the seed 0."""
    if name == "french":
        return Sample(tuple(Document(f"fr{n}", title, text) for n, (title, text) in enumerate(FRENCH)), ())
    if name == "half_german":
        halves = ("squad", "xquad_de")
        english, german = (_drawn(half, data, most_passages // 4, most_questions) for half in halves)
        return Sample(english.documents + german.documents, english.questions[:50] + german.questions[:50])
    return _drawn(name, data, most_passages if name in ENGLISH else most_passages // 2, most_questions)


def _drawn(name: str, data: Path, most_passages: int, most_questions: int) -> Sample:
    documents = {
        line["id"]: Document(line["id"], line["title"], line["text"])
        for line in _lines(data / name / "corpus.jsonl.gz")
    }
    asked = list(_lines(data / name / "questions.jsonl.gz"))
    random.Random(0).shuffle(asked)

    needed: set[str] = set()
    questions: list[tuple[str, frozenset[str]]] = []
    for line in asked:
        gold = frozenset(line["supporting_ids"]) & documents.keys()
        is_answered = 0 < len(gold) == len(set(line["supporting_ids"])) <= MOST_GOLD
        is_small = len(needed | gold) <= most_passages * 2 // 3
        if (
            is_answered
            and is_small
            and len(questions) < most_questions
            and _fits(documents, needed | gold, most_passages)
        ):
            questions.append((line["question"], gold))
            needed |= gold

    rest = [id for id in documents if id not in needed]
    random.Random(1).shuffle(rest)
    chosen = needed.copy()
    for id in rest:
        if len(chosen) < most_passages and _fits(documents, {*chosen, id}, most_passages):
            chosen.add(id)
    return Sample(tuple(document for id, document in documents.items() if id in chosen), tuple(questions))


def _fits(documents: Mapping[str, Document], ids: Iterable[str], most_passages: int) -> bool:
    return sum(len(documents[id].text) for id in ids) <= most_passages * CHARACTERS


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    if path.is_file():
        with gzip.open(path, "rt", encoding="utf-8") as file:
            yield from map(json.loads, file)


def measure(
    name: str, data: Path, out: Path, most_passages: int = MOST_PASSAGES, most_questions: int = MOST_QUESTIONS
) -> dict[str, Any]:
    """One row of the table, made in this process."""
    drawn = sample(name, data, most_passages, most_questions)
    path = out / f"{name}.kraq"
    shutil.rmtree(path, ignore_errors=True)

    seconds_before = _processor_seconds()
    counts = build_index(drawn.documents, path).counts
    seconds, peak = _processor_seconds() - seconds_before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

    lines = _first_lines(path)
    (out / f"{name}.questions.txt").write_text("\n".join(lines), "utf-8")
    checked = check_index(path)
    with Workspace.open(path) as space:
        rows = make_testset(space, ROWS).rows
        answerable = [row for row in rows if row.type not in ("unanswerable", "false_premise")]
        refused = sum(space.answerability(row.question).is_answerable is False for row in answerable)
        recalls = {retriever: _recalls(space, retriever, drawn.questions) for retriever in RETRIEVERS}

    shown = ["\t".join((row.type, row.question, *row.answers)) for row in rows]
    (out / f"{name}.rows.txt").write_text("\n".join(shown), "utf-8")
    return {
        "corpus": name,
        "passages": len(drawn.documents),
        "entities": counts["entities"],
        "relationships": counts["relationships"],
        "communities": counts["communities"],
        "summaries": counts["summaries"],
        "questions": counts["questions"],
        "asking lines": sum(map(_is_question, lines)),
        "lines": len(lines),
        "whole": checked.whole,
        "problems": [f"{problem.count} {problem.what}" for problem in checked.problems],
        "rows": dict(Counter(row.type for row in rows)),
        "refused": refused,
        "answerable": len(answerable),
        "seconds": round(seconds, 1),
        "megabytes": round(peak),
        "asked": len(drawn.questions),
        "recalls": recalls,
    }


def _first_lines(path: Path) -> list[str]:
    """The first lines below the heading that `kraq questions` prints: questions, and topics where there is none."""
    command = [str(Path(sys.executable).parent / "kraq"), "questions", str(path)]
    wide = {**os.environ, "COLUMNS": "200", "NO_COLOR": "1"}
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=wide).stdout
    return [line.rstrip() for line in printed.splitlines()[1 : LINES + 1]]


def _is_question(line: str) -> bool:
    """Whether the line asks something of its own: no topic, and no template around a name or a headline."""
    asked = line.strip().lstrip("0123456789, ")
    is_of_template = asked.startswith(("About: ", *TEMPLATES)) or is_plain_question(asked, ASKED_IN)
    return asked.endswith(("?", "？")) and not is_of_template


def _recalls(
    space: Workspace, retriever: str, questions: Sequence[tuple[str, frozenset[str]]]
) -> dict[str, list[float]]:
    """For each question, the share of its gold documents among the first 5 and the first 10."""
    if not questions:
        return {}
    retrieve = space.retriever(retriever)
    shares: dict[str, list[float]] = {"@5": [], "@10": []}
    for question, gold in questions:
        ids = [hit.chunk.document_id for hit in retrieve(question, k=10)]
        for k in (5, 10):
            shares[f"@{k}"].append(round(len(gold & set(ids[:k])) / len(gold), 4))
    return shares


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def table(rows: Sequence[dict[str, Any]]) -> str:
    heads = (
        "corpus", "passages", "entities", "relationships", "communities", "summaries", "questions",
        "asking of the first lines", "whole", "rows by kind", "own rows refused", "CPU s", "MB",
        "adaptive @5 @10", "bm25 @5 @10", "adaptive less bm25 @5",
    )  # fmt: skip
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in rows:
        recalls = row["recalls"]
        cells = [
            *(str(row[key]) for key in heads[:7]),
            f"{row['asking lines']} of {row['lines']}",
            "yes" if row["whole"] else "; ".join(row["problems"]),
            ", ".join(f"{kind} {count}" for kind, count in sorted(row["rows"].items())) or "none",
            f"{row['refused']} of {row['answerable']}",
            f"{row['seconds']:.0f}",
            str(row["megabytes"]),
            *(" ".join(f"{mean(shares):.3f}" for shares in recalls[name].values()) or "-" for name in RETRIEVERS),
            _difference(recalls["adaptive"], recalls["bm25"], "@5"),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def table_of_differences(rows: Sequence[dict[str, Any]], before: Mapping[str, dict[str, Any]]) -> str:
    """How much recall changed on the same questions since another run, with intervals of 95 %."""
    heads = ("corpus", "questions", *(f"{name} {k}" for name in RETRIEVERS for k in ("@5", "@10")), "CPU s, times")
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for row in rows:
        earlier = before.get(row["corpus"])
        if earlier is not None:
            pairs = [(row["recalls"][name], earlier["recalls"][name]) for name in RETRIEVERS]
            cells = [
                row["corpus"],
                str(row["asked"]),
                *(_difference(now, then, k) for now, then in pairs for k in ("@5", "@10")),
                f"{row['seconds'] / earlier['seconds']:.1f}",
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _difference(system: Mapping[str, list[float]], baseline: Mapping[str, list[float]], k: str) -> str:
    if not system:
        return "-"
    difference = paired_difference(system[k], baseline[k]).interval
    return f"{difference.estimate:+.3f} [{difference.low:+.3f}, {difference.high:+.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="corpora; all of them without any")
    parser.add_argument("--data", type=Path, required=True, help="the folder of the data sets")
    parser.add_argument("--out", type=Path, required=True, help="where the indexes and results are kept")
    parser.add_argument("--passages", type=int, default=MOST_PASSAGES, help="how many of each corpus at most")
    parser.add_argument("--questions", type=int, default=MOST_QUESTIONS, help="how many of people's at most")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--before", type=Path, help="the folder of another run, to compare recall with")
    parser.add_argument("--one", choices=SETS, help="measure this corpus in this process")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)

    if options.one:
        row = measure(options.one, options.data, options.out, options.passages, options.questions)
        (options.out / f"{options.one}.json").write_text(json.dumps(row), "utf-8")
        return

    names = options.names or SETS
    for name in names:
        if not (options.out / f"{name}.json").exists():
            size = ["--passages", options.passages, "--questions", options.questions]
            arguments = ["--data", options.data, "--out", options.out, *size, "--one", name]
            subprocess.run([sys.executable, __file__, *map(str, arguments)], check=True)

    rows = [_kept(options.out, name) for name in names]
    print(json.dumps(rows) if options.json else table(rows))
    if options.before:
        before = {name: _kept(options.before, name) for name in names if (options.before / f"{name}.json").exists()}
        print(table_of_differences(rows, before))


def _kept(out: Path, name: str) -> dict[str, Any]:
    row: dict[str, Any] = json.loads((out / f"{name}.json").read_text("utf-8"))
    return row


if __name__ == "__main__":
    main()
