"""Lists the licenses of all packages that an installation brings, as their own metadata name them.

    python scripts/licenses.py                      # pip install kraq-dspy
    python scripts/licenses.py --extra communities  # pip install 'kraq-dspy[communities]'

What the packages of this environment require is followed from pyproject.toml on, without extras that nobody asks for.
A license is "copyleft" (GPL, AGPL, LGPL), "files" (MPL, EPL, CDDL: copyleft for changed files alone), "permissive", or
"unknown". Of several to choose from, the most permissive counts. With --check the exit status is 1 if a license is
copyleft or unknown.
"""

import argparse
import re
import sys
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
OWN = "kraq-dspy"

KINDS = ("permissive", "files", "copyleft", "unknown")
"""From the one that asks least of who ships a product on."""

_COPYLEFT = re.compile(r"\b(?:[AL]?GPL|GNU\b.*\bGeneral Public|EUPL|OSL|SSPL|CC-BY-(?:NC|SA))", re.IGNORECASE)
_FILES = re.compile(r"\b(?:MPL|Mozilla Public|EPL|Eclipse Public|CDDL)", re.IGNORECASE)
_PERMISSIVE = re.compile(
    r"\b(?:MIT|BSD|0BSD|Apache|ISC|PSF|Python Software Foundation|Python-2|Unlicense|Zlib|HPND|CC0|Public Domain|"
    r"MIT-CMU|Historical Permission|BSL-1|CNRI)",
    re.IGNORECASE,
)


SHIPPED = {"docutils": "Public Domain AND BSD License AND Python Software Foundation License"}
"""What holds for the files of a wheel whose metadata name the license of a file that is not in it: the GPL is that of
docutils' Emacs mode (its COPYING.rst)."""


@dataclass(frozen=True)
class Licensed:
    """A package that is installed, and why."""

    name: str
    version: str
    license: str
    kind: str
    needed_by: str


def packages_of(extras: Iterable[str] = ()) -> list[Licensed]:
    """The packages that `pip install kraq-dspy[extras]` brings here, by name. Raises PackageNotFoundError for one that
    is required and not installed."""
    found = {}
    for name, needed_by in _closure(extras):
        package = distribution(name)
        text = SHIPPED.get(name) or license_of(package)
        found[name] = Licensed(name, package.version, text, kind_of(text), needed_by)
    return [found[name] for name in sorted(found)]


def _closure(extras: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Names of packages, each with the one that was first seen to need it."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    waiting = [(line, OWN) for line in project["dependencies"]]
    waiting += [(line, f"{OWN}[{extra}]") for extra in extras for line in optional[extra]]

    seen: set[tuple[str, str]] = set()
    while waiting:
        line, needed_by = waiting.pop(0)
        requirement = Requirement(line)
        name = canonicalize_name(requirement.name)
        if requirement.marker and not requirement.marker.evaluate({"extra": ""}):
            continue
        for extra in ("", *requirement.extras):
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            if name == OWN:
                waiting += [(each, f"{OWN}[{extra}]") for each in optional.get(extra, ())]
                continue
            yield name, needed_by
            waiting += [(each, name) for each in _required(distribution(name), extra)]


def _required(package: Distribution, extra: str) -> Iterator[str]:
    """What a package requires, with one extra or without any."""
    for line in package.requires or ():
        marker = Requirement(line).marker
        if marker is None or marker.evaluate({"extra": extra}):
            yield line.partition(";")[0]


def license_of(package: Distribution) -> str:
    """The license as the metadata name it: its expression, else its classifiers, else what the field says. Of
    several classifiers all count, since they do not say whether one may choose."""
    metadata = package.metadata
    if "License-Expression" in metadata:
        return metadata["License-Expression"]
    classifiers = [
        line.rpartition(" :: ")[2] for line in metadata.get_all("Classifier", []) if line.startswith("License :: ")
    ]
    named = [each for each in classifiers if each != "OSI Approved"]
    field = metadata["License"].strip() if "License" in metadata else ""
    if named:
        return " AND ".join(named)
    return field.splitlines()[0] if field else ""


def kind_of(license: str) -> str:
    """One of `KINDS`.

    >>> kind_of("MIT OR GPL-3.0"), kind_of("GPL-2.0-or-later"), kind_of("MPL-2.0 AND (Apache-2.0 OR MIT)")
    ('permissive', 'copyleft', 'files')
    """
    while inner := re.search(r"\(([^()]*\b(?:OR|AND)\b[^()]*)\)", license):
        license = license.replace(inner.group(), _NAME_OF[kind_of(inner.group(1))])
    choices = re.split(r"\s+OR\s+", license)
    return min((_kind_of_all(choice) for choice in choices), key=KINDS.index)


_NAME_OF = {"permissive": "MIT", "files": "MPL-2.0", "copyleft": "GPL", "unknown": "?"}


def _kind_of_all(license: str) -> str:
    """Of licenses that all hold, the one that asks most decides."""
    return max((_kind_of_one(part) for part in re.split(r"\s+AND\s+", license)), key=KINDS.index)


def _kind_of_one(license: str) -> str:
    for kind, pattern in (("copyleft", _COPYLEFT), ("files", _FILES), ("permissive", _PERMISSIVE)):
        if pattern.search(license):
            return kind
    return "unknown"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--extra", action="append", default=[], metavar="NAME")
    parser.add_argument("--check", action="store_true", help="fail for copyleft and unknown licenses")
    options = parser.parse_args()
    try:
        packages = packages_of(options.extra)
    except PackageNotFoundError as error:
        sys.exit(f"{error.name} is required and not installed here: pip install -e .")

    for each in packages:
        print(f"{each.name:28} {each.version:14} {each.kind:11} {each.license[:60]:60} for {each.needed_by}")
    if refused := [each.name for each in packages if each.kind in ("copyleft", "unknown")]:
        print(f"\nCopyleft or unknown: {', '.join(refused)}", file=sys.stderr)
        if options.check:
            sys.exit(1)


if __name__ == "__main__":
    main()
