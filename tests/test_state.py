"""Tests states of programs: what is kept of them, where they fit, and what is refused."""

import copy
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import dspy
import pytest

from kraq_dspy.errors import StateError
from kraq_dspy.extend import KraqAdapter
from kraq_dspy.optimize import load_state, save_state, state_of
from kraq_dspy.programs import KRAQ, AskQuestion, ExtractGraph, TraditionalRAG
from kraq_dspy.records import ExtractedClaim, ExtractedEntity, ExtractedRelationship
from kraq_dspy.signatures import AnswerQuestion

DEMO = dspy.Example(
    passage="Ada met Charles.",
    entities=[ExtractedEntity("Ada", "person", "Met Charles.")],
    relationships=[ExtractedRelationship("Ada", "Charles", "met", "They met.")],
    claims=[ExtractedClaim("Ada", "She met Charles.")],
    logprobs={"content": [{"token": "A", "logprob": -0.1}]},
    file="/home/someone/corpus.jsonl",
    augmented=True,
)


def learned() -> ExtractGraph:
    program = ExtractGraph()
    program.extract.demos = [DEMO]
    program.extract.signature = program.extract.signature.with_instructions("List what is linked.")
    return program


def saved(tmp_path: Path, program: dspy.Module, **provenance: Any) -> Path:
    path = tmp_path / "state.json"
    save_state(state_of(program, provenance), path)
    return path


def changed(path: Path, change: Callable[[dict[str, Any]], None]) -> Path:
    body = json.loads(path.read_text())
    change(body)
    path.write_text(json.dumps(body))
    return path


def prompt(predictor: dspy.Predict) -> Any:
    inputs = {"passage": "Byron wrote."}
    return KraqAdapter().format(predictor.signature, predictor.demos, inputs)


def test_a_loaded_step_prompts_as_the_saved_one_did(tmp_path: Path) -> None:
    program = learned()
    again = ExtractGraph()
    load_state(again, saved(tmp_path, program))
    assert prompt(again.extract) == prompt(program.extract)
    assert again.extract.demos[0].entities == [ExtractedEntity("Ada", "person", "Met Charles.")]
    assert again.glean.demos == []


def test_nothing_but_the_fields_of_the_signature_is_kept_of_a_demonstration(tmp_path: Path) -> None:
    text = saved(tmp_path, learned()).read_text()
    assert "logprob" not in text
    assert "/home/someone" not in text
    [demo] = json.loads(text)["predictors"]["extract"]["demos"]
    assert set(demo) == {"passage", "entities", "relationships", "claims"}


@pytest.mark.parametrize(
    ("path_text", "kept"),
    [
        ("/home/someone/runs/dev.jsonl", "dev.jsonl"),
        ("transformers//models/tiny", "transformers/tiny"),
        ("hosted_vllm/meta-llama/Llama-3.1-8B", "hosted_vllm/meta-llama/Llama-3.1-8B"),
        ("C:\\models\\tiny", "tiny"),
        ("~/models/tiny", "tiny"),
        ("http://localhost:8000/v1", "http://localhost:8000/v1"),
    ],
)
def test_absolute_paths_are_cut_down(tmp_path: Path, path_text: str, kept: str) -> None:
    state = json.loads(saved(tmp_path, learned(), models={"default": [path_text]}).read_text())
    assert state["provenance"]["models"]["default"] == [kept]


def test_a_steps_state_goes_into_the_whole_pipeline(tmp_path: Path) -> None:
    kraq = KRAQ()
    kraq.load(saved(tmp_path, learned()))
    assert kraq.extract.extract.signature.instructions == "List what is linked."
    assert len(kraq.extract.extract.demos) == 1
    assert kraq.ask.generate.demos == []


def test_a_pipelines_state_is_found_again_by_name(tmp_path: Path) -> None:
    kraq, again = KRAQ(), KRAQ()
    kraq.extract = learned()
    again.load(saved(tmp_path, kraq))
    assert prompt(again.extract.extract) == prompt(kraq.extract.extract)


def test_a_step_asked_under_another_name_is_found_by_its_signature(tmp_path: Path) -> None:
    step = dspy.Predict(AnswerQuestion)
    step.demos = [dspy.Example(question="When?", passages=["In 1889."], answer="1889")]
    rag = TraditionalRAG(lambda *arguments, **options: [])
    load_state(rag, saved(tmp_path, step))
    assert rag.answer.demos[0].answer == "1889"


