"""Makes the index of the present schema that stays here: python -m tests.asset.store.schemas.make

To be run once for each schema version, before it changes: an index of every version from 6 on must stay readable.
"""

import shutil
import tempfile
from pathlib import Path

from kraq_dspy.asset.store.manifest import SCHEMA_VERSION
from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.records import Document
from tests.conftest import KeywordEmbedder

HERE = Path(__file__).parent
EMBEDDER = KeywordEmbedder("ada", "byron", "london", "juan")
DOCUMENTS = [
    Document("ada", "Ada Lovelace", "Ada Lovelace worked with Charles Babbage. Charles Babbage lived in London."),
    Document("byron", "Lord Byron", "Lord Byron was the father of Ada Lovelace. Lord Byron wrote Don Juan."),
]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        build_index(DOCUMENTS, Path(folder) / "poets.kraq", embedder=EMBEDDER)
        shutil.make_archive(str(HERE / f"schema-{SCHEMA_VERSION}"), "zip", folder)


if __name__ == "__main__":
    main()
