"""Makes rows for a step from an index, where a caller gives none: what its models wrote stands for what is right.

Such rows teach a smaller model what a larger one wrote when it built the index, and let every step be tried without a
label. They hold the mistakes of that model too: people's own rows are better if there are some.
"""

import math
import re
from collections.abc import Iterator, Sequence
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

MOST_ROWS = 200
"""Rows that are made, evenly drawn."""

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


def known_pairs(space: Workspace) -> list[KnownPair]:
    """Approved answers of the index's FAQ cache; without any, the pairs of `kraq precompute DIR qa-pairs`; without
    these, a training set that the embedded reader makes of the index.

    Raises EvaluationError if there is none of them.
    """
    pairs = _approved_pairs(space) or _prepared_pairs(space) or _trainset_pairs(space)
    if not pairs:
        raise EvaluationError(PAIRS_LACK)
    return _evenly_drawn(pairs)


def source_of_pairs(space: Workspace) -> str:
    """Say in words where `known_pairs` has them from."""
    if _approved_pairs(space):
        return "approved answers of its FAQ cache"
    if _prepared_pairs(space):
        return "pairs that a model wrote of its passages (kraq precompute qa-pairs)"
    return "questions that the embedded reader asked of its passages (space.trainset)"


def _approved_pairs(space: Workspace) -> list[KnownPair]:
    if not space.has_answers:
        return []

    pairs = []
    for entry in space.answers.entries():
        evidence = evidence_for(space.index, entry)
        if evidence:
            documents = tuple(dict.fromkeys(each.document_id for each in evidence))
            pairs.append(KnownPair(entry.question, entry.answer, tuple(each.text for each in evidence), documents))
    return pairs


def _prepared_pairs(space: Workspace) -> list[KnownPair]:
    chunks = list(space.index.all(Chunk))
    pairs_of = space.stored_pairs.pairs_of([chunk.id for chunk in chunks])
    pairs = []
    for chunk in chunks:
        for pair in pairs_of.get(chunk.id, ()):
            pairs.append(KnownPair(pair.question, pair.answer, (chunk.passage,), (chunk.document_id,)))
    return pairs


def _trainset_pairs(space: Workspace) -> list[KnownPair]:
    """Facts and bridges of a test set, checked as those are; if it is too small to be split, facts alone.

    The embedded reader asks, whatever model the index has: rows to try a step with must cost nothing.
    """
    models = rule_based_models(space.embedder)
    space_without_models = Workspace(space.index, space.embedder, models, scope=space.scope, part=space.part)
    pairs = []
    for row in space_without_models.trainset(TRAINED):
        pairs.append(KnownPair(row.question, row.answer, tuple(row.passages), tuple(row.supporting_ids)))
    return pairs if len(pairs) >= 2 * MIN_ROWS else _made_pairs(space)


def _made_pairs(space: Workspace) -> list[KnownPair]:
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


def question_rows(space: Workspace) -> list[Row]:
    """Questions with their answers and documents, for programs."""
    return [
        {"question": pair.question, "answers": [pair.answer], "supporting_ids": list(pair.document_ids)}
        for pair in known_pairs(space)
    ]


def reading_rows(space: Workspace) -> list[Row]:
    """Questions with passages and answers, for answering and drafting."""
    return [
        {"question": pair.question, "passages": list(pair.passages), "answers": [pair.answer]}
        for pair in known_pairs(space)
    ]


def verification_rows(space: Workspace) -> list[Row]:
    """The sentence that tells an answer as a rationale that supports it, and does not support another's answer."""
    rows: list[Row] = []
    for pair, other in _with_another(known_pairs(space)):
        shown = {"question": pair.question, "rationale": _telling_sentence(pair)}
        rows.append({**shown, "response": pair.answer, "supported": True})
        rows.append({**shown, "response": other.answer, "supported": False})
    return rows


def judging_rows(space: Workspace) -> list[Row]:
    """The sentence that tells an answer, which is right, and the answer to another question, which is wrong."""
    rows: list[Row] = []
    for pair, other in _with_another(known_pairs(space)):
        shown = {"question": pair.question, "answers": [pair.answer]}
        rows.append({**shown, "answer": _telling_sentence(pair), "right": True})
        rows.append({**shown, "answer": other.answer, "right": False})
    return rows


def critics_rows(space: Workspace) -> list[Row]:
    """A pair with its passage, which should pass, and with the passage and answer of another, which should not."""
    rows: list[Row] = []
    for pair, other in _with_another(known_pairs(space)):
        rows.append({"question": pair.question, "answer": pair.answer, "passage": pair.passages[0], "accepted": True})
        rows.append(
            {"question": pair.question, "answer": other.answer, "passage": other.passages[0], "accepted": False}
        )
    return rows


