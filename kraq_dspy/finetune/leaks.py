"""Finds what in a summary gives away the question that a generator shall learn to ask about it."""

import re
from difflib import SequenceMatcher

from kraq_dspy.asset.corpus.chunk import sentence_spans

SHARED_RUN = 6
"""So many words in a row that the question has too are a quotation; names are rarely as long."""
SHARED_WORDS = 0.8
"""One sentence with such a share of the question's telling words says what is asked."""
FEWEST_WORDS = 4
_TALK = re.compile(
    r"\b(the|this|a|such a) question (is|asks|about|concerns|remains)\b|\bmight ask\b|\basks? (wh|how)", re.IGNORECASE
)
_DULL = frozenset(
    "a an and are as at be been by did do does for from had has have he her his how in is it its of on or she "  # noqa: SIM905
    "that the their they this to was were what when where which who whom whose why will with".split()
)


def leak(summary: str, question: str) -> str | None:
    """What gives the question away, in a few words; None where nothing does. Case and punctuation do not count."""
    if "?" in summary:
        return "the summary has a question"
    if _TALK.search(summary):
        return "the summary speaks of a question"
    summary_words, question_words = _words(summary), _words(question)
    if " ".join(question_words) in " ".join(summary_words):
        return "the summary has the question's words"
    run = SequenceMatcher(None, summary_words, question_words, autojunk=False).find_longest_match()
    if run.size >= SHARED_RUN:
        return f"{SHARED_RUN} or more words in a row are the question's"
    telling = set(question_words) - _DULL
    if len(telling) >= FEWEST_WORDS:
        for start, end in sentence_spans(summary):
            share = len(telling & set(_words(summary[start:end]))) / len(telling)
            if share >= SHARED_WORDS:
                return "one sentence has most of the question's telling words"
    return None


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.casefold())
