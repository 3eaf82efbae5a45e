"""Tells where sentences end: not at abbreviations, initials, ordinals and decimals, in English, German and French.

Small rules, fast enough for what is read while a question is answered. They look at the word before the stop and at the
word behind it: "Oct." never ends a sentence before a number, "Ltd." ends one only before a word that begins sentences.
"""

import re

_ALWAYS_GOES_ON = frozenset(
    "mr mrs ms dr prof st sr sra jr messrs mme mlle mm gen col lt sgt capt rev hon gov sen rep pres mt ft vs cf viz "  # noqa: SIM905
    "e.g i.e p.ex c.-à-d approx ca env al hr fr frl bzw z.b d.h u.a d.i i.d.r s.o vgl ggf evtl inkl exkl zzgl geb "
    "gest sog avda dña jh mio mrd ph.d med phil jur rer".split()
)
"""Abbreviations behind which a sentence goes on, whatever follows."""
_BEFORE_A_NUMBER = frozenset(
    "no nos nr fig figs eq eqs sec secs ch vol vols art arts p pp pt par abb abs kap bd s tab tel ziff aufl n núm str "  # noqa: SIM905
    "jan feb mar apr jun jul aug sep sept oct nov dec okt dez janv févr juil".split()
)
"""Abbreviations behind which a sentence goes on before a number; else if they are no word as well."""
_WORDS_TOO = frozenset(("no", "nos", "fig", "figs", "art", "arts", "mar", "dec", "sec", "n"))
"""Those of them that end sentences as words."""
_OF_A_NAME = frozenset(
    "bros univ dept dist est ave av blvd rd sq bldg mfg intl assn u.s u.k u.n u.s.a d.c a.m p.m "  # noqa: SIM905
    "j.-c etc usw usf str min max std".split()
)
"""Abbreviations that may end a sentence: they do before a word that begins sentences."""
_OF_A_FIRM = frozenset("inc ltd co corp llc llp plc gmbh pty pte sdn bhd".split())  # noqa: SIM905
"""Abbreviations that end a firm's name, and a sentence before any capital but that of another of them."""
_OPENERS = frozenset(
    "the a an this that these those there here it its he his she her they their we our you your i who what when where "  # noqa: SIM905
    "why how which if in on at by for from with without after before during since until as but and or so yet then no "
    "nobody nothing never each every all both some many most one two another other however although while not to of "
    "der die das ein eine er sie es wir ihr ihre sein seine ich du man im in am an auf bei mit nach von vor zu zum zur "
    "für danach dann dort dieser diese dieses wer was wann wo wie warum alle niemand nicht kein keine heute aber und "
    "le la les l un une il elle ils elles nous vous je on ce cette ces dans en au aux son sa ses leur personne aucun "
    "mais et el los las una su sus en con no".split()
)
"""Small words that have a capital only because they begin a sentence."""
_MONTH = re.compile(
    r"(?:jan(?:uar[iy]?|vier)?|feb(?:ruar[iy]?)?|févr(?:ier)?|march|mars|märz|april|avril|mai|may|maj|june?|juni|juin"
    r"|july?|juli|juillet|aug(?:ust)?|août|sept?(?:ember|embre)?|o[ck]t(?:ober|obre)?|nov(?:ember|embre)?"
    r"|de[czs](?:ember|embre)?|décembre)\b",
    re.IGNORECASE,
)
_BEFORE_AN_ORDINAL = frozenset(
    "am im vom zum zur beim bis ab seit der die das den dem des jeder jeden jedem jedes ihr ihrem sein seinem vor und "  # noqa: SIM905
    "den det til fra i".split()
)
"""Words of German and its neighbours behind which "5." is the fifth."""
_ORDINAL_NOUN = re.compile(
    r"Jahrhundert|Jh|Stock|Etage|Bundesliga|Klasse|Platz|Auflage|Weltkrieg|Kapitel|Tag|Mal|OG|UG"
)
_NUMBER = re.compile(r"\d{1,3}")

