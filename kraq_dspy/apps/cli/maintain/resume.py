"""Goes on with an interrupted build: `kraq resume`."""

from functools import partial

from kraq_dspy.apps.cli.shared.options import Calls, IndexDir, Json, Limits
from kraq_dspy.apps.cli.shared.report import run_build


def resume(index_dir: IndexDir, calls: Calls, limits: Limits, json: Json = False) -> None:
    """Go on with an interrupted build, and try again what failed."""
    from kraq_dspy.build.index.change import resume_index

    settings = calls.settings_of(index_dir)
    run_build(partial(resume_index, index_dir), settings, limits, json=json)
