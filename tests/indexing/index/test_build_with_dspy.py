"""A build asks the model, and through the adapter, that a DSPy user named; in a notebook's loop too."""

import asyncio
import inspect
from pathlib import Path
from typing import Any

import dspy
import pytest
from dspy.lm15 import Request, Response

from kraq_dspy import Index, Limits, add_documents, build_index
from kraq_dspy.embedded.engine import EmbeddedEngine
from kraq_dspy.errors import BudgetExceededError, ConfigError
from kraq_dspy.indexing import BuildOptions, BuildReport
from kraq_dspy.records import Document
from kraq_dspy.settings import RoleSettings, Settings

DOCUMENTS = [Document("a", "Ada", "Ada Lovelace met Charles Babbage in London. Charles Babbage lived in London.")]
DEAD = Settings(roles={"default": RoleSettings(model="hosted_vllm/m", api_base="http://127.0.0.1:9/v1", retries=0)})


class Engine:
    """The embedded engine under a plain dspy.LM; its asynchronous form is missing, as in many people's own."""

    def __init__(self) -> None:
        self.inner = EmbeddedEngine(None)
        self.systems: list[Any] = []

    def __deepcopy__(self, memo: object) -> "Engine":
        return self

    def complete(self, request: Request) -> Response:
        self.systems.append(request.system)
        return self.inner.complete(request)


def plain(name: str = "somebody/embedded") -> dspy.LM:
    return dspy.LM(name, engine=Engine(), cache=False)


def models_of(path: Path) -> set[str]:
    with Index.open(path) as index:
        return {model for _, model in index.results.usage()}


@pytest.mark.parametrize("way", ["context", "lm", "roles"])
def test_a_dspy_lm_does_all_the_work_and_no_role_of_the_settings(tmp_path: Path, way: str) -> None:
    out, lm = tmp_path / "x.kraq", plain()
    if way == "context":
        with dspy.context(lm=lm):
            report = build_index(DOCUMENTS, out, settings=DEAD)
    else:
        report = build_index(DOCUMENTS, out, settings=DEAD, lm={"default": lm} if way == "roles" else lm)
    assert report.failures == ()
    assert set(report.models.values()) == {"somebody/embedded"}
    assert models_of(out) == {"somebody/embedded"}
    assert sum(usage.calls for usage in report.usage.values()) == len(lm.engine.systems) > 0


def test_a_model_that_is_given_is_nearer_than_the_configured_one(tmp_path: Path) -> None:
    near, far, extractor = plain("near"), plain("far"), plain("extractor")
    with dspy.context(lm=far):
        report = build_index(DOCUMENTS, tmp_path / "x.kraq", lm={"default": near, "extractor": extractor})
    assert (report.models["extractor"], report.models["summarizer"]) == ("extractor", "near")
    assert far.engine.systems == []
    assert models_of(tmp_path / "x.kraq") == {"near", "extractor"}


def test_a_limit_holds_for_a_dspy_lm_and_the_same_call_goes_on(tmp_path: Path) -> None:
    lm = plain()
    with pytest.raises(BudgetExceededError):
        build_index(DOCUMENTS, tmp_path / "x.kraq", lm=lm, limits=Limits(max_calls=1))
    assert len(lm.engine.systems) == 1
    build_index(DOCUMENTS, tmp_path / "x.kraq", lm=lm)
    calls = len(lm.engine.systems)
    build_index(DOCUMENTS, tmp_path / "x.kraq", lm=lm)
    assert len(lm.engine.systems) == calls


def test_an_adapter_that_a_user_configured_writes_the_prompts(tmp_path: Path) -> None:
    lm = plain()
    with dspy.context(adapter=dspy.JSONAdapter()):
        build_index(DOCUMENTS, tmp_path / "x.kraq", lm=lm)
    assert all("JSON object" in str(system) for system in lm.engine.systems)
    calls = len(lm.engine.systems)
    build_index(DOCUMENTS, tmp_path / "x.kraq", lm=lm)
    assert len(lm.engine.systems) > calls  # another adapter is another question


def test_a_build_runs_inside_a_loop_with_the_loops_context(tmp_path: Path) -> None:
    async def cell() -> BuildReport:
        with dspy.context(lm=plain()):
            return build_index(DOCUMENTS, tmp_path / "x.kraq")

    assert set(asyncio.run(cell()).models.values()) == {"somebody/embedded"}


def test_the_cluster_refuses_a_model_that_cannot_travel(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="needs ray: pip install 'kraq-dspy[ray]'")
    from kraq_dspy.settings import RunSettings

    with pytest.raises(ConfigError, match="'somebody/embedded' is an object of this process"):
        build_index(DOCUMENTS, tmp_path / "x.kraq", lm=plain(), settings=Settings(run=RunSettings(runner="ray")))


def test_help_names_every_option_of_a_build() -> None:
    assert set(BuildOptions.__annotations__) <= set(inspect.signature(build_index).parameters)


def test_a_list_of_texts_is_a_corpus(tmp_path: Path) -> None:
    texts = ["Ada Lovelace met Charles Babbage in London.", "Charles Babbage lived in London."]
    report = build_index(texts, tmp_path / "x.kraq")
    assert report.documents.added == 2
    assert add_documents(tmp_path / "x.kraq", [texts[1], "London is in England."]).documents.added == 1


@pytest.mark.parametrize(
    ("corpus", "says"),
    [
        (5, r"corpus is 5 \(int\); expected a file or folder, or a list of documents or of texts"),
        ({"a": "text"}, r"corpus is .*\(dict\)"),
        (["text", 7], r"The corpus holds 7 \(int\); expected documents or texts"),
    ],
)
def test_what_is_no_corpus_is_told_as_such(tmp_path: Path, corpus: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        build_index(corpus, tmp_path / "x.kraq")
    assert not (tmp_path / "x.kraq").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"setings": None}, "unexpected keyword argument 'setings'"),
        ({"settings": {"chunks": 1}}, r"settings is .*dict.*expected a Settings"),
        ({"lm": "openai/gpt-4o"}, r"lm is 'openai/gpt-4o'; expected a dspy\.LM, or one by role"),
        ({"embedder": "minilm"}, r"embedder is 'minilm' \(str\), without name"),
        ({"limits": 5}, r"limits is 5 \(int\); expected a Limits"),
        ({"optimized": "state.json"}, r"optimized is 'state\.json'; expected a list of files"),
    ],
)
def test_an_option_of_the_wrong_kind_is_named_with_what_was_expected(
    tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    with pytest.raises(TypeError, match=says):
        build_index(DOCUMENTS, tmp_path / "x.kraq", **options)
    assert not (tmp_path / "x.kraq").exists()
