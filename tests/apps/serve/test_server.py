"""The server listens on this machine, and refuses before it opens anything."""

import re
from pathlib import Path

import pytest

from kraq_dspy.apps.serve import guard
from kraq_dspy.apps.serve.serve_settings import ServeSettings
from kraq_dspy.apps.serve.served import names_of
from kraq_dspy.apps.serve.server import address_of, bound
from kraq_dspy.errors import ConfigError
from tests.conftest import WarmShell

PAGE = Path(guard.__file__).with_name("page")


def test_a_port_in_use_is_said_or_a_free_one_taken() -> None:
    with bound("127.0.0.1", 0) as taken:
        taken.listen()
        port = taken.getsockname()[1]
        assert address_of(taken) == f"http://127.0.0.1:{port}"
        with pytest.raises(ConfigError, match=f"The port {port} is in use"):
            bound("127.0.0.1", port)
        with bound("127.0.0.1", port, or_any=True) as other:
            assert other.getsockname()[1] != port


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_number_that_is_no_port_is_refused(port: int) -> None:
    with pytest.raises(ConfigError, match="from 0 to 65535"):
        ServeSettings(port=port)


def test_an_index_is_served_under_the_name_of_the_link_that_leads_to_it(tmp_path: Path) -> None:
    (tmp_path / "2026-11-26.kraq").mkdir()
    (tmp_path / "docs.kraq").symlink_to(tmp_path / "2026-11-26.kraq")
    (tmp_path / "elsewhere" / "docs.kraq").mkdir(parents=True)

    assert names_of([tmp_path / "docs.kraq", tmp_path / "elsewhere" / "docs.kraq"]) == ["docs", "docs-2"]


def test_a_name_that_is_no_address_of_this_machine_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"no address of this machine|cannot be used"):
        bound("192.0.2.1", 8377)


def test_the_command_refuses_before_it_opens_anything(kraq: WarmShell, tmp_path: Path) -> None:
    refused = kraq("serve", tmp_path / "none.kraq", "--host", "0.0.0.0")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "needs a token" in refused.stderr
    for command in ("serve",):
        missing = kraq(command, tmp_path / "none.kraq")
        assert missing.returncode == 1
        assert "There is no index" in missing.stderr


def test_the_page_asks_for_nothing_that_the_package_does_not_bring() -> None:
    present = {file.name for file in PAGE.iterdir()}
    texts = {file.name: file.read_text("utf-8") for file in PAGE.iterdir()}
    imported = {name for text in texts.values() for name in re.findall(r'from "\./([^"]+)"', text)}
    linked = set(re.findall(r'(?:src|href)="(?:page/)?([\w.-]+\.\w+)"', texts["index.html"]))
    assert imported | linked <= present
    assert imported | linked | {"index.html"} == present
    elsewhere = [name for name, text in texts.items() if re.search(r"https?://(?!www\.w3\.org/2000/svg)", text)]
    assert elsewhere == []
    assert [
        name
        for name, text in texts.items()
        if re.search(r"innerHTML|outerHTML|insertAdjacentHTML|eval\(|document\.write", text)
    ] == []
