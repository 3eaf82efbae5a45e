"""The FAQ cache is reviewed over the API where the server may edit, and by two people without harm."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

Clients = Callable[..., TestClient]


@pytest.fixture
def editor(copy: Path, client_of: Clients) -> TestClient:
    return client_of(copy, edit=True)


def entry_about(client: TestClient, question: str, status: str = "waiting") -> dict[str, Any]:
    listed = client.get(f"/api/faq?status={status}").json()["items"]
    [number] = [each["number"] for each in listed if each["question"] == question]
    entry: dict[str, Any] = client.get(f"/api/faq/{number}").json()
    return entry


def decided(client: TestClient, entry: dict[str, Any], action: str, **fields: Any) -> Any:
    body = {"action": action, "version": entry["version"], **fields}
    return client.post(f"/api/faq/{entry['number']}", json=body)


def test_a_server_that_may_not_edit_shows_entries_and_refuses_decisions(client: TestClient) -> None:
    entry = entry_about(client, "Who wrote Don Juan?")
    assert entry["answer"] == "Lord Byron."
    assert [source["document_id"] for source in entry["sources"]] == ["byron"]
    refused = decided(client, entry, "approve")
    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "read_only")
    assert entry_about(client, "Who wrote Don Juan?")["status"] == "pending"


def test_entries_are_approved_edited_and_rejected(editor: TestClient) -> None:
    approved = decided(editor, entry_about(editor, "Who wrote Don Juan?"), "approve")
    assert approved.json()["status"] == "approved"
    edited = decided(
        editor, entry_about(editor, "Who met Ada Lovelace?"), "edit", answer="Babbage.", document_ids=["ada"]
    )
    assert (edited.json()["status"], edited.json()["answer"]) == ("approved", "Babbage.")
    assert edited.json()["changed_by"] == "kraq serve --open"
    assert editor.get("/api/status").json()["faq"] == {"pending": 0, "approved": 3, "stale": 0}
    rejected = decided(editor, approved.json(), "reject")
    assert rejected.json()["status"] == "removed"
    assert editor.get(f"/api/faq/{approved.json()['number']}").status_code == 404


@pytest.mark.parametrize("action", ["approve", "edit", "reject"])
def test_a_decision_about_a_version_that_is_no_more_is_refused(copy: Path, client_of: Clients, action: str) -> None:
    editor = client_of(copy, edit=True)
    looked_at = entry_about(editor, "Who wrote Don Juan?")
    decided(editor, looked_at, "edit", answer="George Gordon Byron.")
    refused = decided(editor, looked_at, action, answer="Shelley.")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "changed")
    assert entry_about(editor, "Who wrote Don Juan?", "approved")["answer"] == "George Gordon Byron."


def test_an_answer_needs_words_and_documents_that_are_there(editor: TestClient) -> None:
    entry = entry_about(editor, "Who met Ada Lovelace?")
    assert decided(editor, entry, "approve").status_code == 409  # it has no answer
    assert decided(editor, entry, "edit", answer=" ").status_code == 409
    refused = decided(editor, entry, "edit", answer="Babbage.", document_ids=["none"])
    assert (refused.status_code, refused.json()["error"]["code"]) == (422, "no_such_document")
