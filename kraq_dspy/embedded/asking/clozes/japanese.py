"""Asks questions of Japanese statements: the word that asks stands where the answer stood, and "か" ends it."""

import re
from collections.abc import Iterator, Sequence

from kraq_dspy.embedded.asking.clozes.cloze import Cloze, any_of, with_question_word, words_of

_ASIDE = re.compile(r"（[^（）]{0,120}）|\([^()]{0,120}\)|［[^［］]{0,120}］|\[[^\[\]]{0,120}\]")
_POINTS = re.compile(any_of(words_of("ja", "points")))
_ERA = r"(?:[\u4e00-\u9fff]{2}(?:元|\d{1,2})年)"
_DATE = re.compile(
    rf"(?<![翌同前第\u4e00-\u9fff・])(?P<date>(?:{_ERA}(?:（\d{{4}}年）)?|\d{{4}}年)(?P<month>\d{{1,2}}月)?(?P<day>\d{{1,2}}日)?)"
    r"(?P<particle>に(?:は)?(?!入|な|至|かけ|わた)|、)"
)
_COUNTER = any_of(words_of("ja", "counters"))
_NUMBER = re.compile(
    rf"(?<![第\d,.\u4e00-\u9fff])(?P<number>(?:約)?(?:\d{{1,3}}(?:,\d{{3}}){{1,4}}|\d{{1,9}}万?\d{{0,4}}))(?P<counter>{_COUNTER})(?!目)"
)
_CONNECTS = re.compile(r"^(?:また|一方(?:で)?|さらに|更に|ただし|しかし|なお|例えば|そして|ついに|ちなみに|かつて)、?")
_TOPIC_BEHIND = re.compile(
    r"^(?P<asks>いつ|何年に)、?(?P<topic>(?:[^、は。]{2,14}|[^、は。]{0,10}「[^」]{1,40}」)は)、?"
)
"""The word that asks, before what the sentence is about."""
_MANY_CLAUSES = 6
_RELATIVE_DATE = re.compile(r"^\d{1,2}月(?:\d{1,2}日)?(?:、|に)|^(?:晩年|その|この|また|翌)")
_PERSON = re.compile(r"(?:^|(?<=、))(?P<name>[\u4e00-\u9fff]{2,3}[\u4e00-\u9fff々]{1,2})(?=が)")
_DEFINES = re.compile(r"(?P<name>[^、はがのも]{2,14})は、?(?P<what>[^、はも]{4,36})である")
_ENDS = re.compile(
    r"(?:[っんい]た|[しりえけげせてねめれべちきぎみびじに]た|である|ている|された|った|している|いる|ある|なる|する)$"
)
_LENGTH = range(14, 81)  # characters
_NAMED = re.compile(r"[\u4e00-\u9fff]{3,}|[ァ-ヶー]{4,}|『[^』]{1,60}』|「[^」]{1,60}」")


def asked_in(sentences: Sequence[str], title: str = "") -> list[Cloze]:
    """The questions that the sentences of a passage answer, in their order.

    >>> [cloze.question for cloze in asked_in(["ブランド港は1904年にベルグ商会によって建設された。"])]
    ['ブランド港は何年にベルグ商会によって建設されたか？']
    """
    clozes: list[Cloze] = []
    for sentence in sentences:
        clozes += _asked_of(sentence)
    return clozes


def _asked_of(sentence: str) -> list[Cloze]:
    statement = _statement_in(sentence)
    if not statement:
        return []
    clozes = [*_when(statement), *_how_many(statement), *_who(statement), *_what(statement)]
    return [cloze for cloze in clozes if _stands_alone(cloze.question)]


def _statement_in(sentence: str) -> str:
    """The sentence without its full stop; "" for what is no whole statement."""
    plain = sentence.strip()
    if re.search(r"[？！?!*=<>\\:：]", plain) or not plain.endswith("。"):
        return ""
    plain = _CONNECTS.sub("", plain.removesuffix("。"))
    if _bare(plain).count("、") >= _MANY_CLAUSES or _RELATIVE_DATE.match(plain):
        return ""
    return plain if _ENDS.search(_bare(plain)) else ""


def _bare(text: str) -> str:
    return _ASIDE.sub("", text)


def _when(statement: str) -> Iterator[Cloze]:
    dates = list(_DATE.finditer(statement))
    years = re.findall(r"\d年", _bare(statement))
    if len(dates) != 1 or len(years) != 1:
        return
    date = dates[0]
    asks = "いつ" if date["month"] or date["particle"] == "、" else "何年に"
    text = _bare(with_question_word(statement, date, asks))
    topic = _TOPIC_BEHIND.match(text)
    if topic is not None:
        text = f"{topic['topic']}{topic['asks']}{text[topic.end() :]}"
    yield Cloze(f"{text}か？", date["date"], "when")


def _how_many(statement: str) -> Iterator[Cloze]:
    bare = _bare(statement)
    numbers = list(_NUMBER.finditer(bare))
    if len(numbers) == 1:
        number = numbers[0]
        before, behind = bare[: number.start()], bare[number.end() :]
        is_part = before.endswith(("ら", "の", "、", "翌", "約")) or (
            number["counter"] == "歳" and behind.startswith("の")
        )
        if is_part or number["number"] == "1" or re.search(r"\d年", bare):
            return
        asks = "いくつ" if number["counter"] in ("つ", "個") else f"何{number['counter']}"
        yield Cloze(
            f"{with_question_word(bare, number, asks)}か？", f"{number['number']}{number['counter']}", "how many"
        )


def _who(statement: str) -> Iterator[Cloze]:
    bare = _bare(statement)
    people = list(_PERSON.finditer(bare))
    is_main = len(people) == 1 and people[0].start() == 0 and "は" not in bare and "、" not in bare
    if is_main:
        yield Cloze(f"誰{bare[people[0].end() :]}か？", people[0]["name"], "who")


def _what(statement: str) -> Iterator[Cloze]:
    """Ask what a thing is that the sentence defines."""
    defined = _DEFINES.fullmatch(_bare(statement))
    if defined is not None and _NAMED.search(defined["name"]):
        yield Cloze(f"{defined['name']}とは何か？", defined["what"], "what")


def _stands_alone(question: str) -> bool:
    is_definition = question.endswith("とは何か？")
    if (len(question) not in _LENGTH and not is_definition) or _POINTS.search(question):
        return False
    is_about = is_definition or re.match(r"[^、]{2,16}は", question) is not None
    return (is_about or question.startswith("誰が")) and _NAMED.search(question) is not None