def test_parts_that_an_optimizer_marked_as_compiled_are_saved_and_loaded(tmp_path: Path) -> None:
    kraq = KRAQ()
    kraq.extract = learned()
    kraq.extract._compiled = True
    assert "extract.extract" not in dict(kraq.named_predictors())  # DSPy passes over it
    assert "extract.extract" in state_of(kraq, {}).predictors
    kraq.save(tmp_path / "saved.json")
    assert kraq.extract._compiled
    again = KRAQ()
    again.load(tmp_path / "saved.json")
    assert again.extract.extract.signature.instructions == "List what is linked."


def test_a_file_of_dspys_own_save_is_loaded_by_dspy(tmp_path: Path) -> None:
    program, again = learned(), ExtractGraph()
    dspy.Module.save(program, tmp_path / "dspy.json")
    with pytest.raises(StateError, match=r"dspy\.Module\.load"):
        again.load(tmp_path / "dspy.json")
    dspy.Module.load(again, tmp_path / "dspy.json")
    assert again.extract.signature.instructions == "List what is linked."


def test_saving_writes_the_file_that_is_loaded_as_a_program_state(tmp_path: Path) -> None:
    learned().save(tmp_path / "made" / "state.json")
    again = ExtractGraph()
    state = load_state(again, tmp_path / "made" / "state.json")
    assert (state.program, set(state.provenance)) == ("ExtractGraph", {"library_version"})
    assert prompt(again.extract) == prompt(learned().extract)


@pytest.mark.parametrize(
    ("name", "options", "reason"),
    [("folder", {"save_program": True}, "pickle runs what is in it"), ("state.pkl", {}, "does not end with .json")],
)
def test_a_pickle_is_not_written(tmp_path: Path, name: str, options: dict[str, Any], reason: str) -> None:
    with pytest.raises(StateError, match=reason):
        learned().save(tmp_path / name, **options)
    assert list(tmp_path.iterdir()) == []


class AnswerBriefly(dspy.Signature):  # type: ignore[misc]
    """Answer in one word."""

    question: str = dspy.InputField()
    passages: list[str] = dspy.InputField()
    answer: str = dspy.OutputField()


def test_a_signature_with_the_fields_of_another_is_known_by_its_name(tmp_path: Path) -> None:
    step = dspy.Predict(AnswerBriefly)
    step.demos = [dspy.Example(question="When?", passages=["In 1889."], answer="1889")]
    rag = TraditionalRAG(lambda *arguments, **options: [])
    with pytest.raises(StateError, match=r"made for AnswerBriefly, which TraditionalRAG does not ask.*AnswerQuestion"):
        load_state(rag, saved(tmp_path, step))
    again = dspy.Predict(AnswerBriefly)
    for predictor in (again, again):  # what is loaded keeps its name, and takes a state again
        load_state(predictor, saved(tmp_path, step))
    assert (again.signature.__name__, again.demos[0].answer) == ("AnswerBriefly", "1889")


def test_a_signature_whose_name_an_optimizer_of_dspy_dropped_is_found_by_its_fields_and_types(tmp_path: Path) -> None:
    class Guess(dspy.Signature):  # type: ignore[misc]
        """Guess."""

        clue: str = dspy.InputField()
        guess: float = dspy.OutputField()

    step, again = dspy.Predict(Guess), dspy.Predict(Guess)
    step.signature = step.signature.with_instructions("Guess well.")
    load_state(again, saved(tmp_path, step))
    assert again.signature.instructions == "Guess well."
    with pytest.raises(StateError, match=r"another version of .*: its outputs were guess: float, and are guess: str"):
        load_state(dspy.Predict("clue -> guess"), saved(tmp_path, step))


def test_models_are_neither_saved_nor_replaced(tmp_path: Path) -> None:
    program, again = learned(), ExtractGraph()
    program.set_lm(dspy.LM("openai/secret-model", api_key="secret"))
    path = saved(tmp_path, program)
    assert "secret" not in path.read_text()
    own = dspy.LM("openai/other", api_key="none")
    again.set_lm(own)
    load_state(again, path)
    assert again.extract.lm is own


def of_another_version(path: Path) -> Path:
    def change(body: dict[str, Any]) -> None:
        signature = body["predictors"]["extract"]["signature"]
        signature["outputs"]["facts"] = signature["outputs"].pop("claims")
        signature["outputs"]["entities"] = "list[str]"
        signature["instructions"] = "List all there is."

    return changed(path, change)


