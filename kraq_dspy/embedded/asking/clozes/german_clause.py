"""Reads German statements: what stands before the finite verb, the verb, and what stands behind it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kraq_dspy.embedded.asking.clozes.cloze import IN_BRACKETS, any_of, joined, words_of

DETERMINERS, PREPOSITIONS = words_of("de", "determiners"), words_of("de", "prepositions")
POINTS = words_of("de", "points")
ABOUT = rf"{any_of(words_of('de', 'about'))}|über|mehr als|weniger als|bis zu"
"""What stands before a number that is not exact."""
ARTICLES = frozenset(("Der", "Die", "Das"))
STATES = frozenset(("ist", "sind", "war", "waren"))
_HAS = frozenset(("hat", "haben", "hatte", "hatten"))
_AUXILIARY, _FINITE = words_of("de", "auxiliary"), words_of("de", "finite")
_OPENS, _PASSING = words_of("de", "opens"), words_of("de", "passing")
"""Words that a statement is whole without, at its beginning ("Außerdem") and inside ("jedoch")."""
_NO_VERBS = words_of("de", "no_verbs")
"""Words in -t that look like verbs: "nicht", "bekannt"."""
_NEVER_FIRST = words_of("de", "first_never") | POINTS
"""Words with which no statement begins that stands alone."""
_SUBORDINATE = any_of(words_of("de", "subordinate"))
_VERB = rf"(?:{any_of(_AUXILIARY | _FINITE)}|[a-zäöüß]{{3,30}}te[nt]?)"
_COMPLEMENT = re.compile(r"(?:dass|ob|wie|was|wo|warum|weshalb|wer)\b")
"""First words of clauses without which a statement says nothing."""
_ENDS_OPEN = re.compile(
    r"\b(?:ein|eine|einen|einem|einer|so|solche) (?:[\w-]{1,30} ){0,2}[A-ZÄÖÜ][\w-]{1,40}(?: [a-zäöü]{2,4})?$"
)
_CUT = re.compile(rf"; | [–—-] |, (?=(?:{_SUBORDINATE}|eine?)\b)|: ")
"""What stands between a main clause and the next clause, or an apposition."""
_GOES_ON = re.compile(rf", (?!(?:{_SUBORDINATE})\b)[a-zäöü]")
_ASIDE_BETWEEN = re.compile(
    r", (?:(?:in|mit|von|auf|bei|aus|an|für) )?"
    rf"(?:der|die|das|dem|den|denen|deren|dessen|ein|eine|welcher?|welches) [^,;:]{{1,120}},(?= {_VERB}\b)"
)
"""A clause or another name between the subject and its verb."""
_LIST = re.compile(r", (?>[^,]+? (?:und|oder) )[^,]+$")
_TO_INFINITIVE = re.compile(r" zu \w{1,40}$|(?<!\w)[a-zäöü]{0,12}zu\w{1,30}en$")
_SECOND_VERB = re.compile(rf" und (?:(?:auch|später|dann|danach|seit \d{{4}}|\d{{4}}) )?(?={_VERB}\b)")
_REGULAR = re.compile(r"(?!heute|weite|letzte)[a-zäöüß]{3,30}(?:te|ten|t)")
"""A verb that behind a noun may be told by its ending."""
_STRONG = re.compile(rf"(?:be|ent|er|ver|zer|miss|ge|über|unter|wider)?(?:{any_of(words_of('de', 'strong'))})(?:en)?")
_PARTICIPLE = re.compile(r"(?<!\w)[a-zäöüß]{3,30}(?:t|en|ern|eln)$")
_ADVERB = re.compile(
    r"[A-ZÄÖÜ][a-zäöüß]{1,30}(?:lich|end|weise|ens|mals|ings|gens|ßen|nommen)|Später|Bisher|Anfangs|Daraufhin|Einst"
)
IS_NAME = re.compile(r"(?:(?:Der|Die|Das) )?[A-ZÄÖÜ][\w-]*(?: [A-ZÄÖÜ][\w-]*)*")
_LONGEST_FIRST, _LONGEST_FIRST_OF_AUXILIARY = 9, 12
"""Words before the finite verb."""
_FEWEST_INVERTED = 3  # words, of a clause whose verb comes first


@dataclass(frozen=True, slots=True)
class Clause:
    """A main clause: what stands before the finite verb, the verb, and what stands behind it."""

    first: str
    verb: str
    rest: str

    @property
    def is_named(self) -> bool:
        """Whether the first part is a name or a noun without an article, and no adverb."""
        article = self.first.partition(" ")[0]
        is_name = IS_NAME.fullmatch(self.first) is not None and not _ADVERB.fullmatch(self.first)
        return article not in ARTICLES and is_name

    def inverted(self, rest: str, *, first: bool = True) -> str:
        """The verb and what follows it where another word comes first; "sich" stays beside the verb."""
        subject = in_sentence(self.first) if first else ""
        if rest.startswith("sich "):
            return joined(self.verb, "sich", subject, rest.removeprefix("sich "))
        return joined(self.verb, subject, rest)


def clause_in(sentence: str) -> Clause | None:
    """The main clause of a statement; None where it cannot be told apart, or points elsewhere."""
    words = _words_of_main_clause(sentence)
    if not words or _points_elsewhere(words):
        return None
    if words[0] in _OPENS:
        words = words[1:]
        if not words or words[0][:1].islower():
            return _inverted(words)

    words = [word for place, word in enumerate(words) if not place or word not in _PASSING]
    place = _place_of_verb(words)
    return _parted_at(words, place) if place is not None else None


def _words_of_main_clause(sentence: str) -> list[str]:
    """The words of a statement's main clause, without what stands in brackets; none of speech, and of no sentence."""
    plain = IN_BRACKETS.sub("", sentence.strip())
    if not plain.endswith(".") or any(mark in plain for mark in ('"', "—", "http")):
        return []
    return _main_clause(plain.removesuffix(".")).split()


