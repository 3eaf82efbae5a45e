"""Reads the TOML files that people write: settings, tokens of callers, tables of systems."""

import codecs
import tomllib
from pathlib import Path
from typing import Any

from kraq_dspy.errors import ConfigError


def read_toml(path: Path, what: str) -> dict[str, Any]:
    """The tables of a file in UTF-8, or in UTF-16 with a mark at its beginning, as editors on Windows write it.

    `what` names the file in messages, such as "settings file". Raises ConfigError for a file that is missing, cannot be
    read, or is no TOML.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise ConfigError(f"There is no {what} {str(path)!r}.") from None
    except OSError as error:
        raise ConfigError(f"The {what} {str(path)!r} cannot be read: {error.strerror}.") from error

    encoding = "utf-16" if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    try:
        return tomllib.loads(content.decode(encoding))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"The {what} {str(path)!r} is not valid TOML: {error}") from error
