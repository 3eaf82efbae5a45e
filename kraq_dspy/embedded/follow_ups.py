"""Completes a question from the conversation before it: pronouns and short ways of asking get the names they stand for.

In English a name is put in the place of what stands for it. In other languages, whose grammar nobody here knows, "What
about X?" and corrections are understood, and the name that a pronoun may stand for is put behind the question.
"""

import re
from collections.abc import Sequence

from kraq_dspy.embedded.asked_again import asked_again, asked_of, shares_head
from kraq_dspy.embedded.names import kind_of, names_in
from kraq_dspy.embedded.social_turns import social_kind
from kraq_dspy.language.text import content_words, sentences
from kraq_dspy.language.vocabulary import KIND_OF_NOUN

PERSON_PRONOUN = re.compile(r"\b(?:he|she|him|his|hers?|himself|herself)\b", re.IGNORECASE)
THING_PRONOUN = re.compile(r"\b(?:it|its|itself)\b", re.IGNORECASE)
GROUP_PRONOUN = re.compile(r"\b(?:they|them|their|theirs|themselves)\b", re.IGNORECASE)
PLACE_WORD = re.compile(r"(?<!\bis )(?<!\bare )(?<!\bwas )(?<!\bwere )\bthere\b(?=\s*(?:[?.!,]|$))", re.IGNORECASE)

POSSESSIVE = re.compile(r"(?:his|its|their|her)", re.IGNORECASE)
FOLLOWING_NOUN = re.compile(
    r"\s+(?!(?:in|on|at|to|for|from|by|with|and|or|when|after|before|during)\b)\w", re.IGNORECASE
)

