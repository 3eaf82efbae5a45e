"""Parses passages for another process: a list of texts comes in with each line, a list of their analyses goes out.

    python -m kraq_dspy.embedded.reading.worker

It ends with its input, so nothing is left of it when the process that began it is gone. Of what spaCy imports, this
process leaves out what no parse needs: torch, which spaCy takes if it is installed (150 MB), and spaCy's command line.
"""

import json
import os
import signal
import sys
from types import ModuleType
from typing import TextIO

from kraq_dspy.embedded.reading.analysis import to_values
from kraq_dspy.embedded.reading.reader import Reader


def serve(requests: TextIO, replies: TextIO) -> None:
    """Answer each line with a list of analyses as `to_values` writes them."""
    reader = Reader()
    for line in requests:
        analyses = reader.analyses(json.loads(line))
        replies.write(json.dumps([to_values(analysis) for analysis in analyses]) + "\n")
        replies.flush()


def import_less() -> None:
    """Make imports of torch fail, as where it is not installed, and those of spaCy's command line find nothing."""
    sys.modules["torch"] = None  # type: ignore[assignment]
    command_line, info = ModuleType("spacy.cli"), ModuleType("spacy.cli.info")
    command_line.__path__ = []
    info.info = None  # type: ignore[attr-defined]
    sys.modules |= {command_line.__name__: command_line, info.__name__: info}


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process; the other one ends this
    import_less()
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as replies:
        os.dup2(2, 1)  # what a library prints is no reply
        try:
            serve(sys.stdin, replies)
        except BrokenPipeError:
            os._exit(1)  # nobody waits for the reply


if __name__ == "__main__":
    main()
