"""Asks questions of Chinese statements: the word that asks stands where the answer stood, and nothing else moves.

A sentence whose subject is left out is about what the first words of the passage name.
"""

import re
from collections.abc import Iterator, Sequence

from kraq_dspy.embedded.asking.clozes.cloze import Cloze, any_of, with_question_word, words_of

_ASIDE = re.compile(r"（[^（）]{0,120}）|\s?\([^()]{0,120}\)")
_POINTS = re.compile(any_of(words_of("zh", "points")))
_DIGIT = r"[0-9０-９]"
_DATE = re.compile(
    rf"(?P<year>(?<![0-9０-９至到-])(?:公元)?{_DIGIT}{{4}} ?年)(?P<month> ?{_DIGIT}{{1,2}} ?月(?:份)?)?"
    rf"(?P<day> ?{_DIGIT}{{1,2}} ?[日号])?"
    r"(?![代间來来以起至到-])"
)
_DATE_FIRST = re.compile(rf"(?:在|于)?{_DATE.pattern}")
_MEASURE = any_of(words_of("zh", "measures"))
_NUMBER = re.compile(
    rf"(?<![第0-9０-９.,，年月第~-])(?P<number>(?:约|近|超过)? ?(?:"
    rf"{_DIGIT}{{1,3}}(?:,{_DIGIT}{{3}}){{1,4}}|{_DIGIT}{{1,9}}(?:\.{_DIGIT}{{1,4}})?|[一二三四五六七八九十两]{{1,3}}|数百)"
    rf" ?[万亿百千]?) ?(?P<measure>{_MEASURE})(?!之?一|[月日号])"
)
_SAID_OF = rf"(?={any_of(words_of('zh', 'said_of'))})"
_FOREIGNER = re.compile(rf"(?P<name>[\u4e00-\u9fff]{{1,5}}·[\u4e00-\u9fff]{{1,6}}?){_SAID_OF}")
_PERSON_WORDS = re.compile(any_of(words_of("zh", "people")))
_PLACE = re.compile(
    r"(?:(?:位于|坐落于|坐落在|出生于|生于)(?P<place>[\u4e00-\u9fff·]{2,14}?[省市县区州国岛镇村乡街路湾山河江道港城府郡县])"
    r"|毕业于(?P<school>[\u4e00-\u9fff·]{2,14}?(?:大学|学院|学校|中学)))(?=$|，|、)"
)
_IS = re.compile(
    r"(?P<name>[^，,。是]{1,13}[^，,。是不也既都就便还即而正仍曾并却已才直要仅常能])是"
    r"(?P<what>(?!否|指|由|在|因|以|为|不|最早|非|将|从|分布|位于|被|什么)[^，,。]{4,26}(?<!形成)(?<!造成)(?<!的))(?=[，,]|$)"
)
_IS_SOMEBODY = re.compile(r"(?:员|家|王|帝|手|授|者|人|士|生|长|主|师|将|球证|子|女)$")
_LEADS_ON = re.compile(rf"^(?:{any_of(words_of('zh', 'leads_on'))})")
_BREAKS_OFF = re.compile(rf"(?:{any_of(words_of('zh', 'breaks_off'))})$")
_ACTS = re.compile(rf"[，,]?(?:再|又|成为|正式|首次|始|开始|亦|也)?(?:{any_of(words_of('zh', 'acts'))})")
"""What somebody or something did: before these a date begins a sentence whose subject is left out."""
_OF_A_NAME = re.compile(r"[和与及或、是了的第对“《]\s?$")
"""What stands before a date that belongs to a name, or to one of several."""
_COUNTED = re.compile(r"[有设達达共为了长高至产率近约过得成积第出建増增座距離离]\s?$")
"""What stands before a number that is told."""
_IN_METRES = re.compile(r"$|[，,高宽长深远]")
_ENDS_CLAUSE = re.compile(r"[，,；;]")
_LONGEST_STATEMENT = 40  # characters
_SHORTEST_WHO_IS = 20
_PAIRED = (("“", "”"), ("《", "》"), ("「", "」"), ("『", "』"), ("（", "）"))
_LENGTH = range(10, 61)  # characters of a question
_NAMED = re.compile(
    r"[A-Za-z]{3}|[「《『“][^」》』”]{2,60}|[\u4e00-\u9fff]·[\u4e00-\u9fff]"
    rf"|(?:(?!的)[\u4e00-\u9fff]){{2}}(?:{any_of(words_of('zh', 'kinds'))})"
)
"""What tells one thing from others."""


