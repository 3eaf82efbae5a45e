"""Reads passages in English, each once as long as it is remembered; one reader serves a process."""

import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from kraq_dspy.embedded.reading.acts import STATED, acts_in
from kraq_dspy.embedded.reading.asking import asides_of, asked_of, plain_text
from kraq_dspy.embedded.reading.parse import links_in, named_in, names_in, told_of
from kraq_dspy.embedded.reading.pipeline import pipeline
from kraq_dspy.embedded.reading.titles import meant_by_pronouns, says_to_reader, speaker_of, tale_of
from kraq_dspy.embedded.reading.transcripts import SPOKEN, asked_of_turn, turns_of
from kraq_dspy.embedded.reading.turns import label_of, mail_of, speakers_of, without_label, without_opening
from kraq_dspy.language.analysis import SAID_ALOUD, Act, Analysis, Named, Sentence
from kraq_dspy.language.text import sentences
from kraq_dspy.language.told import language_of, may_be_english
from kraq_dspy.language.vocabulary import STOP

READING = 11
"""The version of what is read, and how: to be raised with each change of it. Then run `scripts/read_example.py`."""
MADE_BY = f"spacy 3.8, en_core_web_sm 3.8, reading {READING}"
"""Part of what an index is made by: an index that was read otherwise is read again, and never mixed."""
REMEMBERED = 2_000  # passages
LONGEST = 1_200  # characters of a sentence that is parsed; what is longer is a list or a table
TELLING = 240  # letters from which on a passage tells its language; a shorter one is in its document's
_BATCH = 64  # sentences that are parsed at once: 256 take 6 % less time and 67 MB more, in each process
_APART = re.compile(r"(?<=\w) ([.,;:!?]|'(?:s|t|ll|re|ve|d|m)\b|n't\b)")
"""Punctuation that a data set has set apart from its word."""
_HYPHEN = re.compile(r"(?<![\w-])(\w+) - (?:(in|of|to|and) - )?(\w+)")
"""A hyphen that was set apart: "tea - cups", "son - in - law"."""
_LONGEST = 20_000  # characters of a passage that are parsed: chunks have some 1,500, and a millisecond goes by for each
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_OF_TABLE = re.compile(r"[|\t]")
_FILE = re.compile(r"[\w.-]+\.(?:py|ts|c|h|cpp|java|go|rs|rb|sh|sql|txt|md|json|xml|csv|html?|pdf)")


@dataclass(frozen=True, slots=True)
class _Around:
    """What a passage says of a sentence: who "we" are, which tale it is of, whose turn it is, who "he" is."""

    speaker: str
    tale: str
    turn: str
    meant: str


