"""Defines every record that crosses a file boundary, in the order in which the pipeline makes them.

Document -> Chunk -> Extraction -> Entity, Relationship, Claim -> Community -> Summary -> Question -> Hit.

Ids point back: a question names its community, its chunks and its documents. Except for documents, whose ids come with
the corpus, an id is a hash of the record's content, so the same input gives the same id on every machine.
"""

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from kraq_dspy.errors import counted, quoted

Metadata = Mapping[str, str | int | float | bool]


PHRASE = "phrase"
"""The type of an entity that a parser found as a noun phrase: what is talked about without being a name."""
PARSE = "parse"
"""The model of a question that was asked of a statement by its parse, or by the rules of another language."""
TOPIC = "topic"
"""The model of a "question" that is none: the topic of a community about which nothing could be asked. Retrieval finds
the community by it."""
STATEMENTS, MENTIONS, SEARCH, JUDGED = "statements", "mentions", "search", "judge"
"""How it is known which passages answer a question (`Question.evidence_by`)."""


def content_id(*parts: str) -> str:
    """Return 32 hexadecimal digits (a valid UUID without dashes) that depend on `parts` and their order alone."""
    digest = hashlib.blake2b(digest_size=16)
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "big"))
        digest.update(encoded)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading of a document. The section below the heading begins at `start`.

    Attributes:
        start: position in the document's text, in characters from 0.
        level: 1 is the broadest.
        text: the words of the heading.

    >>> Heading(start=0, level=1, text="Life")
    Heading(start=0, level=1, text='Life')
    """

    start: int
    level: int
    text: str


@dataclass(frozen=True, slots=True)
class Document:
    """One text of the corpus.

    Attributes:
        id: the id in the corpus; unique in an index.
        title: "" if there is none.
        text: the whole text, normalized to NFC.
        source: the file, relative to the loaded folder; "" for a text from Python.
        metadata: the further columns of a table; retrievers can filter by these.
        headings: headings of Markdown, a web page or a PDF's outline, in reading order.
        left_out: lines of a web page that kraq left out, such as menus. For an office file or a mail, sentences about
            hidden or unread parts ("1 hidden row of sheet 'Fares'").
        labels: who may read the document (`Scope`). Once one document of an index has labels, only the owner reads
            documents without any.

    >>> Document("ada", "Ada Lovelace", "Ada wrote notes.", metadata={"year": 1843})
    Document('ada', 'Ada Lovelace', 16 characters)
    """

    id: str
    title: str
    text: str
    source: str = ""
    metadata: Metadata = field(default_factory=dict)
    headings: tuple[Heading, ...] = ()
    left_out: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Document({self.id!r}, {quoted(self.title or self.text)}, {counted(len(self.text), 'character')})"


_UNDERLINE = re.compile(r"\A[ \t]*[=-]{3,}[ \t]*\n")
"""What Markdown has below a title."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A passage of a document: `text == document.text[start:end]`.

    Attributes:
        id: a hash of the document's id, the title and the text.
        document_id: the document's id.
        position: the number of the chunk in the document, from 0.
        start: the position of the first character in the document's text.
        end: the position after the last character.
        text: the passage.
        n_tokens: tokens of the text (cl100k_base).
        title: the document's title.
        metadata: the document's metadata.
        headings: first the sections that contain the beginning of the text, from broad to narrow; then the headings
            inside the text.

    >>> Chunk("c1", "ada", 0, 0, 16, "Ada wrote notes.", 4, title="Ada Lovelace").passage
    'Ada Lovelace\\nAda wrote notes.'
    """

    id: str
    document_id: str
    position: int
    start: int
    end: int
    text: str
    n_tokens: int
    title: str = ""
    metadata: Metadata = field(default_factory=dict)
    headings: tuple[str, ...] = ()

    @property
    def passage(self) -> str:
        """What a model or a reader sees of the chunk: its document's title, then its text, which may begin with it."""
        if not self.title:
            return self.text
        first, _, rest = self.text.partition("\n")
        if first.strip("#= \t").casefold() != self.title.casefold() or not rest.strip():
            return f"{self.title}\n{self.text}"
        return f"{self.title}\n{_UNDERLINE.sub('', rest).lstrip()}"

    def __repr__(self) -> str:
        return f"Chunk({self.document_id!r}, {self.position}, {quoted(self.text)})"


@dataclass(frozen=True, slots=True)
class ExtractedEntity:
    """A named thing: person, place, organisation, event, work, product or concept."""

    name: str
    type: str
    description: str


