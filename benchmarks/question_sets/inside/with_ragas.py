"""Asks about passages with RAGAS's TestsetGenerator, one chunk at a time: names, personas that want them, a question.

python with_ragas.py ask JOB.json
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "peers" / "inside"))

from asking import KEY, MODEL, Item, ask_each, asked
from job import run
from openai import OpenAI
from ragas.embeddings import OpenAIEmbeddings
from ragas.llms import llm_factory
from ragas.run_config import RunConfig
from ragas.testset import TestsetGenerator
from ragas.testset.persona import Persona
from ragas.testset.synthesizers.single_hop.specific import SingleHopSpecificQuerySynthesizer
from ragas.testset.transforms.extractors.llm_based import NERExtractor

PERSONAS = (
    Persona(name="Student", role_description="Writes an essay and looks for facts, names and dates."),
    Persona(name="Journalist", role_description="Prepares an article and wants to know who did what, and why."),
    Persona(name="Engineer", role_description="Wants to understand how things work and what they are made of."),
)


def ask(job: dict[str, Any]) -> None:
    address = f"{job['server']}/v1"
    client = OpenAI(base_url=address, api_key=KEY, timeout=3600, max_retries=0)
    llm = llm_factory(MODEL, client=client)
    embeddings = OpenAIEmbeddings(client=OpenAI(base_url=address, api_key=KEY))
    patient = RunConfig(timeout=3600, max_retries=1, max_workers=1)

    def question_of(item: Item) -> dict[str, Any]:
        generator = TestsetGenerator(llm=llm, embedding_model=embeddings, persona_list=list(PERSONAS))
        testset = generator.generate_with_chunks(
            [item["passage"]],
            testset_size=1,
            transforms=[NERExtractor(llm=llm)],
            query_distribution=[(SingleHopSpecificQuerySynthesizer(llm=llm), 1.0)],
            run_config=patient,
        )
        if not testset.samples:
            raise ValueError("No persona wants any of the names that were found.")
        sample = testset.samples[0].eval_sample
        return asked(
            sample.user_input,
            answer=sample.reference,
            persona=sample.persona_name,
            style=sample.query_style,
            length=sample.query_length,
        )

    ask_each(job, question_of)


if __name__ == "__main__":
    run(ask=ask)
