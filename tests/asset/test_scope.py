"""Labels come with documents, and an index that has some answers nobody without a scope."""

import json
from pathlib import Path
from typing import Any

import pytest
from dspy.utils import DummyLM

from kraq_dspy import Document, Index, Scope, Workspace, add_documents, build_index, export_index, update_index
from kraq_dspy.asset.corpus.load import load_documents
from kraq_dspy.asset.scope import NOBODY, labels_of
from kraq_dspy.asset.store.manifest import LABELLED, SCHEMA_VERSION
from kraq_dspy.errors import ConfigError, KraqError, ScopeError
from kraq_dspy.extend import Summary
from kraq_dspy.optimize import save_state, state_of
from kraq_dspy.settings import CorpusSettings, Settings

ADA = Document("ada", "Ada", "Ada lived in London.", labels=("staff",))
BYRON = Document("byron", "Byron", "Byron wrote Don Juan.", labels=("board", "legal"))
RUM = "George Bullough built Kinloch Castle."
KEATS = Document("keats", "Keats", "Keats wrote odes.")


@pytest.fixture
def index(tmp_path: Path) -> Path:
    build_index([ADA, BYRON, KEATS], tmp_path / "a.kraq")
    return tmp_path / "a.kraq"


@pytest.mark.parametrize(
    "labels", [[], (), {}, frozenset(), "staff", b"staff", None, 3, [""], [" "], ["staff", ""], [3]]
)
def test_a_scope_without_a_label_is_none(labels: Any) -> None:
    with pytest.raises(ScopeError):
        Scope(labels)


def test_a_scope_cannot_be_changed() -> None:
    scope = Scope(["staff"])
    with pytest.raises(AttributeError):
        scope.labels = frozenset(["board"])  # type: ignore[misc]
    with pytest.raises(AttributeError):
        scope.is_everything = True  # type: ignore[misc]
    assert Scope(["staff", "staff"]) == scope
    assert Scope(["staff"]) != Scope.everything()


def test_one_label_in_common_is_enough_and_no_label_is_nobodys() -> None:
    scope = Scope(["staff", "board"])
    assert scope.allows(["board", "legal"])
    assert not scope.allows(["Staff"])
    assert not scope.allows([])
    assert not scope.allows([NOBODY])
    assert Scope.everything().allows([])


def test_the_owners_scope_bears_no_label_that_a_document_may_have() -> None:
    assert Scope.everything().labels == frozenset()
    assert not Scope.everything().reads_no_more_than(["everything"])


def test_labels_are_a_column_of_a_table(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,text,groups\n1,One text.,"staff, board"\n2,Another text.,\n', "utf-8")
    documents = list(load_documents(tmp_path, acl_column="groups"))
    assert [document.labels for document in documents if isinstance(document, Document)] == [
        ("board", "staff"),
        (NOBODY,),
    ]
    assert [document.metadata for document in documents if isinstance(document, Document)] == [{}, {}]


def test_lists_in_json_lines_are_labels_too(tmp_path: Path) -> None:
    rows = [{"text": "One.", "acl": ["b", "a"]}, {"text": "Two.", "acl": []}, {"text": "Three."}]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    labels = [each.labels for each in load_documents(tmp_path, acl_column="acl") if isinstance(each, Document)]
    assert labels == [("a", "b"), (NOBODY,), (NOBODY,)]


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.csv", "text,acl\nOne text.,staff\nAnother text.,\n"),
     ("a.jsonl", '{"text": "One text.", "acl": ["staff"]}\n{"text": "Another text.", "acl": []}\n')],
)  # fmt: skip
def test_a_column_named_acl_holds_labels_also_where_nobody_says_so(name: str, content: str, tmp_path: Path) -> None:
    """Else it would be metadata, and everybody would read what it means to keep."""
    (tmp_path / name).write_text(content, "utf-8")
    documents = [each for each in load_documents(tmp_path) if isinstance(each, Document)]
    assert [document.labels for document in documents] == [("staff",), (NOBODY,)]
    assert [document.metadata for document in documents] == [{}, {}]


