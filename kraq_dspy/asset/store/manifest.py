"""Reads and writes `manifest.json`: what an index is, readable without opening its database."""

import dataclasses
import json
import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from kraq_dspy.asset.consent import bare_address
from kraq_dspy.asset.store.own_files import damage_text, without_sum, write_summed
from kraq_dspy.errors import ConfigError, IndexStateError
from kraq_dspy.settings import Settings, settings_from_dict

SCHEMA_VERSION = 6
LABELLED = 7
"""The schema version of an index whose documents say who may read them. What knows nothing of labels refuses it."""
READABLE = (SCHEMA_VERSION, LABELLED)
MANIFEST = "manifest.json"
_INDEX_AGAIN = "Index its corpus again: kraq index CORPUS --out NEW.kraq"


@dataclass(frozen=True, slots=True)
class Manifest:
    """`complete` is False until a build has done every stage. `models` says which model served each role.

    Times are ISO 8601, UTC. `origin` says where the documents came from: {"kind": "corpus" or
    "graphrag", "path": ...}. It is {"kind": "documents"} for documents from Python, and after
    additions or removals. "labels": "function" says that a function gave the labels, which only a
    caller in Python can give again. `schemas` says by model what its replies told: whether it was
    asked under JSON schemas, and why. `state` names the folder of the last complete state
    (`store/states.py`); empty while there is none. `has_labels` says that documents declare who may
    read them: then nothing is answered without a scope, for ever.
    """

    schema_version: int
    settings: Settings
    encoder_name: str
    encoder_dimension: int
    created_at: str
    updated_at: str
    complete: bool
    models: dict[str, str]
    library_version: str
    origin: dict[str, str] = field(default_factory=dict)
    state: str = ""
    schemas: dict[str, str] = field(default_factory=dict)
    has_labels: bool = False


def new_manifest(settings: Settings, encoder_name: str, encoder_dimension: int) -> Manifest:
    return Manifest(
        schema_version=SCHEMA_VERSION,
        settings=settings,
        encoder_name=encoder_name,
        encoder_dimension=encoder_dimension,
        created_at=now(),
        updated_at=now(),
        complete=False,
        models={},
        library_version=version("kraq-dspy"),
    )


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")


def read_fields(folder: Path) -> dict[str, Any]:
    """The manifest as it is written. Raises IndexStateError."""
    fields, schema_version = _written(folder)
    if schema_version not in READABLE:
        raise IndexStateError(
            f"{str(folder)!r} has schema version {schema_version} (kraq-dspy "
            f"{fields.get('library_version', 'unknown')}), and this library reads {' and '.join(map(str, READABLE))}. "
            + ("Upgrade it: pip install -U kraq-dspy" if schema_version > LABELLED else _INDEX_AGAIN)
        )

    try:
        fields = without_sum(fields)
        if (schema_version == LABELLED) != bool(fields.get("has_labels")):
            raise ValueError(f"its schema version is {schema_version}, which does not fit its labels")
        if not re.fullmatch(r'"[0-9]{0,18}"', state := json.dumps(fields.get("state"))):
            raise ValueError(f"its state is {state}; expected the number of one")
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise IndexStateError(damage_text(folder / MANIFEST, str(error))) from error
    return fields


def _written(folder: Path) -> tuple[dict[str, Any], int]:
    """The fields of a manifest of any schema version, and that version. Raises IndexStateError."""
    path = folder / MANIFEST
    if not folder.exists():
        raise IndexStateError(f"There is no index {str(folder)!r}. Make one: kraq index CORPUS --out {folder}")
    if not folder.is_dir():
        raise IndexStateError(f"{str(folder)!r} is a file; an index is a folder, made by: kraq index CORPUS --out DIR")

    try:
        fields: dict[str, Any] = json.loads(path.read_text("utf-8"))
        return fields, int(fields["schema_version"])
    except FileNotFoundError:
        raise IndexStateError(
            f"{str(folder)!r} is not an index: it has no {MANIFEST}. Make one: kraq index CORPUS --out {folder}"
        ) from None
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise IndexStateError(damage_text(path, str(error))) from error
    except OSError as error:
        raise IndexStateError(f"Cannot read {str(path)!r}: {error.strerror}.") from error


def parse(fields: dict[str, Any], folder: Path) -> Manifest:
    """The manifest from fields of the current schema version. Raises IndexStateError."""
    try:
        settings = settings_from_dict(fields["settings"], where=MANIFEST)
        manifest = Manifest(**{**fields, "settings": settings})
        for name, hint in get_type_hints(Manifest).items():
            kind = get_origin(hint) or hint
            if type(getattr(manifest, name)) is not kind:
                raise TypeError(f"{name} is {getattr(manifest, name)!r}; expected {kind.__name__}")

        if not 0 < manifest.encoder_dimension < 1 << 20:
            raise ValueError(f"encoder_dimension is {manifest.encoder_dimension}")
        return manifest
    except ConfigError as error:
        raise IndexStateError(
            f"{str(folder)!r} has settings that this library does not know: {error} Another version made it "
            f"(kraq-dspy {fields.get('library_version', 'unknown')}). {_INDEX_AGAIN}"
        ) from error
    except (TypeError, KeyError, AttributeError, ValueError, RecursionError) as error:
        raise IndexStateError(damage_text(folder / MANIFEST, str(error))) from error


def write_fields(folder: Path, fields: dict[str, Any]) -> None:
    """Whoever reads it meanwhile sees the old manifest or the new one. Raises IndexStateError."""
    path = folder / MANIFEST
    try:
        write_summed(path, fields)
    except OSError as error:
        raise IndexStateError(
            f"Cannot write {str(path)!r}: {error.strerror}. The folder must be writable and have space left; "
            "the file is as it was."
        ) from error


def to_fields(manifest: Manifest) -> dict[str, Any]:
    """Addresses lose their user:password part, so that no secret reaches the file."""
    fields: dict[str, Any] = _without_credentials(dataclasses.asdict(manifest))
    if manifest.has_labels:
        return {**fields, "schema_version": LABELLED}
    del fields["has_labels"]
    return {**fields, "schema_version": SCHEMA_VERSION}


def _without_credentials(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    plain = {key: _without_credentials(item) for key, item in value.items()}
    for key in ("url", "api_base"):
        if plain.get(key):  # one address, or several with commas between
            plain[key] = ",".join(map(bare_address, plain[key].split(",")))
    return plain
