"""An index that a reader can count: six documents, four communities with a question each, three prepared answers."""

from contextlib import closing
from pathlib import Path

from kraq_dspy.asset.store.catalogue import CATALOGUE, Catalogue, NewEntry
from kraq_dspy.asset.store.index import Index
from kraq_dspy.build.catalogue.sources import sources_of
from kraq_dspy.records import Chunk, Community, Document, Question, Summary
from kraq_dspy.settings import Settings

TEXTS = {
    "rhine": "The Rhine flows into the North Sea.",
    "elbe": "The Elbe flows into the North Sea, too.",
    "danube": "The Danube flows into the Black Sea.",
    "dnieper": "The Dnieper flows into the Black Sea, too.",
    "ada": "Ada Lovelace wrote the first program.",
    "grace": "Grace Hopper wrote the first compiler.",
}
COMMUNITIES = {  # level and documents
    "rivers": (0, ("rhine", "elbe", "danube", "dnieper")),
    "north": (1, ("rhine", "elbe")),
    "black": (1, ("danube", "dnieper")),
    "women": (0, ("ada", "grace")),
}


def made(path: Path) -> Path:
    """Each community has a summary and a question, "What about NAME?"; those on "north" and "women" are answered, the
    second one not approved yet; a person's entry rests on "grace"."""
    with Index.create(path, Settings(), encoder_name="none", encoder_dimension=2) as index:
        for id, text in TEXTS.items():
            index.add([Document(id, id.title(), text), Chunk(f"c-{id}", id, 0, 0, len(text), text, 9, id.title())])
        for name, (level, documents) in COMMUNITIES.items():
            chunk_ids = tuple(f"c-{id}" for id in documents)
            children = ("north", "black") if name == "rivers" else ()
            parent = "rivers" if level else None
            index.add(
                [
                    Community(name, level, parent, children, (), (), chunk_ids),
                    Summary(name, name.title(), f"Waters and works: {name}."),
                    Question(f"q-{name}", f"What about {name}?", "kraq", name, level, chunk_ids, documents, "embedded"),
                ]
            )
        with closing(Catalogue(path / CATALOGUE)) as catalogue:
            entries = [
                NewEntry("What about north?", "Two rivers.", "approved", sources_of(index, ["rhine"]), "kraq"),
                NewEntry("What about women?", "Two pioneers.", "pending", sources_of(index, ["ada"]), "kraq"),
                NewEntry("Who wrote a compiler?", "Grace Hopper", "approved", sources_of(index, ["grace"])),
            ]
            catalogue.add_all(entries, by="test")
        index.update_manifest(complete=True)
    return path
