"""Runs `kraq` commands and scripts in processes of their own that need neither import nor load an encoder first: they
are forks of one that has made an index and asked it.

Started by `tests/warm.py`, once for all workers. Each connection to the socket `commands` is one process: it sends a
line of JSON (`words` of a command, or `code` with its `arguments`; the folder `cwd`; `env`) with the files for standard
input, output and errors, and receives the process's id and later its exit code, a line each. The shell ends when all
connections to its socket `users` have been closed.
"""

import gc
import importlib
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any

os.environ["TQDM_DISABLE"] = "1"  # as `kraq optimize` does before it imports tqdm, which looks at it then alone
os.environ["OMP_NUM_THREADS"] = "1"  # a fork has none of the threads of its parent
os.environ["TOKENIZERS_PARALLELISM"] = "false"  # else each fork is warned of the threads of the tokenizer

IMPORTED = (
    "kraq_dspy.apps.cli.program", "kraq_dspy.indexing.index.build", "kraq_dspy.workspace",
    "kraq_dspy.indexing.prepare.preparations",
    "kraq_dspy.papers.tables.run_table",
    "kraq_dspy.eval.reports.terminal", "kraq_dspy.models.embedders.sentence", "kraq_dspy.models.embedders.instructed",
    "kraq_dspy.optimize", "graspologic_native", "sklearn.cluster", "sklearn.metrics", "torch",
    "transformers", "networkx", "onnxruntime", "py3langid.langid", "semantic_text_splitter", "tiktoken", "tokenizers",
    "typer.rich_utils", "rich.progress",
)  # fmt: skip


def run(command: dict[str, Any]) -> None:
    """In the fork: what a shell does, then the command's own entry point, or the script. Does not come back."""
    code = 1
    try:
        os.environ.clear()
        os.environ.update(command["env"])
        os.chdir(command["cwd"])
        if "code" in command:
            sys.argv = ["-c", *command["arguments"]]
            sys.path[0] = ""
            exec(compile(command["code"], "<string>", "exec"), {"__name__": "__main__"})
        else:
            from kraq_dspy.apps.cli import main

            sys.argv = ["kraq", *command["words"]]
            main()
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException as error:  # noqa: BLE001 (as the interpreter would)
        sys.excepthook(*sys.exc_info())
        if isinstance(error, KeyboardInterrupt):
            sys.stderr.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # tearing down what was imported takes longer than most commands


def serve(connection: socket.socket) -> None:
    """In a fork that stays beside the command: starts it, and says how it ended. Does not come back."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    message, files, _, _ = socket.recv_fds(connection, 1 << 20, 3)
    while not message.endswith(b"\n"):
        message += connection.recv(1 << 20)
    child = os.fork()
    if child == 0:
        connection.close()
        for number, file in enumerate(files):
            os.dup2(file, number)
        run(json.loads(message))
    for file in files:
        os.close(file)
    os.close(0)
    connection.sendall(f"{child}\n".encode())
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    connection.sendall(f"{code}\n".encode())
    os._exit(0)


def warmed_up(index: Path) -> Any:
    """Make and ask an index of one passage, so that forks have what a process loads and works out once.

    Return its encoder: a model stays in memory as long as somebody holds it.
    """
    from kraq_dspy import Document, Workspace, build_index
    from kraq_dspy.embedded.reading.pipeline import pipeline

    pipeline()  # a build would parse in another process
    build_index([Document("ada", "Ada Lovelace", "Ada Lovelace wrote notes on the engine of Babbage.")], index)
    with Workspace.open(index) as space:
        space.program("combined")(question="Who wrote notes on the engine?")
        return space.embedder


def main(folder: Path) -> None:
    for name in IMPORTED:
        importlib.import_module(name)
    from kraq_dspy.apps.cli.commands import HELP, load

    for place in HELP:
        load(place)
    _encoder = warmed_up(folder / "warm.kraq")  # held, so that its model stays in memory
    gc.collect()
    gc.freeze()  # forks neither look through what was imported nor copy its pages
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the forks that serve

    with socket.socket(socket.AF_UNIX) as commands, socket.socket(socket.AF_UNIX) as users:
        for name, listener in (("commands", commands), ("users", users)):
            listener.bind(str(folder / name))
            listener.listen(64)
        print("ready", flush=True)
        connected = [users.accept()[0]]
        while connected:
            ready, _, _ = select.select([commands, users, *connected], [], [])
            if commands in ready:
                connection, _ = commands.accept()
                if os.fork() == 0:
                    serve(connection)
                connection.close()
            if users in ready:
                connected.append(users.accept()[0])
            connected = [user for user in connected if user not in ready]  # it says nothing, so that it was closed


if __name__ == "__main__":
    main(Path(sys.argv[1]))
