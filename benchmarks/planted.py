"""Declares 40 faults and 40 harmless changes of a retrieval system, for `benchmarks/gate.py` to plant.

A system is a `Setup`: documents, how they are cut, what is embedded, the encoder's vectors, the question as it is
asked, and the retriever. A change takes a setup and returns another one. Each change has a ladder of strengths, written
down before the first run; `gate.py` takes one of them, by what it costs human questions alone.
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


Change = Callable[[Setup], Setup]


@dataclass(frozen=True)
class Planted:
    """A change under its name, which can be made in several strengths, to a setup whose retriever is `retriever`.

    A fault's strengths rise. A harmless change's begin with the one that is tried first.
    """

    name: str
    change: Callable[[Any], Change]
    strengths: tuple[Any, ...]
    retriever: str = "dense"


# Documents


def _drawn(documents: Sequence[Document], share: float) -> frozenset[str]:
    """Ids of a share of the documents, at least one; a greater share holds the smaller one."""
    ids = sorted(document.id for document in documents)
    random.Random("drawn 0").shuffle(ids)
    return frozenset(ids[: max(1, round(share * len(ids)))])


def _without(setup: Setup, ids: frozenset[str]) -> Setup:
    return replace(setup, documents=tuple(each for each in setup.documents if each.id not in ids))


def _of_order(setup: Setup, share: float, ordered: Sequence[Document]) -> Setup:
    """Without the first documents of an order."""
    return _without(setup, frozenset(document.id for document in ordered[: round(share * len(ordered))]))


def of_documents(change: Callable[[Document], Document], share: float = 1.0) -> Change:
    """A share of the documents is changed."""

    def planted(setup: Setup) -> Setup:
        drawn = _drawn(setup.documents, share)
        documents = (change(document) if document.id in drawn else document for document in setup.documents)
        return replace(setup, documents=tuple(documents))

    return planted


def missing(share: float) -> Change:
    return lambda setup: _without(setup, _drawn(setup.documents, share))


def never_read(share: float) -> Change:
    """The last documents are missing."""
    return lambda setup: _of_order(setup, share, setup.documents[::-1])


def skipped(share: float) -> Change:
    """The first documents are missing."""
    return lambda setup: _of_order(setup, share, setup.documents)


def without_longest(share: float) -> Change:
    return lambda setup: _of_order(
        setup, share, sorted(setup.documents, key=lambda document: (-len(document.text), document.id))
    )


def without_end_of_alphabet(share: float) -> Change:
    return lambda setup: _of_order(
        setup, share, sorted(setup.documents, key=lambda document: (document.title, document.id), reverse=True)
    )


def kept_once(least: float) -> Change:
    """Of documents that share so many of their words with one before them (Jaccard), only the first is kept."""

    def planted(setup: Setup) -> Setup:
        kept: list[tuple[Document, set[str]]] = []
        for document in setup.documents:
            words = set(re.findall(r"\w+", f"{document.title} {document.text}".lower()))
            if all(len(words & others) < least * len(words | others) for _, others in kept):
                kept.append((document, words))
        return replace(setup, documents=tuple(document for document, _ in kept))

    return planted


def exchanged(share: float, *fields: str) -> Change:
    """Documents of a share have the text, or the title, of the next one of them."""

    def planted(setup: Setup) -> Setup:
        ids = _drawn(setup.documents, share)
        drawn = [document for document in setup.documents if document.id in ids]
        others = dict(zip((each.id for each in drawn), [*drawn[1:], *drawn[:1]], strict=True))
        documents = (
            replace(each, **{name: getattr(others[each.id], name) for name in fields}) if each.id in others else each
            for each in setup.documents
        )
        return replace(setup, documents=tuple(documents))

    return planted


def copied(share: float, copies: int) -> Change:
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


def first_words(count: int) -> Callable[[str], str]:
    return lambda text: " ".join(text.split()[:count])


def without_first_words(count: int) -> Callable[[str], str]:
    return lambda text: " ".join(text.split()[count:]) or text


def of_text(change: Callable[[str], str]) -> Callable[[Document], Document]:
    return lambda document: replace(document, text=change(document.text))


def taken_for_a_heading(words: int) -> Callable[[Document], Document]:
    """Title and first words are lost."""
    return lambda document: replace(document, title="", text=without_first_words(words)(document.text))


GERMAN = (
    "und der die das nicht auch wurde nach einem werden diese ihrer zwischen damals gegen durch sehr mehr seine ohne "
    "jahr haus stadt zeit leute arbeit lande wasser anfang ende grund teil frage sache weise kraft folge reihe stelle"
)


def in_german(share: float = 1.0) -> Callable[[str], str]:
    """As text in the wrong language looks to an English encoder: names and numbers stay, other words do not."""

    def change(text: str) -> str:
        words, german = text.split(), GERMAN.split()
        draw = random.Random(text[:40])
        return " ".join(draw.choice(german) if word.islower() and draw.random() < share else word for word in words)

    return change


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


def glued(letters: int) -> Callable[[str], str]:
    """Spaces before words of up to so many letters are lost."""
    return lambda text: re.sub(rf" (?=\w{{1,{letters}}}\b)", "", text)


STRAY = "The ferry leaves the harbour at noon. Tickets are sold on board; bicycles travel free of charge on weekdays."


def strangers(count: int) -> Change:
    """Documents about something else come in."""

    def planted(setup: Setup) -> Setup:
        new = (Document(f"stray {number}", "", f"{STRAY} Boat {number}.") for number in range(count))
        return replace(setup, documents=(*setup.documents, *new))

    return planted


# Chunks


def in_chunks(tokens: int, overlap: int = 0, kept: Callable[[Sequence[Chunk]], Sequence[Chunk]] = _all) -> Change:
    return lambda setup: replace(setup, chunks=ChunkSettings(tokens=tokens, overlap=overlap), kept=kept)


def only_last(chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    """Each piece of a document overwrites the one before."""
    return [*{chunk.document_id: chunk for chunk in chunks}.values()]


def untitled_chunks(tokens: int) -> Change:
    return lambda setup: replace(setup, chunks=ChunkSettings(tokens=tokens, overlap=0), write=lambda chunk: chunk.text)


def written(change: Callable[[Chunk], str], share: float = 1.0) -> Change:
    """A share of the passages is embedded and indexed as something else."""
    return lambda setup: replace(
        setup, write=lambda chunk: change(chunk) if _is_drawn(chunk.id, share) else chunk.passage
    )


# Vectors


def of_passages(change: Callable[[Vectors], Vectors]) -> Change:
    return lambda setup: replace(setup, passages=change)


def of_both(change: Callable[[Vectors], Vectors]) -> Change:
    return lambda setup: replace(setup, passages=change, questions=change)


def dimensions(count: int) -> Callable[[Vectors], Vectors]:
    return lambda vectors: np.concatenate([vectors[:, :count], np.zeros_like(vectors[:, count:])], axis=1)


def signs(count: int) -> Callable[[Vectors], Vectors]:
    return lambda vectors: np.sign(dimensions(count)(vectors)).astype(np.float32)


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


def turned(strength: float) -> Callable[[Vectors], Vectors]:
    """As by another version of the encoder: so much of each row is its image under one rotation."""

    def change(vectors: Vectors) -> Vectors:
        drawn = np.random.default_rng(0).normal(size=(vectors.shape[1], vectors.shape[1]))
        rotation = np.linalg.qr(drawn)[0]
        rows: Vectors = ((1 - strength) * vectors + strength * vectors @ rotation).astype(np.float32)
        return rows

    return change


def rows_changed(share: float, change: Callable[[Vectors], Vectors]) -> Callable[[Vectors], Vectors]:
    """A share of the rows, drawn by the seed 0; a greater share holds the smaller one."""

    def planted(vectors: Vectors) -> Vectors:
        drawn = np.random.default_rng(0).random(len(vectors)) < share
        changed: Vectors = np.where(drawn[:, None], change(vectors), vectors)
        return changed

    return planted


def one_off(share: float) -> Callable[[Vectors], Vectors]:
    """From a place on, each passage has the vector of the one before."""

    def planted(vectors: Vectors) -> Vectors:
        first = len(vectors) - max(1, round(share * len(vectors)))
        changed: Vectors = np.concatenate([vectors[:first], np.roll(vectors[first:], 1, axis=0)])
        return changed

    return planted


def of_the_row_before(vectors: Vectors) -> Vectors:
    return np.roll(vectors, 1, axis=0)


def nothing(vectors: Vectors) -> Vectors:
    return np.zeros_like(vectors)


# Questions


def asked(change: Callable[[str], str], share: float = 1.0) -> Change:
    """A share of the questions is put in other words."""
    return lambda setup: replace(
        setup, ask=lambda question: change(question) if _is_drawn(question, share) else question
    )


def _is_drawn(text: str, share: float) -> bool:
    """Whether a text is among a share of all; a greater share holds the smaller one."""
    return random.Random(f"drawn {text}").random() < share


PREFIX = "passage: title: none text: "
INSTRUCTION = "Instruct: Given a web search query, retrieve relevant passages that answer the query. Query:"


def begins_with(words: str) -> Callable[[str], str]:
    return lambda question: f"{words} {question}"


def without_names(share: float) -> Callable[[str], str]:
    """As for privacy: a share of the words with a capital, but for the first, is taken out."""

    def change(question: str) -> str:
        first, *others = question.split()
        kept = [word for word in others if word[0].islower() or not _is_drawn(f"{question} {word}", share)]
        return " ".join([first, *kept])

    return change


def word_beginnings(letters: int) -> Change:
    """Words are cut to their first letters, on both sides."""

    def cut(text: str) -> str:
        return " ".join(word[:letters] for word in re.findall(r"\w+", text))

    return lambda setup: replace(setup, write=lambda chunk: cut(chunk.passage), ask=cut)


def plain_words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text))


def without_short_words(text: str) -> str:
    return " ".join(word for word in text.split() if len(word) > 3 or not word.islower()) or text


# Search


def with_setting(name: str) -> Callable[[Any], Change]:
    return lambda value: lambda setup: replace(setup, **{name: value})


def with_option(name: str) -> Callable[[Any], Change]:
    return lambda value: lambda setup: replace(setup, options={name: value})


SHARES = (0.01, 0.02, 0.03, 0.05, 0.08, 0.12, 0.18)
SMALL_CHUNKS = (64, 48, 32, 24, 16, 12)

FAULTS = (
    Planted("a share of the documents is missing", missing, SHARES),
    Planted("the last share was never read", never_read, SHARES),
    Planted("the first share was skipped", skipped, SHARES),
    Planted("the longest share was refused", without_longest, SHARES),
    Planted("the end of the alphabet is missing", without_end_of_alphabet, SHARES),
    Planted("alike documents are kept once", kept_once, (0.35, 0.3, 0.25, 0.22, 0.2, 0.17)),
    Planted("all cut after so many words", lambda n: of_documents(of_text(first_words(n))), (80, 50, 30, 20, 12, 8, 5)),
    Planted("a half cut after so many words", lambda n: of_documents(of_text(first_words(n)), 0.5), (30, 15, 8, 4, 2)),
    Planted("so many words lost at the beginning",
            lambda n: of_documents(of_text(without_first_words(n))), (5, 10, 15, 20, 30, 40)),
    Planted("only the last so many tokens kept", lambda n: in_chunks(n, kept=only_last), (200, 128, 96, 64, 48, 32)),
    Planted("title and so many words lost",
            lambda n: of_documents(taken_for_a_heading(n)), (0, 4, 8, 12, 20, 30), "hybrid"),
    Planted("a share has the next one's title", lambda share: exchanged(share, "title"), (0.1, 0.25, 0.5, 1.0)),
    Planted("a share has the next one's text",
            lambda share: exchanged(share, "text"), (0.02, 0.05, 0.08, 0.12, 0.2, 0.3)),
    Planted("stale: a share holds another's text", lambda share: exchanged(share, "title", "text"), SHARES),
    Planted("a share of the vectors is the neighbour's",
            lambda share: of_passages(rows_changed(share, of_the_row_before)), SHARES),
    Planted("a share was not embedded", lambda share: of_passages(rows_changed(share, nothing)), SHARES),
    Planted("the last share of the vectors is one off", lambda share: of_passages(one_off(share)), SHARES),
    Planted("a share in the wrong language",
            lambda share: of_documents(of_text(in_german()), share), (0.05, 0.1, 0.2, 0.4, 0.7, 1.0)),
    Planted("questions in the wrong language, a share of the words",
            lambda share: asked(in_german(share)), (0.1, 0.2, 0.3, 0.45, 0.7, 1.0)),
    Planted("scanned badly, a share of the letters",
            lambda share: of_documents(of_text(misread(share))), (0.03, 0.05, 0.08, 0.12, 0.16, 0.2)),
    Planted("spaces lost before words of so many letters",
            lambda n: of_documents(of_text(glued(n))), (3, 4, 5, 6, 8, 12)),
    Planted("mistyped questions, a share of the letters",
            lambda share: asked(misread(share)), (0.01, 0.02, 0.04, 0.06, 0.1, 0.15), "bm25"),
    Planted("a menu of so many words before each",
            lambda n: of_documents(of_text(with_menu(n))), (30, 60, 100, 140, 180, 220)),
    Planted("a menu of 180 words before a share",
            lambda share: of_documents(of_text(with_menu(180)), share), (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)),
    Planted("a share is there 12 times more", lambda share: copied(share, 12), (0.005, 0.01, 0.02, 0.04, 0.08)),
    Planted("chunks of so many tokens", in_chunks, SMALL_CHUNKS),
    Planted("chunks of so many tokens without titles", untitled_chunks, SMALL_CHUNKS),
    Planted("so many dimensions", lambda n: of_both(dimensions(n)), (256, 192, 128, 96, 64, 48)),
    Planted("one bit for so many dimensions", lambda n: of_both(signs(n)), (384, 256, 192, 128, 96, 64)),
    Planted("noise in the vectors of passages",
            lambda strength: of_passages(noise(strength)), (0.3, 0.5, 0.7, 0.9, 1.2, 1.6)),
    Planted("questions by another version of the encoder",
            lambda strength: with_setting("questions")(turned(strength)), (0.2, 0.3, 0.4, 0.5, 0.6)),
    Planted("the wrong prefix, so many times", lambda n: asked(begins_with(PREFIX * n)), (1, 2, 3, 5, 8)),
    Planted("so many words of another encoder's instruction",
            lambda n: asked(begins_with(first_words(n)(INSTRUCTION))), (2, 4, 6, 8, 11, 14)),
    Planted("questions cut after so many words", lambda n: asked(first_words(n)), (24, 18, 15, 12, 9, 7)),
    Planted("a share of the names taken out of questions",
            lambda share: asked(without_names(share)), (0.05, 0.1, 0.2, 0.3, 0.5, 0.8)),
    Planted("so much of the question before is mixed in",
            with_setting("leak"), (0.2, 0.25, 0.3, 0.35, 0.4, 0.45)),
    Planted("so many passages in place of ten", with_setting("k"), (9, 8, 7, 6, 5, 4, 3)),
    Planted("hits below a cosine are dropped", with_setting("least"), (0.15, 0.2, 0.25, 0.3, 0.35, 0.4)),
    Planted("a share of the cells is probed", with_setting("probed"), (0.7, 0.5, 0.35, 0.25, 0.15, 0.1)),
    Planted("words cut to so many letters", word_beginnings, (7, 6, 5, 4, 3), "bm25"),
)  # fmt: skip
"""Each may cost human questions something; those that cost 1 to 10 points of recall@10 in a strength count."""


def _twice(chunk: Chunk) -> str:
    return f"{chunk.title}\n{chunk.passage}"


def _dated(text: str) -> str:
    return f"{text}\nLast changed on 1 May 2024."


ALL_OR_PART = (1.0, 0.5, 0.2)

HARMLESS = (
    Planted("noise, 1", lambda strength: of_passages(noise(strength, 1)), (0.05, 0.03, 0.02)),
    Planted("noise, 2", lambda strength: of_passages(noise(strength, 2)), (0.05, 0.03, 0.02)),
    Planted("noise, 3", lambda strength: of_passages(noise(strength, 3)), (0.05, 0.03, 0.02)),
    Planted("noise, 4", lambda strength: of_passages(noise(strength, 4)), (0.1, 0.07, 0.04)),
    Planted("noise, 5", lambda strength: of_passages(noise(strength, 5)), (0.1, 0.07, 0.04)),
    Planted("noise, 6", lambda strength: of_passages(noise(strength, 6)), (0.2, 0.15, 0.1)),
    Planted("noise in questions", lambda strength: with_setting("questions")(noise(strength, 7)), (0.1, 0.07, 0.04)),
    Planted("8 bits", lambda n: of_both(levels(n)), (127, 180)),
    Planted("6 bits", lambda n: of_both(levels(n)), (31, 45)),
    Planted("5 bits", lambda n: of_both(levels(n)), (15, 22)),
    Planted("a few dimensions less", lambda n: of_both(dimensions(n)), (380, 382)),
    Planted("more dimensions less", lambda n: of_both(dimensions(n)), (360, 370)),
    Planted("a tenth of the dimensions less", lambda n: of_both(dimensions(n)), (340, 350)),
    Planted("smaller chunks", lambda n: in_chunks(n, 50), (250, 200, 280)),
    Planted("still smaller chunks", lambda n: in_chunks(n, 50), (200, 150, 220)),
    Planted("larger chunks", lambda n: in_chunks(n, 50), (400, 350, 500)),
    Planted("no overlap", lambda n: in_chunks(n, 0), (300, 200, 150)),
    Planted("more overlap", lambda n: in_chunks(300, n), (100, 150, 80)),
    Planted("the title twice", lambda share: written(_twice, share), ALL_OR_PART),
    Planted("the title behind", lambda share: written(lambda each: f"{each.text}\n{each.title}", share), ALL_OR_PART),
    Planted("the title with a dash",
            lambda share: written(lambda each: f"{each.title} - {each.text}", share), ALL_OR_PART),
    Planted("no punctuation", lambda share: written(lambda each: plain_words(each.passage), share), ALL_OR_PART),
    Planted("a date below each", lambda share: of_documents(of_text(_dated), share), ALL_OR_PART),
    Planted("a line above each",
            lambda share: of_documents(of_text(lambda text: f"From the archive. {text}"), share), ALL_OR_PART),
    Planted("no question mark", lambda share: asked(lambda question: question.rstrip("? "), share), ALL_OR_PART),
    Planted("two question marks", lambda share: asked(lambda question: question + "?", share), ALL_OR_PART),
    Planted("begins with Question:", lambda share: asked(begins_with("Question:"), share), ALL_OR_PART),
    Planted("begins with please", lambda share: asked(begins_with("Please tell me:"), share), ALL_OR_PART),
    Planted("thanks at the end", lambda share: asked(lambda question: question + " Thanks.", share), ALL_OR_PART),
    Planted("some documents about something else", strangers, (15, 8, 25)),
    Planted("more documents about something else", strangers, (40, 30, 60)),
    Planted("a few are there once more", lambda share: copied(share, 1), (0.01, 0.005, 0.015)),
    Planted("some are there once more", lambda share: copied(share, 1), (0.03, 0.02)),
    Planted("most of the cells are probed", with_setting("probed"), (0.9, 0.95, 0.8)),
    Planted("words: short ones left out", lambda share: asked(without_short_words, share), ALL_OR_PART, "bm25"),
    Planted("words: the title twice", lambda share: written(_twice, share), ALL_OR_PART, "bm25"),
    Planted("a little less weight on words", with_option("weight"), (0.55, 0.52), "hybrid"),
    Planted("less weight on words", with_option("weight"), (0.6, 0.57), "hybrid"),
    Planted("a little more weight on words", with_option("weight"), (0.45, 0.48), "hybrid"),
    Planted("other candidates from each side", with_option("pool"), (30, 60, 20), "hybrid"),
)  # fmt: skip
"""Each alters rankings; those that leave people's recall where it was, as far as can be told, count."""