def test_a_table_without_the_named_column_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("text,groups\nOne text.,staff\n", "utf-8")
    with pytest.raises(KraqError, match="There is no column 'team' for the acl; there are: 'text', 'groups'"):
        list(load_documents(tmp_path, acl_column="team"))


@pytest.mark.parametrize(
    ("line", "labels"),
    [("acl: staff", ("staff",)), ("acl: [b, a]", ("a", "b")), ("acl:", (NOBODY,)), ("acl: []", (NOBODY,)),
     ("author: me", ())],
)  # fmt: skip
def test_labels_are_in_front_matter(line: str, labels: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"---\ntitle: A\n{line}\n---\nText.\n", "utf-8")
    [document] = load_documents(tmp_path)
    assert isinstance(document, Document)
    assert document.labels == labels
    assert "acl" not in document.metadata


@pytest.mark.parametrize("given", ["staff,board", ("staff", "board"), ["board", "staff"], '["board", "staff"]'])
def test_labels_are_kept_in_order_however_they_are_given(given: Any) -> None:
    assert labels_of(given) == ("board", "staff")


def test_an_index_with_labels_answers_nobody_without_a_scope(index: Path) -> None:
    with Workspace.open(index) as space:
        for asked in (
            lambda: space.index,
            lambda: space.ask("Where did Ada live?"),
            lambda: space.retriever("bm25"),
            lambda: space.questions(),
            lambda: space.starters(),
            lambda: space.prepared("Where did Ada live?"),
            lambda: space.without([]),
            lambda: space.answers,
            lambda: list(space.stream("Where did Ada live?")),
        ):
            with pytest.raises(ScopeError, match="says who may read its documents"):
                asked()
    with pytest.raises(ScopeError):
        export_index(index, index.parent / "tables", "jsonl")
    assert not (index.parent / "tables").exists()


def test_its_owner_sees_everything(index: Path) -> None:
    with Workspace.open(index) as space, space.scoped(Scope.everything()) as owner:
        assert owner.index.ids(Document) == ["ada", "byron", "keats"]
        assert owner.ask("Where did Ada live?").answer.startswith("London")


def test_a_scope_sees_the_documents_with_its_labels(index: Path) -> None:
    with Workspace.open(index) as space:
        for labels, ids in ((["staff"], ["ada"]), (["legal", "staff"], ["ada", "byron"]), (["unknown"], [])):
            with space.scoped(Scope(labels)) as scoped:
                assert scoped.index.ids(Document) == ids
                assert [document.labels for document in scoped.index.all(Document)] == [()] * len(ids)


def test_a_scope_is_not_widened(index: Path) -> None:
    with Workspace.open(index) as space, space.scoped(Scope(["staff"])) as staff:
        with pytest.raises(ScopeError, match="has a scope already"):
            staff.scoped(Scope.everything())
        with pytest.raises(ScopeError, match="expected a Scope"):
            space.scoped(["staff"])  # type: ignore[arg-type]


def test_where_no_document_has_labels_a_scope_is_refused(tmp_path: Path) -> None:
    build_index([KEATS], tmp_path / "b.kraq")
    with Workspace.open(tmp_path / "b.kraq") as space, pytest.raises(ScopeError, match="--acl-column"):
        space.scoped(Scope(["staff"]))


def test_an_index_keeps_its_labels_declared_whatever_comes_later(index: Path) -> None:
    update_index(index, [KEATS])
    with Index.open(index) as opened:
        assert opened.manifest.has_labels
    with Workspace.open(index) as space, pytest.raises(ScopeError):
        space.ask("Who wrote odes?")


