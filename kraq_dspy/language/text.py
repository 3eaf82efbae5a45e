"""Cuts text into sections, sentences and words, in any script; and asks the plain question of each language."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, pairwise

from stop_words import StopWordError, get_stop_words

from kraq_dspy._internal.folding import folded
from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.language.vocabulary import LANGUAGES, STOP

_MARKS = (
    "\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0900-\u0963\u0966-\u0dff\u0e31\u0e34-\u0e3a\u0e47-\u0e4e"
    "\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3"
)
"""Vowels and accents that stand above, below or beside the letter before them: no letters for `re`."""
_LETTERS = rf"[^\W_]+(?:[{_MARKS}]+[^\W_]*)*"
WORD = re.compile(rf"{_LETTERS}(?:[’'.\-&]{_LETTERS})*")
_ELIDED = re.compile(r"^(?:(?:jus|lors|puis|quoi)?qu|[cdjlmnst]|dell|nell|sull|all|un)[’']")
"""What French and Italian write together with the next word, "l'index", "qu'un"."""
WRAPPED = range(40, 133)
"""Widths at which texts are broken into lines by hand or by an editor."""
REPEATED = 20  # words, from which on a fifth of them have to differ
HEADING = re.compile(r"^ {0,3}#{1,6} .*$\n?", re.MULTILINE)
UNPARTED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
"""Scripts without spaces whose words are not told by letters: Thai, Lao, Burmese, Khmer."""
UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


def sentences(text: str) -> list[str]:
    """Give the sentences in order, without Markdown's headings, and without what says nothing:
    marks alone, or the same few words over and over. A line break ends a sentence unless it only
    keeps a line short."""
    text = unwrapped(HEADING.sub("", text))
    parts = []
    for start, end in sentence_spans(text):
        own = WORD.findall(text[start:end])
        if own and (len(own) <= REPEATED or len(set(own)) * 5 > len(own)):
            parts.append(text[start:end])
    return parts


_MARKED_HEADING = re.compile(r" {0,3}#{1,6} +(?P<text>.*)")
_ENDS_TEXT = re.compile(r"[.!。！।…:;,][\"”’')\]]*\s*$")
_ASKS = re.compile(r"[?？؟][!！]*[\"”’')\]]*\s*$")
_LONGEST_HEADING = 90  # characters
_ITEM = re.compile(r"\s*(?:[-*+•]\s|\|)|.*\t")


def sections(text: str) -> Iterator[tuple[str, list[str]]]:
    """Sentences with the heading or the question above them, "" if there is none. A heading is a
    line with the mark of Markdown, or a short line that ends no sentence, above a longer one. A
    question on its own line, or with text after it, is a heading too.

    >>> list(sections("1.2 Opening hours\\nThe museum opens at nine. It is closed on Mondays."))
    [('1.2 Opening hours', ['The museum opens at nine.', 'It is closed on Mondays.'])]
    """
    heading = ""
    block: list[str] = []
    lines = unwrapped(text).split("\n")
    for number, line in enumerate(lines):
        following = next((other for other in lines[number + 1 :] if other.strip()), "")
        above = _heading_of(line, following)
        if not above:
            block.append(line)
            continue
        yield from _section(heading, block)
        heading, block = above, []
    yield from _section(heading, block)


def _section(heading: str, lines: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    parts = sentences("\n".join(lines))
    questions = [number for number, part in enumerate(parts) if _ASKS.search(part) and number + 1 < len(parts)]
    for start, end in pairwise([-1, *questions, len(parts)]):
        own = parts[start + 1 : end]
        if own:
            yield (parts[start] if start >= 0 else heading), own


def _heading_of(line: str, following: str) -> str:
    """The line's text if it is a heading of the next; "" if it is text itself."""
    if marked := _MARKED_HEADING.fullmatch(line):
        return marked["text"].rstrip(" #")
    line = line.strip()
    is_short = 0 < len(line) <= _LONGEST_HEADING and not _ITEM.match(line)
    if not is_short:
        return ""

    if _ASKS.search(line):
        return line  # at the end of a passage, too: its text was cut off
    if not following:
        return ""

    text_follows = len(following) > len(line) and _ENDS_TEXT.search(following) and not _ITEM.match(following)
    return line if text_follows and not _ENDS_TEXT.search(line) else ""


def parted(passage: str) -> tuple[str, str]:
    """The title, "" if there is none, and the text: a first line that is no paragraph is a title."""
    title, _, body = passage.strip().partition("\n")
    return (title.strip(), body) if body.strip() and len(title) <= 150 else ("", passage)


def unwrapped(text: str) -> str:
    """Paragraphs that were broken into lines of one width, as one line each."""
    if not any(len(line) >= WRAPPED.start for line in text.split("\n")):
        return text
    return "\n".join("\n".join(_joined(block)) for block in re.split(r"\n\s*\n", text))


def _joined(block: str) -> list[str]:
    """The lines of a block, each with the next where that goes on in small letters, where its first word would not fit,
    and where a small word ends the line."""
    lines = [line.strip() for line in block.split("\n") if line.strip()]
    width = max((len(line) for line in lines), default=0)
    is_wrapped = len(lines) > 2 and width in WRAPPED
    joined: list[str] = []
    goes_on = False
    for line, following in pairwise([*lines, ""]):
        joined[-1:] = [f"{joined[-1]} {line}"] if goes_on else [*joined[-1:], line]
        full = is_wrapped and len(line) + 1 + len(following.partition(" ")[0]) > width
        breaks_off = line.rpartition(" ")[2] in STOP  # "The load was", before "2.5 kN"
        goes_on = len(line) >= WRAPPED.start and bool(following) and (full or breaks_off or following[:1].islower())
    return joined


