"""Asks a small model whether a passage answers a question, and how sure it is of that.

The reply is one token; what is kept is the probability of a yes beside a no. A small judge has a bias of its own, so it
is tried on questions of which the answer is known: people's, with the paragraph that answers them, and with another
paragraph of the same article.
"""

import json
import math
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PROMPT = """Passage:
{passage}

Question: {question}

Does the passage state the answer to the question? Reply with Yes or No alone."""


@dataclass(frozen=True)
class Pair:
    document_id: str
    passage: str
    question: str

    @property
    def key(self) -> str:
        return f"{self.document_id} {self.question}"


def judge(pairs: Sequence[Pair], server: str, file: Path) -> dict[str, float]:
    """The probability of a yes by `key`. Kept in `file` as they come; what is there is not asked again.

    Pairs of one passage follow each other, so that the server reads it once.
    """
    known = kept(file)
    todo = {pair.key: pair for pair in pairs if pair.key not in known}
    with file.open("a", encoding="utf-8") as lines:
        for key, pair in sorted(todo.items()):
            known[key] = yes_probability(ask(server, PROMPT.format(passage=pair.passage, question=pair.question)))
            lines.write(json.dumps({"key": key, "yes": known[key]}, ensure_ascii=False) + "\n")
            lines.flush()
    return {pair.key: known[pair.key] for pair in pairs}


def kept(file: Path) -> dict[str, float]:
    if not file.exists():
        return {}
    rows = [json.loads(line) for line in file.read_text("utf-8").split("\n")[:-1]]
    return {row["key"]: row["yes"] for row in rows}


def yes_probability(likely: Mapping[str, float]) -> float:
    """Of the likeliest first tokens with their log-probabilities: yes / (yes + no); 0.5 where neither is among them."""
    sums = {"yes": 0.0, "no": 0.0}
    for token, logprob in likely.items():
        word = token.strip().casefold()
        if word in sums:
            sums[word] += math.exp(logprob)
    total = sums["yes"] + sums["no"]
    return sums["yes"] / total if total else 0.5


def ask(server: str, prompt: str) -> dict[str, float]:
    body = {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 20,
    }
    request = urllib.request.Request(
        f"{server}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=3600) as answer:
        reply: dict[str, Any] = json.loads(answer.read())
    first = reply["choices"][0]["logprobs"]["content"][0]
    return {each["token"]: each["logprob"] for each in first["top_logprobs"]}


def told_apart(answered: Sequence[float], unanswered: Sequence[float]) -> float:
    """How often the judge is surer of a pair that is answered than of one that is not, ties counting half: .5 is
    chance, 1 a judge without fault."""
    first, second = np.array(answered)[:, None], np.array(unanswered)[None, :]
    return float(((first > second) + (first == second) / 2).mean())


def threshold(answered: Sequence[float], unanswered: Sequence[float]) -> float:
    """The probability from which on "yes" is right most often, each kind counting the same; the lowest such."""
    cuts = sorted({*answered, *unanswered})
    return max(cuts, key=lambda cut: (np.mean(np.array(answered) >= cut) + np.mean(np.array(unanswered) < cut), -cut))
