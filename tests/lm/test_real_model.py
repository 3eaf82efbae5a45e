"""Holds a real model in this process to the contract of engines: `make test-lm`, since it takes minutes."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.streaming import StreamResponse

from kraq_dspy import make_lm, signatures
from kraq_dspy.errors import ModelError
from kraq_dspy.extend import KraqAdapter, KraqLM, Meter, answer_listeners
from kraq_dspy.models.lms.engines.gguf_file import read_gguf
from kraq_dspy.models.lms.engines.llama_cpp import shared_model
from kraq_dspy.models.lms.local_models import QUESTIONS, local_file
from kraq_dspy.programs import AskQuestion, TraditionalRAG
from kraq_dspy.settings import RoleSettings

pytestmark = pytest.mark.lm

PASSAGE = "Marie Curie was a physicist who worked in Paris. She won the Nobel Prize in 1903 with Pierre Curie."
TYPED = ("ExtractElements", "NameElements", "ConfirmSameEntity", "RateGroundedness", "WriteFactoidPair")


@pytest.fixture(scope="module")
def file() -> Path:
    try:
        return local_file("smollm2-135m")
    except ModelError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def meter() -> Meter:
    return Meter()


@pytest.fixture(scope="module")
def lm(file: Path, meter: Meter) -> Iterator[KraqLM]:
    lm = make_lm(RoleSettings(model=f"gguf/{file}", context=2048, max_tokens=400, temperature=0.0), meter=meter)
    yield lm
    lm.engine.close()
    shared_model.cache_clear()


def inputs(signature: type[dspy.Signature]) -> dict[str, Any]:
    return {
        name: PASSAGE if field.annotation is str else [PASSAGE, PASSAGE]
        for name, field in signature.input_fields.items()
    }


@pytest.mark.parametrize("name", TYPED)
def test_a_step_with_typed_fields_is_readable(lm: KraqLM, name: str) -> None:
    signature = getattr(signatures, name)
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        answer = dspy.Predict(signature)(**inputs(signature))
    assert all(answer[field] is not None for field in signature.output_fields)


def test_many_at_once_are_answered_each_with_its_own(lm: KraqLM) -> None:
    async def all_of_them() -> list[Any]:
        return await asyncio.gather(*(lm.acall(f"Repeat this number: {n}", max_tokens=16) for n in range(6)))

    assert sum(str(n) in answer[0] for n, answer in enumerate(asyncio.run(all_of_them()))) >= 5


def test_a_program_answers_while_it_streams(lm: KraqLM) -> None:
    rag = TraditionalRAG(lambda question: [PASSAGE])
    stream = dspy.streamify(rag, stream_listeners=answer_listeners(rag), async_streaming=False)
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        values = list(stream(question="Where did Marie Curie work?"))

    pieces = [value.chunk for value in values if isinstance(value, StreamResponse)]
    assert "Curie" in values[-1].answer  # from the passage; which sentence of it is not the engine's affair
    assert not pieces or "".join(pieces).strip() == values[-1].answer.strip()  # small models leave the marker out


def test_the_packaged_adapter_asks_questions_where_the_model_alone_does_not(file: Path) -> None:
    summaries = [
        "Kaiser Steel was founded by Henry J. Kaiser in 1942 in Fontana, California, to make plate for ships.",
        "The Tagus is the longest river of the Iberian Peninsula. It flows into the Atlantic Ocean near Lisbon.",
        "Marie Curie won the Nobel Prize in Physics in 1903 with Pierre Curie and Henri Becquerel.",
    ]
    settings = RoleSettings(model=f"gguf/{file}", adapter=QUESTIONS, context=2048, max_tokens=60, temperature=0.0)
    lm = make_lm(settings)
    with dspy.context(lm=lm, adapter=KraqAdapter()):
        questions = [AskQuestion()(summary=summary).question for summary in summaries]
    lm.engine.close()
    print("\n" + "\n".join(questions))
    assert all(question.endswith("?") and len(question.split()) < 25 for question in questions)
    assert len(set(questions)) == 3


def without_system_role(file: Path, copy: Path) -> Path:
    """The model with a chat template that takes no system message, as Gemma's; as long as the one that it replaces."""
    template = read_gguf(file).values["tokenizer.chat_template"].encode()
    refusing = (
        b"{% for m in messages %}{% if m['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
        b"{% endif %}{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}{% endfor %}"
        b"{{ '<|im_start|>assistant\\n' }}"
    )
    content = file.read_bytes()
    assert content.count(template) == 1
    copy.write_bytes(content.replace(template, refusing + b"{#" + b" " * (len(template) - len(refusing) - 4) + b"#}"))
    return copy


def test_a_model_whose_template_takes_no_system_message_is_asked_all_the_same(file: Path, tmp_path: Path) -> None:
    copy = without_system_role(file, tmp_path / "no-system.gguf")
    lm = make_lm(RoleSettings(model=f"gguf/{copy}", context=1024, max_tokens=40, temperature=0.0))
    try:
        with dspy.context(lm=lm, adapter=KraqAdapter()):
            prediction = dspy.Predict(signatures.AnswerQuestion)(
                question="Where did Marie Curie work?", passages=[PASSAGE]
            )
            again = dspy.Predict(signatures.AnswerQuestion)(question="Who won in 1903?", passages=[PASSAGE])
    finally:
        lm.engine.close()
        shared_model.cache_clear()
    assert prediction.answer.strip()
    assert again.answer.strip()
    instructions = len(signatures.AnswerQuestion.instructions.split())
    assert lm.history[-1]["usage"]["prompt_tokens"] > instructions + len(PASSAGE.split())  # nothing was left out
