"""Asks as `kraq index` does: about a community's summary, or, as the papers' baseline Random, about passages by chance.

python ask_kraq.py ask JOB.json
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "peers" / "inside"))

from asking import MODEL, Item, ask_each, asked
from job import run


def ask(job: dict[str, Any]) -> None:
    import dspy

    from kraq_dspy.models.lms.adapter import KraqAdapter
    from kraq_dspy.models.lms.roles import make_lm
    from kraq_dspy.programs.kraq.describe import AskQuestion, AskRandomQuestion
    from kraq_dspy.settings import RoleSettings

    role = dict(job["options"])
    if job["server"] is not None:
        role |= {"model": f"hosted_vllm/{MODEL}", "api_base": f"{job['server']}/v1", "timeout_s": 3600.0}
    lm = make_lm(RoleSettings(max_tokens=60, temperature=0.0, **role))
    about_summary, about_passages = AskQuestion(), AskRandomQuestion()

    def question_of(item: Item) -> dict[str, Any]:
        with dspy.context(lm=lm, adapter=KraqAdapter(), disable_history=True):
            if "summary" in item:
                return asked(about_summary(summary=item["summary"]).question)
            return asked(about_passages(passages=item["passages"]).question)

    ask_each(job, question_of)


if __name__ == "__main__":
    run(ask=ask)
