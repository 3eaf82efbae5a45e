import dataclasses

from kraq_dspy.programs.speculative.presets import SPECULATIVE_PRESETS


def test_presets_are_the_papers_settings() -> None:
    settings = {name: dataclasses.astuple(preset) for name, preset in SPECULATIVE_PRESETS.items()}
    assert settings == {
        "bioasq": (18, 5, 10),
        "hotpotqa": (10, 4, 8),
        "triviaqa": (10, 2, 5),
        "pubhealth": (10, 2, 5),
    }
