"""Holds a small corpus about orchids, for questions that it answers and for those that it does not."""

from collections.abc import Mapping
from pathlib import Path

from kraq_dspy import Document
from tests.kept import kept_index

ORCHIDS = {
    "vanilla": "Vanilla is a genus of orchids. Vanilla planifolia is a climbing orchid of Mexico. Its pods are cured "
    "for months and give the spice. The Totonac people were the first to grow it. Edmond Albius found how to pollinate "
    "Vanilla by hand in 1841.",
    "cattleya": "Cattleya is a genus of orchids from Costa Rica to Argentina. John Lindley named Cattleya in 1824 "
    "after William Cattley, who had grown the first to flower in England. Cattleya labiata is its type species.",
    "phalaenopsis": "Phalaenopsis, the moth orchids, are a genus of about seventy species from India to Australia. "
    "They grow on trees and need warmth and shade. Carl Ludwig Blume named Phalaenopsis in 1825. Phalaenopsis amabilis "
    "is the national flower of Indonesia.",
    "cypripedium": "Cypripedium are the lady's slippers, hardy orchids of the northern hemisphere. Cypripedium "
    "calceolus was nearly lost in Britain; one plant in Yorkshire survived and was guarded for decades.",
    "care": "Orchids in pots need bark rather than soil. Water them once a week and let the bark dry between. Direct "
    "sun burns their leaves. Repot every two years, after the flowers fade.",
}
ANSWERED = (
    "Who named Cattleya?",
    "How often should I water my orchids?",
    "What is the national flower of Indonesia?",
    "Who found out how vanilla is pollinated?",
)
FOREIGN = ("What is the capital of Peru?", "How tall is the Eiffel tower?", "Who won the world cup in 1998?")


def index_of_orchids(out: Path, labels: Mapping[str, tuple[str, ...]] | None = None) -> Path:
    """The corpus indexed with the packaged encoder; `labels` say who may read a document, by its id."""
    documents = [
        Document(name, name.title(), text, labels=(labels or {}).get(name, ())) for name, text in ORCHIDS.items()
    ]
    kept_index(documents, out)
    return out
