"""An estimate follows from the size of the corpus, and leaves out what is paid already."""

from pathlib import Path

import pytest

from kraq_dspy import Limits, build_index
from kraq_dspy.errors import BudgetExceededError, CorpusError
from kraq_dspy.indexing.index.estimate import estimate_corpus, estimate_index
from kraq_dspy.records import Document, Usage
from kraq_dspy.settings import ExtractSettings, QuestionSettings, RoleSettings, Settings

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


def test_money_is_summed_over_stages_and_absent_without_prices() -> None:
    priced = Settings(roles={"default": RoleSettings(model="openai/x", prompt_price=1.0, completion_price=2.0)})
    estimate = estimate_corpus(DOCUMENTS, priced)
    expected = estimate.expected
    assert estimate.cost == pytest.approx((expected.prompt_tokens + 2 * expected.completion_tokens) / 1e6)
    assert estimate_corpus(DOCUMENTS, Settings(roles={"default": RoleSettings(model="openai/x")})).cost is None
    with pytest.raises(CorpusError):
        estimate_corpus([])


def test_the_range_holds_what_the_embedded_model_then_asks(tmp_path: Path) -> None:
    estimate = estimate_corpus(DOCUMENTS)
    used = sum(build_index(DOCUMENTS, tmp_path / "i.kraq").usage.values(), Usage())
    assert 0.1 * estimate.expected.calls <= used.calls <= 1.6 * estimate.expected.calls


def test_of_an_index_under_way_what_was_paid_is_left_out(tmp_path: Path) -> None:
    settings = Settings(extract=ExtractSettings(gleanings=0))
    with pytest.raises(BudgetExceededError):
        build_index(DOCUMENTS, tmp_path / "i.kraq", settings=settings, limits=Limits(max_calls=5))
    assert estimate_index(tmp_path / "i.kraq").stages[0].expected.calls == 7
    build_index(DOCUMENTS, tmp_path / "i.kraq", settings=settings)
    assert estimate_index(tmp_path / "i.kraq").stages[0].expected == Usage()


def test_questions_of_templates_cost_nothing() -> None:
    texts = ["Ada met Babbage in London. " * 400]

    def asked(settings: Settings) -> int:
        return {stage.stage: stage.expected.calls for stage in estimate_corpus(texts, settings).stages}["ask"]

    real = {"default": RoleSettings(model="openai/x")}
    assert asked(Settings(roles=real)) > 0
    assert asked(Settings(roles=real, questions=QuestionSettings(asked_by="templates"))) == 0
    assert asked(Settings()) == 0


def test_acronyms_are_priced_where_a_language_model_will_be_asked_about_them() -> None:
    texts = ["The Universidad de Buenos Aires, which is called the UBA, is in Argentina. " * 400]
    real = Settings(roles={"default": RoleSettings(model="openai/x")})

    def confirmed(settings: Settings) -> int:
        stages = {stage.stage: stage.expected.calls for stage in estimate_corpus(texts, settings).stages}
        return stages["confirm"]

    assert confirmed(real) > 0
    assert confirmed(Settings()) == 0
