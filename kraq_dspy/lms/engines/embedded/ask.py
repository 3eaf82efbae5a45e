"""Turns a summary or passages into a question: what a sentence tells becomes what a curious person would ask."""

import re
from collections import Counter

from kraq_dspy.lms.engines.embedded.names import frequent_terms, has_capitals, kind_of, names_in
from kraq_dspy.lms.engines.embedded.text import UNSPACED, sentences
from kraq_dspy.lms.engines.embedded.vocabulary import BASE_OF_PAST, BASES
from kraq_dspy.records import content_id

# What the words between two names tell, and the question that it answers. Several forms: the first that fits.
BETWEEN = (
    (r"\b(?:co-)?directed by$", "Who directed {a}?"),
    (r"\b(?:co-)?written by$", "Who wrote {a}?"),
    (r"\bproduced by$", "Who produced {a}?"),
    (r"\bcomposed by$", "Who composed {a}?"),
    (r"\b(?:co-)?founded by$|\bcreated by$|\bestablished by$", "Who founded {a}?"),
    (r"\bdesigned by$", "Who designed {a}?"),
    (r"\bdeveloped by$", "Who developed {a}?"),
    (r"\bpublished by$|\breleased by$", "Who published {a}?"),
    (r"\bowned by$", "Who owns {a}?"),
    (r"\b(?:acquired|bought|purchased) by$", "How did {b} come to own {a}?"),
    (r"\bperformed by$|\bsung by$", "Who performed {a}?"),
    (r"\bled by$|\bheaded by$|\bcommanded by$", "Who led {a}?"),
    (r"\bstarring$|\bstars$", "Who stars in {a}?"),
    (r"\bbased on$|\badapted from$", "What is {a} based on?"),
    (r"\bnamed (?:after|for)$", "Who or what is {a} named after?"),
    (r"\bborn\b.*\bin$", "Where was {a} born?"),
    (r"\bdied\b.*\b(?:in|at)$", "Where did {a} die?"),
    (r"\b(?:located|situated|lies|based|headquartered) (?:\w+ )?(?:in|on|at|near)$", "Where is {a}?"),
    (r"\b(?:is|was) an? (?:\w+ ){0,3}(?:city|town|village|municipality|county|district|river|lake|island)\b.*\bin$",
     "Where is {a}?"),
    (r"\bcapital (?:city )?of$", "What is {a} the capital of?"),
    (r"\bmarried(?: to)?$|\b(?:wife|husband) of$", "Who did {a} marry?"),
    (r"\b(?:son|daughter|child|brother|sister|father|mother|cousin) of$", "How are {a} and {b} related?"),
    (r"\bmember of$", "What part does {a} play in {b}?"),
    (r"\b(?:played|plays|playing) for$", "Which team did {a} play for?"),
    (r"\bplayed in$|\bappeared (?:in|on)$|\bstarred (?:in|as)$|\brole (?:in|of|as)$", "What was {a}'s part in {b}?"),
    (r"\b(?:worked|collaborated|teamed up|performed|toured) with$", "What did {a} and {b} do together?"),
    (r"\bknown for$|\bfamous for$|\bremembered for$", "What is {a} best known for?"),
    (r"\b(?:president|chairman|ceo|chief executive|director|leader|head|founder|coach|captain|minister|editor) of$",
     "Who leads {b}?"),
    (r"\bwon$|\bawarded$|\breceived$", "How did {a} win {b}?"),
    (r"\bnominated for$", "What was {a} nominated for?"),
    (r"\bpart of$|\bdivision of$|\bsubsidiary of$", "How does {a} belong to {b}?"),
)  # fmt: skip
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
VERB = re.compile(
    r"(?:^|\s)(?P<verb>[a-z]+(?: up| over)?)(?P<preposition> (?:to|with|for|from|in|at|on|into|against|as|about))?"
    r"(?: (?:the|a|an|his|her|its|their|fellow|former|rival))*$"
)
"""A verb right before the second of two names."""
OF_PAIR = ("How are {a} and {b} connected?", "What does {b} have to do with {a}?", "What links {a} to {b}?")
OF_THREE = ("How are {a}, {b} and {c} connected?", "What links {a} to {b} and {c}?")
OF_KINDS = {
    ("person", "person"): ("What is there between {a} and {b}?", "How do {a} and {b} know each other?"),
    ("person", "organisation"): ("What is {a}'s role at {b}?", "What did {a} do for {b}?"),
    ("person", "place"): ("What did {a} do in {b}?", "What ties {a} to {b}?"),
    ("person", "work"): ("What was {a}'s part in {b}?",),
    ("person", "event"): ("What did {a} do at {b}?",),
    ("organisation", "organisation"): ("What is there between {a} and {b}?",),
    ("organisation", "place"): ("What does {a} do in {b}?",),
    ("organisation", "person"): ("What is {b}'s role at {a}?",),
    ("work", "person"): ("What was {b}'s part in {a}?",),
    ("work", "work"): ("What do {a} and {b} have in common?",),
    ("work", "place"): ("What does {a} have to do with {b}?",),
    ("event", "place"): ("What happened at {a} in {b}?",),
    ("event", "person"): ("What did {b} do at {a}?",),
    ("place", "place"): ("Where are {a} and {b}?", "What do {a} and {b} share?"),
    ("place", "person"): ("What did {b} do in {a}?",),
}
"""Forms by what the two names are known to be."""
ACTS = (
    r"(?:,? who\b| (?:said|says|told|added|wrote|tells|explained|tweeted|argued|claimed|believes|thinks|himself|"
    r"herself)\b)"
)
RANK = (
    r"(?:Mr|Mrs|Ms|Dr|President|CEO|Judge|Coach|coach|Senator|actor|actress|singer|director|author|founder|"
    r"quarterback)\.? "
)
OF_ONE = {
    "person": ("Who is {a}?", "What is {a} known for?", "What has {a} done?"),
    "work": ("What is {a} about?", "Who made {a}?", "What kind of work is {a}?"),
    "organisation": ("What does {a} do?", "What is {a} known for?", "Who is behind {a}?"),
    "place": ("What is {a} known for?", "What is there in {a}?", "Where is {a}?"),
    "event": ("What happened at {a}?", "Who took part in {a}?", "Why does {a} matter?"),
    "": ("What is {a}?", "What is {a} known for?", "Why does {a} matter?"),
}
CHINESE = ("{a}和{b}有什么关系？", "{a}以什么闻名？")


