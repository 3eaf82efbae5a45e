"""Says in lines what a program's prediction rests on, besides its answer and its passages."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from kraq_dspy._internal.display import brief

if TYPE_CHECKING:
    import dspy

    from kraq_dspy.spec import Note
    from kraq_dspy.workspace.choices import ProgramChoice


def prediction_lines(choice: "ProgramChoice", prediction: "dspy.Prediction") -> Iterator[Text]:
    """Yield what the program notes of the prediction; where its declaration has no notes, the keys
    that it names."""
    if prediction.get("source") == "faq" and "search" not in prediction:
        yield Text(f"prepared in the FAQ cache: entry {prediction.entry.number}")
        return

    if prediction.get("source") == "refusal":
        score, threshold = prediction.answerable_score, prediction.threshold
        if score < threshold:  # else the answer says which site is missing
            held = f"the nearest passages hold {score:.2f} of the question"
            yield Text(f"{held}; below {threshold:.2f} this corpus does not answer")
        return

    if choice.spec.notes is not None:
        yield from map(line_of, choice.spec.notes(prediction))
    else:
        for key in choice.spec.keys:
            if key in prediction:
                yield Text(f"{key}: ", style="cyan") + short(brief(prediction[key]), 300)

    if choice.inner is not None and prediction.get("source") == "program":
        yield from prediction_lines(choice.inner, prediction)


STYLES = {"plain": "", "strong": "bold", "found": "cyan", "doubtful": "yellow"}
"""How the labels of notes are shown, by their tone."""


def line_of(note: "Note") -> Text:
    """The note as a line of the terminal."""
    label = Text(note.label, style=STYLES[note.tone])
    return label + short(note.text, note.length) if note.text else label


def short(text: str, length: int) -> Text:
    """One line of at most `length` characters. Never read as markup, and without control characters."""
    line = " ".join(printable(text).split())
    return Text(line if len(line) <= length else line[: length - 1] + "…")


def printable(text: str) -> str:
    """Text of documents and models for the terminal: a control character could move the cursor or change colours."""
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)