def asked_in(sentences: Sequence[str], title: str = "") -> list[Cloze]:
    """The questions that the sentences of a passage answer, in their order.

    >>> [cloze.question for cloze in asked_in(["阿尔马港于1904年由贝尔格公司建成。"])]
    ['阿尔马港于哪一年由贝尔格公司建成？']
    """
    topic = topic_of(sentences)
    clozes: list[Cloze] = []
    is_who = bool(sentences) and _PERSON_WORDS.search(sentences[0]) is not None
    for place, sentence in enumerate(sentences):
        for statement in _statements(sentence, topic if place else ""):
            clozes += _asked_of(statement, topic, is_who=is_who)
    return clozes


def topic_of(sentences: Sequence[str]) -> str:
    """What the first words of a passage name that defines it; "" for none: "赵鹏（），中国足球运动员"."""
    first = sentences[0] if sentences else ""
    match = re.match(r"(?P<name>[\u4e00-\u9fff·A-Za-z0-9 ]{2,14}?) ?(?:（|\(|，|是(?!否))", first)
    name = match["name"].strip() if match else ""
    return "" if not name or _POINTS.search(name) or re.search(r"[的了在于有和与]|\d|^[当随由如因]", name) else name


def _statements(sentence: str, topic: str) -> Iterator[str]:
    """The sentence, if it is short, else each of its clauses; "他" at its beginning is the topic."""
    plain = _ASIDE.sub("", sentence).strip().rstrip("。．.")
    if re.search(r"[？?！!：:\"]", plain):
        return
    if topic and re.match(r"[他她它]", plain):
        plain = topic + plain[1:]
    for part in _parts_of(plain):
        statement = _with_subject(part, topic)
        if statement and not _LEADS_ON.search(statement) and not _BREAKS_OFF.search(statement):
            yield statement


def _parts_of(plain: str) -> list[str]:
    """A short sentence as it is, and the clauses of a longer one; a date that begins it stays with the next one."""
    if len(plain) <= _LONGEST_STATEMENT:
        return [plain]
    clauses = _ENDS_CLAUSE.split(plain)
    if len(clauses) > 1 and _DATE.fullmatch(clauses[0].strip()):
        return [f"{clauses[0]}，{clauses[1]}", *clauses[2:]]
    return clauses


def _with_subject(statement: str, topic: str) -> str:
    """The statement with the topic before a date and a verb whose subject is left out; "" if there is no topic."""
    date = _DATE_FIRST.match(statement)
    is_without_subject = date is not None and _ACTS.match(statement[date.end() :].lstrip()) is not None
    if is_without_subject and (not topic or topic not in statement):
        return f"{topic}{statement}" if topic else ""
    return statement


def _asked_of(statement: str, topic: str, *, is_who: bool) -> list[Cloze]:
    """The questions of one statement that stand alone."""
    clozes = [*_when(statement), *_how_many(statement), *_where(statement), *_what(statement, topic, is_who=is_who)]
    clozes += _who(statement, topic if is_who else "")
    closed = [Cloze(_closed_up(cloze.question), cloze.answer, cloze.word) for cloze in clozes]
    return [cloze for cloze in closed if _stands_alone(cloze, topic)]


def _closed_up(question: str) -> str:
    """The question without the spaces that stand beside Chinese letters, and no comma behind the word that asks."""
    question = re.sub(r"(?<=[\u4e00-\u9fff，？》”]) | (?=[\u4e00-\u9fff，？《“])", "", " ".join(question.split()))
    return re.sub(r"(什么时候|哪一年)[，,]", r"\1", question)


