"""`kraq precompute --qa-pairs`, `--graph`, `--raptor`, `--k2rag`: what programs look up, made offline once."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kraq_dspy.cli import options
from kraq_dspy.cli.terminal import Bars, output, print_json, two_columns

if TYPE_CHECKING:
    from kraq_dspy.ports import Progress
    from kraq_dspy.workspace import Workspace


def prepare(
    index_dir: Path, wanted: Sequence[str], config: Path | None, lm: str | None, api_base: str | None, *, json: bool
) -> None:
    """Make each of `wanted`, names of KINDS, and say what was done."""
    import dataclasses

    from kraq_dspy.stores.index import Index
    from kraq_dspy.workspace import Workspace

    with Index.open(index_dir) as index:
        made_with = index.manifest.settings
    settings = options.settings_from(config, base=made_with, lm=lm, api_base=api_base)
    reports: dict[str, dict[str, Any]] = {}
    with Workspace.open(index_dir, settings=settings, write=True) as space, Bars(quiet=json) as bars:
        for name in wanted:
            reports[name] = dataclasses.asdict(KINDS[name](space, bars))
    if json:
        print_json(reports)
        return
    for name, report in reports.items():
        seconds = report.pop("seconds")
        rows = {field.replace("_", " "): _shown(value) for field, value in report.items()}
        output.print(two_columns(f"{name}: {seconds:.1f} s", rows))


def _qa_pairs(space: "Workspace", progress: "Progress") -> Any:
    from kraq_dspy.prepare.qa_pairs import make_qa_pairs

    return make_qa_pairs(space.index, space.models, progress=progress)


def _graph(space: "Workspace", progress: "Progress") -> Any:
    from kraq_dspy.prepare.graph import embed_graph

    return embed_graph(space.index, space.embedder, progress)


def _raptor(space: "Workspace", progress: "Progress") -> Any:
    from kraq_dspy.prepare.raptor import build_tree

    return build_tree(space.index, space.embedder, space.models, progress=progress)


def _k2rag(space: "Workspace", progress: "Progress") -> Any:
    from kraq_dspy.prepare.k2rag import build_summarised

    return build_summarised(space.index, space.embedder, space.models, progress=progress)


KINDS: dict[str, Callable[["Workspace", "Progress"], Any]] = {
    "qa-pairs": _qa_pairs,
    "graph": _graph,
    "raptor": _raptor,
    "k2rag": _k2rag,
}


def _shown(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