def extraction_rows(space: Workspace) -> list[Row]:
    """Passages with the links that were read from them when the index was built."""
    rows: list[Row] = []
    for chunk, extraction in _extractions(space):
        triples = [[link.source, link.predicate, link.target] for link in extraction.relationships if link.predicate]
        if triples:
            rows.append({"passage": chunk.passage, "triples": triples})
    return _evenly_drawn(rows)


def gleaning_rows(space: Workspace) -> list[Row]:
    """Passages with all that was read from them but one entity, which a second reading should find."""
    rows: list[Row] = []
    for chunk, extraction in _extractions(space):
        if len(extraction.entities) < 2:
            continue

        place = len(rows) % len(extraction.entities)  # the first of one passage, the second of the next
        hidden = extraction.entities[place].name
        known = Extraction(
            chunk.id,
            tuple(entity for entity in extraction.entities if entity.name != hidden),
            tuple(link for link in extraction.relationships if hidden not in (link.source, link.target)),
        )
        first_reading = ElementList(passage=None)
        first_reading.add(known)
        rows.append({"passage": chunk.passage, "found": first_reading.outline(), "missed": [hidden]})
    return _evenly_drawn(rows)


def description_rows(space: Workspace) -> list[Row]:
    """Names of which several passages say different things."""
    descriptions_of: dict[str, list[str]] = {}
    for extraction in space.index.extractions():
        for entity in extraction.entities:
            descriptions = descriptions_of.setdefault(entity.name, [])
            if entity.description.strip() and entity.description not in descriptions:
                descriptions.append(entity.description)

    rows: list[Row] = []
    for name, descriptions in descriptions_of.items():
        if len(descriptions) > 1:
            rows.append({"name": name, "descriptions": descriptions})
    return _evenly_drawn(rows)


def summary_rows(space: Workspace) -> list[Row]:
    """Communities with their elements, their central names, and the summary that was written of them."""
    index = space.index
    view = GraphView.of(index.all(Entity), index.all(Relationship), index.all(Claim))
    communities = {community.id: community for community in index.all(Community)}
    summaries = {summary.community_id: summary for summary in index.all(Summary)}
    limit = index.manifest.settings.community_tokens

    rows: list[Row] = []
    for community_id in _evenly_drawn(sorted(summaries.keys() & communities.keys())):
        community = communities[community_id]
        members = [view.entities[entity_id] for entity_id in community.entity_ids]
        members.sort(key=lambda entity: (-entity.degree, entity.name))
        rows.append(
            {
                "elements": community_elements(community, view, limit, summaries.get, communities.get),
                "mentions": [entity.name for entity in members[:CENTRAL]],
                "summary": summaries[community_id].text,
            }
        )
    return rows


def generation_rows(space: Workspace) -> list[Row]:
    """Summaries with the questions that stand for their communities, and the passages that these should find."""
    return [
        {"summary": shown, "questions": [question.text], "chunk_ids": list(question.chunk_ids)}
        for shown, question in _asked_summaries(space)
    ]


def evidence_rows(space: Workspace) -> list[Row]:
    """Questions with a passage that answers them, and with the passage of another."""
    rows: list[Row] = []
    for pair, other in _with_another(known_pairs(space)):
        rows.append({"question": pair.question, "passage": pair.passages[0], "answers": True})
        rows.append({"question": pair.question, "passage": other.passages[0], "answers": False})
    return rows


def decomposition_rows(space: Workspace) -> list[Row]:
    """Summaries, as pieces of information, with the questions that they made an index ask."""
    return [
        {"information": shown, "questions": [question.text], "chunk_ids": list(question.chunk_ids)}
        for shown, question in _asked_summaries(space)
    ]


def matching_rows(space: Workspace) -> list[Row]:
    """The index's questions in other words, among the nearest others: once with the question itself, once without."""
    rows: list[Row] = []
    for question, rephrasing, others in _with_nearest(space):
        n_questions_before = len(rows) // 2
        number = 1 + n_questions_before % (len(others) + 1)  # the right one stands at each place in turn
        among_them = [*others[: number - 1], question, *others[number - 1 :]]
        rows.append({"question": rephrasing, "catalogue": among_them, "number": number})
        rows.append({"question": rephrasing, "catalogue": others, "number": NO_MATCH})
    return rows


def confirmation_rows(space: Workspace) -> list[Row]:
    """The index's questions beside themselves in other words, and beside the nearest other one."""
    rows: list[Row] = []
    for question, rephrasing, others in _with_nearest(space):
        rows.append({"asked": rephrasing, "stored": question, "same": True})
        rows.append({"asked": rephrasing, "stored": others[0], "same": False})
    return rows


