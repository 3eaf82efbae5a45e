"""Finds a corpus's representative questions (KRAQ) and answers with them, as DSPy programs.

    import kraq_dspy as kraq

    kraq.build_index("docs/", "docs.kraq")  # a corpus becomes a graph, communities, summaries and questions
    with kraq.Workspace.open("docs.kraq") as space:
        print(space.ask("combined", "What happens to mules in spring?").answer)

An index: `build_index`, `add_documents`, `remove_documents`, `update_index`, `resume_index`, `import_graphrag`,
`import_triples`, `export_index`; what it took is a `BuildReport`, what it may take a `Limits`. `Index` reads its
records (`Document`, `Chunk`, `Entity`, `Relationship`, `Community`, `Summary`, `Question`).

Programs, all of them a `dspy.Module`: `TraditionalRAG`, `CombinedRetrieveRAG`, `SpeculativeRAG`,
`EfficientSpeculativeRAG`, `GraphLocalSearch`, `GraphGlobalSearch`, `QARAG`, `K2RAG`, `QASearch`; `KRAQ` is the
pipeline of an index. A `Workspace` makes them by name, with their retriever. `kraq.retrievers` has the retrievers,
`kraq.signatures` every language-model step.

Settings: `read_settings` reads a `kraq.toml`; `Settings` and its sections do the same in Python. `LanguageModels` are
the models by role.

Better programs: `kraq.metrics` in DSPy's form, `kraq.optimize` for prompts, `kraq.finetune` for adapters. Your own
parts: `kraq.testing` checks whether a retriever, a store, a model or a program keeps its contract.

Whatever this library raises on purpose is a `KraqError`. Names are imported when they are first used.
"""

import os
from importlib.metadata import version

from kraq_dspy._internal.display import show_predictions_in_notebooks
from kraq_dspy._internal.lazy import attach

# Before dspy is imported: LiteLLM would otherwise fetch its price list over the network when it is first asked.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
# Before torch or llama.cpp are imported: threads that spin while they wait for each other starve each other as soon as
# something else wants the cores (encoding one query took ten times as long).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

show_predictions_in_notebooks()
__version__ = version("kraq-dspy")
__getattr__, __dir__, __all__ = attach(__name__, __file__)
