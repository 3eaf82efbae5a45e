"""Makes rows for a step from an index, where a caller gives none: what its models wrote stands for what is right.

Such rows teach a smaller model what a larger one wrote when it built the index, and let every step be tried without a
label. They hold the mistakes of that model too: human examples are better.

A maker yields rows in groups that belong together, such as a right one and a wrong one; `drawn` takes some of them.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

import dspy

from kraq_dspy import signatures
from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.asset.graph.elements import GraphView, community_elements
from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval.metrics.answers import normalise_answer
from kraq_dspy.indexing.faq.evidence import evidence_for
from kraq_dspy.models.lms.roles import make_lm, own_adapter, rule_based_models
from kraq_dspy.optimize.rows import MIN_ROWS, Row
from kraq_dspy.programs.kraq.describe import shown_summary
from kraq_dspy.programs.kraq.element_list import ElementList
from kraq_dspy.programs.qa_search.program import NO_MATCH
from kraq_dspy.records import Chunk, Claim, Community, Entity, Extraction, Question, Relationship, Summary
from kraq_dspy.settings import EMBEDDED
from kraq_dspy.testset.corpus import Corpus
from kraq_dspy.testset.kinds import FACT, materials_of
from kraq_dspy.workspace import Workspace

T = TypeVar("T")

Rows = Iterator[Sequence[Row]]
"""Rows in groups that belong together."""

MOST_ROWS = 200
"""Groups of rows that are made, evenly drawn."""

TRAINED = 100
"""Questions of a training set that is made, if nobody approved or wrote any."""

CENTRAL = 5
"""Names of a community that its summary should have."""

LISTED = 5
"""Questions of an FAQ cache among which one is to be found."""

_NAME_INSIDE = re.compile(r"(?<= )(?:the )?[A-Z][\w.'’-]*(?: [A-Z][\w.'’-]*)*")
"""A name in a question, in whose place "it" points to what nobody sees."""

KNOWN_PAIRS = "its known pairs"
"""What the rows of a step are made of, in the words of its declaration."""

PAIRS_LACK = (
    "The index holds no question with a known answer, and no passage that one can be asked of. Give rows of your own, "
    "approve answers (kraq faq), or let a model write pairs of its passages: kraq precompute DIR qa-pairs."
)


@dataclass(frozen=True)
class KnownPair:
    """A question with its answer and the passages that it rests on."""

    question: str
    answer: str
    passages: tuple[str, ...]
    document_ids: tuple[str, ...]

    @property
    def telling_sentence(self) -> str:
        """The first sentence of the passages that has the answer; the beginning of the first passage if none has."""
        answer = normalise_answer(self.answer)
        sentences = [passage[start:end] for passage in self.passages for start, end in sentence_spans(passage)]
        return next((each for each in sentences if answer in normalise_answer(each)), sentences[0]).strip()


def drawn(items: Iterable[T]) -> list[T]:
    """At most `MOST_ROWS` of the items, from all parts of them."""
    every = list(items)
    return every[:: max(1, math.ceil(len(every) / MOST_ROWS))]


def known_pairs(space: Workspace) -> list[KnownPair]:
    """Approved answers of the index's FAQ cache; without any, the pairs of `kraq precompute DIR qa-pairs`; without
    these, a training set that the embedded reader makes of the index.

    Raises EvaluationError if there is none of them.
    """
    pairs = _approved_pairs(space) or _prepared_pairs(space) or _trainset_pairs(space)
    if not pairs:
        raise EvaluationError(PAIRS_LACK)
    return drawn(pairs)


def source_of_pairs(space: Workspace) -> str:
    """Say in words where `known_pairs` has them from."""
    if _approved_pairs(space):
        return "approved answers of its FAQ cache"
    if _prepared_pairs(space):
        return "pairs that a model wrote of its passages (kraq precompute qa-pairs)"
    return "questions that the embedded reader asked of its passages (space.trainset)"


def _approved_pairs(space: Workspace) -> list[KnownPair]:
    pairs = []
    for entry in space.answers.entries() if space.has_answers else ():
        if evidence := evidence_for(space.index, entry):
            documents = tuple(dict.fromkeys(each.document_id for each in evidence))
            pairs.append(KnownPair(entry.question, entry.answer, tuple(each.text for each in evidence), documents))
    return pairs


def _prepared_pairs(space: Workspace) -> list[KnownPair]:
    chunks = list(space.index.all(Chunk))
    pairs_of = space.stored_pairs.pairs_of([chunk.id for chunk in chunks])
    return [
        KnownPair(pair.question, pair.answer, (chunk.passage,), (chunk.document_id,))
        for chunk in chunks
        for pair in pairs_of.get(chunk.id, ())
    ]


def _trainset_pairs(space: Workspace) -> list[KnownPair]:
    """Facts and bridges of a test set, checked as those are; if it is too small to be split, facts alone.

    The embedded reader asks, whatever model the index has: rows to try a step with must cost nothing.
    """
    models = rule_based_models(space.embedder)
    space_without_models = Workspace(space.index, space.embedder, models, scope=space.scope, part=space.part)
    pairs = [
        KnownPair(row.question, row.answer, tuple(row.passages), tuple(row.supporting_ids))
        for row in space_without_models.trainset(TRAINED)
    ]
    return pairs if len(pairs) >= 2 * MIN_ROWS else made_pairs(space)


def made_pairs(space: Workspace) -> list[KnownPair]:
    """Facts that the embedded reader asks of the passages, with the words in them that answer."""
    pairs = []
    for material in materials_of(Corpus.of(space), FACT, seed=0)[: MOST_ROWS * 2]:
        chunk = material.chunks[0]
        fact = _asked_of_embedded(signatures.AskFact, passage=chunk.passage, about=material.inputs["about"])
        if fact.question:
            pairs.append(KnownPair(fact.question, fact.answer, (chunk.passage,), (chunk.document_id,)))
    return pairs


def _asked_of_embedded(signature: type[dspy.Signature], **inputs: Any) -> dspy.Prediction:
    """Ask the embedded model one step, whatever models are set: rows to try a step with must cost nothing."""
    ask = dspy.Predict(signature)
    ask.set_lm(_embedded_model())
    with own_adapter(), dspy.context(disable_history=True):
        return ask(**inputs)


@cache
def _embedded_model() -> dspy.LM:
    """The embedded model without an encoder, which the steps that are asked here do not use."""
    return make_lm(EMBEDDED)


# Questions and answers


def question_rows(space: Workspace) -> list[Row]:
    """Questions with their answers and documents, for programs."""
    return [
        {"question": pair.question, "answers": [pair.answer], "supporting_ids": list(pair.document_ids)}
        for pair in known_pairs(space)
    ]


def reading_rows(space: Workspace) -> Rows:
    """Questions with passages and answers, for answering and drafting."""
    for pair in known_pairs(space):
        yield [{"question": pair.question, "passages": list(pair.passages), "answers": [pair.answer]}]


Contrast = Callable[[KnownPair, KnownPair], tuple[Row, Row, Row]]
"""Of a pair and of another with another answer: what is shown in both rows, what fits it, and what does not."""


def contrasts(
    label: str, contrast: Contrast, pairs_of: Callable[[Workspace], Sequence[KnownPair]] = known_pairs
) -> Callable[[Workspace], Rows]:
    """Makes of each pair a row whose `label` is true, and one of another pair's parts whose label is false.

    The pair itself is skipped if no other has another answer, and the second row if nothing does not fit.
    """

    def rows(space: Workspace) -> Rows:
        for pair, other in _with_another(pairs_of(space)):
            shown, fitting, unfitting = contrast(pair, other)
            both = [{**shown, **fitting, label: True}, {**shown, **unfitting, label: False}]
            yield both if unfitting else both[:1]

    return rows


def other_passage(pair: KnownPair, other: KnownPair) -> tuple[Row, Row, Row]:
    """The question with a passage that answers it, and with the passage of another."""
    return {"question": pair.question}, {"passage": pair.passages[0]}, {"passage": other.passages[0]}


def pointing_back(question: str) -> Row:
    """The question with "it" in place of its first name; nothing without a name."""
    named = _NAME_INSIDE.search(question)
    return {"question": _NAME_INSIDE.sub("it", question, count=1)} if named else {}


def conversation_rows(space: Workspace) -> Rows:
    """Questions that point back to a name of the turn before, and questions that need nothing of it."""
    for pair, other in _with_another(known_pairs(space)):
        before = {"question": other.question, "answer": other.answer}
        rows: list[Row] = [{"question": pair.question, "turns": [before], "complete": pair.question}]
        if name := _NAME_INSIDE.search(pair.question):
            turn = {"question": f"What is said about {name.group()}?", "answer": pair.telling_sentence}
            rows.append({**pointing_back(pair.question), "turns": [turn], "complete": pair.question})
        yield rows


def _with_another(pairs: Sequence[KnownPair]) -> Iterator[tuple[KnownPair, KnownPair]]:
    """Each pair with the next one that has another answer; none if all answers are the same."""
    for place, pair in enumerate(pairs):
        for other in (*pairs[place + 1 :], *pairs[:place]):
            if normalise_answer(other.answer) != normalise_answer(pair.answer):
                yield pair, other
                break


# Entities and links


def extraction_rows(space: Workspace) -> Rows:
    """Passages with the links that were read from them when the index was built."""
    for chunk, extraction in _extractions(space):
        triples = [[link.source, link.predicate, link.target] for link in extraction.relationships if link.predicate]
        if triples:
            yield [{"passage": chunk.passage, "triples": triples}]


def gleaning_rows(space: Workspace) -> Rows:
    """Passages with all that was read from them but one entity, which a second reading should find."""
    with_several = (each for each in _extractions(space) if len(each[1].entities) > 1)
    for number, (chunk, extraction) in enumerate(with_several):
        place = number % len(extraction.entities)  # the first of one passage, the second of the next
        hidden = extraction.entities[place].name
        known = Extraction(
            chunk.id,
            tuple(entity for entity in extraction.entities if entity.name != hidden),
            tuple(link for link in extraction.relationships if hidden not in (link.source, link.target)),
        )
        first_reading = ElementList(passage=None)
        first_reading.add(known)
        yield [{"passage": chunk.passage, "found": first_reading.outline(), "missed": [hidden]}]


def _extractions(space: Workspace) -> Iterator[tuple[Chunk, Extraction]]:
    """Yield what was read from each passage, with the passage, in reading order."""
    chunks = {chunk.id: chunk for chunk in space.index.all(Chunk)}
    for extraction in space.index.extractions():
        yield chunks[extraction.chunk_id], extraction


def description_rows(space: Workspace) -> Rows:
    """Names of which several passages say different things."""
    descriptions_of: defaultdict[str, dict[str, None]] = defaultdict(dict)
    for extraction in space.index.extractions():
        for entity in extraction.entities:
            if entity.description.strip():
                descriptions_of[entity.name][entity.description] = None

    for name, descriptions in descriptions_of.items():
        if len(descriptions) > 1:
            yield [{"name": name, "descriptions": list(descriptions)}]


def same_entity_rows(space: Workspace) -> Rows:
    """Spellings that became one entity, and entities whose names share a word."""
    entities = sorted(space.index.all(Entity), key=lambda entity: entity.name)
    for entity in entities:
        for alias in entity.names[1:]:
            yield [{"first": _with_description(entity), "second": alias, "same": True}]

    for first, second in pairwise(entities):  # in order of their names
        if set(first.name.casefold().split()) & set(second.name.casefold().split()):
            yield [{"first": _with_description(first), "second": _with_description(second), "same": False}]


def _with_description(entity: Entity) -> str:
    return f"{entity.name}: {entity.description}" if entity.description else entity.name


# Communities and their questions


def summary_rows(space: Workspace) -> Rows:
    """Communities with their elements, their central names, and the summary that was written of them."""
    index = space.index
    view = GraphView.of(index.all(Entity), index.all(Relationship), index.all(Claim))
    communities = {community.id: community for community in index.all(Community)}
    summaries = {summary.community_id: summary for summary in index.all(Summary)}
    limit = index.manifest.settings.community_tokens

    for community_id in drawn(sorted(summaries.keys() & communities.keys())):
        community = communities[community_id]
        members = [view.entities[entity_id] for entity_id in community.entity_ids]
        members.sort(key=lambda entity: (-entity.degree, entity.name))
        yield [
            {
                "elements": community_elements(community, view, limit, summaries.get, communities.get),
                "mentions": [entity.name for entity in members[:CENTRAL]],
                "summary": summaries[community_id].text,
            }
        ]


def asked_summaries(field: str) -> Callable[[Workspace], Rows]:
    """Makes rows of summaries, as the `field`, with the questions that stand for their communities and the passages
    that these should find."""

    def rows(space: Workspace) -> Rows:
        summaries = {summary.community_id: summary for summary in space.index.all(Summary)}
        for question in _questions(space):
            summary = summaries.get(question.community_id or "")
            if summary is not None:
                shown = shown_summary(summary.title, summary.text)
                yield [{field: shown, "questions": [question.text], "chunk_ids": list(question.chunk_ids)}]

    return rows


def matching_rows(space: Workspace) -> Rows:
    """The index's questions in other words, among the nearest others: once with the question itself, once without."""
    for place, (question, rephrasing, others) in enumerate(_with_nearest(space)):
        number = 1 + place % (len(others) + 1)  # the right one stands at each place in turn
        among_them = [*others[: number - 1], question, *others[number - 1 :]]
        yield [
            {"question": rephrasing, "catalogue": among_them, "number": number},
            {"question": rephrasing, "catalogue": others, "number": NO_MATCH},
        ]