def test_a_function_gives_labels(tmp_path: Path) -> None:
    build_index([ADA, KEATS], tmp_path / "a.kraq", labels=lambda document: ["all"] if document.id == "keats" else [])
    with Workspace.open(tmp_path / "a.kraq") as space, space.scoped(Scope(["all"])) as scoped:
        assert scoped.index.ids(Document) == ["keats"]
    with pytest.raises(TypeError, match="expected a function"):
        build_index([ADA], tmp_path / "b.kraq", labels=["all"])  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [None, "", [], ()])
def test_a_function_that_names_nobody_keeps_a_document_to_its_owner(given: Any, tmp_path: Path) -> None:
    build_index([ADA, KEATS], tmp_path / "a.kraq", labels=lambda document: given)
    with Workspace.open(tmp_path / "a.kraq") as space, space.scoped(Scope(["staff"])) as staff:
        assert staff.index.ids(Document) == []


def _of_ada(document: Document) -> list[str]:
    teams: dict[str, list[str]] = {"ada": ["x"]}
    return teams[document.id]


def test_a_function_that_fails_is_named_with_its_document_and_nothing_is_open(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'keats': KeyError: 'keats'"):
        build_index([ADA, KEATS], tmp_path / "a.kraq", labels=_of_ada)
    with Workspace.open(tmp_path / "a.kraq") as space, pytest.raises(ScopeError):
        _ = space.index
    with pytest.raises(KraqError, match="'ada': The labels"):
        build_index([ADA], tmp_path / "b.kraq", labels=lambda document: {"staff": True})


def test_one_letter_written_in_two_ways_is_one_letter_of_a_label(tmp_path: Path) -> None:
    build_index([Document("a", "A", RUM, labels=("Bu\u0308ro",)), KEATS], tmp_path / "a.kraq")
    with Workspace.open(tmp_path / "a.kraq") as space:
        for label in ("B\u00fcro", "Bu\u0308ro"):
            with space.scoped(Scope([label])) as scoped:
                assert scoped.index.ids(Document) == ["a"]


@pytest.mark.parametrize("name", ["acl", "ACL", "acl_groups"])
def test_metadata_that_look_like_labels_are_refused_by_name(name: str, tmp_path: Path) -> None:
    report = build_index([Document("a", "A", RUM, metadata={name: "board"}), KEATS], tmp_path / "a.kraq")
    assert [(failure.item_id, name in failure.reason) for failure in report.failures] == [("a", True)]
    with Workspace.open(tmp_path / "a.kraq") as space:
        assert space.index.ids(Document) == ["keats"]


def test_names_that_often_mean_labels_and_labels_that_nobody_has_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"text,allowed_groups\n{RUM},board\n{KEATS.text},\n", "utf-8")
    report = build_index(tmp_path / "a.csv", tmp_path / "a.kraq")
    assert ["--acl-column" in problem for problem in report.problems if "'allowed_groups'" in problem] == [True]

    (tmp_path / "b.md").write_text(f"---\nGroups: board\n---\n{RUM}", "utf-8")
    by_column = Settings(corpus=CorpusSettings(acl_column="groups"))
    report = build_index(tmp_path / "b.md", tmp_path / "b.kraq", settings=by_column)
    assert sum("The column of labels is 'groups'" in problem for problem in report.problems) == 1
    assert not any("label" in problem for problem in build_index([ADA], tmp_path / "c.kraq").problems)


