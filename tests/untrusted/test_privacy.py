"""Commands reach no network: no connection and no look-up of a name that the user did not give.

Python's own sockets are watched by an audit hook; those of compiled libraries by strace, where it is installed, and by
what they leave in the user's cache folder.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

HOST = "127.0.0.1"
WATCHED = f"""
import os, sys

def watch(event, arguments):
    if event in ("socket.connect", "socket.sendto", "socket.sendmsg") or event.startswith("socket.get"):
        if event != "socket.gethostname" and {HOST!r} not in repr(arguments):
            with open(os.environ["KRAQ_TEST_SEEN"], "a") as file:
                file.write(f"{{event}} {{arguments}}\\n")
    if event == "socket.__new__" and arguments[1] in (2, 10):  # AF_INET, AF_INET6
        caller = sys._getframe(1)
        while os.path.basename(caller.f_code.co_filename) == "socket.py":
            caller = caller.f_back
        with open(os.environ["KRAQ_TEST_OPENED"], "a") as file:
            file.write(f"{{caller.f_globals.get('__name__')}}.{{caller.f_code.co_name}}\\n")

sys.addaudithook(watch)
from kraq_dspy.apps.cli import main
for words in sys.argv[1].split("\\n"):
    sys.argv = ["kraq", *words.split("|")]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""
BUILD_SERVERS = (
    "CI",
    "GITHUB_ACTIONS",
    "GITLAB_CI",
    "JENKINS_URL",
    "TF_BUILD",
)  # where onnxruntime sends nothing anyway
LOOKS_UP = re.compile(r"/etc/(?:resolv\.conf|hosts)|/nscd/|sin6?_port=htons\(53\)")
CONNECTS = re.compile(r"\b(?:connect|sendto|sendmsg|sendmmsg)\(.*sa_family=AF_INET")


class Watched:
    """Runs commands of `kraq` in one process, and says what they sent, looked up and left in the cache folder."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.cache, self._seen, self._calls = folder / "cache", folder / "seen", folder / "calls"
        self._opened = folder / "opened"
        given = {"XDG_CACHE_HOME": str(self.cache), "KRAQ_TEST_SEEN": str(self._seen), **environment}
        given["KRAQ_TEST_OPENED"] = str(self._opened)
        inherited = {name: value for name, value in os.environ.items() if name not in BUILD_SERVERS}
        self._environment = {**inherited, **given}
        self._folder = folder

    def start(self, *commands: tuple[str, ...]) -> subprocess.Popen[str]:
        strace = shutil.which("strace")
        watching = ["-f", "--seccomp-bpf", "-qq", "-e", "trace=network,openat", "-o", str(self._calls)]
        traced = [strace, *watching] if strace else []
        words = "\n".join("|".join(command) for command in commands)
        return subprocess.Popen(
            [*traced, sys.executable, "-c", WATCHED, words],
            cwd=self._folder, env=self._environment, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, *commands: tuple[str, ...]) -> str:
        process = self.start(*commands)
        output, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors[-2000:]
        return output

    def sent(self) -> list[str]:
        """What went, or would have gone, to another machine."""
        sent = self._seen.read_text("utf-8").splitlines() if self._seen.exists() else []
        calls = self._calls.read_text("utf-8", "replace").splitlines() if self._calls.exists() else []
        return sent + [call for call in calls if LOOKS_UP.search(call) or (CONNECTS.search(call) and HOST not in call)]

    def opened(self) -> list[str]:
        """The functions that opened a socket of the internet, whether or not they sent something."""
        return self._opened.read_text("utf-8").splitlines() if self._opened.exists() else []

    def n_traced(self) -> int | None:
        """How many sockets of the internet were opened, those of compiled libraries among them; None without strace."""
        if shutil.which("strace") is None:
            return None
        return len(re.findall(r"\bsocket\(AF_INET6?,", self._calls.read_text("utf-8", "replace")))

    def left(self) -> list[str]:
        """The files in the user's cache folder that are not kraq's."""
        files = (path.relative_to(self.cache) for path in self.cache.rglob("*") if path.is_file())
        return sorted(str(file) for file in files if file.parts[0] != "kraq-dspy")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index that was made and asked under watch."""
    return tmp_path_factory.mktemp("watched")


@pytest.fixture(scope="module")
def indexed(folder: Path) -> Watched:
    (folder / "notes.txt").write_text(
        "Ada Lovelace wrote the first program. Lord Byron was the father of Ada Lovelace."
    )
    watched = Watched(folder)
    question = "Who was the father of Ada Lovelace?"
    output = watched.run(("index", "notes.txt", "--out", "notes.kraq"), ("ask", "notes.kraq", question))
    assert "Byron" in output
    return watched


def test_indexing_and_asking_reach_no_network_and_leave_nothing_beside_the_index(indexed: Watched) -> None:
    assert indexed.sent() == []
    assert indexed.left() == []


