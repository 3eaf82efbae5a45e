"""Prints the questions of a tuned generator beside the templates', about the same communities, unselected.

    python benchmarks/questions_beside.py demo.kraq --lm gguf/smollm2-135m --adapter kraq-questions [--questions 50]

Every n-th community with a summary, in their order, each asked about as a build asks, over a copy of the index; what a
template asks in the generator's place ends in a star. Without --lm, the templates alone.
"""

import argparse
import asyncio
import shutil
import tempfile
from pathlib import Path

from kraq_dspy.asset.store.index import Index
from kraq_dspy.indexing.index.build import Builder
from kraq_dspy.indexing.index.finishing import Finishing
from kraq_dspy.records import Community, Entity, Summary
from kraq_dspy.settings import EMBEDDED, RoleSettings, Settings


def questions_of(path: Path, role: RoleSettings, count: int) -> dict[str, str]:
    """By community id; one that a template asks in a model's place ends in a star."""

    async def asked(copy: Path) -> dict[str, str]:
        settings = Settings(roles={"default": RoleSettings(), "generator": role})
        async with Builder.at(copy, {"settings": settings}) as builder:
            every = list(builder.index.all(Summary))
            summaries = every[:: max(1, len(every) // count)][:count]
            ids = {summary.community_id for summary in summaries}
            communities = [community for community in builder.index.all(Community) if community.id in ids]
            finishing, entities = Finishing(builder), builder.index.all(Entity)
            questions = await finishing._ask(communities, summaries, count, entities)
            star = {question.id: " *" if question.model == EMBEDDED != role.model else "" for question in questions}
            return {str(question.community_id): question.text + star[question.id] for question in questions}

    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(path, Path(folder) / "copy.kraq")
        return asyncio.run(asked(Path(folder) / "copy.kraq"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("--lm", default=EMBEDDED)
    parser.add_argument("--adapter")
    parser.add_argument("--questions", type=int, default=50)
    options = parser.parse_args()
    templates = questions_of(options.index, RoleSettings(), options.questions)
    if options.lm == EMBEDDED:
        print("\n".join(templates.values()))
        return
    role = RoleSettings(model=options.lm, adapter=options.adapter, max_tokens=60, temperature=0)
    tuned = questions_of(options.index, role, options.questions)
    with Index.open(options.index) as index:
        print(f"{len(tuned)} of {index.count(Summary)} summaries\n\n| tuned | template |\n|---|---|")
    for community_id, question in tuned.items():
        print(f"| {question} | {templates[community_id]} |")


if __name__ == "__main__":
    main()
