"""Asks about passages with DeepEval's Synthesizer, one context of one passage at a time.

python ask_deepeval.py ask JOB.json
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "peers" / "inside"))

from asking import KEY, MODEL, Item, ask_each, asked
from deepeval.models import DeepEvalBaseLLM
from deepeval.synthesizer import Synthesizer
from deepeval.synthesizer.config import EvolutionConfig, FiltrationConfig
from job import run
from openai import OpenAI


class Served(DeepEvalBaseLLM):  # type: ignore[misc]
    """The model behind the server, held to the schema where DeepEval has one, as its guide to custom models says."""

    def __init__(self, address: str) -> None:
        self.client = OpenAI(base_url=address, api_key=KEY, timeout=3600, max_retries=0)
        super().__init__(MODEL)

    def load_model(self) -> OpenAI:
        return self.client

    def get_model_name(self) -> str:
        return MODEL

    def generate(self, prompt: str, schema: Any = None) -> Any:
        format: dict[str, Any] = {}
        if schema is not None:
            described = {"name": schema.__name__, "schema": schema.model_json_schema(), "strict": True}
            format = {"response_format": {"type": "json_schema", "json_schema": described}}
        messages = [{"role": "user", "content": prompt}]
        reply = self.client.chat.completions.create(model=MODEL, messages=messages, temperature=0, **format)
        text = reply.choices[0].message.content
        return text if schema is None else schema.model_validate_json(text)

    async def a_generate(self, prompt: str, schema: Any = None) -> Any:
        return self.generate(prompt, schema)


def ask(job: dict[str, Any]) -> None:
    model = Served(f"{job['server']}/v1")
    synthesizer = Synthesizer(
        model=model,
        max_concurrent=1,
        filtration_config=FiltrationConfig(critic_model=model),
        evolution_config=EvolutionConfig(num_evolutions=job["options"]["evolutions"]),
    )

    def question_of(item: Item) -> dict[str, Any]:
        goldens = synthesizer.generate_goldens_from_contexts(
            [[item["passage"]]], include_expected_output=False, max_goldens_per_context=1
        )
        about = goldens[0].additional_metadata or {}
        return asked(goldens[0].input, evolutions=about.get("evolutions"), rated=about.get("synthetic_input_quality"))

    ask_each(job, question_of)


if __name__ == "__main__":
    run(ask=ask)
