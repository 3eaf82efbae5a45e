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
    return System(name, title, None, "ask_kraq.py", shown, MappingProxyType(options))


HELPED = MappingProxyType({"held_to_schema": True, "temperature": 0.7, "top_p": 0.95, "max_tokens": 300})
"""RAGAS asks for JSON of any shape, and a small model gives it the schema back; at RAGAS's temperature, .01, it writes
a list without end again when it is asked anew."""
ITSELF = MappingProxyType({"held_to_schema": False})

ALL = (
    _ours("kraq", "KRAQ", "summary"),
    _ours("kraq-tuned", "KRAQ, the tuned generator", "summary", model="gguf/smollm2-135m", adapter="kraq-questions"),
    _ours("kraq-templates", "KRAQ, embedded templates", "summary", model="embedded"),
    _ours("random", "Random", "passages"),
    _ours("random-templates", "Random, embedded templates", "passages", model="embedded"),
    System("ragas", "RAGAS 0.4.3, held to its schemas", "ragas", "ask_ragas.py", "passage", HELPED),
    System("ragas-itself", "RAGAS 0.4.3", "ragas", "ask_ragas.py", "passage", ITSELF),
    *(
        System(name, title, "deepeval", "ask_deepeval.py", "passage", MappingProxyType({"evolutions": evolutions}))
        for name, title, evolutions in (
            ("deepeval", "DeepEval 4.3.1", 1),
            ("deepeval-plain", "DeepEval 4.3.1, no evolution", 0),
        )
    ),
)
BY_NAME = {system.name: system for system in ALL}
