"""Shows the questions that templates ask of the passages of files, to be read and counted, in any language.

python benchmarks/questions_in_languages.py "/usr/share/doc/debian/FAQ/de/*.html" --count 22

As in a build, the language of most passages is that of the corpus. Pages of manuals are to be text:
`zcat ls.1.gz | preconv -e utf-8 | groff -mandoc -Tutf8 -P-c -P-b -P-u -rLL=100n > ls.1.txt`.
"""

import argparse
import glob
import random
from collections import Counter
from collections.abc import Iterator

from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.extend import Chunk
from kraq_dspy.language.templates import NOTHING_NAMED, question_about
from kraq_dspy.language.told import language_of, language_of_most
from kraq_dspy.records import Document
from kraq_dspy.settings import ChunkSettings

DRAWN = 40  # passages by which the language of all is told, as in a build


def chunks_of(pattern: str) -> Iterator[Chunk]:
    for name in sorted(glob.glob(pattern)):
        for document in load_documents(name):
            if isinstance(document, Document):
                yield from chunk_document(document, ChunkSettings())


def questions_of(pattern: str) -> tuple[list[str], Counter[str]]:
    """The different questions of all passages, and how many passages are in which language."""
    summaries: list[str] = []
    passages: list[str] = []
    for chunk in chunks_of(pattern):
        headings = [f"## {heading}" for heading in chunk.headings[-2:]]
        summaries.append(f"{chunk.title}\n{chunk.text}")
        passages.append("\n".join([chunk.title, *headings, chunk.text]))
    language = language_of_most(passages[:: max(1, len(passages) // DRAWN)])

    questions: dict[str, None] = {}
    for summary, passage in zip(summaries, passages, strict=True):
        questions[question_about(summary, [passage], language_of_corpus=language)] = None
    with_a_name = [question for question in questions if question != NOTHING_NAMED]
    return with_a_name, Counter(map(language_of, passages))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", help="a pattern of files")
    parser.add_argument("--count", type=int, default=22, help="questions to show, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    questions, languages = questions_of(options.pages)
    random.Random(options.seed).shuffle(questions)
    print(f"{len(questions)} questions of {languages.total()} passages: {dict(languages.most_common())}")
    print("\n".join(questions[: options.count]))


if __name__ == "__main__":
    main()