def test_a_text_that_two_groups_own_is_read_by_both_also_after_a_change(tmp_path: Path) -> None:
    """Rows without ids, whose file is renamed and grows: each copy keeps its id and its readers."""
    rows = [f'"{RUM}",board', f'"{RUM}",staff', f'"{KEATS.text}",staff']
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    (corpus / "d.csv").write_text("\n".join(["text,acl", *rows]), "utf-8")
    path = tmp_path / "a.kraq"
    build_index(corpus, path)

    def seen() -> dict[str, list[str]]:
        texts = {}
        with Workspace.open(path) as space:
            for label in ("board", "staff", "sales"):
                with space.scoped(Scope([label])) as scoped:
                    texts[label] = sorted(document.text for document in scoped.index.all(Document))
            with space.scoped(Scope.everything()) as owner:
                texts["ids"] = sorted(owner.index.ids(Document))
        return texts

    first = seen()
    assert (first["board"], first["staff"]) == ([RUM], sorted([RUM, KEATS.text]))

    (corpus / "d.csv").unlink()
    (corpus / "e.csv").write_text("\n".join(["text,acl", f'"{ADA.text}",sales', *rows[::-1]]), "utf-8")
    report = update_index(path, corpus)
    second = seen()
    assert (second["board"], second["staff"], second["sales"]) == (first["board"], first["staff"], [ADA.text])
    assert set(first["ids"]) <= set(second["ids"])
    assert (report.documents.added, report.documents.removed) == (1, 0)


@pytest.mark.parametrize("change", [update_index, add_documents])
def test_a_document_whose_labels_become_unclear_is_its_owners_until_they_are_mended(
    change: Any, tmp_path: Path
) -> None:
    corpus, path = tmp_path / "corpus", tmp_path / "a.kraq"
    corpus.mkdir()
    for name, text in (("ada", ADA.text), ("keats", KEATS.text)):
        (corpus / f"{name}.md").write_text(f"---\nacl: staff\n---\n{text}", "utf-8")
    build_index(corpus, path)

    def seen() -> list[str]:
        with Workspace.open(path) as space, space.scoped(Scope(["staff"])) as staff:
            return sorted(staff.index.ids(Document))

    (corpus / "ada.md").write_text(f"---\nacl: [board\n---\n{ADA.text}", "utf-8")
    report = change(path, corpus)
    assert [failure.item_id for failure in report.failures] == ["ada.md"]
    assert seen() == ["keats.md"]

    (corpus / "ada.md").write_text(f"---\nacl: [board, staff]\n---\n{ADA.text}", "utf-8")
    change(path, corpus)
    assert seen() == ["ada.md", "keats.md"]


@pytest.mark.parametrize("program", ["efficient", "graph-local"])
def test_a_scope_that_reads_nothing_is_not_told_to_finish_the_build(program: str, index: Path) -> None:
    said = pytest.raises(KraqError, match="none has one of the labels")
    with Workspace.open(index) as space, space.scoped(Scope(["nobody"])) as nobody, said:
        nobody.ask("Where did Ada live?", program)


def test_an_export_of_ours_keeps_its_labels_when_it_is_indexed(index: Path, tmp_path: Path) -> None:
    with Workspace.open(index) as space, space.scoped(Scope.everything()) as owner:
        export_index(owner.index, tmp_path / "out", "jsonl")
    build_index(tmp_path / "out" / "documents.jsonl", tmp_path / "again.kraq")
    with Workspace.open(tmp_path / "again.kraq") as space, space.scoped(Scope(["staff"])) as staff:
        assert staff.index.ids(Document) == ["ada"]


