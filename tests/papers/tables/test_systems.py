"""An entry of a table names its settings and its models, and is refused where it cannot."""

from pathlib import Path
from typing import Any

import pytest

from kraq_dspy import Workspace, build_index
from kraq_dspy.errors import ConfigError
from kraq_dspy.indexing.prepare.preparations import PREPARATIONS
from kraq_dspy.papers.catalogue import PaperTable, TablePart
from kraq_dspy.papers.tables.systems import distinct, program_of, require_steps, settings_of
from kraq_dspy.papers.tables.table import DEFINITIONS, System, read_table, table_from_dict
from kraq_dspy.ports import SilentProgress
from kraq_dspy.settings import RoleSettings, Settings
from tests.conftest import KeywordEmbedder


def test_a_system_has_sections_and_roles_of_its_own() -> None:
    settings = Settings(roles={"default": RoleSettings(), "generator": RoleSettings(model="gguf/tuned.gguf")})
    options = {"settings": {"chunks": {"tokens": 200, "overlap": 0}}, "roles": {"generator": "default"}}
    own = settings_of(System("x", "kraq", options), settings)
    assert (own.chunks.tokens, own.role("generator").model) == (200, "embedded")
    assert (settings.chunks.tokens, settings.role("generator").model) == (300, "gguf/tuned.gguf")


def test_the_naive_graph_of_the_papers_table_is_told_by_the_quantised_model_and_answered_by_the_other(
    tmp_path: Path,
) -> None:
    [naive] = [each for each in read_table(DEFINITIONS / "k2rag.toml").systems if each.name == "naive-graph"]
    embedder = KeywordEmbedder("ada", "charles")
    build_index(["Ada met Charles in London."], tmp_path / "a.kraq", embedder=embedder)

    with Workspace.open(tmp_path / "a.kraq", embedder=embedder, write=True) as space:
        PREPARATIONS["graph"].make(space, PREPARATIONS["graph"].options(), SilentProgress())
        program = space.make_program(program_of(naive))
        assert program.tell.by_role.role == "default"
        assert program.answer.by_role.role == "answerer"
        with pytest.raises(ConfigError, match="'x': there is no step 'ask'; the steps are answer, tell"):
            require_steps(System("x", "naive-graph", {"step_roles": {"ask": "default"}}), program)


def test_a_system_that_would_be_another_one_once_more_is_left_out_with_a_note() -> None:
    systems = [System("tuned", "kraq"), System("instruct", "kraq", {"roles": {"generator": "default"}})]
    kept, notes = distinct(systems, Settings())
    assert [system.name for system, _ in kept] == ["tuned"]
    assert notes == ["instruct is left out: its generator is the same model as that of tuned."]
    tuned = Settings(roles={"default": RoleSettings(), "generator": RoleSettings(temperature=0.5)})
    assert len(distinct(systems, tuned)[0]) == 2


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"settings": {"chunk": {}}}, "chunk"),
        ({"settings": {"chunks": {"size": 1}}}, "size"),
        ({"roles": {"generator": "wizard"}}, "no role 'wizard'"),
        ({"step_roles": {"tell": "wizard"}}, "no role 'wizard'"),
    ],
)
def test_what_is_not_known_is_refused_with_the_systems_name(options: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=f"'x': .*{says}"):
        settings_of(System("x", "kraq", options), Settings())


def content(**changes: Any) -> dict[str, Any]:
    system = {"name": "{variant} over {retriever}", "program": "qa-rag", "k": 3}
    lists = {"retriever": ["dense", "bm25"], "variant": ["v", "type1"]}
    return {"title": "T", "kind": "answers", "baseline": "v over dense", "systems": [{**system, **lists}], **changes}


def test_an_entry_with_lists_stands_for_every_combination() -> None:
    table = table_from_dict("t", content())
    assert [system.name for system in table.systems] == [
        "v over dense", "type1 over dense", "v over bm25", "type1 over bm25",
    ]  # fmt: skip
    assert table.systems[3].options == {"retriever": "bm25", "variant": "type1", "k": 3}


def test_an_ablation_may_fix_other_options_which_a_data_set_does_not_overrule() -> None:
    entry = {"of": "v over dense", "parameter": "k", "values": [3, 5], "with": {"variant": "type2"}}
    table = table_from_dict("t", content(ablations=[entry], options={"squad": {"k": 9, "variant": "v"}}))
    by_name = {system.name: system.options for system in table.systems_for("squad")}
    assert by_name["v over dense"]["k"] == 9
    assert by_name["v over dense, variant=type2, k=3"]["k"] == 3
    assert by_name["v over dense, variant=type2, k=5"]["variant"] == "type2"


def figure(**changes: Any) -> PaperTable:
    names = ("v over bm25", "type1 over bm25")
    rows = tuple(TablePart(name, systems=(name,)) for name in names)
    columns = (TablePart("F1", metric="token_f1"), TablePart("s", metric="latency"))
    return PaperTable("p-1", "P", "1", "", "", "", ("squad",), rows, columns, "t", **changes)


def test_a_papers_table_takes_its_systems_and_its_metrics() -> None:
    part = table_from_dict("t", content(metrics=["exact_match", "token_f1"])).for_paper(figure())
    assert [system.name for system in part.systems] == ["v over bm25", "type1 over bm25"]
    assert (part.metrics, part.baseline, part.papers, part.datasets) == (
        ("token_f1",), "v over bm25", ("p-1",), ("squad",),
    )  # fmt: skip


def test_the_papers_options_and_samples() -> None:
    paper = {"tokens": 50, "samples": {"triviaqa": 300}, "options": {"qa-rag": {"k": 10}}}
    table = table_from_dict("t", content(paper=paper))
    assert {system.options["k"] for system in table.as_in_paper().systems} == {10}
    assert (table.paper.sample("trivia_qa"), table.paper.sample("squad")) == (300, None)
    with pytest.raises(ConfigError, match="section paper"):
        table_from_dict("t", content(paper={"pages": 3}))


def test_a_papers_table_may_set_more_than_its_definition() -> None:
    table = table_from_dict("t", content(paper={"settings": {"questions": {"names": 0}}}))
    assert table.for_paper(figure()).paper == table.paper
    more = table.for_paper(figure(settings={"questions": {"random_least": 3}, "chunks": {"overlap": 0}}))
    assert more.paper.settings == {"questions": {"names": 0, "random_least": 3}, "chunks": {"overlap": 0}}


@pytest.mark.parametrize("changes", [{"references": "oracle"}, {"faq": "found"}])
def test_references_and_faq_caches_of_unknown_kinds_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match="expected one of gold"):
        table_from_dict("t", content(**changes))


def test_a_table_of_ones_own_finds_with_the_indexs_retriever_and_the_papers_with_theirs() -> None:
    system = System("combined", "combined", {"k": 4})
    assert program_of(system, paper=False).retriever is None  # the index chooses
    assert program_of(system, paper=True).retriever is not None
    assert not table_from_dict("mine", content()).of_papers
    assert read_table(DEFINITIONS / "combined.toml").of_papers
