"""Opens an index for a command: with its encoder, and models that keep to the command line's limits."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kraq_dspy.apps.cli.shared.options import Config, Limits

if TYPE_CHECKING:
    from kraq_dspy.workspace import Workspace


@contextmanager
def opened(
    index_dir: Path, options: Config, limits: Limits | None = None, *, write: bool = False
) -> "Iterator[Workspace]":
    from kraq_dspy.models.embedders import load_embedder
    from kraq_dspy.models.lms.meter import Meter
    from kraq_dspy.models.lms.roles import LanguageModels
    from kraq_dspy.workspace import Workspace

    settings = options.settings_of(index_dir)
    embedder = load_embedder(settings.encoder)
    meter = Meter(limits.of(settings) if limits else None)
    models = LanguageModels(settings, embedder=embedder, meter=meter)
    with Workspace.open(index_dir, settings=settings, embedder=embedder, models=models, write=write) as space:
        yield space