def test_a_column_that_is_named_declares_labels_even_where_none_is_there(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Keats wrote odes.", "utf-8")
    build_index(tmp_path / "a.txt", tmp_path / "a.kraq", settings=Settings(corpus=CorpusSettings(acl_column="groups")))
    with Workspace.open(tmp_path / "a.kraq") as space, pytest.raises(ScopeError):
        space.ask("Who wrote odes?")


def test_other_labels_cost_no_call_of_a_model(index: Path) -> None:
    report = update_index(index, [Document("ada", "Ada", ADA.text, labels=("board",)), BYRON, KEATS])
    assert report.usage == {}
    assert report.documents.changed == 1
    with Workspace.open(index) as space, space.scoped(Scope(["staff"])) as staff:
        assert staff.index.ids(Document) == []


def test_a_document_that_is_added_without_labels_is_nobodys(index: Path) -> None:
    add_documents(index, [Document("new", "New", "A new text about Shelley.")])
    with Workspace.open(index) as space, space.scoped(Scope(["staff", "board", "legal"])) as scoped:
        assert "new" not in scoped.index.ids(Document)


def test_what_knows_no_labels_does_not_open_the_index(index: Path, tmp_path: Path) -> None:
    manifest = json.loads((index / "manifest.json").read_text("utf-8"))
    assert manifest["schema_version"] == LABELLED
    build_index([KEATS], tmp_path / "b.kraq")
    plain = json.loads((tmp_path / "b.kraq" / "manifest.json").read_text("utf-8"))
    assert plain["schema_version"] == SCHEMA_VERSION
    assert "has_labels" not in plain


def test_a_manifest_whose_labels_were_taken_out_is_damaged(index: Path) -> None:
    path = index / "manifest.json"
    fields = json.loads(path.read_text("utf-8"))
    for change in ({"has_labels": False}, {"schema_version": SCHEMA_VERSION}):
        path.write_text(json.dumps({name: value for name, value in {**fields, **change}.items() if name != "sum"}))
        with pytest.raises(KraqError, match="does not fit its labels"):
            Workspace.open(index)


def test_records_of_an_index_without_labels_are_written_as_before_there_were_any(tmp_path: Path) -> None:
    build_index([KEATS], tmp_path / "a.kraq")
    with Index.open(tmp_path / "a.kraq") as opened, opened._database.reading() as connection:
        [(data,)] = connection.execute("SELECT data FROM documents")
    assert "labels" not in data


def test_it_is_one_of_owner_and_label() -> None:
    from kraq_dspy.apps.cli.options import Scoped

    assert Scoped().scope() is None
    assert Scoped(as_label=["staff"]).scope() == Scope(["staff"])
    with pytest.raises(ConfigError, match="Give one of them"):
        Scoped(as_label=["staff"], as_owner=True).scope()


def test_a_compiled_program_is_loaded_where_its_examples_may_be_read(index: Path, tmp_path: Path) -> None:
    with Workspace.open(index) as space, space.scoped(Scope(["staff"])) as staff:
        program = staff.program("traditional", "bm25")
        for name, provenance in (("of.json", staff.learned_from), ("owner.json", {"scope": None}), ("old.json", {})):
            save_state(state_of(program, provenance), tmp_path / name)

        staff.program("traditional", "bm25", state=tmp_path / "of.json")
        with space.scoped(Scope(["staff", "board"])) as more:
            more.program("traditional", "bm25", state=tmp_path / "of.json")
        with space.scoped(Scope(["board"])) as board, pytest.raises(ScopeError, match="may hold examples"):
            board.program("traditional", "bm25", state=tmp_path / "of.json")
        for name in ("owner.json", "old.json"):
            with pytest.raises(ScopeError, match="may hold examples"):
                staff.program("traditional", "bm25", state=tmp_path / name)


def test_the_view_of_a_scope_is_written_by_models_where_that_was_asked_for(tmp_path: Path) -> None:
    documents = [
        Document("rum", "Rum", f"{RUM} George Bullough married Monica Lilly.", labels=("all",)),
        Document("muck", "Muck", f"{RUM} Monica Lilly met Flora Stuart.", labels=("few",)),
    ]
    said = {"title": "What the model said", "summary": "The model saw these people.", "findings": "[]"}
    build_index(documents, tmp_path / "a.kraq")
    with Workspace.open(tmp_path / "a.kraq", lm={"summarizer": DummyLM([said] * 20)}) as space:
        with space.scoped(Scope(["all"])) as scoped:
            assert {summary.model for summary in scoped.index.all(Summary)} == {"embedded"}
        space.prepare(Scope(["all"]))
        with space.scoped(Scope(["all"])) as scoped:
            assert {summary.title for summary in scoped.index.all(Summary)} == {"What the model said"}
            assert scoped.index.ids(Document) == ["rum"]