@dataclass(frozen=True, slots=True)
class ExtractedRelationship:
    """A directed link between two of the entities."""

    source: str
    target: str
    predicate: str
    description: str


@dataclass(frozen=True, slots=True)
class ExtractedClaim:
    """A checkable fact about an entity, or about its link to an object.

    `object` names another entity; "" if the fact is about the subject alone.
    """

    subject: str
    statement: str
    object: str = ""


@dataclass(frozen=True, slots=True)
class NamedLink:
    """How one of the names is related to another."""

    source: str
    predicate: str
    target: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """What one chunk says, in the words of the extractor; names are not resolved yet."""

    chunk_id: str
    entities: tuple[ExtractedEntity, ...] = ()
    relationships: tuple[ExtractedRelationship, ...] = ()
    claims: tuple[ExtractedClaim, ...] = ()


@dataclass(frozen=True, slots=True)
class Entity:
    """A node of the graph: one thing with a name.

    Attributes:
        id: a hash of the name.
        name: the most frequent spelling.
        type: such as "person"; "phrase" for a noun phrase that a parser found.
        description: what the passages say about the entity; "" if they say nothing.
        names: every spelling that kraq merged, `name` first.
        chunk_ids: the passages that name the entity, in reading order.
        degree: the number of relationships.

    >>> Entity("e1", "Ada Lovelace", "person", "She wrote notes.", ("Ada Lovelace", "Ada"), ("c1",))
    Entity('Ada Lovelace', 'person', 1 chunk)
    """

    id: str
    name: str
    type: str
    description: str
    names: tuple[str, ...]
    chunk_ids: tuple[str, ...]
    degree: int = 0

    def __repr__(self) -> str:
        return f"Entity({self.name!r}, {self.type!r}, {counted(len(self.chunk_ids), 'chunk')})"


@dataclass(frozen=True, slots=True)
class Relationship:
    """A directed edge between two entities.

    Attributes:
        id: a hash of both entities and the predicate.
        source_id: the entity at the beginning.
        target_id: the entity at the end.
        predicate: a verb or a short phrase, such as "met".
        description: what the passages say about the relationship.
        weight: how often the corpus states the relationship.
        chunk_ids: the passages that state the relationship, in reading order.

    >>> Relationship("r1", "e1", "e2", "met", "Ada met Charles.", 2.0, ("c1", "c4")).predicate
    'met'
    """

    id: str
    source_id: str
    target_id: str
    predicate: str
    description: str
    weight: float
    chunk_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Claim:
    """A fact that the corpus states about an entity, or about two entities.

    Attributes:
        id: a hash of the entities, the statement and the passage.
        entity_id: the entity that the fact is about.
        statement: the fact, as a sentence.
        chunk_id: the passage that states the fact.
        object_id: a second entity; None if the fact is about one entity.

    >>> sorted(Claim("f1", "e1", "Ada met Charles in 1833.", "c1", object_id="e2").pair)
    ['e1', 'e2']
    """

    id: str
    entity_id: str
    statement: str
    chunk_id: str
    object_id: str | None = None

    @property
    def pair(self) -> frozenset[str] | None:
        """The two entities that the claim links, in either direction; None if it is about one
        entity alone."""
        return frozenset((self.entity_id, self.object_id)) if self.object_id else None


@dataclass(frozen=True, slots=True)
class Merge:
    """Why two names became one entity. `method` is "normalised", "lexical", "acronym", "spelling", "meaning" or
    "confirmed" (by a model).

    `similarity` is in [0, 1]. It is 1.0 if the normalised strings are equal.
    """

    id: str
    entity_id: str
    kept_name: str
    merged_name: str
    method: str
    similarity: float


