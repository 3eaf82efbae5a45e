"""Declares 40 faults and 40 harmless changes of a retrieval system, for `benchmarks/gate.py` to plant.

A system is a `Setup`: documents, how they are cut, what is embedded, the encoder's vectors, the question as it is
asked, and the retriever. A change takes a setup and returns another one. All were written down before the first run;
which of the faults cost people's questions anything, and which of the harmless changes do not, the run says.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kraq_dspy.ports import Vectors
from kraq_dspy.records import Chunk, Document
from kraq_dspy.settings import ChunkSettings


def _as_it_is(text: str) -> str:
    return text


def _unchanged(vectors: Vectors) -> Vectors:
    return vectors


def _all(chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    return chunks


@dataclass(frozen=True)
class Setup:
    """A retrieval system, in parts that a change may replace. `retriever` is dense, bm25 or hybrid.

    `write` says what is embedded and indexed of a chunk, `ask` how a question is put; `passages` and `questions` change
    the encoder's rows; `leak` is the share of the question before that is mixed into a question's vector. `least` is a
    cosine below which a hit is dropped, `probed` the share of an approximate search's cells that are looked into.
    """

    documents: tuple[Document, ...]
    retriever: str = "dense"
    chunks: ChunkSettings = field(default_factory=ChunkSettings)
    kept: Callable[[Sequence[Chunk]], Sequence[Chunk]] = _all
    write: Callable[[Chunk], str] = field(default=lambda chunk: chunk.passage)
    ask: Callable[[str], str] = _as_it_is
    passages: Callable[[Vectors], Vectors] = _unchanged
    questions: Callable[[Vectors], Vectors] = _unchanged
    leak: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)
    k: int = 10
    least: float = -1.0
    probed: float = 1.0


@dataclass(frozen=True)
class Planted:
    """A change under its name; it is made to a setup whose retriever is `retriever`."""

    name: str
    change: Callable[[Setup], Setup]
    retriever: str = "dense"


# Documents


def _drawn(documents: Sequence[Document], share: float, seed: int = 0) -> frozenset[str]:
    """Ids of a share of the documents, at least one."""
    ids = sorted(document.id for document in documents)
    random.Random(f"drawn {seed}").shuffle(ids)
    return frozenset(ids[: max(1, round(share * len(ids)))])


def of_documents(change: Callable[[Document], Document], share: float = 1.0) -> Callable[[Setup], Setup]:
    """A share of the documents is changed."""

    def planted(setup: Setup) -> Setup:
        drawn = _drawn(setup.documents, share)
        documents = (change(document) if document.id in drawn else document for document in setup.documents)
        return replace(setup, documents=tuple(documents))

    return planted


def missing(share: float) -> Callable[[Setup], Setup]:
    def planted(setup: Setup) -> Setup:
        drawn = _drawn(setup.documents, share)
        return replace(setup, documents=tuple(each for each in setup.documents if each.id not in drawn))

    return planted


def stopped_early(share: float) -> Callable[[Setup], Setup]:
    """The last documents were never read."""

    def planted(setup: Setup) -> Setup:
        return replace(setup, documents=setup.documents[: round((1 - share) * len(setup.documents))])

    return planted


def without_longest(share: float) -> Callable[[Setup], Setup]:
    """The longest documents were refused."""

    def planted(setup: Setup) -> Setup:
        ordered = sorted(setup.documents, key=lambda document: (-len(document.text), document.id))
        refused = {document.id for document in ordered[: round(share * len(ordered))]}
        return replace(setup, documents=tuple(each for each in setup.documents if each.id not in refused))

    return planted


def exchanged(share: float, *fields: str) -> Callable[[Setup], Setup]:
    """Documents of a share have the text, or the title, of the next one of them."""

    def planted(setup: Setup) -> Setup:
        drawn = [document for document in setup.documents if document.id in _drawn(setup.documents, share)]
        others = dict(zip((each.id for each in drawn), [*drawn[1:], *drawn[:1]], strict=True))
        documents = (
            replace(each, **{name: getattr(others[each.id], name) for name in fields}) if each.id in others else each
            for each in setup.documents
        )
        return replace(setup, documents=tuple(documents))

    return planted


def copied(share: float, copies: int) -> Callable[[Setup], Setup]:
    """A share of the documents is there several times more, under other ids."""

    def planted(setup: Setup) -> Setup:
        drawn = _drawn(setup.documents, share)
        twins = [
            replace(document, id=f"{document.id} copy {number}")
            for document in setup.documents
            if document.id in drawn
            for number in range(copies)
        ]
        return replace(setup, documents=(*setup.documents, *twins))

    return planted


def first_words(count: int) -> Callable[[Document], Document]:
    return lambda document: replace(document, text=" ".join(document.text.split()[:count]))


def untitled(document: Document) -> Document:
    return replace(document, title="")


def of_text(change: Callable[[str], str]) -> Callable[[Document], Document]:
    return lambda document: replace(document, text=change(document.text))


GERMAN = (
    "und der die das nicht auch wurde nach einem werden diese ihrer zwischen damals gegen durch sehr mehr seine ohne "
    "jahr haus stadt zeit leute arbeit lande wasser anfang ende grund teil frage sache weise kraft folge reihe stelle"
)


def in_german(text: str) -> str:
    """As a page in the wrong language looks to an English encoder: names and numbers stay, other words do not."""
    words, german = text.split(), GERMAN.split()
    draw = random.Random(text[:40])
    return " ".join(draw.choice(german) if word.islower() else word for word in words)


def misread(share: float) -> Callable[[str], str]:
    """As scanned: a share of the letters is another one."""

    def change(text: str) -> str:
        draw = random.Random(text[:40])
        letters = "abcdefghijklmnopqrstuvwxyz"
        return "".join(draw.choice(letters) if sign.isalpha() and draw.random() < share else sign for sign in text)

    return change


MENU = (
    "Home About us Products Services Contact Login Register My account Shopping cart Search Help Imprint Privacy "
    "policy Terms of use Accept all cookies Reject Settings Newsletter Follow us Share Print Next page Previous page "
    "Top of page Copyright All rights reserved Sitemap Careers Press Partners Blog Events Support Download Language"
)


def with_menu(words: int) -> Callable[[str], str]:
    menu = MENU.split()
    begin = " ".join((menu * (words // len(menu) + 1))[:words])
    return lambda text: f"{begin}. {text}"


def without_spaces(text: str) -> str:
    return re.sub(r" (?=\w{1,4}\b)", "", text)


# Chunks, vectors, questions, search


def in_chunks(tokens: int, overlap: int = 0, kept: Callable[[Sequence[Chunk]], Sequence[Chunk]] = _all) -> Any:
    return lambda setup: replace(setup, chunks=ChunkSettings(tokens=tokens, overlap=overlap), kept=kept)


def only_first(chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    return [chunk for chunk in chunks if chunk.position == 0]


def of_passages(change: Callable[[Vectors], Vectors]) -> Callable[[Setup], Setup]:
    return lambda setup: replace(setup, passages=change)


def of_both(change: Callable[[Vectors], Vectors]) -> Callable[[Setup], Setup]:
    return lambda setup: replace(setup, passages=change, questions=change)


def dimensions(count: int) -> Callable[[Vectors], Vectors]:
    return lambda vectors: np.concatenate([vectors[:, :count], np.zeros_like(vectors[:, count:])], axis=1)


def signs(vectors: Vectors) -> Vectors:
    return np.sign(vectors).astype(np.float32)


def levels(count: int) -> Callable[[Vectors], Vectors]:
    """Rounded to so many steps on either side of 0."""

    def change(vectors: Vectors) -> Vectors:
        largest = np.abs(vectors).max() or 1.0
        rounded: Vectors = (np.round(vectors / largest * count) / count).astype(np.float32)
        return rounded

    return change


def noise(strength: float, seed: int = 0) -> Callable[[Vectors], Vectors]:
    """Random directions of so many times a row's length are added."""

    def change(vectors: Vectors) -> Vectors:
        drawn = np.random.default_rng(seed).normal(size=vectors.shape) / np.sqrt(vectors.shape[1])
        noisy: Vectors = (vectors + strength * drawn).astype(np.float32)
        return noisy

    return change


