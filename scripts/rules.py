"""Listens to the rules of the embedded model over corpora, and names those that hardly fire.

    python scripts/rules.py [CORPUS ...] [--data ../shared/data] [--passages 40]

A rule is a pattern, a list of words or a predicate (a function that returns a bool) of `kraq_dspy/embedded` and
`kraq_dspy/language`. It fires where the pattern matches, the list has a word that is looked up, or the predicate is
true. Of each corpus, passages are parsed and indexed, a test set is made, questions are asked in a conversation and
judged, and every signature is called. Named are rules that fire fewer than five times, or on one corpus alone;
`tests/embedded/rarely.toml` says why each of them stays. Not heard are rules inside of a table, and lists that are only
added to others. The exit code is 1 if one is named that is not listed. It takes two minutes. Without the data, the only
corpus is the bundled example.
"""

import argparse
import contextlib
import functools
import gzip
import importlib
import inspect
import json
import pkgutil
import random
import re
import sys
import tempfile
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import dspy

import kraq_dspy.embedded
import kraq_dspy.language
from kraq_dspy import Document, Workspace, build_index, bundled_example, evaluate, make_lm, signatures
from kraq_dspy.embedded.reading import kept
from kraq_dspy.errors import ModelError
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.testset.making import make_testset

ROOT = Path(__file__).resolve().parents[1]
RARELY = ROOT / "tests" / "embedded" / "rarely.toml"
DATA = ROOT.parent / "shared" / "data"
CORPORA = ("squad", "hotpotqa", "clapnq", "tv_manual", "docs_vite")
FEWEST = 5
QUESTIONS = 20
MOST_CHARACTERS = 1500
FOLLOW_UPS = ("And why?", "What else is said of it?", "Thanks!")
TYPED = ("bool", "int", "Optional[int]", "list[str]", "Literal['yes', 'no']")
FIRED: Counter[str] = Counter()
"""How often each rule fired in the corpus that is being read."""


class HeardPattern:
    """A pattern that counts its matches."""

    def __init__(self, name: str, pattern: re.Pattern[str]) -> None:
        self._name, self._pattern = name, pattern

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._pattern, name)
        if not callable(method):
            return method

        @functools.wraps(method)
        def heard(*arguments: Any, **options: Any) -> Any:
            text = arguments[1] if name in ("sub", "subn") else arguments[0]
            is_whole = name in ("match", "fullmatch")
            FIRED[self._name] += getattr(self._pattern, name if is_whole else "search")(text) is not None
            return method(*arguments, **options)

        return heard


class HeardWords(frozenset[str]):
    """A list of words that counts those that are found in it."""

    name: str

    def __contains__(self, word: object) -> bool:
        is_in = super().__contains__(word)
        FIRED[self.name] += is_in
        return is_in

    def isdisjoint(self, other: Any) -> bool:
        is_apart = super().isdisjoint(other)
        FIRED[self.name] += not is_apart
        return is_apart

    def __and__(self, other: Any) -> frozenset[str]:
        common = frozenset(super().__and__(frozenset(other)))
        FIRED[self.name] += bool(common)
        return common

    __rand__ = __and__


def modules() -> list[ModuleType]:
    """The modules of the embedded model and of language."""
    found = []
    for package in (kraq_dspy.embedded, kraq_dspy.language):
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            found.append(importlib.import_module(each.name))
    return found


def rules() -> Iterator[tuple[str, Any, ModuleType | type]]:
    """Each rule by its name, "reading.clause:_is_plain", with the object and what holds it."""
    for module in modules():
        place = module.__name__.removeprefix("kraq_dspy.").removeprefix("embedded.")
        for name, value in list(vars(module).items()):
            is_own = getattr(value, "__module__", "") == module.__name__
            is_list = isinstance(value, frozenset) and bool(value) and _are_words(value)
            is_predicate = is_own and inspect.isfunction(value) and _is_predicate(value)
            if isinstance(value, re.Pattern) or is_list or is_predicate:
                yield f"{place}:{name}", value, module
            elif is_own and inspect.isclass(value):
                for method, function in list(vars(value).items()):
                    if inspect.isfunction(function) and _is_predicate(function) and not method.startswith("__"):
                        yield f"{place}:{name}.{method}", function, value


def _are_words(value: frozenset[Any]) -> bool:
    return all(isinstance(each, str) for each in value)


def _is_predicate(function: Callable[..., Any]) -> bool:
    return function.__annotations__.get("return") in (bool, "bool")


def listed() -> dict[str, str]:
    """Why each rule of `rarely.toml` stays, by its name."""
    return {name: kind for kind, names in tomllib.loads(RARELY.read_text("utf-8")).items() for name in names}


def listen() -> list[str]:
    """Put a counting form in the place of each rule, in every module that has it; the names of all."""
    heard: dict[int, Any] = {}
    names = []
    for name, value, holder in list(rules()):
        if id(value) in heard:
            continue  # it is known by the module that has it first
        names.append(name)
        heard[id(value)] = _heard(name, value)
        if isinstance(holder, type):
            setattr(holder, name.rpartition(".")[2], heard[id(value)])
    for module in [each for key, each in sys.modules.items() if key.startswith("kraq_dspy.")]:
        for key, value in list(vars(module).items()):
            if id(value) in heard and not isinstance(value, ModuleType):
                setattr(module, key, heard[id(value)])
    return names


