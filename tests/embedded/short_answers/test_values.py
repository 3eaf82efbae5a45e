"""Values are found in a sentence with their kind and their size in the kind's base unit."""

import pytest

from kraq_dspy.embedded.short_answers.values import values_in


@pytest.mark.parametrize(
    ("told", "kind", "size"),
    [
        ("12 km", "length", 12_000.0),
        ("twenty miles", "length", 32_186.0),
        ("0.5–0.9 m", "length", 0.9),
        ("30 square miles", "area", 30 * 2.59e6),
        ("4 m²", "area", 4.0),
        ("14.5kg", "mass", 14_500.0),
        ("-18 °C", "temperature", -18.0),
        ("3 kWh", "energy", 10.8e6),
        ("230 V", "voltage", 230.0),
        ("90 km/h", "speed", 90.0),
        ("7 %", "percent", 7.0),
        ("12 crowns", "money", 12.0),
        ("between 5 and 7 bars", "pressure", 7e5),
    ],
)
def test_a_measure_is_found_by_its_unit(told: str, kind: str, size: float) -> None:
    [value] = values_in(f"The report of the committee says {told}, as a rule.")
    assert (value.kind, value.text) == (kind, told)
    assert value.size == pytest.approx(size)


def test_a_number_without_a_unit_is_a_number() -> None:
    assert [value.kind for value in values_in("They counted 12 boats, 3 mills and 40 men.")] == ["number"] * 3
