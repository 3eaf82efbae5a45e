"""Takes entries out: `kraq catalogue remove`."""

from kraq_dspy.apps.cli.prepare.catalogue.shared import By, Numbers, existing, opened_catalogue, user
from kraq_dspy.apps.cli.shared.options import IndexDir, Json
from kraq_dspy.apps.cli.shared.terminal import print_json, say


def remove(index_dir: IndexDir, numbers: Numbers, by: By = None, json: Json = False) -> None:
    """Take entries out. Their numbers are not given again, and `show` still knows them."""
    with opened_catalogue(index_dir, make=False) as (_, entries):
        removed = existing(entries, numbers)
        for number in removed:
            entries.remove(number, by=by or user())
        left = entries.counts()
    if json:
        print_json({"removed": removed, "left": left})
    else:
        say(f"Removed {len(removed)}; {sum(left.values()):,} entries are left.")
