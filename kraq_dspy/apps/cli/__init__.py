"""Runs the program `kraq`: one file a command, in the folders of its help; heavy imports wait until a command runs."""

import sys

from kraq_dspy.apps.cli.interrupt import INTERRUPTED, last_word, on_interrupt

__all__ = ["main"]


def main() -> None:
    """Runs the program; listens to Ctrl-C before anything slow is imported."""
    on_interrupt()
    try:
        from kraq_dspy.apps.cli.program import run

        run()
    except KeyboardInterrupt:
        last_word()
        sys.exit(INTERRUPTED)
    except SystemExit as ended:
        if ended.code == INTERRUPTED:  # typer's own way to end
            last_word()
        raise