EMPTY_IT = re.compile(r"\bit (?:is|was) (?:true|possible|necessary|likely|known)\b|\bwhat time is it\b", re.IGNORECASE)
DEFINITE = re.compile(r"\b(?:the|this|that) (?:same )?(?P<noun>[a-z]{3,})\b")
_AND = r"(?:(?:and|but|so|ok|okay|und|et|y|e|en|i|a|и|oder|or|ou)\b[, ]{1,3})"
_PLACED = (
    r"(?:of|in|at|for|from|by|with|on|about|to|during|near|von|vom|der|des|aus|bei|für|de|du|del|di|da|do|van|voor)"
)
INSTEAD = re.compile(
    rf"{_AND}?(?:(?:what|how) about|was ist mit|wie (?:ist es|steht es) (?:mit|um)|et pour|qu['’]en est[- ]il de|"
    r"y qué hay de|qué tal|e quanto a|hoe zit het met)\b[ ]{1,3}(?P<topic>\S.{0,120})",
    re.IGNORECASE,
)
"""What asks the same of something else, in a few languages."""
CORRECTION = re.compile(
    r"(?:(?:no|nope|sorry|oops|wait|nein|non|nee|não|нет|actually)\b[,.!; ]{0,4}){0,3}"
    r"(?:(?:i (?:meant|mean|was asking about|am asking about|asked about)|i['’]m asking about|ich meinte?|ich meine|"
    r"je voulais dire|je parlais de|me refiero a|quise decir|quería decir|intendevo|quis dizer|ik bedoel(?:de)?)\b"
    r"[,: ]{1,3})"
    r"(?P<topic>\S.{0,120})",
    re.IGNORECASE,
)
"""What says that another thing was meant."""
NO_BUT = re.compile(r"(?:no|nope|nein|non|nee|não)[,.!;]{1,2} {0,3}(?P<topic>\S.{0,80})", re.IGNORECASE)
NOT_THAT = re.compile(
    r"(?:(?:no|sorry)[,.! ]{1,3})?not (?P<wrong>[^,;?]{1,80})[,;] ?(?:but )?(?P<topic>[^?]{1,80})"
    r"|(?:(?:no|sorry)[,.! ]{1,3})?(?P<right>[^,;?]{1,80}),? not (?P<instead>[^?]{1,80})",
    re.IGNORECASE,
)
OF_ANOTHER = re.compile(rf"{_AND}(?:(?P<place>{_PLACED}) )?(?P<topic>[^\s?][^?]{{0,80}})\??", re.IGNORECASE)
"""A follow-up without a verb: "And of the Ravens?"."""
_TOPIC_ALONE = re.compile(rf"(?:(?P<place>{_PLACED}) )?(?P<topic>[^\s?.!][^?]{{0,60}})\?+", re.IGNORECASE)
_NO_THING = re.compile(
    r"(?:then|now|so|you|me|us|i|it|that|this|these|those|else|more|again|yes|no|not|nothing|everything|sure|please|also|too"
    r"|thanks?|there|here|he|she|they|we|him|her|them|if|because|since|still|yet|very|well|really|maybe|finally)\b",
    re.IGNORECASE,
)
_OWNED = re.compile(r"(?:his|her|its|their) (?=\w)", re.IGNORECASE)
MOST_WORDS_OF_A_THING = 3
ARTICLE = re.compile(
    r"(?:the|a|an|der|die|das|den|dem|le|la|les|l['’]|el|los|las|il|lo|gli|o|os|as|de|het) ", re.IGNORECASE
)
_ARTICLES = ("the", "a", "an")
_FOREIGN_ARTICLE = re.compile(
    r"(?!(?:the|an?) )(?:der|die|das|den|dem|le|la|les|l['’]|el|los|las|il|lo|gli|os|as|de|het) ", re.I
)
_ARTICLE_BEFORE = re.compile(rf"\b{ARTICLE.pattern}$", re.IGNORECASE)
_YEAR = re.compile(r"\b(?:in|during|by) (?:the )?\d{4}s?\b")
_WORD_OF_QUESTION = re.compile(
    r"\b(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|who|what|when|where|which|why|how|whose|ist|war|"
    r"hat|wer|wann|wo|wie|warum|est|était|qui|quand|où|comment|es|fue|quién|cuándo|dónde|cómo)\b",
    re.IGNORECASE,
)
_ASKED_OF_A_PERSON = re.compile(r"\s{0,3}(?:and |but )?(?:who|whom|whose)\b", re.IGNORECASE)
_IS_SOMEBODY = re.compile(r"\s{0,3}who (?:is|was|are|were) ", re.IGNORECASE)
_OTHER_LANGUAGES = (
    (
        re.compile(r"(?:und |aber )?(?:wo|wann|wer|was|wie|warum|wieso|welche[rsnm]?|wohin|woher|wen|wem)\b", re.I),
        re.compile(r"\b(?:er|sie|es|ihn|ihm|ihr|ihre[rsnm]?|ihnen|seine?[rsnm]?|deren|dessen|dort|davon)\b", re.I),
    ),
    (
        re.compile(r"(?:et |mais )?(?:où|quand|qui|que|quoi|quel(?:le)?s?|comment|pourquoi|combien)\b", re.IGNORECASE),
        re.compile(r"\b(?:il|elle|ils|elles|lui|leurs?|son|sa|ses|là|y)\b|-t-(?:il|elle|on)\b", re.IGNORECASE),
    ),
    (
        re.compile(r"¿|(?:y |pero )?(?:dónde|cuándo|quién|qué|cuál(?:es)?|cómo|cuánt[oa]s?)\b", re.IGNORECASE),
        re.compile(r"\b(?:él|ella|ellos|ellas|sus?|allí|nació|murió)\b", re.IGNORECASE),
    ),
    (
        re.compile(r"(?:e |ma )?(?:dove|quando|chi|che|quale|quali|come|perché|quanto)\b", re.IGNORECASE),
        re.compile(r"\b(?:lui|lei|loro|suo|sua|suoi|sue|egli|ella|esso|essa|nato|nata)\b", re.IGNORECASE),
    ),
    (
        re.compile(r"(?:e |mas )?(?:onde|quando|quem|qual|quais|como|porquê|quanto)\b", re.IGNORECASE),
        re.compile(r"\b(?:ele|ela|eles|elas|seus?|suas?|dele|dela|nasceu)\b", re.IGNORECASE),
    ),
    (
        re.compile(r"(?:en |maar )?(?:waar|wanneer|wie|wat|welke?|hoe|waarom)\b", re.IGNORECASE),
        re.compile(r"\b(?:hij|zij|ze|hem|haar|hun|zijn|er|daar)\b", re.IGNORECASE),
    ),
)  # fmt: skip
"""How questions begin in a language, and its pronouns."""
OPENING = re.compile(r"^(?:and|but|so|then|also|ok(?:ay)?)\b[, ]*", re.IGNORECASE)

