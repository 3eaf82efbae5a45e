"""Asks an instructed model about central passages, and goes back: does it answer alike, is the passage found?

    python benchmarks/questions_of_passages.py INDEX --model hosted_vllm/NAME --api-base URL [--limit 30]

Every n-th community with a summary is asked about by its most central passage. Four demonstrations show what a question
is that stands alone. Of up to three, the first is taken whose answer the model gives again from the passage (a token F1
of .6). Prints a line a question, and two shares: answered alike, and the passage among the five nearest.
"""

import argparse
import json
from pathlib import Path

import dspy
import numpy as np

from kraq_dspy.asset.corpus.tokens import truncate_tokens
from kraq_dspy.asset.store.index import Index
from kraq_dspy.eval.metrics.answers import token_f1
from kraq_dspy.models.embedders import load_embedder
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.records import Chunk, Community, Summary
from kraq_dspy.settings import EncoderSettings, RoleSettings

ALIKE = 0.6


class AskOfPassage(dspy.Signature):
    """Write a question that somebody who has not seen the passage would type into a search box, and that the passage
    answers.

    Name what it is about in full, as the passage or its title does; "the study", "the team" or "the license" says
    nothing to somebody who has not seen it. Ask for one thing that the passage tells, and give the answer in the
    passage's words.
    """

    passage: str = dspy.InputField()
    question: str = dspy.OutputField()
    answer: str = dspy.OutputField()


class AnswerFromPassage(dspy.Signature):
    """Answer the question in a few words, from the passage alone. If the passage does not tell, say: not told."""

    passage: str = dspy.InputField()
    question: str = dspy.InputField()
    answer: str = dspy.OutputField()


SHOWN = (
    (
        "Harbour bridge reopens after nine months\nThe Kessel harbour bridge reopened to traffic on Monday, nine "
        "months after inspectors found cracks in two of its piers. The repairs cost "
        "the city 14 million euros, said mayor Ilse Brandt.",
        "How much did the repairs of the Kessel harbour bridge cost?",
        "14 million euros",
    ),
    (
        "RESULTS\nOf 120 patients with frozen shoulder, 64 had steroid injections and 56 physiotherapy alone. After "
        "12 weeks pain had fallen by 41% with injections and by 28% with physiotherapy (p = 0.02).",
        "Do steroid injections relieve the pain of a frozen shoulder better than physiotherapy alone?",
        "Yes, pain fell by 41% against 28% after 12 weeks",
    ),
    (
        "Harbour Licence 2.0\n5. Termination. The rights granted under this Licence end when You fail to comply with "
        "any of its terms. They are reinstated if You cure the failure within 30 days of becoming aware of it.",
        "Within how many days must a violation of the Harbour Licence 2.0 be cured for the rights to be reinstated?",
        "30 days of becoming aware of it",
    ),
    (
        "CASE REPORTS\nA 54-year-old woman with lupus developed tremor two days after she began to take "
        "metoclopramide. The drug was stopped and the tremor was gone within a week.",
        "Can metoclopramide cause tremor in people with lupus?",
        "A 54-year-old woman with lupus developed tremor two days after she began to take it",
    ),
)


def central_passages(index: Index, limit: int) -> list[Chunk]:
    """The passage nearest to the mean of its community's, of every n-th community with a summary."""
    summaries = list(index.all(Summary))
    by_id = {community.id: community for community in index.all(Community)}
    central = []
    for summary in summaries[:: max(1, len(summaries) // limit)][:limit]:
        chunks = index.get(Chunk, list(by_id[summary.community_id].chunk_ids)[:200])
        vectors = index.chunk_vectors.vectors([chunk.id for chunk in chunks])
        central.append(chunks[int(np.argmax(vectors @ vectors.mean(0)))])
    return central


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--api-base")
    parser.add_argument("--limit", type=int, default=30)
    arguments = parser.parse_args()
    role = RoleSettings(
        model=arguments.model, api_base=arguments.api_base, max_tokens=120, temperature=0.0, timeout_s=600
    )
    lm = make_lm(role)
    ask, answer = dspy.Predict(AskOfPassage), dspy.Predict(AnswerFromPassage)
    ask.demos = [dspy.Example(passage=text, question=asks, answer=tells) for text, asks, tells in SHOWN]
    embedder = load_embedder(EncoderSettings())
    alike, near = [], []
    with Index.open(arguments.index) as index, dspy.context(lm=lm, adapter=dspy.ChatAdapter()):
        ids = list(index.ids(Chunk))
        vectors = index.chunk_vectors.vectors(ids)
        for chunk in central_passages(index, arguments.limit):
            passage = f"{chunk.title}\n{truncate_tokens(chunk.text, 220)}"
            candidates = []
            for attempt in range(3):
                options = {"temperature": 0.7, "rollout_id": attempt} if attempt else {}
                pair = ask(passage=passage, config=options)
                again = answer(passage=passage, question=pair.question).answer
                candidates.append((pair.question, token_f1([pair.answer], again) >= ALIKE))
                if candidates[-1][1]:
                    break
            question, is_alike = candidates[-1] if candidates[-1][1] else candidates[0]
            scores = vectors @ embedder.encode_queries([question])[0]
            alike.append(is_alike)
            near.append(chunk.id in {ids[place] for place in np.argsort(-scores)[:5]})
            print(json.dumps([question, alike[-1], near[-1]], ensure_ascii=False), flush=True)
    print(f"{len(alike)} questions; answered alike {np.mean(alike):.2f}, passage among five {np.mean(near):.2f}")


if __name__ == "__main__":
    main()
