"""Finds a corpus's representative questions (KRAQ) and answers with them, as DSPy programs.

    import kraq_dspy as kraq

    kraq.build_index("docs/", "docs.kraq")  # a corpus becomes a graph, communities, summaries and questions
    with kraq.Workspace.open("docs.kraq") as space:
        print(space.ask("What happens to mules in spring?").answer)
    print(kraq.evaluate("docs.kraq", "questions.csv"))

An index is made by `build_index`, changed by `add_documents`, `remove_documents` and `update_index`, opened by
`Workspace.open`, and read by `Index`. The rest stands in modules, whose names complete in an editor:

- `kraq.programs`: `CombinedRetrieveRAG` and the other programs, their steps, and `KRAQ`, the pipeline of an index;
- `kraq.signatures`: every step's DSPy signature; `kraq.retrievers`: what finds passages;
- `kraq.eval`: metrics, judges, data sets; `kraq.optimize`: prompts; `kraq.finetune`: adapters;
- `kraq.settings`, `kraq.errors`; `kraq.extend`: what parts of your own are made with; `kraq.testing`: whether they keep
  their contract.

Whatever this library raises on purpose is a `KraqError`. Names are imported when they are first used.
"""

import os
from importlib.metadata import version
from typing import TYPE_CHECKING

from kraq_dspy._internal.lazy import lazy_names

if TYPE_CHECKING:  # for type checkers and editors; the names that are there are those below
    from kraq_dspy import (
        errors as errors,
        eval as eval,
        extend as extend,
        finetune as finetune,
        optimize as optimize,
        programs as programs,
        retrievers as retrievers,
        settings as settings,
        signatures as signatures,
        testing as testing,
    )
    from kraq_dspy._internal.display import show as show
    from kraq_dspy.asset.corpus.load import bundled_example as bundled_example
    from kraq_dspy.asset.scope import Scope as Scope
    from kraq_dspy.asset.store.index import Index as Index
    from kraq_dspy.errors import KraqError as KraqError
    from kraq_dspy.eval.evaluation import evaluate as evaluate
    from kraq_dspy.indexing.index.build import build_index as build_index
    from kraq_dspy.indexing.index.change import (
        add_documents as add_documents,
        remove_documents as remove_documents,
        resume_index as resume_index,
        update_index as update_index,
    )
    from kraq_dspy.indexing.index.exchange import export_index as export_index, import_graphrag as import_graphrag
    from kraq_dspy.models.lms.meter import Limits as Limits
    from kraq_dspy.models.lms.roles import make_lm as make_lm
    from kraq_dspy.records import Document as Document
    from kraq_dspy.retrievers.in_memory import Corpus as Corpus
    from kraq_dspy.settings import Settings as Settings, read_settings as read_settings
    from kraq_dspy.workspace import Workspace as Workspace

# Before dspy is imported: LiteLLM would otherwise fetch its price list over the network when it is first asked.
os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
# Before ONNX Runtime is imported: since 1.32 it looks up a host of its makers, and keeps an id of the device and a file
# of events in the user's cache folder. `onnxruntime.disable_telemetry_events()` comes too late for both.
os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
# Before torch or llama.cpp are imported: threads that spin while they wait for each other starve each other as soon as
# something else wants the cores (encoding one query took ten times as long).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

__version__ = version("kraq-dspy")
__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "kraq_dspy._internal.display": ("show",),
        "kraq_dspy.asset.corpus.load": ("bundled_example",),
        "kraq_dspy.asset.scope": ("Scope",),
        "kraq_dspy.asset.store.index": ("Index",),
        "kraq_dspy.indexing.index.build": ("build_index",),
        "kraq_dspy.indexing.index.change": ("add_documents", "remove_documents", "resume_index", "update_index"),
        "kraq_dspy.indexing.index.exchange": ("export_index", "import_graphrag"),
        "kraq_dspy.errors": ("KraqError",),
        "kraq_dspy.eval.evaluation": ("evaluate",),
        "kraq_dspy.models.lms.meter": ("Limits",),
        "kraq_dspy.models.lms.roles": ("make_lm",),
        "kraq_dspy.retrievers.in_memory": ("Corpus",),
        "kraq_dspy.records": ("Document",),
        "kraq_dspy.settings": ("Settings", "read_settings"),
        "kraq_dspy.workspace": ("Workspace",),
    },
    {
        "errors": "kraq_dspy.errors",
        "eval": "kraq_dspy.eval",
        "extend": "kraq_dspy.extend",
        "finetune": "kraq_dspy.finetune",
        "optimize": "kraq_dspy.optimize",
        "programs": "kraq_dspy.programs",
        "retrievers": "kraq_dspy.retrievers",
        "settings": "kraq_dspy.settings",
        "signatures": "kraq_dspy.signatures",
        "testing": "kraq_dspy.testing",
    },
)
