"""Counts how many replies of a model can be read, for every signature of the library, with and without a schema.

    python benchmarks/every_step.py --out runs/steps
    python benchmarks/readable_replies.py --inputs runs/steps/inputs.jsonl --lm gguf/qwen2.5-coder-0.5b.gguf \
        --replies runs/replies.jsonl --form free --form enforced

The inputs are what the library's own commands ask on real passages. A reply is read "at once" if JSON (under a schema)
or DSPy's own adapter (without one) reads it as it stands, "repaired" if this library's repair does, at a "second call",
or "no". Every reply is a line of `--replies` before the next: the same command goes on where it stopped, and without
`--lm` the table is made of what is there. `--record tests/recorded` keeps a few short ones of every signature, model
and form, which the tests read again; with each goes the `prompt_of` its signature, so that a test
can tell when no model has answered the present one.
"""

import argparse
import hashlib
import json
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import dspy
import pydantic
from dspy.utils.callback import BaseCallback
from dspy.utils.exceptions import AdapterParseError, LMError
from rich.console import Console
from rich.table import Table
from stand_in import machine

import kraq_dspy.signatures
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.kraq_lm import KraqLM
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.models.lms.schemas import is_typed
from kraq_dspy.papers.catalogue import setups
from kraq_dspy.settings import RoleSettings

FORMS = {"free": "none", "enforced": "json_schema"}
WAYS = ("at once", "repaired", "second call", "no")
Row = dict[str, Any]


class Completions(BaseCallback):  # type: ignore[misc]
    """The replies of one call and of its second try, in order."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def on_adapter_parse_start(self, call_id: str, instance: Any, inputs: Row) -> None:
        if not self.texts or self.texts[-1] != inputs["completion"]:  # an adapter's own parse may call its parent's
            self.texts.append(inputs["completion"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=Path, help="of every_step.py")
    parser.add_argument("--replies", type=Path, required=True)
    parser.add_argument("--lm")
    parser.add_argument("--api-base")
    parser.add_argument("--name", help="of the model in the table; --lm without its folder where not given")
    parser.add_argument("--form", choices=list(FORMS), action="append", help="both where not given")
    parser.add_argument("--signature", action="append", help="these alone")
    parser.add_argument(
        "--paper", choices=sorted(setups()), help="ask with the instructions that `--paper` sets for it"
    )
    parser.add_argument("--most", type=int, default=20, help="inputs of each signature")
    parser.add_argument("--longest", type=int, default=10**9, help="characters of an input; longer ones are left out")
    parser.add_argument("--max-tokens", type=int, default=1000)
    parser.add_argument("--concurrency", type=int, default=4)
    parser.add_argument("--threads", type=int, help="of a model in this process")
    parser.add_argument("--record", type=Path, help="folder for the tests' recorded replies")
    parser.add_argument("--keep", type=int, default=2, help="recorded of each signature, model, form and way")
    parser.add_argument("--each", action="store_true", help="a row for every signature")
    options = parser.parse_args()
    if options.lm:
        ask_all(options)
    rows = rows_of(options.replies) if options.replies.exists() else []
    print_table(rows, each=options.each)
    if options.record:
        record(rows, options.record, options.keep)


def ask_all(options: Any) -> None:
    name = options.name or Path(options.lm).stem
    done = {key_of(row) for row in rows_of(options.replies)} if options.replies.exists() else set()
    lock = threading.Lock()
    for form in options.form or FORMS:
        settings = RoleSettings(
            model=options.lm,
            api_base=options.api_base,
            threads=options.threads,
            max_tokens=options.max_tokens,
            temperature=0.0,
            structured=FORMS[form],
        )
        lm = make_lm(settings)

        def ask(question: tuple[type[dspy.Signature], Row], lm: KraqLM = lm, form: str = form) -> None:
            signature, inputs = question
            row = {"signature": signature.__name__, "model": name, "form": form_of(form, options), "inputs": inputs}
            row |= {"prompt": prompt_of(signature)} | asked(signature, inputs, lm)
            with lock, options.replies.open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(row, ensure_ascii=False) + "\n")

        todo = [
            (signature, inputs)
            for signature, inputs in questions(options)
            if form == "free" or is_typed(annotations(signature))  # text alone is asked for in the same way
            if key_of(
                {"signature": signature.__name__, "model": name, "form": form_of(form, options), "inputs": inputs}
            )
            not in done
        ]
        with ThreadPoolExecutor(options.concurrency) as pool:
            for number, _ in enumerate(pool.map(ask, todo), 1):
                if number % 10 == 0 or number == len(todo):
                    print(f"{name} {form}: {number} of {len(todo)}", flush=True)
        lm.engine.close()


def form_of(form: str, options: Any) -> str:
    return f"{form}, {options.paper}" if options.paper else form


def asked(signature: type[dspy.Signature], inputs: Row, lm: KraqLM) -> Row:
    """The first reply, how it could be read, the second one if there was any, and what it took."""
    completions, start = Completions(), time.monotonic()
    failure = ""
    with dspy.context(lm=lm, adapter=KraqAdapter(callbacks=[completions])):
        try:
            dspy.Predict(signature)(**typed(signature, inputs))
        except AdapterParseError:
            pass  # told apart from a failure below
        except LMError as error:  # a refusal is a reply that cannot be read; a server that is down ends the run
            failure = f"{type(error).__name__}: {error}"[:300]
    first = completions.texts[0] if completions.texts else ""
    way = readable(signature, first)
    row: Row = {"reply": first, "readable": way, "seconds": round(time.monotonic() - start, 2)}
    if len(completions.texts) > 1:
        second = completions.texts[-1]
        row |= {"second_reply": second, "second_readable": readable(signature, second)}
    return {**row, "failure": failure} if failure else row


def readable(signature: type[dspy.Signature], reply: str) -> str:
    """At once, repaired, or no; an empty answer, which DSPy's own adapter takes, is none."""
    try:
        KraqAdapter().parse(signature, reply)
    except AdapterParseError:
        return "no"
    return "at once" if strictly_read(signature, reply) else "repaired"


