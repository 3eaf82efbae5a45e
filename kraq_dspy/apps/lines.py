"""Says in lines what a program's prediction rests on, besides its answer and its passages."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rich.text import Text

from kraq_dspy._internal.display import brief
from kraq_dspy.errors import counted

if TYPE_CHECKING:
    import dspy

    from kraq_dspy.workspace.choices import ProgramChoice


def prediction_lines(choice: "ProgramChoice", prediction: "dspy.Prediction") -> Iterator[Text]:
    """What is shown of the prediction; of a program of another package, the keys that its declaration names."""
    if prediction.get("source") == "catalogue" and "search" not in prediction:
        yield Text(f"prepared in the catalogue: entry {prediction.entry.number}")
        return
    show = LINES.get(choice.spec.name)
    if show is not None:
        yield from show(prediction)
    else:
        for key in choice.spec.keys:
            if key in prediction:
                yield Text(f"{key}: ", style="cyan") + short(brief(prediction[key]), 300)
    if choice.inner is not None and prediction.get("source") == "program":
        yield from prediction_lines(choice.inner, prediction)


def explanation(answer: "dspy.Prediction") -> Iterator[Text]:
    """What supports the answer, where that was asked for."""
    if "explanation" in answer:
        yield Text("because ", style="bold") + short(answer.explanation, 600)


def auxiliary_questions(answer: "dspy.Prediction") -> Iterator[Text]:
    """The explanation, if any; the stored questions that evidence was found with, and how similar to the user's."""
    yield from explanation(answer)
    for auxiliary in answer.auxiliary_questions:
        yield Text(f"  + {auxiliary.similarity:.2f} ", style="cyan") + short(auxiliary.question.text, 160)


def speculation(answer: "dspy.Prediction") -> Iterator[Text]:
    """The rationale, the drafts and the times; for the efficient program the question that stood in."""
    yield Text("because ", style="bold") + short(answer.rationale, 600)
    for draft in answer.drafts:
        mark = "→" if draft.number == answer.chosen else " "
        score = answer.scores.get(draft.number)
        total = f"{score.total:8.3f}" if score else "  failed"
        style = "cyan" if draft.number == answer.chosen else ""
        yield Text(f"  {mark} draft {draft.number} {total} ", style=style) + short(draft.response, 100)
    if answer.get("scores_are") == "embedded":
        yield Text("  the embedded model's log-probabilities are invented: these scores mean nothing", style="yellow")
    for failure in answer.failures:
        yield Text(f"  draft {failure.number} failed: ", style="yellow") + short(failure.reason, 200)
    if "proxy_used" in answer:
        question = answer.proxy.question.text if answer.proxy_used and answer.proxy else "the question itself"
        counts = f"{answer.n_looked_up} looked up, {answer.n_embedded} embedded online"
        by = "their sentences, a variant of Algorithm 2" if answer.seen_by.startswith("sentences") else answer.seen_by
        yield Text(f"passages seen from ({counts}, by {by}): ") + short(question, 120)
    times = answer.timings
    yield Text(f"ms: {1000 * times.wall:.1f}; papers' model {1000 * times.parallel_model:.1f}")


def plug_ins(answer: "dspy.Prediction") -> Iterator[Text]:
    """The parts of the question, how many pairs there were and where they came from, and the validator's verdict.

    Nothing for the variant without plug-ins.
    """
    if not answer.sub_questions:
        return
    for part in answer.sub_questions:
        yield Text("  ? ", style="cyan") + short(part, 160)
    counts = [(answer.n_looked_up, "looked up"), (answer.n_made, "made now"), (answer.n_failed, "failed")]
    passages = ", ".join(f"{count} {what}" for count, what in counts if count)
    yield Text(f"{counted(len(answer.pairs), 'question-answer pair')}; passages: {passages or 'none'}")
    if answer.valid is False:
        yield Text("judged wrong: ", style="yellow") + short(answer.response, 300)


def sub_answers(answer: "dspy.Prediction") -> Iterator[Text]:
    """The graph's account, and each sub-question with its answer."""
    yield Text("the graph: ", style="bold") + short(answer.account_summary or "nothing", 400)
    for each in answer.sub_answers:
        yield Text("  ? ", style="cyan") + short(each.question, 160)
        yield Text("    ") + short(each.shortened, 200)
    if answer.n_failed:
        failed = counted(answer.n_failed, "sub-question")
        yield Text(f"{failed} failed; see --verbose for the reasons.", style="yellow")


def catalogue_search(answer: "dspy.Prediction") -> Iterator[Text]:
    """The entry that answered and what it rests on; what was looked at and did not pass; whether it was noted."""
    search, entry = answer.search, answer.entry
    if entry is not None:
        how = "word for word" if search.exact else counted(search.calls, "call")
        yield Text(f"entry {entry.number}, version {entry.version} ({how}): ", "cyan") + short(entry.question, 160)
        if entry.sources:
            yield Text("from ") + short(", ".join(source.document_id for source in entry.sources), 300)
    else:
        yield Text(f"not in the catalogue: {counted(search.blocks, 'block')}, {counted(search.calls, 'call')}")
    for rejected in search.rejected:
        line = Text(f"  entry {rejected.entry.number} is another question: ", style="yellow")
        yield line + short(rejected.entry.question, 120) + Text(" (") + short(rejected.reason, 120) + Text(")")
    if search.invalid or search.failed:
        bad = f"replies that named no entry: {search.invalid}, calls that failed: {search.failed}"
        yield Text(bad, style="yellow")
    if search.collected:
        yield Text("noted for review: kraq explore DIR --edit")


LINES: dict[str, Callable[["dspy.Prediction"], Iterator[Text]]] = {
    "traditional": explanation,
    "combined": auxiliary_questions,
    "speculative": speculation,
    "efficient": speculation,
    "qa-rag": plug_ins,
    "k2rag": sub_answers,
    "qa-search": catalogue_search,
}


def short(text: str, length: int) -> Text:
    """One line of at most `length` characters. Never read as markup, and without control characters."""
    line = " ".join(printable(text).split())
    return Text(line if len(line) <= length else line[: length - 1] + "…")


def printable(text: str) -> str:
    """Text of documents and models for the terminal: a control character could move the cursor or change colours."""
    return "".join(character if character.isprintable() or character == "\n" else " " for character in text)
