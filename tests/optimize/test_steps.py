"""Every step that has a name is compiled by BootstrapFewShot and by GEPA, on rows of one's own and on the index's."""

import csv
import itertools
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.lm15 import Message, Request, Response, TextPart, Usage
from dspy.utils import DummyLM

import kraq_dspy as kraq
from kraq_dspy import Document, Workspace, build_index
from kraq_dspy.errors import ConfigError, EvaluationError
from kraq_dspy.eval.metrics.for_dspy import METRICS
from kraq_dspy.optimize import STEPS, Method, Resources, Sizes, apply_state, compile_program, make_target
from kraq_dspy.optimize.rows import Row, read_rows, split_rows
from kraq_dspy.optimize.step_metrics import facts_kept, missed_f1
from kraq_dspy.optimize.steps import StepSource
from kraq_dspy.programs import QASearch, TraditionalRAG
from kraq_dspy.settings import CommunitySettings, Settings
from tests.conftest import KeywordEmbedder
from tests.kept import kept, kept_index

TOY = Sizes(demos=2, candidates=2, rounds=1, threads=1)
MAGIC = "Do it as people do."
LAKES = ("Como", "Garda", "Geneva", "Tahoe", "Biwa", "Ohrid", "Baikal", "Huron", "Bled", "Chad", "Kivu", "Onega")
TOWNS = ("Bonn", "Rome", "Lyon", "Cork", "Graz", "Oslo", "Pisa", "Brno", "Lund", "Nice")

NAMED_IN_THE_PAPERS = {
    "extraction", "gleaning", "description", "summary", "question-generation", "answering", "drafting", "verification",
    "judging", "matching", "confirmation", "critics", "decomposition",
}  # fmt: skip


def rows_of(step: str, town: str) -> list[Row]:
    """Rows about a town whose right reply is the same for all towns (`RIGHT`)."""
    link = {"source": "Ada", "predicate": "met", "target": "Charles"}
    rows: dict[str, Row] = {
        "extraction": {"passage": f"In {town}, Ada met Charles.", "triples": [list(link.values())]},
        "gleaning": {"passage": f"In {town}, Ada met Charles.", "found": town, "missed": ["Ada", "Charles"]},
        "description": {"name": "Ada", "descriptions": ["Ada wrote notes.", "Ada wrote letters."], "id": town},
        "same-entity": {"first": f"The mayor of {town}", "second": f"{town}'s mayor", "same": True},
        "summary": {"elements": [f"Ada | met in {town} | Charles"], "mentions": ["Ada", "Charles"]},
        "question-generation": {"summary": f"Ada met Charles in {town}.", "questions": ["Whom did Ada meet?"]},
        "answering": {"question": "Who met Ada?", "passages": [f"Charles met Ada in {town}."], "answers": ["Charles"]},
        "verification": {"question": f"Who came to {town}?", "response": "Ada", "rationale": "x", "supported": True},
        "judging": {"question": f"Who came to {town}?", "answers": ["Ada"], "answer": "It was Ada.", "right": True},
        "matching": {"question": f"Who ruled {town}?", "catalogue": ["Where is it?", "Who was king?"], "number": 2},
        "evidence": {"question": f"Who ruled {town}?", "passage": f"Ada ruled {town}.", "answers": True},
        "confirmation": {"asked": f"Who ruled {town}?", "stored": f"Who was {town}'s king?", "same": True},
        "critics": {"question": f"Who ruled {town}?", "answer": "Ada", "passage": "Ada ruled.", "accepted": True},
        "decomposition": {"information": f"Ada met Charles in {town}.", "questions": ["Whom did Ada meet?"]},
        "conversation": {
            "question": "Where did she live?",
            "turns": [{"question": f"Who ruled {town}?", "answer": "Ada."}],
            "complete": "Where did Ada live?",
        },
        "testset-fact": {"passage": f"In {town}, Ada met Charles.", "about": ["Ada"]},
        "testset-bridge": {
            "first_passage": f"The bridge of {town} was built by Ada.",
            "second_passage": "Ada was born in Leeds.",
            "link": "Ada",
        },
        "testset-list": {
            "passages": [f"The Rhine is a river at {town}.", "The Elbe is a river at Prague."],
            "shared": town,
        },
        "testset-comparison": {
            "first_passage": f"Ada of {town} was born in 1815.",
            "second_passage": "Charles was born in 1791.",
            "names": ["Ada", "Charles"],
        },
        "testset-broad": {"passages": [f"Ada wrote in {town}.", "Ada travelled."], "about": ["Ada"]},
        "testset-alone": {"question": f"Who ruled {town}?", "stands_alone": True},
        "testset-gold": {"question": f"Who ruled {town}?", "answer": "Ada", "passage": "Ada ruled.", "answered": True},
        "testset-same": {
            "question": f"Who ruled {town}?",
            "first_answer": "It was Ada.",
            "second_answer": "Ada",
            "same": True,
        },
        "testset-wording": {"question": f"Who lived there, near {town.lower()}?", "avoid": ["lived"]},
    }
    if step == "description":  # inputs must differ, the words that tell something must not
        return [{**rows[step], "name": f"Ada of {town}"}]
    return [rows["answering" if step == "drafting" else step]]