def conversation_rows(space: Workspace) -> list[Row]:
    """Questions that point back to a name of the turn before, and questions that need nothing of it."""
    rows: list[Row] = []
    for pair, other in _with_another(known_pairs(space)):
        name = _NAME_INSIDE.search(pair.question)
        if name:
            turn = {"question": f"What is said about {name.group()}?", "answer": _telling_sentence(pair)}
            pointing_back = _NAME_INSIDE.sub("it", pair.question, count=1)
            rows.append({"question": pointing_back, "turns": [turn], "complete": pair.question})

        before = {"question": other.question, "answer": other.answer}
        rows.append({"question": pair.question, "turns": [before], "complete": pair.question})
    return _evenly_drawn(rows)


def same_entity_rows(space: Workspace) -> list[Row]:
    """Spellings that became one entity, and entities whose names share a word."""
    entities = sorted(space.index.all(Entity), key=lambda entity: entity.name)
    rows: list[Row] = []
    for entity in entities:
        for alias in entity.names[1:]:
            rows.append({"first": _with_description(entity.name, entity), "second": alias, "same": True})

    for first, second in pairwise(entities):  # in order of their names
        if set(first.name.casefold().split()) & set(second.name.casefold().split()):
            shown = {"first": _with_description(first.name, first), "second": _with_description(second.name, second)}
            rows.append({**shown, "same": False})
    return _evenly_drawn(rows)


def testset_rows(space: Workspace, kind: str) -> list[Row]:
    """Return what a test set's questions of one kind are asked of."""
    materials = materials_of(Corpus.of(space), kind, seed=0)
    return _evenly_drawn([dict(material.inputs) for material in materials])


def testset_check_rows(space: Workspace, output: str) -> list[Row]:
    """Questions with answer and passage, each beside one that is not right: another's passage or answer, or a question
    that points to what nobody sees."""
    rows: list[Row] = []
    for pair, other in _with_another(_made_pairs(space)):
        if output == "stands_alone":
            rows.append({"question": pair.question, output: True})
            if _NAME_INSIDE.search(pair.question):
                rows.append({"question": _NAME_INSIDE.sub("it", pair.question), output: False})
        elif output == "same":
            inputs = {"question": pair.question, "second_answer": pair.answer}
            rows.append({**inputs, "first_answer": f"It is {pair.answer}.", output: True})
            rows.append({**inputs, "first_answer": other.answer, output: False})
        else:
            inputs = {"question": pair.question, "answer": pair.answer}
            rows.append({**inputs, "passage": pair.passages[0], output: True})
            rows.append({**inputs, "passage": other.passages[0], output: False})
    return rows


def testset_wording_rows(space: Workspace) -> list[Row]:
    """Questions, and the words of their passages that they are to do without."""
    rows: list[Row] = []
    for pair in _made_pairs(space):
        words_after_first = pair.question.rstrip("?").split()[1:]
        rows.append({"question": pair.question, "avoid": [word for word in words_after_first if word.islower()]})
    return rows


def _extractions(space: Workspace) -> Iterator[tuple[Chunk, Extraction]]:
    """Yield what was read from each passage, with the passage, in reading order."""
    chunks = {chunk.id: chunk for chunk in space.index.all(Chunk)}
    for extraction in space.index.extractions():
        yield chunks[extraction.chunk_id], extraction


def _questions(space: Workspace) -> list[Question]:
    """Questions of communities, none of which asks the same as another, evenly drawn."""
    questions = [each for each in space.index.all(Question) if each.source == "kraq" and each.duplicate_of is None]
    return _evenly_drawn(questions)


def _asked_summaries(space: Workspace) -> Iterator[tuple[str, Question]]:
    summaries = {summary.community_id: summary for summary in space.index.all(Summary)}
    for question in _questions(space):
        summary = summaries.get(question.community_id or "")
        if summary is not None:
            yield shown_summary(summary.title, summary.text), question


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


def _with_another(pairs: Sequence[KnownPair]) -> Iterator[tuple[KnownPair, KnownPair]]:
    """Each pair with the next one that has another answer; none if all answers are the same."""
    for place, pair in enumerate(pairs):
        for other in (*pairs[place + 1 :], *pairs[:place]):
            if normalise_answer(other.answer) != normalise_answer(pair.answer):
                yield pair, other
                break


def _telling_sentence(pair: KnownPair) -> str:
    """The first sentence of the passages that has the answer; the beginning of the first passage if none has."""
    answer = normalise_answer(pair.answer)
    for passage in pair.passages:
        for start, end in sentence_spans(passage):
            if answer in normalise_answer(passage[start:end]):
                return passage[start:end].strip()
    start, end = sentence_spans(pair.passages[0])[0]
    return pair.passages[0][start:end].strip()


def _with_description(name: str, entity: Entity) -> str:
    return f"{name}: {entity.description}" if entity.description else name


def _evenly_drawn(items: Sequence[T]) -> list[T]:
    """Draw at most `MOST_ROWS` of the items, from all parts of the list."""
    step = max(1, math.ceil(len(items) / MOST_ROWS))
    return list(items[::step])
