"""Writes rows in the shape that the hub gives them, and reads them by `datasets` itself, without a network."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.errors import EvaluationError
from kraq_dspy.eval import Dataset, fetch_dataset, load_dataset
from kraq_dspy.eval.datasets import NAMES, sources
from kraq_dspy.eval.datasets.hub import HubTable, as_rows, fetch_tables
from tests.conftest import WarmShell

HOTPOT = {
    "id": "h1",
    "question": "Were A and B of one nationality?",
    "answer": "yes",
    "type": "comparison",
    "level": "hard",
    "supporting_facts": {"title": ["A", "B", "A"], "sent_id": [0, 0, 1]},
    "context": {"title": ["C", "A", "B"], "sentences": [["C is.", " It is far."], ["A is."], ["B is."]]},
}
TRIVIA = {
    "question_id": "tc_1",
    "question": "Which musical?",
    "answer": {"value": "Sunset Boulevard", "aliases": ["Sunset Blvd", "Sunset Boulevard", "."]},
    "entity_pages": {
        "filename": ["Sunset.txt", "Other.txt", "Empty.txt"],
        "title": ["Sunset", "Other", "Empty"],
        "wiki_context": ["It was Sunset Boulevard in 1993.", "The sunset on the boulevard.", ""],
    },
    "search_results": {
        "filename": ["1.txt"],
        "title": ["Page"],
        "search_context": ["SUNSET BLVD opened."],
    },
}
PUB_HEALTH = [
    {"claim_id": "1", "claim": "Lemons cure.", "main_text": "They do not.", "label": 0},
    {"claim_id": "2", "claim": "Water helps.", "main_text": "It does.", "label": 2},
    {"claim_id": "3", "claim": "Who knows.", "main_text": "Nobody.", "label": 3},
    {"claim_id": "4", "claim": "No label.", "main_text": "Text.", "label": -1},
    {"claim_id": "5", "claim": "It depends.", "main_text": "Yes and no.", "label": 1},
    {"claim_id": "6", "claim": "No text.", "main_text": "", "label": 1},
]
MUSIQUE = [
    {
        "id": "2hop__1_2",
        "question": "Who?",
        "answer": "G. Stanley Hall",
        "answer_aliases": ["Stanley Hall"],
        "answerable": True,
        "paragraphs": [
            {"idx": 0, "title": "Journal", "paragraph_text": "It is published.", "is_supporting": True},
            {"idx": 1, "title": "Noise", "paragraph_text": "It is loud.", "is_supporting": False},
        ],
        "question_decomposition": [{"id": 1, "question": "a", "answer": "b", "paragraph_support_idx": 0}],
    },
    {
        "id": "2hop__3_4",
        "question": "Unanswerable?",
        "answer": "x",
        "answer_aliases": [],
        "answerable": False,
        "paragraphs": [{"idx": 0, "title": "T", "paragraph_text": "t", "is_supporting": False}],
        "question_decomposition": [{"id": 3, "question": "c", "answer": "d", "paragraph_support_idx": 0}],
    },
]
DOLLY = [
    {"instruction": "When?", "context": "It was in 1990.", "response": "1990", "category": "closed_qa"},
    {"instruction": "When?", "context": "It was in 1990.", "response": "1990", "category": "closed_qa"},
    {"instruction": "Write a poem.", "context": "", "response": "Roses", "category": "creative_writing"},
]
MULTIHOP_CORPUS = [
    {"title": "One", "body": "First article.", "url": "u1", "source": "S", "category": "tech", "published_at": "2023"},
    {"title": "Two", "body": "Second article.", "url": "u2", "source": "S", "category": "tech", "published_at": "2023"},
]
MULTIHOP = [
    {
        "query": "Who?",
        "answer": "SBF",
        "question_type": "inference_query",
        "evidence_list": [{"url": "u1", "fact": "f1"}, {"url": "u2", "fact": "f2"}, {"url": "u1", "fact": "f3"}],
    },
    {"query": "Nothing?", "answer": "Insufficient information.", "question_type": "null_query", "evidence_list": []},
]
NARRATIVE = [
    {
        "document": {"id": "s1", "kind": "gutenberg", "summary": {"title": "Tale"}, "text": "Once upon a time."},
        "question": {"text": question},
        "answers": [{"text": "Ann"}, {"text": "Ann Lee"}],
    }
    for question in ("Who?", "Where?")
]


def reply(spans: Sequence[str] = (), free: str = "", yes_no: bool | None = None, evidence: Sequence[str] = ()) -> Any:
    """An annotator's answer in QASPER; unanswerable if it has none."""
    return {
        "unanswerable": not spans and not free and yes_no is None,
        "extractive_spans": list(spans),
        "free_form_answer": free,
        "yes_no": yes_no,
        "evidence": list(evidence),
    }


