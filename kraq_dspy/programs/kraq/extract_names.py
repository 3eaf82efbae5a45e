"""Lets a small model name and link; the passage's own sentences describe (KRAQ, stage 1)."""

from collections.abc import Mapping
from typing import Any

import dspy

from kraq_dspy._internal.both_ways import blocking, call
from kraq_dspy._internal.failed_calls import attempts
from kraq_dspy._internal.step import Step
from kraq_dspy.asset.corpus.chunk import sentence_spans
from kraq_dspy.programs.kraq.element_list import ElementList, is_named, plain_words, read_in_parts
from kraq_dspy.programs.kraq.extract_graph import ExtractGraph
from kraq_dspy.programs.shared.state import SavableModule
from kraq_dspy.programs.shared.steps import check_steps, extra_outputs, prediction
from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship, NamedLink
from kraq_dspy.signatures import NameElements

ENDS = frozenset(".!?…。！？؟।\"'”’)]»」』")


class ExtractNames(SavableModule):
    """Entities, relationships and claims of one passage by one short call (KRAQ paper, section 2, for small models).

    Models of less than two billion parameters name little when they must describe it too, and copy one description to
    the next (docs/results/extraction.md). So the model lists names and links alone. An entity is described by the first
    sentence of the passage that names it, a link by the first one that names both ends. Every sentence is a claim about
    the name that it has first, and about the first name that this one is linked to, where the sentence has it too.
    Entities have no type. Predictions are those of `ExtractGraph`.

    Where every name of an answer was invented ("John Doe" in an essay about ethics), the model is asked again
    (`attempts`).
    """

    asks: Mapping[str, str] = {"name": "passage -> names, relationships"}
    outputs = ExtractGraph.outputs
    most_calls = 1  # but for invented names

    def __init__(self, grounded_names: bool = True) -> None:
        super().__init__()
        self.grounded_names = grounded_names
        self.name = Step(NameElements)

    async def aforward(self, passage: str) -> dspy.Prediction:
        check_steps(self)

        async def read(elements: ElementList) -> None:
            for options in attempts():
                elements.add(_described(await call(self.name, passage=passage, **options), passage))
                if elements.entities or not elements.ungrounded:
                    break

        return await read_in_parts(self, passage, self.grounded_names, read)

    forward = blocking(aforward)


def _described(answer: Any, passage: str) -> dspy.Prediction:
    """The names and links of an answer, with the sentences of the passage that say something of them."""
    sentences = [passage[start:end].strip() for start, end in sentence_spans(passage)]
    sentences = [text for text in sentences if text[-1:] in ENDS] or sentences  # headings say nothing
    words = [plain_words(sentence) for sentence in sentences]
    links = [link for link in answer.relationships if link.source != link.target]
    ends = (name for link in links for name in _ends(link))
    names = dict.fromkeys(name.strip() for name in (*answer.names, *ends))

    def first(*named: str) -> str:
        """The first sentence that has all of them."""
        pairs = zip(sentences, words, strict=True)
        return next((text for text, plain in pairs if all(is_named(name, plain) for name in named)), "")

    claims = []
    for sentence, plain in zip(sentences, words, strict=True):
        places = {place: name for name in names if (place := plain.find(plain_words(name))) >= 0}
        if places:
            subject = places[min(places)]
            linked = (
                link.target if link.source == subject else link.source for link in links if subject in _ends(link)
            )
            claims.append(ExtractedClaim(subject, sentence, next((n for n in linked if n in places.values()), "")))
    return prediction(
        extra_outputs(answer, "names"),
        entities=[ExtractedEntity(name, "", first(name)) for name in names],
        relationships=[
            ExtractedRelationship(
                link.source,
                link.target,
                link.predicate,
                first(link.source, link.target) or first(link.source) or first(link.target),
            )
            for link in links
        ],
        claims=claims,
    )


def _ends(link: NamedLink) -> tuple[str, str]:
    return link.source, link.target