def _points_elsewhere(words: Sequence[str]) -> bool:
    """Whether a clause begins with a word that points to another sentence, or with "das" that is no article."""
    is_bare_article = words[0] in ARTICLES and len(words) > 1 and words[1] in _AUXILIARY
    return is_bare_article or words[0].lower() in _NEVER_FIRST


def _parted_at(words: Sequence[str], place: int) -> Clause | None:
    """The clause whose verb stands at this place; None where nothing follows, or where the verb's end is missing."""
    first, verb, rest = " ".join(words[:place]), words[place], " ".join(words[place + 1 :])
    needs_end = verb in _AUXILIARY and verb not in STATES | _HAS
    is_cut = needs_end and not ends_like_participle(rest)
    return Clause(first, verb, rest) if rest and not is_cut else None


def _inverted(words: Sequence[str]) -> Clause | None:
    """The clause behind an opening word such as "Außerdem", whose verb comes first."""
    is_verb_first = bool(words) and (words[0] in _AUXILIARY or words[0] in _FINITE or words[0].endswith("te"))
    return Clause("", words[0], " ".join(words[1:])) if is_verb_first and len(words) > _FEWEST_INVERTED else None


def _main_clause(text: str) -> str:
    """The text without other clauses and appositions; "" where what would be left is no whole statement."""
    text = _before_next_clause(_ASIDE_BETWEEN.sub("", text))
    second = _SECOND_VERB.search(text)
    if second is not None and not text[: second.start()].endswith("te"):
        text = text[: second.start()]
    return _without_apposition(text)


def _before_next_clause(text: str) -> str:
    """The text up to where another clause begins; "" if the statement needs that clause, or goes on behind it."""
    cut = _CUT.search(text)
    if cut is None:
        return text
    before, behind = text[: cut.start()], text[cut.end() :]
    is_needed = _COMPLEMENT.match(behind) or _ENDS_OPEN.search(before) or _GOES_ON.search(behind)
    return "" if cut[0] == ": " or (cut[0] == ", " and is_needed) else before


def _without_apposition(text: str) -> str:
    """The text without an apposition at its end; "" if it has commas that are neither an apposition's nor a list's."""
    n_commas = text.count(", ")
    if not n_commas or _LIST.search(text):
        return text
    is_apposition = n_commas == 1 and not _TO_INFINITIVE.search(text)
    return text.partition(", ")[0] if is_apposition else ""


def _place_of_verb(words: Sequence[str]) -> int | None:
    """Where the finite verb stands; None where no word is surely one."""
    for place, word in enumerate(words[: _LONGEST_FIRST_OF_AUXILIARY + 1]):
        if word.endswith(","):
            return None
        if place and word in _AUXILIARY:
            return place
        if 0 < place <= _LONGEST_FIRST and _is_verb(words, place):
            return place
    return None


def _is_verb(words: Sequence[str], place: int) -> bool:
    """Whether a word behind a noun is a finite verb, and no attribute of a noun that follows."""
    word, before = words[place], words[place - 1]
    follows_noun = before[:1].isupper() or before[:1].isdigit() or before.endswith(("“", "«"))
    if not follows_noun or before in POINTS:
        return False

    begins_with_article = words[0].lower() in DETERMINERS
    is_attribute = begins_with_article and (place == 1 or words[1] in PREPOSITIONS)  # "das in Ulm gebaute Haus"
    if is_attribute:
        return False
    is_regular = _REGULAR.fullmatch(word) is not None and word not in _NO_VERBS
    return word in _FINITE or is_regular or _STRONG.fullmatch(word) is not None


def in_sentence(first: str) -> str:
    """The first part as it stands inside of a sentence."""
    word, _, rest = first.partition(" ")
    is_small = word.lower() in DETERMINERS | PREPOSITIONS
    return joined(word.lower() if is_small else word, rest)


def ends_like_participle(rest: str) -> bool:
    """Whether the clause ends in a small word that may be a participle or an infinitive."""
    return _PARTICIPLE.search(rest) is not None
