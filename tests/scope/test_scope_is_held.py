"""A scope is held where an index changes, where a program is compiled, and where a view would lead elsewhere."""

from pathlib import Path

import pytest

from kraq_dspy import Document, Index, Scope, Workspace, build_index, update_index
from kraq_dspy.errors import IndexStateError, ScopeError
from kraq_dspy.extend import load_embedder
from kraq_dspy.indexing.view.making import _own_settings
from kraq_dspy.optimize import Resources
from kraq_dspy.settings import EncoderSettings, RoleSettings, Settings, StoreSettings

STAFF = Scope(["staff"])
CANTEEN = Document("canteen", "The canteen", "Anna Berg opened the canteen of Oslo.", labels=("staff",))
SALE = Document("sale", "The sale", "Quenzar bought the canteen of Oslo.", labels=("board",))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    build_index([CANTEEN, SALE], tmp_path / "a.kraq")
    return tmp_path / "a.kraq"


def test_after_a_change_one_reads_what_the_labels_are_now(path: Path) -> None:
    with Workspace.open(path) as space, space.scoped(STAFF) as staff:
        assert staff.index.ids(Document) == ["canteen"]
        relabelled = [
            Document(CANTEEN.id, CANTEEN.title, CANTEEN.text, labels=("board",)),
            Document(SALE.id, SALE.title, SALE.text, labels=("staff",)),
        ]
        update_index(path, relabelled)
        with staff.newest() as newest:
            assert newest.scope == STAFF
            assert newest.index.ids(Document) == ["sale"]


def test_a_program_is_compiled_in_the_scope_that_was_given(path: Path) -> None:
    with Resources(index=path, scope=STAFF).opened() as space:
        assert space is not None
        assert space.index.ids(Document) == ["canteen"]
        assert space.learned_from == {"scope": ["staff"]}
    with Resources(index=path).opened() as space, pytest.raises(ScopeError):
        _ = space.index  # type: ignore[union-attr]


def test_an_index_that_was_never_complete_has_no_views(tmp_path: Path) -> None:
    path, encoder = tmp_path / "new.kraq", load_embedder(EncoderSettings())
    with Index.create(path, Settings(), encoder_name=encoder.name, encoder_dimension=encoder.dimension) as index:
        index.update_manifest(has_labels=True)
        index.add([CANTEEN, SALE])
    with Workspace.open(path, embedder=encoder) as space, pytest.raises(IndexStateError, match="is not complete"):
        space.scoped(STAFF)


def test_a_view_lies_on_this_machine_and_names_no_models_nor_encoder_of_elsewhere() -> None:
    """Vectors of a scope must not go into the collection of the whole, nor its prompts to the models of the build."""
    elsewhere = Settings(
        encoder=EncoderSettings(name="openai/encoder", api_base="http://encoder.example"),
        roles={"default": RoleSettings("openai/model", api_base="http://models.example")},
        store=StoreSettings(url="http://vectors.example"),
    )
    own = _own_settings(elsewhere)
    assert own.store == StoreSettings()
    assert "example" in repr(elsewhere)
    assert "example" not in repr(own)