def rows_changed(share: float, change: Callable[[Vectors], Vectors]) -> Callable[[Vectors], Vectors]:
    """A share of the rows, drawn by the seed 0."""

    def planted(vectors: Vectors) -> Vectors:
        drawn = np.random.default_rng(0).random(len(vectors)) < share
        changed: Vectors = np.where(drawn[:, None], change(vectors), vectors)
        return changed

    return planted


def of_the_row_before(vectors: Vectors) -> Vectors:
    return np.roll(vectors, 1, axis=0)


def nothing(vectors: Vectors) -> Vectors:
    return np.zeros_like(vectors)


def asked(change: Callable[[str], str]) -> Callable[[Setup], Setup]:
    return lambda setup: replace(setup, ask=change)


def begins_with(words: str) -> Callable[[Setup], Setup]:
    return asked(lambda question: words + question)


def cut_to(count: int) -> Callable[[Setup], Setup]:
    return asked(lambda question: " ".join(question.split()[:count]))


def written(change: Callable[[Chunk], str]) -> Callable[[Setup], Setup]:
    return lambda setup: replace(setup, write=change)


def with_setting(**values: Any) -> Callable[[Setup], Setup]:
    return lambda setup: replace(setup, **values)


def word_beginnings(letters: int) -> Callable[[Setup], Setup]:
    """Words are cut to their first letters, on both sides."""

    def cut(text: str) -> str:
        return " ".join(word[:letters] for word in re.findall(r"\w+", text))

    return lambda setup: replace(setup, write=lambda chunk: cut(chunk.passage), ask=cut)


