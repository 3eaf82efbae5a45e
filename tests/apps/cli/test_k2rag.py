"""K2RAG as a shell user meets it, over the embedded model and the packaged encoder."""

import json
from pathlib import Path
from typing import Any

from tests.conftest import WarmShell

ENGINES = " ".join(f"Engine number {n} was shown in London in 18{n:02}." for n in range(10, 25))
PASSAGES = {
    "ada": "# Ada Lovelace\n\nAda Lovelace wrote notes on the Analytical Engine. Charles Babbage designed that engine.",
    "babbage": f"# Charles Babbage\n\nCharles Babbage invented the Difference Engine. {ENGINES}",
}


def as_json(kraq: WarmShell, *words: str | Path) -> Any:
    done = kraq(*words, "--json")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_it_is_refused_before_and_answers_after_the_corpus_was_summarised(kraq: WarmShell, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for name, text in PASSAGES.items():
        (tmp_path / "docs" / f"{name}.md").write_text(text)
    index = tmp_path / "poets.kraq"
    as_json(kraq, "index", tmp_path / "docs", "--out", index)
    before = kraq("ask", index, "Who designed the engine?", "-p", "k2rag")
    assert before.returncode == 1
    assert f"Run: kraq precompute {index} k2rag" in " ".join(before.stderr.split())
    report = as_json(kraq, "precompute", index, "k2rag")["k2rag"]
    assert report["documents"] == 2
    assert 0 < report["tokens_after"] < report["tokens_before"]
    shown = kraq("ask", index, "Who designed the Analytical Engine?", "-p", "k2rag")
    assert shown.returncode == 0, shown.stderr
    assert "Babbage" in shown.stdout
    assert "the graph:" in shown.stdout
    answer = as_json(kraq, "ask", index, "Who designed the Analytical Engine?", "-p", "k2rag", "--k", "2")
    assert answer["sub_answers"][0]["question"] == answer["sub_questions"][0]
    assert "Traceback" not in before.stderr + shown.stderr
