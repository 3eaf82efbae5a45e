"""Brings an index of an earlier version up to date: `kraq migrate`."""

from kraq_dspy.cli.shared.options import IndexDir, Json
from kraq_dspy.cli.shared.terminal import print_json, say


def migrate(index_dir: IndexDir, json: Json = False) -> None:
    """Bring an index of an earlier version up to date, without asking a model. Opening it does so by itself, too."""
    from kraq_dspy.stores.manifest import SCHEMA_VERSION
    from kraq_dspy.stores.migrate import migrate_all

    before = migrate_all(index_dir)
    if json:
        print_json({"path": str(index_dir), "before": before, "now": SCHEMA_VERSION})
    elif before == SCHEMA_VERSION:
        say(f"{index_dir} has schema version {SCHEMA_VERSION} already.")
    else:
        say(f"{index_dir} has schema version {SCHEMA_VERSION} now (it had {before}); no model was asked.")
