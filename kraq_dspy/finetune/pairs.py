"""Reads and writes what a generator, an asker or a drafter is trained on: rows of a JSON-lines file, with their origin.

A summary that gives its question away teaches to copy: `leak` finds such pairs.
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from kraq_dspy._internal.files import json_objects
from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.errors import TrainingError
from kraq_dspy.finetune.token_rows import Chat
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.programs.kraq.wording import fault_in
from kraq_dspy.records import content_id
from kraq_dspy.signatures import DraftAnswer, GenerateQuestion, WordQuestion

SIGNATURES: Mapping[str, Any] = {"generator": GenerateQuestion, "asker": WordQuestion, "drafter": DraftAnswer}
"""The step that each of them does: its prompt in training is the one that it is asked with."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Inputs and outputs of a step, to train a model on.

    Args:
        id: the id of the pair.
        inputs: the input fields.
        outputs: the output fields.
        source: the data set or index behind the pair.
        example_id: the id of the question in the source.
        document_ids: ids of the evidence.
        model: the model that wrote the missing fields; "" if no field was missing.

    >>> Pair.generator("Ada wrote notes.", "What did Ada write?", source="notes", example_id="1").outputs
    {'question': 'What did Ada write?'}
    """

    id: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Any]
    source: str
    example_id: str
    document_ids: tuple[str, ...] = ()
    model: str = ""

    @classmethod
    def generator(cls, summary: str, question: str, *, source: str, example_id: str, **about: Any) -> "Pair":
        key = content_id("generator", source, example_id)
        return cls(key, {"summary": summary}, {"question": question}, source, example_id, **about)

    def row(self) -> dict[str, Any]:
        """One line of the file: the fields beside their provenance."""
        about = asdict(self)
        return {**about.pop("inputs"), **about.pop("outputs"), **about}


def read_pairs(path: Path, kind: str = "generator") -> list[Pair]:
    """Read the pairs of a file.

    Args:
        path: JSON lines.
        kind: the step: "generator", "asker" or "drafter".

    Returns:
        The pairs, in their order.

    Raises:
        TrainingError: if the file is absent or empty, or a line lacks a field.

    >>> _ = Path("pairs.jsonl").write_text('{"summary": "Ada wrote notes.", "question": "What did Ada write?"}')
    >>> read_pairs(Path("pairs.jsonl"))[0].inputs
    {'summary': 'Ada wrote notes.'}
    """
    if not path.exists():
        raise TrainingError(f"There is no file {str(path)!r}. Make pairs with `kraq finetune pairs --out {path}`.")

    signature = SIGNATURES[kind]
    pairs = []
    for number, (where, row) in enumerate(json_objects(path, TrainingError, "the pairs"), start=1):
        values = {name: row.get(name) for name in (*signature.input_fields, *signature.output_fields)}
        for name, value in values.items():
            if not isinstance(value, list if name == "passages" else str) or not value:
                raise TrainingError(
                    f"{where}: {name} is {value!r}; expected {'a list of texts' if name == 'passages' else 'text'}. "
                    f"A row for the {kind} has {', '.join(values)}."
                )

        source, example = str(row.get("source", path.name)), str(row.get("example_id", number))
        pairs.append(
            Pair(
                id=str(row.get("id") or content_id(kind, source, example)),
                inputs={name: values[name] for name in signature.input_fields},
                outputs={name: values[name] for name in signature.output_fields},
                source=source,
                example_id=example,
                document_ids=tuple(row.get("document_ids") or ()),
                model=str(row.get("model", "")),
            )
        )

    if not pairs:
        raise TrainingError(f"{str(path)!r} holds no pairs. Make some with `kraq finetune pairs --out {path}`.")
    return pairs


def plain_pairs(pairs: Sequence[Pair], sources: Collection[str] = ()) -> tuple[list[Pair], Counter[str]]:
    """The pairs for the asker that its own checks would let pass, and how many of the others have which fault.

    What the checks strike is not learned: questions that say more than their statement, that point elsewhere, that have
    their answer. Pairs of other data sets than `sources` are left out, too, if some are named.

    >>> ada = {"statement": "Ada met Charles Babbage in 1833.", "answer": "1833"}
    >>> asked = [Pair(text, ada, {"question": text}, "s", "1") for text in ("When did Ada meet him?", "When?")]
    >>> plain_pairs(asked)[1].total()
    2
    """
    faults: Counter[str] = Counter()
    plain = []
    for pair in pairs:
        fault = "is of another data set" if sources and pair.source not in sources else ""
        fault = fault or fault_in(pair.outputs["question"], pair.inputs["statement"], pair.inputs["answer"])
        if fault:
            faults[fault.partition(":")[0]] += 1
        else:
            plain.append(pair)
    return plain, faults


def chats_of(pairs: Sequence[Pair], kind: str) -> list[Chat]:
    """Make a chat of each pair: the messages of the step, and the expected reply.

    Args:
        pairs: the pairs.
        kind: the step: "generator", "asker" or "drafter".

    Returns:
        A list of messages for each pair.

    >>> pair = Pair.generator("Ada wrote notes.", "What did Ada write?", source="notes", example_id="1")
    >>> [message["role"] for message in chats_of([pair], "generator")[0]]
    ['system', 'user', 'assistant']
    """
    signature, adapter = SIGNATURES[kind], KraqAdapter()
    return [
        adapter.format_finetune_data(signature, [], dict(pair.inputs), dict(pair.outputs))["messages"] for pair in pairs
    ]


SHARED_RUN = 6
"""So many words in a row that the question has too are a quotation; names are rarely as long."""
SHARED_WORDS = 0.8
"""One sentence with such a share of the question's telling words says what is asked."""
FEWEST_WORDS = 4
_TALK = re.compile(
    r"\b(the|this|a|such a) question (is|asks|about|concerns|remains)\b|\bmight ask\b|\basks? (wh|how)", re.IGNORECASE
)
_DULL = frozenset(
    "a an and are as at be been by did do does for from had has have he her his how in is it its of on or she "  # noqa: SIM905
    "that the their they this to was were what when where which who whom whose why will with".split()
)


def leak(summary: str, question: str) -> str | None:
    """Return what gives the question away, in a few words; None if nothing does. Case and
    punctuation do not count."""
    if "?" in summary:
        return "the summary has a question"
    if _TALK.search(summary):
        return "the summary speaks of a question"

    summary_words, question_words = _words(summary), _words(question)
    if " ".join(question_words) in " ".join(summary_words):
        return "the summary has the question's words"

    run = SequenceMatcher(None, summary_words, question_words, autojunk=False).find_longest_match()
    if run.size >= SHARED_RUN:
        return f"{SHARED_RUN} or more words in a row are the question's"

    telling = set(question_words) - _DULL
    if len(telling) >= FEWEST_WORDS:
        for start, end in sentence_spans(summary):
            share = len(telling & set(_words(summary[start:end]))) / len(telling)
            if share >= SHARED_WORDS:
                return "one sentence has most of the question's telling words"
    return None


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
