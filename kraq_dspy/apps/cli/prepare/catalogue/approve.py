"""Approves entries, which are served from then on: `kraq catalogue approve`."""

from kraq_dspy.apps.cli.prepare.catalogue.shared import By, Numbers, existing, opened_catalogue, user
from kraq_dspy.apps.cli.shared.options import IndexDir, Json
from kraq_dspy.apps.cli.shared.terminal import print_json, say


def approve(index_dir: IndexDir, numbers: Numbers, by: By = None, json: Json = False) -> None:
    """Serve these entries from now on, as their answers and their documents are now."""
    from kraq_dspy.build.catalogue.review import approve as approve_entry

    with opened_catalogue(index_dir, make=False) as (index, entries):
        done = [approve_entry(index, entries, number, by=by or user()) for number in existing(entries, numbers)]
    if json:
        print_json(done)
    else:
        say(f"Approved: {', '.join(str(entry.number) for entry in done)}")
