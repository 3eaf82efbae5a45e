"""Builds the index of a table's corpus once for all systems that agree in what it is made with."""

import dataclasses
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kraq_dspy._internal.concurrency import run_coroutine
from kraq_dspy._internal.files import replaced
from kraq_dspy.asset.corpus.chunk import chunks_at
from kraq_dspy.asset.store.index import Index
from kraq_dspy.eval.datasets import Dataset
from kraq_dspy.indexing.index.build import Builder, abuild_index
from kraq_dspy.indexing.index.report import BuildOptions, BuildReport
from kraq_dspy.models.embedders import load_embedder, resolve_encoder
from kraq_dspy.papers.catalogue import PaperSetup
from kraq_dspy.ports import Embedder, Progress, SilentProgress
from kraq_dspy.programs.kraq.pipeline import KRAQ
from kraq_dspy.records import ExtractedEntity, ExtractedRelationship, Extraction, content_id
from kraq_dspy.settings import Settings
from kraq_dspy.state import read_state

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
    optimized: Sequence[Path] = (),
    setup: PaperSetup | None = None,
    progress: Progress | None = None,
) -> PreparedIndex:
    """The data set's index in `folder`, built if it is not there yet, gone on with if it is unfinished.

    Given triples are taken instead of extracting anew. Where another index differs in the questions' generator alone,
    the work is done on a copy of it, so that nothing but the questions is asked again. `setup` gives the pipeline the
    instructions of a paper.
    """
    path, mark = place_of_index(dataset, folder, settings, optimized, setup)
    is_complete, has_random = _state_of(path)
    if is_complete and (has_random or not random_questions):
        return PreparedIndex(path, mark, None)

    folder.mkdir(parents=True, exist_ok=True)
    sibling = None if path.exists() else _sibling_of(path)
    if sibling is not None:
        with replaced(path) as draft:
            shutil.copytree(sibling, draft, ignore=shutil.ignore_patterns("lock"))

    options: BuildOptions = {
        "settings": settings,
        "embedder": embedder,
        "random_questions": random_questions or has_random,
        "optimized": optimized,
        "progress": progress or SilentProgress(),
    }
    if setup:
        pipeline = KRAQ(settings, embedder)
        setup.give_prompts(pipeline)
        options["kraq"] = pipeline
    return PreparedIndex(path, mark, run_coroutine(_build(dataset, path, options)))


def place_of_index(
    dataset: Dataset,
    folder: Path,
    settings: Settings,
    optimized: Sequence[Path] = (),
    setup: PaperSetup | None = None,
) -> tuple[Path, str]:
    """Where `prepare_index` keeps the index, and its fingerprint. The name begins as those of indexes with another
    generator alone."""
    prompts = dict(setup.prompts) if setup else {}
    without_generator = fingerprint(dataset, settings, optimized, prompts, but="generator")
    mark = fingerprint(dataset, settings, optimized, prompts)
    return folder / f"{dataset.name}-{without_generator[:8]}-{mark[:8]}.kraq", mark


def _sibling_of(path: Path) -> Path | None:
    """A complete index beside it that differs in the questions' generator alone."""
    alike = path.name.rpartition("-")[0]
    return next((each for each in path.parent.glob(f"{alike}-*.kraq") if is_indexed(each)), None)


def is_indexed(path: Path) -> bool:
    """Whether the index is there, and whole."""
    return _state_of(path)[0]


async def _build(dataset: Dataset, path: Path, options: BuildOptions) -> BuildReport:
    if not dataset.triples:
        return await abuild_index(dataset.documents, path, **options)

    triples = {each.document_id: each for each in dataset.triples}
    chunks, extractions = [], []
    for document in dataset.documents:
        [chunk] = chunks_at(document, [(0, len(document.text))])
        given = triples.get(document.id)
        names = dict.fromkeys(given.entities if given else ())
        links = dict.fromkeys(given.triples if given else ())
        chunks.append(chunk)
        extractions.append(
            Extraction(
                chunk.id,
                tuple(ExtractedEntity(name, "", "") for name in names),
                tuple(ExtractedRelationship(s, o, p, f"{s} {p} {o}.") for s, p, o in links),
            )
        )

    async with Builder.at(path, options) as builder:
        builder.begin(dataset.documents, dataset.documents, replace=False)
        builder.keep_documents(dataset.documents, chunks)
        builder.index.replace(Extraction, extractions)
        await builder.embed_chunks()
        await builder.finish()
        return builder.report()


def fingerprint(
    dataset: Dataset,
    settings: Settings,
    optimized: Sequence[Path] = (),
    prompts: Mapping[str, str] | None = None,
    but: str = "",
) -> str:
    """32 hexadecimal digits, of all that an index is made with `but` one of the roles."""
    roles = {role: settings.role(role) for role in _BUILDERS if role != but}
    made_with = {name: value for name, value in settings.to_dict().items() if name not in _NOT_OF_THE_INDEX}
    for changes_only_the_speed in ("batch_size", "threads", "api_key_env"):
        del made_with["encoder"][changes_only_the_speed]

    made_with["roles"] = {name: [role.model, role.adapter, role.temperature] for name, role in roles.items()}
    corpus = [(document.id, document.title, document.text) for document in dataset.documents]
    triples = [(each.document_id, each.entities, each.triples) for each in dataset.triples]
    states = [dict(read_state(path).predictors) for path in optimized]
    parts: list[object] = [made_with, corpus, triples]
    parts += [part for part in (states, prompts) if part]
    return content_id("index", *(json.dumps(part, sort_keys=True) for part in parts))


def _state_of(path: Path) -> tuple[bool, bool]:
    """Whether there is a complete index, and whether it has random questions."""
    if not (path / "manifest.json").is_file():
        return False, False
    with Index.open(path) as index:
        return index.manifest.complete, bool(index.questions(source="random", duplicates=True))
