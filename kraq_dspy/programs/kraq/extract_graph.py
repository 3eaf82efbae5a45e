"""Reads a passage for its graph, at once or by names and links alone (KRAQ, stage 1)."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import dspy

from kraq_dspy._internal.both_ways import call
from kraq_dspy._internal.step import Step, attempts
from kraq_dspy.asset.corpus.sentences import sentence_spans
from kraq_dspy.embedded_model import analyst
from kraq_dspy.programs.kraq.element_list import ElementList, is_named, plain_words, read_in_parts
from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship, NamedLink
from kraq_dspy.settings import ExtractSettings
from kraq_dspy.signatures import ExtractElements, FindMissedElements, NameElements
from kraq_dspy.state import SavableModule


def guided(signature: type[dspy.Signature], types: Sequence[str] = (), persona: str = "") -> type[dspy.Signature]:
    """The signature with who reads before its instructions, and which types of entities count behind them.

    >>> guided(dspy.Signature("passage -> names", "List names."), ["gene", "protein"]).instructions
    'List names.\\n\\nOnly entities of these types, nothing else: gene, protein.'
    """
    if not types and not persona:
        return signature

    reader = f"You are reading as this person: {persona}" if persona else ""
    only = f"Only entities of these types, nothing else: {', '.join(types)}." if types else ""
    instructions = "\n\n".join(filter(None, (reader, signature.instructions, only)))
    with_reader: type[dspy.Signature] = signature.with_instructions(instructions)
    with_reader.__name__ = signature.__name__  # which DSPy drops from a copy
    return with_reader


class ExtractGraph(SavableModule):
    """Extracts entities, relationships and claims from a passage (KRAQ paper, section 2; gleaning as in GraphRAG).

    Args:
        gleanings: the most further rounds, 0 or more. In each round, the model sees the names and links so far. The
            first round without new ones is the last.
        grounded_names: drop a name that the passage does not contain, with all records about this name.
        types: the types of entities to extract; empty for any.
        persona: who reads the passages (`guided`).

    The prediction has `entities`, `relationships` and `claims`, tuples of records without repeats in the order found,
    and `ungrounded`, the number of dropped records. If a passage is too long for the model, or the reply does not
    end, kraq reads each half of the passage.

    >>> from kraq_dspy import Workspace
    >>> with Workspace.open("ada.kraq"):  # whose embedded model reads
    ...     [entity.name for entity in ExtractGraph()(passage="Ada Lovelace met Charles Babbage.").entities]
    ['Ada Lovelace', 'Charles Babbage']
    """

    outputs: ClassVar[dict[str, Any]] = {
        "entities": tuple[ExtractedEntity, ...],
        "relationships": tuple[ExtractedRelationship, ...],
        "claims": tuple[ExtractedClaim, ...],
        "ungrounded": int,
    }

    def __init__(
        self,
        gleanings: int = ExtractSettings.gleanings,
        grounded_names: bool = ExtractSettings.grounded_names,
        *,
        types: Sequence[str] = (),
        persona: str = "",
    ) -> None:
        super().__init__()
        self.gleanings = gleanings
        self.grounded_names = grounded_names
        self.extract = Step(guided(ExtractElements, types, persona))
        self.glean = Step(guided(FindMissedElements, types, persona))

    def most_calls(self, passage: str) -> int:
        """Calls about a passage, if it is not read in parts."""
        return 1 + self.gleanings

    async def aforward(self, passage: str) -> dspy.Prediction:
        async def read(elements: ElementList) -> None:
            elements.add(await call(self.extract, passage=passage))
            for _ in range(self.gleanings):
                if not elements.add(await call(self.glean, passage=passage, found=elements.outline())):
                    break

        return await read_in_parts(self, passage, self.grounded_names, read)


ENDS = frozenset(".!?…。！？؟।\"'”’)]»」』")


class ExtractNames(SavableModule):
    """Extracts entities, relationships and claims from a passage in one short call, for small models (KRAQ paper,
    section 2).

    Args:
        grounded_names: drop a name that the passage does not contain, with all records about this name.
        types: the types of entities to extract; empty for any.
        persona: who reads the passages (`guided`).
        by_parse: take names and links of English passages from the parser. The module then calls the model for
            passages in other languages only.

    If a model below two billion parameters must also write descriptions, the model finds few names. So the model only
    lists names and links. The description of an entity is the first sentence with the name. The description of a link
    is the first sentence with both names. Every sentence with a name becomes a claim about the first name in the
    sentence. Entities have no type. If the passage contains none of the names, the module calls the model again
    (`attempts`). The prediction has the keys of `ExtractGraph`.

    >>> from kraq_dspy import Workspace
    >>> with Workspace.open("ada.kraq"):
    ...     ExtractNames()(passage="Ada Lovelace met Charles Babbage.").entities[0].description
    'Ada Lovelace met Charles Babbage.'
    """

    outputs = ExtractGraph.outputs

    def __init__(
        self, grounded_names: bool = True, *, types: Sequence[str] = (), persona: str = "", by_parse: bool = False
    ) -> None:
        super().__init__()
        self.grounded_names = grounded_names
        self.parser = (
            analyst().made_by() if by_parse else ""
        )  # which results depend on, as on every text that a program has
        self.name = Step(guided(NameElements, types, persona))

    def most_calls(self, passage: str) -> int:
        """Calls about a passage, but for invented names."""
        return 0 if self.parser and analyst().is_english(passage) else 1

    async def aforward(self, passage: str) -> dspy.Prediction:
        async def read(elements: ElementList) -> None:
            if self.parser and analyst().analysis(passage) is not None:
                elements.add(_read(passage))
                return
            for options in attempts():
                elements.add(_described(await call(self.name, passage=passage, **options), passage))
                if elements.entities or not elements.ungrounded:
                    break

        return await read_in_parts(self, passage, self.grounded_names, read)


def _read(passage: str) -> dspy.Prediction:
    """What the parser reads of a passage."""
    reading = analyst().reading(passage)
    return dspy.Prediction(
        entities=[ExtractedEntity(name, kind, told) for name, (kind, told) in reading.entities.items()],
        relationships=[ExtractedRelationship(*link) for link in reading.links],
        claims=[ExtractedClaim(subject, sentence, other) for subject, other, sentence in reading.claims],
    )


def _described(answer: Any, passage: str) -> dspy.Prediction:
    """The names and links of an answer, with the sentences of the passage that say something of
    them."""
    sentences = _told_sentences(passage)
    links = [link for link in answer.relationships if link.source != link.target]
    names = dict.fromkeys(name.strip() for name in answer.names)
    for link in links:
        names |= dict.fromkeys(name.strip() for name in _ends(link))

    relationships = []
    for link in links:
        sentence = (
            _first_naming(sentences, link.source, link.target)
            or _first_naming(sentences, link.source)
            or _first_naming(sentences, link.target)
        )
        relationships.append(ExtractedRelationship(link.source, link.target, link.predicate, sentence))
    return dspy.Prediction(
        entities=[ExtractedEntity(name, "", _first_naming(sentences, name)) for name in names],
        relationships=relationships,
        claims=_claims(sentences, names, links),
    )


def _told_sentences(passage: str) -> list[tuple[str, str]]:
    """The sentences of a passage, each with its plain words; headings say nothing."""
    every = [passage[start:end].strip() for start, end in sentence_spans(passage)]
    whole = [text for text in every if text[-1:] in ENDS]
    return [(text, plain_words(text)) for text in whole or every]


def _first_naming(sentences: Sequence[tuple[str, str]], *names: str) -> str:
    """The first sentence that has all of the names; "" for none."""
    for sentence, plain in sentences:
        if all(is_named(name, plain) for name in names):
            return sentence
    return ""


def _claims(
    sentences: Sequence[tuple[str, str]], names: Iterable[str], links: Sequence[NamedLink]
) -> list[ExtractedClaim]:
    """Each sentence that has a name is a claim about the first one, and what that is linked to."""
    claims = []
    for sentence, plain in sentences:
        name_at = {plain.find(plain_words(name)): name for name in names}
        name_at.pop(-1, None)
        if not name_at:
            continue

        subject = name_at[min(name_at)]
        linked = [name for name in _linked_to(subject, links) if name in name_at.values()]
        claims.append(ExtractedClaim(subject, sentence, linked[0] if linked else ""))
    return claims


def _linked_to(name: str, links: Sequence[NamedLink]) -> list[str]:
    others = []
    for link in links:
        if name in _ends(link):
            others.append(link.target if link.source == name else link.source)
    return others


def _ends(link: NamedLink) -> tuple[str, str]:
    return link.source, link.target