@dataclass(frozen=True, slots=True)
class Community:
    """Entities that are linked more to each other than to the rest of the graph.

    If Leiden does not split a community, the community has no children and appears on one level only. Some entities
    have links only within their own passage. On level 0, all such entities of a document are in one community.

    Attributes:
        id: a hash of the entities.
        level: 0 is the broadest.
        parent_id: the community on the level above; None on level 0.
        child_ids: the communities on the level below; () for a leaf.
        entity_ids: the entities in the community.
        relationship_ids: the relationships between these entities.
        chunk_ids: the passages that state these relationships, and the passages with entities without a relationship,
            in reading order.

    >>> Community("m1", 0, None, (), ("e1", "e2"), ("r1",), ("c1",)).is_leaf
    True
    """

    id: str
    level: int
    parent_id: str | None
    child_ids: tuple[str, ...]
    entity_ids: tuple[str, ...]
    relationship_ids: tuple[str, ...]
    chunk_ids: tuple[str, ...]

    @property
    def is_leaf(self) -> bool:
        return not self.child_ids

    def is_worth_a_summary(self, least: int) -> bool:
        """Whether it has `least` entities and, if it has several, a relationship between some of
        them.

        >>> Community("m1", 0, None, (), ("e1", "e2"), (), ("c1",)).is_worth_a_summary(2)
        False
        """
        return len(self.entity_ids) >= least and (len(self.entity_ids) == 1 or bool(self.relationship_ids))

    def __repr__(self) -> str:
        entities, chunks = counted(len(self.entity_ids), "entity"), counted(len(self.chunk_ids), "chunk")
        return f"Community(level {self.level}, {entities}, {chunks}, {self.id!r})"


@dataclass(frozen=True, slots=True)
class Finding:
    """A key fact about a community.

    Attributes:
        summary: the fact.
        explanation: what supports it.

    >>> Finding("Ada wrote the first program.", "Her notes of 1843 have one.").summary
    'Ada wrote the first program.'
    """

    summary: str
    explanation: str


@dataclass(frozen=True, slots=True)
class Summary:
    """What a community is about.

    Attributes:
        community_id: the community.
        title: a few words.
        text: the summary.
        findings: the key facts.
        model: the model that wrote the summary; "graphrag" for a summary that GraphRAG wrote.

    >>> Summary("m1", "Ada and Charles", "They worked on an engine.")
    Summary('Ada and Charles', 'They worked on an engine.')
    """

    community_id: str
    title: str
    text: str
    findings: tuple[Finding, ...] = ()
    model: str = ""

    def __repr__(self) -> str:
        return f"Summary({quoted(self.title)}, {quoted(self.text)})"


