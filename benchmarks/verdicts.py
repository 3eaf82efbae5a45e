"""Which answers do the steps that judge one let pass, by wording?

    python benchmarks/verdicts.py --data ../shared/data --lm transformers/FOLDER [--steps judge check] [--free]
        [--only now short] [--skip 12 --rows 12]

Questions of HotpotQA, four answers to each in turn: the gold one as it stands, the gold one in a sentence, the gold one
of another question, and the title of a passage that the question is about and that is not the answer. `judge` is
`JudgeAnswer` with the gold answer, `check` is `CheckResponse` with the supporting passages. `--skip` leaves out the
questions that a wording was chosen on. A reply that cannot be read lets nothing pass, and is counted.
"""

import argparse
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import dspy
from stand_in import machine

from kraq_dspy.config import RoleSettings
from kraq_dspy.eval.metrics.normalise import normalise_answer
from kraq_dspy.lms.roles import make_lm
from kraq_dspy.lms.structured.adapter import KraqAdapter
from kraq_dspy.optimize.rows import read_rows
from kraq_dspy.programs.failed_calls import CALL_ERRORS
from kraq_dspy.signatures import CheckResponse, JudgeAnswer

SENTENCES = ("I think that it was {} in the end", "According to the passages, the answer is {}.", "It is {}.")
KINDS = ("the gold answer", "in a sentence", "of another question", "of its passages")
RIGHT = KINDS[:2]
YES_OR_NO: Any = Literal["yes", "no"]
RIGHT_OR_WRONG: Any = Literal["right", "wrong"]

SAME_THING = (
    "Decide whether the answer gives the same thing as a reference answer. Any one reference is enough.\n\n"
    "Other words for it, a sentence around it or more detail make no difference. Another name, number, date or thing, "
    "several of them to choose from, or none is wrong."
)
SUPPORTED = (
    "Decide whether the context shows that the response answers the question correctly.\n\n"
    "A sentence around the answer makes no difference. Say no when the context gives another answer, or when the "
    "response is about something else that the context names."
)


@dataclass(frozen=True)
class Wording:
    instructions: str
    outputs: tuple[tuple[str, Any], ...]
    passes: tuple[object, ...] = (True, "yes", "right")


JUDGE, CHECK = JudgeAnswer.instructions, CheckResponse.instructions
WORDINGS: dict[str, dict[str, Wording]] = {
    "judge": {
        "now": Wording(JUDGE, (("correct", bool),)),
        "yes or no": Wording(JUDGE, (("correct", YES_OR_NO),)),
        "right or wrong": Wording(JUDGE, (("verdict", RIGHT_OR_WRONG),)),
        "the same thing": Wording(SAME_THING, (("correct", bool),)),
        "the same thing, yes or no": Wording(SAME_THING, (("same", YES_OR_NO),)),
        "says first": Wording(JUDGE, (("answer_says", str), ("correct", bool))),
    },
    "check": {
        "now": Wording(CHECK, (("valid", YES_OR_NO),)),
        "true or false": Wording(CHECK, (("valid", bool),)),
        "supported": Wording(SUPPORTED, (("valid", YES_OR_NO),)),
        "answers first": Wording(SUPPORTED, (("context_answers", str), ("valid", YES_OR_NO))),
    },
}
"""By step and name: the instructions, and what is to be written."""
SIGNATURES: dict[str, Any] = {"judge": JudgeAnswer, "check": CheckResponse}


@dataclass(frozen=True)
class Case:
    """An answer of one of `KINDS`."""

    kind: str
    question: str
    gold: str
    answer: str
    passages: tuple[str, ...]

    def inputs(self, step: str) -> dict[str, Any]:
        if step == "judge":
            return {"question": self.question, "reference_answers": [self.gold], "answer": self.answer}
        return {"question": self.question, "context": list(self.passages), "response": self.answer}


