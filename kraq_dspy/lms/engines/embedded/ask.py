"""Questions from a summary or from passages: what its text can answer, in the words of a curious person."""

import re
from collections import Counter

from kraq_dspy.lms.engines.embedded.names import frequent_terms, has_capitals, kind_of, names_in
from kraq_dspy.lms.engines.embedded.text import UNSPACED, sentences
from kraq_dspy.records import content_id

# What a sentence tells of its subject, and the question that it answers.
CUES = (
    (r"\bborn (?:on|in|at|\w+ \d)", "Where and when was {a} born?"),
    (r"\bdirected by\b", "Who directed {a}?"),
    (r"\bwritten by\b", "Who wrote {a}?"),
    (r"\bstarring\b|\bstars\b", "Who stars in {a}?"),
    (r"\bfounded\b|\bestablished\b", "How did {a} begin?"),
    (r"\blocated in\b|\bsituated\b", "Where is {a}?"),
    (r"\bwon\b|\bawarded\b", "What has {a} won?"),
    (r"\bbased on\b", "What is {a} based on?"),
    (r"\bplayed? (?:for|in)\b|\bteam\b", "Which teams is {a} connected with?"),
    (r"\bbest known for\b|\bfamous for\b|\bnotable for\b", "What is {a} best known for?"),
    (r"\binvented\b|\bdeveloped\b|\bdiscovered\b", "What did {a} develop?"),
    (r"\bdied\b|\bkilled\b|\bdeath\b", "What became of {a}?"),
)
OF_PAIR = (
    "How are {a} and {b} related?",
    "What connects {a} with {b}?",
    "What does {b} have to do with {a}?",
    "What is the relationship between {a} and {b}?",
    "What role does {b} play for {a}?",
)
OF_ONE = {
    "person": ("Who is {a}?", "What is {a} known for?", "What has {a} done?"),
    "work": ("What is {a} about?", "Who made {a}?", "What kind of work is {a}?"),
    "organisation": ("What does {a} do?", "What is {a} known for?", "Who is behind {a}?"),
    "place": ("What is {a} known for?", "What is there in {a}?", "Where is {a}?"),
    "event": ("What happened at {a}?", "Who took part in {a}?", "Why does {a} matter?"),
    "": ("What is {a}?", "What is {a} known for?", "Why does {a} matter?"),
}
# A question finds the passages of all that it names, so naming the members beats naming a centre (see
# docs/decisions/question-templates.md).
OF_MANY = "What connects {a}?"
MANY = 3
CHINESE = ("{a}和{b}有什么关系？", "{a}以什么闻名？")


def question_about(summary: str) -> str:
    """One question about what the summary is mostly about. Its first line is a title where more lines follow. The form
    depends on the text alone, so different summaries get different forms."""
    title, _, body = summary.strip().partition("\n")
    if not body:
        title, body = "", title
    members = _names_in_title(title)
    if len(members) >= MANY:
        return OF_MANY.format(a=f"{', '.join(members[:-1])} and {members[-1]}")
    parts = sentences(body)
    return _question(_by_weight(title, parts, body), parts, int(content_id(summary)[:8], 16), pairs=False)


def question_about_theme(passages: list[str]) -> str:
    """One question about the names that the most passages share."""
    shared: Counter[str] = Counter()
    for passage in passages:
        shared.update(dict.fromkeys(_by_weight("", sentences(passage), passage), 1))
    text = "\n".join(passages)
    names = [name for name, _ in shared.most_common()]
    return _question(names, sentences(text), int(content_id(text)[:8], 16), pairs=True)


def _question(names: list[str], parts: list[str], dice: int, *, pairs: bool) -> str:
    if not names:
        return "What is this about?"
    first = names[0]
    second = _partner(first, names, parts)
    if UNSPACED.search(first):
        return CHINESE[0].format(a=first, b=second) if second else CHINESE[1].format(a=first)
    cue = _cue(first, parts)
    if second and (pairs or not cue or dice % 5 < 3):
        return OF_PAIR[dice // 5 % len(OF_PAIR)].format(a=first, b=second)
    if cue:
        return cue.format(a=first)
    about = next((part for part in parts if first in part), "")
    forms = OF_ONE.get(kind_of(first, about), OF_ONE[""])
    return forms[dice // 5 % len(forms)].format(a=first)


def _names_in_title(title: str) -> list[str]:
    """Names may have commas in them, so our own summaries part them by semicolons; those of others may not."""
    return [name for name in re.split(r"; " if "; " in title else r",? and |, ", title) if name]


def _by_weight(title: str, parts: list[str], body: str) -> list[str]:
    """Names by how often they are said; those of the title count double, and the earlier the better."""
    if not has_capitals(body):
        return frequent_terms(f"{title}\n{body}") or ([title] if title else [])
    counts: Counter[str] = Counter()
    known = frozenset(_names_in_title(title))
    for number, part in enumerate(parts):
        for name in names_in(part, known):
            counts[name] += 3 if number == 0 else 2
    for place, name in enumerate(_names_in_title(title)):
        name = re.sub(r"\s*\([^)]*\)$", "", name)
        if name and name in body:
            counts[name] += max(4, 14 - 3 * place)
    order = {name: place for place, name in enumerate(counts)}
    return sorted(counts, key=lambda name: (-counts[name], order[name]))


def _partner(first: str, names: list[str], parts: list[str]) -> str:
    """The weightiest other name that a sentence tells together with the first."""
    together = [part for part in parts if first in part]
    for name in names[1:]:
        if name not in first and first not in name and any(name in part for part in together):
            return name
    return ""


def _cue(first: str, parts: list[str]) -> str:
    for part in parts:
        if part.startswith(first):
            for pattern, form in CUES:
                if re.search(pattern, part):
                    return form
    return ""