def confirmation_rows(space: Workspace) -> Rows:
    """The index's questions beside themselves in other words, and beside the nearest other one."""
    for question, rephrasing, others in _with_nearest(space):
        yield [
            {"asked": rephrasing, "stored": question, "same": True},
            {"asked": rephrasing, "stored": others[0], "same": False},
        ]


def _questions(space: Workspace) -> list[Question]:
    """Questions of communities, none of which asks the same as another, evenly drawn."""
    return drawn(each for each in space.index.all(Question) if each.source == "kraq" and each.duplicate_of is None)


def _with_nearest(space: Workspace) -> Iterator[tuple[str, str, list[str]]]:
    """Each question that can be put in other words, with these words and the questions nearest to it."""
    nearest = space.questions()
    for question in _questions(space):
        hits = nearest(question.text, LISTED + 1)
        others = [hit.question.text for hit in hits if hit.question.text != question.text][:LISTED]
        if not others:
            continue
        rephrasings = _asked_of_embedded(
            signatures.RephraseQuestion, question=question.text, count=1, most_characters=0
        ).rephrasings
        if rephrasings:
            yield question.text, rephrasings[0], others


# Test sets


def testset_rows(space: Workspace, kind: str) -> Rows:
    """What a test set's questions of one kind are asked of."""
    for material in materials_of(Corpus.of(space), kind, seed=0):
        yield [dict(material.inputs)]


def testset_wording_rows(space: Workspace) -> Rows:
    """Questions, and the words of their passages that they are to do without."""
    for pair in made_pairs(space):
        words_after_first = pair.question.rstrip("?").split()[1:]
        yield [{"question": pair.question, "avoid": [word for word in words_after_first if word.islower()]}]