class Reader:
    """Remembers what it read. Safe for threads; the parser works in one at a time."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, Analysis | None] = OrderedDict()
        self._shipped: Mapping[str, Analysis] = {}
        self._lock = threading.RLock()

    def analysis(self, passage: str) -> Analysis | None:
        """What the parser says of a passage; None of one that is not in English."""
        passage = passage.strip()
        with self._lock:
            if passage not in self._known:
                read = self.analyses([passage])[0] if is_english(passage) else None
                self.remember({passage: read})
            return self._known[passage]

    def remember(self, analyses: Mapping[str, Analysis | None]) -> None:
        """Take over what was read before, by passage; None says that a passage is in another language."""
        with self._lock:
            for passage, analysis in analyses.items():
                self._known[passage.strip()] = analysis
                self._known.move_to_end(passage.strip())
            while len(self._known) > REMEMBERED:
                self._known.popitem(last=False)

    def take_shipped(self, analyses: Mapping[str, Analysis]) -> None:
        """Parse these passages no more: `MADE_BY` read them before, and each analysis is what it would say again."""
        with self._lock:
            self._shipped = {**self._shipped, **analyses}

    def shipped(self, passages: Iterable[str]) -> dict[str, Analysis]:
        """Those of the passages that `take_shipped` knows, with their analyses."""
        return {passage: self._shipped[passage] for passage in passages if passage in self._shipped}

    def analyses(self, passages: Sequence[str]) -> list[Analysis]:
        """What the parser, loaded into this process, says of passages that are known to be in English."""
        with self._lock:
            known = self.shipped(passages)
            new = [passage for passage in passages if passage not in known]
            known |= dict(zip(new, self._parsed(new), strict=True))
            return [known[passage] for passage in passages]

    def _parsed(self, passages: Sequence[str]) -> Iterator[Analysis]:
        titled = [title_and_text(passage) for passage in passages]
        parts = [sentences(_CODE.sub("", text[:_LONGEST])) for _, text in titled]
        labels_of = [[label_of(part) for part in own] for own in parts]
        people_of = [speakers_of(labels, text, _is_named) for text, labels in zip(passages, labels_of, strict=True)]
        parsed = self._sentences(
            (part, _Around(speaker_of(title), tale_of(title, own), turn, meant))
            for (title, _), own, labels, people in zip(titled, parts, labels_of, people_of, strict=True)
            for part, turn, meant in zip(own, turns_of(labels, people), meant_by_pronouns(title, own), strict=True)
        )
        for passage, (title, _), labels, people in zip(passages, titled, labels_of, people_of, strict=True):
            spoken = [
                _said_by(label, sentence) if label in people else sentence
                for label in labels
                for sentence in next(parsed)
            ]
            mail = mail_of(passage)
            head = mail.head() if mail else None
            yield Analysis(title, tuple([head, *spoken] if head else spoken))

    def _sentences(self, parts: Iterable[tuple[str, _Around]]) -> Iterator[list[Sentence]]:
        """What the parser says of each part; it finds the sentences of texts in one case, which rules do not."""
        every = list(parts)
        beside = self._named_beside([text for text, _ in every])
        docs = pipeline().pipe((_parseable(text, around.turn) for text, around in every), batch_size=_BATCH)
        for (text, around), names, doc in zip(every, beside, docs, strict=True):
            spans = list(doc.sents)
            read = []
            for place, span in enumerate(spans):
                named = _once([*named_in(span), *(names if place == 0 else ())])
                own_text = text if len(spans) == 1 else span.text.strip()
                asked = asked_of(span, around.speaker, around.tale, around.meant, around.turn)
                acts = acts_in(span, named)
                if around.speaker and says_to_reader(own_text):
                    acts.append(Act(STATED, around.speaker, ""))
                if around.turn and len(own_text.split()) >= SPOKEN.start:
                    asked += asked_of_turn(without_opening(without_label(own_text)), told_of(span, named), around.turn)
                    acts.append(Act(SAID_ALOUD, around.turn, ""))
                links = links_in(span, named)
                read.append(Sentence(own_text, tuple(named), tuple(links), tuple(asked), tuple(acts)))
            yield read or [Sentence(text)]

    def _named_beside(self, texts: Sequence[str]) -> list[list[Named]]:
        """The names in each text's brackets, which are parsed by themselves: no question keeps them, but a place of
        birth often stands in them alone."""
        asides = [(place, aside) for place, text in enumerate(texts) if _is_prose(text) for aside in asides_of(text)]
        docs = pipeline().pipe((aside for _, aside in asides), batch_size=_BATCH)
        named: list[list[Named]] = [[] for _ in texts]
        for (place, _), doc in zip(asides, docs, strict=True):
            named[place] += names_in(doc[:])
        return named


@lru_cache(maxsize=1)
def reader() -> Reader:
    """The reader of this process."""
    return Reader()


def is_english(text: str, document: str = "") -> bool:
    """Whether a passage is one that the parser may read; a short one is in the language of its `document`.

    >>> is_english("The lighthouse keeper of Harrow mended the lamp before the storm came.")
    True
    >>> is_english("Der Leuchtturmwärter reparierte die Lampe, bevor der Sturm kam.")
    False
    """
    told_by = text if len(text) >= TELLING or not document else document
    return language_of(told_by) == "en" and may_be_english(text)


def title_and_text(passage: str) -> tuple[str, str]:
    """A short first line without a full stop is a title, and so is the subject of a mail; what names nothing (a number,
    a file) is left out, and so is the head of a table."""
    mail = mail_of(passage)
    if mail is not None:
        return mail.subject, mail.text
    first, _, rest = passage.strip().partition("\n")
    first = first.strip().lstrip("# ").strip()
    is_title = 0 < len(first) <= 100 and len(first.split()) <= 14 and not first.endswith((".", "。", ":", "?"))
    is_head = _OF_TABLE.search(first) and _OF_TABLE.search(rest.strip().partition("\n")[0])
    is_title = is_title and not is_head
    if rest.strip() and is_title:
        return first if re.search(r"[^\W\d_]{2}", first) and not _FILE.fullmatch(first) else "", rest.strip()
    return "", passage.strip()


@lru_cache(maxsize=2048)
def _is_named(label: str) -> bool:
    """Whether the parser takes a label as a whole for the name of somebody."""
    entities = pipeline()(f"{label} said that it was late.").ents
    return any(entity.text == label and entity.label_ in ("PERSON", "ORG") for entity in entities)


def _said_by(speaker: str, sentence: Sentence) -> Sentence:
    return replace(sentence, named=(Named(speaker, "person"), *sentence.named))


def _parseable(text: str, turn: str = "") -> str:
    """The sentence without who speaks it and without citations; in small letters where it is all capitals. Of a table
    nothing is parsed. `turn` is who speaks."""
    text = plain_text(without_label(text)) if _is_prose(text) else ""
    text = without_opening(text) if turn else text
    text = _APART.sub(r"\1", text)
    text = _HYPHEN.sub(_joined, text) if text.islower() else text
    letters = [letter for letter in text if letter.isalpha()]
    is_shouted = len(letters) > 20 and sum(map(str.isupper, letters)) > 0.9 * len(letters)
    return text.lower() if is_shouted else text


def _is_prose(text: str) -> bool:
    return len(text) <= LONGEST and not _OF_TABLE.search(text)


def _once(named: Iterable[Named]) -> list[Named]:
    """Each name as it stands first."""
    return list({each.text.casefold(): each for each in reversed([*named])}.values())[::-1]


def _joined(hyphen: re.Match[str]) -> str:
    """The words in one; as they are where the hyphen is a dash, beside a word that tells nothing."""
    first, between, last = hyphen.groups()
    if first in STOP or last in STOP:
        return hyphen[0]
    return "-".join(filter(None, (first, between, last)))
