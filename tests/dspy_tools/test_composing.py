"""Puts programs of this library into DSPy's wrappers, agents and maps."""

import asyncio
from typing import Any

import dspy

import kraq_dspy as kraq
from kraq_dspy.programs import TraditionalRAG

RIVERS = ("Rhine", "Danube", "Rhone", "Volga")
SEAS = ["North Sea", "Black Sea", "Mediterranean", "a sea"]


def reward(arguments: dict[str, Any], prediction: dspy.Prediction) -> float:
    return float(prediction.answer == "Caspian Sea")


def test_parallel_and_batch_answer_in_order(lm: dspy.LM, program: TraditionalRAG, devset: list[dspy.Example]) -> None:
    with dspy.context(lm=lm):
        pairs = [(program, example) for example in devset]
        parallel = dspy.Parallel(num_threads=2, disable_progress_bar=True)(pairs)
        batch = program.batch(devset, num_threads=2, disable_progress_bar=True)
    assert [prediction.answer for prediction in parallel] == SEAS
    assert [prediction.answer for prediction in batch] == SEAS


def test_tasks_and_asyncify_answer_at_once(lm: dspy.LM, program: TraditionalRAG, devset: list[dspy.Example]) -> None:
    async def all_of_them() -> list[Any]:
        with dspy.context(lm=lm):
            awaited = await asyncio.gather(*(program.acall(question=each.question) for each in devset))
            return [*awaited, await dspy.asyncify(program)(question=devset[0].question)]

    assert [prediction.answer for prediction in asyncio.run(all_of_them())] == [*SEAS, "North Sea"]


def test_best_of_n_takes_the_first_good_answer(lm: dspy.LM, program: TraditionalRAG) -> None:
    best = dspy.BestOfN(
        module=program, N=2, reward_fn=lambda _, prediction: float("Sea" in prediction.answer), threshold=1.0
    )
    with dspy.context(lm=lm):
        prediction = best(question="Where does the Rhine flow into?")
    assert (prediction.answer, len(prediction.hits)) == ("North Sea", 2)


def test_refine_gives_the_program_advice_and_asks_again(lm: dspy.LM, program: TraditionalRAG) -> None:
    refine = dspy.Refine(module=program, N=2, reward_fn=reward, threshold=1.0)
    with dspy.context(lm=lm):
        assert refine(question="Where does the Volga flow into?").answer == "Caspian Sea"


def test_majority_takes_the_most_frequent_answer(lm: dspy.LM, program: TraditionalRAG) -> None:
    with dspy.context(lm=lm):
        answers = [dict(program(question=f"Where does the {name} flow into?")) for name in ("Rhine", "Rhone", "Rhine")]
    assert dspy.majority(answers, field="answer").answer == "North Sea"


def test_an_agent_uses_a_program_as_its_tool(lm: dspy.LM, program: TraditionalRAG) -> None:
    def search_rivers(question: str) -> str:
        """Answers a question about rivers."""
        with dspy.context(lm=lm):
            return str(program(question=question).answer)

    thoughts = [
        {
            "next_thought": "I look it up.",
            "next_tool_name": "search_rivers",
            "next_tool_args": '{"question": "Where does the Danube flow into?"}',
        },
        {"next_thought": "I know it.", "next_tool_name": "finish", "next_tool_args": "{}"},
        {"reasoning": "The tool says so.", "answer": "Black Sea"},
    ]
    agent = dspy.ReAct("question -> answer", tools=[search_rivers])
    with dspy.context(lm=dspy.utils.DummyLM(thoughts)):
        prediction = agent(question="Into which sea does the Danube flow?")
    assert prediction.answer == "Black Sea"
    assert prediction.trajectory["observation_0"] == "Black Sea"


def test_a_program_is_a_part_of_a_program_of_your_own(lm: dspy.LM) -> None:
    class Polite(dspy.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rag = kraq.programs.TraditionalRAG(lambda question: ["A river ends in a sea."])
            self.greet = dspy.Predict("answer -> greeting")

        def forward(self, question: str) -> dspy.Prediction:
            return self.greet(answer=self.rag(question=question).answer)

    polite = Polite()
    assert [name for name, _ in polite.named_predictors()] == ["rag.answer", "greet"]
    with dspy.context(lm=lm):
        assert polite(question="Where does the Rhine flow into?").greeting == "Some greeting, in brief."