_REFERENCE = r"\[[^\[\]\n]{1,30}\]|\(\d{1,3}\)|[\u00b9\u00b2\u00b3\u2070\u2074-\u2079]"
"""What marks a note right behind a stop: "[2]", "[note 1]", "(1)", a raised digit."""
_STOPS = (
    "\u203c\u2047-\u2049\u3002\uff01\uff1f\uff61\u0589\u061d-\u061f\u06d4\u0700-\u0702\u07f9\u0964\u0965\u0f0d\u0f0e"
    "\u104a\u104b\u1362\u1367\u1368\u166e\u1735\u1736\u17d4\u17d5\u1803\u1809\u1944\u1945\u1b5a\u1b5b\u1b5e\u1b5f\u1c3b\u1c3c"
    "\u1c7e\u1c7f\ua4ff\ua60e\ua60f\ua876\ua877\ua9c8\ua9c9\uaa5d-\uaa5f\uabeb"
)
"""Stops of other scripts (Unicode's property Sentence_Terminal), behind which no space need stand."""
_END = re.compile(
    rf"(?<=[.!?…])(?:[\"”’')\]]|[\s\u00a0\u202f]?»|{_REFERENCE})*\s+|(?<=[{_STOPS}])[」』”\"]*\s*"
    r"|(?<=[\u0370-\u03ff\u1f00-\u1fff];)\s+(?=[\u0370-\u03ff\u1f00-\u1fff])|\n+"  # the question mark of Greek
)
_CLOSING = "\"”’')]»  \u00a0\u202f"
_OPENING = "\"“‘'([«„ "


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """(start, end) in characters, in order, white space at the edges left out; none for a text of white space.

    A line break ends a sentence. An abbreviation, an initial, an ordinal with a stop or a stop before a small letter
    does not, nor does what is said in quotes before its "he asked".

    >>> text = "Er kam am 5. Mai 1934. Dr. A. Lund ging."
    >>> [text[start:end] for start, end in sentence_spans(text)]
    ['Er kam am 5. Mai 1934.', 'Dr. A. Lund ging.']
    """
    spans: list[tuple[int, int]] = []
    start = 0
    breaks = [place.end() for place in _END.finditer(text) if "\n" in place[0] or _ends(text, place)]
    for end in [*breaks, len(text)]:
        sentence = text[start:end]
        if sentence.strip():
            spans.append((start + len(sentence) - len(sentence.lstrip()), start + len(sentence.rstrip())))
        start = end
    return spans


def _ends(text: str, place: re.Match[str]) -> bool:
    before = text[max(0, place.start() - 60) : place.start()].rstrip(_CLOSING)
    following = text[place.end() : place.end() + 40].lstrip(_OPENING)
    is_small = following[:1].islower()
    if not before.endswith("."):
        return not (is_small and place[0].strip())  # "Why?" he asked

    return not is_small and not _goes_on(before.rpartition("\n")[2], following)


def _goes_on(before: str, following: str) -> bool:
    """Whether the stop at the end of `before` belongs to its last word, not to the sentence."""
    *earlier, last = before.split()
    last = last.rstrip(".!?…").lstrip(_OPENING).lower()
    last = re.sub(r"^(?:\w+-|[dl]['’])(?=art$|str$)", "", last)
    match = re.match(r"[\w’']+\.?", following)
    next_word = match[0].lower() if match else ""
    opens = next_word in _OPENERS

    if _NUMBER.fullmatch(last):
        return _is_ordinal([word.lower() for word in earlier], following)
    if last in _ALWAYS_GOES_ON:
        return True
    if last in _BEFORE_A_NUMBER and following[:1].isdigit():
        return True
    if last in _BEFORE_A_NUMBER and last not in _WORDS_TOO and len(last) > 1:
        return not opens
    if last in _OF_A_FIRM:
        return next_word.rstrip(".") in _OF_A_FIRM
    if last in _OF_A_NAME or last.endswith("str") or _is_initial(last):
        return bool(following) and not opens
    return False


def _is_initial(last: str) -> bool:
    """Whether it is a letter, or letters with stops between: "J", "J.R", "U.S"."""
    return all(len(part) == 1 and part.isalpha() for part in re.split(r"\.-?", last))


def _is_ordinal(earlier: list[str], following: str) -> bool:
    """Whether a number with a stop is the "5." of "am 5. Mai" or the mark of a list's item, and ends no sentence."""
    if not earlier:
        return True
    return bool(
        earlier[-1].strip(_OPENING) in _BEFORE_AN_ORDINAL or _MONTH.match(following) or _ORDINAL_NOUN.match(following)
    )
