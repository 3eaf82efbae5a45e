"""Takes out of a parsed sentence what it names, and who does what to whom."""

import re
from collections.abc import Iterator, Sequence, Set as AbstractSet
from typing import TYPE_CHECKING

from kraq_dspy.embedded.names import INITIALS
from kraq_dspy.embedded.reading.vocabulary import FILLERS, names_a_part
from kraq_dspy.language.analysis import Link, Named
from kraq_dspy.language.vocabulary import STOP
from kraq_dspy.records import PHRASE

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

KINDS = {
    "PERSON": "person",
    "ORG": "organisation",
    "GPE": "place",
    "LOC": "place",
    "FAC": "place",
    "NORP": "group",
    "EVENT": "event",
    "WORK_OF_ART": "work",
    "LAW": "work",
    "PRODUCT": "product",
}
"""The labels of spaCy's names, as kinds of entities; amounts, dates and the like name nothing."""
MEASURES = frozenset(("DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL"))
LONGEST_PHRASE = 5  # words
ABOUT = frozenset(("about", "concerning", "regarding"))
_LETTERS = re.compile(r"[^\W\d_]{2}")
_ODD = re.compile(r"[|<>=#*_{}\[\]\\/@]|^\W|\.\.|https?:|www\.")


def named_in(sentence: "Span") -> list[Named]:
    """Names and noun phrases in reading order, each once; a phrase that is a part of a name is left out, and so is what
    stands alone in its line, as a heading does."""
    placed = sorted([*_names(sentence), *_phrases(sentence)], key=lambda each: each[0])
    unique = {named.text.casefold(): named for _, named in reversed(placed)}
    unique.pop(sentence.text.strip(" \n:").casefold(), None)
    return list(reversed(unique.values()))


def names_in(aside: "Span") -> list[Named]:
    """The names in what stands in brackets, in reading order, that the parser has found."""
    return [
        Named(text, KINDS[name.label_], name.root.lemma_.lower())
        for name in aside.ents
        if name.label_ in KINDS and (text := _name_of(name))
    ]


def _names(sentence: "Span") -> Iterator[tuple[int, Named]]:
    """spaCy's names, and words with capitals that its tagger takes for names."""
    taken: set[int] = set()
    for entity in sentence.ents:
        text = _name_of(entity)
        if text:
            taken.update(range(entity.start, entity.end))
            yield entity.start, Named(text, KINDS.get(entity.label_, "concept"), entity.root.lemma_.lower())

    for run in _runs_of_names(sentence, taken):
        text = _clean(run)
        is_name = any(map(str.isupper, text)) and not names_a_part(text)
        if is_name and not (len(run) == 1 and _begins(run[0])):
            yield run[0].i, Named(text, "concept", run[-1].lemma_.lower())


def _name_of(entity: "Span") -> str:
    """The name that spaCy found, as it stands; "" for one that names nothing: a measure, an adjective, a plain word."""
    is_adjective = entity.label_ == "NORP" and entity.root.pos_ == "ADJ"  # "American" says what a thing is like
    if entity.label_ in MEASURES or entity.label_ == "LANGUAGE" or is_adjective:
        return ""
    text = _clean(list(entity))
    has_noun = any(token.pos_ in ("PROPN", "NOUN") for token in entity) or text[:1].isupper()
    return text if has_noun and not _is_plain_word(entity) and not names_a_part(text) else ""


def _runs_of_names(sentence: "Span", taken: "AbstractSet[int]") -> "Iterator[list[Token]]":
    """Words beside each other that the tagger takes for names, and that are in none of spaCy's."""
    run: list[Token] = []
    for token in sentence:
        if token.pos_ == "PROPN" and token.i not in taken and not token.ent_type_:
            run.append(token)
        elif run:
            yield run
            run = []
    if run:
        yield run


def _is_plain_word(entity: "Span") -> bool:
    """Whether a single word with a small letter, which is no name of somebody, was taken for a name."""
    return len(entity) == 1 and entity.text.islower() and entity.label_ not in ("PERSON", "GPE", "NORP")


def _begins(token: "Token") -> bool:
    """Whether the capital may be the sentence's: a word that is no acronym begins it."""
    return bool(token.i == token.sent.start and token.text.istitle())


def _phrases(sentence: "Span") -> Iterator[tuple[int, Named]]:
    for chunk in sentence.noun_chunks:
        head = chunk.root
        if head.pos_ != "NOUN" or head.ent_type_ in MEASURES:
            continue
        words = _behind_left_out(list(chunk))
        while words and (words[0].pos_ not in ("NOUN", "PROPN", "ADJ", "VERB") or not words[0].text[:1].isalpha()):
            words.pop(0)
        if not words or len(words) > LONGEST_PHRASE or (len(words) == 1 and head.lemma_.lower() in FILLERS):
            continue
        text = _clean(words)
        if text:
            yield words[0].i, Named(_lowered(words, text), PHRASE, head.lemma_.lower())


def _behind_left_out(words: "list[Token]") -> "list[Token]":
    """The words behind the last one that names nothing: "83 percent fewer colonies" names colonies. A hyphen between
    two words is a part of them."""
    kept = [*words]
    while kept and _is_left_out(kept[-1]):
        kept.pop()
    for place in range(len(kept) - 1, -1, -1):
        is_hyphen = kept[place].text == "-" and place > 0 and not kept[place - 1].whitespace_
        if _is_left_out(kept[place]) and not is_hyphen:
            return kept[place + 1 :]
    return kept