QASPER = {
    "id": "1911.1",
    "title": "Paper",
    "abstract": "We abstract.",
    "full_text": {"section_name": ["Intro", "Method"], "paragraphs": [["We do.", ""], ["We seed."]]},
    "qas": {
        "question": ["What?", "Is it?", "Why?"],
        "question_id": ["a", "b", "c"],
        "answers": [
            {
                "answer": [
                    reply(["seed", "lexicon"], evidence=["We seed.", "FLOAT SELECTED: Table 1"]),
                    reply(free="a seed", evidence=["We do."]),
                ]
            },
            {"answer": [reply(yes_no=False)]},
            {"answer": [reply()]},
        ],
    },
}
OPENBOOK = {
    "id": "7-980",
    "question_stem": "The sun is responsible for",
    "choices": {"text": ["puppies", "plants sprouting"], "label": ["A", "B"]},
    "answerKey": "B",
    "fact1": "the sun is the source of energy",
}
CMMLU = [
    {"Question": "高床?", "A": "1", "B": "2", "C": "3", "D": "4", "Answer": "B"},
    {"Question": "心?", "A": "1", "B": "2", "C": "3", "D": "4", "Answer": "D"},
    {"Question": "土?", "A": "1", "B": "2", "C": "3", "D": "4", "Answer": "A"},
]


def stored(folder: Path, name: str, **tables: list[Any]) -> Dataset:
    """The data set after its rows were saved by `datasets` and read from disk."""
    for table, rows in tables.items():
        import datasets  # brings torch

        datasets.Dataset.from_list(rows).save_to_disk(str(folder / name / table))
    return load_dataset(name, folder)


def test_hotpot_qa(tmp_path: Path) -> None:
    dataset = stored(tmp_path, "hotpot_qa", questions=[HOTPOT, {**HOTPOT, "id": "h2"}])
    assert [document.id for document in dataset.documents] == ["C", "A", "B"]
    assert dataset.documents[0].text == "C is. It is far."
    example = dataset.examples[0]
    assert (example.answers, example.supporting_ids, example.context_ids) == (("yes",), ("A", "B"), ("C", "A", "B"))
    assert example.type == "comparison"


def test_trivia_qa_marks_the_pages_in_which_an_alias_occurs(tmp_path: Path) -> None:
    dataset = stored(tmp_path, "trivia_qa", questions=[TRIVIA])
    (example,) = dataset.examples
    assert example.context_ids == ("wikipedia/Sunset.txt", "wikipedia/Other.txt", "web/1.txt")
    assert example.supporting_ids == ("wikipedia/Sunset.txt", "web/1.txt")
    assert example.answers == ("Sunset Boulevard", "Sunset Blvd", ".")


def test_pub_health_leaves_unproven_unlabelled_and_empty_claims_out(tmp_path: Path) -> None:
    more = {"claim_id": "7", "claim": "From train.", "main_text": "Text.", "label": 0}
    dataset = stored(tmp_path, "pub_health", claims=PUB_HEALTH, train=[more, PUB_HEALTH[0]])
    assert [(example.question, example.answers[0]) for example in dataset.examples] == [
        ("Lemons cure.", "false"),
        ("Water helps.", "true"),
        ("It depends.", "mixture"),
        ("From train.", "false"),
    ]
    assert dataset.documents[0].text == "They do not."
    assert dataset.examples[0].supporting_ids == (dataset.documents[0].id,)


def test_cmu_questions_that_recur_have_all_their_answers(tmp_path: Path) -> None:
    rows = [{"INSTRUCTION": "Is it old?", "RESPONSE": answer} for answer in ("Yes.", "yes", "Yes.")]
    dataset = stored(tmp_path, "cmu_wiki_qa", questions=[*rows, {"INSTRUCTION": "Why?", "RESPONSE": ""}])
    assert [(example.question, example.answers) for example in dataset.examples] == [("Is it old?", ("Yes.", "yes"))]
    assert dataset.documents == ()


def test_lhm_questions_share_the_text_of_their_service(tmp_path: Path) -> None:
    service = {"title": "Reisepass", "context": "Der Pass kostet 60 Euro."}
    questions = [
        {**service, "question": question, "answers": {"text": ["60 Euro"], "answer_start": [16]}}
        for question in ("Was kostet ein Pass?", "Wie teuer ist er?")
    ]
    dataset = stored(tmp_path, "lhm", test=questions[:1], train=questions)
    assert [example.question for example in dataset.examples] == ["Was kostet ein Pass?", "Wie teuer ist er?"]
    [document] = dataset.documents
    assert {example.supporting_ids for example in dataset.examples} == {(document.id,)}