def plain_words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text))


def without_short_words(text: str) -> str:
    return " ".join(word for word in text.split() if len(word) > 3 or not word.islower()) or text


STRAY = "The ferry leaves the harbour at noon. Tickets are sold on board; bicycles travel free of charge on weekdays."


def strangers(count: int) -> Callable[[Setup], Setup]:
    """Documents about something else come in."""

    def planted(setup: Setup) -> Setup:
        new = (Document(f"stray {number}", "", f"{STRAY} Boat {number}.") for number in range(count))
        return replace(setup, documents=(*setup.documents, *new))

    return planted


FAULTS = (
    Planted("a document in fifty is missing", missing(0.02)),
    Planted("a document in twenty is missing", missing(0.05)),
    Planted("a document in twelve is missing", missing(0.08)),
    Planted("the last twentieth was never read", stopped_early(0.05)),
    Planted("the longest twentieth was refused", without_longest(0.05)),
    Planted("all cut after 80 words", of_documents(first_words(80))),
    Planted("all cut after 50 words", of_documents(first_words(50))),
    Planted("a quarter cut after 30 words", of_documents(first_words(30), 0.25)),
    Planted("a tenth cut after 15 words", of_documents(first_words(15), 0.1)),
    Planted("titles lost", of_documents(untitled)),
    Planted("half of the titles lost", of_documents(untitled, 0.5)),
    Planted("a tenth has the next one's title", exchanged(0.1, "title")),
    Planted("stale: 3 in 100 hold another's text", exchanged(0.03, "title", "text")),
    Planted("stale: 8 in 100 hold another's text", exchanged(0.08, "title", "text")),
    Planted("5 in 100 vectors are the neighbour's", of_passages(rows_changed(0.05, of_the_row_before))),
    Planted("5 in 100 passages were not embedded", of_passages(rows_changed(0.05, nothing))),
    Planted("a twentieth in the wrong language", of_documents(of_text(in_german), 0.05)),
    Planted("a tenth in the wrong language", of_documents(of_text(in_german), 0.1)),
    Planted("scanned badly, 1 letter in 12", of_documents(of_text(misread(0.08)))),
    Planted("a quarter scanned badly, 1 letter in 5", of_documents(of_text(misread(0.2)), 0.25)),
    Planted("short words glued in a fifth", of_documents(of_text(without_spaces), 0.2)),
    Planted("a menu of 60 words before each", of_documents(of_text(with_menu(60)))),
    Planted("a menu of 150 words before a quarter", of_documents(of_text(with_menu(150)), 0.25)),
    Planted("1 in 100 is there 12 times more", copied(0.01, 12)),
    Planted("chunks of 16 tokens", in_chunks(16)),
    Planted("chunks of 24 tokens", in_chunks(24)),
    Planted("only the first 64 tokens", in_chunks(64, kept=only_first)),
    Planted("96 dimensions", of_both(dimensions(96))),
    Planted("48 dimensions", of_both(dimensions(48))),
    Planted("one bit for each dimension", of_both(signs)),
    Planted("the wrong prefix", begins_with("passage: title: none text: ")),
    Planted(
        "an instruction of another encoder",
        begins_with("Instruct: Given a web search query, retrieve relevant passages that answer the query. Query: "),
    ),
    Planted("questions cut after 9 words", cut_to(9)),
    Planted("questions cut after 6 words", cut_to(6)),
    Planted("a third of the question before is mixed in", with_setting(leak=0.35)),
    Planted("five passages in place of ten", with_setting(k=5)),
    Planted("hits below a cosine of .45 are dropped", with_setting(least=0.45)),
    Planted("a third of the cells is probed", with_setting(probed=0.35)),
    Planted("words cut to 4 letters", word_beginnings(4), "bm25"),
    Planted("all the weight on words", with_setting(options={"weight": 0.0}), "hybrid"),
)
"""Each may cost people's questions something; those that cost 1 to 10 points of recall@10 count."""

