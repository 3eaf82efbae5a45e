"""Prints the questions of a tuned generator beside the embedded templates', about the same summaries, unselected.

    python benchmarks/questions_beside.py demo.kraq --lm gguf/smollm2-135m --adapter kraq-questions [--questions 50]

Every n-th summary of an index that `kraq demo` made, in their order, each asked about as a build asks: the plainest of
up to three questions, or the template, which is marked.
"""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

import dspy

from kraq_dspy.asset.store.index import Index
from kraq_dspy.models.lms.adapter import KraqAdapter
from kraq_dspy.models.lms.roles import make_lm
from kraq_dspy.programs.kraq.pipeline import KRAQ
from kraq_dspy.records import Community, Summary
from kraq_dspy.settings import EMBEDDED, RoleSettings, Settings
from kraq_dspy.steps.direct import DirectSteps


def questions_of(role: RoleSettings, communities: Sequence[Community], summaries: Sequence[Summary]) -> dict[str, str]:
    """By community; one that the embedded model asks in another's place ends in a star."""

    async def asked() -> dict[str, str]:
        settings = Settings(roles={"default": RoleSettings(), "generator": role})
        questions = KRAQ(settings).questions(communities, summaries, {}, DirectSteps(4), total=len(summaries))
        return {
            str(each.community_id): each.text + (" *" if each.model == EMBEDDED != role.model else "")
            async for each in questions
        }

    with dspy.context(lm=make_lm(role), adapter=KraqAdapter()):
        return asyncio.run(asked())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("--lm", default="gguf/smollm2-135m")
    parser.add_argument("--adapter")
    parser.add_argument("--questions", type=int, default=50)
    options = parser.parse_args()
    with Index.open(options.index) as index:
        communities, every = list(index.all(Community)), list(index.all(Summary))
    summaries = every[:: max(1, len(every) // options.questions)][: options.questions]
    role = RoleSettings(model=options.lm, adapter=options.adapter, max_tokens=60, temperature=0)
    tuned = questions_of(role, communities, summaries)
    templates = questions_of(RoleSettings(), communities, summaries)
    print(f"{len(summaries)} of {len(every)} summaries\n\n| tuned | template |\n|---|---|")
    for summary in summaries:
        print(f"| {tuned[summary.community_id]} | {templates[summary.community_id]} |")


if __name__ == "__main__":
    main()