def test_bioasq_takes_abstracts_that_lie_beside_its_files(tmp_path: Path) -> None:
    base = "http://www.ncbi.nlm.nih.gov/pubmed/"
    factoid = {"type": "factoid", "exact_answer": [["A"]], "snippets": [{"text": "A snippet.", "document": f"{base}9"}]}
    questions = [
        {**factoid, "id": "1", "body": "Which?", "documents": [f"{base}7", f"{base}8"]},
        {**factoid, "id": "2", "body": "What?", "documents": [f"{base}8"]},
    ]
    (tmp_path / "bioasq").mkdir()
    (tmp_path / "bioasq" / "12B1_golden.json").write_text(json.dumps({"questions": questions}))
    (tmp_path / "bioasq" / "abstracts.jsonl").write_text('{"pmid": "7", "title": "T", "text": "An abstract."}\n')
    first, second = (dataset := load_dataset("bioasq", tmp_path)).examples
    texts = {document.id: document.text for document in dataset.documents}
    assert [texts[id] for id in first.supporting_ids] == ["An abstract."]
    assert [texts[id] for id in second.supporting_ids] == ["A snippet."]


def test_musique_keeps_the_answerable_questions(tmp_path: Path) -> None:
    (example,) = (dataset := stored(tmp_path, "musique", questions=MUSIQUE)).examples
    assert (example.type, example.answers) == ("2hop", ("G. Stanley Hall", "Stanley Hall"))
    assert [document.title for document in dataset.documents] == ["Journal", "Noise"]
    assert example.supporting_ids == (dataset.documents[0].id,)
    assert example.context_ids == tuple(document.id for document in dataset.documents)


def test_dolly_keeps_instructions_with_a_passage_once(tmp_path: Path) -> None:
    dataset = stored(tmp_path, "dolly", instructions=DOLLY)
    assert [(example.question, example.answers, example.type) for example in dataset.examples] == [
        ("When?", ("1990",), "closed_qa")
    ]
    assert dataset.documents[0].text == "It was in 1990."


def test_multihop_rag_joins_the_two_tables_by_address(tmp_path: Path) -> None:
    dataset = stored(tmp_path, "multihop_rag", questions=MULTIHOP, corpus=MULTIHOP_CORPUS)
    inference, null = dataset.examples
    assert inference.supporting_ids == ("u1", "u2")
    assert (null.supporting_ids, null.answers) == ((), ("Insufficient information.",))
    assert dataset.documents[0].metadata == {"source": "S", "category": "tech", "published_at": "2023"}


def test_narrative_qa_numbers_the_questions_of_a_story(tmp_path: Path) -> None:
    dataset = stored(tmp_path, "narrative_qa", questions=NARRATIVE)
    assert [(example.id, example.question) for example in dataset.examples] == [("s1-0", "Who?"), ("s1-1", "Where?")]
    assert dataset.examples[0].answers == ("Ann", "Ann Lee")
    assert [(document.title, document.text) for document in dataset.documents] == [("Tale", "Once upon a time.")]


def test_qasper_has_paragraphs_as_documents_and_answers_of_every_annotator(tmp_path: Path) -> None:
    dataset = stored(tmp_path, "qasper", papers=[QASPER])
    texts = {document.id: (document.title, document.text) for document in dataset.documents}
    assert texts == {
        "1911.1-abstract": ("Paper", "We abstract."),
        "1911.1-0.0": ("Paper: Intro", "We do."),
        "1911.1-1.0": ("Paper: Method", "We seed."),
    }
    what, is_it, why = dataset.examples
    assert (what.type, what.answers) == ("extractive", ("seed, lexicon", "a seed"))
    assert what.supporting_ids == ("1911.1-1.0", "1911.1-0.0")
    assert (is_it.type, is_it.answers) == ("boolean", ("no",))
    assert (why.type, why.answers) == ("unanswerable", ())


def test_openbook_qa_has_its_facts_as_documents(tmp_path: Path) -> None:
    dataset = stored(tmp_path, "openbook_qa", questions=[OPENBOOK, {**OPENBOOK, "id": "7-981"}])
    assert len(dataset.documents) == 1
    assert dataset.examples[0].answers == ("plants sprouting",)


def test_cmmlu_numbers_the_questions(tmp_path: Path) -> None:
    dataset = stored(tmp_path, "cmmlu", questions=CMMLU)
    assert [(example.id, example.answers) for example in dataset.examples] == [
        ("cmmlu-0", ("2",)),
        ("cmmlu-1", ("4",)),
        ("cmmlu-2", ("1",)),
    ]
    assert dataset.documents == ()


