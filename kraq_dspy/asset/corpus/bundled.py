"""Finds the small corpus that comes with this package."""

from pathlib import Path

from kraq_dspy.errors import CorpusError

NAME = "hotpotqa-mini"


def bundled_example() -> Path:
    """The folder with `corpus.jsonl`, 600 passages of Wikipedia, and `questions.jsonl`, 60 questions about them."""
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "examples", package.parent / "examples"):  # in a wheel, in a checkout
        if (folder / NAME).is_dir():
            return folder / NAME
    raise CorpusError(f"The bundled example {NAME} is missing; reinstall kraq-dspy.")