HARMLESS = (
    Planted("noise of a twentieth, 1", of_passages(noise(0.05, 1))),
    Planted("noise of a twentieth, 2", of_passages(noise(0.05, 2))),
    Planted("noise of a twentieth, 3", of_passages(noise(0.05, 3))),
    Planted("noise of a tenth, 1", of_passages(noise(0.1, 1))),
    Planted("noise of a tenth, 2", of_passages(noise(0.1, 2))),
    Planted("noise of a fifth", of_passages(noise(0.2, 1))),
    Planted("noise in questions, a tenth", with_setting(questions=noise(0.1, 4))),
    Planted("8 bits", of_both(levels(127))),
    Planted("6 bits", of_both(levels(31))),
    Planted("5 bits", of_both(levels(15))),
    Planted("380 dimensions", of_both(dimensions(380))),
    Planted("360 dimensions", of_both(dimensions(360))),
    Planted("340 dimensions", of_both(dimensions(340))),
    Planted("chunks of 250 tokens", in_chunks(250, 50)),
    Planted("chunks of 200 tokens", in_chunks(200, 50)),
    Planted("chunks of 400 tokens", in_chunks(400, 50)),
    Planted("no overlap", in_chunks(300, 0)),
    Planted("overlap of 100 tokens", in_chunks(300, 100)),
    Planted("the title twice", written(lambda chunk: f"{chunk.title}\n{chunk.passage}")),
    Planted("the title behind", written(lambda chunk: f"{chunk.text}\n{chunk.title}")),
    Planted("the title with a dash", written(lambda chunk: f"{chunk.title} - {chunk.text}")),
    Planted("no punctuation", written(lambda chunk: plain_words(chunk.passage))),
    Planted("a date below each", of_documents(of_text(lambda text: f"{text}\nLast changed on 1 May 2024."))),
    Planted("a line above each", of_documents(of_text(lambda text: f"From the archive. {text}"))),
    Planted("no question mark", asked(lambda question: question.rstrip("? "))),
    Planted("two question marks", asked(lambda question: question + "?")),
    Planted("begins with Question:", begins_with("Question: ")),
    Planted("begins with please", begins_with("Please tell me: ")),
    Planted("thanks at the end", asked(lambda question: question + " Thanks.")),
    Planted("15 documents about something else", strangers(15)),
    Planted("40 documents about something else", strangers(40)),
    Planted("1 in 100 is there once more", copied(0.01, 1)),
    Planted("3 in 100 are there once more", copied(0.03, 1)),
    Planted("most of the cells are probed", with_setting(probed=0.9)),
    Planted("words: short ones left out", asked(without_short_words), "bm25"),
    Planted("words: the title twice", written(lambda chunk: f"{chunk.title}\n{chunk.passage}"), "bm25"),
    Planted("weight .45", with_setting(options={"weight": 0.45}), "hybrid"),
    Planted("weight .55", with_setting(options={"weight": 0.55}), "hybrid"),
    Planted("weight .6", with_setting(options={"weight": 0.6}), "hybrid"),
    Planted("30 candidates from each side", with_setting(options={"pool": 30}), "hybrid"),
)
"""Each alters rankings; those that leave people's recall where it was, as far as can be told, count."""
