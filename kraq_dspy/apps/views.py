"""Shapes questions, passages, communities and answers for people, once for each door of an index.

`--json`, HTTP and its page, and an agent's tools take these views. A view's fields are the keys of its JSON, and
/openapi.json describes them.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field

from kraq_dspy._internal.rag_prediction import REFUSAL
from kraq_dspy.records import Chunk, Hit, Question as StoredQuestion

if TYPE_CHECKING:
    import dspy

    from kraq_dspy.workspace.suggesting import SuggestedQuestion as Suggestion

SNIPPET = 700
"""Characters of a passage, a summary or a description that an agent sees; `read_document` gives all of a text."""

EVIDENCE = 5
"""Chunks at most that an agent is told to answer a question."""

COUNTED = {
    "n_passages": "chunk_ids",
    "n_documents": "document_ids",
    "n_entities": "entity_ids",
    "n_children": "child_ids",
}
"""Fields of views that say how many ids a record has, by the record's field."""


class View(BaseModel):
    """A JSON object with these fields and no others."""

    model_config = ConfigDict(extra="forbid")

    @classmethod
    def of_record(cls, record: Any, **others: Any) -> Self:
        """The fields that the record has under the same names, counts of what it names (`COUNTED`), and the others."""
        fields: dict[str, Any] = {}
        for name in cls.model_fields.keys() - others.keys():
            if name in COUNTED and hasattr(record, COUNTED[name]):
                fields[name] = len(getattr(record, COUNTED[name]))
            elif hasattr(record, name):
                fields[name] = getattr(record, name)
        return cls(**fields, **others)

    def to_json(self) -> dict[str, Any]:
        """Write the fields that were given, under the names that the door is known for."""
        return self.model_dump(by_alias=True, exclude_unset=True)


def shortened(text: str, length: int = SNIPPET) -> str:
    """Shorten a text to at most `length` characters, cut between words if there are any, with
    "…" if it was cut."""
    if len(text) <= length:
        return text
    beginning = text[: length - 1]
    return f"{beginning[: beginning.rfind(' ')] if ' ' in beginning[length // 2 :] else beginning}…"


# Questions


class QuestionView(View):
    """`topic` names what the group is about where the text does not stand for it: the text is an example then, or ""
    is asked. `evidence` are the chunks that answer it, best first, and `share` is their share of the group's."""

    id: str
    text: str
    topic: str
    level: int
    community_id: str | None
    evidence: list[str]
    evidence_by: str
    share: float

    most_evidence: ClassVar[int | None] = None

    @classmethod
    def of(cls, question: StoredQuestion, topic: str, **more: Any) -> Self:
        evidence = question.evidence[: cls.most_evidence]
        return cls.of_record(question, topic=topic, evidence=evidence, share=round(question.share, 3), **more)


class Question(QuestionView):
    """`n_passages` and `n_documents` count the group that the question stands for."""

    n_passages: int
    n_documents: int


class AgentQuestion(QuestionView):
    """`similarity` to what was asked for is a cosine, None if nothing was. `evidence` are the best chunks."""

    most_evidence = EVIDENCE

    id: str = Field(serialization_alias="question_id")
    n_documents: int
    similarity: float | None


class ListedQuestion(QuestionView):
    """The whole record, with its topic."""

    source: str
    chunk_ids: list[str]
    document_ids: list[str]
    model: str
    duplicate_of: str | None
    names: list[str]


class SuggestedQuestion(View):
    """With the community, the passage and the document that it leads to."""

    text: str
    question_id: str
    community_id: str | None
    chunk_id: str
    document_id: str
    title: str

    @classmethod
    def all_of(cls, suggested: "Sequence[Suggestion] | None") -> list[Self]:
        return [cls.model_validate(each.to_dict()) for each in suggested or ()]


# Passages


class PassageView(View):
    id: str
    document_id: str
    title: str
    text: str


class Mention(View):
    """Where a text names an entity, in characters."""

    start: int
    end: int
    entity_id: str


