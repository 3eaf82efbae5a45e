"""Answers what web chats ask of a model besides questions: titles, tags, searches and more for a conversation.

A web chat sends these to the model of the conversation, which here is an index: it would search the documents for "a
concise, 3-5 word title". Such a request brings the conversation along, or comes at its end, and wants a reply in a form
of its own. Nobody asks documents that way, and no model is asked for the reply.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

LONGEST_TITLE = 60  # characters
LONGEST_SUMMARY = 200  # characters of each answer
UNTITLED = "Conversation"
EMOJI = "💬"
LOOKED_AT = 4000
"""Characters at the beginning and at the end of a message in which it says what it wants."""
LEADING_SENTENCES = 6
"""Sentences of a system message in which it says what it wants."""
LONGEST_COMMAND = 1500
"""Characters of a message that asks something of the conversation before it."""

USER, ASSISTANT = "user", "assistant"
TITLE, TAGS, FOLLOW_UPS, QUERIES, EMOJI_TASK = "title", "tags", "follow_ups", "queries", "emoji"
COMPLETION, SUMMARY, STANDALONE, TOOLS, IMAGE = "completion", "summary", "standalone", "tools", "image"
"""What is wanted of a conversation."""

KEYS = {
    "title": TITLE, "name": TITLE, "topic": TITLE, "conversation_title": TITLE, "chat_title": TITLE,
    "tags": TAGS, "categories": TAGS, "keywords": TAGS, "labels": TAGS, "topics": TAGS,
    "follow_ups": FOLLOW_UPS, "followups": FOLLOW_UPS, "follow_up_questions": FOLLOW_UPS, "suggestions": FOLLOW_UPS,
    "questions": FOLLOW_UPS, "next_questions": FOLLOW_UPS, "prompts": FOLLOW_UPS,
    "queries": QUERIES, "search_queries": QUERIES, "searches": QUERIES, "query": QUERIES,
    "emoji": EMOJI_TASK, "text": COMPLETION, "completion": COMPLETION, "summary": SUMMARY,
    "tool_calls": TOOLS, "prompt": IMAGE,
}  # fmt: skip
"""The names under which web chats want replies as JSON."""

_VERB = (
    r"(?:generat|writ|creat|provid|giv|suggest|produc|craft|mak|return|output|compos|choos|pick|select|find|propos|list|"
    r"assign|extract|predict|decid|determin|analy[sz]|add|form|respond|repl[yi]|answer|com(?:e|ing) up|think|label|"
    r"categori[sz]|classif|identif|reflect|express|summari[sz]|condens|nam|titl|shorten|complet|continu|finish)\w{0,3}"
)
_TALK = (
    r"(?:chats?|conversations?|talks?|threads?|discussions?|dialog(?:ue)?s?|exchanges?|sessions?|messages?|transcripts?|"
    r"user['’]?s? (?:message|request|query|question|prompt|input))"
)
_SHORT = r"[^.?!\n]{0,100}"
_INTENTS: Sequence[tuple[str, re.Pattern[str]]] = tuple(
    (wanted, re.compile(pattern, re.IGNORECASE))
    for wanted, pattern in (
        (STANDALONE, rf"\b(?:rephras|rewrit|reformulat|condens|turn)\w{{0,3}}\b{_SHORT}\bstand-?alone\b"),
        (EMOJI_TASK, rf"\b{_VERB}\b[^\n]{{0,160}}\bemojis?\b"),
        (QUERIES, rf"\b{_VERB}\b{_SHORT}\b(?:search quer(?:y|ies)|queries|searches|(?:web )?search is needed)\b"),
        (FOLLOW_UPS, rf"\b{_VERB}\b{_SHORT}\b(?:follow-?\s?ups?|(?:next|further|suggested) (?:questions?|prompts?))\b"),
        (COMPLETION, r"\bauto-?complet\w{0,5}\b"),
        (COMPLETION, r"\b(?:complete|continue|finish) (?:the|this|my|a) (?:text|message|sentence|words?)\b"),
        (TITLE, rf"\b{_VERB}\b{_SHORT}\b(?:title|headline|heading|subject line)\b"),
        (TITLE, rf"\b{_VERB}\b{_SHORT}\b(?:a|short|brief|concise|good|fitting) name\b"),
        (TITLE, rf"\b(?:name|title|entitle|label) (?:the|this|our|a|following|each) (?:\w{{1,20}} )?{_TALK}\b"),
        (TITLE, r"\btitl(?:e generator|ing (?:assistant|agent|tool|model))\b|\bwhat (?:is|would be) a good title\b"),
        (TITLE, r"\b(?:titel|titre|título|titolo|заголовок)\b|标题|標題|タイトル|제목"),
        (TAGS, rf"\b{_VERB}\b{_SHORT}\b(?:tags?|categor(?:y|ies)|keywords?|topics?|labels?)\b"),
        (SUMMARY, rf"\b(?:summari[sz]e|sum up|recap|condense)\b{_SHORT}\b{_TALK}\b"),
    )
)  # fmt: skip
_ABOUT_A_TALK = re.compile(
    rf"\b{_TALK}\b|gespräch|unterhaltung|conversación|conversazione|разговор|对话|對話|会话|會話|会話|대화",
    re.IGNORECASE,
)
_FORM_ALONE = re.compile(
    r"\b(?:only|alone|just|single|one|nothing else|no (?:other|additional|extra|explanation|punctuation|quot\w{1,10})|"
    r"without|at most|or less|or fewer|no more than|words? max\w{0,4}|"
    r"(?:with)?in \w{1,12}(?: (?:or|to) \w{1,12})? words?|"
    r"do not use|JSON)\b"
    r"|\d\s?[-–]\s?\d{1,2}[ -]words?\b",
    re.IGNORECASE,
)
_OF_THIS_TALK = re.compile(
    rf"\b(?:(?:our|this|the (?:above|previous|preceding|whole|entire)) {_TALK}|the (?:chat|conversation|thread)s?)"
    r"(?: (?:history|so far|above))?(?=\s*(?:$|[.,;:!?\n]|\b(?:in|with|without|using|to|into|as|for|briefly|an?)\b))",
    re.IGNORECASE,
)
_SUMMARY_FOR_LATER = re.compile(
    r"\s{0,20}summari[sz]e the (?:discussion|conversation|chat)\b[^\n]{0,100}\bcontext\b", re.IGNORECASE
)
_ANSWERS_QUESTIONS = re.compile(
    r"(?<!not )(?<!n['’]t )(?<!never )(?<!try to )\b(?:answer|help|assist|reply to|respond to)s?\b(?: \w{1,20}){0,3}? "
    r"(?:questions?|users?|customers?|people|from|using|based|documents?|with)\b",
    re.IGNORECASE,
)
_COMMAND = re.compile(
    rf"\W{{0,10}}(?:(?:please|now|ok|okay|can you|could you|next)\W{{1,3}}){{0,3}}{_VERB}\b", re.IGNORECASE
)
_TASK_HEADING = re.compile(r"\W{0,10}(?:task|instructions?|goal|objective)[*\s]{0,5}(?::|\n)", re.IGNORECASE)
_BLOCKS = tuple(
    (f"<{name}>", f"</{name}>")
    for name in ("chat_history", "conversation", "history", "messages", "chat", "transcript", "dialogue", "message")
)
_TEXT_BLOCK = "<text>", "</text>"
_HEADINGS = re.compile(
    r"^[#*\s]{0,8}(?:chat history|conversation(?: history)?|transcript|messages?|dialogue|"
    r"(?:here (?:is|are) )?the (?:chat|conversation|messages?)[^:\n]{0,60})[*\s]{0,4}:",
    re.IGNORECASE | re.MULTILINE,
)  # fmt: skip
_TURN = re.compile(r"[|>*#\-\s]{0,8}(user|human|you|assistant|ai|bot|model|system)[*\s]{0,4}:[*\s]{0,4}", re.IGNORECASE)
_QUOTED = re.compile(r"```[^`]{1,3900}```")
_TEMPLATE = re.compile(r"\{\s{0,40}[\"“](\w{1,40})[\"”]\s{0,10}:\s{0,10}([\[{\"“]?)")
_FOLLOW_UP = re.compile(
    r"^\s{0,10}(?:follow[- ]?up (?:input|question)|(?:last |new )?question)\s{0,5}:", re.IGNORECASE | re.MULTILINE
)
_PEOPLE = frozenset({"user", "human", "you"})


@dataclass(frozen=True, slots=True)
class ChatTask:
    """What a web chat wants of a conversation: `wanted`, and under which `key` of a JSON object, or "" as plain text.

    `value` begins the value in the form that was asked for: "[" a list, "{" an object, otherwise a text.
    """

    wanted: str
    key: str = ""
    value: str = ""


def reply_to_task(messages: Sequence[tuple[str, str]], *, as_json: bool = False) -> str | None:
    """The reply to a request about a conversation, given (role, text) of each message; None for a question.

    A title is the person's first question. Lists of tags, searches and next questions are empty: an index has no tags,
    needs no search of the web, and gives the next questions with an answer. `as_json`: the client takes JSON alone.

    >>> reply_to_task([("system", "Name the chat. Reply with the title alone."), ("user", "Who was Ada?")])
    'Who was Ada?'
    >>> reply_to_task([("user", "Who was Ada?")]) is None
    True
    """
    spoken = [(role, text) for role, text in messages if role in (USER, ASSISTANT)]
    instructions = "\n".join(text for role, text in messages if role in ("system", "developer"))
    if not spoken:
        return None

    if len(spoken) == 1 and spoken[0][0] == USER:
        message = spoken[0][1]
        task, conversation = _task_of_message(message), message
        task = task or _task_of_instructions(instructions, message)
    else:
        last_role, last = messages[-1]
        task = _task_at_the_end(last) if last_role in (USER, "system", "developer") else None
        conversation = "\n".join(f"{role}: {text}" for role, text in (spoken[:-1] if last_role == USER else spoken))
    return None if task is None else _reply(task, conversation, as_json=as_json)


def _task_of_message(message: str) -> ChatTask | None:
    """What a message that brings a conversation along wants of it; None if it brings none, or wants no such thing."""
    head, tail = message[:LOOKED_AT], message[LOOKED_AT:][-LOOKED_AT:]
    begin, end = _place_of_conversation(head)
    has_block = begin >= 0
    instructions = head[:begin] + head[end:] + tail if has_block else head + tail
    completes = all(mark in message for mark in _TEXT_BLOCK)

    brings_a_text = has_block or completes or _QUOTED.search(head)
    is_told_what = _TASK_HEADING.match(head) or _COMMAND.match(head) or _is_told_to_whom(head)
    if not (brings_a_text and is_told_what):
        return None

    template = _template_in(instructions)
    if template is not None and (has_block or (completes and template.wanted == COMPLETION)):
        return template
    return _task_of_intent(instructions, has_block=has_block, completes=completes)


def _task_of_intent(instructions: str, *, has_block: bool, completes: bool) -> ChatTask | None:
    """What instructions without a template want of the conversation in a block, or of the text to be completed."""
    wanted = _intent_of(instructions)
    if wanted is None:
        return None
    needs = {EMOJI_TASK: True, COMPLETION: completes, STANDALONE: has_block}
    if needs.get(wanted):
        return _formed(wanted, instructions)
    return _formed(wanted, instructions) if has_block and _ABOUT_A_TALK.search(instructions) else None


def _task_of_instructions(instructions: str, message: str) -> ChatTask | None:
    """What a system message wants of the one message that follows, where it wants nothing but that."""
    head = instructions[:LOOKED_AT]
    if "Available Tools" in head and "tool_calls" in instructions:
        return ChatTask(TOOLS, "tool_calls", "[")

    sentence = _sentence_with_intent(head)
    wanted = _intent_of(sentence)
    if wanted is None or _ANSWERS_QUESTIONS.search(head):
        return None

    has_transcript = bool(_turns(message)) or _place_of_conversation(message[:LOOKED_AT])[0] >= 0
    if has_transcript:
        return _formed(wanted, head)
    stands_alone = wanted in (TITLE, SUMMARY, EMOJI_TASK) and _FORM_ALONE.search(head) is not None
    return _formed(wanted, head) if stands_alone else None


def _sentence_with_intent(head: str) -> str:
    """The first of the leading sentences that wants something of a conversation; "" if none does."""
    for sentence in re.split(r"[.!?\n]", head)[:LEADING_SENTENCES]:
        if _intent_of(sentence) is not None and (_ABOUT_A_TALK.search(sentence) or _is_titling(sentence)):
            return sentence
    return ""


def _is_titling(sentence: str) -> bool:
    return re.search(r"\btitl(?:e generator|ing)\b", sentence, re.IGNORECASE) is not None


def _task_at_the_end(last: str) -> ChatTask | None:
    """What the last message wants of the conversation before it."""
    if len(last) > LONGEST_COMMAND:
        return None
    if _SUMMARY_FOR_LATER.match(last):
        return ChatTask(SUMMARY)

    wants_a_form = _COMMAND.match(last) and _OF_THIS_TALK.search(last) and _FORM_ALONE.search(last)
    wanted = _intent_of(last) if wants_a_form else None
    return None if wanted in (None, COMPLETION, STANDALONE) else _formed(str(wanted), last)


def _intent_of(instructions: str) -> str | None:
    for wanted, pattern in _INTENTS:
        if pattern.search(instructions):
            return wanted
    return None


def _is_told_to_whom(head: str) -> bool:
    """Whether a message begins as prompts do that tell a model what it is, or what it was given."""
    openings = ("you are", "your task", "given the", "based on", "here is", "here are", "below is", "the following")
    return head.lstrip(" \n#*`<>|").lower().startswith(openings)


def _formed(wanted: str, instructions: str) -> ChatTask:
    template = _template_in(instructions)
    if template is not None:
        return ChatTask(wanted, template.key, template.value)
    return ChatTask(wanted)


def _template_in(instructions: str) -> ChatTask | None:
    """The JSON object that is asked for, by its first key that web chats use."""
    for found in _TEMPLATE.finditer(instructions):
        wanted = KEYS.get(found[1].lower())
        if wanted is not None:
            return ChatTask(wanted, found[1], found[2])
    return None


def _reply(task: ChatTask, conversation: str, *, as_json: bool) -> str:
    value = _value(task, conversation)
    if task.key:
        return json.dumps({task.key: value}, ensure_ascii=False)
    if as_json:
        return json.dumps({task.wanted: value}, ensure_ascii=False)
    return value if isinstance(value, str) else json.dumps(value)


def _value(task: ChatTask, conversation: str) -> str | list[str]:
    is_text = task.value in ('"', "“")
    match task.wanted:
        case "title":
            return _title(conversation)
        case "emoji":
            return EMOJI
        case "completion":
            return ""
        case "summary":
            return _summary(conversation)
        case "standalone":
            return _question_at_the_end(conversation)
        case "image":
            return _last_of_user(conversation)
    return "" if is_text else []


def _title(conversation: str) -> str:
    """The first thing that the person said, on one line, cut between words."""
    said = next((text for role, text in _turns(conversation) if role == USER), None)
    question = " ".join((_shown(conversation) if said is None else said)[: LONGEST_TITLE * 20].split())
    if len(question) <= LONGEST_TITLE:
        return question or UNTITLED
    return question[:LONGEST_TITLE].rpartition(" ")[0].rstrip(",;:") + "…"


def _summary(conversation: str) -> str:
    """Each question with the beginning of its answer; of what is no conversation, its title."""
    if not _turns(conversation):
        return _title(conversation)

    lines = []
    for role, text in _turns(conversation):
        line = " ".join(text[: LONGEST_SUMMARY * 20].split())
        lines.append(line if role == USER or len(line) <= LONGEST_SUMMARY else f"{line[:LONGEST_SUMMARY]}…")
    return "\n".join(lines)


def _question_at_the_end(conversation: str) -> str:
    """What follows the last "Follow Up Input:" or "Question:", up to the end of its line."""
    tail = conversation[-LOOKED_AT:]
    places = [found.end() for found in _FOLLOW_UP.finditer(tail)]
    if not places:
        return _last_of_user(conversation)
    return tail[places[-1] :].strip().partition("\n")[0]


def _last_of_user(conversation: str) -> str:
    said = [text for role, text in _turns(conversation) if role == USER]
    return " ".join(said[-1].split()) if said else ""


def _shown(message: str) -> str:
    """A conversation without marks of who spoke: what stands in its block, else the message itself."""
    begin, end = _place_of_conversation(message[:LOOKED_AT])
    return message if begin < 0 else _without_tags(message[begin:end])


def _without_tags(block: str) -> str:
    for opening, closing in _BLOCKS:
        block = block.removeprefix(opening).removesuffix(closing)
    return block


def _place_of_conversation(text: str) -> tuple[int, int]:
    """Where the conversation begins and ends that a message brings along; (-1, -1) if it brings none."""
    for opening, closing in _BLOCKS:
        begin = text.find(opening)
        if begin >= 0:
            end = text.find(closing, begin)
            return begin, len(text) if end < 0 else end + len(closing)

    heading = _HEADINGS.search(text)
    if heading is not None:
        return heading.start(), len(text)
    for begin, line in _lines(text):
        if _TURN.match(line):
            return begin, len(text)
    return -1, -1


def _turns(conversation: str) -> list[tuple[str, str]]:
    """(role, text) of the turns of a conversation that a message quotes: marked by who spoke, or as JSON."""
    turns: list[tuple[str, list[str]]] = []
    begin, end = _place_of_conversation(conversation)
    shown = _without_tags(conversation[begin:end]) if begin >= 0 else conversation
    written = _turns_of_json(shown)
    if written:
        return written

    for _, line in _lines(shown):
        mark = _TURN.match(line)
        if mark is not None:
            role = USER if mark[1].lower() in _PEOPLE else ASSISTANT
            turns.append((role, [line[mark.end() :]]))
        elif turns:
            turns[-1][1].append(line)
    return [(role, "\n".join(lines).strip().strip('"')) for role, lines in turns]


def _turns_of_json(shown: str) -> list[tuple[str, str]]:
    """The turns of messages as OpenAI writes them; none if the text is no JSON."""
    text = shown.strip()
    if text[:1] not in ("[", "{"):
        return []
    try:
        messages: Any = json.loads(text)
    except (ValueError, RecursionError):
        return []

    turns = []
    for message in messages if isinstance(messages, list) else [messages]:
        if isinstance(message, dict) and isinstance(message.get("content"), str):
            turns.append((str(message.get("role", USER)), message["content"]))
    return turns


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """(beginning, line) of each line."""
    begin = 0
    for line in text.split("\n"):
        yield begin, line
        begin += len(line) + 1
