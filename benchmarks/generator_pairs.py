"""Makes the pairs that the shipped question generator learns from: people's questions, and sentences turned round.

    python benchmarks/generator_pairs.py corpus --data ../shared/data --out runs/generator
    kraq index runs/generator/wiki.jsonl --out runs/generator/wiki.kraq
    python benchmarks/generator_pairs.py pairs --data ../shared/data --out runs/generator

A person's pair is a question of a data set, and one to four sentences of the passages that hold its answer under a
title, as a community's summary has it. Left out: questions that do not stand alone, that name what those sentences do
not, of which those sentences are not among the five nearest, that ask what the name of something is; yes or no; longer
than 20 words.

A turned one is a community's summary out of 5,600 other passages of Wikipedia, and a sentence of it as a question of
rules ("Who directed The Nun?"). Kept: what names something, nothing that the summary has not, is plain (`plainness`),
and has its summary among the three nearest.

`test.jsonl` holds questions of documents that nothing of `train.jsonl` shares; documents of `examples/hotpotqa-mini`,
which the demo indexes, are in neither.
"""

import argparse
import gzip
import json
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kraq_dspy.asset.corpus.chunk import sentence_spans
from kraq_dspy.asset.store.index import Index
from kraq_dspy.eval.datasets import load_dataset
from kraq_dspy.finetune.pairs import Pair
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.lms.engines.embedded.ask import question_about
from kraq_dspy.models.lms.engines.embedded.summarize import community_summary
from kraq_dspy.ports import Embedder
from kraq_dspy.programs.kraq.describe import shown_summary
from kraq_dspy.programs.kraq.question_text import PLAIN, plainness
from kraq_dspy.records import Summary
from kraq_dspy.settings import EncoderSettings

SETS = ("squad", "hotpotqa", "musique")  # CC BY-SA 4.0, CC BY-SA 4.0, CC BY 4.0
MOST_WORDS = 20
SUMMARY_WORDS = 90
LONGEST_SUMMARY = 150  # words, of a community
TURNED_WORDS = 4, 16
ALONE = re.compile(r"\b(he|she|it|they|his|her|its|their|this|these|that)\b", re.IGNORECASE)
NAME = re.compile(r"(?<![.?!] )(?<!^)\b[A-Z][\w'-]+|\b\d{3,}\b")
WORD = re.compile(r"\w{4,}")
ASKING = re.compile(r"\b(who|whom|whose|what|which|where|when|why|how)\b", re.IGNORECASE)
ASKS_FOR_NAME = re.compile(r"(?:What|Which) (?:is|was|are|were) the names?\b", re.IGNORECASE)
UNTOLD = re.compile(
    r"(?:Why|How)\b|.*\b(?:links?|ties|connected|related|in common|have to do with|there between|known for|about)\b"
    r"|What (?:has|have|does|do|did) .* (?:done|do)\b|Who made\b|Who is behind\b|What happened\b|Who took part\b"
    r"|What kind of work\b|What (?:is|was) .*[’'] ?s? (?:part|role)\b|What part\b|What is there\b|What became\b"
)
"""Forms of the rules that a sentence does not answer."""
DEFINES = re.compile(r"(?:What|Who) (?:is|was|are|were) (?!the [a-z])")
MOST_DEFINED = 250
"""Questions of what or who something is: most sentences give one, and it comes after any other."""
SLIPS = re.compile(r"\. [A-Za-z]|--|\b(\w+) \1\b| \?|undertaken")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("step", choices=["corpus", "pairs"])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--passages", type=int, default=5600, help="of Wikipedia, whose sentences are turned round")
    parser.add_argument("--test-share", type=float, default=0.15, help="of the documents that people asked about")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    {"corpus": write_corpus, "pairs": make_pairs}[options.step](options)


def write_corpus(options: Any) -> None:
    shown = titles_of_example()
    rows = read_corpus("wiki_distractors", options.data)
    rows = [row for row in rows if row["title"] not in shown]
    random.Random(0).shuffle(rows)
    write(options.out / "wiki.jsonl", rows[: options.passages])


def make_pairs(options: Any) -> None:
    draw, embedder = random.Random(0), load_embedder(EncoderSettings())
    parts = asked_by_people(options.data, options.test_share, draw)
    learned = findable(parts["train"], embedder, within=5)
    learned = [pair for pair in learned if not ASKS_FOR_NAME.match(pair.outputs["question"])]
    with Index.open(options.out / "wiki.kraq") as index:
        turned = turned_round(list(index.all(Summary)), embedder, draw)
    print(f"{len(learned)} questions of people, {len(turned)} turned sentences; {len(parts['test'])} to ask about")
    learned += turned
    draw.shuffle(learned)
    write(options.out / "train.jsonl", [pair.row() for pair in learned])
    write(options.out / "test.jsonl", [pair.row() for pair in parts["test"]])


def asked_by_people(data: Path, test_share: float, draw: random.Random) -> dict[str, list[Pair]]:
    """`train` and `test`, which share no document."""
    shown = titles_of_example()
    pairs = [pair for name in SETS for pair in pairs_of(name, data, shown)]
    documents = sorted({document for pair in pairs for document in pair.document_ids})
    draw.shuffle(documents)
    held_out = set(documents[: round(len(documents) * test_share)])
    draw.shuffle(pairs)
    parts: dict[str, list[Pair]] = {"train": [], "test": []}
    for pair in pairs:
        inside = [document in held_out for document in pair.document_ids]
        if all(inside) or not any(inside):
            parts["test" if inside[0] else "train"].append(pair)
    return parts