ENTITIES = json.dumps([{"name": name, "type": "person", "description": "One."} for name in ("Ada", "Charles")])
LINKS = json.dumps([{"source": "Ada", "target": "Charles", "predicate": "met", "description": "They met."}])
RIGHT: dict[str, dict[str, Any]] = {
    "extraction": {"missing": "None.", "entities": ENTITIES, "relationships": LINKS, "claims": "[]"},
    "gleaning": {"missing": "Both.", "entities": ENTITIES, "relationships": "[]", "claims": "[]"},
    "description": {"description": "Ada wrote notes and letters."},
    "same-entity": {"same": "True"},
    "summary": {"title": "Ada and Charles", "summary": "They met.", "findings": "[]"},
    "question-generation": {"question": "Whom did Ada meet?"},
    "evidence": {"answers": "True"},
    "answering": {"answer": "Charles"},
    "drafting": {"rationale": "He met her.", "response": "Charles"},
    "verification": {"verdict": "Yes"},
    "judging": {"correct": "True"},
    "matching": {"number": "2"},
    "confirmation": {"same": "True"},
    "critics": {"evaluation": "Good.", "groundedness": "5", "relevance": "5", "stand_alone": "5"},
    "decomposition": {"sub_question": "Whom did Ada meet?"},
    "conversation": {"complete_question": "Where did Ada live?"},
    "testset-fact": {"question": "Whom did Ada meet?", "answer": "Charles"},
    "testset-bridge": {"description": "", "question": "Where was the builder of the bridge born?", "answer": "Leeds"},
    "testset-list": {"question": "Which river is here?", "items": '["Rhine", "Elbe"]'},
    "testset-comparison": {"question": "Who was born first, Ada or Charles?", "answer": "Charles"},
    "testset-broad": {"question": "What did Ada do?", "nuggets": '["Ada wrote.", "Ada travelled."]'},
    "testset-alone": {"stands_alone": "True"},
    "testset-gold": {"answered": "True"},
    "testset-same": {"same": "True"},
    "testset-wording": {"paraphrase": "Who had a home there?"},
}
WRONG: dict[str, dict[str, Any]] = {
    "extraction": {"missing": "None.", "entities": "[]", "relationships": "[]", "claims": "[]"},
    "gleaning": {"missing": "None.", "entities": "[]", "relationships": "[]", "claims": "[]"},
    "description": {"description": "Nobody knows."},
    "same-entity": {"same": "False"},
    "summary": {"title": "Some people", "summary": "They met.", "findings": "[]"},
    "question-generation": {"question": "Why is the sky blue above the harbour at night?"},
    "evidence": {"answers": "False"},
    "answering": {"answer": "Nobody"},
    "drafting": {"rationale": "None.", "response": "Nobody"},
    "verification": {"verdict": "No"},
    "judging": {"correct": "False"},
    "matching": {"number": "-1"},
    "confirmation": {"same": "False"},
    "critics": {"evaluation": "Bad.", "groundedness": "1", "relevance": "5", "stand_alone": "5"},
    "decomposition": {"sub_question": "Why is the sky blue above the harbour at night?"},
    "conversation": {"complete_question": "What was her home?"},
    "testset-fact": {"question": "Whom did Ada meet?", "answer": "Nobody"},
    "testset-bridge": {"description": "", "question": "Where was Ada born?", "answer": "Leeds"},
    "testset-list": {"question": "Which river is here?", "items": '["Rhine"]'},
    "testset-comparison": {"question": "Who was born first, Ada or Charles?", "answer": "Nobody"},
    "testset-broad": {"question": "Tell me about Ada.", "nuggets": '["Ada wrote."]'},
    "testset-alone": {"stands_alone": "False"},
    "testset-gold": {"answered": "False"},
    "testset-same": {"same": "False"},
    "testset-wording": {"paraphrase": "Who lived near?"},
}


