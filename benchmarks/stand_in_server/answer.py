"""Recognises what kind of prompt it was sent and answers in that prompt's own format."""

import json
import re
from typing import Any

from stand_in_server.dspy_prompts import dspy
from stand_in_server.graph_prompts import (
    community_report,
    description_summary,
    graphrag_extraction,
    lightrag_extraction,
    lightrag_keywords,
)
from stand_in_server.passage import Passage, clip, hash_64
from stand_in_server.request import ChatRequest, Reply, between
from stand_in_server.schema import fill


def graphrag_query(request: ChatRequest) -> Reply | None:
    system, text = request.system, request.text
    if "Importance Score" in text and '"points"' in text:
        passage = Passage(between(system, "---Data tables---", "---Goal---") or text, 8, 8)
        points = [
            {"description": f"{clip(s, 40)} [Data: Reports (0)]", "score": 90 - 10 * k}
            for k, s in enumerate(passage.sentences[1:6])
        ]
        return "global_map", _json({"points": points})
    if "intermediate_answer" in text and "follow_up_queries" in text:
        passage = Passage(request.last)
        answer = "# Answer\n" + passage.summary(8)
        return "drift_primer", _json({"intermediate_answer": answer, "score": 60, **_follow_up(passage)})
    if "follow_up_queries" in text and "'response'" in text:
        passage = Passage(between(system, "---Data tables---", "---Goal---") or text)
        return "drift_local", _json({"response": passage.summary(6), "score": 70, **_follow_up(passage)})
    return None


def any_schema(request: ChatRequest) -> Reply | None:
    """A schema in the request, or in the system prompt as instructor writes it."""
    schema = request.schema
    if schema is None and (written := re.search(r"json_schema:\s*(\{.*\})", request.system, re.S)):
        try:
            schema, _ = json.JSONDecoder().raw_decode(written.group(1))
        except ValueError:
            schema = None
    if not schema:
        return None
    last = request.last
    user = next((turn for turn in request.users if "<<DOCUMENT_START>>" in turn), last)
    text = between(user, "<<DOCUMENT_START>>", "<<DOCUMENT_END>>") or between(last, "Query:", None, last=True) or last
    names = list(schema.get("properties") or {})
    return "schema:" + ",".join(names[:3]), _json(fill(schema, "root", Passage(text)))


def plain_text(request: ChatRequest) -> Reply:
    system, last, text = request.system, request.last, request.text
    if "key points" in text and "---Analyst Reports---" in text:
        return "global_reduce", Passage(between(system, "---Analyst Reports---", "---Goal---") or text).summary(8)
    if "---Data Reports---" in text:
        return "drift_reduce", Passage(between(system, "---Data Reports---", "---Target") or text).summary(8)
    if request.response_format.get("type") == "json_object":
        passage = Passage(last)
        return "json_object", _json({"answer": passage.summary(3), "entities": passage.entities[:5]})
    if "---Data tables---" in system:
        tables = between(system, "---Data tables---", "---Goal---") or system
        return "local_or_basic", Passage(tables).summary(8)
    if re.search(r"\b(answer|respond|reply)\b[^.\n]{0,60}\b(yes or no|yes/no)", last, re.I):
        return "yes_no", "Yes" if hash_64("yn", last) % 2 else "No"
    if re.search(r"(single|only the) letter|option letter", last, re.I):
        return "letter", "ABCD"[hash_64("letter", last) % 4]
    return "other", Passage(text[-20000:]).summary(5)


def _follow_up(passage: Passage) -> dict[str, list[str]]:
    return {"follow_up_queries": [passage.question(n) for n in range(5)]}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


KINDS = (
    dspy,
    graphrag_extraction,
    lightrag_extraction,
    lightrag_keywords,
    description_summary,
    community_report,
    graphrag_query,
    any_schema,
)


def answer(body: dict[str, Any]) -> Reply:
    """The kind of prompt and the text of the reply, the same for the same request."""
    request = ChatRequest(body)
    for kind in KINDS:
        if (reply := kind(request)) is not None:
            return reply
    return plain_text(request)