def strictly_read(signature: type[dspy.Signature], reply: str) -> bool:
    fields = annotations(signature)
    try:
        values = json.loads(reply)
        if isinstance(values, dict) and set(values) == set(fields):
            for name, annotation in fields.items():
                pydantic.TypeAdapter(annotation).validate_python(values[name])
            return True
    except ValueError:
        pass  # no JSON: it may be in DSPy's own form
    try:
        return set(dspy.ChatAdapter().parse(signature, reply)) == set(fields)
    except AdapterParseError:
        return False


def way_of(row: Row) -> str:
    if row["readable"] == "no" and row.get("second_readable", "no") != "no":
        return "second call"
    return str(row["readable"])


def print_table(rows: Sequence[Row], *, each: bool) -> None:
    """A row for each model and form (and signature). Signatures of text alone count in both forms."""
    groups: dict[tuple[str, ...], Counter[str]] = defaultdict(Counter)
    for row in rows:
        typed_fields = is_typed(annotations(getattr(kraq_dspy.signatures, row["signature"])))
        for form in [row["form"]] if typed_fields else list(FORMS):
            groups[row["model"], form, *([row["signature"]] if each else [])][way_of(row)] += 1
    table = Table(title=machine())
    for column in ["model", "form", *(["signature"] if each else []), "replies", *WAYS, "readable"]:
        table.add_column(column)
    for group, ways in sorted(groups.items()):
        total = ways.total()
        share = (total - ways["no"]) / total
        table.add_row(*group, str(total), *(str(ways[way]) for way in WAYS), f"{100 * share:.1f} %")
    Console(width=140).print(table)


def record(rows: Sequence[Row], folder: Path, keep: int) -> None:
    """The shortest replies of every signature, model, form and way, with what was read of them; what was said at a
    second call is of a form of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    groups: dict[str, dict[tuple[str, ...], list[Row]]] = defaultdict(lambda: defaultdict(list))
    second = [
        {**row, "form": f"{row['form']}, again", "reply": row["second_reply"], "readable": row["second_readable"]}
        for row in rows
        if "second_reply" in row
    ]
    for row in (*rows, *second):
        if row["reply"]:
            groups[row["signature"]][row["model"], row["form"], row["readable"]].append(row)
    for name, kinds in sorted(groups.items()):
        signature = getattr(kraq_dspy.signatures, name)
        lines = []
        for _, of_kind in sorted(kinds.items()):
            for row in sorted(of_kind, key=lambda row: len(json.dumps(row["inputs"])) + len(row["reply"]))[:keep]:
                names = ("model", "form", "prompt", "inputs", "reply", "readable")
                shown = {key: row[key] for key in names if key in row}
                lines.append(json.dumps({**shown, "items": items_read(signature, row["reply"])}, ensure_ascii=False))
        (folder / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def prompt_of(signature: Any) -> str:
    """Eight letters that change with what a model is told: the instructions, and of each field its
    name, its words and its type.

    >>> prompt_of(kraq_dspy.signatures.AskFact) == prompt_of(kraq_dspy.signatures.AskList)
    False
    """
    parts: list[Any] = [signature.instructions, list(signature.input_fields)]
    for name, field in signature.fields.items():
        parts.append([name, field.json_schema_extra["desc"], _type_of(field.annotation)])
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:8]


def _type_of(annotation: Any) -> Any:
    """The JSON schema of a field's type, without the docstrings of dataclasses, which speak to
    readers of the code."""
    return _without_docstrings(pydantic.TypeAdapter(annotation).json_schema())


def _without_docstrings(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_without_docstrings(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    keys = schema.keys() - {"description"}
    return {key: _without_docstrings(schema[key]) for key in keys}


def items_read(signature: type[dspy.Signature], reply: str) -> dict[str, int]:
    """How many items of each list were read."""
    try:
        values = KraqAdapter().parse(signature, reply)
    except AdapterParseError:
        return {}
    return {name: len(value) for name, value in values.items() if isinstance(value, list)}


def questions(options: Any) -> Iterator[tuple[type[dspy.Signature], Row]]:
    counts: Counter[str] = Counter()
    for row in rows_of(options.inputs):
        name, only = row["signature"], options.signature
        if counts[name] >= options.most or (only and name not in only) or not hasattr(kraq_dspy.signatures, name):
            continue
        if len(json.dumps(row["inputs"])) > options.longest:
            continue
        signature = getattr(kraq_dspy.signatures, name)
        if options.paper:
            if name not in setups()[options.paper].prompts:
                continue
            signature = signature.with_instructions(setups()[options.paper].prompts[name])
            signature.__name__ = name  # DSPy calls every changed signature StringSignature
        counts[name] += 1
        yield signature, row["inputs"]


def typed(signature: type[dspy.Signature], inputs: Row) -> Row:
    return {
        name: pydantic.TypeAdapter(field.annotation).validate_python(inputs[name])
        for name, field in signature.input_fields.items()
    }


def annotations(signature: Any) -> dict[str, Any]:
    return {name: field.annotation for name, field in signature.output_fields.items()}


def key_of(row: Row) -> str:
    return json.dumps([row["signature"], row["model"], row["form"], row["inputs"]], sort_keys=True)


def rows_of(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    main()
