"""Does one step on an index for each line of standard input, in a child process that the test may kill.

A line is JSON: {"do": "build", "add", "remove", ..., "out": DIR, "documents": FILE, "settings": FILE}. The child's
id is printed when it starts, its wait status when it has ended. Everything is imported once, so it is at work at once.
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kraq_dspy import Index, add_documents, build_index, remove_documents, resume_index
from kraq_dspy.indexing.prepare.instructed import precompute_pairs
from kraq_dspy.indexing.prepare.k2rag import build_summarised
from kraq_dspy.indexing.prepare.qa_pairs import make_qa_pairs
from kraq_dspy.indexing.prepare.raptor import TreeSettings, build_tree
from kraq_dspy.ports import Vectors
from kraq_dspy.records import Document
from kraq_dspy.settings import settings_from_dict
from kraq_dspy.workspace import Workspace


class HashEncoder:
    """E(d|q) by chance, the same for the same texts; as slow as a small model."""

    name, dimension = "hash", 8

    def encode(self, question: str, passages: Sequence[str]) -> Vectors:
        time.sleep(0.01)
        seeds = [hashlib.blake2b(f"{question}|{passage}".encode(), digest_size=8).digest() for passage in passages]
        rows = np.array([list(seed) for seed in seeds], dtype=np.float32).reshape(-1, self.dimension)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)  # type: ignore[no-any-return]


def do(job: dict[str, str]) -> None:
    if job["do"] == "precompute":
        with Index.open(job["out"], write=True) as index:
            precompute_pairs(index, HashEncoder(), top_n=10)
        return
    settings = settings_from_dict(json.loads(Path(job["settings"]).read_text("utf-8")))
    if job["do"] in ("pairs", "tree", "k2rag"):
        with Workspace.open(job["out"], settings=settings, write=True) as space:
            if job["do"] == "pairs":
                make_qa_pairs(space.index, space.models)
            elif job["do"] == "tree":
                build_tree(space.index, space.embedder, space.models, TreeSettings(min_nodes=5))
            else:
                build_summarised(space.index, space.embedder, space.models)
        return
    documents = [Document(**fields) for fields in json.loads(Path(job["documents"]).read_text("utf-8"))]
    if job["do"] == "add":
        add_documents(job["out"], documents)
    elif job["do"] == "remove":
        with Index.open(job["out"], unfinished=True) as index:
            there = set(index.ids(Document)) & {document.id for document in documents}
        if there:
            remove_documents(job["out"], there)
        else:  # the last one was taken out before the kill
            resume_index(job["out"])
    else:
        build_index(documents, job["out"], settings=settings, random_questions=True, replace=True)


def main() -> None:
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                do(json.loads(line))
                code = 0
            finally:
                sys.stderr.flush()
                os._exit(code)
        print(child, flush=True)
        print(os.waitpid(child, 0)[1], flush=True)


if __name__ == "__main__":
    main()