@dataclass(frozen=True, slots=True)
class Question:
    """A representative question about a community, or about random passages.

    Attributes:
        id: a hash of the text and the group of passages.
        text: the question.
        source: "kraq" for a community, "random" for random passages.
        community_id: the community; None for random passages.
        level: the community's level; -1 for random passages.
        chunk_ids: the passages of the community, or the random passages.
        document_ids: the documents of these passages.
        model: the model that wrote the question; "parse" for the parser, "topic" if the text is only a topic.
        duplicate_of: the id of an earlier question that asks the same; None if there is none.
        names: the central entities of these passages, the most central first.
        evidence: the passages among `chunk_ids` that answer the question, best first.
        evidence_by: how kraq knows the evidence. "statements": a statement of the passage answers the question.
            "mentions": the passage has all its words. "search": a search for the question finds the passage. "judge":
            a model confirmed the passage.

    >>> question = Question("q1", "Who met Ada?", "kraq", "m1", 0, ("c1", "c2"), ("ada",), evidence=("c2",))
    >>> question.share, question.with_names(8)
    (0.5, 'Who met Ada?')
    """

    id: str
    text: str
    source: str
    community_id: str | None
    level: int
    chunk_ids: tuple[str, ...]
    document_ids: tuple[str, ...]
    model: str = ""
    duplicate_of: str | None = None
    names: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    evidence_by: str = ""

    @property
    def share(self) -> float:
        """The share of the group's chunks that answer it, in [0, 1]; 0.0 without a group."""
        return len(self.evidence) / len(self.chunk_ids) if self.chunk_ids else 0.0

    @property
    def is_topic(self) -> bool:
        """Whether the text names a topic, since nothing could be asked about the community."""
        return self.model == TOPIC

    def with_names(self, count: int) -> str:
        """The text, followed by those of the first `count` names that the text leaves out."""
        left_out = [name for name in self.names[:count] if name not in self.text]
        return f"{self.text} {', '.join(left_out)}" if left_out else self.text

    def __repr__(self) -> str:
        answering = f"answered by {len(self.evidence)} of {counted(len(self.chunk_ids), 'chunk')}"
        return f"Question({self.text!r}, level {self.level}, {answering})"


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage that a retriever found. A prompt shows a hit as its passage, so you can pass a list of hits to a
    `dspy.Predict`.

    Attributes:
        chunk: the passage.
        score: grows with relevance. The scale depends on the retriever.
        query: the text of the search: the user's question or an auxiliary question.
        why: the kind of search, in one word ("dense", "bm25", "auxiliary", ...).

    >>> Hit(Chunk("c1", "ada", 0, 0, 16, "Ada wrote notes.", 4), 0.5, "Who wrote notes?")
    Hit(0.500, 'ada', 'Ada wrote notes.', 'dense')
    """

    chunk: Chunk
    score: float
    query: str
    why: str = "dense"

    def __repr__(self) -> str:
        return f"Hit({self.score:.3f}, {self.chunk.document_id!r}, {quoted(self.chunk.text)}, {self.why!r})"

    # DSPy writes a list of inputs, or what a tool of dspy.ReAct found, into a prompt by these three.

    def __str__(self) -> str:
        """The passage, as a model reads it."""
        return self.chunk.passage

    def __contains__(self, text: str) -> bool:
        return text in self.chunk.passage

    def replace(self, old: str, new: str) -> str:
        """The passage with other words, as `str.replace`."""
        return self.chunk.passage.replace(old, new)

    @property
    def long_text(self) -> str:
        """The passage, under the name by which `dspy.Retrieve` reads what `dspy.settings.rm` found."""
        return self.chunk.passage


@dataclass(frozen=True, slots=True)
class QuestionHit:
    """A stored question near another question.

    Attributes:
        question: the stored question.
        similarity: the cosine of both embeddings, in [-1, 1].

    >>> QuestionHit(Question("q1", "Who met Ada?", "kraq", "m1", 0, ("c1",), ("ada",)), 0.9)
    QuestionHit(0.900, 'Who met Ada?')
    """

    question: Question
    similarity: float

    def __repr__(self) -> str:
        return f"QuestionHit({self.similarity:.3f}, {quoted(self.question.text)})"


@dataclass(frozen=True, slots=True)
class Turn:
    """One question of a conversation, and its answer; "" without an answer.

    >>> Turn("Who founded Maybach Music Group?", "Rick Ross.")
    Turn('Who founded Maybach Music Group?', 'Rick Ross.')
    """

    question: str
    answer: str = ""

    def __repr__(self) -> str:
        return f"Turn({quoted(self.question)}, {quoted(self.answer)})"


@dataclass(frozen=True, slots=True)
class RatedPoint:
    """What a report contributes to an answer. `importance` is from 0 to 100."""

    point: str
    importance: int


@dataclass(frozen=True, slots=True)
class QAPair:
    """One thing that a passage says, as a question that stands alone and its answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class AnswerSource:
    """A document that a prepared answer rests on, and the hash of its text at that time; "" if
    unknown."""

    document_id: str
    content_hash: str = ""


@dataclass(frozen=True, slots=True)
class AnswerEvidence:
    """A passage that a program saw when it failed to answer."""

    chunk_id: str
    document_id: str
    text: str

    @classmethod
    def of(cls, chunk: Chunk) -> "AnswerEvidence":
        return cls(chunk.id, chunk.document_id, chunk.passage)


@dataclass(frozen=True, slots=True)
class FaqEntry:
    """A question with its prepared answer.

    Attributes:
        number: never changes.
        question: the question.
        answer: the prepared answer; "" if there is none yet.
        status: "approved" (kraq gives the answer), "pending" (somebody has to answer or approve it)
            or "stale" (a source document has changed).
        sources: the documents that the answer rests on.
        origin: "person", "import", "failed", "answered", "kraq" or "synthetic".
        version: counts changes from 1.
        changed_at: the time of the last change, in ISO 8601.
        changed_by: who made the last change.
        given: the program's answer, if a program failed at the question.
        evidence: the passages that this program saw.
        asked: how often a program failed at the question.
        failure: the class of the last failure (`programs.qa_search.program`).
    """

    number: int
    question: str
    answer: str
    status: str
    sources: tuple[AnswerSource, ...] = ()
    origin: str = "person"
    version: int = 1
    changed_at: str = ""
    changed_by: str = ""
    given: str = ""
    evidence: tuple[AnswerEvidence, ...] = ()
    asked: int = 0
    failure: str = ""


@dataclass(frozen=True, slots=True)
class GoldPassage:
    """A passage that answers a row of a test set: its place, and its text when kraq made the row.

    Attributes:
        chunk_id: the passage.
        document_id: its document.
        start: the position of the first character in the document's text.
        end: the position after the last character.
        text_hash: a hash of its text.
        found_by: "source" if the question came from the passage, "twin" if the passage has nearly the text of a
            source; otherwise the retrievers that found it.

    >>> GoldPassage("c1", "ada", 0, 16, "5f3a", ("source",)).found_by
    ('source',)
    """

    chunk_id: str
    document_id: str
    start: int
    end: int
    text_hash: str
    found_by: tuple[str, ...]