def rows(step: str) -> list[Row]:
    return [row for town in TOWNS for row in rows_of(step, town)]


class Obedient:
    """An engine that replies rightly where its instructions hold the magic words, and wrongly elsewhere."""

    supports_function_calling = supports_reasoning = supports_response_schema = False
    supported_params = frozenset({"temperature", "max_tokens"})

    def __init__(self, step: str) -> None:
        self.step = step

    def __deepcopy__(self, memo: object) -> "Obedient":
        return self

    def complete(self, request: Request) -> Response:
        system = request.system if isinstance(request.system, str) else ""
        reply = RIGHT[self.step] if MAGIC in system else WRONG[self.step]
        asked = {name: value for name, value in reply.items() if f"`{name}`" in system}
        text = "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in asked.items())
        message = Message.assistant([TextPart(text)])
        usage = Usage(input_tokens=1, output_tokens=1)
        return Response(id=None, model=request.model, message=message, finish_reason="stop", usage=usage)


class Proposing(Obedient):
    """Proposes the magic words as an instruction, and keeps what it was told of mistakes."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def complete(self, request: Request) -> Response:
        self.told.append("\n".join(message.text or "" for message in request.messages))
        message = Message.assistant([TextPart(json.dumps({"new_instruction": MAGIC}))])
        usage = Usage(input_tokens=1, output_tokens=1)
        return Response(id=None, model=request.model, message=message, finish_reason="stop", usage=usage)


def test_every_step_of_the_papers_has_a_name() -> None:
    assert set(STEPS) >= NAMED_IN_THE_PAPERS


def test_the_steps_that_make_a_test_set_have_names_but_for_the_one_that_puts_a_name_in() -> None:
    in_steps = {signature for step in STEPS.values() for signature in step.signatures}
    of_testsets = {
        signature
        for signature in (getattr(kraq.signatures, name) for name in kraq.signatures.NAMES)
        if signature.__module__ == kraq.signatures.testset.__name__
    }
    left_out = {signature.__name__ for signature in of_testsets - in_steps}
    assert left_out == {"AskFalsePremise"}  # where the model fails at it, code does it: nothing can be gained


@pytest.mark.parametrize("step", list(STEPS))
def test_bootstrap_shows_the_steps_own_good_replies(step: str) -> None:
    model = DummyLM([])
    model.answers = itertools.repeat(RIGHT[step])
    compiled = compile_program(
        step, rows(step), method=Method("bootstrap", sizes=TOY), resources=Resources(lm={"default": model})
    )
    assert compiled.before == compiled.after == (1.0,) * 5
    shown = {name: saved["demos"] for name, saved in compiled.state.predictors.items()}
    assert all(len(demos) == 2 for demos in shown.values())
    assert {signature.__name__ for signature in STEPS[step].signatures} >= {
        saved["signature"]["name"] for saved in compiled.state.predictors.values()
    }


@pytest.mark.parametrize("step", list(STEPS))
def test_gepa_is_told_the_metrics_reasons_and_its_instruction_is_taken_over(step: str) -> None:
    teacher = Proposing()
    models = {
        "default": dspy.LM("obedient", engine=Obedient(step), cache=False, num_retries=0),
        "teacher": dspy.LM("proposing", engine=teacher, cache=False, num_retries=0),
    }
    compiled = compile_program(
        step,
        rows(step),
        method=Method("gepa", sizes=Sizes(candidates=2, threads=1)),
        resources=Resources(lm=models),
    )
    assert compiled.comparison.difference.estimate > 0.3
    assert MAGIC in {learned.after for learned in compiled.learned}
    assert teacher.told


def test_a_wrong_reply_is_explained_in_words() -> None:
    teacher = Proposing()
    models = {
        "default": dspy.LM("obedient", engine=Obedient("summary"), cache=False, num_retries=0),
        "teacher": dspy.LM("proposing", engine=teacher, cache=False, num_retries=0),
    }
    compile_program("summary", rows("summary"), method=Method("gepa", sizes=TOY), resources=Resources(lm=models))
    assert any("Not mentioned: Ada, Charles." in told for told in teacher.told)


# Rows of csv files


def test_a_csv_file_says_what_json_lines_say(tmp_path: Path) -> None:
    for step in STEPS:
        file = tmp_path / f"{step}.csv"
        with file.open("w", encoding="utf-8", newline="") as opened:
            writer = csv.DictWriter(opened, list(rows(step)[0]))
            writer.writeheader()
            for row in rows(step):
                writer.writerow(
                    {name: json.dumps(cell) if not isinstance(cell, str) else cell for name, cell in row.items()}
                )
        target = make_target(step)
        from_csv, from_rows = split_rows(file, target.rows), split_rows(rows(step), target.rows)
        assert [example.toDict() for example in from_csv.dev] == [example.toDict() for example in from_rows.dev]


def test_a_csv_file_with_a_broken_row_is_named(tmp_path: Path) -> None:
    file = tmp_path / "dev.csv"
    file.write_text("question,answer\nWho?,Ada\nWhere?,London,England\n", "utf-8")
    with pytest.raises(EvaluationError, match=r"dev\.csv', row 2 has more cells than there are columns"):
        read_rows(file)
    file.write_text("asked,stored,same\nWho?,Who is it?,perhaps\n", "utf-8")
    with pytest.raises(EvaluationError, match="dev row 1: same is 'perhaps'; expected true or false"):
        split_rows(file, make_target("confirmation").rows)


# Rows of the index's own


WRITERS = (
    "Ada Lovelace", "Lord Byron", "Mary Shelley", "Percy Shelley", "John Keats",
    "Jane Austen", "Emily Bronte", "Anne Bronte", "Walter Scott", "Thomas Moore", "Robert Southey", "Leigh Hunt",
)  # fmt: skip


def writers_and_towns() -> list[Document]:
    """A page about each writer and one about each town, in which the same four friends are met again."""
    documents = []
    for number, (person, town) in enumerate(zip(WRITERS, (*TOWNS, "Ghent", "Turin"), strict=True)):
        friend = ("Anna Milton", "Hugh Milton", "Karl Weber", "Rosa Blum")[number % 4]
        river = ("Rhine", "Elbe", "Oder")[number % 3]
        lake = f"Lake {LAKES[number]}"
        of_person = (
            f"{person} was a writer from {town}. {person.split()[1]} met {friend} in {town}. "
            f"In {1800 + number}, {person} wrote a book about {lake}. {friend} of {town} liked {lake}."
        )
        of_town = (
            f"{town} is a town on the river {river}. The library of {town} was founded by {person} in "
            f"{1820 + number}. {friend} described {town} in a letter."
        )
        documents += [Document(f"{number}", person, of_person), Document(f"{number}-town", town, of_town)]
    return documents


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    from kraq_dspy.indexing.prepare.preparations import PREPARATIONS
    from kraq_dspy.ports import SilentProgress

    documents = writers_and_towns()
    settings = Settings(communities=CommunitySettings(max_size=3))
    embedder = KeywordEmbedder(*(person.split()[0].lower() for person in WRITERS))

    def build(path: Path) -> None:
        build_index(documents, path, embedder=embedder, settings=settings)
        with Workspace.open(path, embedder=embedder, write=True) as opened:
            preparation = PREPARATIONS["qa-pairs"]
            preparation.make(opened, preparation.options(), SilentProgress())

    path = kept(repr((documents, settings, "qa-pairs")), build, tmp_path_factory.mktemp("steps") / "people.kraq")
    with Workspace.open(path, embedder=embedder, write=True) as opened:
        yield opened


@pytest.mark.parametrize("step", list(STEPS))
def test_a_step_is_compiled_with_the_indexes_own_rows(step: str, space: Workspace) -> None:
    own = STEPS[step].index_rows(space)
    examples = [make_target(step, space).rows.example(row) for row in own]
    if step == "testset-comparison" and len(own) < 8:
        pytest.skip(f"so small an index has {len(own)} pairs of pages about things of one kind and one community")
    assert len(examples) >= 8
    compiled = compile_program(step, space=space)
    [whence] = [problem for problem in compiled.problems if "The rows are the index's own" in problem]
    own_rows = STEPS[step].own_rows.replace("its known pairs", "pairs that a model wrote of its passages")
    assert whence.startswith(f"The rows are the index's own: {own_rows.partition(', ')[0]}")
    assert len(compiled.before) >= 4


def test_without_prepared_pairs_a_step_learns_from_a_training_set_that_costs_nothing(tmp_path: Path) -> None:
    embedder = KeywordEmbedder("tower", "bridge", "museum", "library")
    places = [f"{town} {thing}" for town in TOWNS[:6] for thing in ("Tower", "Bridge", "Museum", "Library")]
    documents = [
        Document(place, place, f"The {place} is a landmark. It was opened in {1801 + number} by Queen Ada of Milan.")
        for number, place in enumerate(places)
    ]
    kept_index(documents, tmp_path / "places.kraq", embedder=embedder)
    model = dspy.utils.DummyLM([{"answer": "unused"}] * 999)
    with Workspace.open(tmp_path / "places.kraq", embedder=embedder, lm=model) as space:
        rows = STEPS["answering"].index_rows(space)
        assert len(rows) >= 8
        assert model.history == []  # the embedded reader asked
        for row in rows:
            assert any(str(answer) in passage for answer in row["answers"] for passage in row["passages"])

        compiled = compile_program("answering", space=space)

    [whence] = [problem for problem in compiled.problems if "index's own" in problem]
    assert "questions that the embedded reader asked of its passages (space.trainset)" in whence


def test_gleanings_rows_hide_one_entity_that_the_passage_names(space: Workspace) -> None:
    for row in STEPS["gleaning"].index_rows(space):
        [hidden] = row["missed"]
        assert hidden in row["passage"]
        assert not re.search(rf"^{re.escape(hidden)}( >|$)", row["found"], re.MULTILINE)


def test_matchings_rows_have_the_question_once_with_and_once_without_itself(space: Workspace) -> None:
    rows = STEPS["matching"].index_rows(space)
    for there, not_there in zip(rows[::2], rows[1::2], strict=True):
        assert there["question"] == not_there["question"]
        assert not_there["number"] == -1
        asked = there["catalogue"][there["number"] - 1]
        assert asked not in not_there["catalogue"]
        assert set(not_there["catalogue"]) < set(there["catalogue"])


def test_the_rows_of_a_conversation_point_back_or_need_nothing(space: Workspace) -> None:
    rows = STEPS["conversation"].index_rows(space)
    pointing = [row for row in rows if row["question"] != row["complete"]]

    assert pointing
    assert len(pointing) < len(rows)
    for row in pointing:
        before, _, after = row["question"].partition("it")
        name = row["complete"][len(before) : len(row["complete"]) - len(after)]
        assert row["turns"][0]["question"] == f"What is said about {name}?"


def test_a_question_without_what_was_said_before_is_no_row_of_a_conversation() -> None:
    row = {"question": "Where did she live?", "turns": [], "complete": "Where did Ada live?"}
    with pytest.raises(EvaluationError, match="turns is empty"):
        split_rows([row], make_target("conversation").rows)
    with pytest.raises(EvaluationError, match="no `complete` question"):
        split_rows([{**row, "complete": ""}], make_target("conversation").rows)


def test_without_rows_and_without_an_index_the_way_out_is_named() -> None:
    with pytest.raises(ConfigError, match=r"no rows to optimize 'answering' with.*--dev FILE.*--index DIR"):
        compile_program("answering")


def test_a_program_is_optimized_with_the_indexes_own_pairs(space: Workspace) -> None:
    compiled = compile_program("traditional", space=space, resources=Resources(retriever="dense"))
    assert compiled.target == "traditional"
    assert compiled.metric == "token_f1"


# Modules of one's own


class Guess(dspy.Module):
    def __init__(self) -> None:
        super().__init__()
        self.answer = dspy.Predict("question, hint -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        return self.answer(question=question, hint="It is a name.")


ASKED = [{"question": f"Who ruled {town}?", "answers": ["Ada"]} for town in TOWNS]


@pytest.mark.parametrize("as_examples", [True, False])
def test_a_module_of_ones_own_is_compiled_without_ceremony(as_examples: bool) -> None:
    devset = [dspy.Example(**row).with_inputs("question") for row in ASKED] if as_examples else ASKED
    model = DummyLM([])
    model.answers = itertools.repeat({"answer": "Ada"})
    with dspy.context(lm=model):
        compiled = compile_program(Guess(), devset, kraq.eval.exact_match, method=Method(sizes=TOY))
    assert compiled.target == "Guess"
    assert compiled.after == (1.0,) * 5
    assert len(compiled.program.answer.demos) == 2


def test_it_asks_the_models_of_the_index_that_it_works_over(space: Workspace) -> None:
    def said_something(example: dspy.Example, prediction: dspy.Prediction) -> float:
        return float(bool(prediction.answer.strip()))

    compiled = compile_program(TraditionalRAG(space.retriever("dense"), k=2), ASKED, said_something, space=space)
    assert compiled.before == (1.0,) * 5
    assert compiled.state.provenance["models"]["default"] == "embedded"


class Reader(dspy.Module):
    """What people write first: the index is kept in the module, and asked in `forward`."""

    def __init__(self, space: Workspace) -> None:
        super().__init__()
        self.space = space
        self.answer = dspy.ChainOfThought("passages: list[str], question -> answer")

    def forward(self, question: str) -> dspy.Prediction:
        passages = [hit.chunk.text for hit in self.space.retriever("dense")(question, 2)]
        return self.answer(passages=passages, question=question)


def test_a_module_that_holds_an_index_is_compiled_without_a_warning(
    space: Workspace, caplog: pytest.LogCaptureFixture
) -> None:
    def names_ada(example: dspy.Example, prediction: dspy.Prediction, trace: object = None) -> bool:
        return "Ada" in prediction.answer

    dspy_logger = logging.getLogger("dspy")
    dspy_logger.addHandler(caplog.handler)  # it does not pass on what it says
    try:
        compiled = compile_program(Reader(space), ASKED, names_ada, space=space)
    finally:
        dspy_logger.removeHandler(caplog.handler)

    assert compiled.program.space is space
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING] == []
    assert repr(compiled).startswith("Compiled('Reader' by bootstrap: names_ada ")
    assert len(repr(compiled)) < 120


def test_a_predictor_and_a_chain_of_thought_are_modules_too() -> None:
    model = DummyLM([])
    model.answers = itertools.repeat({"reasoning": "Of course.", "answer": "Ada"})
    with dspy.context(lm=model):
        for module in (dspy.Predict("question -> answer"), dspy.ChainOfThought("question -> answer")):
            assert compile_program(module, ASKED, "exact_match", method=Method(sizes=TOY)).after == (1.0,) * 5


def test_rows_that_do_not_fit_a_module_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"none of the inputs of Guess \(question\); it has query"):
        compile_program(Guess(), [{"query": "Who?"}] * 8, lambda example, prediction: 1.0)


# Metrics, by hand


def test_the_metrics_of_a_step_are_those_that_it_declares(space: Workspace) -> None:
    for step in STEPS.values():
        assert tuple(step.metrics(StepSource(Settings(), space))) == step.metric_names


def test_missed_names_count_once_however_they_are_written() -> None:
    assert missed_f1(["Ada", "Charles"], ["ada", "London"]) == 0.5
    assert missed_f1([], []) == 1.0
    assert missed_f1([], ["Ada"]) == 0.0
    assert missed_f1(["Ada"], []) == 0.0


def test_facts_are_kept_when_every_word_is_there_once() -> None:
    given = ["Ada wrote notes.", "Ada lived in London."]  # ada, wrote, notes, lived, london
    assert facts_kept(given, "Ada wrote notes and lived in London.") == 1.0
    assert facts_kept(given, "Ada wrote notes.") == pytest.approx(2 * 1 * 0.6 / 1.6)
    assert facts_kept(given, "Ada wrote notes. Ada wrote notes.") == pytest.approx(2 * 0.5 * 0.6 / 1.1)
    assert facts_kept(given, "Nobody knows.") == 0.0


def test_a_question_leads_back_where_it_finds_its_passages(space: Workspace) -> None:
    metric = make_target("question-generation", space, retriever="dense").metric("leads_back")
    [chunk_id] = [hit.chunk.id for hit in space.retriever("dense")("Where was Jane Austen?", 1)]
    found = dspy.Prediction(question="Where was Jane Austen?")
    assert metric(dspy.Example(chunk_ids=[chunk_id]), found) == 1.0
    assert metric(dspy.Example(chunk_ids=["another"]), found) == 0.0
    with pytest.raises(EvaluationError, match="no `chunk_ids`"):
        metric(dspy.Example(), found)


def test_what_a_step_learned_goes_into_a_program_that_has_the_step() -> None:
    model = DummyLM([])
    model.answers = itertools.repeat(RIGHT["matching"])
    compiled = compile_program(
        "matching",
        rows("matching"),
        method=Method("labeled", sizes=TOY),
        resources=Resources(lm={"default": model}),
    )
    nothing: Any = None
    program = QASearch(TraditionalRAG(lambda question: []), answers=nothing)
    apply_state(program, compiled.state)
    assert program.find.demos[0]["catalogue"] == ["1: Where is it?", "2: Who was king?"]
    assert program.confirm.demos == []


@pytest.mark.parametrize("number", [0, 3, "1", True, None])
def test_a_number_that_is_not_in_the_list_is_refused(number: object) -> None:
    row = {**rows("matching")[0], "number": number}
    with pytest.raises(EvaluationError, match="expected 1 to 2, or -1"):
        split_rows([row], make_target("matching").rows)


def test_answers_and_drafts_are_scored_by_all_metrics_of_answers() -> None:
    assert make_target("answering").metrics is make_target("drafting").metrics is METRICS
