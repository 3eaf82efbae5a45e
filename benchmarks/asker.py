"""Trains and reads what words a question of a statement and its answer (`kraq finetune asker`), beside the parse.

    python benchmarks/asker.py pairs --data ../shared/data/asking/pairs.jsonl.gz --out runs/asker
    kraq finetune asker --base gguf/smollm2-135m --pairs runs/asker/train.jsonl --out runs/asker/adapter \\
        --rank 8 --dropout 0 --learning-rate 6e-4 --epochs 1 --batch-size 8 --accumulate 1 --held-out 0.01 \\
        --target-modules "$(python benchmarks/asker.py layers)"
    python benchmarks/asker.py statements --data ../shared/data --out runs/asker
    python benchmarks/asker.py ask --out runs/asker --lm gguf/smollm2-135m --adapter runs/asker/adapter --name tuned
    python benchmarks/asker.py sheet --out runs/asker     # to be read without its key
    python benchmarks/asker.py table --out runs/asker --marks runs/asker/marks.tsv

The sheet has a line for each question: a number, the statement, the answer, the question; marks.tsv the number and
"good", or what is wrong ("grammar", "answer", "alone"). "as shown" is what a user gets: the model's question where the
checks pass it, else the parse's.
"""

import argparse
import csv
import gzip
import json
import random
import re
import time
import urllib.parse
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError
from rich.console import Console
from rich.table import Table
from stand_in import machine

from kraq_dspy.finetune.lora_model import TrainPackages, read_base
from kraq_dspy.finetune.pairs import Pair, chats_of
from kraq_dspy.finetune.token_rows import token_row
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.local_models import local_file
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.programs.kraq.question_text import question_in, with_mark
from kraq_dspy.programs.kraq.wording import asked_kind, fault_in, stated_in
from kraq_dspy.reading.reader import reader
from kraq_dspy.settings import QUESTION_TOKENS, RoleSettings
from kraq_dspy.signatures import WordQuestion