_THINGS = """order act law treaty bill code rule plan project program programme system protocol method theory award
prize cup league season report section article chapter version model series note notes manual guide policy agreement
convention declaration constitution amendment resolution directive regulation decree charter edict protocol standard"""
THINGS = frozenset(_THINGS.split())
"""Words of names that are no person's."""
QUESTION_MARK = "Question: "
LONGEST_OPENING = 60  # characters of a question that says too little alone
ANSWER_MARK = "Answer: "


def complete_question(question: str, conversation: Sequence[str]) -> str:
    """`question` with the names that its pronouns stand for, from the latest turn that has one of their kind.

    `conversation` holds turns as `programs.conversation` writes them: "Question: ...\\nAnswer: ...", the oldest first.

    >>> said = ["Question: Who founded Maybach Music Group?\\nAnswer: Rick Ross."]
    >>> complete_question("Where was he born?", said)
    'Where was Rick Ross born?'
    >>> complete_question("Who wrote Don Juan?", said)
    'Who wrote Don Juan?'
    >>> complete_question("No, I meant Don Juan", ["Question: Who wrote Emma?\\nAnswer: Jane Austen."])
    'Who wrote Don Juan?'
    """
    question = question.strip()
    turns = [parts for parts in map(_parts_of, conversation) if not social_kind(parts[0])]
    if not turns or not question:
        return question

    replaced = asked_again(question, *turns[-1]) or _asked_of_another(question, turns[-1][0])
    if replaced:
        return replaced

    mentioned = _subjects(turns, question)
    completed = _with_pronouns_resolved(question, mentioned)
    if completed == question and not names_in(question):
        completed = _with_topic_named(question, mentioned)
    if completed == question:
        return _with_name_behind(question, mentioned)
    completed = OPENING.sub("", completed)
    return completed[:1].upper() + completed[1:]


def pronoun_for_nobody(question: str) -> str:
    """The pronoun for a person with nothing before it in the question that it could stand for; "" if there is none.

    >>> pronoun_for_nobody("Where was he born?")
    'he'
    >>> pronoun_for_nobody("Which painter cut off his ear?")
    ''
    """
    pronoun = PERSON_PRONOUN.search(question)
    if pronoun is None or names_in(question) or content_words(question[: pronoun.start()]):
        return ""
    return pronoun[0]


def _parts_of(turn: str) -> tuple[str, str]:
    """(question, answer) of a turn as text."""
    question, _, answer = turn.partition(f"\n{ANSWER_MARK}")
    return question.removeprefix(QUESTION_MARK).strip(), answer.strip()


def _asked_of_another(question: str, earlier: str) -> str:
    """The earlier question asked of what "What about X?", "And of X?" or "No, I meant X" names; "" for a question of
    another form."""
    instead = _put_instead(question)
    if instead is not None:
        return _with_topic(earlier, _bare(instead), "")

    if _WORD_OF_QUESTION.search(question):
        return ""
    of_another = OF_ANOTHER.fullmatch(question) or _without_and(question, earlier)
    if of_another is None:
        return ""
    topic, place = of_another["topic"], of_another["place"] or ""
    owned = _with_owner(topic, earlier)
    is_named = bool(names_in(question) or ARTICLE.match(topic) or place) or any(map(str.isdigit, topic))
    is_no_thing = len(topic.split()) > MOST_WORDS_OF_A_THING or _NO_THING.match(topic)
    if not owned and not is_named and is_no_thing:
        return ""
    return _with_topic(earlier, _bare(owned or topic), place.lower())


def _with_owner(topic: str, earlier: str) -> str:
    """ "its wheel" with the last name of the earlier question as its owner; "" of what nobody owns."""
    owned, names = _OWNED.match(topic), names_in(earlier)
    if owned is None or not names:
        return ""
    return f"{names[-1]}'{'' if names[-1].endswith('s') else 's'} {topic[owned.end() :]}"


def _without_and(question: str, earlier: str) -> re.Match[str] | None:
    """What "for students?" or "the Bergen office?" asks of, where it is short and goes with the earlier question."""
    topic = _TOPIC_ALONE.fullmatch(question)
    if topic is None or len(question.split()) > MOST_WORDS_OF_A_THING + 1:
        return None
    return topic if topic["place"] or shares_head(_bare(topic["topic"]), earlier) else None


