"""Tells who asks by the token that a request bears, and which indexes they may ask.

[[token]]
name = "support"             # for the access log
sha256 = "9f86d08188..."     # of the token; or token = "..." itself
indexes = ["docs", "wiki"]   # by the names under which they are served; all of them without it
labels = ["staff", "sales"]  # what they may read of an index whose documents have labels; or everything = true
"""

import hashlib
import hmac
import logging
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy._internal.toml_file import read_toml
from kraq_dspy.asset.scope import Scope
from kraq_dspy.errors import ConfigError, ScopeError, did_you_mean

logger = logging.getLogger(__name__)

KEYS = ("name", "token", "sha256", "indexes", "labels", "everything")
"""What an entry of the file may say."""

A_GOOD_TOKEN = "python -c 'import secrets; print(secrets.token_urlsafe())'"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and the names of the indexes that they may ask; None is all of them.

    `scope` says what they may read of an index whose documents have labels; without one they read none of it.
    """

    name: str
    indexes: frozenset[str] | None = None
    scope: Scope | None = None


ANYBODY = Caller("")
"""Of a server without tokens."""


class Callers:
    """The callers of a file of tokens, by the SHA-256 of their tokens.

    The file is read again once it has changed, so that a token is given or taken away without a restart. A file that
    cannot be read then is logged, and what it said before holds.

    Raises ConfigError for a file that is none, and for an index that is not among `served`.
    """

    def __init__(self, path: Path, served: Collection[str]) -> None:
        self._path, self._served = path, served
        self._version = self._version_now()
        self._by_digest = read_callers(path, served)

    def of(self, token: str) -> Caller | None:
        """Tell who bears the token; None for one that the file does not have."""
        self._read_again()
        digest = digest_of(token)
        matching = [caller for known, caller in self._by_digest.items() if hmac.compare_digest(known, digest)]
        return matching[0] if matching else None

    def _read_again(self) -> None:
        version = self._version_now()
        if version == self._version:
            return
        self._version = version
        try:
            self._by_digest = read_callers(self._path, self._served)
        except ConfigError as error:
            logger.error("kraq keeps the tokens that it had: %s", error)

    def _version_now(self) -> tuple[int, int]:
        try:
            stat = os.stat(self._path)
        except OSError:
            return (0, 0)
        return (stat.st_mtime_ns, stat.st_size)


def read_callers(path: Path, served: Collection[str]) -> dict[str, Caller]:
    """The callers of the file by the SHA-256 of their tokens. Raises ConfigError."""
    content = read_toml(path, "file of tokens")
    entries = content.pop("token", [])
    if content or not isinstance(entries, list) or not entries:
        raise ConfigError(f"{str(path)!r} must hold one or more [[token]] entries, and no other key.")

    callers: dict[str, Caller] = {}
    for number, entry in enumerate(entries, 1):
        where = f"{path}, token {number}"
        digest, caller = _entry(entry, where, served)
        if digest in callers or caller.name in {other.name for other in callers.values()}:
            raise ConfigError(f"{where}: another entry has its name or its token.")
        callers[digest] = caller
    return callers


def _entry(entry: Mapping[str, Any], where: str, served: Collection[str]) -> tuple[str, Caller]:
    """Raises ConfigError."""
    for key in entry:
        if key not in KEYS:
            hint = did_you_mean(key, KEYS)
            raise ConfigError(f"{where} has the key {key!r}{hint}. An entry may have: {', '.join(KEYS)}.")

    name = entry.get("name")
    if not isinstance(name, str) or not name.strip():
        raise ConfigError(f"{where} has no name; the access log names callers by it.")
    where = f"{where} ({name})"

    if ("token" in entry) == ("sha256" in entry):
        raise ConfigError(f"{where} must have either its token or the sha256 of it.")
    if "token" in entry:
        require_good(entry["token"], where)
        digest = digest_of(entry["token"])
    else:
        digest = str(entry["sha256"]).lower()
        if len(digest) != 64 or set(digest) - set("0123456789abcdef"):
            raise ConfigError(f"{where}: sha256 must be 64 hexadecimal digits: printf %s TOKEN | sha256sum")

    indexes = _indexes(entry["indexes"], where, served) if "indexes" in entry else None
    return digest, Caller(name, indexes, _scope(entry, where))


def _scope(entry: Mapping[str, Any], where: str) -> Scope | None:
    """Raises ConfigError."""
    if entry.get("everything", False) not in (True, False) or ("labels" in entry and entry.get("everything")):
        raise ConfigError(f"{where} must have either its labels or everything = true, which is for the owner.")
    if entry.get("everything"):
        return Scope.everything()
    if "labels" not in entry:
        return None
    try:
        return Scope(entry["labels"])
    except ScopeError as error:
        raise ConfigError(f"{where}: {error}") from error


def _indexes(names: Any, where: str, served: Collection[str]) -> frozenset[str]:
    """Raises ConfigError."""
    if not isinstance(names, list) or not names or not all(isinstance(each, str) for each in names):
        raise ConfigError(f"{where}: indexes must be a list of one name or more; leave it out for all indexes.")
    unknown = [each for each in names if each not in served]
    if unknown:
        raise ConfigError(f"{where}: no index {unknown[0]!r} is served here; there are: {', '.join(served)}.")
    return frozenset(names)


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def require_good(token: Any, where: str = "The token") -> None:
    """Raises ConfigError for a token that is easily guessed, or that no header can bear."""
    if not isinstance(token, str) or len(token) < 8 or not token.isascii() or " " in token:
        raise ConfigError(
            f"{where} must have 8 characters or more, of ASCII and without spaces. A good one: {A_GOOD_TOKEN}"
        )
