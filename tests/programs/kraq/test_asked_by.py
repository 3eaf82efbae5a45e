"""Every community asks about a heading of its own; one without a summary asks, too, where its heading announces one."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import DummyLM

from kraq_dspy import Index, build_index, update_index
from kraq_dspy.embedded.asking import writer
from kraq_dspy.embedded.asking.headings import UNTITLED, asked_title, headings_of
from kraq_dspy.language.told import language_of
from kraq_dspy.programs.kraq.asked_by import AskedBy, ListedPassages, asked_in_words, policy_of
from kraq_dspy.records import PARSE, Chunk, Community, Document, Entity, Summary
from kraq_dspy.settings import EMBEDDED, QuestionSettings, Settings
from tests.conftest import KeywordEmbedder

PASSAGES = {
    "a": "Guide\n## Connecting an antenna\nConnect an antenna to the TV. Then search for channels.",
    "b": "Guide\n## Changing the language\nOpen the settings. Pick another language.",
}


def passages_of(chunk_ids: Sequence[str]) -> list[str]:
    return [PASSAGES[id] for id in chunk_ids]


def community(id: str, level: int, chunk_ids: tuple[str, ...]) -> Community:
    return Community(id, level, None, (), ("e",), (), chunk_ids)


def test_no_two_communities_get_one_heading_and_the_first_chooses_first() -> None:
    communities = [community("broad", 0, ("a", "b")), community("narrow", 1, ("a",)), community("other", 1, ("b",))]
    chosen = writer.headings_asked(communities, passages_of, "")
    assert {id: heading.question for id, heading in chosen.items()} == {
        "broad": "How do I connect an antenna?",
        "other": "How do I change the language?",
    }
    assert chosen["other"].heading == "Changing the language"
    assert chosen["other"].text == "Open the settings. Pick another language."


BRIDGE = "Mira Tolan built the harbor bridge of Harrow in 1902. Jonas Berg painted the harbor bridge of Harrow in 1911."


def asked_about_the_bridge(communities: Sequence[Community]) -> dict[str, str]:
    """The question of each community, by its id; each is asked of a statement of the passage."""
    passages = ListedPassages([Chunk("c", "bridge", 0, 0, len(BRIDGE), BRIDGE, 20)])
    bridge = Entity("e", "harbor bridge of Harrow", "phrase", "", ("harbor bridge of Harrow", "harbor bridge"), ("c",))
    asking = AskedBy(communities, passages, QuestionSettings(), generator=EMBEDDED, entities=[bridge])
    wordings = {each.id: asking.template(each, BRIDGE) for each in communities}
    assert {wording.model for wording in wordings.values() if wording} == {PARSE}
    return {id: wording.text for id, wording in wordings.items() if wording}


def test_a_community_takes_another_statement_than_those_below_it() -> None:
    """And one that is neither above nor below changes nothing: else a small change would ask far ones anew."""
    broad = Community("broad", 0, None, ("narrow",), ("e",), (), ("c",))
    narrow = Community("narrow", 1, "broad", (), ("e",), (), ("c",))
    other = Community("other", 0, None, (), ("e",), (), ("c",))

    asked = asked_about_the_bridge([broad, narrow])
    assert asked["broad"] != asked["narrow"]
    assert asked["narrow"] == asked_about_the_bridge([narrow])["narrow"]
    assert asked_about_the_bridge([other, broad, narrow]) == {**asked, "other": asked["narrow"]}


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (
            "Apfel\n## Wie installiert man Pakete?\nDas Werkzeug holt ein Paket und richtet es ein.",
            "Wie installiert man Pakete?",
        ),
        (
            "Guide\n## Installing packages\nThe tool gets the package and puts it where it is to be.",
            "How do I install packages?",
        ),
        ("Report 7\nBala Dokov met Luvi Sarov in Norburg.", ""),
    ],
)
def test_the_language_of_passages_is_told_if_their_headings_may_announce_something(
    text: str, question: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def noting(passages: str) -> str:
        told.append(passages)
        return language_of(passages)

    monkeypatch.setattr(writer, "language_of", noting)
    chosen = writer.headings_asked([community("a", 0, ("a",))], lambda ids: [text], "")
    assert [heading.question for heading in chosen.values()] == [question] * bool(question)
    assert told == [text] * bool(question)


@pytest.mark.parametrize(
    ("asked_by", "question"), [("model", "Who was Mira Tolan?"), ("templates", "Who was Zed Korr?")]
)
def test_what_a_models_summary_says_and_no_passage_is_not_asked_about(asked_by: str, question: str) -> None:
    text = "Mira Tolan\nMira Tolan was an engineer from Harrow. She built a bridge in 1902."
    narrow = community("a", 0, ("c",))
    passages = ListedPassages([Chunk("c", "mira", 0, 0, len(text), text, 20)])
    asking = AskedBy([narrow], passages, QuestionSettings(asked_by=asked_by), generator="openai/x")
    wording = asking.template(narrow, "Zed Korr\nZed Korr was a poet from Norland. He wrote The Sea.")
    assert wording is not None
    assert wording.text == question


def test_headings_that_no_summary_covers_are_asked_about_in_an_index(tmp_path: Path) -> None:
    sections = [
        "# Connecting an antenna\n\nConnect the cable to the Acme TV. Ask Globex for help with the Acme TV.",
        "# Changing the language\n\nThe language of a Menu is changed here. Choose Menu and another language.",
    ]
    for number, text in enumerate(sections):
        (tmp_path / f"{number}.md").write_text(text)
    build_index(tmp_path, tmp_path / "out.kraq")
    with Index.open(tmp_path / "out.kraq") as index:
        asked = {question.text for question in index.questions(source="kraq")}
    assert any(question.startswith("How do I connect an antenna") for question in asked)
    assert any(question.startswith("How do I change the language") for question in asked)


def test_a_models_question_that_leads_to_other_passages_makes_way_for_the_headings(
    tmp_path: Path, keyword_embedder: type[KeywordEmbedder]
) -> None:
    """Eleven sections are about antennas, more than are looked at, and one about the language."""
    for number in range(11):
        (tmp_path / f"{number}.md").write_text(f"# Part {number}\n\nThe antenna {number} of Acme fits Globex {number}.")
    (tmp_path / "language.md").write_text("# Changing the language\n\nAcme and Initech change the language.")
    asked = DummyLM([{"question": "How do I change the antenna?"}] * 100)
    embedder = keyword_embedder("antenna", "language")
    settings = Settings(questions=QuestionSettings(asked_by="mixed"))
    build_index(tmp_path, tmp_path / "out.kraq", settings=settings, lm={"generator": asked}, embedder=embedder)
    with Index.open(tmp_path / "out.kraq") as index:
        texts = {question.text for question in index.questions(source="kraq", duplicates=True)}
    assert texts == {"How do I change the antenna?", "How do I change the language?"}


def test_a_files_name_is_asked_about_only_where_its_text_says_it(tmp_path: Path) -> None:
    files = {
        "b.txt": "Ada Lovelace worked with Charles Babbage in London. Plan b of Ada Lovelace failed.",
        "notes.txt": "Charles Babbage built the Difference Engine for Ada Lovelace in London.",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    build_index(tmp_path, tmp_path / "out.kraq")
    with Index.open(tmp_path / "out.kraq") as index:
        questions = [question.text for question in index.questions(source="kraq", duplicates=True)]

    assert questions
    assert all("Ada Lovelace" in question or "Babbage" in question for question in questions)


@pytest.mark.parametrize(
    ("title", "document_id", "text", "kept"),
    [
        ("orchids", "garden/orchids.txt", "Orchids grow on trees.", True),
        ("kew_gardens", "kew_gardens.md", "A walk through Kew Gardens.", True),
        ("Snow Patrol", "wiki\\Snow Patrol.txt", "Snow Patrol are a band.", True),
        ("notes", "notes.txt", "Iron rusts where it is wet.", False),
        ("b", "b.md", "Plan b failed.", False),
        ("北京", "北京.txt", "北京 是 首都。", True),
        ("Iron", "notes.txt", "It rusts where it is wet.", True),  # a title of its own, which no file is called
        ("Go", "Go", "A language.", True),  # no file's name: the id of a row
        ("", "notes.txt", "Iron rusts.", True),
    ],
)
def test_a_title_stays_unless_it_is_only_the_name_of_a_file(
    title: str, document_id: str, text: str, kept: bool
) -> None:
    assert asked_title(title, document_id, text) == (title if kept else UNTITLED)
    if not kept:
        assert headings_of(f"{UNTITLED}\n{text}") == []


@pytest.mark.parametrize(("known", "asked"), [("Globex is a maker of rockets in Oslo.", True), ("Globex fell.", False)])
def test_a_small_model_is_asked_about_texts_that_say_what_things_are(
    tmp_path: Path, keyword_embedder: type[KeywordEmbedder], known: str, asked: bool
) -> None:
    (tmp_path / "a.txt").write_text(known)
    (tmp_path / "b.txt").write_text("Acme met Initech in Bern. Then Initech met Acme again.")
    model = DummyLM([{"question": "Who met Acme and Initech?"}] * 100)
    settings = Settings(questions=QuestionSettings(asked_by="mixed", candidates=2))
    build_index(
        tmp_path,
        tmp_path / "out.kraq",
        settings=settings,
        lm={"generator": model},
        embedder=keyword_embedder("Acme", "Globex"),
    )
    with Index.open(tmp_path / "out.kraq") as index:
        texts = {question.text for question in index.questions(source="kraq", duplicates=True)}
    assert ("Who met Acme and Initech?" in texts) is asked
    assert ("Initech, Bern and Acme" in texts) is not asked


def test_a_small_model_is_asked_where_headings_announce_questions(
    tmp_path: Path, keyword_embedder: type[KeywordEmbedder]
) -> None:
    """A manual says of nothing what it is; its sections without such a heading are asked about all the same."""
    (tmp_path / "a.md").write_text("# Connecting an antenna\n\nConnect Acme and Globex. Ask Globex about Acme.")
    (tmp_path / "b.txt").write_text("Initech met Umbrella in Bern. Then Umbrella met Initech again.")
    model = DummyLM([{"question": "Who met Initech and Umbrella?"}] * 100)
    settings = Settings(questions=QuestionSettings(asked_by="mixed", candidates=2))
    embedder = keyword_embedder("Acme", "Initech")
    build_index(tmp_path, tmp_path / "out.kraq", settings=settings, lm={"generator": model}, embedder=embedder)
    with Index.open(tmp_path / "out.kraq") as index:
        texts = {question.text for question in index.questions(source="kraq", duplicates=True)}
    assert "Who met Initech and Umbrella?" in texts


class OneOfThreeUnusable(DummyLM):
    """Asks well, unless the summary is about Oslo, Bern or Rome."""

    def __init__(self) -> None:
        super().__init__([])
        self.calls = 0

    def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
        self.calls += 1
        told = str(messages)
        lost = any(place in told for place in ("Oslo", "Bern", "Rome"))
        text = "What is the summary about?" if lost else "Who met Steel and Rail?"
        self.answers = iter([{"question": text}])
        return super().forward(prompt, messages, **kwargs)


def test_a_named_generator_asks_about_every_summary_and_the_report_counts_who_asked(tmp_path: Path) -> None:
    """Three of its questions are not usable at the second call either: statements are asked about in their place."""
    for place in ("Oslo", "Bern", "Rome", "Lima", "Cairo", "Delhi", "Seoul", "Kyoto", "Quito"):
        (tmp_path / f"{place}.txt").write_text(f"{place} Steel met {place} Rail. Then {place} Rail left {place} Steel.")
    generator = OneOfThreeUnusable()
    report = build_index(tmp_path, tmp_path / "out.kraq", lm={"generator": generator})
    with Index.open(tmp_path / "out.kraq") as index:
        assert index.count(Summary) == 9
        texts = [question.text for question in index.questions(duplicates=True)]
    assert texts.count("Who met Steel and Rail?") == 6
    assert report.asked_by == {"parse": 3, "dummy": 1}  # repeats do not count, as in lists
    assert report.counts["questions"] == 4
    assert report.usage["ask"].calls == generator.calls == 6 + 2 * 3
    assert asked_in_words(report.asked_by) == "4 questions: 3 by the parse of a statement, 1 by dummy"


class OfTheLamp(DummyLM):
    """Summarizes, and asks about a lamp in words of the passages or in others, by its name a small or a large model."""

    def __init__(self, size: str, question: str) -> None:
        reply = {"title": "The lamp", "summary": "The lamp of Harrow.", "findings": "[]", "question": question}
        super().__init__([reply] * 20)
        self.model = f"hosted_vllm/m-{size}"


@pytest.mark.parametrize(
    ("size", "question", "by"),
    [
        ("0.5b", "Who repaired the old lamp of Harrow?", "hosted_vllm/m-0.5b"),
        ("0.5b", "What is the main topic of the seaside community?", PARSE),
        ("0.5b", "Which lamp did Orrin Vale repair in Oslo?", PARSE),
        ("70b", "What is the main topic of the seaside community?", "hosted_vllm/m-70b"),
    ],
)
def test_a_small_models_question_stays_where_a_passage_has_its_words(
    size: str, question: str, by: str, tmp_path: Path
) -> None:
    text = "Mira Tolan repaired the old lamp of Harrow in 1902. Orrin Vale paid Mira Tolan for the lamp of Harrow."
    lm = {"summarizer": OfTheLamp(size, question), "generator": OfTheLamp(size, question)}
    build_index([text], tmp_path / "out.kraq", lm=lm)
    with Index.open(tmp_path / "out.kraq") as index:
        asked = list(index.questions())
    assert {each.model for each in asked} == {by}
    assert (question in {each.text for each in asked}) == (by != PARSE)
    assert all(each.evidence for each in asked if each.model == PARSE or size == "0.5b")


class OfTheQuarry(OfTheLamp):
    """Keeps what it is asked about."""

    def __init__(self, size: str, question: str) -> None:
        super().__init__(size, question)
        self.shown: list[str] = []

    def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
        asked = str((messages or [{}])[-1].get("content", ""))
        if "[[ ## summary ## ]]" in asked:
            self.shown.append(asked)
        return super().forward(prompt, messages, **kwargs)


TALE = "Then they came to the quarry, where the old giant had dug for seven years."
LAMP = "Mira Tolan repaired the old lamp of Harrow in 1902. Orrin Vale paid Mira Tolan for the lamp of Harrow."
DOCUMENTS = [Document("lamp", "Lamp", LAMP), Document("tale", "The giant", TALE)]


def asked_of_both(size: str, question: str, tmp_path: Path) -> tuple[OfTheQuarry, dict[str, str]]:
    """The model that was asked, and who asked each question of an index of a lamp, which has a summary, and of a tale,
    which has none."""
    model = OfTheQuarry(size, question)
    build_index(DOCUMENTS, tmp_path / "out.kraq", lm=lm_of(model))
    with Index.open(tmp_path / "out.kraq") as index:
        assert index.count(Summary) < index.count(Community)
        return model, {each.text: each.model for each in index.questions(duplicates=True)}


def test_a_small_model_sees_a_passage_of_each_community_and_a_large_one_the_summaries(tmp_path: Path) -> None:
    model, _ = asked_of_both("0.5b", "Who repaired the old lamp of Harrow?", tmp_path / "small")
    assert any(f"Lamp\n{LAMP}" in shown for shown in model.shown)
    assert any(f"The giant\n{TALE}" in shown for shown in model.shown)
    assert len(model.shown) == 2  # each passage once

    model, _ = asked_of_both("70b", "Who repaired the old lamp of Harrow?", tmp_path / "large")
    assert [("The lamp of Harrow." in shown, TALE in shown) for shown in model.shown] == [(True, False)]


def test_a_community_without_a_summary_has_the_small_models_question_where_its_passage_answers_it(
    tmp_path: Path,
) -> None:
    """The title of the passage stands before a question that names nothing; the lamp's community, of which the question
    says what its passage does not, is asked about by the parser."""
    _, asked = asked_of_both("0.5b", "What did the old giant do in the quarry?", tmp_path)
    assert asked.pop("In “The giant”, what did the old giant do in the quarry?") == "hosted_vllm/m-0.5b"
    assert set(asked.values()) == {PARSE}


def test_a_community_without_a_summary_has_no_question_where_the_small_models_is_none(tmp_path: Path) -> None:
    model, asked = asked_of_both("0.5b", "Who repaired the old lamp of Harrow?", tmp_path)
    assert asked == {"Who repaired the old lamp of Harrow?": "hosted_vllm/m-0.5b"}
    calls = len(model.shown)
    more = [*DOCUMENTS, Document("tale 2", "", "It rained.")]
    update_index(tmp_path / "out.kraq", more, recluster=True, lm=lm_of(model))
    assert len(model.shown) == calls, "its reply is kept, and not asked for again"


def lm_of(model: DummyLM) -> dict[str, DummyLM]:
    return {"summarizer": model, "generator": model}


def test_a_tuned_small_model_goes_on_seeing_summaries(tmp_path: Path) -> None:
    community_of = Community("c", 0, None, (), ("e",), (), ("p",))
    passages = ListedPassages([Chunk("p", "tale", 0, 0, len(TALE), TALE, 20)])
    entity = Entity("e", "giant", "phrase", "", ("giant",), ("p",))
    summary = Summary("c", "Giants", "A giant dug.", (), "m")

    async def shown(*, is_small: bool) -> list[str]:
        asking = AskedBy(
            [community_of], passages, QuestionSettings(), generator="x/m-0.5b", is_small=is_small, entities=[entity]
        )
        return [each.text async for each in asking.shown([summary], {"c"})]

    assert asyncio.run(shown(is_small=True)) == ["A giant dug."]
    assert asyncio.run(shown(is_small=False)) == [TALE]


def test_a_small_model_that_is_given_extracts_nothing_of_english(tmp_path: Path) -> None:
    text = "Mira Tolan repaired the old lamp of Harrow in 1902. Orrin Vale paid Mira Tolan for the lamp of Harrow."
    report = build_index([text], tmp_path / "out.kraq", lm=OfTheLamp("0.5b", "Who repaired the old lamp of Harrow?"))
    assert set(report.usage) == {"summarize", "ask"}
    assert report.counts["questions"]


def test_templates_and_the_model_share_the_work_where_that_is_asked_for() -> None:
    assert [policy_of(asked_by, "gguf/any") for asked_by in ("auto", "model", "mixed", "templates")] == [
        "model", "model", "mixed", "templates",
    ]  # fmt: skip
    assert policy_of("auto", "embedded") == policy_of("auto", "") == "mixed"
