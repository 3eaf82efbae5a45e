"""Asks in two steps: the first passage says which thing is meant, the second answers."""

import re
from collections.abc import Mapping
from typing import Any

from kraq_dspy import signatures
from kraq_dspy.embedded.names import with_another_name
from kraq_dspy.exam.corpus import Corpus, without_brackets
from kraq_dspy.exam.faults import ARTICLES
from kraq_dspy.exam.kinds.kind import Kind, texts_of
from kraq_dspy.exam.material import Material
from kraq_dspy.exam.reply import answers_in, question_of
from kraq_dspy.language.text import content_words, sentences
from kraq_dspy.programs.kraq.element_list import plain_words

MOST_LINKS = 6
"""Passages from which a name is followed to its own passage; one that all passages have links nothing."""
SAID = 0.6
"""Share of a description's telling words that its passage has."""


class Bridge(Kind):
    """A question that describes a thing by one passage and asks what another passage tells of it."""

    name = "bridge"
    what = "Two passages answer; what links them is not named."
    share = 0.2
    signature = signatures.AskBridge
    shortened = ("first_passage", "second_passage")
    is_pooled = False

    def materials(self, corpus: Corpus) -> list[Material]:
        """A passage that names a thing, and the passage about that thing, of another document."""
        materials = []
        for entity in corpus.entities:
            target = next((corpus.passage_about[name] for name in entity.names if name in corpus.passage_about), None)
            if target is None:
                continue

            sources = corpus.chunks_of(entity.chunk_ids)
            leading = [chunk for chunk in sources if chunk.document_id != target.document_id]
            name = without_brackets(target.title) or entity.name
            for chunk in leading[:MOST_LINKS]:
                inputs = {"first_passage": chunk.passage, "second_passage": target.passage, "link": name}
                materials.append(Material("", "", inputs, (chunk, target), (name,)))
        return materials

    def hidden(self, material: Material) -> tuple[str, ...]:
        return material.names

    def read(self, reply: Any, inputs: Mapping[str, Any]) -> tuple[str, list[str], str]:
        """Put the description in the place of the name that links the passages, and look it up in the first one."""
        link, answers = inputs["link"], answers_in(reply)
        described = phrase_of((reply.description or "").strip(), link)
        question = with_description(question_of(reply), link, described)

        fault = self.fault(question, answers, texts_of(inputs), [link])
        if not fault and any(plain_words(answer) == plain_words(link) for answer in answers):
            fault = "asks for what links the passages"
        if not fault and described.lower() in question.lower() and not is_said(described, inputs["first_passage"]):
            fault = "is described as no passage says"
        return question, answers, fault


def with_description(question: str, name: str, description: str) -> str:
    """The question with the description in the place of a name; as it is where the description is none, or has it.

    A small model that is asked to leave a name out nearly always writes it. So it may, and the description is put in.

    >>> with_description("When was Ada Lovelace born?", "Ada Lovelace", "the daughter of Lord Byron")
    'When was the daughter of Lord Byron born?'
    """
    if not description or plain_words(name) in plain_words(description):
        return question

    without_article = re.sub(rf"\b[Tt]he (?={re.escape(name)})", "", question)
    changed = with_another_name(without_article, name, description)
    return changed[:1].upper() + changed[1:]


def phrase_of(description: str, name: str) -> str:
    """The description without what it says around it: "Ada was the daughter of Byron." is a sentence about the name.

    >>> phrase_of("Ada was a daughter of Byron. She wrote.", "Ada"), phrase_of("The daughter of Byron.", "Ada")
    ('the daughter of Byron', 'the daughter of Byron')
    """
    sentence = next(iter(sentences(description)), "").rstrip(".")
    about_name = re.fullmatch(
        rf"(?:the )?{re.escape(name)},? (?:is|was|are|were) (?:an?|the) (?P<said>.+)", sentence, re.I
    )
    return f"the {about_name['said']}" if about_name else _uncapitalized(sentence)


def is_said(description: str, passage: str) -> bool:
    """Whether the passage has most telling words of a description.

    >>> is_said("the daughter of Lord Byron", "Lord Byron had a daughter."), is_said("a king", "She wrote.")
    (True, False)
    """
    telling = set(content_words(description))
    return len(telling & set(content_words(passage))) >= SAID * len(telling)


def _uncapitalized(description: str) -> str:
    """The description as it stands within a sentence; its first word alone may be "The"."""
    article, space, rest = description.partition(" ")
    return f"{article.lower()}{space}{rest}" if article.lower() in ARTICLES else description
