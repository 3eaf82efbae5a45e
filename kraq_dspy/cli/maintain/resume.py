"""Goes on with an interrupted build: `kraq resume`."""

from kraq_dspy.cli.shared.bars import Bars
from kraq_dspy.cli.shared.options import Calls, IndexDir, Json, Limits
from kraq_dspy.cli.shared.report import show_report


def resume(index_dir: IndexDir, calls: Calls, limits: Limits, json: Json = False) -> None:
    """Go on with an interrupted build, and try again what failed."""
    from kraq_dspy.indexing.change import resume_index

    settings = calls.settings_of(index_dir)
    with Bars(settings, quiet=json) as bars:
        report = resume_index(index_dir, settings=settings, limits=limits.of(settings), progress=bars)
    show_report(report, json=json)