SOURCES = {"new_wiki": (760, 420), "qamr": (440, 220)}  # pairs taken, and of these at most so many that ask for a thing
LONGEST_ROW = 192  # tokens
UPPER = range(14, 30)  # layers that are adapted: the gradients of those below need not be computed
MODULES = "self_attn.q_proj self_attn.k_proj self_attn.v_proj self_attn.o_proj mlp.gate_proj mlp.up_proj mlp.down_proj"
CORPORA = ("papers", "policies", "tales", "meetings")
OF_CORPUS = 10  # statements
READ = 120  # passages of a corpus that they are drawn from
LEAST_WEIGHT = 0.4  # of a parsed question that is shown (rule_based/exam/facts.py)
PARSE = "parse"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["pairs", "layers", "statements", "ask", "sheet", "table"])
    parser.add_argument("--out", type=Path, default=Path("runs/asker"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--lm")
    parser.add_argument("--adapter")
    parser.add_argument("--name", help="of the row in the table")
    parser.add_argument("--marks", type=Path)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    steps = {"pairs": pairs, "layers": layers, "statements": statements, "ask": ask, "sheet": sheet, "table": table}
    steps[options.step](options)


def pairs(options: Any) -> None:
    """Pairs that the checks let pass, at most two of a statement, short ones, in a drawn order."""
    packages = TrainPackages()
    with packages.quiet():
        tokenizer, _ = read_base(packages, str(local_file("smollm2-135m")))
    fitting = []
    of_statement: Counter[str] = Counter()
    for row in rows_of(options.data):
        statement = plain_statement(row) if row["source"] in SOURCES else ""
        if not statement:
            continue
        of_statement[statement] += 1
        pair = Pair(row["id"], {"statement": statement, "answer": row["answer"]}, {"question": row["question"]}, "", "")
        n_tokens = len(token_row(tokenizer, chats_of([pair], "asker")[0]).ids)
        if of_statement[statement] <= 2 and n_tokens <= LONGEST_ROW:
            fitting.append({**row, "statement": statement})

    random.seed(0)
    random.shuffle(fitting)
    taken, things = Counter[str](), Counter[str]()
    with (options.out / "train.jsonl").open("w", encoding="utf-8") as lines:
        for row in fitting:
            most, most_things = SOURCES[row["source"]]
            is_thing = asked_kind(row["question"]) == "what"
            if taken[row["source"]] < most and not (is_thing and things[row["source"]] >= most_things):
                taken[row["source"]] += 1
                things[row["source"]] += is_thing
                kept = {name: row[name] for name in ("id", "statement", "answer", "question", "source")}
                lines.write(json.dumps(kept, ensure_ascii=False) + "\n")
    print(dict(taken))


def plain_statement(row: dict[str, Any]) -> str:
    """The statement, behind its title where the question needs that; "" for a pair that is not learned from."""
    question, answer, statement = row["question"], row["answer"], row["statement"]
    title = urllib.parse.unquote(row["title"]).replace("_", " ")
    fault = fault_in(question, statement, answer)
    if fault.startswith("says what the statement does not") and title:
        fault = fault_in(question, f"{title}\n{statement}", answer)
        statement = f"{title}\n{statement}"
    is_damaged = re.search(r"-LRB-|\[|\(\(", statement) or " ?" in question or not re.match(r"[A-Z]", question)
    is_fitting = len(row["statement"].split()) <= 45 and len(answer.split()) <= 12 and answer in row["statement"]
    says_nothing = len(answer.strip()) < 2 or answer.lower() in ("this", "it", "he", "they", "that", "the")
    is_short = len(question.split()) < 6
    return "" if fault or is_damaged or not is_fitting or says_nothing or is_short else statement


def layers(options: Any) -> None:
    print(",".join(f"{layer}.{module}" for layer in UPPER for module in MODULES.split()))


def statements(options: Any) -> None:
    """Statements of corpora that nothing learned from, one question of the parse each, drawn evenly over passages."""
    file = options.out / "statements.jsonl"
    drawn = rows_of(file) if file.exists() else []
    for corpus in CORPORA:
        if any(row["id"].startswith(corpus) for row in drawn):
            continue
        passages = rows_of(options.data / corpus / "corpus.jsonl.gz")
        every = passages[:: max(1, len(passages) // READ)][:READ]
        of_passages = []
        for passage in every:
            analysis = reader().analysis("\n".join(filter(None, [passage.get("title", ""), passage["text"]])))
            asked = [each for _, each in analysis.asked() if each.weight >= LEAST_WEIGHT] if analysis else []
            stated = [each for question in asked if analysis and (each := stated_in(question.question, [analysis]))]
            random.Random(passage["id"]).shuffle(stated)
            of_passages += [(place, each) for place, each in enumerate(stated[:2])]
        random.Random(0).shuffle(of_passages)
        chosen = sorted(of_passages, key=lambda each: each[0])[:OF_CORPUS]  # a second one only where passages are few
        drawn += [{"id": f"{corpus}-{place}", **each.inputs()} for place, (_, each) in enumerate(chosen)]
        print(corpus, len(every), "passages,", len(of_passages), "questions,", len(chosen), "drawn", flush=True)
        write(file, drawn)


def ask(options: Any) -> None:
    """Words each statement by one model; the same command goes on."""
    file = options.out / f"asked-{options.name}.jsonl"
    done = {row["id"] for row in rows_of(file)} if file.exists() else set()
    role = RoleSettings(options.lm, adapter=options.adapter, max_tokens=QUESTION_TOKENS, temperature=0.0, threads=1)
    lm, step = make_lm(role), dspy.Predict(WordQuestion)
    with file.open("a", encoding="utf-8") as lines:
        for row in rows_of(options.out / "statements.jsonl"):
            if row["id"] in done:
                continue
            began, cpu = time.monotonic(), time.process_time()
            with dspy.context(lm=lm, adapter=KraqAdapter()):
                try:
                    said = step(statement=row["statement"], answer=row["answer"]).question or ""
                except AdapterParseError as error:
                    said = ""
                    print(row["id"], error, flush=True)
            question = with_mark(question_in(said))
            fault = fault_in(question, row["statement"], row["answer"], row["word"])
            asked = {"id": row["id"], "question": question, "fault": fault}
            asked |= {"seconds": time.monotonic() - began, "processor": time.process_time() - cpu}
            lines.write(json.dumps(asked, ensure_ascii=False) + "\n")
            lines.flush()


def sheet(options: Any) -> None:
    """All questions in a drawn order, equal ones once, without who asked; key.tsv says that."""
    lines, key = [], []
    statements_by_id = {row["id"]: row for row in rows_of(options.out / "statements.jsonl")}
    asked_by: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for id, row in statements_by_id.items():
        asked_by[id, row["own"]].append(PARSE)
    for file in sorted(options.out.glob("asked-*.jsonl")):
        for row in rows_of(file):
            asked_by[row["id"], row["question"]].append(file.stem.removeprefix("asked-"))
    order = sorted(asked_by)
    random.Random(1).shuffle(order)
    for number, (id, question) in enumerate(order, 1):
        statement = statements_by_id[id]
        lines.append([number, statement["statement"].replace("\n", " # "), statement["answer"], question])
        key.append([number, id, ",".join(asked_by[id, question]), question])
    for name, rows in (("sheet", lines), ("key", key)):
        with (options.out / f"{name}.tsv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, delimiter="\t").writerows(rows)


def table(options: Any) -> None:
    marks = {row[0]: row[1] for row in tsv(options.marks)}
    key = tsv(options.out / "key.tsv")
    mark_of = {(id, name): marks[number] for number, id, names, _ in key for name in names.split(",")}
    names = [PARSE, *(file.stem.removeprefix("asked-") for file in sorted(options.out.glob("asked-*.jsonl")))]
    shown = Table(title=machine())
    for column in ("asked by", "n", "good", "grammar", "answer", "alone", "pass the checks", "good of these",
                   "good as shown", "processor s"):  # fmt: skip
        shown.add_column(column)
    for name in names:
        rows = rows_of(options.out / f"asked-{name}.jsonl") if name != PARSE else []
        ids = [row["id"] for row in rows or rows_of(options.out / "statements.jsonl")]
        counts = Counter(mark_of[id, name] for id in ids)
        passed = {row["id"] for row in rows if not row["fault"]} if rows else set(ids)
        good = sum(mark_of[id, name] == "good" for id in passed)
        as_shown = sum(mark_of[id, name if id in passed else PARSE] == "good" for id in ids)
        seconds = f"{sum(row['processor'] for row in rows) / len(rows):.1f}" if rows else ""
        wrong = (str(counts[each]) for each in ("grammar", "answer", "alone"))
        shown.add_row(
            name, str(len(ids)), str(counts["good"]), *wrong, str(len(passed)), str(good), str(as_shown), seconds
        )
    Console(width=160).print(shown)


def rows_of(file: Path) -> list[dict[str, Any]]:
    raw = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    return [json.loads(line) for line in raw.decode("utf-8").split("\n") if line.strip()]


def tsv(file: Path) -> list[list[str]]:
    with file.open(encoding="utf-8", newline="") as lines:
        return list(csv.reader(lines, delimiter="\t"))


def write(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


if __name__ == "__main__":
    main()
