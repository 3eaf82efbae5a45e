"""Asks what a corpus is about, so that extraction can be told: GraphRAG's prompt tuning, which needs no labels."""

import json
import random
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy._internal.step import FittingPredict
from kraq_dspy.asset.corpus.chunk import chunk_document
from kraq_dspy.errors import CorpusError
from kraq_dspy.indexing.index.opening import documents_of
from kraq_dspy.models.lms.roles import ModelsLike, as_models, fill_in
from kraq_dspy.optimize.sizes import DOMAIN_PASSAGES
from kraq_dspy.records import Document
from kraq_dspy.settings import Settings
from kraq_dspy.signatures import DescribeDomain

MOST_TYPES = 12


@dataclass(frozen=True, slots=True)
class Domain:
    """What a corpus is about, by a model that read some passages.

    Attributes:
        domain: the field, such as "yeast genetics".
        persona: who knows this field.
        types: the types of entities that matter in this field.

    >>> Domain("yeast genetics", "A geneticist who works with yeast.", ("gene", "protein")).types
    ('gene', 'protein')
    """

    domain: str
    persona: str
    types: tuple[str, ...]

    def to_toml(self) -> str:
        """A section for kraq.toml.

        >>> print(Domain("yeast genetics", "A geneticist who works with yeast.", ("gene", "protein")).to_toml())
        # yeast genetics
        [extract]
        persona = "A geneticist who works with yeast."
        types = "gene, protein"
        """
        persona, types = (json.dumps(text, ensure_ascii=False) for text in (self.persona, ", ".join(self.types)))
        return f"# {self.domain}\n[extract]\npersona = {persona}\ntypes = {types}"


def describe_domain(
    corpus: str | Path | Iterable[Document | str],
    settings: Settings | None = None,
    *,
    lm: ModelsLike | None = None,
    passages: int = DOMAIN_PASSAGES,
    seed: int = 0,
) -> Domain:
    """Ask the model of the role "extractor", in one call, what a corpus is about.

    Args:
        corpus: a file or folder, documents or texts, as in `build_index`.
        settings: settings in place of kraq.toml.
        lm: a model, or models by role.
        passages: how many passages to draw at random. If the prompt is too long, the model sees half of the passages.
        seed: the random seed.

    Returns:
        The domain, a persona and types of entities. `to_toml()` gives lines for kraq.toml.

    Raises:
        CorpusError: if there is no text.
    """
    settings = settings or Settings()
    documents = [item for item in documents_of(corpus, settings) if isinstance(item, Document)]
    chunks = [chunk for document in documents for chunk in chunk_document(document, settings.chunks)]
    if not chunks:
        raise CorpusError("There is no text in the corpus: every document is empty or was rejected.")

    drawn = random.Random(seed).sample(chunks, min(passages, len(chunks)))
    step = FittingPredict(DescribeDomain, shorten="passages")
    fill_in(step, as_models(lm, settings), "extractor")
    reply = step(passages=[chunk.passage for chunk in drawn])
    types = dict.fromkeys(" ".join(name.replace(",", " ").split()).lower() for name in reply.entity_types)
    domain, persona = (" ".join(str(text).split()) for text in (reply.domain, reply.persona))
    return Domain(domain, persona, tuple(filter(None, types))[:MOST_TYPES])
