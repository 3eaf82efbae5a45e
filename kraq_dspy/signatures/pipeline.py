"""Holds the steps that make an index: elements, entities, summaries and questions (KRAQ paper, section 2)."""

from typing import Annotated

import dspy
from pydantic import Field

from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship, Finding, NamedLink


# Extracts what a passage says about the world (KRAQ, stage 1; KRAQ paper, section 2).
class ExtractElements(dspy.Signature):
    """List the entities that the passage names, how they are related, and the facts it states about them.

    Name an entity in full, and use that name for pronouns, relationships and claims. Describe from the passage alone,
    in its language, in one sentence.
    """

    passage: str = dspy.InputField()
    entities: list[ExtractedEntity] = dspy.OutputField()
    relationships: list[ExtractedRelationship] = dspy.OutputField()
    claims: list[ExtractedClaim] = dspy.OutputField()


# Finds what the first reading missed: self-reflection, or "gleaning" (KRAQ, stage 1; KRAQ paper, section 2).
class FindMissedElements(dspy.Signature):
    """A first reading found the entities below ("entity > what it is linked to"). List only what it missed: entities
    without a line, links between them, facts that matter to the passage's point. Empty lists are right if nothing did.
    """

    passage: str = dspy.InputField()
    found: str = dspy.InputField()
    missing: Annotated[str, Field(max_length=300)] = dspy.OutputField(
        desc="what was overlooked and why it matters, in one sentence"
    )
    entities: list[ExtractedEntity] = dspy.OutputField()
    relationships: list[ExtractedRelationship] = dspy.OutputField()
    claims: list[ExtractedClaim] = dspy.OutputField()


# Says what a corpus is about from a sample of it, before it is extracted (GraphRAG's prompt tuning).
class DescribeDomain(dspy.Signature):
    """Say from these passages, drawn from a large corpus, what the whole corpus is about.

    The domain is a field of knowledge, in a few words. The persona is one sentence about somebody who knows that field
    well. Entity types are the kinds of things that the passages name and relate: nouns of one or two words such as
    person or organisation, the commonest first, at most eight.
    """

    passages: list[str] = dspy.InputField()
    domain: str = dspy.OutputField()
    persona: str = dspy.OutputField()
    entity_types: list[str] = dspy.OutputField()


# Names and links without describing: small models copy descriptions from one name to the next (KRAQ, stage 1).
class NameElements(dspy.Signature):
    """List the names of people, places, organisations, works and events in the passage, and how they are related.

    Write each name in full, as the passage writes it. Use only what the passage says.
    """

    passage: str = dspy.InputField()
    names: list[str] = dspy.OutputField()
    relationships: list[NamedLink] = dspy.OutputField()


# Asks whether two similar names mean one thing (KRAQ, stage 2).
class ConfirmSameEntity(dspy.Signature):
    """Decide whether two names, each with its description, refer to one and the same thing.

    Abbreviations, translations and spellings of a name are the same; relatives, namesakes, editions and parts are not.
    """

    first: str = dspy.InputField()
    second: str = dspy.InputField()
    same: bool = dspy.OutputField()


# Makes one description of many of the same entity (KRAQ, stage 2).
class MergeDescriptions(dspy.Signature):
    """Write one description of the entity or relationship that keeps every fact of the given ones and says each once.

    Third person, at most five sentences; where descriptions contradict each other, give both versions.
    """

    name: str = dspy.InputField()
    descriptions: list[str] = dspy.InputField()
    description: str = dspy.OutputField()


# Says what a community of entities is about (KRAQ, stage 4; KRAQ paper, section 2).
class SummarizeCommunity(dspy.Signature):
    """Summarise a group of related entities from its elements alone, which come most important first.

    Begin with what the group centres on, then the key members and how they are related: at most five sentences.
    Findings are the facts most worth knowing, at most five, none said twice.
    """

    elements: list[str] = dspy.InputField()
    title: Annotated[str, Field(max_length=150)] = dspy.OutputField(desc="the key names, in a few words")
    summary: str = dspy.OutputField()
    findings: list[Finding] = dspy.OutputField()


def without_findings() -> type[dspy.Signature]:
    """SummarizeCommunity for a small model, whose replies break off in the findings."""
    task, _, _ = SummarizeCommunity.instructions.partition("\nFindings")
    short: type[dspy.Signature] = SummarizeCommunity.delete("findings").with_instructions(task)
    short.__name__ = SummarizeCommunity.__name__  # which DSPy drops from a copy
    return short


# Asks the question that stands for a community: what the fine-tuned generator answers (KRAQ, stage 5).
class GenerateQuestion(dspy.Signature):
    """Write a short quiz question whose answer is in the summary. Name the person, place or thing it is about."""

    # "Ask what a curious person would ask about the summary's main topic" made small models ask of "the main topic".
    # What is said at more length than this, a model of half a billion parameters repeats
    # (benchmarks/results/questions.md).

    summary: str = dspy.InputField()
    question: str = dspy.OutputField()


# Words the question that a part of a statement answers (answer-aware question generation: Du et al., 2017).
class WordQuestion(dspy.Signature):
    """Ask for the answer, in one short question that says nothing but what the statement says."""

    statement: str = dspy.InputField()
    answer: str = dspy.InputField()
    question: str = dspy.OutputField()


# Asks about passages drawn at random: the baseline Random (KRAQ paper, section 2; thesis, chapter 3).
class AskAboutPassages(dspy.Signature):
    """Ask one short question about a theme that the passages share."""

    passages: list[str] = dspy.InputField()
    question: str = dspy.OutputField()


# Decides whether a passage that a search found is evidence of a representative question.
class ConfirmEvidence(dspy.Signature):
    """Decide whether the passage alone answers the question, at least in part.

    It does not if it only speaks of the same thing, or tells the same of another one.
    """

    question: str = dspy.InputField()
    passage: str = dspy.InputField()
    answers: bool = dspy.OutputField()
