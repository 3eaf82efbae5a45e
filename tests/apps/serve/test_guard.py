"""Tests who may ask, by which name of the server, how much and how often."""

import asyncio
from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

from kraq_dspy.apps.serve import guard
from kraq_dspy.apps.serve.refusals import RequestError
from kraq_dspy.apps.serve.serve_settings import ServeSettings, is_local
from kraq_dspy.errors import ConfigError

Clients = Callable[..., TestClient]
TOKEN = "correct-horse-battery"


def code(answer: object) -> str:
    return str(answer.json()["error"]["code"])  # type: ignore[attr-defined]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "example.org"])
def test_an_address_that_others_reach_is_refused_without_a_token(host: str) -> None:
    with pytest.raises(ConfigError, match="needs a token"):
        ServeSettings(host=host)
    assert ServeSettings(host=host, token=TOKEN).token == TOKEN


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1.2.3", "::1"])
def test_this_machine_needs_none(host: str) -> None:
    assert is_local(host)


@pytest.mark.parametrize("token", ["short", "with a space", "schlüssel"])
def test_a_token_that_could_be_guessed_or_not_be_sent_is_refused(token: str) -> None:
    with pytest.raises(ConfigError, match="secrets"):
        ServeSettings(token=token)


def test_without_the_token_there_is_nothing_but_the_page_and_the_probes(client_of: Clients) -> None:
    client = client_of(token=TOKEN)
    assert [client.get(path).status_code for path in ("/", "/health", "/page/main.js")] == [200] * 3
    for path in ("/api/status", "/api/search", "/nothing"):
        refused = client.get(path)
        assert (refused.status_code, code(refused)) == (401, "unauthorized")
    for wrong in ("Bearer wrong", f"Basic {TOKEN}", f"Bearer {TOKEN}x", "Bearer"):
        assert client.get("/api/status", headers={"Authorization": wrong}).status_code == 401
    assert client.get("/api/status", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200


def test_a_name_that_is_not_the_servers_is_refused_so_that_no_page_rebinds_one(client_of: Clients) -> None:
    client = client_of(hosts=("kraq.example",))
    for host in ("evil.example", "127.0.0.1.evil.example", "evil@localhost", ""):
        refused = client.get("/api/status", headers={"Host": host})
        assert (refused.status_code, code(refused)) == (421, "wrong_host")
    for host in ("localhost:8377", "127.0.0.1", "[::1]:8377", "KRAQ.example:80"):
        assert client.get("/api/status", headers={"Host": host}).status_code == 200


def test_pages_of_elsewhere_may_not_ask(client_of: Clients) -> None:
    closed = client_of()
    for origin in ("https://evil.example", "null", "http://localhost:9"):
        refused = closed.get("/api/status", headers={"Origin": origin})
        assert (refused.status_code, code(refused)) == (403, "wrong_origin")
        assert "access-control-allow-origin" not in refused.headers
    assert closed.get("/api/status", headers={"Origin": "http://localhost"}).status_code == 200


def test_a_browser_says_on_whose_behalf_it_asks(client_of: Clients) -> None:
    client = client_of()
    for site in ("cross-site", "same-site", "Cross-Site"):
        for path in ("/api/status", "/api/search?q=byron"):
            refused = client.get(path, headers={"Sec-Fetch-Site": site})
            assert (refused.status_code, code(refused)) == (403, "wrong_site")
        posted = client.post("/api/ask", json={"question": "Who?"}, headers={"Sec-Fetch-Site": site})
        assert (posted.status_code, code(posted)) == (403, "wrong_site")
        assert client.get("/", headers={"Sec-Fetch-Site": site}).status_code == 200  # a link to the page
    for site in ("same-origin", "none"):
        assert client.get("/api/status", headers={"Sec-Fetch-Site": site}).status_code == 200


def test_a_body_that_does_not_come_is_given_up(client_of: Clients, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard, "BODY_S", 0.05)

    async def never() -> dict[str, object]:
        await asyncio.sleep(60)
        return {}

    with pytest.raises(RequestError, match="did not come within") as refused:
        asyncio.run(guard._limited(never)())  # type: ignore[arg-type]
    assert refused.value.status == 408


def test_a_form_of_another_page_cannot_post(client_of: Clients) -> None:
    refused = client_of().post("/api/ask", content='{"question": "Who?"}', headers={"Content-Type": "text/plain"})
    assert (refused.status_code, code(refused)) == (415, "unsupported_media_type")


def test_a_body_is_bounded_whether_or_not_it_says_how_long_it_is(
    client_of: Clients, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "LARGEST_BODY", 1000)
    client = client_of()
    as_json = {"Content-Type": "application/json"}
    assert client.post("/api/ask", content=b"x" * 1001, headers=as_json).status_code == 413
    unsaid = client.post("/api/ask", content=(b"x" * 100 for _ in range(11)), headers=as_json)
    assert (unsaid.status_code, code(unsaid)) == (413, "too_large")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"nothing", b"\xff", b'{"question": "\\ud800"}', b"[" * 50_000])
def test_a_body_that_is_no_request_is_refused(client_of: Clients, body: bytes) -> None:
    refused = client_of().post("/api/ask", content=body, headers={"Content-Type": "application/json"})
    assert refused.status_code in (400, 422)
    assert "Traceback" not in refused.text


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Host": "[::1"}, 421), ({"Host": "[x]"}, 421), ({"Origin": "http://["}, 403), ({"Origin": "http://[::1"}, 403)],
)
def test_an_address_that_cannot_be_read_is_refused_as_another_one(
    headers: dict[str, str], status: int, client_of: Clients
) -> None:
    assert client_of().get("/api/status", headers=headers).status_code == status


@pytest.mark.parametrize("digits", [18, 19, 20, 26, 4000])
def test_a_number_of_any_length_is_an_entry_that_is_not_there(digits: int, client_of: Clients) -> None:
    client = client_of(edit=True)
    number = "9" * digits
    assert client.get(f"/api/faq/{number}").status_code == 404
    assert client.post(f"/api/faq/{number}", json={"action": "approve", "version": 1}).status_code == 404
    if digits < 4000:
        page = client.get("/api/questions", params={"offset": number, "level": number})
        assert (page.status_code, page.json()["items"]) == (200, [])


def test_every_answer_forbids_scripts_frames_and_guesses_of_elsewhere(client_of: Clients) -> None:
    client = client_of()
    for path in ("/", "/api/status", "/nothing", "/page/main.js"):
        headers = client.get(path).headers
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
