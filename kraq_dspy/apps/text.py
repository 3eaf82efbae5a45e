"""Makes text of documents and models safe and short for a terminal."""

from rich.text import Text


def short(text: str, length: int) -> Text:
    """One line of at most `length` characters. Never read as markup, and without control characters."""
    line = " ".join(printable(text).split())
    return Text(line if len(line) <= length else line[: length - 1] + "…")


def printable(text: str) -> str:
    """Text of documents and models for the terminal: a control character could move the cursor or change colours."""
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)
