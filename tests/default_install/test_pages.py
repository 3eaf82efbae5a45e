"""Every command of README and the guides works without an extra, or its page and its error name what it needs."""

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.default_install.conftest import ROOT, kraq, words_of

PAGES = [ROOT / "README.md", ROOT / "SKILL.md", *sorted((ROOT / "docs" / "guide").rglob("*.md"))]
COMMANDS = (
    "ask|bench|faq|check|demo|eval|export|finetune|import|index|lm|mcp|optimize|"
    "precompute|questions|remove|select|serve|status|testset|update"
)


@dataclass(frozen=True)
class Need:
    """Commands that match `command` want what does not come with kraq: what they write matches `error`, and their page
    `named`. They end with an error."""

    command: str
    error: str
    named: str


def of_extra(command: str, extra: str) -> Need:
    return Need(command, rf"pip install 'kraq-dspy\[{extra}\]'", rf"extra `{extra}`|kraq-dspy\[{extra}\]")


NEEDS = [
    of_extra(r"^kraq serve\b", "serve"),
    of_extra(r"^kraq mcp\b", "mcp"),
    of_extra(r"^kraq finetune\b", "train"),
    of_extra(r"^kraq export docs.kraq --out tables/", "parquet"),
    of_extra(r"^kraq import graphrag", "parquet"),
    of_extra(r"--encoder multilingual", "multilingual"),
    of_extra(r"^kraq update --add docs.kraq new.pdf", "formats"),
    Need(r"--config kraq\.toml", "no settings file 'kraq.toml'", "--config kraq.toml .*has the roles below"),
    Need(r"^kraq remove docs.kraq new.pdf", "no document 'new.pdf'", "extra `formats`"),
    Need(r"^kraq questions mine.kraq", "no index 'mine.kraq'", "extra `parquet`"),
    Need(r"--adapter adapters/", "`kraq finetune` wrote", "extra `train`|extra of models|kraq-dspy\\[train\\]"),
    Need(r"--lm gguf/", r"kraq lm get|kraq-dspy\[local\]", r"extra `local`|kraq-dspy\[local\]"),
    Need(r"^kraq eval .*--lm openai/", r"OPENAI_API_KEY(?s:.*)Report: ", "openai/"),
    Need(r"^kraq (?!eval |.*--dry-run).*--lm openai/", "OPENAI_API_KEY", "OPENAI_API_KEY|openai/"),
    Need(r"--human few.csv", "expected 20 of each", "needs? 20 rows"),
    Need(r"--system server.toml", "no file of a foreign system", "`server.toml` says how"),
    Need(r"--lm ollama_chat/", "localhost:11434", "localhost:11434"),
]
NOT_RUN = {
    "kraq lm get": "downloads a model",
    "kraq demo": "takes a minute; `make demo` runs it",
    "kraq finetune pairs --dataset musique": "downloads a data set",
}
MADE_BEFORE = {
    "--format dataset --out set.jsonl": "kraq faq approve docs.kraq 1 2 3",  # as somebody does in the page
    "--optimized extraction.json": "kraq optimize extraction --index wiki.kraq --out extraction.json --force",
    "--optimized questions.json": "kraq optimize question-generation --index wiki.kraq -o questions.json --force",
    "--optimized judging.json": "kraq optimize judging --index wiki.kraq --out judging.json --force",
    "--optimized answering.json": "kraq optimize answering --index wiki.kraq --out answering.json --force",
    "--optimized conversation.json": "kraq optimize conversation --index wiki.kraq --out conversation.json --force",
    "--optimized facts.json": "kraq optimize testset-fact --index wiki.kraq --out facts.json --force",
    "--optimized critics.json": "kraq optimize critics --index wiki.kraq --out critics.json --force",
    "--optimized combined.json": "kraq optimize combined --index docs.kraq --dev dev.jsonl --out combined.json",
    "their.kraq": "kraq index docs/ --out their.kraq",
    "kraq eval docs.kraq test.jsonl": "kraq testset make docs.kraq --out test.jsonl",
    "kraq select docs/ test.jsonl": "kraq testset make docs.kraq --out test.jsonl",
    "runs/before": "kraq eval docs.kraq questions.csv --retrieval-only -r dense --out runs/before",
    "runs/after": "kraq eval docs.kraq questions.csv --retrieval-only -r bm25 --out runs/after",
}


def commands_of(page: Path) -> list[str]:
    text = re.sub(r"\\\n\s*", "", page.read_text("utf-8"))
    lines = re.findall(rf"(?m)^(?: {{4}}|\s*- run: )(kraq (?:{COMMANDS})\b.*)$", text)
    return [re.sub(r"\s{2,}#.*$|\s*>>.*$", "", line) for line in lines]


@pytest.mark.parametrize("page", [page for page in PAGES if commands_of(page)], ids=lambda page: page.stem)
def test_the_commands_of_a_page_work_one_after_the_other(page: Path, folder: Path) -> None:
    text = page.read_text("utf-8")
    wrong = []
    for command in commands_of(page):
        if any(command.startswith(start) for start in NOT_RUN):
            continue
        for name, making in MADE_BEFORE.items():
            if name in command and not (folder / name.split()[-1]).exists():
                made = kraq(words_of(making), folder)
                assert made.code == 0, made.text
        done = kraq(words_of(command), folder)
        need = next((need for need in NEEDS if re.search(need.command, command)), None)
        if need is None:
            right = done.code == 0
        else:
            right = done.code != 0 and bool(re.search(need.error, done.text) and re.search(need.named, text))
        if not right:
            wrong.append(f"{command}\n{done.text[-600:]}")
    assert wrong == [], "\n\n".join(wrong)


def test_pages_with_commands_are_found() -> None:
    assert sum(len(commands_of(page)) for page in PAGES) > 60