def _when(statement: str) -> Iterator[Cloze]:
    dates = list(_DATE.finditer(statement))
    if (
        len(dates) == 1
        and not re.match(r" ?(?:[的《\d]|欧洲|世界|全国|亚洲|奥运|夏季|冬季|第)|$", statement[dates[0].end() :])
        and not _OF_A_NAME.search(statement[: dates[0].start()])
    ):
        date = dates[0]
        asks = "什么时候" if date["month"] else "哪一年"
        yield Cloze(_put(statement, date, asks), date[0].strip(), "when")


def _how_many(statement: str) -> Iterator[Cloze]:
    numbers = [match for match in _NUMBER.finditer(statement) if not _is_one(match)]
    numbers = [match for match in numbers if _is_told(statement, match)]
    if len(numbers) == 1:
        number = numbers[0]
        is_small = re.fullmatch(r"[一二三四五六七八九十两]|\d", number["number"].strip()) is not None
        asks = f"{'几' if is_small else '多少'}{number['measure']}"
        yield Cloze(_put(statement, number, asks), number[0].strip(), "how many")


def _is_one(match: re.Match[str]) -> bool:
    return match["number"].strip() in ("一", "1") or (match["measure"] in ("年", "岁") and "约" not in match[0])


def _is_told(statement: str, match: re.Match[str]) -> bool:
    """Whether a number tells how many there are, and is no part of a name: "800米世界纪录"."""
    is_length = match["measure"] in ("米", "公里", "千米", "元")
    ends = _IN_METRES.match(statement, match.end()) is not None
    return _COUNTED.search(statement[: match.start()]) is not None and (ends or not is_length)


def _who(statement: str, person: str) -> Iterator[Cloze]:
    """Ask who did it: somebody whose name has a dot, or the person that the passage is about."""
    foreigner = _FOREIGNER.match(statement)
    name = foreigner["name"] if foreigner else person
    is_doer = re.match(rf"\d|{_SAID_OF}", statement[len(name) :]) is not None
    if name and statement.startswith(name) and is_doer and statement.count(name) == 1:
        rest = statement[len(name) :]
        yield Cloze(f"谁{'在' if rest[:1].isdigit() else ''}{rest}？", name, "who")


def _where(statement: str) -> Iterator[Cloze]:
    places = list(_PLACE.finditer(statement))
    if len(places) == 1:
        group, asks = ("place", "哪里") if places[0]["place"] else ("school", "哪所学校")
        start, end = places[0].span(group)
        yield Cloze(f"{statement[:start]}{asks}{statement[end:]}？", places[0][group], "where")


def _what(statement: str, topic: str, *, is_who: bool) -> Iterator[Cloze]:
    defined = _IS.match(statement)
    if defined is None or re.search(r"[的地得]$|^(?:而|也|就|还|但|只|都|很多|许多|一个)", defined["name"]):
        return
    name = defined["name"].strip()
    if re.search(r"认为|可能|表示|指出|应该", name) or name.endswith("."):
        return
    if (topic and topic in name) or _NAMED.search(name):
        is_who = ((is_who and name == topic) or "·" in name) and _IS_SOMEBODY.search(defined["what"]) is not None
        yield Cloze(
            f"{defined['name']}是{'谁' if is_who else '什么'}？", defined["what"].strip(), "who" if is_who else "what"
        )


def _put(statement: str, match: re.Match[str], asks: str) -> str:
    return f"{with_question_word(statement, match, asks)}？"


def _stands_alone(cloze: Cloze, topic: str) -> bool:
    question = cloze.question
    is_definition = question.endswith(("是什么？", "是谁？"))
    if (len(question) not in _LENGTH and not is_definition) or _POINTS.search(question):
        return False
    if any(question.count(opening) != question.count(closing) for opening, closing in _PAIRED):
        return False  # a quotation that a comma cut in two
    if question.startswith("谁是") and len(question) < _SHORTEST_WHO_IS:
        return False  # "谁是中国足球运动员？" has many answers
    return bool(topic and topic in question) or _NAMED.search(question) is not None
