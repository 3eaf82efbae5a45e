"""A small index of eight mills, whose passages say the same of each: what a test asks of one holds for all."""

from pathlib import Path

from kraq_dspy.records import Document
from tests.kept import kept_index

MILLS = ("Alder", "Birch", "Cedar", "Damson", "Elder", "Fir", "Hazel", "Juniper")
_TEXT = "The {0} Mill stands on the Orr. It was built by Nora {0} in 18{1} and sold to Emil {0} in 19{1}."


def index_of_mills(folder: Path) -> Path:
    """Make the index in the folder. A document's id is the mill's name in small letters."""
    documents = [
        Document(name.lower(), f"{name} Mill", _TEXT.format(name, year)) for year, name in enumerate(MILLS, start=60)
    ]
    kept_index(documents, folder / "mills.kraq")
    return folder / "mills.kraq"
