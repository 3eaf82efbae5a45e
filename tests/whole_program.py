"""The program `kraq` with all its commands, whatever a command line names."""

from collections.abc import Iterator

from kraq_dspy.apps.cli.commands import COMMANDS, Runnable, load
from kraq_dspy.apps.cli.program import make_app

app = make_app()


def all_commands() -> Iterator[tuple[str, type[Runnable]]]:
    """Every command under its name, of one word or two."""
    for members in COMMANDS.values():
        for name, member in members.items():
            if isinstance(member, str):
                yield name, load(member)
            else:
                yield from ((f"{name} {word}", load(each)) for word, each in member.commands.items())
