"""Runs the steps of deploy/Dockerfile and the command of deploy/kraq@.service in an empty environment.

No image is built and no service is started: the files that the Dockerfile copies are installed into a new virtual
environment, whose other packages are those of this one, and what the image would start is started by an account without
rights where the tests run as root.
"""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kraq_dspy import build_index

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text("utf-8").replace("\\\n", " ")
UNIT = (ROOT / "deploy" / "kraq@.service").read_text("utf-8")
NOBODY = 65534
TOKEN = "a-token-of-this-test"


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} (.+)$", DOCKERFILE, re.MULTILINE)


def listed(name: str) -> list[str]:
    """The words of an instruction that is a JSON list."""
    [words] = instructions(name)
    return re.findall(r'"([^"]*)"', words)


def answer_of(port: int, token: str) -> dict[str, Any]:
    body = json.dumps({"question": "Who met Charles Babbage?"}).encode()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"http://127.0.0.1:{port}/api/ask", body, headers)
    with urllib.request.urlopen(request, timeout=60) as reply:
        return dict(json.load(reply))


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def python_for_everybody() -> Path | None:
    """A Python that an account without rights may start; None where there is none of this version."""
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for path in (Path(sys.base_prefix) / "bin" / name, Path("/usr/bin") / name, Path("/usr/local/bin") / name):
        if path.is_file() and all(folder.stat().st_mode & 0o001 for folder in path.resolve().parents):
            return path
    return None


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A folder that every account may enter."""
    folder = Path(tempfile.mkdtemp(prefix="kraq-deploy-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def image(place: Path) -> Path:
    """The virtual environment of the Dockerfile's first stage, with this package installed from what is copied."""
    source = place / "source"
    source.mkdir()
    for words in instructions("COPY"):
        if "--from" in words:
            continue
        *names, target = words.split()
        for name in names:
            to = source / target if target.endswith(name.split("/")[-1]) else source / target / name
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, to, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(ROOT / name, to)

    python = python_for_everybody() or Path(sys.executable)
    subprocess.run([python, "-m", "venv", "--without-pip", place / "venv"], check=True)
    site = next((place / "venv").glob("lib/python*/site-packages"))
    here = next(Path(path) for path in sys.path if path.endswith("site-packages"))
    pip = [sys.executable, "-m", "pip", "--quiet", "--no-input", "install", "--no-deps", "--no-build-isolation"]
    subprocess.run([*pip, "--target", site, "."], cwd=source, check=True)
    (site / "others.pth").write_text(f"{here}\n")
    return place / "venv"


def command_of(image: Path, words: list[str]) -> list[str]:
    """`kraq` as the environment has it: console scripts of `--target` start another Python."""
    assert Path(words[0]).name == "kraq"
    return [str(image / "bin" / "python"), "-m", "kraq_dspy", *words[1:]]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="accounts are those of a POSIX system")
@pytest.mark.parametrize("form", ["image", "service"])
def test_what_an_image_and_a_service_start_answers_in_an_empty_environment(image: Path, place: Path, form: str) -> None:
    data = place / form
    data.mkdir()
    build_index(["Ada Lovelace met Charles Babbage in London."], data / "docs.kraq")
    (data / "tokens.toml").write_text(f'[[token]]\nname = "test"\ntoken = "{TOKEN}"\n')
    port = free_port()
    if form == "image":
        words = [*listed("ENTRYPOINT"), *listed("CMD"), "--port", str(port)]
        given = {"/data/docs.kraq": str(data / "docs.kraq"), "/run/secrets/tokens.toml": str(data / "tokens.toml")}
    else:
        [line] = re.findall(r"^ExecStart=(.+)$", UNIT, re.MULTILINE)
        words = shlex.split(line.replace("%i", str(port)).replace("${CREDENTIALS_DIRECTORY}", str(data)))
        given = {"/srv/kraq/docs.kraq": str(data / "docs.kraq"), f"/var/log/kraq/{port}.jsonl": str(data / "log.jsonl")}
    words = [given.get(word, word) for word in words]

    as_nobody = os.geteuid() == 0 and python_for_everybody() is not None
    for path in (data, *data.rglob("*")):
        if as_nobody:
            os.chown(path, NOBODY, NOBODY)
    account: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if as_nobody else {}
    environment = {"PATH": f"{image / 'bin'}:/usr/bin:/bin", "HOME": str(data), "PYTHONUNBUFFERED": "1"}

    command = command_of(image, words)
    served = subprocess.Popen(command, cwd=data, env=environment, stderr=subprocess.PIPE, **account)
    try:
        check = re.search(r'CMD (\["python".+\])', DOCKERFILE.split("HEALTHCHECK", 1)[1])
        assert check is not None
        code = re.findall(r'"([^"]*)"', check[1])[-1].replace("8377", str(port))
        healthy = [str(image / "bin" / "python"), "-c", code]
        for _ in range(120):
            if subprocess.run(healthy, env=environment, capture_output=True, **account).returncode == 0:
                break
            assert served.poll() is None, served.stderr.read().decode() if served.stderr else ""
            time.sleep(0.5)
        else:
            pytest.fail("the server was not healthy within a minute")
        assert answer_of(port, TOKEN)["answer"]
        with pytest.raises(urllib.error.HTTPError, match="401"):
            answer_of(port, "another")
    finally:
        served.send_signal(signal.SIGTERM)
        served.wait(30)


def test_the_image_runs_without_rights_and_copies_what_there_is() -> None:
    assert instructions("USER") == ["kraq"]
    names = [name for words in instructions("COPY") if "--from" not in words for name in words.split()[:-1]]
    assert names
    assert [name for name in names if not (ROOT / name).exists()] == []


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_finds_no_fault_in_the_unit(tmp_path: Path) -> None:
    unit = tmp_path / "kraq@8377.service"
    unit.write_text(UNIT.replace("/opt/kraq/bin/kraq", sys.executable), "utf-8")
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True)
    assert [line for line in done.stderr.splitlines() if unit.name in line] == []
