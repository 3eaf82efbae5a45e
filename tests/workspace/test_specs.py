"""Programs and retrievers are declared once: names, options, and those that other packages add."""

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy.errors import ConfigError
from kraq_dspy.programs import CombinedRetrieveRAG, TraditionalRAG
from kraq_dspy.programs.combined import CombinedOptions
from kraq_dspy.retrievers import AdaptiveRetriever, PageRankRetriever
from kraq_dspy.spec import option, options_of, read_options, words_of
from kraq_dspy.workspace.choices import ProgramChoice, choose_program, choose_retriever, passages_option
from kraq_dspy.workspace.registry import PROGRAMS, RETRIEVERS

PLUGIN = """
from dataclasses import dataclass
import dspy
from kraq_dspy.spec import option
from kraq_dspy.spec import ProgramSpec, RetrieverSpec


@dataclass(frozen=True)
class EchoOptions:
    k: int = option(1, "Passages.", least=1)
    times: int = option(2, "How often the question is said.", least=1)


class Echo(dspy.Module):
    def __init__(self, retrieve, times):
        super().__init__()
        self.retrieve, self.times = retrieve, times

    def forward(self, question):
        hits = self.retrieve(question, 1)
        return dspy.Prediction(answer=" ".join([question] * self.times), hits=hits)


def make_echo(space, retrieve, options):
    return Echo(retrieve, options.times)


def make_nothing(space, options):
    return lambda question, k, **request: []


ECHO = ProgramSpec("echo", "Says the question again.", make_echo, "Echo", EchoOptions)
NOTHING = RetrieverSpec("nothing", "Finds nothing.", make_nothing, "function")
WRONG = "no spec"
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package with a program, a retriever, and two entry points that cannot be loaded."""
    (tmp_path / "echo_plugin.py").write_text(PLUGIN, "utf-8")
    info = tmp_path / "echo_plugin-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-plugin\nVersion: 1.0\n", "utf-8")
    (info / "entry_points.txt").write_text(
        "[kraq_dspy.programs]\necho = echo_plugin:ECHO\nwrong = echo_plugin:WRONG\ngone = echo_plugin:GONE\n"
        "combined = echo_plugin:ECHO\n\n[kraq_dspy.retrievers]\nnothing = echo_plugin:NOTHING\n",
        "utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_a_program_and_a_retriever_of_another_package_stand_among_the_others(plugin: Path) -> None:
    assert {"echo", "combined"} <= set(PROGRAMS.names())
    choice = choose_program("echo", "nothing", {"times": 3})
    assert (choice.spec.class_name, choice.options.times, choice.budget) == ("Echo", 3, 1)
    wrapped = choose_program("qa-search", options={"over": "echo", "times": 4}, measured=True)
    assert wrapped.inner is not None
    assert (wrapped.options.collect, wrapped.inner.options.times) == (False, 4)
    with pytest.raises(ConfigError, match=r"program 'echo' has no option 'tims' \(did you mean 'times'\?\)"):
        choose_program("echo", options={"tims": 3})


def test_an_entry_point_that_cannot_be_loaded_is_named_and_leaves_the_others_alone(
    plugin: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with pytest.raises(ConfigError, match="'wrong' of 'echo_plugin:WRONG' is 'no spec'; expected a ProgramSpec"):
        choose_program("wrong")
    with pytest.raises(ConfigError, match="'gone' of 'echo_plugin:GONE' cannot be loaded: AttributeError"):
        choose_program("gone")
    assert [spec.name for spec in PROGRAMS][-1] == "echo"
    assert PROGRAMS["combined"].class_name == "CombinedRetrieveRAG"
    assert "'combined' of 'echo_plugin:ECHO' is left out: the name is taken" in caplog.text


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("combind", {}, r"no program 'combind' \(did you mean 'combined'\?\); there are: traditional, combined"),
        (
            "combined",
            {"alhpa": 0.5},
            r"'combined' has no option 'alhpa' \(did you mean 'alpha'\?\); its options: n, alpha",
        ),
        ("combined", {"k": "ten"}, "'k' is 'ten'; expected a whole number, 1 or more"),
        ("combined", {"k": True}, "'k' is True; expected a whole number"),
        ("combined", {"k": 0}, "'k' is 0; expected a whole number, 1 or more"),
        ("combined", {"alpha": 1.5}, "'alpha' is 1.5; expected a number from 0 to 1"),
        ("qa-rag", {"variant": "type3"}, "'variant' is 'type3'; expected one of v, type1, type2"),
        ("speculative", {"m": 0}, "'m' is 0; expected a whole number, 1 or more, or none"),
        ("qa-search", {"over": "qa-search"}, "cannot wrap"),
        ("qa-search", {"over": "k2rag", "alpha": 0.5}, "'k2rag' has no option 'alpha'"),
    ],
)
def test_a_wrong_name_or_value_is_refused_with_what_came_and_what_is_expected(
    name: str, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(ConfigError, match=says):
        choose_program(name, options=options)


@pytest.mark.parametrize("name", ["k2rag", "naive-graph", "graph-local"])
def test_a_retriever_is_refused_by_a_program_that_would_not_ask_it(name: str) -> None:
    with pytest.raises(ConfigError, match=f"{name!r} finds its own evidence; it takes no retriever"):
        choose_program(name, "bm25")
    with pytest.raises(ConfigError, match="it takes no retriever"):
        choose_program("qa-search", "bm25", {"over": name})


def test_options_of_a_retriever_are_checked_as_those_of_a_program() -> None:
    assert choose_retriever("adaptive", {"pagerank": 0.5}).options.pagerank == 0.5
    assert choose_retriever("cross-encoder:some/model").options.model == "some/model"
    with pytest.raises(ConfigError, match=r"no retriever 'adaptiv' \(did you mean 'adaptive'\?\)"):
        choose_retriever("adaptiv")
    with pytest.raises(ConfigError, match=r"'adaptive' has no option 'pagernak' \(did you mean 'pagerank'\?\)"):
        choose_retriever("adaptive", {"pagernak": 0.5})
    with pytest.raises(ConfigError, match="'cross-encoder' needs the option 'model'"):
        choose_retriever("cross-encoder")
    with pytest.raises(ConfigError, match="'dense' takes nothing after a colon; found 'x'"):
        choose_retriever("dense:x")
    with pytest.raises(ConfigError, match="cannot wrap itself"):
        choose_retriever("pagerank", {"over": "pagerank"})


@dataclasses.dataclass(frozen=True)
class SomeOptions:
    count: int = option(1, "Of things.", least=1)
    share: float = option(0.5, "Of them.", least=0, most=1)
    window: int | None = option(2, "Around one.")
    strict: bool = option(False, "Or not.")


def test_words_of_a_command_line_become_what_the_option_holds() -> None:
    words = words_of("-P", ["count=3", "share=1", "window=none", "strict=yes"])
    assert read_options("It", SomeOptions, words) == SomeOptions(3, 1.0, None, True)
    with pytest.raises(ConfigError, match="the option 'count' is many; expected a whole number, 1 or more"):
        read_options("It", SomeOptions, words_of("-P", ["count=many"]))
    with pytest.raises(ConfigError, match="-P is 'count'; expected NAME=VALUE"):
        words_of("-P", ["count"])


def test_how_many_passages_is_an_option_of_the_program_or_of_the_one_inside_it() -> None:
    assert [passages_option(name, {}) for name in ("combined", "speculative", "qa-search")] == ["k", "n", "k"]
    assert passages_option("qa-search", {"over": "efficient"}) == "n"
    with pytest.raises(ConfigError, match="'graph-global' is given no number of passages"):
        passages_option("graph-global", {})


def test_what_the_programs_of_the_papers_retrieve_with_in_their_tables_is_dense() -> None:
    def retriever(choice: ProgramChoice) -> str | None:
        return None if choice.retriever is None else choice.retriever.spec.name

    assert retriever(choose_program("combined", paper=True)) == "dense"
    assert retriever(choose_program("combined")) is None  # the index chooses
    assert retriever(choose_program("combined", "bm25", paper=True)) == "bm25"
    assert choose_program("k2rag", paper=True).retriever is None


def test_a_choice_knows_budget_roles_and_what_must_be_prepared() -> None:
    bioasq = choose_program("efficient", options={"preset": "bioasq"})
    assert (bioasq.budget, bioasq.calls_at_once, bioasq.role, bioasq.settings) == (18, 10, "drafter", ("instructed",))
    assert [name for name, _ in bioasq.prepared] == ["instructed"]
    wrapped = choose_program("qa-search", "raptor", {"over": "qa-rag", "k": 7})
    assert (wrapped.budget, wrapped.role) == (7, "answerer")
    assert [name for name, _ in wrapped.prepared] == ["qa-pairs", "raptor"]
    assert choose_program("qa-rag", options={"variant": "v"}).prepared == []


@pytest.mark.parametrize(
    ("declared", "program"),
    [
        (PROGRAMS["traditional"].options, TraditionalRAG),
        (PROGRAMS["combined"].options, CombinedRetrieveRAG),
        (RETRIEVERS["pagerank"].options, PageRankRetriever),
        (RETRIEVERS["adaptive"].options, AdaptiveRetriever),
    ],
)
def test_an_option_defaults_to_what_the_class_defaults_to(declared: type, program: type) -> None:
    parameters = inspect.signature(vars(program)["__init__"]).parameters
    own = {name: each.default for name, each in parameters.items() if each.default is not inspect.Parameter.empty}
    shared = {name: each.default for name, each in options_of(declared).items() if name in own}
    assert shared
    assert {name: own[name] for name in shared} == shared


def test_every_option_of_every_program_and_retriever_says_what_it_does() -> None:
    silent = [
        (spec.name, each.name)
        for specs in (PROGRAMS, RETRIEVERS)
        for spec in specs.own.values()
        for each in options_of(spec.options).values()
        if not each.help.endswith(".")
    ]
    assert silent == []


@pytest.mark.parametrize(
    ("program", "counts"),
    [
        ("combined", {"k": "passages", "n": "questions"}),
        ("speculative", {"n": "passages"}),  # its k are clusters
        ("graph-global", {"k": "reports", "level": "levels"}),
    ],
)
def test_an_option_says_of_what_in_an_index_it_takes_so_many(program: str, counts: dict[str, str]) -> None:
    declared = options_of(PROGRAMS[program].options)
    assert {name: each.counts for name, each in declared.items() if each.counts} == counts


def test_an_option_that_is_no_number_is_refused_with_its_range() -> None:
    assert read_options("It", CombinedOptions, words_of("-P", ["alpha=.7"])).alpha == 0.7
    for value in ("most", "1.5"):
        with pytest.raises(ConfigError, match="expected a number from 0 to 1"):
            read_options("It", CombinedOptions, words_of("-P", [f"alpha={value}"]))