NEW, APPROVED, REJECTED, STALE = "new", "approved", "rejected", "stale"
MADE, OWN = "made", "own"
"""The statuses of a row of a test set."""


@dataclass(frozen=True, slots=True)
class TestsetRow:
    """A question to measure a retrieval system with, and the evidence that answers it.

    Attributes:
        id: a hash of the kind and the question.
        question: the question.
        type: the kind of question ("fact", "bridge", "unanswerable", ...).
        answers: right answers, any of which is enough; () if the documents have none.
        answer_items: the items of a list, each with all spellings.
        supporting_ids: the documents that answer the question.
        hidden_documents: documents to hide, so that the question has no answer.
        nuggets: statements that a good answer to a broad question makes.
        passages: the gold passages.
        community_id: the community that the question is about; None without one.
        community_level: the level of this community; -1 without one.
        overlap: the share of the question's words that the passages contain, in [0, 1].
        solved_by: the retrievers that found all of these documents when kraq made the row.
        model: the model that wrote the question, or put the parser's question into other words.
        checks: the checks that the row passed.
        status: "new", "approved", "rejected" or "stale" (a passage has changed). `kraq eval` skips rejected and stale
            rows.
        half: "made" for a question made of statements, "own" for a question of the index, "" for others.

    >>> TestsetRow("t1", "Who met Ada?", "fact", ("Charles",), supporting_ids=("ada",)).is_answerable
    True
    """

    __test__ = False  # no test case, whatever pytest takes it for

    id: str
    question: str
    type: str
    answers: tuple[str, ...] = ()
    answer_items: tuple[tuple[str, ...], ...] = ()
    supporting_ids: tuple[str, ...] = ()
    hidden_documents: tuple[str, ...] = ()
    nuggets: tuple[str, ...] = ()
    passages: tuple[GoldPassage, ...] = ()
    community_id: str | None = None
    community_level: int = -1
    overlap: float = 0.0
    solved_by: tuple[str, ...] = ()
    model: str = ""
    checks: tuple[str, ...] = ()
    status: str = "new"
    half: str = ""

    @property
    def is_answerable(self) -> bool:
        """Whether the documents, without the hidden ones, answer it."""
        return bool(self.supporting_ids)

    def __repr__(self) -> str:
        return f"TestsetRow({self.type!r}, {quoted(self.question)}, {counted(len(self.passages), 'passage')})"


@dataclass(frozen=True, slots=True)
class Failure:
    """An item at which a stage failed.

    Attributes:
        stage: such as "extract"; "load" for reading a file.
        item_id: the record's id; in the stage "load" a file name.
        reason: the message of the error.
        attempts: how often kraq tried.
        where: the item in words: the file and passage, or the topic of a community. Only reports have this field.

    >>> Failure("load", "notes.txt", "The file is empty.").attempts
    1
    """

    stage: str
    item_id: str
    reason: str
    attempts: int = 1
    where: str = ""


Record: TypeAlias = (
    Document | Chunk | Extraction | Entity | Relationship | Claim | Merge | Community | Summary | Question | Failure
)
"""The kinds of records that an index keeps, each in its own table."""


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls to language models, and the tokens of these calls. `+` adds two usages up; `-` gives the difference.

    Attributes:
        calls: the number of calls.
        prompt_tokens: tokens of the prompts.
        completion_tokens: tokens of the replies.
        cached_tokens: the prompt tokens that a server reports as cached.

    >>> (Usage(1, 200, 30) + Usage(1, 100, 10)).prompt_tokens
    300
    """

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.calls + other.calls,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.cached_tokens + other.cached_tokens,
        )

    def __sub__(self, other: "Usage") -> "Usage":
        return Usage(
            self.calls - other.calls,
            self.prompt_tokens - other.prompt_tokens,
            self.completion_tokens - other.completion_tokens,
            self.cached_tokens - other.cached_tokens,
        )


def usage_by_stage(ledger: Mapping[tuple[str, str], Usage]) -> dict[str, Usage]:
    """Add up the usage of all models for each stage, from the usage by (stage, model)."""
    by_stage: dict[str, Usage] = {}
    for (stage, _), usage in ledger.items():
        by_stage[stage] = by_stage.get(stage, Usage()) + usage
    return by_stage