def _is_left_out(token: "Token") -> bool:
    """Articles, numbers and what points at something: none of what a phrase names."""
    return (
        token.pos_ in ("DET", "PRON", "NUM", "PUNCT", "SPACE", "ADV", "CCONJ", "SYM")
        or token.tag_ in ("PRP$", "POS", "JJR", "JJS")
        or token.lower_
        in ("other", "such", "same", "many", "several", "few", "certain", "own", "first", "last", "next")
    )


def _lowered(words: "list[Token]", text: str) -> str:
    """The phrase without the capital of the sentence that it begins."""
    first = words[0]
    begins = all(token.pos_ in ("DET", "PUNCT", "SPACE") for token in first.doc[first.sent.start : first.i])
    if begins and first.text.istitle() and first.pos_ != "PROPN" and not first.ent_type_:
        return text[:1].lower() + text[1:]
    return text


def _clean(words: "list[Token]") -> str:
    """The words as they stand; "" for what is no name by its letters."""
    text = "".join(token.text_with_ws for token in _without_ends(words)).strip()
    if text.endswith(".") and not INITIALS.fullmatch(text):
        text = text[:-1]
    return text if _may_be_name(text) else ""


def _without_ends(words: "list[Token]") -> "list[Token]":
    """The words without articles before them, and without marks behind them."""
    inner = [*words]
    while inner and (inner[0].pos_ in ("DET", "PUNCT", "SPACE") or inner[0].lower_ in ("the", "a", "an")):
        inner.pop(0)
    while inner and (inner[-1].pos_ in ("PUNCT", "SPACE") or inner[-1].tag_ == "POS"):
        inner.pop()
    return inner


def _may_be_name(text: str) -> bool:
    """Whether its letters may be those of a name: no odd sign, no bracket left open, no word that says nothing."""
    is_odd = _ODD.search(text) is not None or "\n" in text or len(text) > 80
    is_torn = text.count("(") != text.count(")")
    return _LETTERS.search(text) is not None and not is_odd and not is_torn and text.lower() not in STOP


def links_in(sentence: "Span", named: list[Named]) -> list[Link]:
    """Subject, verb and object, where both ends are named; also what a preposition of the verb leads to."""
    by_text = {each.text.casefold(): each.text for each in named}
    links = []
    for verb in sentence:
        if verb.pos_ not in ("VERB", "AUX"):
            continue
        subjects = [child for child in verb.children if child.dep_ in ("nsubj", "nsubjpass")]
        if not subjects:
            continue
        source = name_in(subjects[0], by_text)
        if not source:
            continue
        for predicate, target_token in _targets(verb):
            target = name_in(target_token, by_text)
            if target and target != source:
                links.append(Link(source, predicate, target))
    return links


def _targets(verb: "Token") -> Iterator[tuple[str, "Token"]]:
    """What the verb leads to, each with the words between."""
    spoken = _verb_phrase(verb)
    for child in verb.children:
        if child.dep_ in ("dobj", "attr", "oprd", "dative") and child.pos_ in ("NOUN", "PROPN"):
            yield from ((spoken, each) for each in (child, *child.conjuncts))
        elif child.dep_ in ("prep", "agent"):
            for deeper in child.children:
                if deeper.dep_ == "pobj":
                    yield f"{spoken} {child.lower_}", deeper
        elif child.dep_ == "xcomp" and child.pos_ == "VERB":
            yield from ((f"{spoken} to {predicate}", token) for predicate, token in _targets(child))


def _verb_phrase(verb: "Token") -> str:
    parts = [child for child in verb.children if child.dep_ in ("auxpass", "neg", "prt")]
    return " ".join(token.lower_ for token in sorted([*parts, verb], key=lambda token: token.i))


def told_of(sentence: "Span", named: Sequence[Named]) -> list[Named]:
    """What a sentence tells of: its subjects, its objects, what there is, and what is spoken "about"; in its order."""
    by_text = {each.text.casefold(): each.text for each in named}
    names = {name_in(token, by_text) for token in sentence if _is_told_of(token)}
    return [each for each in named if each.text in names]


def _is_told_of(token: "Token") -> bool:
    if token.dep_ == "pobj":
        counted = token.head.head  # "a number of masks"
        is_counted = token.head.lower_ == "of" and (counted.lemma_.lower() in FILLERS or counted.pos_ == "NUM")
        return token.head.lower_ in ABOUT or (is_counted and _is_told_of(counted))
    is_there = token.dep_ == "attr" and any(child.dep_ == "expl" for child in token.head.children)
    return is_there or token.dep_ in ("nsubj", "nsubjpass", "dobj")


def name_in(token: "Token", by_text: dict[str, str]) -> str:
    """The longest thing that is named with this head; "" for none."""
    for start in range(token.left_edge.i, token.i + 1):
        for end in range(min(token.right_edge.i, token.i + 4), token.i - 1, -1):
            text = token.doc[start : end + 1].text.strip().casefold()
            text = text if text in by_text else text.removesuffix(".")
            if text in by_text:
                return by_text[text]
    return ""
