"""An estimate of an index under way knows what is paid already and how much is still to be asked."""

from pathlib import Path

import pytest
from stand_in import stand_in

from kraq_dspy.build.index.build import build_index
from kraq_dspy.build.index.estimate import estimate_corpus, estimate_index
from kraq_dspy.errors import BudgetExceededError, CorpusError
from kraq_dspy.models.lms.meter import Limits
from kraq_dspy.records import Document
from kraq_dspy.settings import EncoderSettings, ExtractSettings, ResolveSettings, RoleSettings, Settings

NAMES = ("Ada", "Babbage", "Byron", "Shelley", "Turing", "Hopper")
DOCUMENTS = [
    Document(
        f"d{n}", f"Note {n}", f"{NAMES[n % 6]} met {NAMES[(n + 1) % 6]} in London. {NAMES[n % 6]} wrote {n} letters."
    )
    for n in range(12)
]


@pytest.mark.parametrize("gleanings", [0, 1])
def test_extraction_calls_follow_from_the_corpus(gleanings: int) -> None:
    estimate = estimate_corpus(DOCUMENTS, Settings(extract=ExtractSettings(gleanings=gleanings)))
    assert estimate.stages[0].expected.calls == 12 * (1 + gleanings)
    assert estimate.stages[0].exact_calls


def test_a_sample_stands_for_a_larger_corpus() -> None:
    sampled = estimate_corpus(DOCUMENTS, rehearse=6)
    assert sampled.rehearsed == 6
    assert sampled.stages[0].expected.calls == 24
    whole = estimate_corpus(DOCUMENTS)
    assert sampled.low.calls <= whole.expected.calls <= sampled.high.calls


def test_money_is_summed_over_stages_and_absent_without_prices() -> None:
    priced = Settings(roles={"default": RoleSettings(model="openai/x", prompt_price=1.0, completion_price=2.0)})
    estimate = estimate_corpus(DOCUMENTS, priced)
    expected = estimate.expected
    assert estimate.cost == pytest.approx((expected.prompt_tokens + 2 * expected.completion_tokens) / 1e6)
    assert estimate.cost_high == pytest.approx(
        (estimate.high.prompt_tokens + 2 * estimate.high.completion_tokens) / 1e6
    )
    assert estimate_corpus(DOCUMENTS, Settings(roles={"default": RoleSettings(model="openai/x")})).cost is None
    with pytest.raises(CorpusError):
        estimate_corpus([])


def test_once_extracted_the_calls_of_the_other_stages_are_exact(tmp_path: Path) -> None:
    with stand_in() as server:
        settings = Settings(
            encoder=EncoderSettings(name="stand-in", api_base=server.url),
            resolve=ResolveSettings(semantic=False),
            roles={"default": RoleSettings(model="hosted_vllm/stand-in", api_base=server.url, structured="none")},
        )
        with pytest.raises(BudgetExceededError):
            build_index(DOCUMENTS, tmp_path / "i.kraq", settings=settings, limits=Limits(max_calls=24))
        before = server.stats()["requests"]
        expected = estimate_index(tmp_path / "i.kraq", settings)
        assert server.stats()["requests"] == before
        report = build_index(DOCUMENTS, tmp_path / "i.kraq", settings=settings)
    assert report.failures == ()
    calls = {stage.stage: stage.expected.calls for stage in expected.stages if stage.expected.calls}
    assert calls == {stage: used.calls for stage, used in report.usage.items()}
    assert all(stage.exact_calls for stage in expected.stages)


def test_acronyms_are_priced_where_a_language_model_will_be_asked_about_them() -> None:
    texts = ("The UBA is in Buenos Aires.", "The Universidad de Buenos Aires is in Argentina.")
    documents = [Document(f"d{n}", "", text) for n, text in enumerate(texts)]
    real = Settings(roles={"default": RoleSettings(model="openai/x")})

    def confirmed(settings: Settings) -> int:
        stages = {stage.stage: stage.expected.calls for stage in estimate_corpus(documents, settings).stages}
        return stages["confirm"]

    assert (confirmed(real), confirmed(Settings())) == (1, 0)
