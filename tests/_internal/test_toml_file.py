"""Files of settings, tokens and tables are read as editors write them, and what is wrong with one is said."""

from pathlib import Path

import pytest

from kraq_dspy._internal.toml_file import read_toml
from kraq_dspy.errors import ConfigError


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_marks_that_editors_put_at_the_beginning_are_no_part_of_the_file(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.toml").write_text('name = "Tarnvík"', encoding)
    assert read_toml(tmp_path / "a.toml", "file of tokens") == {"name": "Tarnvík"}


def test_a_file_that_is_missing_or_a_folder_or_no_toml_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("name = [")
    for name, message in (
        ("none.toml", r"There is no file of tokens '.*none\.toml'"),
        ("", r"The file of tokens '.*' cannot be read: Is a directory\."),
        ("a.toml", r"The file of tokens '.*a\.toml' is not valid TOML: "),
    ):
        with pytest.raises(ConfigError, match=message):
            read_toml(tmp_path / name, "file of tokens")
