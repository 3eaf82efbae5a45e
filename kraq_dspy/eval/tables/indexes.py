"""Builds the index of a data set once, and finds it again by what went into it."""

import dataclasses
import json
import logging
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.store.index import Index
from kraq_dspy.build.index.build import abuild_index
from kraq_dspy.build.index.exchange import aimport_triples
from kraq_dspy.build.index.report import BuildReport
from kraq_dspy.eval.datasets import Dataset, save_local
from kraq_dspy.models.embedders import load_embedder, resolve_encoder
from kraq_dspy.ports import Embedder, Progress, SilentProgress
from kraq_dspy.programs.shared.state import read_state
from kraq_dspy.records import content_id
from kraq_dspy.settings import RoleSettings, Settings

logger = logging.getLogger(__name__)

_BUILDERS = ("extractor", "summarizer", "generator")
_NOT_OF_THE_INDEX = ("roles", "run", "store", "instructed", "k2rag")


@dataclass(frozen=True, slots=True)
class PreparedIndex:
    """`fingerprint` depends on the corpus and on every setting and model that the index is made with. `report` is None
    for an index that was found complete."""

    path: Path
    fingerprint: str
    report: BuildReport | None


def prepared(settings: Settings) -> tuple[Settings, Embedder]:
    """The settings with this machine's precision, and the encoder, loaded once for all data sets."""
    settings = dataclasses.replace(settings, encoder=resolve_encoder(settings.encoder))
    return settings, load_embedder(settings.encoder)


def prepare_index(
    dataset: Dataset,
    folder: Path,
    settings: Settings,
    embedder: Embedder,
    *,
    random_questions: bool = False,
    program_states: Sequence[Path] = (),
    progress: Progress | None = None,
) -> PreparedIndex:
    """The data set's index in `folder`, built where it is not there yet, gone on with where it is unfinished.

    Given triples are taken instead of extracting anew. Where another index differs in the questions' generator alone,
    the work is done on a copy of it, so that nothing but the questions is asked again.
    """
    mark = fingerprint(dataset, settings, program_states=program_states)
    path = folder / f"{dataset.name}-{mark[:12]}.kraq"
    random_questions = random_questions or _has_random_questions(path)
    if _is_complete(path, random_questions):
        return PreparedIndex(path, mark, None)
    folder.mkdir(parents=True, exist_ok=True)
    if not path.exists() and not program_states:
        _start_from_sibling(path, folder, dataset, settings)
    logger.info("indexing %s into %s", dataset.name, path)
    options: dict[str, Any] = {
        "settings": settings,
        "embedder": embedder,
        "random_questions": random_questions,
        "program_states": program_states,
        "progress": progress or SilentProgress(),
    }
    return PreparedIndex(path, mark, run_coroutine(_build(dataset, path, options)))


async def _build(dataset: Dataset, path: Path, options: dict[str, Any]) -> BuildReport:
    if not dataset.triples:
        return await abuild_index(dataset.documents, path, **options)
    with tempfile.TemporaryDirectory() as folder:
        save_local(dataset, Path(folder))
        return await aimport_triples(folder, path, **options)


def fingerprint(
    dataset: Dataset, settings: Settings, generator: RoleSettings | None = None, program_states: Sequence[Path] = ()
) -> str:
    """32 hexadecimal digits; `generator` instead of the settings' role of that name."""
    roles = {role: settings.role(role) for role in _BUILDERS} | ({"generator": generator} if generator else {})
    made_with = {name: value for name, value in settings.to_dict().items() if name not in _NOT_OF_THE_INDEX}
    for changes_only_the_speed in ("batch_size", "threads", "api_key_env"):
        del made_with["encoder"][changes_only_the_speed]
    made_with["roles"] = {name: [role.model, role.temperature] for name, role in roles.items()}
    corpus = [(document.id, document.title, document.text) for document in dataset.documents]
    triples = [(each.document_id, each.entities, each.triples) for each in dataset.triples]
    states = [dict(read_state(path).predictors) for path in program_states]
    parts = [made_with, corpus, triples, *([states] if states else [])]
    return content_id("index", *(json.dumps(part, sort_keys=True) for part in parts))


def _is_complete(path: Path, random_questions: bool) -> bool:
    if not (path / "manifest.json").is_file():
        return False
    with Index.open(path) as index:
        return index.manifest.complete and (not random_questions or _has_random_questions(path))


def _has_random_questions(path: Path) -> bool:
    if not (path / "manifest.json").is_file():
        return False
    with Index.open(path) as index:
        return bool(index.questions(source="random", duplicates=True))


def _start_from_sibling(path: Path, folder: Path, dataset: Dataset, settings: Settings) -> None:
    """A copy of the index whose questions the default model or the generator wrote, if there is one."""
    for generator in (settings.role("default"), settings.role("generator")):
        sibling = folder / f"{dataset.name}-{fingerprint(dataset, settings, generator)[:12]}.kraq"
        if sibling != path and _is_complete(sibling, False):
            with replaced(path) as draft:
                shutil.copytree(sibling, draft, ignore=shutil.ignore_patterns("lock"))
            return
