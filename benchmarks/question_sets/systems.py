"""Names the generators that are compared: each with its environment, its script, and what it is shown."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType


@dataclass(frozen=True)
class System:
    """`peer` is None for this library, which runs in the Python that runs the benchmark.

    `shown` says what its questions are about: "passage", one of them at a time; "summary", a community's; "passages",
    some by chance. The model is that of the server, unless the options name another.
    """

    name: str
    title: str
    peer: str | None
    script: str
    shown: str
    options: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def is_served(self) -> bool:
        return "model" not in self.options


def _ours(name: str, title: str, shown: str, **options: object) -> System:
    return System(name, title, None, "with_kraq.py", shown, MappingProxyType(options))


ALL = (
    _ours("kraq", "KRAQ", "summary"),
    _ours("kraq-tuned", "KRAQ, the tuned generator", "summary", model="gguf/smollm2-135m", adapter="kraq-questions"),
    _ours("kraq-templates", "KRAQ, embedded templates", "summary", model="embedded"),
    _ours("random", "Random", "passages"),
    _ours("random-templates", "Random, embedded templates", "passages", model="embedded"),
    System("ragas", "RAGAS 0.4.3", "ragas", "with_ragas.py", "passage"),
    System(
        "deepeval", "DeepEval 4.3.1", "deepeval", "with_deepeval.py", "passage", MappingProxyType({"evolutions": 1})
    ),
    System(
        "deepeval-plain",
        "DeepEval 4.3.1, no evolution",
        "deepeval",
        "with_deepeval.py",
        "passage",
        MappingProxyType({"evolutions": 0}),
    ),
)
BY_NAME = {system.name: system for system in ALL}