GOLDEN = {
    "questions": [
        {
            "id": "b1",
            "body": "Which drugs?",
            "type": "list",
            "exact_answer": [["Humira", "adalimumab"], ["infliximab"]],
            "ideal_answer": ["These."],
            "snippets": [
                {"text": "Humira helps.", "document": "pubmed/123", "beginSection": "abstract"},
                {"text": "Humira helps.", "document": "pubmed/123", "beginSection": "abstract"},
            ],
        },
        {"id": "b2", "body": "Does it?", "type": "yesno", "exact_answer": "no", "ideal_answer": "It does not."},
        {"id": "b3", "body": "Which?", "type": "factoid", "exact_answer": ["PMS2", "pms2 gene"]},
        {"id": "b4", "body": "What is it?", "type": "summary", "ideal_answer": ["A disease."]},
        {"id": "b5", "body": "Which two?", "type": "list", "exact_answer": ["a", "b"]},
    ]
}


def test_bioasq_is_read_from_golden_files_that_fetch_takes_over(tmp_path: Path) -> None:
    golden = tmp_path / "12B1_golden.json"
    golden.write_text(json.dumps(GOLDEN))
    fetch_dataset("bioasq", tmp_path / "data", files=[golden])
    dataset = load_dataset("bioasq", tmp_path / "data")
    drugs, does_it, which, what, two = dataset.examples
    assert drugs.answer_items == (("Humira", "adalimumab"), ("infliximab",))
    assert drugs.answers == ("Humira", "adalimumab", "infliximab")
    assert drugs.supporting_ids == (dataset.documents[0].id,)
    assert dataset.documents[0].metadata == {"section": "abstract"}
    assert does_it.answers == ("no",)
    assert (which.answers, which.answer_items) == (("PMS2", "pms2 gene"), ())
    assert what.answers == ("A disease.",)
    assert two.answer_items == (("a",), ("b",))


def test_bioasq_refuses_other_files_and_says_how_to_get_the_right_ones(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("[1]")
    with pytest.raises(EvaluationError, match=r"other.json is no BioASQ golden file"):
        fetch_dataset("bioasq", tmp_path, files=[other])
    with pytest.raises(EvaluationError, match="Register with BioASQ"):
        load_dataset("bioasq", tmp_path)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "bioasq"])
def test_an_absent_set_is_an_error_with_the_command_that_gets_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(EvaluationError, match=f"kraq bench fetch {name} --out"):
        load_dataset(name, tmp_path)


def test_an_absent_set_is_said_to_be_so_where_its_package_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(EvaluationError, match=r"hotpot_qa.* is missing.*--data DIR"):
        load_dataset("hotpot_qa", tmp_path)


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="Known: bioasq, cmmlu, cmu_wiki_qa, dolly"):
        load_dataset("nonesuch", tmp_path)


def test_fetching_offline_fails_in_one_line_and_leaves_nothing_half_done(tmp_path: Path) -> None:
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "cache")}
    words = [sys.executable, "-m", "kraq_dspy", "bench", "fetch", "hotpot_qa"]
    done = subprocess.run(words, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 1
    assert "could not be fetched from the hub" in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "data" / "hotpot_qa" / "questions").exists()


def test_sets_that_are_there_are_listed_as_such(kraq: WarmShell, tmp_path: Path) -> None:
    stored(tmp_path / "data", "hotpot_qa", questions=[HOTPOT])
    done = kraq("bench", "data", "--json", cwd=tmp_path)
    assert json.loads(done.stdout)["here"] == ["hotpot_qa"]


def test_fetching_saves_what_datasets_loads_and_keeps_what_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = tmp_path / "repository" / "data"
    repository.mkdir(parents=True)
    import datasets

    datasets.Dataset.from_list([HOTPOT]).to_parquet(str(repository / "validation-00000.parquet"))
    table = HubTable("questions", str(repository.parent), "default", "validation")
    source = sources.Source(sources.hotpot_qa, (table,))
    monkeypatch.setattr(sources, "SOURCES", {**sources.SOURCES, "hotpot_qa": source})
    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    fetch_dataset("hotpot_qa", tmp_path / "data")
    assert [example.id for example in load_dataset("hotpot_qa", tmp_path / "data").examples] == ["h1"]
    (repository / "validation-00000.parquet").unlink()
    fetch_dataset("hotpot_qa", tmp_path / "data")  # nothing to fetch, so nothing is missed
    assert len(load_dataset("hotpot_qa", tmp_path / "data").examples) == 1


def test_a_repository_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="could not be fetched from the hub"):
        fetch_tables("x", [HubTable("t", str(tmp_path / "absent"))], tmp_path)


@pytest.mark.parametrize("nested", [{"a": [1, 2], "b": ["x", "y"]}, [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]])
def test_nested_tables_are_rows_in_either_form(nested: Mapping[str, Any] | list[Any]) -> None:
    assert list(as_rows(nested)) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    assert list(as_rows(None)) == []