def _heard(name: str, value: Any) -> Any:
    if isinstance(value, re.Pattern):
        return HeardPattern(name, value)
    if isinstance(value, frozenset):
        words = HeardWords(value)
        words.name = name
        return words

    @functools.wraps(value)
    def predicate(*arguments: Any, **options: Any) -> bool:
        is_so = bool(value(*arguments, **options))
        FIRED[name] += is_so
        return is_so

    return predicate


def read(corpus: Path, count: int) -> tuple[list[Document], list[str]]:
    """Documents of 1,500 characters at most and people's questions, if there are any, drawn alike in each run."""
    rows = _rows(corpus, "corpus")
    random.Random(0).shuffle(rows)
    documents = [Document(row["id"], row["title"], row["text"][:MOST_CHARACTERS]) for row in rows[:count]]
    ids = {document.id for document in documents}
    asked = _rows(corpus, "questions")
    random.Random(0).shuffle(asked)
    asked.sort(key=lambda row: not ids & set(row["supporting_ids"]))  # first those that the documents answer
    return documents, [row["question"] for row in asked[:QUESTIONS]]


def _rows(corpus: Path, name: str) -> list[Any]:
    plain, packed = corpus / f"{name}.jsonl", corpus / f"{name}.jsonl.gz"
    if packed.is_file():
        text = gzip.decompress(packed.read_bytes()).decode()
    else:
        text = plain.read_text("utf-8") if plain.is_file() else ""
    return [json.loads(line) for line in text.splitlines()]


def do_everything(documents: Sequence[Document], questions: Sequence[str], folder: Path) -> None:
    """Do with a corpus what people do: parse, index, make a test set, ask, judge, and call every signature."""
    passages = [f"{each.title}\n{each.text}" for each in documents]
    kept.remember({passage: kept.analysis(passage) for passage in passages})  # in this process, which listens
    build_index(documents, folder / "i.kraq")

    with Workspace.open(folder / "i.kraq") as space:
        rows = make_testset(space, QUESTIONS)
        questions = questions or [row.question for row in rows][:QUESTIONS]
        history: list[tuple[str, str]] = []
        answers = []
        for number, question in enumerate(questions):
            for each in (question, FOLLOW_UPS[number % len(FOLLOW_UPS)]):
                answer = space.ask(each, history=history, refuse=True).answer
                history.append((each, answer))
            answers.append({"question": question, "response": answer, "answer": passages[0]})
        evaluate(None, answers, ["judge", "rubric"], space=space)
        for row in rows:
            space.ask(row.question, program="traditional")
        call_signatures(passages, questions)


def call_signatures(passages: Sequence[str], questions: Sequence[str]) -> None:
    """Ask the embedded model for each signature of the package, and for typed values, with these texts."""
    own = [dspy.Signature(f"passages: list[str], question: str -> answer: {kind}") for kind in TYPED]
    called = [*(getattr(signatures, name) for name in signatures.NAMES), *own]
    with dspy.context(lm=make_lm("embedded"), adapter=KraqAdapter()):
        for number, question in enumerate(questions):
            near = [passages[(number + each) % len(passages)] for each in range(5)]
            for signature in called:
                inputs = {
                    name: _input(name, str(field.annotation), question, near)
                    for name, field in signature.input_fields.items()
                }
                with contextlib.suppress(ModelError):  # a value of a type that no text gives
                    dspy.Predict(signature)(**inputs)


def _input(name: str, annotation: str, question: str, passages: Sequence[str]) -> Any:
    """A text of the kind that the field's name says, of this annotation."""
    titles, bodies = zip(
        *((title, body) for title, _, body in (text.partition("\n") for text in passages)), strict=True
    )
    texts: Sequence[str] = passages
    if "question" in name or name in ("catalogue", "points"):
        texts = [question, *(f"What is {title}?" for title in titles)]
    elif name in ("first", "second", "name"):
        texts = titles
    elif name in ("answer", "response", "statement", "rationale", "reference_answers"):
        texts = [body.partition(". ")[0] for body in bodies]

    if "int" in annotation:
        return 4
    if "list[list" in annotation:
        return [list(titles[:2]), list(titles[2:])]
    if "list" in annotation:
        is_numbered = name in ("catalogue", "points")
        return [f"{number}: {text}" for number, text in enumerate(texts)] if is_numbered else list(texts)
    return texts[1 if name.startswith("second") else 0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="*", default=CORPORA)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--passages", type=int, default=40)
    options = parser.parse_args()
    corpora = [options.data / name for name in options.corpora] if options.data.is_dir() else [bundled_example()]

    names = listen()
    fired_by_corpus: dict[str, Counter[str]] = {}
    for corpus in corpora:
        FIRED.clear()
        with tempfile.TemporaryDirectory() as folder:
            do_everything(*read(corpus, options.passages), Path(folder))
        fired_by_corpus[corpus.name] = FIRED.copy()
        print(f"{corpus.name}: {sum(count > 0 for count in FIRED.values())} of {len(names)} rules fired", flush=True)

    reasons = listed()
    rare: defaultdict[str, list[str]] = defaultdict(list)
    for name in names:
        on = [corpus for corpus, fired in fired_by_corpus.items() if fired[name]]
        total = sum(fired[name] for fired in fired_by_corpus.values())
        if total < FEWEST or len(on) < min(2, len(corpora)):
            rare[reasons.pop(name, "")].append(f"{name} {total} {' '.join(on)}")
    for reason, lines in sorted(rare.items()):
        print(f"\n{reason or 'NO REASON'}: {len(lines)}", *lines, sep="\n  ")
    print(f"\nlisted, but they fire: {len(reasons)}", *reasons, sep="\n  ")
    sys.exit(bool(rare[""]))


if __name__ == "__main__":
    main()
