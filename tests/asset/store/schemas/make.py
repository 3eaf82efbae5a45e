"""Makes the indexes that stay here, one of each readable schema: python -m tests.asset.store.schemas.make

Once a version is released, an index of its schema is kept as that version wrote it. Until then, one with settings
that are no longer known is removed and made anew. The tests hold to this: an index of schema 6 and 7 opens as it lies
here, and an index of another schema is named with the way out.
"""

import dataclasses
import shutil
import tempfile
from pathlib import Path

from kraq_dspy import build_index
from kraq_dspy.asset.store.manifest import LABELLED, SCHEMA_VERSION
from kraq_dspy.records import Document
from tests.conftest import KeywordEmbedder

HERE = Path(__file__).parent
EMBEDDER = KeywordEmbedder("ada", "byron", "london", "juan")
DOCUMENTS = [
    Document("ada", "Ada Lovelace", "Ada Lovelace worked with Charles Babbage. Charles Babbage lived in London."),
    Document("byron", "Lord Byron", "Lord Byron was the father of Ada Lovelace. Lord Byron wrote Don Juan."),
]
LABELS = {"ada": ("public",), "byron": ("family",)}
LABELLED_DOCUMENTS = [dataclasses.replace(document, labels=LABELS[document.id]) for document in DOCUMENTS]


def main() -> None:
    for version, documents in ((SCHEMA_VERSION, DOCUMENTS), (LABELLED, LABELLED_DOCUMENTS)):
        kept = HERE / f"schema-{version}.zip"
        if kept.exists():
            continue
        with tempfile.TemporaryDirectory() as folder:
            build_index(documents, Path(folder) / "poets.kraq", embedder=EMBEDDER)
            shutil.make_archive(str(kept.with_suffix("")), "zip", folder)


if __name__ == "__main__":
    main()