def test_a_state_for_another_version_of_a_signature_is_refused_with_what_changed(tmp_path: Path) -> None:
    program = ExtractGraph()
    with pytest.raises(StateError) as refused:
        load_state(program, of_another_version(saved(tmp_path, learned())))
    message = str(refused.value)
    assert "another version of ExtractElements" in message
    assert "its outputs were entities: list[str], relationships: " in message
    assert ", facts: list[ExtractedClaim(" in message
    assert "and are entities: list[ExtractedEntity(name: str" in message
    assert "the instructions that it started from were rewritten" in message
    assert "kraq optimize" in message
    assert program.extract.demos == []


def test_nothing_is_changed_when_one_of_several_predictors_does_not_fit(tmp_path: Path) -> None:
    kraq, again = KRAQ(), KRAQ()
    kraq.extract = learned()

    def change(body: dict[str, Any]) -> None:
        body["predictors"]["ask.generate"]["signature"]["instructions"] = "Ask."

    with pytest.raises(StateError, match="GenerateQuestion"):
        again.load(changed(saved(tmp_path, kraq), change))
    assert again.extract.extract.demos == []


def test_a_state_that_has_no_place_in_the_program_is_refused_with_what_it_asks(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"made for ExtractElements, which AskQuestion does not ask.*GenerateQuestion"):
        load_state(AskQuestion(), saved(tmp_path, learned()))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "it is not JSON"),
        ("[]", "no program state of this library"),
        ('{"format": "kraq program state", "format_version": 99}', "format version 99"),
        ('{"format": "kraq program state", "format_version": 1, "predictors": {}}', "is damaged"),
    ],
)
def test_a_file_that_is_no_state_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "state.json"
    path.write_text(text)
    with pytest.raises(StateError, match=message):
        load_state(ExtractGraph(), path)


def test_a_missing_file_and_a_damaged_demonstration_are_named(tmp_path: Path) -> None:
    with pytest.raises(StateError, match=r"nowhere\.json.*No such file"):
        KRAQ().load(tmp_path / "nowhere.json")

    def change(body: dict[str, Any]) -> None:
        body["predictors"]["extract"]["demos"][0]["entities"] = "none"

    with pytest.raises(StateError, match="is damaged: predictor 'extract'"):
        load_state(ExtractGraph(), changed(saved(tmp_path, learned()), change))


def places(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    keys = value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in keys:
        yield from places(value[key], *path, key)


def test_whatever_is_wrong_in_a_state_is_one_clear_error(tmp_path: Path) -> None:
    path = saved(tmp_path, learned(), made="here")
    body = json.loads(path.read_text())
    wrong: tuple[Any, ...] = (3, None, [], {"a": 1})
    for place in places(body):
        for value in wrong:
            damaged = copy.deepcopy(body)
            inner = damaged
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = value
            path.write_text(json.dumps(damaged))
            program = ExtractGraph()
            with suppress(StateError):
                load_state(program, path)
                prompt(program.extract)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("instructions",), 3),
        (("fields", "passage", "desc"), 3),
        (("fields", "passage"), "text"),
        (("signature", "outputs"), [1]),
        (("signature",), "ExtractElements"),
        (("demos",), 3),
        (("demos", 0), "text"),
    ],
)
def test_a_number_where_a_text_belongs_is_named(tmp_path: Path, place: tuple[Any, ...], value: Any) -> None:
    def change(body: dict[str, Any]) -> None:
        inner = body["predictors"]["extract"]
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = value

    with pytest.raises(StateError, match=r"state\.json' is damaged: predictors\.extract\."):
        load_state(ExtractGraph(), changed(saved(tmp_path, learned()), change))


@pytest.mark.parametrize("depth", [250, 900, 1_000_000])
@pytest.mark.parametrize(("before", "after"), [("[", "]"), ('{"a":', "}")])
def test_a_state_nested_too_deep_is_refused(tmp_path: Path, depth: int, before: str, after: str) -> None:
    path = saved(tmp_path, learned(), made="here")
    deep = before * depth + "1" + after * depth
    for text in (deep, path.read_text().replace('"here"', deep), path.read_text().replace('"Ada met Charles."', deep)):
        path.write_text(text)
        with pytest.raises(StateError, match=r"nested|no program state"):
            load_state(ExtractGraph(), path)


@pytest.mark.skipif(sys.platform == "win32", reason="has no named pipes")
def test_a_state_that_is_very_large_or_a_pipe_is_not_read(tmp_path: Path) -> None:
    path = saved(tmp_path, learned())
    with path.open("ab") as file:
        file.truncate(1 << 29)
    with pytest.raises(StateError, match="at most"):
        load_state(ExtractGraph(), path)
    path.unlink()
    os.mkfifo(path)
    for load in (load_state, ExtractGraph.load):
        with pytest.raises(StateError, match="is no file"):
            load(ExtractGraph(), path)