def question_about(summary: str) -> str:
    """One question about what the summary is mostly about. Its first line is a title where more lines follow. The form
    depends on the text alone, so different summaries get different forms."""
    title, _, body = summary.strip().partition("\n")
    if not body:
        title, body = "", title
    parts = sentences(body)
    return _question(_by_weight(title, parts, body), parts, int(content_id(summary)[:8], 16))


def question_about_theme(passages: list[str]) -> str:
    """One question about the names that the most passages share."""
    shared: Counter[str] = Counter()
    for passage in passages:
        shared.update(dict.fromkeys(_by_weight("", sentences(passage), passage), 1))
    text = "\n".join(passages)
    return _question(
        [name for name, _ in shared.most_common()], sentences(text), int(content_id(text)[:8], 16), single=False
    )


def _question(names: list[str], parts: list[str], dice: int, *, single: bool = True) -> str:
    """`names` by weight. A sentence that tells how the first stands to another gives the form; `single` lets one about
    the first alone go before a form that fits any two."""
    if not names:
        return "What is this about?"
    first = names[0]
    partners = _partners(first, names, parts)
    if UNSPACED.search(first):
        return CHINESE[0].format(a=first, b=partners[0]) if partners else CHINESE[1].format(a=first)
    if told := _told_relation(first, partners, parts):
        return told
    if single and (cue := _cue(first, parts)):
        return cue.format(a=first)
    kinds = {name: _known_kind(name, parts) for name in (first, *partners[:2])}
    for partner in partners[:2]:
        if forms := OF_KINDS.get((kinds[first], kinds[partner])):
            return forms[dice % len(forms)].format(a=first, b=partner)
    if len(partners) > 1 and dice % 2:
        return OF_THREE[dice // 2 % len(OF_THREE)].format(a=first, b=partners[0], c=partners[1])
    if partners:
        return OF_PAIR[dice // 2 % len(OF_PAIR)].format(a=first, b=partners[0])
    about = next((part for part in parts if first in part), "")
    forms = OF_ONE.get(kind_of(first, about), OF_ONE[""])
    return forms[dice // 2 % len(forms)].format(a=first)


def _told_relation(first: str, partners: list[str], parts: list[str]) -> str:
    """A question from a sentence that tells how `first` and a partner are related; "" where none says it plainly."""
    for part in parts:
        for partner in partners:
            for source, target in ((first, partner), (partner, first)):
                if (form := _form_between(part, source, target)) is not None:
                    return form.format(a=source, b=target)
    return ""


def _form_between(part: str, source: str, target: str) -> str | None:
    start = part.find(source)
    end = part.find(target, start + len(source)) if start >= 0 else -1
    if end < 0 or end - start - len(source) > 90:
        return None
    middle = re.sub(r"\s*\([^)]*\)", "", part[start + len(source) : end]).rstrip(" \"“'")
    if re.search(r"[.;:]\s", middle):
        return None
    plain = re.sub(r"(?: (?:the|a|an|his|her|its|their))+$", "", middle)
    if "," not in plain[1:]:
        for pattern, form in BETWEEN:
            if re.search(pattern, plain):
                return form
    verb = VERB.search(middle)
    if (
        verb
        and len(middle) < 60
        and not re.search(r"\b(?:by|to|that|and|but|when|which|they|he|she)\b", middle[: verb.start()])
    ):
        preposition = verb["preposition"] or ""
        if base := BASE_OF_PAST.get(verb["verb"]):
            return f"How did {{a}} {base}{preposition} {{b}}?"
        if verb["verb"].removesuffix("s") in BASES:
            return f"How does {{a}} {verb['verb'].removesuffix('s')}{preposition} {{b}}?"
    return None


def _known_kind(name: str, parts: list[str]) -> str:
    """What kind of thing it is, where a sentence shows it; "" where the name alone would have to say it."""
    about = [part for part in parts if name in part]
    if any(re.search(rf"{re.escape(name)}{ACTS}|{RANK}{re.escape(name)}", part) for part in about):
        return "person"
    kind = next((kind_of(name, part) for part in about if part.startswith((name, f"The {name}"))), "")
    kind = kind or next((kind_of(name, part) for part in about), "")
    if kind == "person" and not any(
        re.search(rf"{re.escape(name)}[^.]*\b(?:he|she|his|her)\b", part) for part in about
    ):
        return ""
    return kind


def _by_weight(title: str, parts: list[str], body: str) -> list[str]:
    """Names by how often they are said, each once in its longest form; those of the title count more, and the earlier
    the better."""
    if not has_capitals(body):
        return frequent_terms(f"{title}\n{body}") or ([title] if title else [])
    counts: Counter[str] = Counter()
    bare_title = re.sub(r"\s*\([^)]*\)", "", title)
    known = frozenset(re.split(r"; |,? and |, ", bare_title))
    for number, part in enumerate(parts):
        for name in names_in(part, known):
            counts[name] += 3 if number == 0 else 2
    named = sorted((name for name in counts if name in bare_title), key=bare_title.find)
    for place, name in enumerate(named):
        counts[name] += max(4, 14 - 3 * place)
    order = {name: place for place, name in enumerate(counts)}
    ranked = sorted(counts, key=lambda name: (-counts[name], order[name]))
    return [name for name in ranked if not any(name != other and _within(name, other) for other in ranked)]


def _within(name: str, other: str) -> bool:
    """Whether the words of `name` are a part of those of `other`."""
    return f" {name} " in f" {other} " or f"{name}'s" in other


def _partners(first: str, names: list[str], parts: list[str]) -> list[str]:
    """The other names that a sentence tells together with the first, weightiest first."""
    together = [part for part in parts if first in part]
    return [
        name
        for name in names[1:8]
        if name not in first and first not in name and any(name in part for part in together)
    ]


def _cue(first: str, parts: list[str]) -> str:
    for part in parts:
        if part.startswith(first):
            for pattern, form in CUES:
                if re.search(pattern, part):
                    return form
    return ""