def words(text: str) -> list[str]:
    """Words without case and accents; of scripts without spaces, pairs of letters."""
    text = folded(text)
    if text.isascii():
        return [word.removesuffix("'s") for word in WORD.findall(text)]
    tokens = []
    for word in WORD.findall(text):
        if UNSPACED.search(word):
            tokens += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
        else:
            tokens.append(word.removesuffix("'s").removesuffix("’s"))
    return tokens


def content_words(text: str, language: str = "en") -> list[str]:
    """Words that carry meaning, plurals and common verb endings folded. Small words of English never do, nor those of
    the `language`.

    >>> content_words("Was ist der Sinn von dpkg?"), content_words("Was ist der Sinn von dpkg?", "de")
    (['ist', 'der', 'sinn', 'von', 'dpkg'], ['sinn', 'dpkg'])
    """
    if language == "en":
        return [stem(word) for word in words(text) if word not in STOP]

    small = STOP | _stop_words_in(language)
    bare = (_ELIDED.sub("", word) for word in words(text))
    return [stem(word) for word in bare if word not in small]


@lru_cache
def _stop_words_in(language: str) -> frozenset[str]:
    asking = LANGUAGES["asking"].get(language, "").split()
    try:
        return frozenset(map(folded, [*get_stop_words(language), *asking]))
    except StopWordError:  # a language that the package lacks
        return frozenset(map(folded, asking))


@lru_cache(2**16)
def stem(word: str) -> str:
    """A crude fold, enough to match "directed" with "director" and "films" with "film"."""
    for ending in ("ations", "ation", "ings", "ing", "ors", "ers", "ies", "ed", "or", "er", "es", "s", "e"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            return word[: -len(ending)]
    return word


def clipped(text: str, limit: int = 45) -> str:
    """The first `limit` words."""
    parts = text.split()
    return text if len(parts) <= limit else " ".join(parts[:limit]) + " …"


def centralities(parts: Sequence[str]) -> list[float]:
    """Tell how often the words of each part are said in the others, long parts at no advantage."""
    bags = [set(content_words(part)) for part in parts]
    counts = Counter(word for bag in bags for word in bag)
    return [sum(counts[word] - 1 for word in bag) / (4 + len(bag)) for bag in bags]


def distinct(texts: Iterable[str], share: float = 0.8) -> list[str]:
    """Return those of which less than `share` of the content words was said by an earlier one.

    A text is compared with those alone that have one of its rarest words, since whichever says enough of it has one of
    so many: of a well-known name thousands of sentences are said.
    """
    words_of: dict[str, set[str]] = {}
    saying: defaultdict[str, list[str]] = defaultdict(list)
    for text in texts:
        own = set(content_words(text))
        needed = math.ceil(share * len(own) - 1e-9)
        rarest = sorted(own, key=lambda word: len(saying[word]))[: len(own) - needed + 1]
        alike = dict.fromkeys(chain.from_iterable(saying[word] for word in rarest))
        if text in words_of or any(len(own & words_of[other]) / len(own) >= share for other in alike):
            continue
        words_of[text] = own
        for word in own:
            saying[word].append(text)
    return list(words_of)


NOTHING_NAMED = "What is this about?"
"""The question about a text that names nothing."""


def plain_question(names: Sequence[str]) -> str:
    """The plain English question about a name, or about the first two; "" without any.

    >>> plain_question(["Ada"]), plain_question(["Ada", "Byron"])
    ('What is said about Ada?', 'What is said about Ada and Byron?')
    """
    if len(names) > 1:
        return f"What is said about {names[0]} and {names[1]}?"
    return f"What is said about {names[0]}?" if names else ""


def with_another_name(text: str, name: str, other: str) -> str:
    """The text with another name in the place of one of its own, if that is a whole word; as it is if it has none.

    Scripts without spaces have no whole words: there a name is replaced anywhere.

    >>> with_another_name("Where did Adam meet Ada?", "Ada", "Eve")
    'Where did Adam meet Eve?'
    >>> with_another_name("艾达住在哪里？", "艾达", "夏娃")
    '夏娃住在哪里？'
    """
    if not name:
        return text
    letter = rf"(?!{UNSPACED.pattern})\w"
    return re.sub(rf"(?<!{letter}){re.escape(name)}(?!{letter})", lambda _: other, text)


_MENU_WORDS = 6  # of a heading that may be one of a menu
_MENU = re.compile(
    r"\b(?:newsletters?|privacy (?:policy|notice)|cookies?|subscribe|terms of (?:use|service)"
    r"|contact us|all rights reserved|advertis\w+|share this|follow us|related (?:posts|articles|stories|content)"
    r"|leave a (?:reply|comment)|latest (?:news|posts)|read more|more from|recommended for you|site ?map"
    r"|popular posts|most read|skip to|connect with us|stay connected|sign (?:up|in)|(?:member )?log ?in|about us"
    r"|top stories|(?:submit|cancel|post) (?:a )?(?:reply|comment))\b",
    re.IGNORECASE,
)
"""Entries in the menus of web pages, which say nothing about a text's topic."""


def stands_in_menus(text: str) -> bool:
    """Whether a short text is what menus of web pages say, "Privacy Policy"."""
    return len(text.split()) <= _MENU_WORDS and bool(_MENU.search(text))