def _put_instead(question: str) -> str | None:
    """What "No, I meant X", "X instead" or "not that, X" puts in the place of what was asked of; None if it does not.

    >>> _put_instead("No, I meant Berlin.")
    'Berlin.'
    """
    corrected = CORRECTION.match(question) or INSTEAD.match(question)
    if corrected is not None:
        return corrected["topic"]
    if _WORD_OF_QUESTION.search(question):
        return None

    not_that = NOT_THAT.fullmatch(question.rstrip(" ?.!"))
    if not_that is not None:
        return not_that["topic"] or not_that["right"]
    no_but = NO_BUT.match(question)
    return None if no_but is None else no_but["topic"]


def _bare(topic: str) -> str:
    """The topic without what ends a sentence, and without "not the other one" behind it."""
    return re.split(r",? (?:and )?not |, |[;?!]", topic, maxsplit=1)[0].strip(" .?!")


def _with_topic(earlier: str, topic: str, place: str) -> str:
    """The earlier question with the topic in the place of what it was asked of; "" if it names nothing."""
    if not topic:
        return ""
    again = "" if _FOREIGN_ARTICLE.match(topic) else asked_of(topic, place, earlier)
    if again:
        return again
    year = re.fullmatch(r"(?:in |during )?((?:the )?\d{4}s?)", topic)
    if year is not None:
        return _in_year(earlier, f"{place or 'in'} {year[1]}")

    names = names_in(earlier)
    if not names:
        return ""
    return _with_name_replaced(earlier, _named_after(place, earlier, names) or names[-1], topic)


def _in_year(earlier: str, year: str) -> str:
    """The earlier question of another year, behind it where it named none."""
    if _YEAR.search(earlier):
        return _YEAR.sub(year, earlier, count=1)
    return f"{earlier.rstrip(' ?')} {year}?"


def _with_name_replaced(earlier: str, name: str, topic: str) -> str:
    """The earlier question with the topic in the place of its last such name, with one article at most."""
    begin = earlier.rfind(name)
    end = begin + len(name)

    before = _ARTICLE_BEFORE.search(earlier[:begin])
    has_article = ARTICLE.match(name) is not None
    article = ARTICLE.match(topic)
    if before is not None and article is not None:
        is_foreign = article[0].strip().lower() not in _ARTICLES and before[0].strip().lower() in _ARTICLES
        topic = f"{before[0] if is_foreign else article[0]}{topic[article.end() :]}"
        begin = before.start()
    elif (before is not None or has_article) and not ARTICLE.match(topic) and not _is_plural(topic):
        begin = before.start() if before is not None else begin
    return earlier[:begin] + topic + earlier[end:]


def _named_after(place: str, earlier: str, names: Sequence[str]) -> str:
    """The name that stands after the same preposition in the earlier question; "" if none does."""
    if not place:
        return ""
    for name in names:
        if re.search(rf"\b{re.escape(place)} (?:the |a |an )?{re.escape(name)}", earlier, re.IGNORECASE):
            return name
    return ""


def _is_plural(topic: str) -> bool:
    return " " not in topic and topic.endswith("s") and not topic.endswith("ss")


def _subjects(turns: Sequence[tuple[str, str]], question: str) -> list[tuple[str, str]]:
    """(name, kind) of what was named, the latest turn first; in a turn its answer's names before its question's.

    What the question itself names stands for itself, so it is left out.
    """
    own = set(names_in(question))
    subjects: dict[str, str] = {}
    for question_before, answer in reversed(turns):
        in_question = names_in(question_before)
        in_answer = names_in(answer, known=frozenset(_words_with_capitals(answer)))
        is_of_person = _ASKED_OF_A_PERSON.match(question_before) is not None
        for name in (*in_answer, *in_question):
            if name in own:
                continue
            kind = _kind_in(name, f"{answer} {question_before}")
            if kind == "concept" and is_of_person and name in in_answer and name not in in_question:
                kind = "person"
            if (
                kind == "concept"
                and _IS_SOMEBODY.match(question_before)
                and question_before.rstrip(" ?").endswith(name)
            ):
                kind = "person"
            subjects.setdefault(name, kind)
    return list(subjects.items())


