"""Shows the questions that templates ask of the passages of web pages, to be read and counted, in any language.

python benchmarks/questions_in_languages.py "/usr/share/doc/debian/FAQ/de/*.html" --count 22
"""

import argparse
import glob
import random
from collections import Counter
from pathlib import Path

from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.asset.corpus.formats.html import page_row
from kraq_dspy.language.templates import NOTHING_NAMED, question_about
from kraq_dspy.language.told import language_of
from kraq_dspy.records import Document
from kraq_dspy.settings import ChunkSettings


def questions_of(pattern: str) -> tuple[list[str], Counter[str]]:
    """The different questions of all passages, and how many passages are in which language."""
    questions: dict[str, None] = {}
    languages: Counter[str] = Counter()
    for name in sorted(glob.glob(pattern)):
        row = page_row(Path(name).read_text("utf-8", "replace"), Path(name).stem)
        if row is None:
            continue
        document = Document(name, row.title, row.text, headings=row.headings)
        for chunk in chunk_document(document, ChunkSettings()):
            headings = [f"## {heading}" for heading in chunk.headings[-2:]]
            passage = "\n".join([chunk.title, *headings, chunk.text])
            languages[language_of(passage)] += 1
            questions[question_about(f"{chunk.title}\n{chunk.text}", [passage])] = None
    return [question for question in questions if question != NOTHING_NAMED], languages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pages", help="a pattern of HTML files")
    parser.add_argument("--count", type=int, default=22, help="questions to show, drawn by the seed")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    questions, languages = questions_of(options.pages)
    random.Random(options.seed).shuffle(questions)
    print(f"{len(questions)} questions of {languages.total()} passages: {dict(languages.most_common())}")
    print("\n".join(questions[: options.count]))


if __name__ == "__main__":
    main()
