"""The server listens on this machine, refuses before it opens anything, and writes the page of one file."""

import base64
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kraq_dspy.apps.serve import one_file
from kraq_dspy.apps.serve.guard import ServeSettings
from kraq_dspy.apps.serve.one_file import data_of, page_of, write_page
from kraq_dspy.apps.serve.server import address_of, bound
from kraq_dspy.errors import ConfigError
from tests.apps.serve.conftest import MARKUP, open_all
from tests.conftest import WarmShell

PAGE = Path(one_file.__file__).with_name("page")


def test_a_port_in_use_is_said_or_the_next_free_one_taken() -> None:
    with bound("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        assert address_of(taken) == f"http://127.0.0.1:{port}"
        with pytest.raises(ConfigError, match=f"The port {port} is in use"):
            bound("127.0.0.1", port)
        with bound("127.0.0.1", port, next_free=True) as other:
            assert other.getsockname()[1] > port


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_number_that_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(ConfigError, match="from 0 to 65535"):
        ServeSettings(port=port)


def test_a_name_that_is_no_address_of_this_machine_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no address of this machine|cannot be used"):
        bound("192.0.2.1", 8377)


def test_the_command_refuses_before_it_opens_anything(kraq: WarmShell, tmp_path: Path) -> None:
    refused = kraq("serve", tmp_path / "none.kraq", "--host", "0.0.0.0")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "needs a token" in refused.stderr
    for command in ("serve", "explore"):
        missing = kraq(command, tmp_path / "none.kraq")
        assert missing.returncode == 1
        assert "There is no index" in missing.stderr


def test_the_page_asks_for_nothing_that_the_package_does_not_bring() -> None:
    present = {file.name for file in PAGE.iterdir()}
    texts = {file.name: file.read_text("utf-8") for file in PAGE.iterdir()}
    imported = {name for text in texts.values() for name in re.findall(r'from "\./([^"]+)"', text)}
    linked = {
        name
        for page in ("index.html", "api.html")
        for name in re.findall(r'(?:src|href)="(?:page/)?([\w.-]+\.\w+)"', texts[page])
    }
    assert imported | linked <= present
    assert imported | linked | {"index.html", "api.html"} == present
    elsewhere = [name for name, text in texts.items() if re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)]
    assert elsewhere == []
    assert [
        name
        for name, text in texts.items()
        if re.search(r"innerHTML|outerHTML|insertAdjacentHTML|eval\(|document\.write", text)
    ] == []


def test_a_page_of_one_file_runs_its_own_scripts_alone_and_its_data_cannot_end_theirs(
    poets: Path, tmp_path: Path
) -> None:
    with open_all(poets) as indexes:
        size = write_page(indexes[None], tmp_path / "page.html")
        data = data_of(indexes[None])
    text = (tmp_path / "page.html").read_text("utf-8")
    assert size == len(text.encode())
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    [nonce] = re.findall(r"script-src 'nonce-([\w-]+)'", policy)
    scripts = re.findall(r"<script([^>]*)>", text)
    assert [nonce in script for script in scripts] == ["application/json" not in script for script in scripts]
    [embedded] = re.findall(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert json.loads(embedded) == json.loads(json.dumps(data))
    assert nonce not in embedded
    assert MARKUP in json.dumps(data["questions"], ensure_ascii=False).replace('\\"', '"')
    assert "<img" not in text
    assert str(poets) not in text


def test_every_module_that_one_of_the_page_imports_is_in_its_map(poets: Path) -> None:
    [written] = re.findall(r'<script type="importmap" [^>]*>(.*?)</script>', page_of({}))
    imports: dict[str, str] = json.loads(written)["imports"]
    sources = [base64.b64decode(address.partition(",")[2]).decode() for address in imports.values()]
    named = {name for source in sources for name in re.findall(r'from "([^"]+)"', source)}
    assert "kraq/dom.js" in named
    assert named <= set(imports)


def test_a_page_is_written_without_the_packages_of_a_server(poets: Path, tmp_path: Path) -> None:
    script = (
        "import sys; sys.modules.update(dict.fromkeys(['starlette', 'uvicorn', 'prometheus_client']))\n"
        "from kraq_dspy.apps.serve.one_file import page_of, write_page\n"
        "from kraq_dspy.apps.cli.serving import explore"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_an_index_too_large_for_one_file_is_served_instead(
    poets: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(one_file, "MOST", 0)
    with open_all(poets) as indexes, pytest.raises(ConfigError, match="kraq explore DIR"):
        write_page(indexes[None], tmp_path / "page.html")
    assert not (tmp_path / "page.html").exists()
