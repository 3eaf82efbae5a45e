"""A question's evidence are the passages of its group that answer it; a group is asked what they tell together."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import DummyLM

from kraq_dspy.embedded.reading.together import groups_in, passages_under
from kraq_dspy.indexing.index.build import build_index
from kraq_dspy.indexing.index.estimate import estimate_corpus
from kraq_dspy.language.analysis import Act, Analysis, Asked, Named, Sentence
from kraq_dspy.programs.kraq.asked_by import WITHOUT_MODEL
from kraq_dspy.programs.kraq.evidence import mentioning, naming, stating
from kraq_dspy.programs.kraq.representative import Representative
from kraq_dspy.records import JUDGED, MENTIONS, PHRASE, SEARCH, STATEMENTS, Chunk, Document, Question
from kraq_dspy.settings import QuestionSettings, RoleSettings, Settings
from kraq_dspy.workspace import Workspace
from tests.kept import kept_index

BRIDGE = Named("harbor bridge", PHRASE, "bridge")


def weakens(what: str) -> Analysis:
    named = (Named(what, PHRASE, what.split()[-1]), BRIDGE)
    text = f"{what.capitalize()} weakens the harbor bridge."
    return Analysis("", (Sentence(text, named, acts=(Act("weaken", what, "harbor bridge"),)),))


def chunk(id: str, text: str) -> Chunk:
    return Chunk(id, id, 0, 0, len(text), text, 9)


def test_a_group_has_a_key_under_which_repeats_count_too() -> None:
    passages = {"salt": weakens("road salt"), "again": weakens("road salt"), "truck": weakens("heavy load")}
    [group] = [each for each in groups_in(passages) if each.question == "What affects the harbor bridge?"]
    assert group.key == ("affected", "", "", "harbor bridge")
    assert set(group.told) == {"salt", "truck"}
    assert passages_under(group.key, passages) == ["salt", "again", "truck"]


def test_a_question_of_one_statement_is_answered_by_its_passage_and_by_others_that_are_asked_the_same() -> None:
    built = Asked("Who built the bridge?", "Mira Tolan", "who", 0.9)
    said = Analysis("", (Sentence("Mira Tolan built the bridge.", asked=(built,)),))
    asked = Representative(built.question, chunk_id="first")
    assert stating(asked, {"first": Analysis("", ()), "other": said, "salt": weakens("salt")}) == ["first", "other"]


def test_a_passage_mentions_what_has_all_telling_words() -> None:
    chunks = [chunk("a", "The boats sail to Skarv."), chunk("b", "The boat is old.")]
    assert [each.id for each in mentioning("Where does the boat sail?", chunks)] == ["a"]


def test_a_passage_that_lacks_a_name_of_the_question_is_no_evidence() -> None:
    chunks = [chunk("a", "Ada Lovelace wrote notes in 1843."), chunk("b", "Ada Lovelace lived in London.")]
    assert [each.id for each in naming("What did Ada Lovelace write in 1843?", chunks)] == ["a"]


TEXTS = {
    "salt": "Road salt weakens the harbor bridge of Harrow every winter. Harrow pays for the harbor bridge.",
    "trucks": "Heavy trucks damage the harbor bridge of Harrow by day. Harrow closed the harbor bridge in 1998.",
    "paint": "Harrow paints the harbor bridge in green. The harbor bridge of Harrow is long.",
}


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    out = tmp_path_factory.mktemp("evidence") / "bridge.kraq"
    kept_index([Document(name, name, text) for name, text in TEXTS.items()], out)
    with Workspace.open(out) as opened:
        yield opened


def test_every_question_of_an_index_has_evidence_in_its_group(space: Workspace) -> None:
    questions = [each for each in space.index.questions() if not each.is_topic]
    assert questions
    for question in questions:
        assert question.evidence
        assert set(question.evidence) <= set(question.chunk_ids)
        assert question.evidence_by in (STATEMENTS, MENTIONS, SEARCH)


def test_the_question_of_several_statements_has_their_passages_and_not_the_others(space: Workspace) -> None:
    [question] = [each for each in space.index.questions() if each.text == "What affects the harbor bridge?"]
    titles = {each.title for each in space.index.chunks_by_id(question.evidence)}
    assert titles == {"salt", "trucks"}
    assert question.share == pytest.approx(2 / len(question.chunk_ids))


def test_the_share_of_a_question_without_a_group_is_zero() -> None:
    assert Question("q", "Who?", "given", None, -1, (), ()).share == 0.0


def test_evidence_survives_the_index(space: Workspace, tmp_path: Path) -> None:
    [question, *_] = [each for each in space.index.questions() if each.evidence]
    assert space.index.questions_by_id([question.id]) == [question]


class Generator(DummyLM):
    """Asks the same question about every community."""

    def __init__(self) -> None:
        super().__init__([])
        self.model = "generator"

    def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
        self.answers = iter([{"question": "What harms the harbor bridge of Harrow?"}])
        return super().forward(prompt, messages, **kwargs)


class Judge(DummyLM):
    """Says yes to passages with the word; counts its calls, and keeps the questions that it was shown."""

    def __init__(self, word: str) -> None:
        super().__init__([])
        self.model, self.word, self.calls = f"judge of {word}", word, 0
        self.questions: set[str] = set()

    def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
        self.calls += 1
        request = str(prompt.messages[-1].content if messages is None else messages[-1]["content"])
        shown = re.search(r"## question ## ]]\s+(.+?)\s+\[\[ ## passage ## ]]\s+(.+?)\n\s*\n", request, re.DOTALL)
        assert shown is not None
        self.questions.add(shown[1])
        self.answers = iter([{"answers": str(self.word in shown[2])}])
        return super().forward(prompt, messages, **kwargs)


def judged(
    out: Path,
    judge: Judge,
    *roles: str,
    questions: QuestionSettings = QuestionSettings(),  # noqa: B008
) -> list[Question]:
    settings = Settings(roles={role: RoleSettings() for role in ("default", "generator", *roles)}, questions=questions)
    documents = [Document(name, name, text) for name, text in TEXTS.items()]
    build_index(documents, out, settings=settings, lm={"generator": Generator(), "judge": judge})
    with Workspace.open(out) as space:
        return list(space.index.questions(duplicates=True))


def of_generator(questions: Iterable[Question]) -> list[Question]:
    return [each for each in questions if each.model == "generator"]


def test_a_judge_with_a_model_confirms_the_evidence_of_a_model_s_question(tmp_path: Path) -> None:
    not_asked = Judge("Heavy")
    searched = of_generator(judged(tmp_path / "searched.kraq", not_asked))
    assert {each.evidence_by for each in searched} == {SEARCH}
    assert not_asked.calls == 0  # the role is not set

    judge = Judge("Heavy")
    confirmed = of_generator(judged(tmp_path / "judged.kraq", judge, "judge"))
    assert {each.evidence_by for each in confirmed} == {JUDGED}
    assert judge.questions == {each.text for each in confirmed}
    with Workspace.open(tmp_path / "judged.kraq") as space:
        for question in confirmed:
            assert ["Heavy" in each.passage for each in space.index.chunks_by_id(question.evidence)] == [True]

    calls = judge.calls
    assert of_generator(judged(tmp_path / "judged.kraq", judge, "judge")) == confirmed
    assert judge.calls == calls  # kept, like every answer of a model


def test_a_question_that_the_judge_leaves_without_evidence_gives_its_place_to_a_template(tmp_path: Path) -> None:
    searched = judged(tmp_path / "searched.kraq", Judge("elephants"))
    instead = judged(tmp_path / "judged.kraq", Judge("elephants"), "judge")
    assert not of_generator(instead)
    assert {each.community_id for each in instead} == {each.community_id for each in searched}
    for question in instead:
        assert question.model in WITHOUT_MODEL
        assert question.is_topic or set(question.evidence) <= set(question.chunk_ids)
        assert question.is_topic or question.evidence
    with Workspace.open(tmp_path / "judged.kraq") as space:
        assert space.index.question_vectors.count() == len(instead)
    assert judged(tmp_path / "judged.kraq", Judge("elephants"), "judge") == instead


def test_without_fallback_such_a_question_stays_without_evidence(tmp_path: Path) -> None:
    settings = QuestionSettings(fallback=False)
    [question, *_] = of_generator(judged(tmp_path / "none.kraq", Judge("elephants"), "judge", questions=settings))
    assert (question.evidence, question.evidence_by, question.share) == ((), "", 0.0)


def test_an_estimate_counts_a_judge_where_the_role_is_set() -> None:
    texts = list(TEXTS.values())
    stages = {each.stage for each in estimate_corpus(texts, Settings()).stages}
    with_judge = {
        each.stage
        for each in estimate_corpus(texts, Settings(roles={"default": RoleSettings(), "judge": RoleSettings()})).stages
    }
    assert with_judge - stages == {"judge"}
