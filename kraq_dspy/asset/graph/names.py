"""Says when two spellings are one name: keys of names, in any script."""

import itertools
import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache

from rapidfuzz.distance import Levenshtein

_TRADE_MARKS = str.maketrans("", "", "™®©℠")  # NFKC would turn them into letters
_ARTICLE = re.compile(r"(?:the|an?)\s+(?=[^\W\d_])")
_ARTICLES = frozenset(("the", "a", "an"))
_POSSESSIVE = re.compile(r"(?<=[^\W\d_])['’ʼ＇]s\b(?!['’]\w)", re.IGNORECASE)
_APOSTROPHE = re.compile(r"(?<=\w)['’ʼʻ‘`´](?=\w)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_DECIMAL = re.compile(r"(?<=\d)[.,:/](?=\d)")
_ABBREVIATION = re.compile(r"(?<![^\W_])([^\W\d_])\.(?=[^\W\d_](?:\.|\b))")
_MINUS = re.compile(r"(?<!\w)[-−](?=\d)")
_KEPT_PUNCTUATION = frozenset("%‰#@")
_HYPHEN = re.compile(r"(?<=[^\W\d_]{2})[-‐‑](?=[^\W\d_]{2})")
_COMMA_INVERTED = re.compile(r"\s*(\w+),\s*((?:[^\W\d_]\.\s*)+)")
_ACRONYM_BEHIND = re.compile(r"(.+?)(?<!\s)\s*\(([^\W\d_]{2,8})\)\s*")
_ACRONYM_IN_BRACKETS = re.compile(r"\s\(((?:[^\W\d_]\.?){2,8})\)")
_LONGEST_NAME = 12  # words
_TURNABLE = frozenset(("battle", "treaty", "siege", "city"))  # not "university": Washington has one of each order
_COUNTRY = re.compile(r"\b(?:U\.\s?S\.|US)(?=\s+\w)|\b(?:U\.\s?K\.|UK)(?=\s+\w)")
_ROMAN = re.compile(r"m{0,3}(?:cm|cd|d?c{0,3})(?:xc|xl|l?x{0,3})(?:ix|iv|v?i{0,3})")
_DISTINGUISHING = """
    first second third fourth fifth sixth seventh eighth ninth tenth one two three four five six seven eight nine
    ten north south east west northern southern eastern western northeast northwest southeast southwest central
    upper lower new old great greater lesser major minor senior junior sr jr elder younger mr mrs ms miss lady lord
    king queen prince princess duke duchess sir dame men women boys girls male female man woman father mother son
    daughter brother sister pre post anti non pro summer winter spring autumn january february march april may june
    july august september october november december monday tuesday wednesday thursday friday saturday sunday early
    late former future under over not no
"""
_WORDS_THAT_DISTINGUISH = frozenset(_DISTINGUISHING.split())
_ABBREVIATIONS = {
    "nyc": ("new york city",),
    "usa": ("united states of america", "united states"),
    "us": ("united states of america", "united states"),
    "uk": ("united kingdom",),
    "un": ("united nations",),
    "eu": ("european union",),
    "uae": ("united arab emirates",),
    "ussr": ("soviet union",),
}
FORMS_OF_ADDRESS = frozenset(("mr", "mrs", "ms", "miss", "dr", "prof", "professor"))
_PERSONS = frozenset(("person", "people", "human", "character", "individual"))
_FUNCTION_WORDS = frozenset(("of", "the", "in", "at", "for", "de", "del", "du", "des", "la", "le", "von"))


@lru_cache(maxsize=2**16)  # asked for the same names in every step of resolution
def normalise_name(name: str) -> str:
    """The key under which spellings of one name meet: NFKC, casefolded, without quotes, punctuation, a leading English
    article, a possessive 's and repeated white space; "&" reads "and".

    Signs that carry meaning stay: "C++", "C#", "5%", "$20", "-3", "1.5". Letters of every script stay with their
    marks. Never empty for a name that is not blank: a name of punctuation alone is its own key.
    """
    if name.isascii() and name.replace(" ", "").isalnum():  # as most names are, and then little can be done to them
        tokens = name.lower().split()
        if tokens[0] in _ARTICLES and len(tokens) > 1 and tokens[1][0].isalpha():
            del tokens[0]
        return " ".join(_joined_initials(tokens) if 1 in map(len, tokens) else tokens)
    return _normalised(name)


def _normalised(name: str) -> str:
    """Normalise a name with other letters than ASCII's, or with marks."""
    text = unicodedata.normalize("NFKC", name.translate(_TRADE_MARKS))
    text = unicodedata.normalize("NFKC", text.casefold()).strip()
    bare = text.lstrip("\"'“”‘’«»„‹›「」『』《》〈〉([{ ")
    if _ARTICLE.match(bare):
        text = _ARTICLE.sub("", bare, count=1)

    text = _POSSESSIVE.sub("", text)
    text = _APOSTROPHE.sub("", text)
    text = _THOUSANDS.sub("", text)
    text = _ABBREVIATION.sub(r"\1", text)

    # Signs inside of numbers take a private place while the other marks go.
    text = _MINUS.sub("\ue000", text)
    text = _DECIMAL.sub(lambda mark: chr(0xE001 + ".,:/".index(mark.group())), text)
    text = "".join(map(_kept, text.replace("&", " and ")))
    for number, sign in enumerate("-.,:/"):
        text = text.replace(chr(0xE000 + number), sign)

    joined = " ".join(_joined_initials(text.split()))
    return joined or unicodedata.normalize("NFKC", name).strip() or name


@cache
def _kept(sign: str) -> str:
    kind = unicodedata.category(sign)
    if kind[0] in "LMN" or kind in ("Sm", "Sc", "So", "Co") or sign in _KEPT_PUNCTUATION:
        return sign
    return "" if kind == "Cf" else " "


def _joined_initials(tokens: list[str]) -> list[str]:
    """ "j r r tolkien" as "jrr tolkien": initials are written with and without spaces. Cased scripts only."""
    joined: list[str] = []
    run = ""
    for token in tokens:
        if len(token) == 1 and token.isalpha() and token.upper() != token:
            run += token
            continue

        if run:
            joined.append(run)
            run = ""
        joined.append(token)
    return [*joined, run] if run else joined


def skeletons(name: str, key: str | None = None) -> frozenset[str]:
    """Return what is left of a name without differences that do not tell two things apart; names
    that share one may be merged.

    Beyond `normalise_name`: accents of Latin letters, spaces and hyphens ("Spider-Man", "Spiderman"), "the" inside,
    the name's own acronym behind it ("Federal Communications Commission (FCC)"), "U.S. Navy", "Tolkien, J. R. R.",
    "Treaty of Versailles" and "Versailles Treaty", "City of New York" and "New York City". A name written in small
    letters alone has another one without the plural s of its last word. In short names every letter counts: accents
    stay in names of five letters ("Paris", "Pâris"), and shorter names have their key alone. `key` is the
    normalised name, if it is known.
    """
    key = normalise_name(name) if key is None else key
    plain = _in_plain_order(name)
    normalised = key if plain == name else normalise_name(plain)
    tokens = [token for token in normalised.split() if token != "the"]
    if len(tokens) >= 3 and tokens[1] == "of" and tokens[0] in _TURNABLE:
        tokens = [*tokens[2:], tokens[0]]

    length = sum(map(len, tokens))
    if length < 5:
        return frozenset({key})
    if length > 5 and not name.isascii():
        tokens = [_without_accents(token) for token in tokens]

    # "Christ Church" is not Christchurch, nor "West Chester" Westchester: a space between two words counts.
    two_words = len(tokens) == 2 and plain.lower() != plain.upper()
    keys = {" ".join(tokens) if two_words else _compact(tokens)}
    if name == name.lower() and name != name.upper():
        keys.add("~" + _compact([*tokens[:-1], _singular(tokens[-1])]))
    return frozenset(keys)


def _in_plain_order(name: str) -> str:
    """The name as it is said: "J. R. R. Tolkien", without its acronym, hyphens, or "U.S." for a
    country. What else stands behind a comma ("Paris, France") stays."""
    plain = name
    if inverted := _COMMA_INVERTED.fullmatch(name):
        plain = f"{inverted[2]} {inverted[1]}"

    acronym = _ACRONYM_BEHIND.fullmatch(plain)
    if acronym and acronym[2].casefold() in initials(normalise_name(acronym[1])):
        plain = acronym[1]
    if "U" in plain:
        plain = _COUNTRY.sub(_country_in_full, plain)
    return _HYPHEN.sub("", plain)


def _country_in_full(short: re.Match[str]) -> str:
    return "United States" if "S" in short[0] else "United Kingdom"


def _singular(token: str) -> str:
    """The singular of an English noun of five letters or more; everything else stays as it is."""
    if len(token) < 5 or not (token.isascii() and token.isalpha()) or not token.endswith("s"):
        return token
    if token.endswith(("ss", "us", "is", "ics")):
        return token
    if token.endswith("ies"):
        return token[:-3] + "y"
    if token.endswith(("ches", "shes", "xes", "sses")):
        return token[:-2]
    return token[:-1]


def _compact(tokens: list[str]) -> str:
    """Joined, but with a gap beside numbers and single letters: "1 11" is not "11 1", nor "A-side" aside."""
    text = ""
    for before, token in itertools.pairwise(["", *tokens]):
        gap = before and (before[-1].isdigit() or token[0].isdigit() or 1 in (len(before), len(token)))
        text += f" {token}" if gap else token
    return text


def _without_accents(token: str) -> str:
    """Latin letters without their accents; marks of other scripts carry meaning and stay."""
    if token.isascii():
        return token
    signs: list[str] = []
    for sign in unicodedata.normalize("NFD", token):
        if unicodedata.combining(sign) and signs and signs[-1].isascii():
            continue
        signs.append(sign)
    return unicodedata.normalize("NFC", "".join(signs))


def initials(key: str) -> frozenset[str]:
    """The acronyms that a name of two words or more may go by: with and without its function words."""
    tokens = key.split()
    content = [token for token in tokens if token not in _FUNCTION_WORDS and token != "and"]
    if len(content) < 2:
        return frozenset()
    return frozenset("".join(token[0] for token in words) for words in (tokens, content))


def introduced_acronyms(texts: Iterable[str]) -> frozenset[tuple[str, str]]:
    """(acronym, name), as keys, that a text introduces: "the Universidad de Buenos Aires (UBA)"."""
    introduced = set()
    for text in texts:
        if "(" not in text:
            continue

        for bracket in _ACRONYM_IN_BRACKETS.finditer(text):
            short = normalise_name(bracket[1])
            words = text[: bracket.start()].split()[-_LONGEST_NAME:]
            for start in range(len(words) - 1):
                name = normalise_name(" ".join(words[start:]))
                if short in initials(name):
                    introduced.add((short, name))
    return frozenset(introduced)


def is_capitalised(name: str) -> bool:
    """Every word of four letters or more begins with a capital, and so does the name."""
    words = [word for word in re.split(r"[\s-]+", name) if word[:1].isalpha()]
    return bool(words) and all(word[0].isupper() for word in words if len(word) > 3 or word is words[0])


def looks_like_acronym(name: str) -> bool:
    """ "UBA", "U.S.", "NATO"; not "Uba", nor "1990"."""
    if not name.isupper():  # as most names are not
        return False
    letters = name.replace(".", "").strip()
    return 2 <= len(letters) <= 8 and letters.isalpha() and letters.isupper() and letters.lower() != letters


def distinguishing_marks(key: str) -> tuple[str, ...]:
    """The parts of a key in which different things differ: numbers, roman numerals, initials, "north", "junior", ...

    Names whose marks differ are never the same. Sorted; roman numerals as written.

    >>> distinguishing_marks("north korea"), distinguishing_marks("world war ii")
    (('north',), ('ii',))
    """
    return tuple(sorted(token for token in key.split() if _distinguishes(token)))


def _distinguishes(token: str) -> bool:
    return (
        any(sign.isdigit() for sign in token)
        or token in _WORDS_THAT_DISTINGUISH
        or (len(token) == 1 and token.isalpha())
        or _ROMAN.fullmatch(token) is not None
    )


def may_be_a_person(name: str, kind: str) -> bool:
    """Whether a name is that of a person, or may be one as far as its spelling goes.

    `kind` is the type that was extracted, "" if it is unknown: then two to four capitalised words may be a person.

    >>> may_be_a_person("Maria Garcia", ""), may_be_a_person("University of Oslo", ""), may_be_a_person("Oslo", "city")
    (True, False, False)
    """
    if kind:
        return kind.casefold() in _PERSONS
    words = name.split()
    return 2 <= len(words) <= 4 and all(word[:1].isupper() and word.strip(".").isalpha() for word in words)


def abbreviated(short: str) -> tuple[str, ...]:
    """The keys of what an acronym's key stands for all over the world; none for any other acronym.

    Acronyms that fit one name of a corpus are no proof: of 114 such pairs in two sets of passages a good part are two
    things ("CIA", Chennai International Airport).

    >>> abbreviated("nyc"), abbreviated("cia")
    (('new york city',), ())
    """
    return _ABBREVIATIONS.get(short, ())


def differ_by_a_slip(first: str, second: str) -> bool:
    """Whether two keys of three words or more are alike but for one letter inside one long word: "Deursen", "Deusen".

    The slip is one letter more, less or other, behind the first three and before the last two of a word of six letters
    or more. At the ends of words such a difference means something ("Korea", "Korean"; "Henry", "McHenry"). The word is
    neither the first nor behind an "of": there it is the one that names the thing ("Colton" and "Colyton Grammar
    School" are two), and two of the other words have four letters or more.
    """
    a, b = first.split(), second.split()
    differing = [place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y]
    if len(a) != len(b) or len(differing) != 1:
        return False

    [place] = differing
    others = [word for word in a[:place] + a[place + 1 :] if len(word) > 3 and word not in _FUNCTION_WORDS]
    if place == 0 or a[place - 1] in _FUNCTION_WORDS or len(others) < 2:
        return False

    x, y = a[place], b[place]
    if min(len(x), len(y)) < 5 or max(len(x), len(y)) < 6 or not (x + y).isalpha():
        return False
    return x[:3] == y[:3] and x[-2:] == y[-2:] and Levenshtein.distance(x, y, score_cutoff=1) == 1
