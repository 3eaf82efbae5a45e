"""Recognises what kind of prompt it was sent and answers in that prompt's own format."""

from typing import Any

from stand_in_server.dspy_prompts import dspy
from stand_in_server.graph_prompts import (
    community_report,
    description_summary,
    graphrag_extraction,
    lightrag_extraction,
    lightrag_keywords,
)
from stand_in_server.query_prompts import any_schema, graphrag_query, plain_text
from stand_in_server.request import ChatRequest, Reply

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
