"""Makes corpora of two groups that share people and places, with canaries in all that only one group may read."""

import os
import random
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy import Document, Workspace, build_index
from kraq_dspy.indexing.prepare.preparations import PREPARATIONS
from kraq_dspy.ports import SilentProgress
from tests.kept import kept

CANARY = re.compile(r"zq[a-z]{8}qz", re.IGNORECASE)
"""How a canary looks; no other text has anything like it."""
PEOPLE = ("Anna Berg", "Carl Dahl", "Eva Falk", "Georg Holm", "Ida Lund", "Nils Roos", "Olga Stern", "Paul Vik")
PLACES = ("Helsinki Works", "Lisbon Harbour", "Vienna Library", "Oslo Theatre", "Turin Museum", "Ghent Hospital")
QUESTIONS = (
    "Who bought Helsinki Works?",
    "Whom did Anna Berg meet at Lisbon Harbour?",
    "What did Carl Dahl sell, and who paid for it?",
    "Which company has a contract with Vienna Library?",
)


@dataclass(frozen=True)
class Corpus:
    """`documents` of both groups, mixed; `canaries` stand in those of "board" alone."""

    documents: tuple[Document, ...]
    canaries: frozenset[str]


MANY = 1000
"""From so many canaries on a document of the board tells of many companies."""


def corpus(count: int, *, seed: int = 0) -> Corpus:
    """As many canaries as `count`, in documents of the board: in the id, which is the file's name, in the title, in the
    metadata, and as names in the text: one, or seventeen where there are many canaries, each in a sentence of its own.

    Of two documents one is everybody's.
    """
    chance = random.Random(seed)
    more_companies = 16 if count >= MANY else 0
    canaries: list[str] = []

    def canary() -> str:
        letters = "".join(chance.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(8))
        canaries.append(f"zq{letters}qz")
        return canaries[-1].capitalize()

    documents: list[Document] = []
    while len(canaries) < count:
        person, other = chance.sample(PEOPLE, 2)
        place, far = chance.sample(PLACES, 2)
        number = len(documents)
        open_text = (
            f"{person} met {other} at {place}. {person} lives near {far}. {place} was opened in {1900 + number % 99}, "
            f"says note {number}."
        )
        documents.append(Document(f"note-{number}.txt", f"{person} at {place}", open_text, labels=("staff",)))
        name, title, company = canary(), canary(), canary()
        secret_text = (
            f"{company} bought {place}. {person} met {company} at {place}. {other} sold a part of {far} to {company}, "
            f"and {company} has a contract with {far} of {1900 + number % 99}."
        )
        for _ in range(more_companies):
            secret_text += f" {canary()} bought {chance.choice(PLACES)} from {chance.choice(PEOPLE)}."
        documents.append(
            Document(
                f"{name}-{number}.txt", f"{title} and {person}", secret_text,
                source=f"{name}.txt", metadata={"project": canary(), "year": 1900 + number % 99}, labels=("board",),
            )
        )  # fmt: skip
    return Corpus(tuple(documents), frozenset(canaries))


CURTAIN = "zqcurtainsqz"
SKYE = "Flora MacDonald hid Charles Stuart on Skye"


def with_skye(some: Corpus) -> Corpus:
    """With two documents more, of both groups about the same names, whose community is the same in the whole and in the
    view."""
    skye = Document("skye", "Skye", f"{SKYE}.", labels=("staff",))
    curtain = Document("curtain", "Skye again", f"{SKYE} behind {CURTAIN}.", labels=("board",))
    return Corpus((*some.documents, skye, curtain), some.canaries | {CURTAIN})


def make_prepared(documents: Iterable[Document], path: Path) -> None:
    """An index of the documents, with the baseline's questions and with all that can be prepared."""
    build_index(documents, path, random_questions=True)
    with Workspace.open(path, write=True) as space:
        for preparation in PREPARATIONS.values():
            preparation.make(space.owned(), preparation.options(), SilentProgress())


def built_in(folder: Path, name: str, build: Callable[[Path], None], *, copied: bool = True) -> Path:
    """The index that `build` builds at a path, in the folder.

    It is built once for each state of the sources. Where `KRAQ_SCOPE_INDEXES` names another folder it is built there,
    once for all runs; tests get a copy, or without `copied` the index itself with the views that earlier runs made.
    """
    kept_in = os.environ.get("KRAQ_SCOPE_INDEXES")
    path = folder / f"{name}.kraq"
    if not kept_in:
        tests = "".join(file.read_text("utf-8") for file in sorted(Path(__file__).parent.glob("*.py")))
        return kept(name + tests, build, path)

    ready, draft = Path(kept_in) / path.name, Path(kept_in) / f"draft-{path.name}"
    if not ready.exists():
        shutil.rmtree(draft, ignore_errors=True)
        Path(kept_in).mkdir(parents=True, exist_ok=True)
        build(draft)
        draft.rename(ready)
    if not copied:
        return ready
    shutil.copytree(ready, path)
    return path