def test_indexing_and_asking_open_no_socket_but_the_one_that_urllib3_tries_ipv6_with(indexed: Watched) -> None:
    """DSPy imports requests, which imports urllib3. That binds a socket to this machine's own ::1, and closes it."""
    assert indexed.opened() == ["urllib3.util.connection._has_ipv6"]
    assert indexed.n_traced() in (None, 1)


NOTES = {
    "lovelace": "Ada Lovelace wrote the first program in 1843. Lord Byron was the father of Ada Lovelace.",
    "tarnvik": "The ferry Alma sails from Tarnvik to Skarv. Maren Holt built the lighthouse of Tarnvik in 1871.",
    "bridge": "The bridge of Brandvik was opened in 1931. Karl Voss designed the bridge of Brandvik.",
    "school": "The school of Lurr was founded by Nora Bell in 1888. Nora Bell taught mathematics.",
    "choir": "The choir of Skarv sings in the church of Saint Anne. Elin Moe leads the choir of Skarv.",
    "railway": "The railway from Benna to Lurr carries timber. Berg Line has owned the railway since 1950.",
    "harbor": "The harbor of Benna was deepened in 1966. Tor Hald managed the harbor of Benna until 1980.",
    "mill": "The mill of Orrin grinds rye. Peter Sand bought the mill of Orrin in 1911.",
    "inn": "The inn of Farholt has forty beds. Mia Dahl opened the inn of Farholt in 1925.",
    "paper": "The Benna Courier is a weekly newspaper. Sam Eide edited the Benna Courier for ten years.",
    "club": "The rowing club of Brandvik won the cup of Lurr in 1954. Olav Rand coached the rowing club.",
    "museum": "The museum of Tarnvik was opened by Ida Lind in 1902. Ida Lind collected maps of Skarv.",
}


def test_testsets_evaluations_and_choices_reach_no_network(tmp_path: Path) -> None:
    """`testset make`, `eval`, `select` and `optimize` in one process. They take some seconds each under strace, and no
    index at hand was made in a process that is watched."""
    (tmp_path / "notes").mkdir()
    for name, text in NOTES.items():
        (tmp_path / "notes" / f"{name}.txt").write_text(text)
    (tmp_path / "asked.csv").write_text(
        "question,answer,supporting_ids\n"
        "Who was the father of Ada Lovelace?,Lord Byron,lovelace.txt\n"
        "Who opened the museum of Tarnvik?,Ida Lind,museum.txt\n"
        "When was the lighthouse of Tarnvik built?,1871,tarnvik.txt\n"
    )
    watched = Watched(tmp_path)
    output = watched.run(
        ("index", "notes", "--out", "notes.kraq"),
        ("testset", "make", "notes.kraq", "--out", "testset.jsonl", "-n", "3"),
        ("eval", "notes.kraq", "asked.csv", "--out", "run"),
        ("select", "notes", "asked.csv", "--chunks", "300", "-k", "5", "-r", "dense", "-r", "bm25", "--out", "choice"),
        ("optimize", "decomposition", "--index", "notes.kraq", "--out", "state.json", "--force"),
    )
    assert "token_f1" in output
    assert watched.sent() == []
    assert watched.left() == []


def test_serving_reaches_no_network(indexed: Watched, folder: Path, tmp_path: Path) -> None:
    pytest.importorskip("starlette", reason="needs the extra serve")
    watched = Watched(tmp_path)
    process = watched.start(("serve", str(folder / "notes.kraq"), "--host", HOST, "--port", "0"))
    try:
        assert process.stdout is not None
        address = next(line for line in process.stdout if line.startswith("http")).split()[0]
        body = json.dumps({"question": "Who was the father of Ada Lovelace?"}).encode()
        asked = urllib.request.Request(f"{address}/api/ask", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(asked, timeout=60) as reply:
            assert "Byron" in json.load(reply)["answer"]
        time.sleep(2)  # what reports does so a moment later
    finally:
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        process.communicate(timeout=60)

    assert watched.sent() == []
    assert watched.left() == []


def test_what_onnx_runtime_would_leave_is_seen(indexed: Watched, folder: Path, tmp_path: Path) -> None:
    """Without the variable that kraq sets; if a later version leaves nothing, kraq need not set it."""
    watched = Watched(tmp_path, ORT_DISABLE_TELEMETRY="0")
    watched.run(("ask", str(folder / "notes.kraq"), "Who was the father of Ada Lovelace?"))
    assert [file for file in watched.left() if "onnxruntime" in file]


def test_a_look_up_and_a_connection_would_be_seen(tmp_path: Path) -> None:
    watched = Watched(tmp_path)
    lines = ['connect(3, {sa_family=AF_INET, sin_port=htons(443), sin_addr=inet_addr("10.0.0.1")}, 16) = 0']
    lines += ['openat(AT_FDCWD, "/etc/resolv.conf", O_RDONLY|O_CLOEXEC) = 5']
    (tmp_path / "calls").write_text("\n".join(lines))
    (tmp_path / "seen").write_text("socket.getaddrinfo ('example.org', 443)\n")
    assert len(watched.sent()) == 3