def _kind_in(name: str, text: str) -> str:
    """Return what kind of thing the sentences of the text say that the name is; what only looks
    like a person comes last.

    A place is also told by "in", "at" or "near" before it.
    """
    kinds = [kind_of(name, sentence) for sentence in sentences(text) if name in sentence]
    telling = [kind for kind in kinds if kind not in ("person", "concept")]
    if telling:
        return telling[0]
    if "person" in kinds:
        return "person"
    return "place" if re.search(rf"\b(?:in|at|near|from) {re.escape(name)}\b", text) else "concept"


def _words_with_capitals(text: str) -> list[str]:
    """Single words that an answer begins with and that may be its name: "London." """
    return re.findall(r"(?:^|[.!?]\s+)([A-Z]\w+)(?=[.,]|$)", text)


def _with_pronouns_resolved(question: str, subjects: Sequence[tuple[str, str]]) -> str:
    persons = [name for name in _of_kinds(subjects, "person") if not _is_of_a_thing(name)]
    persons = persons or [name for name in _of_kinds(subjects, "concept") if _may_be_a_person(name)]
    places = _of_kinds(subjects, "place")
    things = _of_kinds(subjects, "organisation", "work", "event", "place", "species") or _of_kinds(subjects, "concept")

    if PERSON_PRONOUN.search(question):
        return _replaced(PERSON_PRONOUN, question, persons)
    if PLACE_WORD.search(question):
        return PLACE_WORD.sub(f"in {places[0]}", question, count=1) if places else question
    if THING_PRONOUN.search(question) and not EMPTY_IT.search(question):
        return _replaced(THING_PRONOUN, question, things)
    if GROUP_PRONOUN.search(question):
        return _replaced(GROUP_PRONOUN, question, things)
    return question


def _may_be_a_person(name: str) -> bool:
    """Whether a name of which nothing is told may be a person's: no word of it is a thing's, and it has no number."""
    kinds = [KIND_OF_NOUN.get(word.lower(), "person") for word in name.split()]
    return set(kinds) <= {"person"} and not _is_of_a_thing(name)


def _is_of_a_thing(name: str) -> bool:
    return any(word.lower() in THINGS or word[:1].isdigit() for word in name.split())


def _of_kinds(subjects: Sequence[tuple[str, str]], *kinds: str) -> list[str]:
    return [name for name, kind in subjects if kind in kinds]


def _replaced(pronoun: re.Pattern[str], question: str, candidates: Sequence[str]) -> str:
    """The question with the first candidate in the place of the first pronoun; later ones are then clear."""
    match = pronoun.search(question)
    if match is None or not candidates:
        return question
    name = candidates[0]
    rest = question[match.end() :]
    if POSSESSIVE.fullmatch(match[0]) and FOLLOWING_NOUN.match(rest):
        name += "'" if name.endswith("s") else "'s"
    return question[: match.start()] + name + rest


def _with_topic_named(question: str, subjects: Sequence[tuple[str, str]]) -> str:
    """The question with the name of what "the company" is, or with the last subject after "And when?"."""
    definite = DEFINITE.search(question)
    if definite:
        kind = KIND_OF_NOUN.get(definite["noun"])
        of_that_kind = _of_kinds(subjects, kind) if kind else []
        if of_that_kind:
            return f"{question[: definite.start()]}{of_that_kind[0]}{question[definite.end() :]}"

    opening = OPENING.match(question)
    if opening and _NO_THING.match(question[opening.end() :]):
        return question
    says_too_little = len(question) <= LONGEST_OPENING and len(content_words(question)) <= 1
    if subjects and opening and says_too_little:
        return f"{question.rstrip('?. ')} ({subjects[0][0]})?"
    return question


def _with_name_behind(question: str, subjects: Sequence[tuple[str, str]]) -> str:
    """A question of another language with a pronoun, and behind it the latest name, which is what it may stand for."""
    for begins, pronouns in _OTHER_LANGUAGES:
        if begins.match(question) and pronouns.search(question) and subjects and not _names_beyond_first(question):
            return f"{question.rstrip('?. ')} ({subjects[0][0]})?"
    return question


def _names_beyond_first(question: str) -> bool:
    """Whether a word after the first begins with a capital, as names do (and nouns of German, which then are asked
    about)."""
    return any(word[:1].isupper() for word in question.split()[1:])