def cases(data: Path, skip: int, count: int) -> list[Case]:
    """`count` of each kind, of as many questions, behind the first `skip` that have all four."""
    documents = {document["id"]: document for document in read_rows(data / "hotpotqa/corpus.jsonl.gz")}

    def whole() -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
        for row in read_rows(data / "hotpotqa/questions.jsonl.gz"):
            passages = [documents[id] for id in dict.fromkeys(row["supporting_ids"]) if id in documents]
            gold = row["answers"][0] if row["answers"] else ""
            normal = normalise_answer(gold)
            others = [p["title"] for p in passages if not _overlap(normalise_answer(p["title"]), normal)]
            if normal and normal not in ("yes", "no") and others:
                yield row["question"], gold, others[-1], tuple(f"{p['title']}. {p['text']}" for p in passages)

    rows = list(islice(whole(), skip, skip + count))
    made = []
    for place, (question, gold, title, passages) in enumerate(rows):
        sentence = SENTENCES[place % len(SENTENCES)]
        elsewhere = rows[(place + 1) % len(rows)][1]
        wrapped = [sentence.format(each) if place % 2 else each for each in (elsewhere, title)]
        for kind, answer in zip(KINDS, (gold, sentence.format(gold), *wrapped), strict=True):
            made.append(Case(kind, question, gold, answer, passages))
    return made


def _overlap(first: str, second: str) -> bool:
    return first in second or second in first


def verdicts(
    step: str, wording: Wording, asked: Sequence[Case], lm: dspy.BaseLM, concurrency: int
) -> list[bool | None]:
    """Whether each is let pass; None where the reply cannot be read."""
    fields: dict[str, Any] = {name: (str, dspy.InputField()) for name in SIGNATURES[step].input_fields}
    fields = {name: (SIGNATURES[step].input_fields[name].annotation, each[1]) for name, each in fields.items()}
    fields |= {name: (kind, dspy.OutputField()) for name, kind in wording.outputs}
    predict = dspy.Predict(dspy.Signature(fields, wording.instructions))

    def verdict(case: Case) -> bool | None:
        with dspy.context(lm=lm, adapter=KraqAdapter()):
            try:
                said = predict(**case.inputs(step))
            except CALL_ERRORS as error:
                print(f"{case.question!r}: {error}")
                return None
        return said[wording.outputs[-1][0]] in wording.passes

    with ThreadPoolExecutor(concurrency) as pool:
        return list(pool.map(verdict, asked))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--lm", required=True)
    parser.add_argument("--steps", nargs="+", choices=list(WORDINGS), default=list(WORDINGS))
    parser.add_argument("--only", nargs="+", metavar="WORDING", help="wordings, by name; all without it")
    parser.add_argument("--free", action="store_true", help="hold no reply to a schema")
    parser.add_argument("--skip", type=int, default=0, help="questions that are left out")
    parser.add_argument("--rows", type=int, default=12, help="answers of each kind")
    parser.add_argument("--max-tokens", type=int, default=200)
    parser.add_argument("--concurrency", type=int, default=8)
    options = parser.parse_args()
    known = {name for step in options.steps for name in WORDINGS[step]}
    if unknown := set(options.only or ()) - known:
        parser.error(f"no wording {', '.join(sorted(unknown))}; there are: {', '.join(sorted(known))}")
    form = "none" if options.free else "auto"
    lm = make_lm(RoleSettings(options.lm, temperature=0.0, max_tokens=options.max_tokens, structured=form))
    asked = cases(options.data, options.skip, options.rows)
    print(
        f"{machine()}; {options.lm}; {'no schema' if options.free else 'under a schema'}; questions {options.skip + 1}"
        f" to {options.skip + options.rows}"
    )
    print(
        f"| step | wording | {' | '.join(KINDS)} | right of all | unreadable |\n|---|---|{'---|' * len(KINDS)}---|---|"
    )
    for step in options.steps:
        for name, wording in WORDINGS[step].items():
            if options.only and name not in options.only:
                continue
            said = verdicts(step, wording, asked, lm, options.concurrency)
            by_kind = {kind: [v for v, case in zip(said, asked, strict=True) if case.kind == kind] for kind in KINDS}
            cells = [f"{of_kind.count(True)} of {len(of_kind)}" for of_kind in by_kind.values()]
            right = sum((verdict is True) is (case.kind in RIGHT) for verdict, case in zip(said, asked, strict=True))
            print(
                f"| {step} | {name} | {' | '.join(cells)} | {right / len(asked):.3f} | {said.count(None)} |", flush=True
            )


if __name__ == "__main__":
    main()
