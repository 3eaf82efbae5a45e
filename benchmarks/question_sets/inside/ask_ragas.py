"""Asks about passages with RAGAS's TestsetGenerator, a chunk at a time: names, what a reader wants of them, a question.

python ask_ragas.py ask JOB.json
"""

import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "peers" / "inside"))

import instructor
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

READER = Persona(name="Reader", role_description="A curious person who wants to know more about the subject.")


def ask(job: dict[str, Any]) -> None:
    address = f"{job['server']}/v1"
    client = OpenAI(base_url=address, api_key=KEY, timeout=3600, max_retries=0)
    arguments = dict(job["options"])
    is_held = arguments.pop("held_to_schema")
    llm = llm_factory(MODEL, client=client, **arguments)
    if is_held:  # RAGAS itself asks for any JSON
        llm.client = instructor.from_openai(client, mode=instructor.Mode.JSON_SCHEMA)
    embeddings = OpenAIEmbeddings(client=OpenAI(base_url=address, api_key=KEY))
    patient = RunConfig(timeout=3600, max_retries=1, max_workers=1)

    def question_of(item: Item) -> dict[str, Any]:
        generator = TestsetGenerator(llm=llm, embedding_model=embeddings, persona_list=[READER])
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