class Passage(PassageView):
    position: int
    mentions: list[Mention]

    @classmethod
    def of(cls, chunk: Chunk, title: str, mentions: Sequence[Mention], **more: Any) -> Self:
        return cls.of_record(chunk, title=title, mentions=mentions, **more)


class FoundPassage(Passage):
    """`query` is what it was found with, `why` what leads to it."""

    score: float
    query: str
    why: str


class AgentPassage(PassageView):
    """`text` is cut where `is_cut`: read_document(chunk_id) goes on from its beginning."""

    id: str = Field(serialization_alias="chunk_id")
    is_cut: bool
    score: float
    query: str
    why: str

    @classmethod
    def of(cls, hit: Hit) -> Self:
        text, score = shortened(hit.chunk.text), round(float(hit.score), 4)
        is_cut = text != hit.chunk.text
        return cls.of_record(hit.chunk, text=text, is_cut=is_cut, score=score, query=hit.query, why=hit.why)


class Passages(View):
    total: int
    offset: int
    items: list[Passage]


# Entities and communities


class EntityBrief(View):
    id: str
    name: str
    type: str
    degree: int
    n_passages: int


class Named(View):
    """An entity, a community or a passage by its id, with the name or title that a reader knows it by."""

    id: str
    name: str


class CommunityView(View):
    """`title` is the summary's, "" without one."""

    id: str
    level: int
    title: str
    n_children: int
    n_entities: int
    n_passages: int


class CommunityBrief(CommunityView):
    """`question` is the text of the community's question, `topic` what the community is about where the question is an
    example; "" without one. `n_answering` counts the passages that answer it."""

    parent_id: str | None
    question: str
    topic: str
    n_answering: int


class Finding(View):
    model_config = ConfigDict(from_attributes=True)

    summary: str
    explanation: str


class CommunitySummary(View):
    title: str
    text: str
    findings: list[Finding]


class Community(CommunityBrief):
    """`path` are those above it, the broadest first. `evidence` are the passages that answer its question, best first,
    and `passages` all that it was found in."""

    path: list[CommunityBrief]
    children: list[CommunityBrief]
    summary: CommunitySummary | None
    entities: list[EntityBrief]
    evidence: Passages
    passages: Passages


class AgentCommunity(CommunityView):
    """`children`, `entities` and `passages` are the first of those that are counted."""

    id: str = Field(serialization_alias="community_id")
    summary: str
    findings: list[str]
    questions: list[AgentQuestion]
    parent: Named | None
    children: list[Named]
    entities: list[Named]
    passages: list[Named]


# Answers


class AnswerView(View):
    """`answerable` says whether the passages hold an answer, `refused` that none was given for that reason."""

    question: str
    program: str
    model: str
    answer: str
    refused: bool
    answerable: bool | None

    @classmethod
    def of(cls, prediction: "dspy.Prediction", **more: Any) -> Self:
        return cls(
            answer=str(prediction.get("answer") or ""),
            refused=prediction.get("source") == REFUSAL,
            answerable=prediction.get("answerable"),
            **more,
        )


class Usage(View):
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int


class Answer(AnswerView):
    """`answerable` says whether the passages hold an answer, `refused` that none was given for that reason. `notes` say
    in lines how the program came to its answer."""

    standalone_question: str
    index: str
    answerable_score: float | None
    hits: list[FoundPassage]
    notes: list[str]
    next_questions: list[SuggestedQuestion]
    details: dict[str, Any]
    timings: dict[str, float]
    usage: Usage


class AgentAnswer(AnswerView):
    """`evidence` has the first of `n_passages`."""

    evidence: list[AgentPassage]
    n_passages: int
    next_questions: list[str]
    seconds: float


class PrintedAnswer(View):
    """The prediction with all its fields, which are the program's own."""

    model_config = ConfigDict(extra="allow")

    question: str
    program: str
    model: str
    next_questions: list[SuggestedQuestion]

    @classmethod
    def of(cls, prediction: "dspy.Prediction", question: str, program: str, model: str) -> Self:
        suggested = SuggestedQuestion.all_of(prediction.get("next_questions"))
        asked = {"question": question, "program": program, "model": model}
        return cls(**{**asked, **prediction.toDict(), "next_questions": suggested})
