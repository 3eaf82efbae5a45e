"""Tells who speaks: the label before a turn of a transcript, and the head of a mail."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from kraq_dspy.embedded.reading.vocabulary import names_a_part
from kraq_dspy.language.analysis import Link, Named, Sentence

_LABEL = re.compile(r"([A-Z][\w .'-]{0,30}): ")
_FIELD = re.compile(r"(From|To|Cc|Bcc|Sent|Date|Subject|Reply-To|Importance|Attachments): ?(.*)")
_REPLY = re.compile(r"(?:(?:re|fwd?|aw|wg)\s*:\s*)+", re.IGNORECASE)
_PERSON = re.compile(r"[A-Z][\w'-]+(?: [A-Z]\.)?(?: [A-Z][\w'-]+){1,3}")
_GREETING = re.compile(r"(?:Hi|Hello|Hey|Dear|Good (?:morning|afternoon|evening))\b[^,.!\n]{0,40},\s*(?=\S)")
_SIGNED = r",?(?:\s[A-Z]\w+)?\.?$"
_CLOSING = re.compile(
    rf"^(?i:(?:with )?(?:kind|best|warm|many) (?:regards|wishes|thanks)|regards|best|cheers|sincerely){_SIGNED}"
    rf"|\s(?:Kind|Best|Warm) (?:regards|wishes){_SIGNED}"
)

_SPEECH = re.compile(
    r"\?(?:\s|$)|\b(?:I|I'm|[Yy]ou|[Ww]e|[Mm]y|[Oo]ur|[Oo]kay|OK|[Yy]es|[Yy]eah|[Uu]m|[Uu]h|[Hh]mm|[Tt]hanks?|[Ll]et's)\b"
)
_OPENED = re.compile(
    r"(?:(?:Well|So|And|But|Okay|OK|Yeah|Yes|No|Right|Now|Again|Um|Uh|Thank you(?: very much)?|Thanks"
    r"|(?:Mr\.|Mrs\.|Madam)? ?(?:Chair|Speaker))(?:,|(?<=And)|(?<=But)|(?<=So)) )+(?=\w)"
)
"""What opens a turn before its statement: "Mr. Chair, in May the council met."."""


@dataclass(frozen=True, slots=True)
class Mail:
    """The head of a mail: its subject without "Re:", who writes to whom, where these are people; and its text."""

    subject: str
    sender: str
    recipients: tuple[str, ...]
    text: str

    def head(self) -> Sentence | None:
        """Who writes to whom, as what a sentence says; None where nobody is named."""
        people = [name for name in (self.sender, *self.recipients) if name]
        if not people:
            return None
        links = [Link(self.sender, "writes to", name) for name in self.recipients if self.sender]
        told = f"{self.sender} writes to {', '.join(self.recipients)}." if links else f"{', '.join(people)}."
        return Sentence(told, tuple(Named(name, "person") for name in people), tuple(links))


def mail_of(passage: str) -> Mail | None:
    """The mail that a passage begins with, below a title at most; None of any other passage.

    >>> mail_of("From: Ada Byron\\nTo: C. Babbage <c@engine.org>\\nSubject: Re: Cards\\n\\nThe cards are here.").subject
    'Cards'
    """
    lines = passage.strip().split("\n")
    begin = next((n for n in (0, 1) if len(lines) > n and _FIELD.fullmatch(lines[n])), None)
    if begin is None:
        return None

    fields: dict[str, str] = {}
    end = begin
    while end < len(lines) and (field := _FIELD.fullmatch(lines[end].strip())):
        fields.setdefault(field[1], field[2].strip())
        end += 1
    if len(fields) < 2:
        return None
    recipients = (_person(name) for name in re.split(r"[;,]", fields.get("To", "")))
    subject = _REPLY.sub("", fields.get("Subject", "")).strip()
    return Mail(
        subject, _person(fields.get("From", "")), tuple(filter(None, recipients)), "\n".join(lines[end:]).strip()
    )


def _person(address: str) -> str:
    """The name before an address, if it is one of somebody."""
    name = re.sub(r"(?<!\s)\s*[<(\[].*", "", address).strip(' "')
    return name if _PERSON.fullmatch(name) else ""


def label_of(sentence: str) -> str:
    """The label before a turn, "Ada: Yes."; "" where there is none, or the heading of a section.

    >>> label_of("Ada Byron: The cards are here."), label_of("Results: The cards were here.")
    ('Ada Byron', '')
    """
    label = _LABEL.match(sentence)
    return label[1] if label and not names_a_part(label[1]) else ""


def without_label(sentence: str) -> str:
    """The sentence without who speaks it, a greeting, and the closing of a letter."""
    return _CLOSING.sub("", _GREETING.sub("", _LABEL.sub("", sentence, count=1), count=1))


def without_opening(turn: str) -> str:
    """What somebody says without the words that open it.

    >>> without_opening("So, Mr. Chair, in May the council met.")
    'In May the council met.'
    """
    opened = _OPENED.match(turn)
    stated = turn[opened.end() :] if opened else ""
    return stated[:1].upper() + stated[1:] if stated else turn


def speakers_of(labels: list[str], text: str, is_name: Callable[[str], bool]) -> frozenset[str]:
    """Those of a passage's labels that people speak under.

    In a talk labels come again: where two labels at least alternate, and one does so twice, each is somebody. Elsewhere
    a label of several words is somebody if `is_name` says that it is a name, and `text` has words of speech.
    """
    counts = Counter(filter(None, labels))
    if len(counts) > 1 and max(counts.values()) > 1:
        return frozenset(counts)
    if not _SPEECH.search(text):
        return frozenset()
    return frozenset(label for label in counts if " " in label and is_name(label))
