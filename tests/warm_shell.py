"""Runs `kraq` commands in processes of their own that need not import first: forks of one that has imported it all.

Started by the fixture `kraq`. Each line of standard input is a command as JSON: `words`, the folder `cwd`, `env`, and
the files `stdout` and `stderr`. The answer is a line with its exit code.
"""

import importlib
import json
import os
import sys
from typing import Any

os.environ["TQDM_DISABLE"] = "1"  # as `kraq optimize` does before it imports tqdm, which looks at it then alone

IMPORTED = (
    "kraq_dspy.apps.cli.program", "kraq_dspy.indexing.index.build", "kraq_dspy.workspace",
    "kraq_dspy.indexing.prepare.preparations",
    "kraq_dspy.eval.tables.run_table",
    "kraq_dspy.eval.tables.terminal", "kraq_dspy.models.embedders.sentence", "kraq_dspy.models.embedders.instructed",
    "kraq_dspy.optimize", "igraph", "sklearn.cluster", "sklearn.metrics", "torch",
    "transformers",
)  # fmt: skip


def run(command: dict[str, Any]) -> None:
    """In the fork: what the shell does, then the command's own entry point. Does not come back."""
    from kraq_dspy.apps.cli import main

    os.environ.clear()
    os.environ.update(command["env"])
    os.chdir(command["cwd"])
    for number, name in ((0, os.devnull), (1, command["stdout"]), (2, command["stderr"])):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT), number)
    sys.argv = ["kraq", *command["words"]]
    code = 1
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 (as the interpreter would)
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # tearing down what was imported takes longer than most commands


if __name__ == "__main__":
    for name in IMPORTED:
        importlib.import_module(name)
    for line in sys.stdin:
        command = json.loads(line)
        child = os.fork()
        if child == 0:
            run(command)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