def turned_round(summaries: Sequence[Summary], embedder: Embedder, draw: random.Random) -> list[Pair]:
    """One pair of each summary of which a sentence could be turned round, no question twice."""
    candidates = []
    for summary in summaries:
        shown = shown_summary(summary.title, summary.text)
        if len(summary.text.split()) > LONGEST_SUMMARY:
            continue
        texts = [summary.text, *(summary.text[start:end] for start, end in sentence_spans(summary.text))]
        for question in dict.fromkeys(question_about(shown_summary(summary.title, text)) for text in texts):
            if is_clean(question) and supported(question, shown) and plainness(question, shown) >= PLAIN:
                candidates.append(
                    Pair.generator(
                        shown,
                        question,
                        source="wiki_distractors",
                        example_id=f"{summary.community_id} {question}",
                        model="rules",
                    )
                )
    usable = findable(candidates, embedder, within=3, least=0.45)
    draw.shuffle(usable)
    telling = [pair for pair in usable if not DEFINES.match(pair.outputs["question"])]
    defining = [pair for pair in usable if DEFINES.match(pair.outputs["question"])]
    chosen: dict[str, Pair] = {}
    known: set[str] = set()
    for pair in [*telling, *defining]:
        question = pair.outputs["question"]
        if question not in known and pair.inputs["summary"] not in chosen:
            chosen[pair.inputs["summary"]] = pair
            known.add(question)
    defined = [pair for pair in chosen.values() if DEFINES.match(pair.outputs["question"])]
    return [pair for pair in chosen.values() if pair not in defined[MOST_DEFINED:]]


def is_clean(question: str) -> bool:
    words = question.rstrip("?").split()
    capitals = [word for word in words[1:] if word[0].isupper()]
    return (
        TURNED_WORDS[0] <= len(words) <= TURNED_WORDS[1]
        and len(capitals) == len(set(capitals)) > 0
        and not question.count('"') % 2
        and not UNTOLD.match(question)
        and not SLIPS.search(question)
    )


def findable(pairs: Sequence[Pair], embedder: Embedder, *, within: int, least: float = 0.0) -> list[Pair]:
    """Those whose summary is among the `within` nearest to the question, of the summaries of all."""
    texts = list(dict.fromkeys(pair.inputs["summary"] for pair in pairs))
    place = {text: number for number, text in enumerate(texts)}
    summaries = embedder.encode_passages(texts)
    kept = []
    for pair, vector in zip(pairs, embedder.encode_queries([pair.outputs["question"] for pair in pairs]), strict=True):
        likeness = summaries @ vector
        own = likeness[place[pair.inputs["summary"]]]
        if own >= least and np.count_nonzero(likeness > own + 1e-6) < within:
            kept.append(pair)
    return kept


def pairs_of(name: str, data: Path, shown: set[str]) -> Iterator[Pair]:
    dataset = load_dataset(name, data)
    texts = {document.id: document for document in dataset.documents}
    known: set[str] = set()
    for example in dataset.examples:
        question = example.question.strip()
        evidence = [texts[id] for id in example.supporting_ids if id in texts]
        key = question.casefold()
        if key in known or not evidence or not stands_alone(question) or any(text.title in shown for text in evidence):
            continue
        summary = said_about(question, [text.text for text in evidence])
        if all(part.casefold() in summary.casefold() for part in NAME.findall(question)):
            known.add(key)
            title = str(community_summary([summary])["title"])
            yield Pair.generator(
                shown_summary(title, summary),
                question,
                source=name,
                example_id=example.id,
                document_ids=tuple(text.id for text in evidence),
            )


def stands_alone(question: str) -> bool:
    words = question.split()
    return (
        question.endswith("?")
        and 4 <= len(words) <= MOST_WORDS
        and bool(ASKING.search(question))
        and not ALONE.search(question)
        and bool(NAME.search(question))
        and question[0].isupper()
    )


def said_about(question: str, texts: Sequence[str]) -> str:
    """Of each text the sentence that shares most words with the question, and its neighbours while there is room."""
    sought = set(WORD.findall(question.casefold()))
    parts = []
    for text in texts:
        sentences = [text[start:end].strip() for start, end in sentence_spans(text)]
        place = max(range(len(sentences)), key=lambda at: len(sought & set(WORD.findall(sentences[at].casefold()))))
        chosen = {place}
        for near in (place - 1, place + 1, place - 2):
            if 0 <= near < len(sentences):
                words = sum(len(sentences[at].split()) for at in {*chosen, near})
                if words <= SUMMARY_WORDS / len(texts):
                    chosen.add(near)
        parts.append(" ".join(sentences[at] for at in sorted(chosen)))
    return " ".join(parts)


def supported(question: str, summary: str) -> bool:
    """Every name and number of the question stands in the summary."""
    return all(part.casefold() in summary.casefold() for part in NAME.findall(question))


def titles_of_example() -> set[str]:
    lines = Path("examples/hotpotqa-mini/corpus.jsonl").read_text("utf-8").splitlines()
    return {json.loads(line)["title"] for line in lines}


def read_corpus(name: str, data: Path) -> list[dict[str, Any]]:
    with gzip.open(data / name / "corpus.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write(file: Path, rows: Sequence[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


if __name__ == "__main__":
    main()
